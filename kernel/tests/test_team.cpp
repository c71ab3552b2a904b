// The thread team: every item once, and exceptions that leave it whole.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parallel/costs.hpp"
#include "parallel/team.hpp"

namespace kmeander {
namespace {

constexpr double kAlways = 1e12;  // enough work to share any loop

TEST(Team, DoesEveryItemOnce) {
    for (const std::size_t n_workers : {1, 2, 5}) {
        Team team(n_workers);
        std::vector<int> done(1000);
        for (int round = 0; round < 50; ++round)
            team.run(done.size(), kAlways, [&](std::size_t item, std::size_t) { ++done[item]; });
        EXPECT_EQ(done, std::vector<int>(done.size(), 50));
    }
}

TEST(Team, DoesNotShareWhatIsTooShort) {
    Team team(4);
    const auto caller = std::this_thread::get_id();
    team.run(100, costs::kToShareLoop - 1.0, [&](std::size_t, std::size_t worker) {
        EXPECT_EQ(worker, 0U);
        EXPECT_EQ(std::this_thread::get_id(), caller);
    });
    EXPECT_EQ(worth_starting(8, 2.0 * costs::kPerThread - 1.0), 1U);
    EXPECT_EQ(worth_starting(8, 3.5 * costs::kPerThread), 3U);
    EXPECT_EQ(worth_starting(2, kAlways), 2U);
}

TEST(Team, RethrowsTheExceptionOfAnyItem) {
    for (const std::size_t n_workers : {1, 3}) {
        Team team(n_workers);
        for (std::size_t bad = 0; bad < 20; ++bad) {
            try {
                team.run(20, kAlways, [bad](std::size_t item, std::size_t) {
                    if (item == bad) throw std::runtime_error("item " + std::to_string(item));
                });
                FAIL() << "item " << bad << " threw, the team did not";
            } catch (const std::runtime_error &error) {
                EXPECT_EQ(error.what(), "item " + std::to_string(bad));
            }
        }
    }
}

TEST(Team, BeginsNoItemAfterAnException) {
    Team team(3);
    std::atomic<std::size_t> n_begun{0};
    const auto task = [&](std::size_t item, std::size_t) {
        ++n_begun;
        if (item == 0) throw 1;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    };
    EXPECT_THROW(team.run(100000, kAlways, task), int);
    EXPECT_LT(n_begun, 1000U);
}

TEST(Team, WaitsForAllWorkersBeforeItThrows) {
    Team team(3);
    for (int round = 0; round < 20; ++round) {
        std::atomic<int> n_running{0};
        const auto task = [&](std::size_t item, std::size_t) {
            ++n_running;
            if (item > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            --n_running;
            if (item == 0) throw 1;
        };
        EXPECT_THROW(team.run(3, kAlways, task), int);
        EXPECT_EQ(n_running, 0);
    }
}

TEST(Team, WorksOnAfterAnException) {
    Team team(4);
    for (int round = 0; round < 100; ++round) {
        EXPECT_THROW(team.run(8, kAlways, [](std::size_t, std::size_t) { throw 1; }), int);
        std::vector<std::size_t> found(64);
        team.run(found.size(), kAlways, [&](std::size_t item, std::size_t) { found[item] = item; });
        std::vector<std::size_t> expected(found.size());
        std::iota(expected.begin(), expected.end(), std::size_t{0});
        EXPECT_EQ(found, expected);
    }
}

TEST(Team, LendsEachCallASetOfItsOwn) {
    Team one(2), other(2);
    one.run(2, kAlways, [&](std::size_t, std::size_t) {
        std::atomic<int> n_done{0};
        Team inner(2);
        inner.run(10, kAlways, [&](std::size_t, std::size_t) { ++n_done; });
        EXPECT_EQ(n_done, 10);
    });
    std::atomic<int> n_done{0};
    other.run(10, kAlways, [&](std::size_t, std::size_t) { ++n_done; });
    EXPECT_EQ(n_done, 10);
}

}  // namespace
}  // namespace kmeander
