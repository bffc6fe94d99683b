"""Hosts a program on Spark Structured Streaming: one source, chained stateful stages, exact sinks."""
