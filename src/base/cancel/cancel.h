// Where long work looks whether it is to end (include/assay/cancel.h).
#ifndef ASSAY_BASE_CANCEL_CANCEL_H_
#define ASSAY_BASE_CANCEL_CANCEL_H_

#include <assay/cancel.h>
#include <stdatomic.h>

#include "base/status.h"

struct assay_cancel {
  atomic_bool requested;
  const assay_cancel_t* outer;  // that asks, too: what was watched when a call began to watch this
};

// Fails with CANCELLED if this thread's calls are to end. A few nanoseconds. What was asked once
// stays so for the whole call: work between two looks may leave anything behind that the next look
// throws away.
assay_status_t assay_cancel_check(void) ASSAY_MUST_USE;

// What this thread watches, for threads that work for it, and whether they may stop; NULL is
// allowed.
const assay_cancel_t* assay_cancel_watched(void);
static inline bool assay_cancel_wanted(const assay_cancel_t* watched) {
  for (; watched; watched = watched->outer)
    if (atomic_load_explicit(&watched->requested, memory_order_relaxed)) return true;
  return false;
}

#endif  // ASSAY_BASE_CANCEL_CANCEL_H_
