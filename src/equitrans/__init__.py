"""String transduction with exact symmetry."""
