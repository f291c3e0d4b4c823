// The table of tactics. Of those that fit a layer, the first one here runs it.
#include "backends/cpu/tactic.h"

#define CPU_TACTIC(name) extern const assay_tactic_t cpu_tactic_##name;
#include "backends/cpu/tactics.inc"
#undef CPU_TACTIC

#define CPU_TACTIC(name) &cpu_tactic_##name,
const assay_tactic_t* const cpu_tactics[] = {
#include "backends/cpu/tactics.inc"
};
#undef CPU_TACTIC
const size_t cpu_n_tactics = sizeof cpu_tactics / sizeof *cpu_tactics;
