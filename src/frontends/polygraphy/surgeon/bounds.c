// --set-unbounded-dds-upper-bound, --list-unbounded-dds.
#include "frontends/polygraphy/surgeon/bounds.h"

#include "edit/unbounded.h"
#include "onnx/load.h"

#define FLAG "--set-unbounded-dds-upper-bound"

static assay_type_t elem_of(const assay_value_t* v) {
  return v->type && v->type->kind == ASSAY_KIND_TENSOR ? v->type->elem : ASSAY_TYPE_UNDEFINED;
}

static assay_status_t set_one(assay_model_t* m, const assay_value_t* v, const char* text,
                              assay_str_t* done) {
  int64_t bound;
  ASSAY_TRY(pg_whole(FLAG, text, &bound));
  if (bound < 1) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, FLAG ": %s is not a size", text);
  assay_str_printf(done, "%s'%s': %lld", done->len ? ", " : "", v->name, (long long)bound);
  return assay_status_note(assay_unbounded_set(m, v->name, elem_of(v), bound), FLAG);
}

// A value that is named gets its bound whether it needs one or not.
static assay_status_t set_named(pg_job_t* j, assay_model_t* ready, assay_model_t* m,
                                assay_value_t* const* found, size_t n, assay_str_t* done) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_set_unbounded_dds_upper_bound);
  for (size_t i = 0; i < words->n; i++) {
    pg_pair_t pair;
    bool listed = false;
    ASSAY_TRY(pg_pair_split(j->arena, words->items[i], &pair));
    const assay_value_t* v = *pair.name ? assay_graph_find(ready->graph, pair.name) : NULL;
    if (!*pair.name) continue;
    if (!v) return ASSAY_ERROR(ASSAY_NOT_FOUND, FLAG ": the model has no tensor '%s'", pair.name);
    for (size_t k = 0; k < n; k++) listed |= found[k] == v;
    if (listed) continue;
    pg_log(PG_WARNING, FLAG ": no size that depends on data hangs on '%s'", pair.name);
    ASSAY_TRY(set_one(m, v, pair.value, done));
  }
  return NULL;
}

static assay_status_t set_all(pg_job_t* j, assay_model_t* ready, assay_model_t* m) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_set_unbounded_dds_upper_bound);
  assay_value_t* const* found;
  size_t n;
  assay_str_t done = {0};
  ASSAY_TRY(assay_unbounded_find(ready, &found, &n));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) {
    const char* text = NULL;
    st = pg_pair_find(j->arena, words, found[i]->name, &text);
    if (!st && text) st = set_one(m, found[i], text, &done);
  }
  if (!st) st = set_named(j, ready, m, found, n, &done);
  if (!st) st = assay_str_status(&done);
  if (!st) pg_log(PG_INFO, "Set tensor upper bounds: {%s}", assay_str_get(&done));
  assay_str_deinit(&done);
  return st;
}

assay_status_t pg_set_bounds(pg_job_t* j, assay_model_t** m) {
  assay_model_t *ready = NULL, *made = NULL;
  ASSAY_TRY(pg_prepare_model(j, *m, true, &ready));
  assay_status_t st = assay_model_clone(*m, &made);
  if (!st) st = set_all(j, ready, made);
  assay_model_release(ready);
  if (st) return assay_model_release(made), st;
  assay_model_release(*m);
  *m = made;
  return NULL;
}

assay_status_t pg_list_unbounded(const assay_model_t* m) {
  assay_model_t* ready = NULL;
  assay_value_t* const* found;
  size_t n;
  assay_str_t text = {0};
  ASSAY_TRY(assay_onnx_prepare_known((assay_model_t*)(uintptr_t)m, 0, NULL, &ready));
  assay_status_t st = assay_unbounded_find(ready, &found, &n);
  for (size_t i = 0; !st && i < n; i++) {
    assay_str_append(&text, i ? ", " : "");
    pg_put_tensor_info(&text, found[i]);
  }
  if (!st) st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "Found tensors with unbounded DDS: [%s]", assay_str_get(&text));
  assay_str_deinit(&text);
  assay_model_release(ready);
  return st;
}
