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

#endif  // ASSAY_DEBUG_DEBUG_PUBLIC_H_
