// Out of memory at every allocation in turn: std::bad_alloc, no leak, and the next run is as if
// nothing had happened.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <new>
#include <random>
#include <vector>

#include "allocation_failures.hpp"
#include "kmeans/batch.hpp"
#include "kmeans/coreset.hpp"
#include "kmeans/distances.hpp"
#include "kmeans/lloyd.hpp"
#include "kmeans/local_search.hpp"
#include "kmeans/seeding.hpp"
#include "kmeans/split_merge.hpp"
#include "tracking/explanation.hpp"
#include "tracking/modality.hpp"

namespace kmeander {
namespace {

// Numbers that a run gives out; equal runs give equal bits.
using Result = std::vector<double>;

template <class Values>
void append(Result &result, const Values &values) {
    result.insert(result.end(), values.begin(), values.end());
}

void expect_bad_alloc_at_every_allocation(const std::function<Result()> &run) {
    const Result expected = run();  // starts the threads, too
    std::int64_t n = 1;
    for (;; ++n) {
        const std::int64_t n_live = testing::n_live_blocks();
        bool threw = false;
        testing::fail_allocation(n);
        try {
            run();
        } catch (const std::bad_alloc &) {
            threw = true;
        }
        const bool failed = testing::stop_failing();
        ASSERT_EQ(threw, failed) << "allocation " << n;
        ASSERT_EQ(testing::n_live_blocks(), n_live) << "allocation " << n;
        ASSERT_EQ(run(), expected) << "after allocation " << n << " failed";
        if (!failed) break;
    }
    EXPECT_GT(n, 3) << "hardly anything was allocated";
}

// A window of two batches, so large that three threads share its loops.
class OutOfMemory : public ::testing::TestWithParam<std::size_t> {
protected:
    static constexpr std::size_t kRows = 5000, kBatches = 2, kColumns = 4;

    static std::vector<double> random_values(std::size_t count) {
        std::mt19937_64 random(3);
        std::normal_distribution<double> normal;
        std::vector<double> values(count);
        for (double &value : values) value = normal(random);
        return values;
    }

    PointsView batch(std::size_t b) const {
        return {points_.data() + b * kRows * kColumns, false, kRows, kColumns};
    }

    std::vector<double> first_rows(std::size_t k) const {
        return {points_.begin(), points_.begin() + static_cast<std::ptrdiff_t>(k * kColumns)};
    }

    // Lloyd from the first rows, with the arrays that it fills.
    struct LloydArrays {
        std::vector<double> centroids, masses, sums, scatter, cluster_masses;
        std::vector<std::int32_t> labels;
        std::vector<float> upper, lower;
        std::vector<WorkingBatch> batches;
    };

    LloydArrays arrays(std::size_t k) const {
        const std::size_t n = kRows * kBatches;
        LloydArrays a{first_rows(k),
                      std::vector<double>(kBatches * k),
                      std::vector<double>(kBatches * k * kColumns),
                      std::vector<double>(kBatches * k),
                      std::vector<double>(k),
                      std::vector<std::int32_t>(n, -1),
                      std::vector<float>(n),
                      std::vector<float>(n),
                      {}};
        for (std::size_t b = 0; b < kBatches; ++b)
            a.batches.push_back({.rows = batch(b),
                                 .decay = b == 0 ? 0.5 : 1.0,
                                 .labels = a.labels.data() + b * kRows,
                                 .upper = a.upper.data() + b * kRows,
                                 .lower = a.lower.data() + b * kRows,
                                 .masses = a.masses.data() + b * k,
                                 .sums = a.sums.data() + b * k * kColumns,
                                 .scatter = a.scatter.data() + b * k});
        return a;
    }

    Result run_lloyd(std::size_t k, LloydArrays &a) const {
        const LloydReport report =
            lloyd(a.batches, k, a.centroids.data(),
                  {.max_iter = 4, .shift = 0.0, .n_threads = GetParam()}, a.cluster_masses.data());
        Result result = {report.first.window, report.last.window,
                         static_cast<double>(report.n_distances)};
        append(result, a.centroids);
        append(result, a.labels);
        append(result, a.upper);
        append(result, a.lower);
        append(result, a.scatter);
        return result;
    }

