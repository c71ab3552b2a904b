"""Streams that change slowly, or by clusters that appear, vanish, split and merge."""

from kmeander.drifts.scenarios import ClusterConcept, GradualStream, evolve_clusters

__all__ = ["ClusterConcept", "GradualStream", "evolve_clusters"]
