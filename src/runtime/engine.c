// Engines: a plan on a backend, with what its contexts share.
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "runtime/engine_internal.h"

static assay_status_t keep_text(const char* text, char** out) {
  if (!text) return NULL;
  const size_t n = strlen(text) + 1;
  ASSAY_TRY(assay_new_array(n, 1, out));
  memcpy(*out, text, n);
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
  e->max_scratch = options ? options->max_scratch : 0;
  if (options) st = keep_text(options->tactic_sources, &e->tactic_sources);
  if (!st && options) st = keep_text(options->forced, &e->forced_tactics);
  if (!st && backend->share)
    st = assay_backend_share(backend, assay_plan_layers(take_plan), options, &e->shared);
  if (st) return assay_engine_release(e), st;
  *out = e;
  return NULL;
}

assay_status_t assay_engine_share_again(assay_engine_t* e, const assay_backend_options_t* options) {
  if (!e->shared) return NULL;
  e->backend->unshare(e->shared);
  e->shared = NULL;
  return assay_backend_share(e->backend, assay_plan_layers(e->plan), options, &e->shared);
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
  assay_free(e->forced_tactics);
  assay_free(e->note);
  assay_stripped_destroy(e->stripped);
  assay_free(e);
}

static bool has_range(const assay_profile_t* p, size_t n, const char* input, int profile) {
  for (size_t i = 0; i < n; i++)
    if (p[i].profile == profile && strcmp(p[i].input, input) == 0) return true;
  return false;
}

// Ranges that go up, from sizes of at least 1 (values may be any).
static assay_status_t check_range(const assay_profile_t* p) {
  bool ok = p->rank >= 0 && p->rank <= ASSAY_PROFILE_MAX_RANK && (p->rank || !p->values);
  for (int d = 0; ok && d < p->rank; d++)
    ok = p->min[d] <= p->opt[d] && p->opt[d] <= p->max[d] && (p->values || p->min[d] >= 0);
  return ok ? NULL
            : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                          "input '%s': the range of a profile goes from its smallest sizes to its "
                          "largest, with the best ones between",
                          p->input);
}

// Whether a range fits what an input is.
static bool suits(const assay_profile_t* p, const assay_value_t* input) {
  const assay_valtype_t* t = input->type ? input->type : input->declared;
  if (!t) return true;
  if (t->kind != ASSAY_KIND_TENSOR) return false;
  if (!t->has_shape) return true;
  return p->values ? t->rank <= 1 : t->rank == p->rank;
}

// Each profile has a range of the same inputs.
static assay_status_t check_profiles(const assay_profile_t* p, size_t n) {
  for (size_t i = 0; i < n; i++) ASSAY_TRY(check_range(&p[i]));
  for (size_t i = 0; i < n; i++)
    if (p[i].profile < 0 || p[i].profile >= ASSAY_MAX_PROFILES)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s': a plan has %d profiles at most",
                         p[i].input, ASSAY_MAX_PROFILES);
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < assay_profiles_count(p, n); k++)
      if (!has_range(p, n, p[i].input, k))
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "profile %d has no range of input '%s', which profile %d has: give it "
                           "one",
                           k, p[i].input, p[i].profile);
  return NULL;
}

