// Which cluster and which column made the error of a batch differ from that of the batches before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simd/instruction_set.hpp"

namespace kmeander {

struct LabelledRows {
    Rows rows;
    const double *weights;  // one per row, or null: every row weighs 1
    double decay;
    const std::int32_t *labels;
};

// Decayed weight, and sums and squares of the gaps to the centroids, by cluster and column.
class Moments {
public:
    Moments(const double *centroids, std::size_t k, std::size_t d);

    // Each batch is added up by itself, and these sums in order: they are the same for any number
    // of threads.
    void add(const std::vector<LabelledRows> &batches, std::size_t n_threads);

    // Add what means hide of the error: known in total only, it is shared out like what they show.
    void add_hidden(double within);

    // Part of each cluster and column (k, d) in the error.
    std::vector<double> parts() const;

    struct Cell {      // points of one cluster along one column
        double share;  // of all points
        double mean;   // less the centroid
        double variance;
    };
    Cell cell(std::size_t cluster, std::size_t column) const;

private:
    void add(const LabelledRows &batch);
    void add(const Moments &other);
    void clear();
    double mass() const;

    const double *centroids_;
    const std::size_t k_, d_;
    std::vector<double> masses_, sums_, squares_;
};

struct Explanation {
    double difference;  // of the two errors; where it is 0, nothing else is known
    std::vector<double> clusters, columns;  // share of each in it
    struct Part {                           // of a cluster that made it larger, the largest first
        std::size_t cluster, column;        // the column that did most
        Moments::Cell before, now;
    };
    std::vector<Part> parts;
};

// Divide the error of `newest`, less that of `older`, among k clusters and d columns.
Explanation explain(const Moments &older, const Moments &newest, std::size_t k, std::size_t d,
                    std::size_t n_parts);

}  // namespace kmeander
