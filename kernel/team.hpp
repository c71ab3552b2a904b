// Threads for the length of one kernel call.
//
// They start with the call and end with it, so no thread outlives a fork and nothing
// meets NumPy's or scikit-learn's pools. Who does which item never shows in a result:
// each item writes its own slot, and slots are added in item order by the caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace kmeander {

class Team {
public:
    using Task = std::function<void(std::size_t item, std::size_t worker)>;

    explicit Team(std::size_t n_workers);
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    std::size_t size() const { return threads_.size() + 1; }

    // Do task(item, worker) for every item in [0, n_items); tasks must not throw.
    void run(std::size_t n_items, const Task &task);

private:
    void serve(std::size_t worker);
    void work(std::size_t worker);

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const Task *task_ = nullptr;
    std::size_t n_items_ = 0;
    std::atomic<std::size_t> next_{0};
    std::size_t round_ = 0;
    std::size_t busy_ = 0;
    bool over_ = false;
};

// Workers worth starting: none beside the caller where a pass is too short to share.
std::size_t worth_starting(std::size_t n_threads, double operations);

}  // namespace kmeander
