// Differences between the newest batches and older ones, cell by cell, over what they would be if
// rows were independent of one another.
#pragma once

#include <cstddef>
#include <vector>

#include "tracking/cells.hpp"

namespace kmeander {

// Of one family of statistics: the shares, the places or the spreads of all cells.
struct CellDifferences {
    CellDifferences(std::size_t k, std::size_t width, std::size_t n_overall)
        : width(width),
          squares(k * width),
          rows(k),
          now(k * width),
          before(k * width),
          overall_squares(n_overall),
          overall(n_overall),
          overall_before(n_overall) {}

    std::size_t width;                    // statistics of a cell: one, or one for each column
    std::vector<double> squares;          // (k, width) of the difference over its deviation
    std::vector<double> rows;             // (k,) in the newest; 0 where a cell is not compared
    std::vector<double> now, before;      // (k, width)
    std::vector<double> overall_squares;  // of all cells together, as many as there are
    std::vector<double> overall;          // difference of all cells, and what it is one to:
    std::vector<double> overall_before;   // both weighed by precision
    double overall_rows = 0.0;
};

// Share of the rows in each cell, by the root of the deviance of two binomial samples.
CellDifferences compare_shares(const ScoreSums &newest, const ScoreSums &older, const Cells &cells);

// Mean score of each cell along each column; overall that of all cells along each.
CellDifferences compare_places(const ScoreSums &newest, const ScoreSums &older, const Cells &cells);

// Mean squared score of each cell; overall that of all cells.
CellDifferences compare_spreads(const ScoreSums &newest, const ScoreSums &older,
                                const Cells &cells);

// Whether a cell has rows enough to compare its means.
bool has_rows(double newest, double older);

}  // namespace kmeander
