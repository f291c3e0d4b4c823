// Requests to end, and what each thread watches.
#include "base/cancel/cancel.h"

#include "base/alloc.h"

static _Thread_local assay_cancel_t* watched;

assay_status_t assay_cancel_create(assay_cancel_t** out) {
  assay_cancel_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  *out = c;
  return NULL;
}

void assay_cancel_destroy(assay_cancel_t* cancel) { assay_free(cancel); }

void assay_cancel_request(assay_cancel_t* cancel) { atomic_store(&cancel->requested, true); }

bool assay_cancel_is_requested(const assay_cancel_t* cancel) {
  return atomic_load_explicit(&cancel->requested, memory_order_relaxed);
}

void assay_cancel_reset(assay_cancel_t* cancel) { atomic_store(&cancel->requested, false); }

assay_cancel_t* assay_cancel_watch(assay_cancel_t* cancel) {
  assay_cancel_t* before = watched;
  watched = cancel;
  return before;
}

const assay_cancel_t* assay_cancel_watched(void) { return watched; }

assay_status_t assay_cancel_check(void) {
  if (!assay_cancel_wanted(watched)) return NULL;
  return ASSAY_ERROR(ASSAY_CANCELLED, "the call was cancelled");
}
