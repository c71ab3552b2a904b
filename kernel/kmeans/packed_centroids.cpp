// Packing of centroids, and the nearest one: in single precision, then in double where it must be.
#include "kmeans/packed_centroids.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "simd/rounding.hpp"

namespace kmeander {

PackedCentroids::PackedCentroids(std::size_t k, std::size_t d)
    : k_(k), d_(d), lanes_(instruction_set().lanes), all_((k + lanes_ - 1) / lanes_) {
    blocks_.assign(all_.size() * lanes_ * d, std::numeric_limits<double>::infinity());
    narrow_.resize(k * d);
    lengths_.resize(k);
    std::iota(all_.begin(), all_.end(), 0U);
}

void PackedCentroids::pack(const double *centroids) {
    if (shift_.empty()) choose_shift(centroids);
    for (std::size_t c = 0; c < k_; ++c) {
        double *lane = blocks_.data() + (c / lanes_) * d_ * lanes_ + c % lanes_, squared = 0.0;
        for (std::size_t j = 0; j < d_; ++j) {
            const double value = centroids[c * d_ + j], shifted = value - shift_[j];
            lane[j * lanes_] = value;
            narrow_[c * d_ + j] = static_cast<float>(shifted);
            squared += shifted * shifted;
        }
        lengths_[c] = bound_above(squared);
    }
}

// Along each column the middle one of three: a cluster of values that stand for something else,
// like 1e30 for "none", must not take the digits of all others.
void PackedCentroids::choose_shift(const double *centroids) {
    shift_.resize(d_);
    const double *middle = centroids + k_ / 2 * d_, *last = centroids + (k_ - 1) * d_;
    for (std::size_t j = 0; j < d_; ++j) {
        const auto [low, high] = std::minmax(centroids[j], middle[j]);
        shift_[j] = std::max(low, std::min(high, last[j]));
    }
}

// So few points do not fill the lanes in which single precision has one each.
constexpr std::size_t kFewPoints = 4;

std::size_t find_nearest(const double *const *points, std::size_t count, std::size_t d,
                         const PackedCentroids &packed, const std::uint32_t *chosen,
                         std::size_t n_chosen, float *room, std::int32_t *labels, float *upper,
                         float *lower) {
    const InstructionSet &set = instruction_set();
    double squared[kGroupRows], second[kGroupRows];
    if (count < kFewPoints) {
        set.nearest(points, count, d, packed.blocks(), chosen, n_chosen, labels, squared, second);
        set.bounds_above(squared, count, upper);
        set.bounds_below(second, count, lower);
        return 0;
    }
    std::uint32_t ambiguous[kGroupRows];
    set.narrow(points, count, d, packed.shift(), room);
    const std::size_t n_ambiguous = set.screen(room, count, d, packed.narrow(), chosen, n_chosen,
                                               labels, upper, lower, ambiguous);
    if (n_ambiguous == 0) return 0;
    const double *again[kGroupRows];
    std::int32_t found[kGroupRows];
    float above[kGroupRows], below[kGroupRows];
    for (std::size_t i = 0; i < n_ambiguous; ++i) again[i] = points[ambiguous[i]];
    set.nearest(again, n_ambiguous, d, packed.blocks(), chosen, n_chosen, found, squared, second);
    set.bounds_above(squared, n_ambiguous, above);
    set.bounds_below(second, n_ambiguous, below);
    for (std::size_t i = 0; i < n_ambiguous; ++i) {
        labels[ambiguous[i]] = found[i];
        upper[ambiguous[i]] = above[i];
        lower[ambiguous[i]] = below[i];
    }
    return n_ambiguous;
}

}  // namespace kmeander
