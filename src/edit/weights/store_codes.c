// Weights after quantizers that become their codes.
#include "edit/weights/store_codes.h"

#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"

enum { OPERANDS = 3 };  // values, scales, zero points

static bool quantizes_constant(const assay_node_t* n) {
  if (*n->domain || strcmp(n->op_type, "QuantizeLinear") != 0 || n->n_inputs < 2 ||
      n->n_inputs > OPERANDS || n->n_outputs != 1 || !n->outputs[0] || n->outputs[0]->is_output)
    return false;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] && !assay_pass_constant(n->inputs[i])) return false;
  return true;
}

static assay_status_t store(assay_pass_context_t* c, assay_evaluator_t* evaluator,
                            assay_node_t* n) {
  assay_tensor_t *in[OPERANDS] = {0}, *out = NULL;
  for (size_t i = 0; i < n->n_inputs; i++) in[i] = assay_pass_constant(n->inputs[i]);
  assay_status_t st = assay_evaluator_node(evaluator, n, n->n_inputs, in, 1, &out);
  if (!st) st = assay_pass_set_outputs(c, n, &out, "it quantizes a constant: its codes are stored");
  assay_tensor_release(out);
  return st;
}

static assay_status_t run_pass(assay_pass_context_t* c) {
  const assay_editing_t* e = c->user;
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH, .seed = e->seed};
  assay_evaluator_t* evaluator = NULL;
  bool* dead = NULL;
  ASSAY_TRY(assay_evaluator_create(c->model, &truth, &evaluator));
  assay_status_t st = assay_new_array((size_t)c->model->n_node_ids, sizeof *dead, &dead);
  for (size_t k = 0; !st && k < c->model->n_graphs; k++)
    for (size_t i = 0; !st && i < c->model->graphs[k]->n_nodes; i++) {
      assay_node_t* n = c->model->graphs[k]->nodes[i];
      if (!quantizes_constant(n)) continue;
      dead[n->id] = true;
      st = store(c, evaluator, n);
    }
  assay_evaluator_destroy(evaluator);
  if (!st) assay_pass_remove(c, dead, (size_t)c->model->n_node_ids);
  assay_free(dead);
  return st;
}

static const assay_pass_t pass = {.name = "store_codes", .run = run_pass};

static size_t count(const assay_model_t* m) {
  size_t n = 0;
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++)
      n += quantizes_constant(m->graphs[k]->nodes[i]);
  return n;
}

assay_status_t assay_edit_store_codes(assay_editing_t* e, size_t* out_n) {
  const assay_pass_options_t options = {0};
  const size_t before = count(e->out ? e->out : e->model);
  *out_n = 0;
  if (!before) return NULL;
  ASSAY_TRY(assay_editing_pass(e, &pass, &options));
  *out_n = before - count(e->out);
  return NULL;
}
