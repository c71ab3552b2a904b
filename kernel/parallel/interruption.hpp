// Interruption: a call that takes long asks now and then whether it is to stop.
//
// Who calls the kernel says how to ask, for as long as an Interruptible lives; only the thread that
// made it asks. The threads that help it learn the answer from their team. Loops check between
// items, long items check within.
#pragma once

#include <atomic>

namespace kmeander {

// Thrown when a call is to stop; what it was writing is then half written.
struct Interrupted {};

class Interruptible {
public:
    using Asked = bool (*)();

    explicit Interruptible(Asked asked);
    ~Interruptible();
    Interruptible(const Interruptible &) = delete;
    Interruptible &operator=(const Interruptible &) = delete;
};

// Throw Interrupted if the call is to stop. Costs a look at the clock; asks every kAskEvery.
void check_interruption();

// From now on this thread stops where `stopped` is set: it helps others, and asks nobody itself.
void stop_with(const std::atomic<bool> &stopped);

}  // namespace kmeander
