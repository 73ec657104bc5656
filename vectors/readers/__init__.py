"""Readers of the golden vectors, one for each of four languages. Examples: nothing of halfulp imports them."""
