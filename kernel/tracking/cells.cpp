// Cells: spread of the columns when a chapter begins, then the cell and the scores of each row.
#include "tracking/cells.hpp"

#include <algorithm>
#include <cmath>

#include "kmeans/checks.hpp"
#include "kmeans/distances.hpp"
#include "kmeans/packed_centroids.hpp"
#include "kmeans/points.hpp"

namespace kmeander {

namespace {

// Rows that the spread over all cells counts for in the spread in one.
constexpr double kPriorRows = 10.0;

// Standard deviations are at least this share of the largest coordinate: beyond that is rounding.
constexpr double kRelativeRounding = 1e-11;

// Rows whose products with one another tell how columns vary together.
constexpr std::size_t kComparedRows = 128;

// Squares above this tell nothing more, and must not overflow.
constexpr double kLargestSquare = 1e300;

// What makes the weights of a batch 1 in the mean.
double rows_per_mass(const BatchView &batch) {
    if (batch.weights == nullptr) return 1.0;
    return static_cast<double>(batch.rows.count) / batch.mass;
}

}  // namespace

void ScoreSums::add(const ScoreSums &other, double share) {
    const auto part = [&](std::size_t begin, std::size_t end, double factor) {
        for (std::size_t i = begin; i < end; ++i) values_[i] += factor * other.values_[i];
    };
    part(0, k_, share);
    part(k_, 2 * k_, share * share);
    part(2 * k_, values_.size(), share);
}

void ScoreSums::decay(double share) {
    for (double &value : values_) value *= share;
    for (std::size_t c = k_; c < 2 * k_; ++c) values_[c] *= share;
}

double ScoreSums::total_mass() const {
    double total = 0.0;
    for (std::size_t c = 0; c < k_; ++c) total += values_[c];
    return total;
}

double ScoreSums::total_rows() const {
    double squares = 0.0;
    for (std::size_t c = 0; c < k_; ++c) squares += values_[k_ + c];
    return effective(total_mass(), squares);
}

Cells::Cells(const DecayedWindow &window, const Partition &partition, const double *centroids,
             std::size_t k, std::size_t d)
    : k_(k), d_(d), centres_(centroids, centroids + k * d), inverse_(k * d) {
    const std::span<const std::int32_t> labels = partition.last_labels(window.n_points(), k);
    find_spread(window, labels.data());
    find_independent(window.newest(), labels.data() + (labels.size() - window.newest().rows.count));
}

void Cells::find_spread(const DecayedWindow &window, const std::int32_t *labels) {
    std::vector<double> room(d_), masses(k_), squares(k_ * d_), clipped(k_ * d_), all(d_);
    std::vector<double> limit(k_ * d_);
    const auto each = [&](const auto &use) {
        std::size_t at = 0;
        for (std::size_t b = 0; b < window.size(); ++b) {
            const BatchView &batch = window[b];
            const double unit = rows_per_mass(batch);
            for (std::size_t i = 0; i < batch.rows.count; ++i, ++at)
                use(static_cast<std::size_t>(labels[at]), unit * weight_of(batch, i),
                    point_at(batch.rows, i, room.data()));
        }
    };
    each([&](std::size_t c, double weight, const double *row) {
        masses[c] += weight;
        for (std::size_t j = 0; j < d_; ++j) {
            const double off = row[j] - centres_[c * d_ + j];
            squares[c * d_ + j] += weight * off * off;
        }
    });
    double mass = 0.0;
    for (std::size_t c = 0; c < k_; ++c) mass += masses[c];
    // Once more without what is beyond the clip, which a single far row can make large.
    for (std::size_t at = 0; at < k_ * d_; ++at) {
        const double rows = masses[at / d_];
        limit[at] = rows > 0.0 ? kClip * kClip * squares[at] / rows : 0.0;
    }
    each([&](std::size_t c, double weight, const double *row) {
        for (std::size_t j = 0; j < d_; ++j) {
            const double off = row[j] - centres_[c * d_ + j];
            clipped[c * d_ + j] += weight * std::min(off * off, limit[c * d_ + j]);
        }
    });
    for (std::size_t at = 0; at < k_ * d_; ++at) all[at % d_] += clipped[at] / mass;
    for (std::size_t j = 0; j < d_; ++j) {
        double largest = 0.0;
        for (std::size_t c = 0; c < k_; ++c)
            largest = std::max(largest, std::fabs(centres_[c * d_ + j]));
        const double least = std::max(kRelativeRounding * largest, 1e-300);
        for (std::size_t c = 0; c < k_; ++c) {
            const std::size_t at = c * d_ + j;
            const double variance = (clipped[at] + kPriorRows * all[j]) / (masses[c] + kPriorRows);
            inverse_[at] = 1.0 / std::max(std::sqrt(variance), least);
        }
    }
}

// tr(R)^2 / tr(R^2) of the correlation R of the scores; the second trace is the mean squared
// product of two rows, whatever the sample size.
void Cells::find_independent(const BatchView &batch, const std::int32_t *labels) {
    const std::size_t count = std::min(batch.rows.count, kComparedRows);
    const double columns = static_cast<double>(d_);
    n_independent_ = columns;
    if (count < 3 || d_ == 1) return;
    std::vector<double> scores(count * d_), room(d_);
    for (std::size_t r = 0; r < count; ++r) {
        const std::size_t i = r * batch.rows.count / count;
        const std::size_t at = static_cast<std::size_t>(labels[i]) * d_;
        const double *row = point_at(batch.rows, i, room.data());
        for (std::size_t j = 0; j < d_; ++j)
            scores[r * d_ + j] =
                std::clamp((row[j] - centres_[at + j]) * inverse_[at + j], -kClip, kClip);
    }
    double trace = 0.0, products = 0.0;
    for (std::size_t r = 0; r < count; ++r) {
        for (std::size_t j = 0; j < d_; ++j) trace += scores[r * d_ + j] * scores[r * d_ + j];
        for (std::size_t s = 0; s < r; ++s) {
            double product = 0.0;
            for (std::size_t j = 0; j < d_; ++j) product += scores[r * d_ + j] * scores[s * d_ + j];
            products += product * product;
        }
    }
    const double n = static_cast<double>(count);
    trace /= n;
    products /= n * (n - 1.0) / 2.0;
    if (products > 0.0) n_independent_ = std::clamp(trace * trace / products, 1.0, columns);
}

std::vector<std::int32_t> Cells::assign(const BatchView &batch, const Partition &arrived) const {
    need(arrived.n_points() == batch.rows.count && arrived.has_bounds(), "an unmeasured batch");
    const Bounds bounds = arrived.bounds();
    need(bounds.k() == k_ && bounds.d() == d_, "a snapshot does not fit the cells");
    std::vector<std::int32_t> labels(arrived.labels().begin(), arrived.labels().end());
    // A row keeps its number where no other cell can be nearer: the triangle inequality.
    std::vector<double> moved(k_);
    displacements(bounds.snapshot().data(), centres_.data(), k_, d_, moved.data());
    double first = 0.0, second = 0.0;  // the two largest
    std::size_t farthest = 0;
    for (std::size_t c = 0; c < k_; ++c) {
        if (moved[c] > first) {
            second = first;
            first = moved[c];
            farthest = c;
        } else {
            second = std::max(second, moved[c]);
        }
    }
    constexpr double kOutward = 1e-5;  // beyond all that is rounded
    std::vector<std::uint32_t> undecided;
    for (std::size_t i = 0; i < labels.size(); ++i) {
        const std::size_t own = static_cast<std::size_t>(labels[i]);
        const double others = own == farthest ? second : first;
        const double above = bounds.upper()[i] + moved[own], below = bounds.lower()[i] - others;
        if (!(above < below - kOutward * std::fabs(below)))
            undecided.push_back(static_cast<std::uint32_t>(i));
    }
    if (undecided.empty()) return labels;
    PackedCentroids packed(k_, d_);
    packed.pack(centres_.data());
    PointScratch scratch(1, d_);
    for (std::size_t begin = 0; begin < undecided.size(); begin += kGroupRows) {
        const std::size_t count = std::min<std::size_t>(kGroupRows, undecided.size() - begin);
        const double *points[kGroupRows];
        std::int32_t found[kGroupRows];
        float upper[kGroupRows], lower[kGroupRows];
        for (std::size_t r = 0; r < count; ++r)
            points[r] = point_at(batch.rows, undecided[begin + r], scratch.of(0) + r * d_);
        find_nearest(points, count, d_, packed, packed.all(), packed.n_blocks(),
                     scratch.narrow_of(0), found, upper, lower);
        for (std::size_t r = 0; r < count; ++r) labels[undecided[begin + r]] = found[r];
    }
    return labels;
}

void Cells::add(const BatchView &batch, const std::vector<std::int32_t> &labels, ScoreSums &sums,
                Buffer<double> &far) const {
    far.resize(batch.rows.count);
    Buffer<double> room(d_);
    instruction_set().add_scores(batch.rows, batch.weights, rows_per_mass(batch), labels.data(),
                                 centres_.data(), inverse_.data(), kClip, k_, room.data(),
                                 sums.values_to_add(), far.data());
    for (std::size_t i = 0; i < far.size(); ++i) far[i] = std::min(far[i], kLargestSquare);
}

}  // namespace kmeander
