// Mass, sum and scatter of each cluster within each batch.
//
// While Lloyd runs, only points that change cluster touch them. Before a result leaves, every
// cluster so touched is added up anew, its rows in order: what is stored is a function of rows,
// weights and labels alone, so rounding does not accumulate and history does not show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kmeans/batch.hpp"
#include "kmeans/buffer.hpp"
#include "parallel/team.hpp"

namespace kmeander {

class Aggregates {
public:
    Aggregates(std::vector<Batch> &batches, std::size_t k, Team &team);

    // Rows, in order of their batches, have gone from one cluster to another.
    void move(const std::vector<Move> &moves);

    // Add up anew what cannot be had by moving rows: new batches, and clusters that have lost so
    // much that what is left would be rounding.
    void refresh();

    // Add up anew every cluster that was touched, and its scatter.
    void settle();

    // Weighted sums of squared distances to the own centroid; after settle.
    Errors errors(const double *centroids);

    // What a batch like those of the window would cost if it came next, decayed sum: each batch
    // under the centroids as they would be without it. After errors.
    double error_left_out();

    // Decayed mass per cluster, and decayed mean of one cluster.
    const std::vector<double> &masses();
    void mean(std::size_t cluster, double *mean) const;

    // Whether the mean of a cluster may have changed since this was last asked.
    bool has_changed(std::size_t cluster) { return std::exchange(changed_[cluster], false); }

private:
    enum Mark : std::uint8_t { kExact, kTouched, kLost };  // of a cluster in a batch

    // Room for the work of one thread.
    struct Bench {
        Buffer<double> means, rests;  // (k, d)
        Buffer<double> quarters;      // (k, 4)
        std::vector<double> point;
        std::vector<float> stale;       // per cluster: 1 if it is added up anew
        Buffer<std::uint32_t> members;  // the rows of these
    };

    void move(const Move &move, Bench &bench);
    std::size_t find_members(const Batch &batch, Bench &bench) const;
    void sum(std::size_t b, std::uint8_t from_mark, std::size_t first, std::size_t last,
             Bench &bench);
    void weigh(Batch &batch, const Bench &bench, std::size_t n_members) const;
    void sum_marked(std::uint8_t from_mark);
    void scatter(std::size_t b, Bench &bench);

    std::vector<Batch> &batches_;
    const std::size_t k_, d_;
    const InstructionSet &set_;
    Team &team_;
    std::vector<std::vector<std::uint8_t>> marks_, scatter_marks_;  // per batch and cluster
    std::vector<std::uint8_t> counted_;      // per batch: masses are those of the labels
    std::vector<std::vector<double>> lost_;  // per batch and cluster: mass gone since exact
    std::vector<std::uint8_t> changed_;      // per cluster
    std::vector<double> masses_;
    std::vector<Bench> benches_;  // one per worker
    Buffer<double> gaps_;  // per batch and cluster: squared distance from its mean to the centroid
};

}  // namespace kmeander
