// Sufficient statistics per batch and cluster: mass, sum and scatter, kept while labels change.
//
// While Lloyd runs, only points that change cluster touch them. Before a result is returned, every
// cluster touched (dirty) is summed again, its rows in order: what is stored is a function of
// rows, weights and labels alone, so rounding does not accumulate and history does not show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kmeans/batch.hpp"
#include "kmeans/buffer.hpp"
#include "parallel/team.hpp"

namespace kmeander {

class ClusterSumsUpdater {
public:
    ClusterSumsUpdater(std::vector<WorkingBatch> &batches, std::size_t k, Team &team);

    // Rows, in order of their batches, have gone from one cluster to another.
    void reassign(const std::vector<Reassignment> &reassigned);

    // Sum again what moving rows cannot give: new batches, and clusters that have lost most of
    // their mass, where the difference would be rounding.
    void recompute_cancelled();

    // Sum again every dirty cluster, and its scatter.
    void recompute_dirty();

    // Weighted sums of squared distances to the own centroid; after recompute_dirty.
    Errors errors(const double *centroids);

    // Leave-one-out error, decayed sum: each batch under the centroids as they would be without
    // it, which is what the next batch should cost. After errors.
    double error_left_out();
    double error_left_out_on_sphere();  // where centroids are means drawn out to length 1

    // Decayed mass per cluster, and decayed mean of one cluster.
    const std::vector<double> &masses();
    void mean(std::size_t cluster, double *mean) const;

    // Whether the mean of a cluster may have changed since this was last asked.
    bool has_changed(std::size_t cluster) { return std::exchange(changed_[cluster], false); }

private:
    // The sums of a cluster in a batch: exact, touched by moved rows, or lost to cancellation.
    enum Mark : std::uint8_t { kExact, kDirty, kCancelled };

    // Scratch memory of one thread.
    struct SumScratch {
        Buffer<double> means, rests;  // (k, d)
        Buffer<double> quarters;      // (k, 4)
        std::vector<double> point;
        std::vector<float> stale;          // per cluster: 1 if it is summed again
        Buffer<std::uint32_t> stale_rows;  // the rows of these
    };

    void reassign(const Reassignment &reassign, SumScratch &scratch);
    std::size_t list_stale_rows(const WorkingBatch &batch, SumScratch &scratch) const;
    void sum(std::size_t b, std::uint8_t from_mark, std::size_t first, std::size_t last,
             SumScratch &scratch);
    void weigh(WorkingBatch &batch, const SumScratch &scratch, std::size_t n_stale_rows) const;
    void recompute(std::uint8_t from_mark);
    void scatter(std::size_t b, SumScratch &scratch);

    std::vector<WorkingBatch> &batches_;
    const std::size_t k_, d_;
    const InstructionSet &set_;
    Team &team_;
    std::vector<std::vector<std::uint8_t>> marks_, scatter_marks_;  // per batch and cluster
    std::vector<std::uint8_t> counted_;           // per batch: masses belong to the labels
    std::vector<std::vector<double>> cancelled_;  // per batch and cluster: mass gone since exact
    std::vector<std::uint8_t> changed_;           // per cluster
    std::vector<double> masses_;
    std::vector<SumScratch> scratch_;  // one per worker
    Buffer<double> gaps_;  // per batch and cluster: squared distance from its mean to the centroid
};

}  // namespace kmeander
