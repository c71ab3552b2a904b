"""Weighted K-means on points and on a window of batches (sections II and III of the paper)."""
