// Compiled once per instruction set, with KMEANDER_SET (its name), KMEANDER_LANES (doubles
// of a block) and KMEANDER_FLOATS (of a register) set.
//
// No standard header with inline functions is included: the linker would keep one copy
// of such a function for the whole module, and it might be the one that needs AVX2. Those of
// immintrin.h are never compiled by themselves.
#include "simd/bounds.hpp"
#include "simd/distances.hpp"
#include "simd/instruction_set.hpp"
#include "simd/lines.hpp"
#include "simd/screen.hpp"
#include "simd/sums.hpp"

namespace kmeander {

extern const InstructionSet KMEANDER_SET;
const InstructionSet KMEANDER_SET = {
    KMEANDER_SET_NAME,
    kLanes,
    copy_within,
    widen,
    nearest,
    narrow,
    screen,
    add_seed,
    squared_to,
    squared_between,
    squared_pairs,
    project,
    find_direction,
    place_on_line,
    add_to_bins,
    add_above,
    squared_to_means,
    bounds_above,
    bounds_below,
    unsettled,
    awake,
    count_doubtful,
    rebase,
    bound_others,
    members,
    add_rows,
    add_moments,
    add_squares,
};

}  // namespace kmeander
