// Matching of clusters: Ward's costs of merging, and merged means.
#include "tracking/matching.hpp"

namespace kmeander {

void merge_costs(const WeightedCentroids &previous, const WeightedCentroids &current, std::size_t d,
                 double *squared, double *costs) {
    for (std::size_t a = 0; a < previous.count; ++a) {
        for (std::size_t b = 0; b < current.count; ++b) {
            double sum = 0.0;
            for (std::size_t j = 0; j < d; ++j) {
                const double difference =
                    previous.centroids[a * d + j] - current.centroids[b * d + j];
                sum += difference * difference;
            }
            const double total = previous.masses[a] + current.masses[b];
            const double share = total > 0.0 ? previous.masses[a] * current.masses[b] / total : 0.0;
            squared[a * current.count + b] = sum;
            costs[a * current.count + b] = share * sum;
        }
    }
}

void average(const WeightedCentroids &previous, const WeightedCentroids &current,
             const std::int64_t *partners, std::size_t d, double *means) {
    for (std::size_t c = 0; c < previous.count; ++c) {
        const double *from = previous.centroids + c * d;
        double *mean = means + c * d;
        const std::size_t partner = static_cast<std::size_t>(partners[c]);
        const double gained = partners[c] < 0 ? 0.0 : current.masses[partner];
        const double total = previous.masses[c] + gained;
        const double share = total > 0.0 ? gained / total : 0.0;
        // Exact at both ends, and for equal centroids: no rounding moves a cluster that has no
        // reason.
        for (std::size_t j = 0; j < d; ++j) {
            if (partners[c] < 0)
                mean[j] = from[j];
            else if (share == 1.0)
                mean[j] = current.centroids[partner * d + j];
            else
                mean[j] = from[j] + share * (current.centroids[partner * d + j] - from[j]);
        }
    }
}

}  // namespace kmeander
