#include "seeding.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "assignment.hpp"
#include "bounds.hpp"

namespace kmeander {
namespace {

// Shares of the rows in the next draw, with their sum per chunk.
class Lottery {
public:
    explicit Lottery(std::size_t n_rows) : shares_(n_rows), totals_(n_chunks(n_rows)) {}

    double *shares() { return shares_.data(); }

    void add_up(std::size_t chunk) {
        double total = 0.0;
        for (std::size_t i = begin(chunk); i < end(chunk); ++i) total += shares_[i];
        totals_[chunk] = total;
    }

    // The row in which `uniform` of the whole falls, or -1 if nothing has a share.
    std::int64_t draw(double uniform) const {
        double whole = 0.0;
        for (const double total : totals_) whole += total;
        const double mark = uniform * whole;
        double passed = 0.0;
        std::size_t chunk = 0;
        while (chunk < totals_.size() && passed + totals_[chunk] <= mark) passed += totals_[chunk++];
        const std::size_t stop = chunk < totals_.size() ? end(chunk) : shares_.size();
        for (std::size_t i = begin(chunk); i < stop; ++i) {
            passed += shares_[i];
            if (passed > mark) return static_cast<std::int64_t>(i);
        }
        // Rounding carried the mark past the end: the last row that has a share.
        for (std::size_t i = stop; i-- > 0;)
            if (shares_[i] > 0.0) return static_cast<std::int64_t>(i);
        return -1;
    }

    static std::size_t begin(std::size_t chunk) { return chunk * kChunkRows; }
    std::size_t end(std::size_t chunk) const {
        return std::min((chunk + 1) * kChunkRows, shares_.size());
    }

private:
    std::vector<double> shares_, totals_;
};

}  // namespace

Seeds seed(const Rows &rows, const double *weights, const double *uniforms, std::size_t k,
           std::size_t n_threads, std::int64_t *chosen, std::int32_t *labels, float *upper,
           float *lower) {
    const std::size_t n = rows.count;
    const std::size_t chunks = n_chunks(n);
    const InstructionSet &set = instruction_set();
    Team team(worth_starting(n_threads, 1.0 * n * rows.columns));
    Lottery lottery(n);
    constexpr double kFar = std::numeric_limits<double>::infinity();
    std::vector<double> nearest(n, kFar), second(n, kFar);
    std::vector<double> point(rows.columns);

    for (std::size_t i = 0; i < n; ++i) lottery.shares()[i] = weights == nullptr ? 1.0 : weights[i];
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) lottery.add_up(chunk);

    Seeds seeds = {0, 0};
    while (seeds.count < k) {
        const std::int64_t row = lottery.draw(uniforms[seeds.count]);
        if (row < 0) break;
        const std::int32_t label = static_cast<std::int32_t>(seeds.count);
        chosen[seeds.count++] = row;
        set.widen(rows, static_cast<std::size_t>(row), point.data());
        team.run(chunks, [&](std::size_t chunk, std::size_t) {
            double squared[kChunkRows];
            const std::size_t begin = Lottery::begin(chunk), end = lottery.end(chunk);
            set.squared_to(rows, begin, end, point.data(), squared);
            for (std::size_t i = begin; i < end; ++i) {
                const double distance = squared[i - begin];
                const bool nearer = distance < nearest[i];
                second[i] = nearer ? nearest[i] : std::min(second[i], distance);
                nearest[i] = nearer ? distance : nearest[i];
                labels[i] = nearer ? label : labels[i];
                lottery.shares()[i] = nearest[i] * (weights == nullptr ? 1.0 : weights[i]);
            }
            lottery.add_up(chunk);
        });
        seeds.n_distances += static_cast<std::int64_t>(n);
    }
    for (std::size_t i = 0; i < n; ++i) {
        upper[i] = bound_above(nearest[i]);
        lower[i] = bound_below(second[i]);
    }
    return seeds;
}

}  // namespace kmeander
