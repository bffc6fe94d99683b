"""Streams that are made: arrival patterns in the notation of paper 002, and the tuples that follow them."""
