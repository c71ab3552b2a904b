#include "assignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>


namespace kmeander {

PackedCentroids::PackedCentroids(std::size_t k, std::size_t d)
    : k_(k), d_(d), lanes_(instruction_set().lanes), all_((k + lanes_ - 1) / lanes_) {
    blocks_.assign(all_.size() * lanes_ * d, std::numeric_limits<double>::infinity());
    std::iota(all_.begin(), all_.end(), 0U);
}

void PackedCentroids::pack(const double *centroids) {
    for (std::size_t c = 0; c < k_; ++c) {
        double *lane = blocks_.data() + (c / lanes_) * d_ * lanes_ + c % lanes_;
        for (std::size_t j = 0; j < d_; ++j) lane[j * lanes_] = centroids[c * d_ + j];
    }
}

namespace {

// Call found(begin, end, squared, second) for groups of rows, once their `labels` are there.
template <class Found>
void sweep(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
           std::int32_t *labels, const Found &found) {
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
        const double *points[kGroupRows];
        double squared[kGroupRows], second[kGroupRows];
        for (std::size_t i = begin; i < end; ++i) {
            points[i - begin] = point_at(rows, i, scratch.of(worker) + (i - begin) * d);
            // The next group's, while this one is measured.
            if (i + kGroupRows < rows.count) prefetch(rows, i + kGroupRows);
        }
        instruction_set().nearest(points, end - begin, d, packed.blocks(), packed.all(),
                                  packed.n_blocks(), labels + begin, squared, second);
        found(begin, end, squared, second);
    });
}

}  // namespace

void nearest(const Rows &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared) {
    sweep(rows, centroids, k, n_threads, labels,
          [&](std::size_t begin, std::size_t end, const double *nearest, const double *) {
              std::copy(nearest, nearest + (end - begin), squared + begin);
          });
}

Measured measure(const Rows &rows, const double *weights, const double *centroids, std::size_t k,
                 std::size_t n_threads, std::int32_t *labels, float *upper, float *lower) {
    Buffer<double> squared(rows.count);
    sweep(rows, centroids, k, n_threads, labels,
          [&](std::size_t begin, std::size_t end, const double *nearest, const double *second) {
              std::copy(nearest, nearest + (end - begin), squared.data() + begin);
              instruction_set().bounds_above(nearest, end - begin, upper + begin);
              instruction_set().bounds_below(second, end - begin, lower + begin);
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
