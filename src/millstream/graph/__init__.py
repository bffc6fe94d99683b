"""The query graph: operators joined by arcs, and its cut into stages."""
