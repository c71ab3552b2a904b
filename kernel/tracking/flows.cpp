// Flows: one pass over the labels before and now.
#include "tracking/flows.hpp"

#include <algorithm>

#include "kmeans/checks.hpp"

namespace kmeander {

void count_flows(const DecayedWindow &window, const Partition *older, const Partition &arrived,
                 const Partition &found, std::size_t k, double *flow, double *newest) {
    need(window.size() > 0, "no batches");
    const std::size_t n_newest = window.newest().rows.count;
    const std::size_t n_older = window.n_points() - n_newest;
    need((n_older == 0 || (older != nullptr && older->n_points() >= n_older)) &&
             arrived.n_points() == n_newest,
         "labels and points differ in length");
    std::span<const std::int32_t> now = found.last_labels(window.n_points(), k), then;
    if (n_older > 0) {
        then = older->labels().first(n_older);
        need(are_labels(then, k), "labels of no cluster");
    }
    std::fill_n(flow, k * k, 0.0);
    std::fill_n(newest, k * k, 0.0);
    for (std::size_t b = 0; b < window.size(); ++b) {
        const BatchView &batch = window[b];
        const bool is_newest = b + 1 == window.size();
        if (is_newest) then = arrived.last_labels(n_newest, k);
        for (std::size_t i = 0; i < batch.rows.count; ++i) {
            const double weight = weight_of(batch, i);
            const std::size_t pair =
                static_cast<std::size_t>(then[i]) * k + static_cast<std::size_t>(now[i]);
            flow[pair] += window.decay()[b] * weight;
            if (is_newest) newest[pair] += weight;
        }
        then = then.subspan(batch.rows.count);
        now = now.subspan(batch.rows.count);
    }
}

}  // namespace kmeander
