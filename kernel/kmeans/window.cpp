// Window of batches: their weights, and the masses of clusters in them.
#include "kmeans/window.hpp"

#include <algorithm>
#include <utility>

#include "kmeans/checks.hpp"

namespace kmeander {

DecayedWindow::DecayedWindow(std::vector<BatchView> batches, std::vector<double> decay)
    : batches_(std::move(batches)), decay_(std::move(decay)) {
    need(decay_.size() == batches_.size(), "one entry per batch is needed");
    double spread = 0.0;
    for (std::size_t b = 0; b < batches_.size(); ++b) {
        const BatchView &batch = batches_[b];
        const double decayed = decay_[b] * batch.mass;
        n_points_ += batch.rows.count;
        mass_ += decayed;
        spread += decayed * decayed / static_cast<double>(batch.rows.count);
        has_weights_ = has_weights_ || batch.weights != nullptr;
    }
    if (spread > 0.0) n_effective_ = mass_ * mass_ / spread;
}

void DecayedWindow::need_columns(std::size_t d) const {
    need(size() > 0, "no batches");
    for (const BatchView &batch : batches_)
        need(batch.rows.columns == d, "points and centroids differ in columns");
}

std::vector<LabelledBatch> DecayedWindow::labelled(std::size_t first, std::size_t end,
                                                   std::span<const std::int32_t> labels) const {
    std::vector<LabelledBatch> found;
    found.reserve(end - first);
    for (std::size_t b = first; b < end; ++b) {
        const BatchView &batch = batches_[b];
        need(batch.rows.count <= labels.size(), "labels and points differ in length");
        found.push_back({.rows = batch.rows,
                         .weights = batch.weights,
                         .decay = decay_[b],
                         .labels = labels.data()});
        labels = labels.subspan(batch.rows.count);
    }
    return found;
}

void DecayedWindow::cluster_masses(const Partition &partition, std::span<double> masses) const {
    const std::size_t k = masses.size();
    std::fill(masses.begin(), masses.end(), 0.0);
    if (const std::optional<ClusterSums> &sums = partition.sums()) {
        need(sums->k() == k && sums->n_batches() <= size(), "sums do not fit the window");
        for (std::size_t b = 0; b < sums->n_batches(); ++b)
            for (std::size_t c = 0; c < k; ++c) masses[c] += decay_[b] * sums->masses()[b * k + c];
        return;
    }
    std::span<const std::int32_t> labels = partition.labels();
    need(are_labels(labels, k), "labels of no cluster");
    std::vector<double> added(k);
    for (std::size_t b = 0; b < size() && !labels.empty(); ++b) {
        const BatchView &batch = batches_[b];
        need(batch.rows.count <= labels.size(), "labels and points differ in length");
        std::fill(added.begin(), added.end(), 0.0);
        for (std::size_t i = 0; i < batch.rows.count; ++i)
            added[static_cast<std::size_t>(labels[i])] += weight_of(batch, i);
        for (std::size_t c = 0; c < k; ++c) masses[c] += decay_[b] * added[c];
        labels = labels.subspan(batch.rows.count);
    }
}

}  // namespace kmeander
