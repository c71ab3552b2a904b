"""A model's state in files: checkpoints, and models saved by themselves."""
