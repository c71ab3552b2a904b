"""Streams other than the paper's: the default, its variants and its rivals on each of them."""
