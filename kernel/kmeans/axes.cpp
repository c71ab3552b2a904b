// Axes: found by orthogonal iteration on a sample, chosen by what they would save.
#include "kmeans/axes.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kmeans/checks.hpp"
#include "kmeans/points.hpp"
#include "parallel/costs.hpp"

namespace kmeander {
namespace {

// How far products of axes may be from those of orthonormal ones.
constexpr double kOrthonormal = 1e-13;

double product(const double *one, const double *other, std::size_t d) {
    double sums[8] = {};  // that do not wait for each other
    std::size_t j = 0;
    for (; j + 8 <= d; j += 8)
        for (std::size_t l = 0; l < 8; ++l) sums[l] += one[j + l] * other[j + l];
    for (; j < d; ++j) sums[0] += one[j] * other[j];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// Rows (count, d) as blocks of columns, as `multiply` wants axes.
std::vector<double> packed(const double *rows, std::size_t count, std::size_t d) {
    const std::size_t lanes = instruction_set().floats / 2, n_blocks = (count + lanes - 1) / lanes;
    std::vector<double> blocks(n_blocks * lanes * d);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < d; ++j)
            blocks[(i / lanes * d + j) * lanes + i % lanes] = rows[i * d + j];
    return blocks;
}

// (count, d) to (d, count).
std::vector<double> transposed(const double *rows, std::size_t count, std::size_t d,
                               std::size_t stride) {
    std::vector<double> columns(d * count);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < d; ++j) columns[j * count + i] = rows[i * stride + j];
    return columns;
}

// Make rows orthonormal in their order; those that depend on others before them are dropped.
void orthonormalise(std::vector<double> &rows, std::size_t d) {
    std::size_t n_kept = 0;
    const std::size_t count = rows.size() / d;
    for (std::size_t i = 0; i < count; ++i) {
        double *row = rows.data() + i * d;
        const double before = std::sqrt(product(row, row, d));
        for (int time = 0; time < 2; ++time)  // the second takes what rounding left
            for (std::size_t a = 0; a < n_kept; ++a) {
                const double *axis = rows.data() + a * d, along = product(row, axis, d);
                for (std::size_t j = 0; j < d; ++j) row[j] -= along * axis[j];
            }
        const double length = std::sqrt(product(row, row, d));
        if (!(length > 1e-6 * before) || !(length < 1e150)) continue;
        for (std::size_t j = 0; j < d; ++j) rows[n_kept * d + j] = row[j] / length;
        ++n_kept;
    }
    rows.resize(n_kept * d);
}

// Rows here and there as doubles, less `centre`.
std::vector<double> sample(const PointsView &rows, std::size_t count, const double *centre) {
    std::vector<double> found(count * rows.columns);
    for (std::size_t s = 0; s < count; ++s) {
        double *row = found.data() + s * rows.columns;
        instruction_set().widen(rows, s * rows.count / count, row);
        for (std::size_t j = 0; j < rows.columns; ++j) row[j] -= centre[j];
    }
    return found;
}

// Whether single precision has room for it and its like.
bool is_small(double value) { return std::fabs(value) < 1e30; }

// About the directions in which `rows` (count, d) vary most, those of most variation first.
std::vector<double> principal_axes(const std::vector<double> &rows, std::size_t d,
                                   std::size_t n_axes) {
    const InstructionSet &set = instruction_set();
    const std::size_t count = rows.size() / d, lanes = set.floats / 2;
    const auto whole = [lanes](std::size_t n) { return (n + lanes - 1) / lanes; };
    std::vector<double> axes(n_axes * d);
    for (std::size_t a = 0; a < n_axes; ++a)
        std::copy_n(rows.data() + a * count / n_axes * d, d, axes.data() + a * d);
    orthonormalise(axes, d);
    const std::vector<double> columns = transposed(rows.data(), count, d, d);
    const std::vector<double> by_column = packed(columns.data(), d, count);
    std::vector<double> along, energies;
    for (std::size_t step = 0; !axes.empty(); ++step) {
        n_axes = axes.size() / d;
        const std::size_t width = whole(n_axes) * lanes;
        along.resize(count * width);
        set.multiply(rows.data(), count, d, packed(axes.data(), n_axes, d).data(), whole(n_axes),
                     along.data());
        energies.assign(n_axes, 0.0);
        for (std::size_t i = 0; i < count; ++i)
            for (std::size_t a = 0; a < n_axes; ++a)
                energies[a] += along[i * width + a] * along[i * width + a];
        // Those with most first: they are the last to lose by what is taken from the others.
        std::vector<std::size_t> order(n_axes);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
            return energies[one] > energies[other];
        });
        std::vector<double> sorted(n_axes * d);
        if (step == costs::kAxesSteps) {
            for (std::size_t a = 0; a < n_axes; ++a)
                std::copy_n(axes.data() + order[a] * d, d, sorted.data() + a * d);
            return sorted;
        }
        const std::vector<double> turned = transposed(along.data(), count, n_axes, width);
        const std::size_t wide = whole(d) * lanes;
        std::vector<double> next(n_axes * wide);
        set.multiply(turned.data(), n_axes, count, by_column.data(), whole(d), next.data());
        for (std::size_t a = 0; a < n_axes; ++a)
            std::copy_n(next.data() + order[a] * wide, d, sorted.data() + a * d);
        orthonormalise(sorted, d);
        axes = std::move(sorted);
    }
    return axes;
}

}  // namespace

