// Thread pool: workers that share the items of a task.
//
// Threads are kept from call to call, each set lent to one call at a time: two calls at once get
// two sets. They touch nothing of NumPy's or scikit-learn's pools. A forked child has none of its
// parent's threads and starts its own. Who does which item never shows in a result: each item
// writes its own slot, and slots are read in item order by the caller.
#pragma once

#include <cstddef>
#include <functional>

namespace kmeander {

class Workers;

class Team {
public:
    using Task = std::function<void(std::size_t item, std::size_t worker)>;

    explicit Team(std::size_t n_workers);
    ~Team();
    Team(const Team &) = delete;
    Team &operator=(const Team &) = delete;

    std::size_t size() const { return size_; }

    // Do task(item, worker) for every item in [0, n_items). `operations` estimates all of it in
    // multiply-adds of a full pass: where that is too little to share, the caller works alone.
    // A task may throw: then no further item is begun, and once all workers have stopped the first
    // exception is thrown to the caller. So is Interrupted, where the call is to stop.
    void run(std::size_t n_items, double operations, const Task &task);

private:
    Workers *workers_ = nullptr;  // none where the caller works alone
    std::size_t size_ = 1;
};

// Workers worth starting: none beside the caller where a pass is too short to share.
std::size_t worth_starting(std::size_t n_threads, double operations);

}  // namespace kmeander
