// Full passes: every point against every centroid.
#include "kmeans/distances.hpp"

#include <algorithm>
#include <cmath>

#include "kmeans/packed_centroids.hpp"
#include "kmeans/points.hpp"
#include "parallel/team.hpp"

namespace kmeander {
namespace {

// Labels and squared distances of all rows, and bounds: found(begin, end, upper, lower) is called
// for each group of them.
template <class Visit>
void sweep(const PointsView &rows, const double *centroids, std::size_t k, std::size_t n_threads,
           std::int32_t *labels, double *squared, const Visit &found) {
    const std::size_t d = rows.columns;
    PackedCentroids packed(k, d);
    packed.pack(centroids);
    const double operations = static_cast<double>(rows.count * k * d);
    Team team(worth_starting(n_threads, operations));
    PointScratch scratch(team.size(), d);
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

void nearest(const PointsView &rows, const double *centroids, std::size_t k, std::size_t n_threads,
             std::int32_t *labels, double *squared) {
    sweep(rows, centroids, k, n_threads, labels, squared,
          [](std::size_t, std::size_t, const float *, const float *) {});
}

void distances_to(const PointsView &rows, const double *centroids, const std::int32_t *labels,
                  std::size_t n_threads, double *squared) {
    const std::size_t d = rows.columns;
    const double operations = static_cast<double>(rows.count * d);
    Team team(worth_starting(n_threads, operations));
    PointScratch scratch(team.size(), d);
    const std::size_t n_groups = (rows.count + kGroupRows - 1) / kGroupRows;
    team.run(n_groups, operations, [&](std::size_t group, std::size_t worker) {
        const std::size_t begin = group * kGroupRows;
        const std::size_t end = std::min(begin + kGroupRows, rows.count);
        const double *points[kGroupRows], *own[kGroupRows];
        for (std::size_t i = begin; i < end; ++i) {
            points[i - begin] = point_at(rows, i, scratch.of(worker) + (i - begin) * d);
            own[i - begin] = centroids + labels[i] * d;
        }
        instruction_set().squared_pairs(points, own, end - begin, d, squared + begin);
    });
}

MeanError measure(const PointsView &rows, const double *weights, const double *centroids,
                  std::size_t k, std::size_t n_threads, std::int32_t *labels, float *upper,
                  float *lower) {
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

void displacements(const double *before, const double *now, std::size_t k, std::size_t d,
                   double *moved) {
    for (std::size_t c = 0; c < k; ++c) {
        const double *from = before + c * d, *to = now + c * d;
        double squared;
        instruction_set().squared_pairs(&to, &from, 1, d, &squared);
        moved[c] = std::sqrt(squared);
    }
}

namespace {

template <class T>
std::int64_t first_beyond_of(const T *values, std::size_t count, double limit) {
    const T *found = std::find_if(values, values + count,
                                  [limit](T value) { return !(std::fabs(value) <= limit); });
    return found - values;
}

}  // namespace

std::int64_t first_beyond(const PointsView &rows, double limit, void *copy) {
    if (instruction_set().copy_within(rows, limit, copy)) return -1;
    const std::size_t count = rows.count * rows.columns;
    const void *values = copy == nullptr ? rows.data : copy;
    if (rows.is_float32) return first_beyond_of(static_cast<const float *>(values), count, limit);
    return first_beyond_of(static_cast<const double *>(values), count, limit);
}

}  // namespace kmeander
