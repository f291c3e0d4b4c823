// A node with another constant, or with a repair.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/golden/walk.h"
#include "diagnose/solve/solve.h"

assay_status_t assay_solve_evaluate(const assay_solve_t* s, assay_tensor_t* constant,
                                    assay_tensor_t** out) {
  assay_tensor_t** made = NULL;
  assay_tensor_t* before = s->in[s->input];
  *out = NULL;
  ASSAY_TRY(assay_new_array(s->node->n_outputs, sizeof *made, &made));
  s->in[s->input] = constant;
  assay_status_t st =
      assay_evaluator_node(s->m, s->node, s->node->n_inputs, s->in, s->node->n_outputs, made);
  s->in[s->input] = before;
  if (!st && made[s->output] && assay_tensor_alike(made[s->output], s->want))
    *out = assay_tensor_retain(made[s->output]);
  for (size_t i = 0; i < s->node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  // A constant of zeros may not be one that the operator takes.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

// Of fp32: a few roundings of the result.
static const double NEW_RMS = 4 * 0x1p-24, NEW_MAX = 16 * 0x1p-24;

// Where new nodes amplify what they round, as what takes 1 off a root: so much of golden's size is
// explained at most.
static const double MOST = 1e-3;

static void set_rounding(const assay_repair_t* r, bool rounds) {
  for (size_t i = 0; i < r->n_edits; i++)
    if (r->edits[i].formula) assay_formula_set_rounding(r->edits[i].formula, rounds);
}

static assay_status_t evaluate(assay_evaluator_t* m, const assay_repair_t* r,
                               const assay_value_t* value, size_t n_in, assay_tensor_t* const* in,
                               assay_tensor_t** out) {
  const assay_node_t* node = r->node;
  assay_tensor_t** made = NULL;
  *out = NULL;
  ASSAY_TRY(assay_new_array(node->n_outputs, sizeof *made, &made));
  assay_status_t st = assay_repair_evaluate(m, r, n_in, in, node->n_outputs, made);
  for (size_t i = 0; !st && i < node->n_outputs; i++)
    if (node->outputs[i] == value && !*out) *out = assay_tensor_retain(made[i]);
  for (size_t i = 0; i < node->n_outputs; i++) assay_tensor_release(made[i]);
  assay_free(made);
  // A repair that the node does not take does not restore.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}

// Whether so much is left as the new nodes' own rounding explains.
static assay_status_t is_rounding(assay_evaluator_t* m, const assay_repair_t* r,
                                  const assay_search_target_t* target, size_t n_in,
                                  assay_tensor_t* const* in, const assay_tensor_t* made,
                                  const assay_difference_t* left, bool* out) {
  assay_tensor_t* rounded = NULL;
  set_rounding(r, true);
  assay_status_t st = evaluate(m, r, target->value, n_in, in, &rounded);
  set_rounding(r, false);
  if (!st && rounded && assay_tensor_alike(rounded, made)) {
    const assay_difference_t d = assay_difference(rounded, made);
    *out = d.comparable && !d.mismatched &&
           left->rms <= assay_golden_allowed(d.rms, target->golden, left->ref_rms) &&
           left->max <= assay_golden_allowed(d.max, target->golden, left->ref_max);
  }
  assay_tensor_release(rounded);
  return st;
}

assay_status_t assay_solve_restores(assay_evaluator_t* m, const assay_repair_t* r,
                                    const assay_search_target_t* target, size_t n_in,
                                    assay_tensor_t* const* in, bool* out) {
  assay_tensor_t* made = NULL;
  *out = false;
  ASSAY_TRY(evaluate(m, r, target->value, n_in, in, &made));
  if (!made || !assay_tensor_same_shape(made, target->golden))
    return assay_tensor_release(made), NULL;
  const assay_difference_t d = assay_difference(made, target->golden);
  // New nodes round as well: what was measured is the rounding of those that are there.
  const bool adds = assay_repair_only_follows(r) && target->golden->type == ASSAY_TYPE_FLOAT;
  const double rms = adds ? fmax(target->explained_rms, NEW_RMS * d.ref_rms) : 0;
  const double max = adds ? fmax(target->explained_max, NEW_MAX * d.ref_max) : 0;
  assay_status_t st = NULL;
  *out = d.comparable && !d.mismatched && d.rms <= fmax(rms, target->explained_rms) &&
         d.max <= fmax(max, target->explained_max);
  if (!*out && adds && d.comparable && !d.mismatched && d.rms <= MOST * d.ref_rms)
    st = is_rounding(m, r, target, n_in, in, made, &d, out);
  assay_tensor_release(made);
  return st;
}
