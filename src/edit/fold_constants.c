// Constants computed once and written down, as a runtime would compute them: each result rounded to
// the type that it has.
#include "edit/fold_constants.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "passes/fold.h"
#include "passes/pass.h"

size_t assay_model_count_nodes(const assay_model_t* m) {
  size_t n = 0;
  for (size_t k = 0; k < m->n_graphs; k++) n += m->graphs[k]->n_nodes;
  return n;
}

static bool reads_constants(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  return true;
}

// A Shape of a tensor says something before the tensor is there.
static bool asks_for_shape(const assay_node_t* n) {
  return !*n->domain && (strcmp(n->op_type, "Shape") == 0 || strcmp(n->op_type, "Size") == 0);
}

static bool is_small(const assay_fold_requests_t* w, const assay_node_t* n) {
  if (!w->has_threshold) return true;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_valtype_t* t = n->outputs[i] ? n->outputs[i]->type : NULL;
    int64_t elems = 1, d, bytes;
    if (!n->outputs[i]) continue;
    for (int k = 0; k < t->rank; k++)
      if (!assay_dim_value(t->dims[k], &d) || !assay_mul_i64(elems, d, &elems)) return false;
    if (t->elem == ASSAY_TYPE_STRING) continue;
    if (!assay_type_packed_bytes(t->elem, elems, &bytes) || bytes > w->max_bytes) return false;
  }
  return true;
}

static bool can_fold(const assay_fold_requests_t* w, const assay_node_t* n) {
  return assay_fold_allows(n) && reads_constants(n) && !(w->no_shapes && asks_for_shape(n)) &&
         is_small(w, n);
}

static assay_status_t fold_node(assay_pass_context_t* c, assay_evaluator_t* evaluator,
                                assay_node_t* n, bool* dead) {
  assay_tensor_t *in[ASSAY_FOLD_OPERANDS] = {0}, *out[ASSAY_FOLD_OPERANDS] = {0};
  if (!can_fold(c->user, n)) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) in[i] = assay_pass_constant(n->inputs[i]);
  assay_status_t st = assay_evaluator_node(evaluator, n, n->n_inputs, in, n->n_outputs, out);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
    // Where it runs is where its failure is reported.
    assay_status_free(st);
    return NULL;
  }
  // Outputs may share their elements with an input.
  for (size_t i = 0; !st && i < n->n_outputs; i++) {
    assay_tensor_t* copy = NULL;
    if (out[i]) st = assay_tensor_copy(out[i], &copy);
    if (st || !out[i]) continue;
    assay_tensor_release(out[i]);
    out[i] = copy;
  }
  if (!st) st = assay_pass_set_outputs(c, n, out, "it reads only constants");
  if (!st) dead[n->id] = true;
  for (size_t i = 0; i < n->n_outputs; i++) assay_tensor_release(out[i]);
  return st;
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_evaluator_t* evaluator = NULL;
  bool* dead = NULL;
  const assay_evaluator_config_t native = {.mode = ASSAY_MODE_NATIVE};
  ASSAY_TRY(assay_evaluator_create(c->model, &native, &evaluator));
  assay_status_t st = assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead);
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++)
      st = fold_node(c, evaluator, c->model->graphs[k]->nodes[i], dead);
  assay_evaluator_destroy(evaluator);
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
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
