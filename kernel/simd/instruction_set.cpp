// Choice of the instruction set, once, when it is first asked for.
#include "simd/instruction_set.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace kmeander {

extern const InstructionSet baseline;
#ifdef KMEANDER_X86
extern const InstructionSet avx2, avx512;
#endif

namespace {

// What this processor has, the fastest first.
std::vector<const InstructionSet *> offered() {
    std::vector<const InstructionSet *> sets;
#ifdef KMEANDER_X86
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw"))
        sets.push_back(&avx512);
    if (has_avx2) sets.push_back(&avx2);
#endif
    sets.push_back(&baseline);
    return sets;
}

const InstructionSet &choose() {
    const std::vector<const InstructionSet *> sets = offered();
    const char *variable = std::getenv("KMEANDER_ISA");
    const std::string wanted = variable == nullptr ? "" : variable;
    if (wanted.empty()) return *sets.front();
    std::string names;
    for (const InstructionSet *set : sets) {
        if (wanted == set->name) return *set;
        names += (names.empty() ? "'" : ", '") + std::string(set->name) + "'";
    }
    throw std::invalid_argument("KMEANDER_ISA is '" + wanted +
                                "', but this processor and build offer " + names +
                                ". Unset it to take the fastest.");
}

}  // namespace

const InstructionSet &instruction_set() {
    static const InstructionSet &chosen = choose();
    return chosen;
}

}  // namespace kmeander
