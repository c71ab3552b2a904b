// Thread pool: persistent workers that spin, then sleep, between the loops of a call.
#include "parallel/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "parallel/costs.hpp"
#include "parallel/interruption.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace kmeander {

// A set of threads. They are never joined: they sleep until the process ends.
class Workers {
public:
    // Have at least n_workers, the caller among them, if the system grants them: with fewer
    // the same answer comes, later.
    void grow(std::size_t n_workers) {
        while (n_threads_ + 1 < n_workers) {
            try {
                const std::size_t worker = n_threads_ + 1;
                std::thread([this, worker] { serve(worker); }).detach();
            } catch (const std::system_error &) {
                return;
            } catch (const std::bad_alloc &) {
                return;
            }
            ++n_threads_;
        }
    }

    std::size_t n_workers() const { return n_threads_ + 1; }

    void run(std::size_t n_items, std::size_t n_workers, std::size_t stride,
             const Team::Task &task) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            task_ = &task;
            n_items_ = n_items;
            stride_ = stride;
            stopped_ = false;
            next_ = 0;
            active_ = n_workers;
            ++round_;
        }
        begin_.notify_all();
        work(0);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            active_ = 0;  // a worker that has not begun by now begins too late
        }
        spin_until([this] { return busy_ == 0; });
        std::unique_lock<std::mutex> lock(mutex_);
        // The others' last items may be long: the caller goes on asking whether they are to stop.
        while (!end_.wait_for(lock, std::chrono::milliseconds(costs::kAskEvery),
                              [this] { return busy_ == 0; })) {
            if (failure_) continue;
            lock.unlock();
            std::exception_ptr asked;
            try {
                check_interruption();
            } catch (...) {
                asked = std::current_exception();
            }
            if (asked) fail(asked);
            lock.lock();
        }
        // Nobody holds the task any more: only now may the caller's frame be unwound.
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    }

    // The next in the list of idle ones.
    Workers *next_idle = nullptr;

private:
    void serve(std::size_t worker) {
        stop_with(stopped_);
        std::size_t seen = 0;
        for (;;) {
            spin_until([&] { return round_ != seen; });
            {
                std::unique_lock<std::mutex> lock(mutex_);
                begin_.wait(lock, [&] { return round_ != seen; });
                seen = round_;
                if (worker >= active_) continue;  // not asked, or too late
                ++busy_;
            }
            work(worker);
            const std::lock_guard<std::mutex> lock(mutex_);
            if (--busy_ == 0) end_.notify_one();
        }
    }

    // Rounds of one call follow each other closely, threads end them at nearly the same time, and a
    // sleeping thread takes long to wake: spin for a while before going to sleep.
    template <class Condition>
    static void spin_until(const Condition &has_come) {
        const auto deadline =
            std::chrono::steady_clock::now() + std::chrono::microseconds(costs::kSpinTime);
        while (!has_come() && std::chrono::steady_clock::now() < deadline)
            std::this_thread::yield();
    }

    void work(std::size_t worker) {
        try {
            std::size_t n_done = 0;
            for (std::size_t item = next_++; item < n_items_; item = next_++) {
                (*task_)(item, worker);
                if (++n_done < stride_) continue;
                n_done = 0;
                check_interruption();
            }
        } catch (...) {
            fail(std::current_exception());
        }
    }

    // Begin no further item, and let long ones stop.
    void fail(const std::exception_ptr &failure) {
        next_ = n_items_;
        stopped_ = true;
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_) failure_ = failure;
    }

    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const Team::Task *task_ = nullptr;
    std::size_t n_items_ = 0;
    std::size_t stride_ = 1;  // items between two checks for an interruption
    std::atomic<bool> stopped_{false};
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> round_{0}, busy_{0};
    std::size_t active_ = 0, n_threads_ = 0;
    std::exception_ptr failure_;  // the first of the round
};

namespace {

// The sets of threads that no call has at present. Never destroyed: their threads outlive
// everything. A linked list, so that giving back allocates nothing and cannot fail.
class IdleWorkers {
public:
    static IdleWorkers &all() {
        static IdleWorkers *const idle = new IdleWorkers;
        return *idle;
    }

    Workers *take() {
        const std::lock_guard<std::mutex> lock(mutex());
        if (first_ == nullptr) return new Workers;
        return std::exchange(first_, first_->next_idle);
    }

    void give_back(Workers *workers) {
        const std::lock_guard<std::mutex> lock(mutex());
        workers->next_idle = first_;
        first_ = workers;
    }

private:
    IdleWorkers() {
        forget();
#if defined(__unix__) || defined(__APPLE__)
        // The child of a fork has no threads but the one that forked, and its mutexes may be
        // locked for good: it leaves all workers where they are and begins with none.
        pthread_atfork(nullptr, nullptr, [] { all().forget(); });
#endif
    }

    // A new mutex in the old one's place: that one may be locked, and a child of a fork should not
    // have to allocate.
    void forget() {
        new (mutex_) std::mutex;
        first_ = nullptr;
    }

    std::mutex &mutex() { return *std::launder(reinterpret_cast<std::mutex *>(mutex_)); }

    alignas(std::mutex) std::byte mutex_[sizeof(std::mutex)];
    Workers *first_;
};

}  // namespace

namespace {

std::size_t items_per_check(std::size_t n_items, double operations) {
    const double n_checks = operations / costs::kPerCheck;
    if (n_checks < 1.0 || n_items < 2) return std::max<std::size_t>(n_items, 1);
    return std::max<std::size_t>(1, static_cast<std::size_t>(n_items / n_checks));
}

}  // namespace

Team::Team(std::size_t n_workers) {
    if (n_workers < 2) return;
    workers_ = IdleWorkers::all().take();
    workers_->grow(n_workers);
    size_ = std::min(n_workers, workers_->n_workers());
}

Team::~Team() {
    if (workers_ != nullptr) IdleWorkers::all().give_back(workers_);
}

void Team::run(std::size_t n_items, double operations, const Task &task) {
    const std::size_t stride = items_per_check(n_items, operations);
    if (n_items < 2 || size_ < 2 || operations < costs::kToShareLoop) {
        for (std::size_t begin = 0; begin < n_items; begin += stride) {
            check_interruption();
            const std::size_t end = std::min(begin + stride, n_items);
            for (std::size_t item = begin; item < end; ++item) task(item, 0);
        }
        return;
    }
    workers_->run(n_items, size_, stride, task);
}

std::size_t worth_starting(std::size_t n_threads, double operations) {
    const double useful = operations / costs::kPerThread;
    if (useful < 2.0 || n_threads < 2) return 1;
    return useful < static_cast<double>(n_threads) ? static_cast<std::size_t>(useful) : n_threads;
}

}  // namespace kmeander
