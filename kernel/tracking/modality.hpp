// Modality of clusters: are two of them one mode, or does one hold two? A test for a dip, a
// minimum of the density between two modes: a valley between two peaks.
//
// Points are projected on a line and counted in five equal bins, the first about one end, the last
// about the other, three between. Between two clusters one of the three is emptier than both ends;
// in one cluster cut in two none is. The line leads from a centroid to its nearest neighbour, or
// follows the principal direction of one cluster, from mean to mean of its best cut.
//
// A cluster is known by its newest rows, up to a number, with their decayed weights: that
// bounds the work whatever the window holds, and is what the cluster is now. Its direction is found
// from a few of them by power iteration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/batch.hpp"

namespace kmeander {

// Scores are roots of deviances of counts, with a sign: standard normal at the border, above it the
// farther the counts lie beyond. For each cluster, whether it and its nearest neighbour (-1 where
// there is none) are one: every bin between holds more than `shallow` times the emptier end; and
// whether it is two: some bin between holds less than the emptier end.
//
// `masses` are those of the clusters that `centroids` are the means of.
void score_dips(const std::vector<LabelledBatch> &batches, const double *centroids, std::size_t k,
                const double *masses, std::size_t rows_per_cluster, double shallow,
                std::int32_t *neighbours, double *as_one, double *as_two);

}  // namespace kmeander
