"""The recursive aligner's symbolic part: rules, charts, and how rules are found. Knows no torch."""
