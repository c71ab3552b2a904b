// Tests of Partition: slicing, renumbering, warm-started fits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "kmeans/distances.hpp"
#include "kmeans/partition.hpp"
#include "kmeans/window_fit.hpp"

namespace kmeander {
namespace {

// Six points in two batches of two and four, three clusters in one column.
Partition six_points() {
    const auto points = std::make_shared<PointArrays>(6);
    for (std::int32_t i = 0; i < 6; ++i) {
        points->labels[i] = i % 3;
        points->upper[i] = static_cast<float>(i);
        points->lower[i] = static_cast<float>(10 + i);
    }
    points->snapshot = {7.0, 8.0, 9.0};
    points->k = 3;
    points->d = 1;
    const auto sums = std::make_shared<SumArrays>(2, 3, 1);
    std::iota(sums->masses.data(), sums->masses.data() + 6, 0.0);
    std::iota(sums->sums.data(), sums->sums.data() + 6, 20.0);
    std::iota(sums->scatter.data(), sums->scatter.data() + 6, 40.0);
    return Partition(points, ClusterSums(sums));
}

TEST(Partition, SharesItsArraysWithWhatIsLeft) {
    const Partition all = six_points(), rest = all.without(1, 2);
    EXPECT_EQ(rest.n_points(), 4U);
    EXPECT_EQ(rest.labels().data(), all.labels().data() + 2);
    EXPECT_EQ(rest.bounds().upper().front(), 2.0F);
    EXPECT_EQ(rest.bounds().lower().back(), 15.0F);
    EXPECT_EQ(rest.sums()->n_batches(), 1U);
    EXPECT_EQ(rest.sums()->masses()[0], 3.0);
    EXPECT_EQ(rest.sums()->sums()[0], 23.0);
    EXPECT_EQ(rest.sums()->scatter()[2], 45.0);
    const Partition first = all.of_first_batch(2);
    EXPECT_EQ(first.n_points(), 2U);
    EXPECT_EQ(first.sums()->n_batches(), 1U);
    EXPECT_EQ(first.sums()->masses()[2], 2.0);
}

TEST(Partition, RefusesToLoseMoreThanItHas) {
    const Partition all = six_points();
    EXPECT_THROW(all.without(0, 7), std::invalid_argument);
    EXPECT_THROW(all.without(3, 0), std::invalid_argument);
    EXPECT_THROW(all.without(1, 2).without(2, 0), std::invalid_argument);
    EXPECT_EQ(all.without(2, 6).n_points(), 0U);
}

TEST(Partition, KnowsItsLastLabelsByCluster) {
    const Partition all = six_points();
    EXPECT_EQ(all.last_labels(4, 3).front(), 2);
    EXPECT_THROW(all.last_labels(7, 3), std::invalid_argument);
    EXPECT_THROW(all.last_labels(4, 2), std::invalid_argument);
}

TEST(Partition, IsNumberedAnew) {
    const std::vector<std::int64_t> order = {2, 0, 1};
    const Partition renumbered = six_points().without(1, 2).renumbered(order);
    const std::vector<std::int32_t> labels(renumbered.labels().begin(), renumbered.labels().end());
    EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 1, 2, 0}));
    EXPECT_EQ(renumbered.bounds().snapshot()[0], 9.0);
    EXPECT_FALSE(renumbered.sums().has_value());
    EXPECT_THROW(six_points().renumbered(std::vector<std::int64_t>{0, 0, 1}),
                 std::invalid_argument);
}

class ThreeBatches : public ::testing::Test {
protected:
    ThreeBatches() : points_(3 * kRows * kColumns) {
        std::mt19937_64 random(5);
        std::normal_distribution<double> normal;
        for (double &value : points_) value = normal(random);
    }

    // Batches [first, end) as a window; the last is the newest.
    DecayedWindow window(std::size_t first, std::size_t end) const {
        std::vector<BatchView> batches;
        std::vector<double> decay;
        for (std::size_t b = first; b < end; ++b) {
            batches.push_back({{points_.data() + b * kRows * kColumns, false, kRows, kColumns},
                               nullptr,
                               static_cast<double>(kRows)});
            decay.push_back(std::pow(0.5, static_cast<double>(end - 1 - b)));
        }
        return DecayedWindow(batches, decay);
    }

    static LloydLimits limits(std::size_t max_iter) { return {max_iter, 0.0, 1}; }

    static constexpr std::size_t kRows = 40, kColumns = 2, kClusters = 4;

    std::vector<double> points_;
    std::vector<double> masses_ = std::vector<double>(kClusters);
};

TEST_F(ThreeBatches, GivesTheSameFitWhateverIsKnown) {
    std::vector<double> centroids(points_.begin(), points_.begin() + kClusters * kColumns);
    const LloydFit before = fit_window(window(0, 2), {}, centroids.data(), {kClusters, kColumns},
                                       limits(50), masses_.data());
    const Partition older = before.partition.without(1, kRows);
    std::vector<double> known = centroids, blank = centroids;
    const LloydFit one = fit_window(window(1, 3), {&older, nullptr}, known.data(),
                                    {kClusters, kColumns}, limits(50), masses_.data());
    const LloydFit other = fit_window(window(1, 3), {}, blank.data(), {kClusters, kColumns},
                                      limits(50), masses_.data());
    EXPECT_EQ(known, blank);
    EXPECT_TRUE(std::equal(one.partition.labels().begin(), one.partition.labels().end(),
                           other.partition.labels().begin()));
    EXPECT_LT(one.report.n_distances, other.report.n_distances);
}

TEST_F(ThreeBatches, IsSearchedOnlyWhereAllPointsAreKnownAtTheCentroids) {
    std::vector<double> centroids(points_.begin(), points_.begin() + kClusters * kColumns);
    const std::vector<double> uniforms = {0.3};
    const LloydFit fit = fit_window(window(0, 2), {}, centroids.data(), {kClusters, kColumns},
                                    limits(50), masses_.data());
    const Partition older = fit.partition.without(1, kRows);
    const auto search = [&](std::size_t end, const Partition *known, double shift) {
        std::vector<double> start = centroids;
        start[0] += shift;
        return search_window(window(1, end), {known, nullptr}, start.data(), {kClusters, kColumns},
                             uniforms, 1);
    };
    EXPECT_TRUE(search(2, &older, 0.0).has_value());
    EXPECT_FALSE(search(2, &older, 1.0).has_value());  // other centroids
    EXPECT_FALSE(search(2, nullptr, 0.0).has_value());
    EXPECT_FALSE(search(3, &older, 0.0).has_value());  // the newest batch is not known
}

TEST_F(ThreeBatches, WeighsClustersByTheAgeOfTheirPoints) {
    const Partition labels(std::vector<std::int32_t>(3 * kRows, 1), nullptr, nullptr);
    window(0, 3).cluster_masses(labels, masses_);
    EXPECT_EQ(masses_, (std::vector<double>{0.0, static_cast<double>(kRows) * 1.75, 0.0, 0.0}));
}

}  // namespace
}  // namespace kmeander
