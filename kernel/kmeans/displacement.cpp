#include "kmeans/displacement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "simd/rounding.hpp"

namespace kmeander {

Movement::Movement(std::size_t k, std::size_t d, bool has_blocks)
    : k_(k),
      d_(d),
      has_blocks_(has_blocks),
      set_(instruction_set()),
      packed_(k, d),
      own_(k * kMaxEpochs),
      others_(k * kMaxEpochs),
      margin_(k * kMaxEpochs),
      near_(k * kMaxEpochs),
      moved_(has_blocks ? k * kMaxEpochs * packed_.n_blocks() : 0),
      apart_(k * packed_.n_blocks()),
      nearest_other_(k),
      between_(k * k, std::numeric_limits<float>::infinity()),
      stray_(k, 1),
      unmeasured_(k, 1) {}

void Movement::remember(const double *centroids) {
    snapshots_.emplace_back(centroids, centroids + k_ * d_);
}

void Movement::forget() {
    snapshots_ = {std::move(snapshots_[now_])};
    now_ = 0;
    tables_are_stale_ = true;
}

// Which centroids have moved since the last pass: between those that have not, nothing is new.
void Movement::find_strays(const double *centroids) {
    if (now_ == kNever) return;
    const double *before = snapshots_[now_].data();
    for (std::size_t c = 0; c < k_; ++c) {
        stray_[c] = !std::equal(centroids + c * d_, centroids + (c + 1) * d_, before + c * d_);
        unmeasured_[c] |= stray_[c];
    }
}

void Movement::open(const double *centroids) {
    packed_.pack(centroids);
    find_strays(centroids);
    if (tables_are_stale_) std::fill(stray_.begin(), stray_.end(), std::uint8_t{1});
    tables_are_stale_ = false;
    now_ = snapshots_.size();
    remember(centroids);
    for (std::size_t epoch = 0; epoch < snapshots_.size(); ++epoch) {
        // The farthest move and the next: the farthest of the others is one of the two.
        float most = 0.0F, next = 0.0F;
        for (std::size_t c = 0; c < k_; ++c) {
            float &own = own_[key_of(c, epoch)];
            if (stray_[c] || epoch == now_)
                own = moved_from(snapshots_[epoch].data() + c * d_, centroids + c * d_);
            next = std::max(next, std::min(most, own));
            most = std::max(most, own);
        }
        for (std::size_t c = 0; c < k_; ++c) {
            const std::size_t key = key_of(c, epoch);
            others_[key] = own_[key] < most ? most : next;
            // Finite, so that a bound that is infinite exceeds it.
            margin_[key] =
                std::min(rounded_up(own_[key] + others_[key]), std::numeric_limits<float>::max());
        }
        if (has_blocks_) find_moved_blocks(epoch);
    }
}

float Movement::moved_from(const double *then, const double *now) const {
    double squared;
    set_.squared_pairs(&now, &then, 1, d_, &squared);
    return bound_above(squared);
}

// For each cluster the farthest move in every block, its own left out.
void Movement::find_moved_blocks(std::size_t epoch) {
    std::vector<float> most(n_blocks(), 0.0F);
    for (std::size_t c = 0; c < k_; ++c) {
        float &of_block = most[packed_.block_of(c)];
        of_block = std::max(of_block, own_[key_of(c, epoch)]);
    }
    for (std::size_t c = 0; c < k_; ++c) {
        float *moved = moved_.data() + key_of(c, epoch) * n_blocks();
        std::copy(most.begin(), most.end(), moved);
        const std::size_t home = packed_.block_of(c), first = home * packed_.lanes();
        moved[home] = 0.0F;
        for (std::size_t other = first; other < first + packed_.size_of(home); ++other)
            if (other != c) moved[home] = std::max(moved[home], own_[key_of(other, epoch)]);
    }
}

std::int64_t Movement::measure_apart() {
    const double *centroids = snapshots_[now_].data();
    const Rows rows = {centroids, false, k_, d_};
    std::vector<double> squared(k_);
    std::vector<float> below(k_);
    std::size_t n_strays = 0;
    for (std::size_t a = 0; a < k_; ++a) {
        if (!unmeasured_[a]) continue;
        ++n_strays;
        set_.squared_to(rows, 0, k_, centroids + a * d_, squared.data());
        set_.bounds_below(squared.data(), k_, below.data());
        below[a] = std::numeric_limits<float>::infinity();
        for (std::size_t c = 0; c < k_; ++c) between_[a * k_ + c] = between_[c * k_ + a] = below[c];
    }
    for (std::size_t c = 0; c < k_; ++c)
        for (std::size_t b = 0; b < n_blocks(); ++b) {
            const float *first = between_.data() + c * k_ + b * packed_.lanes();
            apart_[c * n_blocks() + b] = *std::min_element(first, first + packed_.size_of(b));
        }
    std::fill(unmeasured_.begin(), unmeasured_.end(), std::uint8_t{0});
    for (std::size_t c = 0; c < k_; ++c) {
        const float *apart = apart_.data() + c * n_blocks();
        nearest_other_[c] = *std::min_element(apart, apart + n_blocks());
        for (std::size_t epoch = 0; epoch <= now_; ++epoch) {
            const std::size_t key = key_of(c, epoch);
            near_[key] = rounded_down(0.5F * nearest_other_[c] - own_[key]);
        }
    }
    // Each pair once.
    return static_cast<std::int64_t>(n_strays * (k_ - n_strays) + n_strays * (n_strays - 1) / 2);
}

}  // namespace kmeander
