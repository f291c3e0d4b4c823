// Chains of nodes that only give their input another shape: the last one reads the first one's
// input, as a Reshape to a shape that is written down, or goes if that has its shape already. A
// Transpose that moves nothing but dimensions of size 1 is one of them.
//
// A shape that is computed from sizes is written down where all but one of them are numbers: what
// asked for the sizes of values in between would keep these from being hidden in a layer.
#include <string.h>

#include "passes/edit.h"

enum { X };

static bool is_view(const assay_node_t* n) {
  static const char* const names[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};
  for (size_t i = 0; n && i < sizeof names / sizeof *names; i++)
    if (assay_is(n, names[i]) && n->n_inputs && n->inputs[X] && n->outputs[0]) return true;
  return false;
}

// Whether a Transpose leaves the order of the elements.
static bool moves_ones(const assay_node_t* n) {
  size_t count = 0;
  if (!assay_is(n, "Transpose") || !n->inputs[X] || !n->outputs[0]) return false;
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  const int rank = assay_rank_of(n->inputs[X]);
  int64_t last = -1;
  if (rank < 0 || (perm && count != (size_t)rank)) return false;
  for (int i = 0; i < rank; i++) {
    const int64_t from = perm ? perm[i] : rank - 1 - i;
    if (assay_dim_of(n->inputs[X], (int)from) == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

static assay_status_t to_reshape(assay_edit_t* e, assay_node_t* n, assay_value_t* x,
                                 const int64_t* target, int rank) {
  assay_value_t* in[2] = {x, NULL};
  ASSAY_TRY(assay_edit_ints(e, n->graph, "shape", rank, target, &in[1]));
  return assay_edit_become(e, n, "Reshape", 2, in);
}

static assay_status_t write_shape(assay_edit_t* e, assay_node_t* n) {
  int64_t target[ASSAY_MAX_RANK];
  const assay_node_t* one[] = {n};
  if (!assay_is(n, "Reshape") || n->n_inputs != 2 || !n->inputs[1] || n->inputs[1]->constant ||
      n->inputs[1]->is_input || !assay_reshape_target(n->outputs[0], target))
    return NULL;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, one, 1, "all sizes but one are known"));
  return to_reshape(e, n, n->inputs[X], target, assay_rank_of(n->outputs[0]));
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  int64_t target[ASSAY_MAX_RANK];
  const bool moves = moves_ones(n);
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) n->inputs[i] = assay_edit_value(e, n->inputs[i]);
  if (!moves && !is_view(n)) return NULL;
  assay_node_t* first = n->inputs[X]->producer;
  const bool chain = is_view(first) && first->graph == n->graph &&
                     assay_uses_of(&e->uses, n->inputs[X]) == 1 && !n->inputs[X]->is_output;
  if (!chain && !moves) return write_shape(e, n);
  assay_value_t *x = chain ? assay_edit_value(e, first->inputs[X]) : n->inputs[X],
                *y = n->outputs[0];
  const assay_node_t* both[] = {n, first};
  if (assay_same_static_shape(x, y) && assay_edit_can_redirect(e, y, x)) {
    ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_REMOVED, both, chain ? 2 : 1,
                                "the shape is '%s' again", x->name));
    assay_edit_kill(e, n);
    if (chain) assay_edit_kill(e, first);
    assay_edit_redirect(e, y, x);
    return NULL;
  }
  if (!assay_reshape_target(y, target)) return NULL;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_CHANGED, both, chain ? 2 : 1,
                              chain ? "they are one Reshape" : "it only moves ones: a Reshape"));
  if (chain) {
    ASSAY_TRY(assay_pass_absorb(e->c, first, n));
    assay_edit_kill(e, first);
  }
  return to_reshape(e, n, x, target, assay_rank_of(y));
}

static assay_status_t run(assay_pass_context_t* c) {
  if (assay_model_opset(c->model, "") < 5) return NULL;  // Reshape takes its shape as an attribute
  return assay_edit_each(c, visit);
}

const assay_pass_t assay_pass_view_chains = {
    .name = "view_chains",
    .summary = "Reshape, Squeeze, Unsqueeze and Flatten after each other become one, or none",
    .until_fixpoint = true,
    .run = run,
};
