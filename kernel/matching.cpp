#include "matching.hpp"

namespace kmeander {

void merge_costs(const Clusters &previous, const Clusters &current, std::size_t d, double *squared,
                 double *costs) {
    for (std::size_t a = 0; a < previous.count; ++a) {
        for (std::size_t b = 0; b < current.count; ++b) {
            double sum = 0.0;
            for (std::size_t j = 0; j < d; ++j) {
                const double difference = previous.centroids[a * d + j] - current.centroids[b * d + j];
                sum += difference * difference;
            }
            const double total = previous.masses[a] + current.masses[b];
            const double share =
                total > 0.0 ? previous.masses[a] * current.masses[b] / total : 0.0;
            squared[a * current.count + b] = sum;
            costs[a * current.count + b] = share * sum;
        }
    }
}

}  // namespace kmeander
