"""Kills real runs at random points, restarts them from their checkpoint, and compares what they leave with the oracle."""
