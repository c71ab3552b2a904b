// Allocations that fail when a test wants them to: the global operator new counts, and throws.
#pragma once

#include <cstdint>

namespace kmeander::testing {

// From now on the n-th allocation of any thread throws std::bad_alloc, all others succeed.
void fail_allocation(std::int64_t n);

// End that; whether an allocation was failed.
bool stop_failing();

// Blocks that were allocated and not yet freed.
std::int64_t n_live_blocks();

}  // namespace kmeander::testing
