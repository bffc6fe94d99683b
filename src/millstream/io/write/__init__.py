"""Formats as writers: tuples become the bytes of a file."""
