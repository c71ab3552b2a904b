// Local search (LS++): draw a candidate, find the cheapest centroid to remove, swap the two.
#include "kmeans/local_search.hpp"

#include <algorithm>
#include <cmath>

#include "kmeans/search_points.hpp"
#include "kmeans/sphere.hpp"
#include "simd/rounding.hpp"

namespace kmeander {
namespace {

// A swap must lower the error by more than its sum may be wrong.
constexpr double kRounding = 1e-9;

// And by more than one row alone does: by so many times the root of the summed squares of what it
// does to the rows, which for a single one is that itself. A far row is no reason to give up a
// cluster; two that lie together may be.
constexpr double kLeastEvidence = 1.1;

class LocalSearch : SearchPoints {
public:
    LocalSearch(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                std::size_t n_threads, bool on_sphere)
        : SearchPoints(batches, k, centroids, n_threads),
          on_sphere_(on_sphere),
          candidate_(d_),
          swapped_(k) {}

    // Try the point in which `uniform` of the whole cost falls.
    void attempt(double uniform) {
        double total = 0.0;
        for (const SearchCluster &cluster : clusters_) total += cluster.cost;
        if (!draw(uniform * total)) return;
        team_.run(k_, operations_, [&](std::size_t c, std::size_t) { price_candidate(c); });
        n_distances_ += static_cast<std::int64_t>(k_);
        double gain = 0.0;
        for (const SearchCluster &cluster : clusters_) {
            gain += cluster.gain;
            n_distances_ += cluster.n_distances;
        }
        for (;;) {
            std::size_t cheapest = 0;
            for (std::size_t c = 1; c < k_; ++c)
                if (clusters_[c].price() < clusters_[cheapest].price()) cheapest = c;
            const double net = gain - clusters_[cheapest].price();
            if (!(net > kRounding * total)) return;
            if (clusters_[cheapest].exact) {
                if (net > kLeastEvidence * std::sqrt(summed_squares(cheapest))) replace(cheapest);
                return;
            }
            find_seconds(cheapest);
            price_candidate(cheapest);
            n_distances_ += clusters_[cheapest].n_distances;
        }
    }

    SwapReport finish() {
        for (const SearchPoint &point : points_) {
            WorkingBatch &batch = batches_[point.batch];
            batch.upper[point.row] = bound_above(point.own);
            batch.lower[point.row] = bound_below(point.second);
        }
        SwapReport report;
        report.n_swaps = n_swaps_;
        report.n_distances = n_distances_;
        for (std::size_t c = 0; c < k_; ++c)
            if (swapped_[c]) report.swapped.push_back(static_cast<std::int32_t>(c));
        return report;
    }

private:
    double between(const double *one, const double *other) const {
        double squared = 0.0;
        for (std::size_t j = 0; j < d_; ++j) squared += (one[j] - other[j]) * (one[j] - other[j]);
        return std::sqrt(squared);
    }

    // Find the candidate at `mark` of all costs one after the other; false if nothing costs.
    bool draw(double mark) {
        std::int64_t drawn = -1;
        double passed = 0.0;
        for (const SearchCluster &cluster : clusters_) {
            if (passed + cluster.cost <= mark) {
                passed += cluster.cost;
                continue;
            }
            for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
                const SearchPoint &point = points_[members_[m]];
                if (point.weight * point.own <= 0.0) continue;
                drawn = members_[m];  // kept, should rounding carry the mark past the end
                passed += point.weight * point.own;
                if (passed > mark) break;
            }
            break;
        }
        if (drawn < 0) return false;
        const SearchPoint &point = points_[static_cast<std::size_t>(drawn)];
        set_.widen(batches_[point.batch].rows, point.row, candidate_.data());
        return !on_sphere_ || put_on_sphere(candidate_.data(), d_);
    }

