#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "runtime/engine_internal.h"

static assay_status_t keep_sources(assay_engine_t* e, const char* sources) {
  const size_t n = strlen(sources) + 1;
  ASSAY_TRY(assay_new_array(n, 1, &e->tactic_sources));
  memcpy(e->tactic_sources, sources, n);
  return NULL;
}

assay_status_t assay_engine_create(assay_plan_t* take_plan, const assay_backend_t* backend,
                                   const assay_backend_options_t* options, assay_engine_t** out) {
  assay_engine_t* e = NULL;
  assay_status_t st = ASSAY_NEW(&e);
  if (st) return assay_plan_destroy(take_plan), st;
  e->refs = 1;
  e->plan = take_plan;
  e->backend = backend;
  e->batch_variant = options && options->batch_variant;
  if (options && options->tactic_sources) st = keep_sources(e, options->tactic_sources);
  if (!st && backend->share) st = backend->share(assay_plan_layers(take_plan), options, &e->shared);
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
  assay_free(e->profiles);
  assay_mapping_release(e->file);
  assay_free(e->tactic_sources);
  assay_free(e);
}

assay_status_t assay_engine_set_profiles(assay_engine_t* e, const assay_profile_t* profiles,
                                         size_t n) {
  const assay_graph_t* g = assay_plan_layers(e->plan)->model->graph;
  assay_profile_t* copy = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) {
    const assay_value_t* v = assay_graph_find(g, profiles[i].input);
    if (!v || !v->is_input) {
      assay_free(copy);
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the model has no input '%s'", profiles[i].input);
    }
    copy[i] = profiles[i];
    copy[i].input = v->name;
  }
  assay_free(e->profiles);
  e->profiles = copy;
  e->n_profiles = n;
  return NULL;
}

size_t assay_engine_profiles(const assay_engine_t* e, const assay_profile_t** out) {
  *out = e->profiles;
  return e->n_profiles;
}

assay_status_t assay_engine_check(const assay_engine_t* e, const assay_value_t* input,
                                  const assay_tensor_t* t) {
  const assay_valtype_t* type = input->type;
  for (size_t i = 0; i < e->n_profiles; i++)
    if (e->profiles[i].input == input->name)
      return assay_profile_check(&e->profiles[i], t->rank, t->dims);
  if (!type || type->kind != ASSAY_KIND_TENSOR || !type->has_shape) return NULL;
  bool ok = t->rank == type->rank;
  for (int i = 0; ok && i < type->rank; i++) {
    int64_t d;
    ok = !assay_dim_value(type->dims[i], &d) || d == t->dims[i];
  }
  return ok ? NULL
            : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s; the plan was built for %s",
                          input->name, ASSAY_DIMS_TEXT(t), ASSAY_VALTYPE_TEXT(type));
}

assay_status_t assay_engine_source(const assay_engine_t* e, assay_model_t** out) {
  assay_model_t* source = assay_plan_source(e->plan);
  if (!source) return assay_engine_read_source(e, out);
  *out = assay_model_retain(source);
  return NULL;
}

const char* assay_engine_tactic_sources(const assay_engine_t* e) { return e->tactic_sources; }
bool assay_engine_batch_variant(const assay_engine_t* e) { return e->batch_variant; }

const assay_plan_t* assay_engine_plan(const assay_engine_t* e) { return e->plan; }
const assay_backend_t* assay_engine_backend(const assay_engine_t* e) { return e->backend; }
void* assay_engine_shared(const assay_engine_t* e) { return e->shared; }
