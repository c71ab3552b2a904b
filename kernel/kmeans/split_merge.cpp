// Split-merge: 2-means of every cluster that might gain, then exchanges, the best ones first.
#include "kmeans/split_merge.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kmeans/search_points.hpp"

namespace kmeander {
namespace {

// An exchange must lower the error by more than its sums may be wrong ...
constexpr double kRounding = 1e-9;
// ... and by so many standard errors, or clusters come and go by chance: as many rows as the
// smaller half has share what a split gains.
constexpr double kEvidence = 0.5;
// Each half must hold more than one row: so many of equal weight (Kish's effective size).
constexpr double kLeastRows = 1.5;
// The most exchanges before Lloyd runs again, and passes of a 2-means.
constexpr std::size_t kExchanges = 20, kPasses = 4;

struct Bisection {  // of a cluster
    double gain = 0.0;
    double variance = 0.0;  // of the gain, by chance
    std::vector<double> heavier, lighter;
    std::int64_t n_distances = 0;
};

class SplitMerge : SearchPoints {
public:
    SplitMerge(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
               std::size_t n_threads)
        : SearchPoints(batches, k, centroids, n_threads), bisections_(k), is_free_(k, true) {}

    SplitMergeReport run(const double *uniforms) {
        double total = 0.0;
        for (const SearchCluster &cluster : clusters_) total += cluster.cost;
        const double least = clusters_[cheapest(k_)].loss;
        team_.run(k_, kPasses * operations_, [&](std::size_t c, std::size_t) {
            // In halves a cluster gains no more than it costs.
            if (clusters_[c].cost > least) bisect(c, uniforms + 2 * c);
        });
        for (const Bisection &bisection : bisections_) n_distances_ += bisection.n_distances;
        SplitMergeReport report;
        for (std::size_t n = 0; n < kExchanges && is_possible(); ++n) {
            const std::size_t split = most_divided(), removed = cheapest(split);
            if (removed == k_ || !pays(split, removed, total)) break;
            is_free_[split] = is_free_[removed] = false;
            // The nearest cluster takes over what the one removed has held: it is another one now.
            if (const std::size_t heir = nearest_to(removed); heir != split) is_free_[heir] = false;
            report.split.push_back(static_cast<std::int32_t>(split));
            report.removed.push_back(static_cast<std::int32_t>(removed));
        }
        for (std::size_t n = 0; n < report.split.size(); ++n) {
            const auto split = static_cast<std::size_t>(report.split[n]);
            const auto removed = static_cast<std::size_t>(report.removed[n]);
            const Bisection &halves = bisections_[split];
            std::copy(halves.heavier.begin(), halves.heavier.end(), centroids_ + split * d_);
            std::copy(halves.lighter.begin(), halves.lighter.end(), centroids_ + removed * d_);
        }
        report.n_distances = n_distances_;
        return report;
    }

private:
    bool is_possible() const { return std::count(is_free_.begin(), is_free_.end(), true) > 1; }

    std::size_t most_divided() const {
        std::size_t best = k_;
        for (std::size_t c = 0; c < k_; ++c)
            if (is_free_[c] && (best == k_ || bisections_[c].gain > bisections_[best].gain))
                best = c;
        return best;
    }

    // The cluster whose removal costs least, exactly, but for `spared`; k where there is none.
    std::size_t cheapest(std::size_t spared) {
        for (;;) {
            std::size_t best = k_;
            for (std::size_t c = 0; c < k_; ++c)
                if (is_free_[c] && c != spared &&
                    (best == k_ || clusters_[c].loss < clusters_[best].loss))
                    best = c;
            if (best == k_ || clusters_[best].exact) return best;
            find_seconds(best);
        }
    }

    bool pays(std::size_t split, std::size_t removed, double total) const {
        const Bisection &bisection = bisections_[split];
        const double net = bisection.gain - clusters_[removed].loss;
        if (!(net > kRounding * total)) return false;
        double variance = bisection.variance;
        for (std::size_t m = clusters_[removed].begin; m < clusters_[removed].end; ++m) {
            const SearchPoint &point = points_[members_[m]];
            if (point.weight <= 0.0) continue;
            const double change = point.weight * (point.second - point.own);
            variance += change * change;
        }
        return net > kEvidence * std::sqrt(variance);
    }

    std::size_t nearest_to(std::size_t removed) const {
        std::size_t best = k_;
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t c = 0; c < k_; ++c) {
            if (c == removed) continue;
            double squared = 0.0;
            for (std::size_t j = 0; j < d_; ++j) {
                const double apart = centroids_[c * d_ + j] - centroids_[removed * d_ + j];
                squared += apart * apart;
            }
            if (squared < least) {
                least = squared;
                best = c;
            }
        }
        return best;
    }

