// Constants computed once and written down, as a runtime would compute them: each result rounded to
// the type that it has.
#include "edit/fold_constants.h"

#include <string.h>

#include "passes/fold.h"
#include "passes/pass.h"

size_t assay_model_count_nodes(const assay_model_t* m) {
  size_t n = 0;
  for (size_t k = 0; k < m->n_graphs; k++) n += m->graphs[k]->n_nodes;
  return n;
}

// A Shape of a tensor says something before the tensor is there.
static bool asks_for_shape(const assay_node_t* n) {
  return !*n->domain && (strcmp(n->op_type, "Shape") == 0 || strcmp(n->op_type, "Size") == 0);
}

static bool is_small(const assay_fold_requests_t* w, const assay_valtype_t* t) {
  int64_t elems, bytes;
  if (!assay_fold_elems(t, &elems)) return false;
  return t->elem == ASSAY_TYPE_STRING ||
         (assay_type_packed_bytes(t->elem, elems, &bytes) && bytes <= w->max_bytes);
}

static bool wants(const assay_pass_context_t* c, const assay_node_t* n) {
  const assay_fold_requests_t* w = c->user;
  if (!assay_fold_allows(n) || (w->no_shapes && asks_for_shape(n))) return false;
  for (size_t i = 0; w->has_threshold && i < n->n_outputs; i++)
    if (n->outputs[i] && !is_small(w, n->outputs[i]->type)) return false;
  return true;
}

static assay_status_t run(assay_pass_context_t* c) {
  const assay_evaluator_config_t native = {.mode = ASSAY_MODE_NATIVE};
  return assay_fold_nodes(c, &(assay_folding_t){.config = &native, .wants = wants});
}

static const assay_pass_t fold_pass = {.name = "fold_constants", .run = run};

static assay_status_t take_model(assay_status_t st, assay_rewrite_t* r, assay_model_t** m) {
  if (!st) {
    assay_model_t* made = assay_model_retain(r->model);
    assay_model_release(*m);
    *m = made;
  }
  assay_rewrite_destroy(r);
  return st;
}

static assay_status_t run_named(const char* name, assay_model_t** m) {
  assay_rewrite_t* r = NULL;
  const assay_pass_options_t options = {.only = name, .within_opset = true};
  assay_status_t st = assay_passes_run(*m, &options, &r);
  return take_model(st, r, m);
}

assay_status_t assay_fold_constants(assay_model_t* prepared, const assay_fold_requests_t* requests,
                                    assay_model_t** out) {
  assay_rewrite_t* r = NULL;
  assay_model_t* m = assay_model_retain(prepared);
  const assay_pass_options_t options = {.within_opset = true};
  assay_status_t st = requests->no_shapes ? NULL : run_named("shape_arithmetic", &m);
  if (!st) {
    st = assay_passes_run_own(m, &fold_pass, (void*)(uintptr_t)requests, &options, &r);
    st = take_model(st, r, &m);
  }
  if (!st) st = run_named("dead_code", &m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}
