// Window of batches, each decayed by its age, as the kernel reads it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kmeans/axes.hpp"
#include "kmeans/batch.hpp"
#include "kmeans/partition.hpp"
#include "simd/instruction_set.hpp"

namespace kmeander {

// Points and weights of one batch, whatever its age.
struct BatchView {
    PointsView rows;
    const double *weights;  // one per row, or null: every row weighs 1
    double mass;            // weight of all rows
    LeadingCache *leading;  // where its leading coordinates are kept
};

// Batches in order of arrival, and what each of their rows weighs for its age.
class DecayedWindow {
public:
    DecayedWindow(std::vector<BatchView> batches, std::vector<double> decay);

    std::size_t size() const { return batches_.size(); }
    const BatchView &operator[](std::size_t b) const { return batches_[b]; }
    const BatchView &newest() const { return batches_.back(); }
    std::span<const double> decay() const { return decay_; }  // what each batch weighs
    std::size_t n_points() const { return n_points_; }
    double mass() const { return mass_; }  // decayed
    // Points of equal weight whose mean would scatter as the decayed mean of these.
    double n_effective() const { return n_effective_; }
    bool has_weights() const { return has_weights_; }

    // Refuse to work on it with centroids in d columns.
    void need_columns(std::size_t d) const;

    // Batches [first, end) with the labels of all their points.
    std::vector<LabelledBatch> labelled(std::size_t first, std::size_t end,
                                        std::span<const std::int32_t> labels) const;

    // Decayed mass of each cluster in the first batches, which the partition covers.
    void cluster_masses(const Partition &partition, std::span<double> masses) const;

private:
    std::vector<BatchView> batches_;
    std::vector<double> decay_;
    std::size_t n_points_ = 0;
    double mass_ = 0.0, n_effective_ = 0.0;
    bool has_weights_ = false;
};

}  // namespace kmeander
