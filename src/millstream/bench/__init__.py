"""Comparisons a user can repeat: both sides in one run, with the ratio."""
