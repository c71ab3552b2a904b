#include "kmeans/packed_centroids.hpp"

#include <algorithm>
#include <cmath>
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
    std::uint32_t doubtful[kGroupRows];
    set.narrow(points, count, d, packed.shift(), room);
    const std::size_t n_doubtful = set.screen(room, count, d, packed.narrow(), chosen, n_chosen,
                                              labels, upper, lower, doubtful);
    if (n_doubtful == 0) return 0;
    const double *again[kGroupRows];
    std::int32_t found[kGroupRows];
    float above[kGroupRows], below[kGroupRows];
    for (std::size_t i = 0; i < n_doubtful; ++i) again[i] = points[doubtful[i]];
    set.nearest(again, n_doubtful, d, packed.blocks(), chosen, n_chosen, found, squared, second);
    set.bounds_above(squared, n_doubtful, above);
    set.bounds_below(second, n_doubtful, below);
    for (std::size_t i = 0; i < n_doubtful; ++i) {
        labels[doubtful[i]] = found[i];
        upper[doubtful[i]] = above[i];
        lower[doubtful[i]] = below[i];
    }
    return n_doubtful;
}

namespace {

// Labels and squared distances of all rows, and bounds: found(begin, end, upper, lower) is called
// for each group of them.
template <class Found>
void sweep(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
           std::int32_t *labels, double *squared, const Found &found) {
    const std::size_t d = rows.columns;
    PackedCentroids packed(k, d);
    packed.pack(centroids);
    const double operations = static_cast<double>(rows.count * k * d);
    Team team(worth_starting(n_threads, operations));
    Scratch scratch(team.size(), d);
    const std::size_t n_groups = (rows.count + kGroupRows - 1) / kGroupRows;
    team.run(n_groups, operations, [&](std::size_t group, std::size_t worker) {
        const std::size_t begin = group * kGroupRows;
        const std::size_t end = std::min(begin + kGroupRows, rows.count);
        const double *points[kGroupRows], *nearest[kGroupRows];
        float upper[kGroupRows], lower[kGroupRows];
        for (std::size_t i = begin; i < end; ++i) {
            points[i - begin] = point_at(rows, i, scratch.of(worker) + (i - begin) * d);
            // The next group's, while this one is measured.
            if (i + kGroupRows < rows.count) prefetch(rows, i + kGroupRows);
        }
        find_nearest(points, end - begin, d, packed, packed.all(), packed.n_blocks(),
                     scratch.narrow_of(worker), labels + begin, upper, lower);
        for (std::size_t i = begin; i < end; ++i) nearest[i - begin] = centroids + labels[i] * d;
        instruction_set().squared_pairs(points, nearest, end - begin, d, squared + begin);
        found(begin, end, upper, lower);
    });
}

}  // namespace

void nearest(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared) {
    sweep(rows, centroids, k, n_threads, labels, squared,
          [](std::size_t, std::size_t, const float *, const float *) {});
}

Measured measure(const Rows &rows, const double *weights, const double *centroids, std::size_t k,
                 std::size_t n_threads, std::int32_t *labels, float *upper, float *lower) {
    Buffer<double> squared(rows.count);
    sweep(rows, centroids, k, n_threads, labels, squared.data(),
          [&](std::size_t begin, std::size_t end, const float *above, const float *below) {
              std::copy(above, above + (end - begin), upper + begin);
              std::copy(below, below + (end - begin), lower + begin);
          });
    const auto weight = [weights](std::size_t i) { return weights == nullptr ? 1.0 : weights[i]; };
    double mass = 0.0, sum = 0.0, spread = 0.0;
    for (std::size_t i = 0; i < rows.count; ++i) {
        mass += weight(i);
        sum += weight(i) * squared[i];
    }
    const double error = sum / mass;
    if (error <= 0.0) return {0.0, 0.0};
    // As shares of the mean: fourth powers of the values would overflow.
    for (std::size_t i = 0; i < rows.count; ++i) {
        const double off = weight(i) * (squared[i] / error - 1.0);
        spread += off * off;
    }
    return {error, std::sqrt(spread) / mass};
}

namespace {

template <class T>
std::int64_t first_beyond_of(const T *values, std::size_t count, double limit) {
    const T *found = std::find_if(values, values + count,
                                  [limit](T value) { return !(std::fabs(value) <= limit); });
    return found - values;
}

}  // namespace

std::int64_t first_beyond(const Rows &rows, double limit, void *copy) {
    if (instruction_set().copy_within(rows, limit, copy)) return -1;
    const std::size_t count = rows.count * rows.columns;
    const void *values = copy == nullptr ? rows.data : copy;
    if (rows.is_float32) return first_beyond_of(static_cast<const float *>(values), count, limit);
    return first_beyond_of(static_cast<const double *>(values), count, limit);
}

}  // namespace kmeander
