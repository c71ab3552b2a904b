"""The experiments of the paper: datasets, protocol, figures and findings."""
