// Inner loops, as one table of functions per instruction set.
//
// `loops.cpp` is compiled once for each entry; nothing else in the kernel
// depends on the instruction set. What decides is double precision: float32 rows
// are widened when they are read, so they give the bits their float64 copies give.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kmeander {

// Rows of a batch, row-major, float64 or float32.
struct PointsView {
    const void *data;
    bool is_float32;
    std::size_t count;
    std::size_t columns;
};

// The most rows that share one sweep over the centroids.
constexpr std::size_t kGroupRows = 64;

// Room that a list of points needs beyond its end: it is written without a branch, a register at
// once.
constexpr std::size_t kSpare = 16;

// Bins along a line: beyond the one end, at it, three between, at the other end, beyond it.
constexpr int kLineBins = 7;

// Rows while k-means++ draws: one entry each per row, made up to whole blocks.
struct SeedDistances {
    const double *weights;     // 0 for what makes up a block
    double *nearest, *second;  // squared distances to the two nearest seeds
    double *where;             // the number of the nearest seed
    double *shares;            // in the next draw
};

// Centroids in single precision, less a common shift.
struct NarrowCentroids {
    const float *rows;     // (k, d)
    const float *lengths;  // (k,) of the rows, before they were rounded, rounded up
    std::size_t k;
};

// Leading coordinates of points, here and there, and the lengths of their rests.
struct LeadingRows {
    const float *const *rows;
    const float *rests;
    std::size_t count;  // at most kGroupRows
};

// Those of centroids, in blocks as wide as a register of floats: column by column, then the rests.
// A bias of -infinity makes up the last block.
struct LeadingBlocks {
    const float *values;  // (count, columns + 1, floats)
    const float *bias;    // (count, floats)
    std::size_t count, columns;
};

// How a statistic is judged beside the noise between batches; see tracking/batch_noise.hpp.
struct NoiseRule {
    double prior_sum, prior_count;    // squares, and how many, that it is drawn to
    double prior_freedom, per_batch;  // degrees of freedom: before any batch, and of each
    double long_sum, long_count;      // the same as the first two, of the longest scale
    double rows;                      // of the batch, over those of a usual one
    double cap;                       // the most a square counts, in units of its expectation
    double kept;                      // of what was learned before
};

struct InstructionSet {
    const char *name;
    std::size_t lanes;   // doubles per vector register, the width of a block of centroids
    std::size_t floats;  // floats per vector register

    // Whether no value is larger than `limit` in magnitude, or not a number; all are copied to
    // `copy` unless that is null.
    bool (*copy_within)(const PointsView &rows, double limit, void *copy);

    // Row i as doubles.
    void (*widen)(const PointsView &rows, std::size_t i, double *point);

    // Label, squared distance of the nearest and of the second nearest centroid, for `count`
    // points (at most kGroupRows) that `x` points to, among the blocks listed in `chosen`,
    // ascending. `blocks` holds the centroids as `PackedCentroids` lays them out. A tie goes to the
    // lowest index. One sum per (point, centroid), in column order: the bits depend on nothing
    // else, neither on the points beside it nor on the other blocks chosen.
    void (*nearest)(const double *const *x, std::size_t count, std::size_t d, const double *blocks,
                    const std::uint32_t *chosen, std::size_t n_chosen, std::int32_t *labels,
                    double *squared, double *second);

    // At most kGroupRows points less `shift` in single precision, for `screen`, which alone knows
    // how they lie in `narrowed` (kGroupRows * d).
    void (*narrow)(const double *const *x, std::size_t count, std::size_t d, const double *shift,
                   float *narrowed);

    // What `nearest` finds, in single precision, for points that `narrow` has made: labels, and
    // bounds of the distances to the nearest centroid and to all others of those blocks, true
    // whatever was rounded. Points whose bounds are not apart are listed in `ambiguous`: their
    // labels are a guess. Returns how many those are.
    std::size_t (*screen)(const float *narrowed, std::size_t count, std::size_t d,
                          const NarrowCentroids &centroids, const std::uint32_t *chosen,
                          std::size_t n_chosen, std::int32_t *labels, float *upper, float *lower,
                          std::uint32_t *ambiguous);

    // Products of `rows` (count, d) with axes, which lie in blocks of half as many as `floats`,
    // column by column, to `products` (count, n_blocks * floats / 2).
    void (*multiply)(const double *rows, std::size_t count, std::size_t d, const double *axes,
                     std::size_t n_blocks, double *products);

