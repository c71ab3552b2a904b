// The inner loops of one instruction set: compiled once for each, with KMEANDER_SET (its name),
// KMEANDER_LANES (doubles of a block) and KMEANDER_FLOATS (of a register) set.
//
// No standard header with inline functions is included: the linker would keep one copy
// of such a function for the whole module, and it might be the one that needs AVX2. Those of
// immintrin.h are never compiled by themselves.
#include "simd/bounds.hpp"
#include "simd/distances.hpp"
#include "simd/instruction_set.hpp"
#include "simd/leading.hpp"
#include "simd/lines.hpp"
#include "simd/power_iteration.hpp"
#include "simd/scores.hpp"
#include "simd/screen.hpp"
#include "simd/sums.hpp"

namespace kmeander {

extern const InstructionSet KMEANDER_SET;
const InstructionSet KMEANDER_SET = {
    .name = KMEANDER_SET_NAME,
    .lanes = kLanes,
    .floats = kFloats,
    .copy_within = copy_within,
    .widen = widen,
    .nearest = nearest,
    .narrow = narrow,
    .screen = screen,
    .multiply = multiply,
    .centre = centre,
    .list_candidates = list_candidates,
    .list_best = list_best,
    .squared_narrow = squared_narrow,
    .add_seed = add_seed,
    .squared_to = squared_to,
    .squared_between = squared_between,
    .squared_pairs = squared_pairs,
    .project = project,
    .find_direction = find_direction,
    .place_on_line = place_on_line,
    .add_to_bins = add_to_bins,
    .add_above = add_above,
    .squared_to_means = squared_to_means,
    .bounds_above = bounds_above,
    .bounds_below = bounds_below,
    .find_undecided = find_undecided,
    .find_active = find_active,
    .count_undecided = count_undecided,
    .rebase = rebase,
    .bound_others = bound_others,
    .list_marked = list_marked,
    .add_rows = add_rows,
    .add_moments = add_moments,
    .add_scores = add_scores,
    .judge = judge,
    .add_squares = add_squares,
};

}  // namespace kmeander
