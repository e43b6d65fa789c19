"""The command line: each command parses, calls a room below, and prints."""
