// Public experiments (assay/debug.h): what their results hold on to.
#ifndef ASSAY_DEBUG_DEBUG_PUBLIC_H_
#define ASSAY_DEBUG_DEBUG_PUBLIC_H_

#include <assay/debug.h>
#include <stdatomic.h>

#include "check/check.h"
#include "debug/batch_debug.h"
#include "debug/pass_debug.h"
#include "debug/precision.h"
#include "debug/tactic_debug.h"
#include "edit/reduce/reduce.h"

struct assay_debug {
  atomic_int refs;
  assay_check_t* check;  // how the model is run; it is not run itself
  bool has_precision;
};

struct assay_precision_search {
  assay_debug_t* debug;
  assay_precision_mode_t mode;
  double seconds;
  assay_precision_found_t found;
};

struct assay_batch_search {
  assay_debug_t* debug;
  char* command;  // NULL: Assay's own engine
  double seconds;
  assay_batch_blame_t found;
};

struct assay_pass_search {
  assay_debug_t* debug;
  double seconds;
  assay_pass_blame_t found;
};

struct assay_tactic_search {
  assay_debug_t* debug;
  char* layer;  // the pattern; NULL: all
  double seconds;
  assay_tactic_blame_t found;
};

struct assay_reduction {
  assay_debug_t* debug;
  char* command;  // NULL: Assay's own engine
  assay_reduced_t found;
};

// INVALID_ARGUMENT unless a command of somebody else's engine can be run (assay_debug_batch).
assay_status_t assay_debug_check_command(const char* command, const char* model) ASSAY_MUST_USE;
// Allocated; of NULL nothing is made.
assay_status_t assay_debug_copy_text(const char* text, char** out) ASSAY_MUST_USE;

#endif  // ASSAY_DEBUG_DEBUG_PUBLIC_H_
