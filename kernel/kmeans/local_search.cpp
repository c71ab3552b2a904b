// Local search (LS++): draw a candidate, find the cheapest centroid to remove, swap the two.
#include "kmeans/local_search.hpp"

#include <algorithm>
#include <cmath>

#include "kmeans/packed_centroids.hpp"
#include "kmeans/points.hpp"
#include "kmeans/sphere.hpp"
#include "parallel/team.hpp"
#include "simd/rounding.hpp"

namespace kmeander {
namespace {

// A swap must lower the error by more than its sum may be wrong.
constexpr double kRounding = 1e-9;

// And by more than one row alone does: by so many times the root of the summed squares of what it
// does to the rows, which for a single one is that itself. A far row is no reason to give up a
// cluster; two that lie together may be.
constexpr double kLeastEvidence = 1.1;

class LocalSearch {
public:
    LocalSearch(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                std::size_t n_threads, bool on_sphere)
        : batches_(batches),
          k_(k),
          d_(batches.front().rows.columns),
          centroids_(centroids),
          on_sphere_(on_sphere),
          set_(instruction_set()),
          operations_(operations(batches)),
          team_(worth_starting(n_threads, operations_)),
          packed_(k, d_),
          scratch_(team_.size(), d_),
          clusters_(k),
          candidate_(d_),
          swapped_(k) {
        std::size_t n_points = 0;
        for (const WorkingBatch &batch : batches_) n_points += batch.rows.count;
        points_.reserve(n_points);
        for (std::uint32_t b = 0; b < batches_.size(); ++b)
            for (std::uint32_t i = 0; i < batches_[b].rows.count; ++i)
                points_.push_back({b, i, batches_[b].decay * weight_of(batches_[b], i)});
        members_.resize(n_points);
        packed_.pack(centroids_);
        measure_own();
        group();
    }

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
    struct SearchPoint {
        std::uint32_t batch, row;
        double weight;        // decayed
        double own = 0.0;     // squared distance to its centroid
        double second = 0.0;  // not above the squared distance to any other
        double reach = 0.0;   // sum of both distances
        bool exact = false;   // whether `second` is that distance
    };
    struct SearchCluster {
        std::size_t begin = 0, end = 0;  // of members_
        double cost = 0.0;               // of its points as they are
        double loss = 0.0;               // were its centroid taken away; a lower bound
        double reach = 0.0;              // the longest of its points
        bool exact = false;              // whether `loss` is exact
        // About the present candidate: the distance to it, what it saves its points, by how much
        // it lowers the loss.
        double apart = 0.0, gain = 0.0, relief = 0.0;
        std::int64_t n_distances = 0;

        // What it costs to have the candidate in place of this centroid, the gain aside.
        double price() const { return loss - relief; }
    };

    static double operations(const std::vector<WorkingBatch> &batches) {
        double operations = 0.0;
        for (const WorkingBatch &batch : batches)
            operations += 1.0 * batch.rows.count * batch.rows.columns;
        return operations;
    }

    std::int32_t &label_of(const SearchPoint &point) {
        return batches_[point.batch].labels[point.row];
    }

    double squared_to(const SearchPoint &point, const double *place) const {
        double squared;
        set_.squared_to(batches_[point.batch].rows, point.row, point.row + 1, place, &squared);
        return squared;
    }

    double between(const double *one, const double *other) const {
        double squared = 0.0;
        for (std::size_t j = 0; j < d_; ++j) squared += (one[j] - other[j]) * (one[j] - other[j]);
        return std::sqrt(squared);
    }

    static void set_reach(SearchPoint &point) {
        point.reach = std::sqrt(point.own) + std::sqrt(point.second);
    }

    void measure_own() {
        team_.run(n_chunks(points_.size()), operations_, [&](std::size_t chunk, std::size_t) {
            const std::size_t end = std::min((chunk + 1) * kChunkRows, points_.size());
            for (std::size_t i = chunk * kChunkRows; i < end; ++i) {
                SearchPoint &point = points_[i];
                const WorkingBatch &batch = batches_[point.batch];
                const double lower = std::max(0.0F, batch.lower[point.row]);
                point.own = squared_to(point, centroids_ + batch.labels[point.row] * d_);
                // The own centroid is the nearest, however loose the bound has become.
                point.second = std::max(point.own, lower * lower);
                set_reach(point);
            }
        });
        n_distances_ += static_cast<std::int64_t>(points_.size());
    }

