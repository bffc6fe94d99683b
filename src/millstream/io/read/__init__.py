"""Formats as readers: bytes of a file become tuples, line numbers and dead letters."""