    // What the candidate would do to the points of a cluster.
    void price_candidate(std::size_t c) {
        SearchCluster &cluster = clusters_[c];
        cluster.apart = between(candidate_.data(), centroids_ + c * d_);
        cluster.gain = cluster.relief = 0.0;
        cluster.n_distances = 0;
        if (cluster.apart >= cluster.reach) return;
        for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
            const SearchPoint &point = points_[members_[m]];
            if (point.weight <= 0.0 || cluster.apart >= point.reach) continue;
            const double squared = squared_to(point, candidate_.data());
            ++cluster.n_distances;
            if (squared >= point.second) continue;
            cluster.gain += point.weight * (point.own - std::min(point.own, squared));
            cluster.relief += point.weight * (point.second - std::max(point.own, squared));
        }
    }

    // Of what it does to each point to have the candidate in place of the centroid `gone`: the
    // squares of what it saves those that come to it, and of what those lose that must go.
    double summed_squares(std::size_t gone) {
        double squares = 0.0;
        for (std::size_t c = 0; c < k_; ++c) {
            const SearchCluster &cluster = clusters_[c];
            if (!(cluster.gain > 0.0) && c != gone) continue;
            for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
                const SearchPoint &point = points_[members_[m]];
                if (point.weight <= 0.0) continue;
                double squared = point.second;
                if (cluster.apart < point.reach) {
                    squared = std::min(squared, squared_to(point, candidate_.data()));
                    ++n_distances_;
                }
                const double change =
                    c == gone ? squared - point.own : std::min(squared - point.own, 0.0);
                squares += point.weight * change * point.weight * change;
            }
        }
        return squares;
    }

    // Put centroid `gone` where the candidate is.
    void replace(std::size_t gone) {
        std::vector<double> from_gone(k_);
        for (std::size_t c = 0; c < k_; ++c)
            from_gone[c] = between(centroids_ + c * d_, centroids_ + gone * d_);
        std::copy(candidate_.begin(), candidate_.end(), centroids_ + gone * d_);
        packed_.pack(centroids_);
        const auto to = static_cast<std::int32_t>(gone);
        team_.run(k_, operations_, [&](std::size_t c, std::size_t) {
            if (c == gone) return;
            SearchCluster &cluster = clusters_[c];
            cluster.n_distances = 0;
            for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
                SearchPoint &point = points_[members_[m]];
                // If it was the second nearest that went, only a bound is left.
                if (from_gone[c] <= point.reach * (1.0 + kRounding)) point.exact = false;
                if (cluster.apart >= point.reach) continue;
                const double squared = squared_to(point, candidate_.data());
                ++cluster.n_distances;
                if (squared >= point.second) continue;
                point.second = std::max(point.own, squared);
                point.exact = true;
                if (squared < point.own) {
                    point.own = squared;
                    label_of(point) = to;
                }
                set_reach(point);
            }
        });
        for (std::size_t c = 0; c < k_; ++c)
            if (c != gone) n_distances_ += clusters_[c].n_distances;
        const SearchCluster &cluster = clusters_[gone];
        measure({members_.begin() + static_cast<std::ptrdiff_t>(cluster.begin),
                 members_.begin() + static_cast<std::ptrdiff_t>(cluster.end)},
                [&](SearchPoint &point, std::int32_t label, double squared, double second) {
                    label_of(point) = label;
                    point.own = squared;
                    point.second = second;
                    point.exact = true;
                    set_reach(point);
                });
        swapped_[gone] = true;
        ++n_swaps_;
        group();
    }

    const bool on_sphere_;
    std::vector<double> candidate_;
    std::vector<bool> swapped_;
    std::int64_t n_swaps_ = 0;
};

}  // namespace

SwapReport swap_centroids(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                          const double *uniforms, std::size_t n_candidates, std::size_t n_threads,
                          bool on_sphere) {
    if (k < 2) return {};  // one centroid has no better place than the mean
    LocalSearch swapper(batches, k, centroids, n_threads, on_sphere);
    for (std::size_t i = 0; i < n_candidates; ++i) swapper.attempt(uniforms[i]);
    return swapper.finish();
}

}  // namespace kmeander
