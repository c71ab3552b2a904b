// Interruption: who is asked, and when next, for each thread.
#include "parallel/interruption.hpp"

#include <chrono>

#include "parallel/costs.hpp"

namespace kmeander {
namespace {

using Clock = std::chrono::steady_clock;

struct Listener {
    Interruptible::Asked asked = nullptr;
    Clock::time_point next;
    const std::atomic<bool> *stopped = nullptr;  // of the team that the thread helps
};

thread_local Listener listener;

Clock::time_point after_a_while() {
    return Clock::now() + std::chrono::milliseconds(costs::kAskEvery);
}

}  // namespace

Interruptible::Interruptible(Asked asked) {
    listener.asked = asked;
    listener.next = after_a_while();
}

Interruptible::~Interruptible() { listener.asked = nullptr; }

void check_interruption() {
    if (listener.stopped != nullptr && listener.stopped->load(std::memory_order_relaxed))
        throw Interrupted();
    if (listener.asked == nullptr || Clock::now() < listener.next) return;
    listener.next = after_a_while();
    if (listener.asked()) throw Interrupted();
}

void stop_with(const std::atomic<bool> &stopped) { listener.stopped = &stopped; }

}  // namespace kmeander