assay_status_t assay_engine_set_profiles(assay_engine_t* e, const assay_profile_t* profiles,
                                         size_t n) {
  const assay_graph_t* g = assay_plan_layers(e->plan)->model->graph;
  assay_profile_t* copy = NULL;
  ASSAY_TRY(check_profiles(profiles, n));
  ASSAY_TRY(assay_new_array(n, sizeof *copy, &copy));
  for (size_t i = 0; i < n; i++) {
    const assay_value_t* v = assay_graph_find(g, profiles[i].input);
    if (!v || !v->is_input) {
      assay_free(copy);
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the model has no input '%s'", profiles[i].input);
    }
    if (!suits(&profiles[i], v)) {
      assay_free(copy);
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s: a profile's range is of %d %s",
                         v->name, ASSAY_VALTYPE_TEXT(v->type ? v->type : v->declared),
                         profiles[i].rank, profiles[i].values ? "values" : "dimensions");
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

// Why none of some profiles takes a tensor.
static assay_status_t not_taken(const assay_engine_t* e, const assay_value_t* input,
                                const assay_tensor_t* t, uint64_t left) {
  const int count = assay_profiles_count(e->profiles, e->n_profiles);
  for (size_t i = 0; count == 1 && i < e->n_profiles; i++)
    if (strcmp(e->profiles[i].input, input->name) == 0 && !e->profiles[i].values)
      return assay_profile_check(&e->profiles[i], t->rank, t->dims);
  assay_str_t given = {0}, ranges = {0};
  for (size_t i = 0; i < e->n_profiles; i++) {
    const assay_profile_t* p = &e->profiles[i];
    if (strcmp(p->input, input->name) != 0 || !(left >> p->profile & 1)) continue;
    if (!ranges.len) assay_profile_print_given(p, t, &given);
    assay_str_append(&ranges, ranges.len ? " or" : "");
    assay_profile_print(p, &ranges);
  }
  assay_status_t st =
      ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                  "input '%s' is %s; the plan was built for%s%s: build it for that, too",
                  input->name, assay_str_get(&given), assay_str_get(&ranges),
                  left != UINT64_MAX && count > 1 ? " beside the other inputs" : "");
  assay_str_deinit(&given);
  assay_str_deinit(&ranges);
  return st;
}

assay_status_t assay_engine_check(const assay_engine_t* e, const assay_value_t* input,
                                  const assay_tensor_t* t, uint64_t* profiles) {
  const assay_valtype_t* type = input->type;
  const uint64_t left = profiles ? *profiles : UINT64_MAX;
  if (e->n_profiles) {
    const uint64_t take = left & assay_profiles_take(e->profiles, e->n_profiles, input, t);
    if (!take) return not_taken(e, input, t, left);
    if (profiles) *profiles = take;
    if (has_range(e->profiles, e->n_profiles, input->name, 0)) return NULL;
  }
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

assay_status_t assay_engine_set_note(assay_engine_t* e, const char* note) {
  char* copy = NULL;
  if (note) ASSAY_TRY(keep_text(note, &copy));
  assay_free(e->note);
  e->note = copy;
  return NULL;
}

void assay_engine_set_strip(assay_engine_t* e, assay_strip_t strip) { e->strip = strip; }
assay_strip_t assay_engine_strip(const assay_engine_t* e) { return e->strip; }

size_t assay_engine_missing_weights(const assay_engine_t* e, uint64_t* out_bytes) {
  if (out_bytes) *out_bytes = e->stripped ? e->stripped->bytes : 0;
  return e->stripped ? e->stripped->n : 0;
}

assay_status_t assay_engine_check_whole(const assay_engine_t* e) {
  if (!e->stripped) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "the plan is stripped: its %zu weights (%s) are not in it; put them in with "
                     "'assay refit PLAN --weights MODEL.onnx'",
                     e->stripped->n, ASSAY_BYTES_TEXT(e->stripped->bytes));
}

const char* assay_engine_note(const assay_engine_t* e) { return e->note; }

const char* assay_engine_tactic_sources(const assay_engine_t* e) { return e->tactic_sources; }
const char* assay_engine_forced_tactics(const assay_engine_t* e) { return e->forced_tactics; }
bool assay_engine_batch_variant(const assay_engine_t* e) { return e->batch_variant; }
uint64_t assay_engine_max_scratch(const assay_engine_t* e) { return e->max_scratch; }

const assay_plan_t* assay_engine_plan(const assay_engine_t* e) { return e->plan; }
const assay_backend_t* assay_engine_backend(const assay_engine_t* e) { return e->backend; }
void* assay_engine_shared(const assay_engine_t* e) { return e->shared; }
