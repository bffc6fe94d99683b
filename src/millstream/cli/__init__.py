"""The commands that users type."""
