// Points of a window as local search sees them: by cluster, with the squared distances to the own
// centroid and to the second nearest, and what it would cost to take a centroid away.
//
// Second distances are known as lower bounds, left by the last measurement, and found exactly only
// for a cluster that looks cheap enough to go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kmeans/batch.hpp"
#include "kmeans/packed_centroids.hpp"
#include "kmeans/points.hpp"
#include "parallel/team.hpp"

namespace kmeander {

struct SearchPoint {
    std::uint32_t batch, row;
    double weight;        // decayed
    double own = 0.0;     // squared distance to its centroid
    double second = 0.0;  // not above the squared distance to any other
    double reach = 0.0;   // sum of both distances
    bool exact = false;   // whether `second` is that distance
};

struct SearchCluster {
    std::size_t begin = 0, end = 0;  // of the members
    double cost = 0.0;               // of its points as they are
    double loss = 0.0;               // were its centroid taken away; a lower bound
    double reach = 0.0;              // the longest of its points
    bool exact = false;              // whether `loss` is exact
    // About the present candidate of a swap: the distance to it, what it saves its points, by how
    // much it lowers the loss.
    double apart = 0.0, gain = 0.0, relief = 0.0;
    std::int64_t n_distances = 0;

    // What it costs to have the candidate in place of this centroid, the gain aside.
    double price() const { return loss - relief; }
};

class SearchPoints {
public:
    // In: every point's label is that of its nearest of `centroids` (k, d), with bounds at them.
    SearchPoints(std::vector<WorkingBatch> &batches, std::size_t k, double *centroids,
                 std::size_t n_threads);

protected:
    std::int32_t &label_of(const SearchPoint &point) {
        return batches_[point.batch].labels[point.row];
    }
    double squared_to(const SearchPoint &point, const double *place) const;
    static void set_reach(SearchPoint &point);

    // List the members of each cluster in window order, and add up what they cost.
    void group();
    // Measure the points of a cluster against all centroids, where their second is not known.
    void find_seconds(std::size_t c);

    // Call found(point, label, squared, second) for the points at these positions.
    using Found = std::function<void(SearchPoint &, std::int32_t, double, double)>;
    void measure(const std::vector<std::uint32_t> &positions, const Found &found);

    std::vector<WorkingBatch> &batches_;
    const std::size_t k_, d_;
    double *centroids_;
    const InstructionSet &set_;
    const double operations_;  // to measure every point against one place
    Team team_;
    PackedCentroids packed_;
    PointScratch scratch_;
    std::vector<SearchPoint> points_;     // in window order
    std::vector<std::uint32_t> members_;  // positions, by cluster
    std::vector<SearchCluster> clusters_;
    std::int64_t n_distances_ = 0;

private:
    void measure_own();
    void add_up(SearchCluster &cluster) const;
};

}  // namespace kmeander
