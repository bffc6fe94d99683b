"""Hot loops: numba over flat arrays, no Python objects; the containers in `state` call them."""
