"""The runtimes host a compiled program: in this process, or on Spark."""
