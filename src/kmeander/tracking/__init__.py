"""What a batch did to the clusters: drift test, ids, events and reasons."""
