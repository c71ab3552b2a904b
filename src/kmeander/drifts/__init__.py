"""Streams that are made to change, for experiments and tests."""
