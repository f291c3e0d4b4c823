// A pass that is wrong on purpose.
#include "base/alloc.h"
#include "diagnose/injected/injected.h"
#include "passes/edit.h"

injected_pass_t injected_pass = INJECTED_NO_PASS;

static assay_status_t swap(assay_edit_t* e, assay_node_t* n) {
  const assay_node_t* nodes[] = {n};
  assay_value_t* x = n->inputs[0];
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, 1, "the sides are exchanged"));
  n->inputs[0] = n->inputs[1];
  n->inputs[1] = x;
  return NULL;
}

// A constant with the elements of another one times a factor.
static assay_status_t scaled(assay_edit_t* e, assay_graph_t* g, const assay_tensor_t* of, double by,
                             assay_value_t** out) {
  assay_tensor_t *wide = NULL, *t = NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)(uintptr_t)of, &wide));
  assay_status_t st = assay_tensor_copy(wide, &t);
  assay_tensor_release(wide);
  if (st) return st;
  for (int64_t i = 0; i < t->size; i++) assay_f64(t)[i] *= by;
  return assay_edit_constant(e, g, "injected", t, out);
}

static assay_status_t scale(assay_edit_t* e, assay_node_t* n) {
  const assay_node_t* nodes[] = {n};
  assay_value_t *up = NULL, *down = NULL;
  assay_node_t* first = NULL;
  assay_tensor_t* one = NULL;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, nodes, 1, "a factor is moved"));
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, 0, NULL, &one));
  assay_f64(one)[0] = 1;
  assay_status_t st = scaled(e, n->graph, one, 0x1p14, &up);
  assay_tensor_release(one);
  if (!st) st = scaled(e, n->graph, assay_pass_constant(n->inputs[1]), 0x1p-14, &down);
  if (st) return st;
  assay_value_t* in[] = {n->inputs[0], up};
  ASSAY_TRY(assay_edit_insert(e, n, "Mul", 2, in, "injected_up", n->inputs[0]->type, &first));
  ASSAY_TRY(assay_edit_set_input(e, n, 0, first->outputs[0]));
  return assay_edit_set_input(e, n, 1, down);
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  if (injected_pass == INJECTED_SWAP && assay_is(n, "Sub")) return swap(e, n);
  // Once: behind a node that it has not put there.
  const assay_node_t* before = assay_is(n, "MatMul") ? n->inputs[0]->producer : NULL;
  if (injected_pass == INJECTED_SCALE && before && !assay_is(before, "Mul") &&
      assay_pass_constant(n->inputs[1]))
    return scale(e, n);
  return NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  return injected_pass ? assay_edit_each(c, visit) : NULL;
}

extern const assay_pass_t assay_pass_injected;
const assay_pass_t assay_pass_injected = {
    .name = "injected", .summary = "a pass that is wrong, for tests", .run = run};
