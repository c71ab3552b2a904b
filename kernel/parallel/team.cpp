#include "parallel/team.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace kmeander {

constexpr std::chrono::microseconds kLookOut(200);

// Below so many multiplications, to share a loop costs more than it gives, with threads that look
// out; and per thread, to start a call with threads that sleep.
constexpr double kOperationsToShare = 2.0e6, kOperationsPerThread = 2.5e6;

// A set of threads. They are never joined: they sleep until the process ends.
class Crew {
public:
    // Have at least so many workers, the caller among them, if the system grants them: with fewer
    // the same answer comes, later.
    void grow(std::size_t n_workers) {
        while (n_threads_ + 1 < n_workers) {
            try {
                const std::size_t worker = n_threads_ + 1;
                std::thread([this, worker] { serve(worker); }).detach();
            } catch (const std::system_error &) {
                return;
            }
            ++n_threads_;
        }
    }

    std::size_t n_workers() const { return n_threads_ + 1; }

    void run(std::size_t n_items, std::size_t n_workers, const Team::Task &task) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            task_ = &task;
            n_items_ = n_items;
            next_ = 0;
            active_ = n_workers;
            ++round_;
        }
        begin_.notify_all();
        work(0);
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            active_ = 0;  // who has not come until now comes too late
        }
        look_out([this] { return busy_ == 0; });
        std::unique_lock<std::mutex> lock(mutex_);
        end_.wait(lock, [this] { return busy_ == 0; });
    }

private:
    void serve(std::size_t worker) {
        std::size_t seen = 0;
        for (;;) {
            look_out([&] { return round_ != seen; });
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

    // Rounds of one call follow each other closely, threads end them at nearly the same time, and
    // it takes long to be woken: look out for what is awaited before going to sleep.
    template <class Condition>
    static void look_out(const Condition &has_come) {
        const auto enough = std::chrono::steady_clock::now() + kLookOut;
        while (!has_come() && std::chrono::steady_clock::now() < enough) std::this_thread::yield();
    }

    void work(std::size_t worker) {
        for (std::size_t item = next_++; item < n_items_; item = next_++) (*task_)(item, worker);
    }

    std::mutex mutex_;
    std::condition_variable begin_, end_;
    const Team::Task *task_ = nullptr;
    std::size_t n_items_ = 0;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::size_t> round_{0}, busy_{0};
    std::size_t active_ = 0, n_threads_ = 0;
};

namespace {

// The crews that no call has at present. Never destroyed: their threads outlive everything.
class Idle {
public:
    static Idle &crews() {
        static Idle *const idle = new Idle;
        return *idle;
    }

    std::unique_ptr<Crew> take() {
        const std::lock_guard<std::mutex> lock(*mutex_);
        if (crews_->empty()) return std::make_unique<Crew>();
        std::unique_ptr<Crew> crew = std::move(crews_->back());
        crews_->pop_back();
        return crew;
    }

    void give_back(std::unique_ptr<Crew> crew) {
        const std::lock_guard<std::mutex> lock(*mutex_);
        crews_->push_back(std::move(crew));
    }

private:
    Idle() {
        renew();
#if defined(__unix__) || defined(__APPLE__)
        // The child of a fork has no threads but the one that forked, and its mutexes may be
        // locked for good: it leaves all crews where they are and begins with none.
        pthread_atfork(nullptr, nullptr, [] { crews().renew(); });
#endif
    }

    void renew() {
        mutex_ = new std::mutex;
        crews_ = new std::vector<std::unique_ptr<Crew>>;
    }

    std::mutex *mutex_;
    std::vector<std::unique_ptr<Crew>> *crews_;
};

}  // namespace

Team::Team(std::size_t n_workers) {
    if (n_workers < 2) return;
    crew_ = Idle::crews().take();
    crew_->grow(n_workers);
    size_ = std::min(n_workers, crew_->n_workers());
}

Team::~Team() {
    if (crew_) Idle::crews().give_back(std::move(crew_));
}

void Team::run(std::size_t n_items, double operations, const Task &task) {
    if (n_items < 2 || size_ < 2 || operations < kOperationsToShare) {
        for (std::size_t item = 0; item < n_items; ++item) task(item, 0);
        return;
    }
    crew_->run(n_items, size_, task);
}

std::size_t worth_starting(std::size_t n_threads, double operations) {
    const double useful = operations / kOperationsPerThread;
    if (useful < 2.0 || n_threads < 2) return 1;
    return useful < static_cast<double>(n_threads) ? static_cast<std::size_t>(useful) : n_threads;
}

}  // namespace kmeander