Axes::Axes(std::span<const double> values, std::size_t d)
    : d_(d), values_(values.begin(), values.end()), centre_(d) {
    need(d > 0 && !values.empty() && values.size() % d == 0, "axes do not fit the points");
    const InstructionSet &set = instruction_set();
    padded_ = (d + set.floats - 1) / set.floats * set.floats;
    for (std::size_t j = 0; j < d; ++j) {
        centre_[j] = static_cast<float>(values_[j]);
        need(std::isfinite(values_[j]), "axes are not finite");
    }
    const double *axes = values_.data() + d;
    for (std::size_t a = 0; a < count(); ++a)
        for (std::size_t b = 0; b <= a; ++b) {
            const double wrong = product(axes + a * d, axes + b * d, d) - (a == b ? 1.0 : 0.0);
            need(std::fabs(wrong) <= kOrthonormal, "axes are not orthonormal");
        }
    need(count() <= costs::kMostAxes && count() % kStep == 0, "too many axes, or too few");
    blocks_ = packed(axes, count(), d);
}

void Axes::lead(const float *rows, std::size_t n_rows, float *entries) const {
    constexpr std::size_t kRows = 8;
    const InstructionSet &set = instruction_set();
    const std::size_t n_axes = count(), lanes = set.floats / 2,
                      n_blocks = (n_axes + lanes - 1) / lanes, width = n_blocks * lanes;
    std::vector<double> wide(kRows * d_), products(kRows * width);
    for (std::size_t begin = 0; begin < n_rows; begin += kRows) {
        const std::size_t n = std::min(kRows, n_rows - begin);
        for (std::size_t i = 0; i < n; ++i)
            std::copy_n(rows + (begin + i) * padded_, d_, wide.data() + i * d_);
        if (n_axes > 0) set.multiply(wide.data(), n, d_, blocks_.data(), n_blocks, products.data());
        for (std::size_t i = 0; i < n; ++i) {
            float *entry = entries + (begin + i) * stride();
            const double *row = wide.data() + i * d_, *along = products.data() + i * width;
            for (std::size_t a = 0; a < n_axes; ++a) entry[a] = static_cast<float>(along[a]);
            const double squared = product(row, row, d_);
            double rest = squared;
            for (std::size_t a = 0; a < n_axes; a += kStep) {
                rest -= product(along + a, along + a, kStep);
                entry[n_axes + a / kStep] = static_cast<float>(std::sqrt(std::max(rest, 0.0)));
            }
            entry[n_axes + n_axes / kStep] = static_cast<float>(squared);
        }
    }
}

