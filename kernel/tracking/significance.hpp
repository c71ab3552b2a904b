// Significance of changes: how the newest batch differs from the older ones, cluster by cluster,
// and how much of that sampling noise explains. Works on the sufficient statistics of a partition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/partition.hpp"

namespace kmeander {

struct ComparedBatches {
    const double *decay;            // (n_batches,)
    const double *points_per_mass;  // (n_batches,) or null: a unit of mass is a point
    const std::uint8_t *is_whole;   // (n_batches,) or null: scatter is that of points, not of means
    const std::int64_t *oldest;     // (n_batches,) number of the oldest batch in each entry
    const std::int64_t *since;      // (k,) number of the oldest batch to compare with
};

struct CandidateChanges {
    std::vector<std::int32_t> moved, share, elsewhere;
};

// Rows of `evidence`, each (k,); `Evidence` of src/kmeander/tracking/significance.py is the same.
enum EvidenceRow : std::size_t {
    kVariance,      // of the points about the mean of their batch and cluster
    kFreedom,       // degrees of freedom of that variance
    kSquaredShift,  // squared distance of the newest mean from the older one
    kNoise,         // expectation of that distance under noise
    kShare,         // of the cluster in the newest batch
    kShareBefore,   // in the older ones
    kPointsBefore,  // how many points the older share is worth
    kEvidenceRows   // their number
};

// Fill `evidence` and name the clusters at which it is worth a closer look: those whose squared
// distance exceeds `moved_level` squared times its expectation, those whose share differs by
// `share_level` deviations (by a quadratic form that is at least half the deviance), and those
// whose centroid moved farther (`moved`, (k,)) than its points lie from it.
CandidateChanges find_candidate_changes(const ClusterSums &sums, const ComparedBatches &compared,
                                        const double *moved, double moved_level, double share_level,
                                        double *evidence);

}  // namespace kmeander
