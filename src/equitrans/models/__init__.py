"""Models: what they promise is in base, one room each."""
