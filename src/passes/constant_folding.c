// Nodes that read nothing but constants are evaluated once, in float64, and rounded once to their
// declared types.
//
// Not folded: what is random, has bodies or quantizes (whether it is the identity depends on the
// run); results that are handed out of the graph; large results; and what rounding would change
// more than truth allows: truth sees float16 and bfloat16 values unrounded, so they are folded only
// where rounding is exact.
#include "base/alloc.h"
#include "passes/float_types.h"
#include "passes/fold.h"
#include "passes/pass.h"

static bool can_fold(const assay_node_t* n) {
  if (!assay_fold_allows(n)) return false;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  for (size_t i = 0; i < n->n_outputs; i++) {
    if (!n->outputs[i]) continue;
    const assay_valtype_t* t = n->outputs[i]->type;
    int64_t elems = 1, d;
    for (int k = 0; k < t->rank; k++)
      if (!assay_dim_value(t->dims[k], &d) || !assay_mul_i64(elems, d, &elems) ||
          !assay_fold_is_small(elems))
        return false;
  }
  return true;
}

static assay_status_t fold_node(assay_pass_context_t* c, assay_evaluator_t* evaluator,
                                assay_node_t* n, bool* dead) {
  assay_tensor_t *in[ASSAY_FOLD_OPERANDS] = {0}, *out[ASSAY_FOLD_OPERANDS] = {0};
  bool fits = false;
  if (!can_fold(n)) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) in[i] = assay_pass_constant(n->inputs[i]);
  ASSAY_TRY(assay_fold(evaluator, n, in, out, &fits));
  const char* why = n->n_inputs ? "it reads only constants: computed once" : "it is a constant";
  assay_status_t st = fits ? assay_pass_set_outputs(c, n, out, why) : NULL;
  if (!st) dead[n->id] = fits;
  for (size_t i = 0; i < n->n_outputs; i++) assay_tensor_release(out[i]);
  return st;
}

static assay_status_t run(assay_pass_context_t* c) {
  assay_evaluator_t* evaluator = NULL;
  bool* dead = NULL;
  ASSAY_TRY(assay_evaluator_create(c->model, &assay_fold_config, &evaluator));
  assay_status_t st = assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead);
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++) {
      assay_node_t* n = c->model->graphs[k]->nodes[i];
      if (assay_rewrite_rounds(c->rewrite, n)) continue;
      if (!c->closed || assay_rewrite_is_of_sizes(c->rewrite, n))
        st = fold_node(c, evaluator, n, dead);
    }
  assay_evaluator_destroy(evaluator);
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
}

const assay_pass_t assay_pass_constant_folding = {
    .name = "constant_folding",
    .until_fixpoint = true,
    .after_shapes = true,
    .summary = "nodes that read only constants are computed once, in float64",
    .rounds_constants = true,
    .run = run,
};