    // Rows here and there, all float32 or all float64, less `centre` in single precision, made up
    // with zeros to a length of `stride`.
    void (*centre)(const void *const *points, bool is_float32, std::size_t count, std::size_t d,
                   const float *centre, std::size_t stride, float *to);

    // The centroids, by their places in the blocks, whose score, bias and product with the point,
    // is not below the threshold of the point: ascending in `found` (count, room), where `room` is
    // kSpare more than the places in all blocks; `n_found` says how many.
    void (*list_candidates)(const LeadingRows &points, const LeadingBlocks &blocks,
                            const float *thresholds, std::uint32_t *found, std::size_t room,
                            std::uint32_t *n_found);

    // The place of the centroid with the highest score for each point.
    void (*list_best)(const LeadingRows &points, const LeadingBlocks &blocks, std::uint32_t *where);

    // Squared distances of one point to `count` of the rows, all of length `stride`, a multiple of
    // `floats`.
    void (*squared_narrow)(const float *point, const float *rows, std::size_t stride,
                           const std::uint32_t *which, std::size_t count, float *squared);

    // Measure blocks [begin, end) of rows, which lie as centroids do in `PackedCentroids`, against
    // seed number `number`. Returns the sum of their shares.
    double (*add_seed)(const double *blocks, std::size_t begin, std::size_t end, std::size_t d,
                       const double *seed, std::size_t number, const SeedDistances &rows);

    // Squared distance to one point, for rows [begin, end).
    void (*squared_to)(const PointsView &rows, std::size_t begin, std::size_t end,
                       const double *point, double *squared);

    // Squared distance to one centroid, for rows here and there, all float32 or all float64.
    void (*squared_between)(const void *const *points, bool is_float32, std::size_t count,
                            std::size_t d, const double *centroid, double *squared);

    // Squared distance of each of `count` points to its own of `others`.
    void (*squared_pairs)(const double *const *points, const double *const *others,
                          std::size_t count, std::size_t d, double *squared);

    // For rows here and there, all float32 or all float64, less `centroid`: their squared lengths,
    // and their products with each of `n_directions` (d,), one line of `along`
    // (n_directions, stride) each.
    void (*project)(const void *const *points, bool is_float32, std::size_t count, std::size_t d,
                    const double *centroid, const double *const *directions,
                    std::size_t n_directions, double *squared, double *along, std::size_t stride);

    // The `direction` (width,) in which `rows` (count, width) vary most, by `n_steps` of power
    // iteration from the column that varies most; all zero where nothing varies. `weights` sum
    // to 1. The mean is taken from the rows; `scratch` (width,) is overwritten. Both numbers are
    // multiples of 4: rows may weigh 0, and columns be 0.
    void (*find_direction)(double *rows, const double *weights, std::size_t count,
                           std::size_t width, std::size_t n_steps, double *direction,
                           double *scratch);

    // Where rows of a cluster lie on the line of squared length `length` from its centroid to
    // another's (or from that one, if not `is_from`): 0 is the one end, 1 the other. `shares` are
    // products of the rows, less the centroid, with the line, `squared` their squared lengths. Each
    // row is seen from the centroid made without it, which is farther away by the share `own` of
    // the gap.
    void (*place_on_line)(const double *shares, const double *squared, const double *own,
                          std::size_t count, double length, bool is_from, double *places);

    // Add the weights of rows to the bins (kLineBins,) in which their places lie: those in the
    // middle are a quarter wide, the second has 0 in its midst, the last but one has 1.
    void (*add_to_bins)(const double *places, const double *weights, std::size_t count,
                        double *bins);

    // Weight of the rows beyond `cut`, and weighted sum of their places.
    void (*add_above)(const double *places, const double *weights, std::size_t count, double cut,
                      double *mass, double *sum);

    // Squared distance from the mean of each of `k` clusters, its sum over its mass, to its
    // centroid; any value where there is no mass.
    void (*squared_to_means)(const double *sums, const double *masses, std::size_t k, std::size_t d,
                             const double *centroids, double *squared);

    // Bounds of distances whose squares are given, as in rounding.hpp.
    void (*bounds_above)(const double *squared, std::size_t count, float *bounds);
    void (*bounds_below)(const double *squared, std::size_t count, float *bounds);

