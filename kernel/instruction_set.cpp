#include "instruction_set.hpp"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace kmeander {

extern const InstructionSet baseline;
#ifdef KMEANDER_HAS_AVX2
extern const InstructionSet avx2;
#endif

namespace {

const InstructionSet *fastest() {
#ifdef KMEANDER_HAS_AVX2
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2;
#endif
    return &baseline;
}

const InstructionSet &choose() {
    const char *wanted = std::getenv("KMEANDER_ISA");
    const InstructionSet *best = fastest();
    if (wanted == nullptr || *wanted == '\0' || std::string(wanted) == best->name) return *best;
    if (std::string(wanted) == baseline.name) return baseline;
    throw std::invalid_argument("KMEANDER_ISA is '" + std::string(wanted) +
                                "', but this processor and build offer 'baseline'" +
                                (best == &baseline ? "" : " and '" + std::string(best->name) + "'") +
                                ". Unset it to take the fastest.");
}

}  // namespace

const InstructionSet &instruction_set() {
    static const InstructionSet &chosen = choose();
    return chosen;
}

}  // namespace kmeander
