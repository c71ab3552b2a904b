// The inner loops, as one table of functions per instruction set.
//
// `inner_loops.cpp` is compiled once for each entry; nothing else in the kernel
// depends on the instruction set. All arithmetic is double precision: float32 rows
// are widened when they are read, so they give the bits their float64 copies give.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kmeander {

// Rows of a batch, row-major, float64 or float32.
struct Rows {
    const void *data;
    bool is_float32;
    std::size_t count;
    std::size_t columns;
};

// Rows that share one sweep over the centroids; the caller's scratch holds this many.
constexpr std::size_t kGroupRows = 64;

struct InstructionSet {
    const char *name;
    std::size_t lanes;  // doubles per vector register, the width of a block of centroids

    // Label and squared distance of the nearest centroid for rows [begin, end).
    // `blocks` holds the centroids as `pack_blocks` lays them out. A tie goes to the lowest
    // index. One sum per (row, centroid), in column order: the bits depend on nothing else.
    void (*nearest)(const Rows &rows, std::size_t begin, std::size_t end, const double *blocks,
                    std::size_t n_blocks, double *scratch, std::int32_t *labels, double *squared);

    // Squared distance to one point, for rows [begin, end).
    void (*squared_to)(const Rows &rows, std::size_t begin, std::size_t end, const double *point,
                       double *squared);

    // Add rows [begin, end), columns [first, last), to the sums of their clusters, in row order.
    void (*add_rows)(const Rows &rows, std::size_t begin, std::size_t end, std::size_t first,
                     std::size_t last, const double *weights, const std::int32_t *labels,
                     double *sums);
};

// The fastest set that this processor has, or the one that KMEANDER_ISA names.
// Throws std::invalid_argument when that name is unknown or the processor lacks it.
const InstructionSet &instruction_set();

}  // namespace kmeander