    // The points, of `count`, that neither limit of their keys decides: lower - upper is not above
    // the one, upper not below the other. Returns their number; `found` takes up to `count` and
    // kSpare more.
    std::size_t (*find_undecided)(const float *upper, const float *lower, const std::uint32_t *keys,
                                  const float *margins, const float *uppers, std::size_t count,
                                  std::uint32_t *found);

    // The points, of `count`, whose margins are not above the threshold of their cluster, one of k.
    // Returns their number; `found` takes up to `count` and kSpare more.
    std::size_t (*find_active)(const std::int32_t *labels, const float *upper, const float *lower,
                               const float *thresholds, std::size_t k, std::size_t count,
                               std::uint32_t *found);

    // How many of `count` points neither limit of their cluster decides, as in `find_undecided`.
    std::size_t (*count_undecided)(const std::int32_t *labels, const float *upper,
                                   const float *lower, const float *margins, const float *uppers,
                                   std::size_t k, std::size_t count);

    // Put the bounds of `count` points to where the centroids are now: the own has moved by `own`,
    // another by `others` at most, and lies `nearest_other` away at least; all per cluster, of k.
    void (*rebase)(const std::int32_t *labels, std::size_t count, const float *own,
                   const float *others, const float *nearest_other, std::size_t k, float *upper,
                   float *lower);

    // For each of `count` points of one cluster and epoch the least over the blocks of
    // max(lower - moved, apart - upper): a bound of all distances but the own.
    void (*bound_others)(const float *apart, const float *moved, std::size_t n_blocks,
                         const float *lower, const float *upper, std::size_t count, float *bounds);

    // Those of `count` rows whose clusters, of k, are marked, not by 0. Returns their number;
    // `found` takes up to `count` and kSpare more.
    std::size_t (*list_marked)(const std::int32_t *labels, const float *marks, std::size_t k,
                               std::size_t count, std::uint32_t *found);

    // Add the rows `chosen` to the sums of their clusters, in this order. What rounding takes from
    // `sums` is gathered in `rests`, so that both together are right to the last digit: the mean of
    // a million equal points is that point.
    void (*add_rows)(const PointsView &rows, const double *weights, const std::int32_t *labels,
                     const std::uint32_t *chosen, std::size_t n_chosen, double *sums,
                     double *rests);

    // Add weight, and weighted sum and square of the gaps to the centroid of its cluster along each
    // column, of each row, in row order, to those of that cluster; weights are multiplied by
    // `decay`.
    void (*add_moments)(const PointsView &rows, const double *weights, double decay,
                        const std::int32_t *labels, const double *centroids, double *masses,
                        double *sums, double *squares);

    // Add the rows to the sums of their cells, k of them, in row order: `sums` holds masses,
    // squared weights, mean clipped squares and their squares (k each), then clipped scores and
    // their squares (k, d each). A score is a gap to the centre times `inverse` (k, d); weights are
    // multiplied by `unit`. The mean squared score of each row, not clipped, goes to `far`.
    void (*add_scores)(const PointsView &rows, const double *weights, double unit,
                       const std::int32_t *labels, const double *centres, const double *inverse,
                       double clip, std::size_t k, double *room, double *sums, double *far);

    // For each of `count` statistics, whose `squares` are given, the square of the normal deviate
    // that is as rare beside its noise; `sums` and `counts` are what it has shown so far, and learn
    // the square, `long_sums` and `long_counts` what it has shown at the longest scale. `rows` is
    // the number of rows they are about.
    void (*judge)(const NoiseRule &rule, const double *squares, std::size_t count, double rows,
                  double *sums, double *counts, const double *long_sums, const double *long_counts,
                  double *deviates);

    // Add for each of the rows `chosen`, in this order, the weighted squares of its gaps to the
    // mean of its cluster, every fourth column together, to the four sums of that cluster in
    // `quarters` (k, 4).
    void (*add_squares)(const PointsView &rows, const double *weights, const std::int32_t *labels,
                        const std::uint32_t *chosen, std::size_t n_chosen, const double *means,
                        double *quarters);
};

// The fastest set that this processor has, or the one that KMEANDER_ISA names.
// Throws std::invalid_argument when that name is unknown or the processor lacks it.
const InstructionSet &instruction_set();

}  // namespace kmeander
