// Coreset: groups of rows that lie close together, each replaced by its weighted mean.
#pragma once

#include <cstddef>

#include "simd/instruction_set.hpp"

namespace kmeander {

struct CoresetSize {
    std::size_t count;  // fewer than asked for where the rows hold fewer distinct points
    double within;      // weighted sum of squared distances of the rows to their means
};

// Cut the rows into at most m groups, and write the mean and the weight of each to `means` (m, d)
// and `masses` (m,). Rows without weight are in no group; `weights` may be null.
CoresetSize summarise(const PointsView &rows, const double *weights, std::size_t m, double *means,
                      double *masses);

}  // namespace kmeander