    // The member at which the sum of `shares` has passed `mark`, which is below that of all.
    static std::size_t drawn(const std::vector<double> &shares, double mark) {
        std::size_t found = shares.size();
        double passed = 0.0;
        for (std::size_t i = 0; i < shares.size(); ++i) {
            if (shares[i] <= 0.0) continue;
            found = i;  // kept, should rounding carry the mark past the end
            passed += shares[i];
            if (passed > mark) break;
        }
        return found;
    }

    void bisect(std::size_t c, const double *uniforms) {
        const SearchCluster &cluster = clusters_[c];
        Bisection &found = bisections_[c];
        std::vector<double> weights, shares, rows;
        double total = 0.0;
        for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
            const SearchPoint &point = points_[members_[m]];
            if (point.weight <= 0.0) continue;
            weights.push_back(point.weight);
            shares.push_back(point.weight * point.own);
            total += shares.back();
        }
        const std::size_t n = weights.size();
        if (n < 2 || !(total > 0.0)) return;
        rows.resize(n * d_);
        std::size_t place = 0;
        for (std::size_t m = cluster.begin; m < cluster.end; ++m) {
            const SearchPoint &point = points_[members_[m]];
            if (point.weight > 0.0)
                set_.widen(batches_[point.batch].rows, point.row, rows.data() + d_ * place++);
        }
        const PointsView view = {rows.data(), false, n, d_};
        const auto measure_to = [&](const double *at, std::vector<double> &squared) {
            set_.squared_to(view, 0, n, at, squared.data());
            found.n_distances += static_cast<std::int64_t>(n);
        };
        // Two rows, each drawn by its cost: given the centroid, then given the first.
        std::vector<double> places(2 * d_), to_first(n), to_second(n);
        const double *first = rows.data() + d_ * drawn(shares, uniforms[0] * total);
        std::copy(first, first + d_, places.data());
        measure_to(places.data(), to_first);
        total = 0.0;
        for (std::size_t i = 0; i < n; ++i) total += shares[i] = weights[i] * to_first[i];
        if (!(total > 0.0)) return;
        const double *second = rows.data() + d_ * drawn(shares, uniforms[1] * total);
        std::copy(second, second + d_, places.data() + d_);
        std::vector<char> sides(n), before;
        double masses[2], squares[2];
        for (std::size_t pass = 0; pass < kPasses; ++pass) {
            if (pass > 0) measure_to(places.data(), to_first);
            measure_to(places.data() + d_, to_second);
            before = sides;
            for (std::size_t i = 0; i < n; ++i) sides[i] = to_second[i] < to_first[i];
            if (pass > 0 && sides == before) break;
            std::fill(places.begin(), places.end(), 0.0);
            masses[0] = masses[1] = squares[0] = squares[1] = 0.0;
            const double *centre = centroids_ + c * d_;
            for (std::size_t i = 0; i < n; ++i) {
                const auto side = static_cast<std::size_t>(sides[i]);
                masses[side] += weights[i];
                squares[side] += weights[i] * weights[i];
                double *sum = places.data() + side * d_;
                const double *x = rows.data() + i * d_;
                for (std::size_t j = 0; j < d_; ++j) sum[j] += weights[i] * (x[j] - centre[j]);
            }
            if (masses[0] <= 0.0 || masses[1] <= 0.0) return;
            for (std::size_t j = 0; j < 2 * d_; ++j)
                places[j] = centre[j % d_] + places[j] / masses[j / d_];
        }
        double apart = 0.0;
        for (std::size_t j = 0; j < d_; ++j)
            apart += (places[j] - places[d_ + j]) * (places[j] - places[d_ + j]);
        const double rows_behind =
            std::min(masses[0] * masses[0] / squares[0], masses[1] * masses[1] / squares[1]);
        if (rows_behind < kLeastRows) return;
        found.gain = masses[0] * masses[1] / (masses[0] + masses[1]) * apart;
        found.variance = found.gain * found.gain / rows_behind;
        const auto middle = places.begin() + static_cast<std::ptrdiff_t>(d_);
        found.heavier.assign(places.begin(), middle);
        found.lighter.assign(middle, places.end());
        if (masses[1] > masses[0]) std::swap(found.heavier, found.lighter);
    }

    std::vector<Bisection> bisections_;
    std::vector<bool> is_free_;  // neither exchanged nor next to one that was removed
};

}  // namespace

SplitMergeReport split_and_merge(std::vector<WorkingBatch> &batches, std::size_t k,
                                 double *centroids, const double *uniforms, std::size_t n_threads) {
    if (k < 2) return {};  // nobody to take a centroid from
    return SplitMerge(batches, k, centroids, n_threads).run(uniforms);
}

}  // namespace kmeander