    // List the members of each cluster in window order, and add up what they cost.
    void group() {
        for (SearchCluster &cluster : clusters_) cluster.end = 0;
        for (const SearchPoint &point : points_) ++clusters_[label_of(point)].end;
        std::size_t end = 0;
        for (SearchCluster &cluster : clusters_) {
            cluster.begin = end;
            end += cluster.end;
            cluster.end = cluster.begin;
        }
        for (std::uint32_t i = 0; i < points_.size(); ++i)
            members_[clusters_[label_of(points_[i])].end++] = i;
        team_.run(k_, operations_, [&](std::size_t c, std::size_t) { add_up(clusters_[c]); });
    }

    void add_up(SearchCluster &cluster) const {
        cluster.cost = cluster.loss = cluster.reach = 0.0;
        cluster.exact = true;
        for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
            const SearchPoint &point = points_[members_[m]];
            cluster.reach = std::max(cluster.reach, point.reach);
            if (point.weight <= 0.0) continue;
            cluster.cost += point.weight * point.own;
            cluster.loss += point.weight * (point.second - point.own);
            cluster.exact = cluster.exact && point.exact;
        }
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

    // Measure the points of a cluster against all centroids, where their second is not known.
    void find_seconds(std::size_t c) {
        SearchCluster &cluster = clusters_[c];
        std::vector<std::uint32_t> unknown;
        for (std::size_t m = cluster.begin; m < cluster.end; ++m)
            if (!points_[members_[m]].exact) unknown.push_back(members_[m]);
        measure(unknown, [&](SearchPoint &point, std::int32_t label, double, double second) {
            // Another centroid may be as near, or nearer by a rounding.
            const bool tied = label != static_cast<std::int32_t>(c);
            point.second = tied ? point.own : std::max(second, point.own);
            point.exact = true;
            set_reach(point);
        });
        add_up(cluster);
    }

    // Call found(point, label, squared, second) for the points at these positions.
    template <class Visit>
    void measure(const std::vector<std::uint32_t> &positions, const Visit &found) {
        const std::size_t n_groups = (positions.size() + kGroupRows - 1) / kGroupRows;
        const double operations = static_cast<double>(positions.size() * k_ * d_);
        team_.run(n_groups, operations, [&](std::size_t group, std::size_t worker) {
            const std::size_t begin = group * kGroupRows;
            const std::size_t count = std::min(kGroupRows, positions.size() - begin);
            const double *rows[kGroupRows] = {};
            for (std::size_t i = 0; i < count; ++i) {
                const SearchPoint &point = points_[positions[begin + i]];
                rows[i] =
                    point_at(batches_[point.batch].rows, point.row, scratch_.of(worker) + i * d_);
            }
            std::int32_t labels[kGroupRows];
            double squared[kGroupRows], second[kGroupRows];
            set_.nearest(rows, count, d_, packed_.blocks(), packed_.all(), packed_.n_blocks(),
                         labels, squared, second);
            for (std::size_t i = 0; i < count; ++i)
                found(points_[positions[begin + i]], labels[i], squared[i], second[i]);
        });
        n_distances_ += static_cast<std::int64_t>(positions.size() * k_);
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

    std::vector<WorkingBatch> &batches_;
    const std::size_t k_, d_;
    double *centroids_;
    const bool on_sphere_;
    const InstructionSet &set_;
    const double operations_;  // to measure every point against one place
    Team team_;
    PackedCentroids packed_;
    PointScratch scratch_;
    std::vector<SearchPoint> points_;     // in window order
    std::vector<std::uint32_t> members_;  // positions, by cluster
    std::vector<SearchCluster> clusters_;
    std::vector<double> candidate_;
    std::vector<bool> swapped_;
    std::int64_t n_swaps_ = 0, n_distances_ = 0;
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
