"""A stream from end to end: `kmeander.run`, `predict`, and simulated streams."""
