// Argument checks, so that nothing is ever read or written outside an array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace kmeander {

inline void need(bool fits, const char *what) {
    if (!fits) throw std::invalid_argument(std::string("kernel: ") + what);
}

// A label outside [0, k) would index out of bounds.
inline bool are_labels(std::span<const std::int32_t> labels, std::size_t k) {
    bool all = true;  // no early exit, so the loop vectorises
    for (const std::int32_t label : labels)
        all &= static_cast<std::uint32_t>(label) < static_cast<std::uint32_t>(k);
    return all;
}

}  // namespace kmeander
