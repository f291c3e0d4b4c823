// Outputs of a node under each other's names: parts of a Split in another order. A permutation of a
// few outputs is a few exchanges.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"

enum { OUTPUTS = ASSAY_REPAIR_EDITS + 1 };

static bool is_same(const assay_tensor_t* made, const assay_tensor_t* golden) {
  if (!made || !golden || !assay_tensor_same_shape(made, golden)) return false;
  const assay_difference_t d = assay_difference(made, golden);
  return d.comparable && !d.mismatched && d.rms <= 1e-5 * d.ref_rms;
}

// from[i]: the output that gives what golden has of output i. False: golden does not tell.
static bool find_order(const assay_missing_search_t* s, assay_tensor_t* const* made, size_t* from) {
  bool taken[OUTPUTS] = {false};
  for (size_t i = 0; i < s->node->n_outputs; i++) {
    const assay_value_t* v = s->node->outputs[i];
    const bool is_target = v == s->target->value;
    const assay_tensor_t* golden = !v          ? NULL
                                   : is_target ? s->target->golden
                                               : assay_evaluator_get(s->m, v);
    size_t k = 0;
    while (k < s->node->n_outputs && (taken[k] || !is_same(made[k], golden))) k++;
    if (k == s->node->n_outputs) return false;
    taken[k] = true;
    from[i] = k;
  }
  return true;
}

static assay_status_t offer_order(assay_missing_search_t* s, size_t* from) {
  assay_repair_t r = {.node = s->node, .cause = "order of outputs"};
  size_t used = (size_t)snprintf(r.text, sizeof r.text, "outputs");
  for (size_t i = 0; i < s->node->n_outputs; i++)
    used += (size_t)snprintf(r.text + used, sizeof r.text - used, " %zu", from[i]);
  snprintf(r.text + used, sizeof r.text - used, " in the place of 0 to %zu",
           s->node->n_outputs - 1);
  // Each exchange puts one output where it belongs.
  for (size_t i = 0; i < s->node->n_outputs; i++) {
    if (from[i] == i) continue;
    if (r.n_edits == ASSAY_REPAIR_EDITS) return NULL;
    r.edits[r.n_edits++] =
        (assay_repair_edit_t){.kind = ASSAY_EDIT_OUTPUTS, .input = i, .other = from[i]};
    for (size_t k = i + 1; k < s->node->n_outputs; k++)
      if (from[k] == i) from[k] = from[i];
  }
  return r.n_edits ? assay_missing_offer(s, &r) : NULL;
}

assay_status_t assay_missing_outputs(assay_missing_search_t* s) {
  const size_t n = s->node->n_outputs;
  assay_tensor_t* made[OUTPUTS] = {NULL};
  size_t from[OUTPUTS] = {0};
  if (n < 2 || n > OUTPUTS) return NULL;
  assay_status_t st = assay_evaluator_node(s->m, s->node, s->n_in, s->in, n, made);
  if (!st && find_order(s, made, from)) st = offer_order(s, from);
  for (size_t i = 0; i < n; i++) assay_tensor_release(made[i]);
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
