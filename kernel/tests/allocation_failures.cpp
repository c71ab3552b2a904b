// Global operator new that fails when a test wants it to.
#include "allocation_failures.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

namespace kmeander::testing {
namespace {

constexpr std::int64_t kNever = INT64_MAX;
std::atomic<std::int64_t> n_until_failure{kNever}, n_live{0};
std::atomic<bool> has_failed{false};

void *allocate(std::size_t size, bool may_fail = true) {
    if (may_fail && n_until_failure.load() != kNever && n_until_failure.fetch_sub(1) == 1) {
        has_failed = true;
        throw std::bad_alloc();
    }
    void *block = std::malloc(size == 0 ? 1 : size);
    if (block == nullptr) throw std::bad_alloc();
    ++n_live;
    return block;
}

void release(void *block) {
    if (block != nullptr) --n_live;
    std::free(block);
}

}  // namespace

void fail_allocation(std::int64_t n) {
    has_failed = false;
    n_until_failure = n;
}

bool stop_failing() {
    n_until_failure = kNever;
    return has_failed;
}

std::int64_t n_live_blocks() { return n_live; }

}  // namespace kmeander::testing

void *operator new(std::size_t size) { return kmeander::testing::allocate(size); }
void *operator new[](std::size_t size) { return kmeander::testing::allocate(size); }
// Who asks for a null pointer instead of an exception does without, as std::stable_sort.
void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
    return kmeander::testing::allocate(size, false);
}
void operator delete(void *block) noexcept { kmeander::testing::release(block); }
void operator delete[](void *block) noexcept { kmeander::testing::release(block); }
void operator delete(void *block, std::size_t) noexcept { kmeander::testing::release(block); }
void operator delete[](void *block, std::size_t) noexcept { kmeander::testing::release(block); }