    const std::vector<double> points_ = random_values(kRows * kBatches * kColumns);
};

// Few centroids: undecided points are measured against all of them.
TEST_P(OutOfMemory, InLloydWithFewCentroids) {
    expect_bad_alloc_at_every_allocation([this] {
        LloydArrays a = arrays(150);
        return run_lloyd(150, a);
    });
}

// Many: blocks of centroids are ruled out by bounds.
TEST_P(OutOfMemory, InLloydWithManyCentroids) {
    expect_bad_alloc_at_every_allocation([this] {
        LloydArrays a = arrays(200);
        return run_lloyd(200, a);
    });
}

TEST_P(OutOfMemory, InLocalSearch) {
    constexpr std::size_t k = 200;
    LloydArrays start = arrays(k);
    run_lloyd(k, start);
    const std::vector<double> uniforms = {0.1, 0.3, 0.5, 0.7, 0.9};
    expect_bad_alloc_at_every_allocation([&] {
        std::vector<std::int32_t> labels = start.labels;
        std::vector<float> upper = start.upper, lower = start.lower;
        std::vector<double> centroids = start.centroids;
        std::vector<WorkingBatch> batches;
        for (std::size_t b = 0; b < kBatches; ++b)
            batches.push_back({.rows = batch(b),
                               .decay = start.batches[b].decay,
                               .labels = labels.data() + b * kRows,
                               .upper = upper.data() + b * kRows,
                               .lower = lower.data() + b * kRows,
                               .snapshot = centroids.data()});
        const SwapReport report = swap_centroids(batches, k, centroids.data(), uniforms.data(),
                                                 uniforms.size(), GetParam());
        Result result = {static_cast<double>(report.n_swaps)};
        append(result, centroids);
        append(result, labels);
        return result;
    });
}

TEST_P(OutOfMemory, InSplitMerge) {
    constexpr std::size_t k = 200;
    LloydArrays start = arrays(k);
    run_lloyd(k, start);
    const std::vector<double> uniforms(2 * k, 0.4);
    expect_bad_alloc_at_every_allocation([&] {
        std::vector<std::int32_t> labels = start.labels;
        std::vector<float> upper = start.upper, lower = start.lower;
        std::vector<double> centroids = start.centroids;
        std::vector<WorkingBatch> batches;
        for (std::size_t b = 0; b < kBatches; ++b)
            batches.push_back({.rows = batch(b),
                               .decay = start.batches[b].decay,
                               .labels = labels.data() + b * kRows,
                               .upper = upper.data() + b * kRows,
                               .lower = lower.data() + b * kRows,
                               .snapshot = centroids.data()});
        const SplitMergeReport report =
            split_and_merge(batches, k, centroids.data(), uniforms.data(), GetParam());
        Result result = {static_cast<double>(report.split.size())};
        append(result, centroids);
        append(result, labels);
        return result;
    });
}

TEST_P(OutOfMemory, InSeeding) {
    const PointsView all = {points_.data(), false, kRows * kBatches, kColumns};
    const std::vector<double> uniforms(20, 0.4);
    expect_bad_alloc_at_every_allocation([&] {
        std::vector<std::int64_t> chosen(uniforms.size());
        std::vector<std::int32_t> labels(all.count);
        std::vector<float> upper(all.count), lower(all.count);
        std::vector<double> seeds;
        seed(all, nullptr, uniforms.data(), uniforms.size(), GetParam(), chosen.data(),
             labels.data(), upper.data(), lower.data(), seeds);
        Result result(chosen.begin(), chosen.end());
        append(result, labels);
        append(result, upper);
        return result;
    });
}

TEST_P(OutOfMemory, InFullPasses) {
    const PointsView all = {points_.data(), false, kRows * kBatches, kColumns};
    const std::vector<double> centroids = first_rows(200);
    expect_bad_alloc_at_every_allocation([&] {
        std::vector<std::int32_t> labels(all.count);
        std::vector<float> upper(all.count), lower(all.count);
        const MeanError found = measure(all, nullptr, centroids.data(), 200, GetParam(),
                                        labels.data(), upper.data(), lower.data());
        Result result = {found.error, found.relative};
        append(result, labels);
        return result;
    });
}

TEST_P(OutOfMemory, InCoresets) {
    expect_bad_alloc_at_every_allocation([&] {
        std::vector<double> means(50 * kColumns), masses(50);
        const CoresetSize found = summarise(batch(0), nullptr, 50, means.data(), masses.data());
        Result result = {found.within};
        append(result, means);
        return result;
    });
}

TEST_P(OutOfMemory, InExplanations) {
    const std::vector<double> centroids = first_rows(3);
    std::vector<std::int32_t> labels(kRows);
    for (std::size_t i = 0; i < kRows; ++i) labels[i] = static_cast<std::int32_t>(i % 3);
    std::vector<LabelledBatch> batches;
    for (int repeated = 0; repeated < 60; ++repeated)
        batches.push_back({.rows = batch(0), .labels = labels.data()});
    expect_bad_alloc_at_every_allocation([&] {
        Moments older(centroids.data(), 3, kColumns), newest(centroids.data(), 3, kColumns);
        older.add(batches, GetParam());
        newest.add({{.rows = batch(1), .labels = labels.data()}}, GetParam());
        const ErrorDecomposition found = explain(older, newest, 3, kColumns, 2);
        Result result = {found.difference};
        append(result, found.clusters);
        return result;
    });
}

TEST_P(OutOfMemory, InTestsOfModality) {
    const std::vector<double> centroids = first_rows(3), masses(3, 1700.0);
    std::vector<std::int32_t> labels(kRows);
    for (std::size_t i = 0; i < kRows; ++i) labels[i] = static_cast<std::int32_t>(i % 3);
    const std::vector<LabelledBatch> batches = {{.rows = batch(0), .labels = labels.data()}};
    expect_bad_alloc_at_every_allocation([&] {
        std::vector<std::int32_t> neighbours(3);
        std::vector<double> as_one(3), as_two(3);
        score_dips(batches, centroids.data(), 3, masses.data(), 256, 0.5, neighbours.data(),
                   as_one.data(), as_two.data());
        Result result(as_one);
        append(result, as_two);
        return result;
    });
}

INSTANTIATE_TEST_SUITE_P(Threads, OutOfMemory, ::testing::Values(1, 3),
                         [](const auto &info) { return std::to_string(info.param); });

}  // namespace
}  // namespace kmeander
