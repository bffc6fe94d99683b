"""The local runtime: the whole query graph in one process."""
