#include <stdatomic.h>

#include "base/alloc.h"
#include "runtime/engine_internal.h"

assay_status_t assay_engine_create(assay_plan_t* take_plan, const assay_backend_t* backend,
                                   const assay_backend_options_t* options, assay_engine_t** out) {
  assay_engine_t* e = NULL;
  assay_status_t st = ASSAY_NEW(&e);
  if (st) return assay_plan_destroy(take_plan), st;
  e->refs = 1;
  e->plan = take_plan;
  e->backend = backend;
  if (backend->share) st = backend->share(assay_plan_layers(take_plan), options, &e->shared);
  if (st) return assay_engine_release(e), st;
  *out = e;
  return NULL;
}

assay_status_t assay_engine_share_again(assay_engine_t* e, const assay_backend_options_t* options) {
  if (!e->shared) return NULL;
  e->backend->unshare(e->shared);
  e->shared = NULL;
  return e->backend->share(assay_plan_layers(e->plan), options, &e->shared);
}

assay_engine_t* assay_engine_retain(assay_engine_t* e) {
  if (e) atomic_fetch_add(&e->refs, 1);
  return e;
}

void assay_engine_release(assay_engine_t* e) {
  if (!e || atomic_fetch_sub(&e->refs, 1) != 1) return;
  if (e->shared) e->backend->unshare(e->shared);
  assay_plan_destroy(e->plan);
  assay_mapping_release(e->file);
  assay_free(e);
}

const assay_plan_t* assay_engine_plan(const assay_engine_t* e) { return e->plan; }
const assay_backend_t* assay_engine_backend(const assay_engine_t* e) { return e->backend; }
void* assay_engine_shared(const assay_engine_t* e) { return e->shared; }
