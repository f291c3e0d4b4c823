// Public experiments (assay/debug.h): what their results hold on to.
#ifndef ASSAY_DEBUG_DEBUG_PUBLIC_H_
#define ASSAY_DEBUG_DEBUG_PUBLIC_H_

#include <assay/debug.h>
#include <stdatomic.h>

#include "check/check.h"
#include "debug/precision.h"

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

#endif  // ASSAY_DEBUG_DEBUG_PUBLIC_H_
