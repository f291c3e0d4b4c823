// What a graph makes of constants alone.
#include "diagnose/kinds/rounded_made.h"

#include <string.h>

#include "base/alloc.h"

// Nodes one after the other between a constant and what is asked for: decoders have about ten.
enum { DEPTH = 64 };

assay_tensor_t* assay_rounded_constant(const assay_value_t* v) {
  if (!v) return NULL;
  const assay_node_t* p = v->producer;
  if (v->constant || !p || *p->domain || strcmp(p->op_type, "Constant") != 0) return v->constant;
  const assay_attr_t* a = assay_node_attr(p, "value");
  return a && a->type == ASSAY_ATTR_TENSOR ? a->u.t : NULL;
}

// Quantizers have types that say so, and a truth of their own.
static bool makes_of_constants(const assay_rounded_made_t* m, const assay_node_t* n) {
  static const unsigned others = ASSAY_OP_RANDOM | ASSAY_OP_CONTROL | ASSAY_OP_QUANTIZES;
  bool any = false;
  if (!n->op || n->op->flags & others) return false;
  for (size_t i = 0; i < n->n_inputs; i++) {
    if (!n->inputs[i]) continue;
    if (!assay_rounded_is_made(m, n->inputs[i])) return false;
    any = true;
  }
  return any;
}

bool assay_rounded_is_made(const assay_rounded_made_t* m, const assay_value_t* v) {
  return v && (assay_rounded_constant(v) || (v->id >= 0 && m->is[v->id]));
}

assay_status_t assay_rounded_made_create(const assay_model_t* model, assay_rounded_made_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  const assay_graph_t* g = model->graph;
  *out = (assay_rounded_made_t){.n_values = (size_t)model->n_values};
  ASSAY_TRY(assay_new_array((size_t)model->n_values + 1, sizeof *out->is, &out->is));
  ASSAY_TRY(assay_new_array((size_t)model->n_node_ids + 1, sizeof *out->ran, &out->ran));
  ASSAY_TRY(assay_evaluator_create(model, &config, &out->machine));
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    if (!makes_of_constants(out, n)) continue;
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) out->is[n->outputs[k]->id] = true;
  }
  return NULL;
}

void assay_rounded_made_deinit(assay_rounded_made_t* m) {
  assay_evaluator_destroy(m->machine);
  assay_free(m->is);
  assay_free(m->ran);
  *m = (assay_rounded_made_t){0};
}

// Runs the nodes that a value comes of. What fails leaves its value empty.
static assay_status_t run_before(assay_rounded_made_t* m, const assay_value_t* v, int depth) {
  const assay_node_t* n = v->producer;
  if (!n || v->constant || m->ran[n->id] || !depth) return NULL;
  m->ran[n->id] = true;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) ASSAY_TRY(run_before(m, n->inputs[i], depth - 1));
  assay_status_t st = assay_evaluator_step(m->machine, n);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

assay_status_t assay_rounded_made_get(assay_rounded_made_t* m, const assay_value_t* v,
                                      assay_tensor_t** out) {
  assay_tensor_t* t = assay_rounded_constant(v);
  *out = NULL;
  if (!assay_rounded_is_made(m, v)) return NULL;
  if (!t) {
    ASSAY_TRY(run_before(m, v, DEPTH));
    t = assay_evaluator_get(m->machine, v);
  }
  return t && t->kind == ASSAY_KIND_TENSOR ? assay_tensor_widen(t, out) : NULL;
}

static bool makes_few(const assay_node_t* n) {
  static const char* const names[] = {"Round", "Floor", "Ceil", "Sign"};
  for (size_t k = 0; !*n->domain && k < sizeof names / sizeof *names; k++)
    if (strcmp(n->op_type, names[k]) == 0) return true;
  return false;
}

// Sizes of what is looked at keep out shapes, axes and scales.
static bool comes_of_codes(const assay_value_t* v, int64_t least, int depth) {
  const assay_tensor_t* t = assay_rounded_constant(v);
  if (t)
    return t->kind == ASSAY_KIND_TENSOR && t->size >= least &&
           (assay_type_is_integer(t->type) || t->type == ASSAY_TYPE_BOOL);
  if (!v || !v->producer || !depth) return false;
  if (makes_few(v->producer)) return true;
  for (size_t i = 0; i < v->producer->n_inputs; i++)
    if (comes_of_codes(v->producer->inputs[i], least, depth - 1)) return true;
  return false;
}

bool assay_rounded_is_decoded(const assay_rounded_made_t* m, const assay_value_t* v, int64_t size) {
  enum { PER_CODE = 64, LEAST = 8, FEW_NODES = 20 };
  const int64_t least = size / PER_CODE;
  return assay_rounded_is_made(m, v) && !assay_rounded_constant(v) &&
         comes_of_codes(v, least > LEAST ? least : LEAST, FEW_NODES);
}
