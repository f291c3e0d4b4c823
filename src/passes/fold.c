// Nodes evaluated once, before any run, each output rounded once to its declared type.
#include "passes/fold.h"

#include "base/alloc.h"

const assay_evaluator_config_t assay_fold_config = {
    .mode = ASSAY_MODE_TRUTH, .arith = ASSAY_ARITH_NARROW, .accumulator = ASSAY_FORMAT_FP64};

bool assay_fold_allows(const assay_node_t* n) {
  const uint32_t never = ASSAY_OP_RANDOM | ASSAY_OP_CONTROL | ASSAY_OP_QUANTIZES;
  if (!n->op || !n->op->eval || n->op->flags & never) return false;
  if (n->n_inputs > ASSAY_FOLD_OPERANDS || n->n_outputs > ASSAY_FOLD_OPERANDS) return false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v) continue;
    const assay_valtype_t* t = v->type;
    if (v->is_output || !t || t->kind != ASSAY_KIND_TENSOR || !t->elem || !t->has_shape)
      return false;
    if (assay_type_is_float(t->elem) && assay_type_bits(t->elem) < 16) return false;
  }
  return true;
}

bool assay_fold_elems(const assay_valtype_t* t, int64_t* out) {
  int64_t d;
  *out = 1;
  for (int k = 0; k < t->rank; k++)
    if (!assay_dim_value(t->dims[k], &d) || !assay_mul_i64(*out, d, out)) return false;
  return true;
}

bool assay_fold_is_small(int64_t elems) {
  int64_t bytes;
  return assay_mul_i64(elems, 8, &bytes) && bytes <= ASSAY_FOLD_BYTES;
}

// Rounds what was computed: false if one of them cannot be.
static assay_status_t round_outputs(size_t n, assay_tensor_t** out, bool* out_fits) {
  *out_fits = true;
  for (size_t i = 0; i < n && *out_fits; i++) {
    assay_tensor_t* copy = NULL;
    if (!out[i]) continue;
    // It may share its elements with an input.
    ASSAY_TRY(assay_tensor_copy(out[i], &copy));
    assay_tensor_release(out[i]);
    out[i] = copy;
    *out_fits = out[i]->kind == ASSAY_KIND_TENSOR && assay_pass_round(out[i]);
  }
  return NULL;
}

assay_status_t assay_fold(assay_evaluator_t* m, const assay_node_t* n, assay_tensor_t* const* in,
                          assay_tensor_t** out, bool* out_fits) {
  *out_fits = false;
  for (size_t i = 0; i < n->n_outputs; i++) out[i] = NULL;
  assay_status_t st = assay_evaluator_node(m, n, n->n_inputs, in, n->n_outputs, out);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) {
    assay_status_free(st);
    return NULL;
  }
  if (!st) st = round_outputs(n->n_outputs, out, out_fits);
  if (!st && *out_fits) return NULL;
  for (size_t i = 0; i < n->n_outputs; i++) {
    assay_tensor_release(out[i]);
    out[i] = NULL;
  }
  *out_fits = false;
  return st;
}

// ---- for passes --------------------------------------------------------------------------------

static bool reads_constants(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  return n->n_inputs <= ASSAY_FOLD_OPERANDS && n->n_outputs <= ASSAY_FOLD_OPERANDS;
}

static const char* why_of(const assay_folding_t* f, const assay_node_t* n) {
  if (f->why) return f->why;
  return n->n_inputs ? "it reads only constants: computed once" : "it is a constant";
}

static assay_status_t fold_node(assay_pass_context_t* c, const assay_folding_t* f,
                                assay_evaluator_t* evaluator, assay_node_t* n, bool* dead) {
  assay_tensor_t *in[ASSAY_FOLD_OPERANDS] = {0}, *out[ASSAY_FOLD_OPERANDS] = {0};
  bool fits = false;
  if (!reads_constants(n) || !f->wants(c, n)) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) in[i] = assay_pass_constant(n->inputs[i]);
  ASSAY_TRY(assay_fold(evaluator, n, in, out, &fits));
  assay_status_t st = fits ? assay_pass_set_outputs(c, n, out, why_of(f, n)) : NULL;
  if (!st) dead[n->id] = fits;
  for (size_t i = 0; i < n->n_outputs; i++) assay_tensor_release(out[i]);
  return st;
}

assay_status_t assay_fold_nodes(assay_pass_context_t* c, const assay_folding_t* f) {
  assay_evaluator_t* evaluator = NULL;
  bool* dead = NULL;
  ASSAY_TRY(assay_evaluator_create(c->model, f->config, &evaluator));
  assay_status_t st = assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead);
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++)
      st = fold_node(c, f, evaluator, c->model->graphs[k]->nodes[i], dead);
  assay_evaluator_destroy(evaluator);
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
}
