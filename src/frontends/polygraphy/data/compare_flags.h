// The flags of comparisons, as the library takes them.
#ifndef ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMPARE_FLAGS_H_
#define ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMPARE_FLAGS_H_

#include "compare/comparison.h"
#include "frontends/polygraphy/job.h"

// Lines of the library in this program's log.
assay_compare_log_t pg_compare_log(void);

// What is asked of one output, read from the flags once.
typedef struct pg_tolerances {
  const char* output;
  assay_tolerances_t tolerances;
} pg_tolerances_t;

// Stays where it is: the comparison within points to it.
typedef struct pg_compare {
  assay_comparing_settings_t comparison;
  const pg_args_t* args;
  assay_arena_t* arena;
  pg_tolerances_t* known;
  size_t n_known, cap_known;
} pg_compare_t;

// Reads and checks all flags of comparisons; warns of those that the chosen ones do not use.
// Everything lives in the arena but `known`, which deinit frees.
assay_status_t pg_compare_init(const pg_args_t* a, assay_arena_t* arena,
                               pg_compare_t* out) ASSAY_MUST_USE;
void pg_compare_deinit(pg_compare_t* c);

// Prints what is saved where, and writes it (--save-accuracy-results).
assay_status_t pg_save_accuracy(const pg_args_t* a,
                                const assay_accuracy_results_t* r) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_POLYGRAPHY_DATA_COMPARE_FLAGS_H_
