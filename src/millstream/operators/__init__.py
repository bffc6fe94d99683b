"""The operator library: one operator a file, each a frozen configuration that builds running state."""
