"""A testing kit for users' own pipelines: feed lists of tuples, get lists of tuples."""
