// Spread of the clusters: the pooled variance of each over the batches of a window.
#include "tracking/spread.hpp"

#include <algorithm>

namespace kmeander {

void find_variance(const ClusterSums &sums, const double *points_per_mass,
                   const std::uint8_t *is_whole, double *variance) {
    const std::size_t k = sums.k();
    for (std::size_t c = 0; c < k; ++c) {
        double scatter = 0.0, freedom = 0.0;
        for (std::size_t b = 0; b < sums.n_batches(); ++b) {
            if (is_whole && !is_whole[b]) continue;
            const double unit = points_per_mass ? points_per_mass[b] : 1.0;
            scatter += sums.scatter()[b * k + c] * unit;
            freedom += std::max(sums.masses()[b * k + c] * unit - 1.0, 0.0);
        }
        variance[c] = freedom > 0.0 ? scatter / freedom : 0.0;
    }
}

}  // namespace kmeander
