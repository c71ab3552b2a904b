// Interruption: the caller is asked now and then, and its helpers stop with it.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "parallel/costs.hpp"
#include "parallel/interruption.hpp"
#include "parallel/team.hpp"

namespace kmeander {
namespace {

constexpr double kAlways = 1e12;  // enough work to share any loop, and to check after each item
constexpr auto kLong = std::chrono::milliseconds(2 * costs::kAskEvery);

TEST(Interruption, NobodyIsAskedWhereNobodyListens) { EXPECT_NO_THROW(check_interruption()); }

TEST(Interruption, AShortCallIsNotAsked) {
    const Interruptible listening([] { return true; });
    EXPECT_NO_THROW(check_interruption());
}

TEST(Interruption, ALongLoopStopsForAnyNumberOfWorkers) {
    for (const std::size_t n_workers : {1, 3}) {
        Team team(n_workers);
        std::atomic<int> n_done{0};
        const Interruptible listening([] { return true; });
        const auto task = [&](std::size_t, std::size_t) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            ++n_done;
        };
        EXPECT_THROW(team.run(1000, kAlways, task), Interrupted);
        EXPECT_LT(n_done, 1000);
    }
}

TEST(Interruption, ALongItemOfAHelperStopsWithTheCaller) {
    Team team(2);
    if (team.size() < 2) GTEST_SKIP() << "no threads to be had";
    const Interruptible listening([] { return true; });
    std::atomic<bool> given_up{false};
    const auto task = [&](std::size_t, std::size_t worker) {
        if (worker == 0) {  // let the other take the long item
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            return;
        }
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while (std::chrono::steady_clock::now() < end) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
            check_interruption();
        }
        given_up = true;
    };
    EXPECT_THROW(team.run(200, kAlways, task), Interrupted);
    EXPECT_FALSE(given_up);
}

TEST(Interruption, ATeamThatWasStoppedWorksAgain) {
    Team team(3);
    const auto wait = [](std::size_t, std::size_t) { std::this_thread::sleep_for(kLong / 20); };
    {
        const Interruptible listening([] { return true; });
        EXPECT_THROW(team.run(1000, kAlways, wait), Interrupted);
    }
    std::atomic<int> n_done{0};
    team.run(100, kAlways, [&](std::size_t, std::size_t) { ++n_done; });
    EXPECT_EQ(n_done, 100);
}

}  // namespace
}  // namespace kmeander
