// Differences of shares, places and spreads, and their deviations under independence.
#include "tracking/cell_differences.hpp"

#include <algorithm>
#include <cmath>

namespace kmeander {

namespace {

// Rows in a cell, in the newest batches and in the older ones, from which its mean is looked at;
// and those that are expected for its share to be looked at.
constexpr double kLeastNewest = 3.0, kLeastOlder = 6.0, kLeastExpected = 1.0;

// Rows for which the variance over all cells counts in one cell, and the least variance of a score:
// cells are made when a chapter begins, so it is 1 unless the stream grew much calmer since.
constexpr double kPriorRows = 10.0;
constexpr double kLeastVariance = 0.25;

double squared(double value) { return value * value; }

// Deviance of two binomial samples, the newest count moved by one half.
double share_deviance(double newest, double size, double older, double older_size) {
    const double expected = size * (newest + older) / (size + older_size);
    const double moved =
        newest > expected ? std::max(newest - 0.5, expected) : std::min(newest + 0.5, expected);
    const double both = (moved + older) / (size + older_size);
    double deviance = 0.0;
    const auto add = [&](double n, double m) {
        if (n > 0.0 && m > 0.0) deviance += 2.0 * n * std::log(n / m);
    };
    add(moved, size * both);
    add(size - moved, size * (1.0 - both));
    add(older, older_size * both);
    add(older_size - older, older_size * (1.0 - both));
    return std::max(deviance, 0.0);
}

// Degrees of freedom of the variance within a cell.
double freedom_of(double newest, double older) {
    return std::max(newest - 1.0, 0.0) + std::max(older - 1.0, 0.0);
}

// Means of one kind, of every cell: `sums` and `squares` give the sums of a cell over its values
// and their squares, `width` numbers each.
template <class Sums, class Squares>
CellDifferences compare_means(const ScoreSums &newest, const ScoreSums &older, std::size_t k,
                              std::size_t width, double least, const Sums &sums,
                              const Squares &squares) {
    CellDifferences found(k, width, width);
    std::vector<double> variance(k * width), pooled(width), precision(width);
    double all_freedom = 0.0;
    for (std::size_t c = 0; c < k; ++c) {
        for (const ScoreSums *some : {&newest, &older}) {
            const double rows = some->rows(c), mass = some->mass(c);
            if (!(rows > 0.0)) continue;
            const double *sum = sums(*some, c), *square = squares(*some, c);
            double *means = (some == &newest ? found.now : found.before).data() + c * width;
            for (std::size_t j = 0; j < width; ++j) {
                means[j] = sum[j] / mass;
                variance[c * width + j] +=
                    rows * std::max(square[j] / mass - squared(means[j]), 0.0);
            }
        }
        all_freedom += freedom_of(newest.rows(c), older.rows(c));
        for (std::size_t j = 0; j < width; ++j) pooled[j] += variance[c * width + j];
    }
    for (double &value : pooled) value /= std::max(all_freedom, 1.0);
    for (std::size_t c = 0; c < k; ++c) {
        const double n = newest.rows(c), m = older.rows(c);
        if (!has_rows(n, m)) continue;
        found.rows[c] = n;
        found.overall_rows += n;
        const double per_row = 1.0 / n + 1.0 / m, freedom = freedom_of(n, m);
        for (std::size_t j = 0; j < width; ++j) {
            const std::size_t at = c * width + j;
            const double own = (variance[at] + kPriorRows * pooled[j]) / (freedom + kPriorRows);
            const double deviation = per_row * std::max(own, least);
            const double gap = found.now[at] - found.before[at];
            found.squares[at] = gap * gap / deviation;
            found.overall[j] += gap / deviation;
            found.overall_before[j] += found.before[at] / deviation;
            precision[j] += 1.0 / deviation;
        }
    }
    // Differences of all cells, each weighed by its precision.
    for (std::size_t j = 0; j < width; ++j) {
        if (!(precision[j] > 0.0)) continue;
        found.overall_squares[j] = squared(found.overall[j]) / precision[j];
        found.overall[j] /= precision[j];
        found.overall_before[j] /= precision[j];
    }
    return found;
}

}  // namespace

bool has_rows(double newest, double older) {
    return newest >= kLeastNewest && older >= kLeastOlder;
}

CellDifferences compare_shares(const ScoreSums &newest, const ScoreSums &older,
                               const Cells &cells) {
    CellDifferences found(cells.k(), 1, 0);
    const double size = newest.total_rows(), older_size = older.total_rows();
    const double mass = newest.total_mass(), older_mass = older.total_mass();
    for (std::size_t c = 0; c < cells.k(); ++c) {
        const double now = newest.mass(c) / mass, before = older.mass(c) / older_mass;
        const double both = (now * size + before * older_size) / (size + older_size);
        if (!(both * size >= kLeastExpected)) continue;
        found.now[c] = now;
        found.before[c] = before;
        found.rows[c] = both * size;
        found.squares[c] = share_deviance(now * size, size, before * older_size, older_size);
    }
    return found;
}

CellDifferences compare_places(const ScoreSums &newest, const ScoreSums &older,
                               const Cells &cells) {
    return compare_means(
        newest, older, cells.k(), cells.d(), kLeastVariance,
        [](const ScoreSums &sums, std::size_t c) { return sums.scores(c); },
        [](const ScoreSums &sums, std::size_t c) { return sums.score_squares(c); });
}

CellDifferences compare_spreads(const ScoreSums &newest, const ScoreSums &older,
                                const Cells &cells) {
    // The mean of d squares of normal scores varies by 2 / d.
    return compare_means(
        newest, older, cells.k(), 1, kLeastVariance * 2.0 / static_cast<double>(cells.d()),
        [](const ScoreSums &sums, std::size_t c) { return sums.spread(c); },
        [](const ScoreSums &sums, std::size_t c) { return sums.spread_squares(c); });
}

}  // namespace kmeander
