// Explanation of a drift: how much each cluster and column contributes to the change of the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmeans/batch.hpp"

namespace kmeander {

// Decayed weight, and sums and squares of the gaps to the centroids, by cluster and column.
class Moments {
public:
    Moments(const double *centroids, std::size_t k, std::size_t d);

    // Each batch is added up by itself, and these sums in order: they are the same for any number
    // of threads.
    void add(const std::vector<LabelledBatch> &batches, std::size_t n_threads);

    // Add what means hide of the error: known in total only, it is shared out like what they show.
    void add_hidden(double within);

    // Part of each cluster and column (k, d) in the error.
    std::vector<double> parts() const;

    struct CellMoments {  // points of one cluster along one column
        double share;     // of all points
        double mean;      // less the centroid
        double variance;
    };
    CellMoments cell(std::size_t cluster, std::size_t column) const;

private:
    void add(const LabelledBatch &batch);
    void add(const Moments &other);
    void clear();
    double mass() const;

    const double *centroids_;
    const std::size_t k_, d_;
    std::vector<double> masses_, sums_, squares_;
};

struct ErrorDecomposition {
    double difference;  // of the two errors; where it is 0, nothing else is known
    std::vector<double> clusters, columns;  // share of each in it
    struct ErrorPart {                      // of a cluster that made it larger, the largest first
        std::size_t cluster, column;        // the column that did most
        Moments::CellMoments before, now;
    };
    std::vector<ErrorPart> parts;
};

// Divide the error of `newest`, less that of `older`, among k clusters and d columns.
ErrorDecomposition explain(const Moments &older, const Moments &newest, std::size_t k,
                           std::size_t d, std::size_t n_parts);

}  // namespace kmeander
