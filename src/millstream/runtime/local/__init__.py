"""The runtime in one process."""