bool is_screened(std::size_t k, std::size_t d) {
    return (d >= costs::kScreenedColumns && k >= costs::kScreenedClusters) ||
           k >= costs::kManyClusters;
}

bool are_apart(const PointsView &rows, const double *centroids, std::size_t k) {
    if (k < 2 || k >= costs::kManyClusters) return false;
    const PointsView places = {centroids, false, k, rows.columns};
    const std::size_t n_rows = std::min(costs::kRowsTried, rows.count);
    std::vector<double> row(rows.columns), squared(k);
    std::size_t n_apart = 0;
    for (std::size_t s = 0; s < n_rows; ++s) {
        instruction_set().widen(rows, s * rows.count / n_rows, row.data());
        instruction_set().squared_to(places, 0, k, row.data(), squared.data());
        std::nth_element(squared.begin(), squared.begin() + 1, squared.end());
        n_apart += squared[1] > costs::kApart * squared[0];
    }
    return 4 * n_apart > n_rows;
}

std::shared_ptr<const Axes> find_axes(const PointsView &rows) {
    const std::size_t d = rows.columns, n_rows = std::min(costs::kAxesSample, rows.count);
    std::vector<double> values(d), zero(d);
    const std::vector<double> raw = sample(rows, n_rows, zero.data());
    for (std::size_t i = 0; i < n_rows; ++i)
        for (std::size_t j = 0; j < d; ++j)
            values[j] += raw[i * d + j] / static_cast<double>(n_rows);
    for (double &value : values) value = is_small(value) ? static_cast<float>(value) : 0.0;
    std::vector<double> points = sample(rows, n_rows, values.data());
    double largest = 0.0;
    for (const double value : points) largest = std::max(largest, std::fabs(value));
    for (double &value : points) value = largest > 0.0 ? value / largest : 0.0;
    const std::size_t most = std::min({costs::kMostAxes, d / 3, n_rows / 2});
    std::vector<double> axes = principal_axes(points, d, most);
    axes.resize(axes.size() / d / Axes::kStep * Axes::kStep * d);
    values.insert(values.end(), axes.begin(), axes.end());
    return std::make_shared<const Axes>(values, d);
}

LeadingPoints::LeadingPoints(std::shared_ptr<const Axes> along, const PointsView &rows, Team &team)
    : axes(std::move(along)) {
    entries.resize(rows.count * axes->stride());
    const double operations = 2.0 * static_cast<double>(rows.count * axes->d() * axes->count());
    const std::size_t n_groups = (rows.count + kGroupRows - 1) / kGroupRows;
    std::vector<Buffer<float>> rooms(team.size());
    team.run(n_groups, operations, [&](std::size_t group, std::size_t worker) {
        const std::size_t begin = group * kGroupRows;
        const std::size_t count = std::min(kGroupRows, rows.count - begin);
        const void *points[kGroupRows];
        for (std::size_t i = 0; i < count; ++i) points[i] = row_at(rows, begin + i);
        rooms[worker].resize(kGroupRows * axes->padded());
        instruction_set().centre(points, rows.is_float32, count, axes->d(), axes->centre(),
                                 axes->padded(), rooms[worker].data());
        axes->lead(rooms[worker].data(), count, entries.data() + begin * axes->stride());
    });
}

std::shared_ptr<const LeadingPoints> LeadingCache::of(const std::shared_ptr<const Axes> &axes,
                                                      const PointsView &rows, Team &team) {
    std::shared_ptr<const LeadingPoints> found;
    {
        const std::lock_guard lock(mutex_);
        found = known_;
    }
    if (found != nullptr &&
        (found->axes == axes ||
         std::equal(axes->values().begin(), axes->values().end(), found->axes->values().begin(),
                    found->axes->values().end())))
        return found;
    found = std::make_shared<const LeadingPoints>(axes, rows, team);
    const std::lock_guard lock(mutex_);
    known_ = found;
    return found;
}

}  // namespace kmeander
