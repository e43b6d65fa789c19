"""LANE (Liu et al. 2020): learning analytical expressions."""
