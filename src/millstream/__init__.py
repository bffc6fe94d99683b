"""Continuous SQL over streams that carry their own progress, in one process or on Spark."""

__version__ = "0.1.0"
