// Which cluster each point of consecutive batches is in, with all that is known of it.
//
// Never changed once it is made, so that windows share it and an old one stays whole whatever
// happens to a new one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kmeans/buffer.hpp"

namespace kmeander {

struct Division {
    // Per point: its cluster, and bounds of the distances to its centroid and to all others, at the
    // centroids `snapshot` (k, d); no bounds where that is empty.
    struct Points {
        Buffer<std::int32_t> labels;
        Buffer<float> upper, lower;
        std::vector<double> snapshot;
    };
    // Per batch and cluster, without decay; see batch.hpp.
    struct Totals {
        std::size_t n_batches, k, d;
        Buffer<double> masses, sums, scatter;
    };

    std::shared_ptr<const Points> points;
    std::shared_ptr<const Totals> totals;  // null where they are not known

    std::size_t n_points() const { return points->labels.size(); }
    bool has_bounds() const { return !points->snapshot.empty(); }
};

}  // namespace kmeander
