#include "team.hpp"

#include <system_error>

namespace kmeander {

Team::Team(std::size_t n_workers) {
    threads_.reserve(n_workers);
    for (std::size_t worker = 1; worker < n_workers; ++worker) {
        try {
            threads_.emplace_back([this, worker] { serve(worker); });
        } catch (const std::system_error &) {
            break;  // The system grants no more threads: the same answer comes, later.
        }
    }
}

Team::~Team() {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        over_ = true;
    }
    begin_.notify_all();
    for (std::thread &thread : threads_) thread.join();
}

void Team::run(std::size_t n_items, const Task &task) {
    if (threads_.empty() || n_items < 2) {
        for (std::size_t item = 0; item < n_items; ++item) task(item, 0);
        return;
    }
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        task_ = &task;
        n_items_ = n_items;
        next_ = 0;
        busy_ = threads_.size();
        ++round_;
    }
    begin_.notify_all();
    work(0);
    std::unique_lock<std::mutex> lock(mutex_);
    end_.wait(lock, [this] { return busy_ == 0; });
}

void Team::serve(std::size_t worker) {
    std::size_t seen = 0;
    for (;;) {
        {
            std::unique_lock<std::mutex> lock(mutex_);
            begin_.wait(lock, [&] { return over_ || round_ != seen; });
            if (over_) return;
            seen = round_;
        }
        work(worker);
        const std::lock_guard<std::mutex> lock(mutex_);
        if (--busy_ == 0) end_.notify_one();
    }
}

void Team::work(std::size_t worker) {
    for (std::size_t item = next_++; item < n_items_; item = next_++) (*task_)(item, worker);
}

std::size_t worth_starting(std::size_t n_threads, double operations) {
    // Below about two million multiplications a pass, waking a thread costs more than it gives.
    constexpr double kOperationsPerThread = 1e6;
    const double useful = operations / kOperationsPerThread;
    if (useful < 2.0 || n_threads < 2) return 1;
    return useful < static_cast<double>(n_threads) ? static_cast<std::size_t>(useful) : n_threads;
}

}  // namespace kmeander
