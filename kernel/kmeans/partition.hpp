// Partition: the cluster of each point of consecutive batches, with bounds of its distances and the
// sufficient statistics of each batch and cluster.
//
// Never changed once it is made, so that windows share it and an old one stays whole whatever
// happens to a new one. Batches and points that have left the window since are left out by an
// offset: nothing is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kmeans/axes.hpp"
#include "kmeans/buffer.hpp"

namespace kmeander {

// Arrays of a partition, one entry per point; written once, then shared.
struct PointArrays {
    PointArrays() = default;
    explicit PointArrays(std::size_t n_points)
        : labels(n_points), upper(n_points), lower(n_points) {}

    Buffer<std::int32_t> labels;
    Buffer<float> upper, lower;    // empty where there are no bounds
    std::vector<double> snapshot;  // (k, d)
    std::size_t k = 0, d = 0;      // 0 where there are no bounds
    // By which the points were assigned, where they were by leading coordinates.
    std::shared_ptr<const Axes> axes;
};

// Arrays of sufficient statistics, without decay; written once, then shared.
struct SumArrays {
    SumArrays(std::size_t n_batches, std::size_t k, std::size_t d)
        : n_batches(n_batches),
          k(k),
          d(d),
          masses(n_batches * k),
          sums(n_batches * k * d),
          scatter(n_batches * k) {}

    const std::size_t n_batches, k, d;
    Buffer<double> masses;   // (n_batches, k) weight
    Buffer<double> sums;     // (n_batches, k, d) weighted sum of points
    Buffer<double> scatter;  // (n_batches, k) squared distances to the mean of the batch's points
};

// What is known of the distances of points at the centroids `snapshot`: the upper bound is not
// below the distance to the own centroid, the lower bound not above that to any other.
class Bounds {
public:
    Bounds(std::span<const float> upper, std::span<const float> lower,
           std::span<const double> snapshot, std::size_t k, std::size_t d,
           std::shared_ptr<const Axes> axes = nullptr);
    Bounds(std::shared_ptr<const PointArrays> arrays, std::size_t first, std::size_t count);

    std::span<const float> upper() const { return {arrays_->upper.data() + first_, count_}; }
    std::span<const float> lower() const { return {arrays_->lower.data() + first_, count_}; }
    std::span<const double> snapshot() const { return arrays_->snapshot; }
    std::size_t k() const { return arrays_->k; }
    std::size_t d() const { return arrays_->d; }
    const std::shared_ptr<const Axes> &axes() const { return arrays_->axes; }

private:
    std::shared_ptr<const PointArrays> arrays_;
    std::size_t first_, count_;
};

// Sufficient statistics of each batch and cluster: mass, sum, scatter. A function of points,
// weights and labels alone.
class ClusterSums {
public:
    explicit ClusterSums(std::shared_ptr<const SumArrays> arrays);

    std::size_t n_batches() const { return count_; }
    std::size_t k() const { return arrays_->k; }
    std::size_t d() const { return arrays_->d; }
    const double *masses() const { return arrays_->masses.data() + first_ * k(); }
    const double *sums() const { return arrays_->sums.data() + first_ * k() * d(); }
    const double *scatter() const { return arrays_->scatter.data() + first_ * k(); }

    ClusterSums slice(std::size_t first, std::size_t count) const;

private:
    std::shared_ptr<const SumArrays> arrays_;
    std::size_t first_ = 0, count_;
};

class Partition {
public:
    explicit Partition(std::shared_ptr<const PointArrays> points,
                       std::optional<ClusterSums> sums = std::nullopt);
    Partition(std::span<const std::int32_t> labels, const Bounds *bounds, const ClusterSums *sums);

    std::size_t n_points() const { return count_; }
    std::span<const std::int32_t> labels() const {
        return {points_->labels.data() + first_, count_};
    }
    // Labels of the last n_points points, checked to be of k clusters.
    std::span<const std::int32_t> last_labels(std::size_t n_points, std::size_t k) const;

    bool has_bounds() const { return !points_->snapshot.empty(); }
    Bounds bounds() const { return {points_, first_, count_}; }
    const std::optional<ClusterSums> &sums() const { return sums_; }

    // Without the first n_batches batches and their n_points points.
    Partition without(std::size_t n_batches, std::size_t n_points) const;
    // Of the first batch alone and its n_points points.
    Partition of_first_batch(std::size_t n_points) const;
    Partition without_sums() const;
    Partition with_sums(std::optional<ClusterSums> sums) const;
    // The same clusters under other numbers: the one at order[c] becomes number c. Without sums.
    Partition renumbered(std::span<const std::int64_t> order) const;

private:
    std::shared_ptr<const PointArrays> points_;
    std::size_t first_ = 0, count_;
    std::optional<ClusterSums> sums_;
};

}  // namespace kmeander
