"""The figures of the papers, drawn anew from runs of our own: `millstream figures NAME`."""
