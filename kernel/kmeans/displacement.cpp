// Displacement of the centroids since every epoch, and the distances between them.
#include "kmeans/displacement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "simd/rounding.hpp"

namespace kmeander {

Displacement::Displacement(std::size_t k, std::size_t d, Extent extent, std::size_t most_epochs)
    : k_(k),
      d_(d),
      extent_(extent),
      most_epochs_(most_epochs),
      set_(instruction_set()),
      packed_(extent == Extent::kNothing ? std::nullopt
                                         : std::optional<PackedCentroids>(std::in_place, k, d)),
      own_(k * kMaxEpochs),
      others_(k * kMaxEpochs),
      margin_limit_(k * kMaxEpochs),
      upper_limit_(k * kMaxEpochs),
      block_displacement_(extent == Extent::kBlocks ? k * kMaxEpochs * n_blocks() : 0),
      block_gap_(k * n_blocks()),
      nearest_other_(k),
      between_(extent == Extent::kNothing ? 0 : k * k, std::numeric_limits<float>::infinity()),
      displaced_(k, 1),
      unmeasured_(k, 1) {
    if (extent != Extent::kNothing) return;
    std::fill_n(nearest_other_.data(), k, 0.0F);
    std::fill_n(upper_limit_.data(), upper_limit_.size(), -std::numeric_limits<float>::infinity());
}

void Displacement::add_epoch(const double *centroids) {
    snapshots_.emplace_back(centroids, centroids + k_ * d_);
}

void Displacement::keep_present_epoch() {
    snapshots_ = {std::move(snapshots_[now_])};
    now_ = 0;
    tables_are_stale_ = true;
}

// Which centroids have moved since the last pass: between those that have not, nothing is new.
void Displacement::find_displaced(const double *centroids) {
    if (now_ == kNever) return;
    const double *before = snapshots_[now_].data();
    for (std::size_t c = 0; c < k_; ++c) {
        displaced_[c] = !std::equal(centroids + c * d_, centroids + (c + 1) * d_, before + c * d_);
        unmeasured_[c] |= displaced_[c];
    }
}

void Displacement::open(const double *centroids) {
    if (packed_) packed_->pack(centroids);
    find_displaced(centroids);
    if (tables_are_stale_) std::fill(displaced_.begin(), displaced_.end(), std::uint8_t{1});
    tables_are_stale_ = false;
    now_ = snapshots_.size();
    add_epoch(centroids);
    for (std::size_t epoch = 0; epoch < snapshots_.size(); ++epoch) {
        // The largest displacement and the next: the largest of the others is one of the two.
        float most = 0.0F, next = 0.0F;
        for (std::size_t c = 0; c < k_; ++c) {
            float &own = own_[key_of(c, epoch)];
            if (displaced_[c] || epoch == now_)
                own = distance_between(snapshots_[epoch].data() + c * d_, centroids + c * d_);
            next = std::max(next, std::min(most, own));
            most = std::max(most, own);
        }
        for (std::size_t c = 0; c < k_; ++c) {
            const std::size_t key = key_of(c, epoch);
            others_[key] = own_[key] < most ? most : next;
            // Finite, so that a bound that is infinite exceeds it.
            margin_limit_[key] =
                std::min(rounded_up(own_[key] + others_[key]), std::numeric_limits<float>::max());
        }
        if (extent_ == Extent::kBlocks) find_block_displacements(epoch);
    }
}

float Displacement::distance_between(const double *then, const double *now) const {
    double squared;
    set_.squared_pairs(&now, &then, 1, d_, &squared);
    return bound_above(squared);
}

// For each cluster the largest displacement in every block, its own left out.
void Displacement::find_block_displacements(std::size_t epoch) {
    std::vector<float> most(n_blocks(), 0.0F);
    for (std::size_t c = 0; c < k_; ++c) {
        float &of_block = most[packed_->block_of(c)];
        of_block = std::max(of_block, own_[key_of(c, epoch)]);
    }
    for (std::size_t c = 0; c < k_; ++c) {
        float *most_moved = block_displacement_.data() + key_of(c, epoch) * n_blocks();
        std::copy(most.begin(), most.end(), most_moved);
        const std::size_t home = packed_->block_of(c), first = home * packed_->lanes();
        most_moved[home] = 0.0F;
        for (std::size_t other = first; other < first + packed_->size_of(home); ++other)
            if (other != c)
                most_moved[home] = std::max(most_moved[home], own_[key_of(other, epoch)]);
    }
}

std::int64_t Displacement::measure_between() {
    if (extent_ == Extent::kNothing) return 0;
    const double *centroids = snapshots_[now_].data();
    const PointsView rows = {centroids, false, k_, d_};
    std::vector<double> squared(k_);
    std::vector<float> below(k_);
    std::size_t n_displaced = 0;
    for (std::size_t a = 0; a < k_; ++a) {
        if (!unmeasured_[a]) continue;
        ++n_displaced;
        set_.squared_to(rows, 0, k_, centroids + a * d_, squared.data());
        set_.bounds_below(squared.data(), k_, below.data());
        below[a] = std::numeric_limits<float>::infinity();
        for (std::size_t c = 0; c < k_; ++c) between_[a * k_ + c] = between_[c * k_ + a] = below[c];
    }
    for (std::size_t c = 0; c < k_; ++c)
        for (std::size_t b = 0; b < n_blocks(); ++b) {
            const float *first = between_.data() + c * k_ + b * packed_->lanes();
            block_gap_[c * n_blocks() + b] = *std::min_element(first, first + packed_->size_of(b));
        }
    std::fill(unmeasured_.begin(), unmeasured_.end(), std::uint8_t{0});
    for (std::size_t c = 0; c < k_; ++c) {
        const float *gaps = block_gap_.data() + c * n_blocks();
        nearest_other_[c] = *std::min_element(gaps, gaps + n_blocks());
        for (std::size_t epoch = 0; epoch <= now_; ++epoch) {
            const std::size_t key = key_of(c, epoch);
            upper_limit_[key] = rounded_down(0.5F * nearest_other_[c] - own_[key]);
        }
    }
    // Each pair once.
    return static_cast<std::int64_t>(n_displaced * (k_ - n_displaced) +
                                     n_displaced * (n_displaced - 1) / 2);
}

}  // namespace kmeander
