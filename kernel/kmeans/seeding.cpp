// k-means++ seeding: draw a row, measure all rows against it, draw the next.
#include "kmeans/seeding.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "kmeans/points.hpp"
#include "parallel/costs.hpp"
#include "parallel/team.hpp"

namespace kmeander {
namespace {

// Rows handled as one item: a whole number of blocks, whatever the width of a register.
static_assert(kChunkRows % 8 == 0);

// Shares of the rows in the next draw, with their sum per chunk. The order of all additions is
// fixed.
class WeightedDraw {
public:
    WeightedDraw(const double *shares, std::size_t n_rows)
        : shares_(shares), n_rows_(n_rows), totals_(n_chunks(n_rows)) {}

    double &total(std::size_t chunk) { return totals_[chunk]; }

    // The row in which `uniform` of the whole falls, or -1 if nothing has a share.
    std::int64_t row(double uniform) const {
        double whole = 0.0;
        for (const double total : totals_) whole += total;
        const double mark = uniform * whole;
        double passed = 0.0;
        std::size_t chunk = 0;
        while (chunk < totals_.size() && passed + totals_[chunk] <= mark)
            passed += totals_[chunk++];
        const std::size_t stop = std::min((chunk + 1) * kChunkRows, n_rows_);
        for (std::size_t i = chunk * kChunkRows; i < stop; ++i) {
            passed += shares_[i];
            if (passed > mark) return static_cast<std::int64_t>(i);
        }
        // Rounding carried the mark past the end: the last row that has a share.
        for (std::size_t i = stop; i-- > 0;)
            if (shares_[i] > 0.0) return static_cast<std::int64_t>(i);
        return -1;
    }

private:
    const double *shares_;
    const std::size_t n_rows_;
    std::vector<double> totals_;
};

// Rows as `PackedCentroids` lays out centroids, but what makes up the last block is 0.
std::vector<double> packed(const PointsView &rows, std::size_t n_blocks, Team &team) {
    const InstructionSet &set = instruction_set();
    const std::size_t d = rows.columns, lanes = set.lanes;
    std::vector<double> blocks(n_blocks * lanes * d);
    team.run(n_chunks(rows.count), static_cast<double>(rows.count * d),
             [&](std::size_t chunk, std::size_t) {
                 std::vector<double> room(d);
                 const std::size_t end = std::min((chunk + 1) * kChunkRows, rows.count);
                 for (std::size_t i = chunk * kChunkRows; i < end; ++i) {
                     const double *point = point_at(rows, i, room.data());
                     double *lane = blocks.data() + (i / lanes) * d * lanes + i % lanes;
                     for (std::size_t j = 0; j < d; ++j) lane[j * lanes] = point[j];
                 }
             });
    return blocks;
}

}  // namespace

SeedingReport seed(const PointsView &rows, const double *weights, const double *uniforms,
                   std::size_t k, std::size_t n_threads, std::int64_t *chosen, std::int32_t *labels,
                   float *upper, float *lower, std::vector<double> &drawn) {
    const InstructionSet &set = instruction_set();
    const std::size_t n = rows.count, d = rows.columns;
    const std::size_t n_blocks = (n + set.lanes - 1) / set.lanes, padded = n_blocks * set.lanes;
    const double operations = costs::kPerSeededValue * static_cast<double>(n * d);
    Team team(worth_starting(n_threads, operations));
    const std::vector<double> blocks = packed(rows, n_blocks, team);
    constexpr double kFar = std::numeric_limits<double>::infinity();
    std::vector<double> counts(padded), nearest(padded, kFar), second(padded, kFar), where(padded);
    if (weights == nullptr)
        std::fill_n(counts.begin(), n, 1.0);
    else
        std::copy_n(weights, n, counts.begin());
    std::vector<double> shares = counts, point(d);  // the first is drawn by weight
    // Nothing that makes up a block may have a share: 0 times infinity is none.
    std::fill(nearest.begin() + static_cast<std::ptrdiff_t>(n), nearest.end(), 0.0);
    const SeedDistances state = {counts.data(), nearest.data(), second.data(), where.data(),
                                 shares.data()};
    WeightedDraw draw(shares.data(), n);
    const std::size_t chunk_blocks = kChunkRows / set.lanes;
    for (std::size_t i = 0; i < n; ++i) draw.total(i / kChunkRows) += shares[i];

    SeedingReport seeds = {0, 0};
    drawn.clear();
    drawn.reserve(k * d);
    while (seeds.count < k) {
        const std::int64_t row = draw.row(uniforms[seeds.count]);
        if (row < 0) break;
        set.widen(rows, static_cast<std::size_t>(row), point.data());
        team.run(n_chunks(n), operations, [&](std::size_t chunk, std::size_t) {
            const std::size_t end = std::min((chunk + 1) * chunk_blocks, n_blocks);
            draw.total(chunk) = set.add_seed(blocks.data(), chunk * chunk_blocks, end, d,
                                             point.data(), seeds.count, state);
        });
        chosen[seeds.count++] = row;
        drawn.insert(drawn.end(), point.begin(), point.end());
        seeds.n_distances += static_cast<std::int64_t>(n);
    }
    std::transform(where.begin(), where.begin() + static_cast<std::ptrdiff_t>(n), labels,
                   [](double number) { return static_cast<std::int32_t>(number); });
    set.bounds_above(nearest.data(), n, upper);
    set.bounds_below(second.data(), n, lower);
    return seeds;
}

}  // namespace kmeander
