// Nodes that a model lacks: where they may stand, and from what.
#include "diagnose/solve/missing.h"

#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/settings.h"
#include "diagnose/solve/solve.h"

// ---- the other values --------------------------------------------------------------------------

static bool is_known(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR &&
         (t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_I64 ||
          t->store == ASSAY_STORE_PACKED);
}

static assay_status_t add_other(assay_missing_search_t* s, const assay_value_t* v, bool varies) {
  enum { MAX_OTHERS = 600 };
  assay_tensor_t* t = v ? assay_evaluator_get(s->m, v) : NULL;
  if (!is_known(t) || !t->size || s->n_others == MAX_OTHERS) return NULL;
  ASSAY_TRY(assay_grow(&s->others, &s->cap_others, s->n_others + 1, sizeof *s->others));
  assay_missing_other_t* o = &s->others[s->n_others];
  ASSAY_TRY(assay_tensor_widen(t, &o->tensor));
  o->value = v;
  o->varies = varies;
  s->n_others++;
  return NULL;
}

// By value id: what goes with the model's inputs, what is read, and what comes after the node.
typedef struct facts {
  bool *varies, *read, *after;
} facts_t;

static void facts_deinit(facts_t* f) {
  assay_free(f->varies);
  assay_free(f->read);
  assay_free(f->after);
}

static void set_outputs(const assay_node_t* n, bool* flags) {
  for (size_t k = 0; k < n->n_outputs; k++)
    if (n->outputs[k]) flags[n->outputs[k]->id] = true;
}

static assay_status_t find_facts(const assay_missing_search_t* s, facts_t* f) {
  const assay_graph_t* g = s->node->graph;
  const size_t values = (size_t)g->model->n_values;
  ASSAY_TRY(assay_new_array(values, sizeof *f->varies, &f->varies));
  ASSAY_TRY(assay_new_array(values, sizeof *f->read, &f->read));
  ASSAY_TRY(assay_new_array(values, sizeof *f->after, &f->after));
  for (size_t i = 0; i < g->n_inputs; i++) f->varies[g->inputs[i]->id] = true;
  for (size_t i = 0; i < g->n_outputs; i++) f->read[g->outputs[i]->id] = true;
  set_outputs(s->node, f->after);
  bool later = false;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    // What a body reads is not listed among its node's inputs.
    bool varies = n->op && n->op->flags & ASSAY_OP_CONTROL, after = varies && n != s->node;
    later |= n == s->node;
    after |= later && n != s->node && s->faulty && s->faulty[n->id];
    for (size_t k = 0; k < n->n_inputs; k++) {
      if (!n->inputs[k]) continue;
      f->read[n->inputs[k]->id] = true;
      varies |= f->varies[n->inputs[k]->id];
      after |= f->after[n->inputs[k]->id];
    }
    if (varies) set_outputs(n, f->varies);
    if (after) set_outputs(n, f->after);
  }
  return NULL;
}

// What the nodes before position `at` make, nearest first; then, where they do not need the node,
// those after it: branches stand side by side, and exporters put constants first.
static assay_status_t list_made(assay_missing_search_t* s, const facts_t* f, size_t at,
                                bool unread) {
  const assay_graph_t* g = s->node->graph;
  enum { AFTER = 200 };
  const bool is_constant = s->node->n_inputs == 0;
  size_t after = 0;
  for (size_t d = 1; d < g->n_nodes + 1; d++) {
    // Backwards from the node, then forwards.
    if (d > at && !is_constant && !unread && ++after > AFTER) break;
    const assay_node_t* n = g->nodes[d <= at ? at - d : d - 1];
    // Another constant tells no more than golden does, and may be wrong itself.
    if (n == s->node || (is_constant && !n->n_inputs)) continue;
    for (size_t k = 0; k < n->n_outputs; k++) {
      const assay_value_t* v = n->outputs[k];
      if (v && !f->after[v->id] && f->read[v->id] != unread)
        ASSAY_TRY(add_other(s, v, f->varies[v->id]));
    }
  }
  return NULL;
}

static assay_status_t list_with(assay_missing_search_t* s, const facts_t* f) {
  static const int64_t SMALL = 1 << 18, ALL = 1 << 22;  // elements
  const assay_graph_t* g = s->node->graph;
  size_t at = 0;
  while (at < g->n_nodes && g->nodes[at] != s->node) at++;
  ASSAY_TRY(list_made(s, f, at, true));
  s->n_unread = s->n_others;
  ASSAY_TRY(list_made(s, f, at, false));
  for (size_t i = 0; i < g->n_inputs; i++) ASSAY_TRY(add_other(s, g->inputs[i], true));
  int64_t sum = 0;
  for (size_t i = 0; i < g->n_initializers; i++) {
    const assay_tensor_t* t = g->initializers[i]->constant;
    if (!t || t->size > SMALL || sum + t->size > ALL) continue;
    sum += t->size;
    ASSAY_TRY(add_other(s, g->initializers[i], false));
  }
  return NULL;
}

// All that does not need the node: what nobody reads first, nearest first, then the graph's inputs,
// then constants, which are widened for it: small ones, and not too many.
static assay_status_t list_others(assay_missing_search_t* s) {
  facts_t f = {0};
  assay_status_t st = find_facts(s, &f);
  if (!st) st = list_with(s, &f);
  facts_deinit(&f);
  return st;
}

// ---- the places --------------------------------------------------------------------------------

static assay_status_t all_kinds(assay_missing_search_t* s, const assay_missing_place_t* p) {
  ASSAY_TRY(assay_missing_kinds(s, p));
  return assay_missing_formulas(s, p);
}

static assay_status_t at_output(assay_missing_search_t* s, assay_tensor_t* want) {
  const assay_missing_place_t p = {
      .kind = ASSAY_EDIT_AFTER, .index = s->output, .x = s->target->truth, .want = want};
  if (!p.x || p.x->kind != ASSAY_KIND_TENSOR) return NULL;
  return all_kinds(s, &p);
}

static bool is_input(const assay_node_t* n, const assay_value_t* v) {
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i] == v) return true;
  return false;
}

// From what is near before it: a pattern that became another one, a node too many, elements in
// another order.
static assay_status_t from_ancestors(assay_missing_search_t* s, assay_tensor_t* want) {
  enum { ANCESTORS = 24 };
  for (size_t i = 0, n = 0; i < s->n_others && n < ANCESTORS && !assay_missing_is_over(s); i++) {
    const assay_missing_other_t* o = &s->others[i];
    if (o->tensor->store != ASSAY_STORE_F64 || o->tensor->rank != want->rank) continue;
    n++;
    const assay_missing_place_t p = {.kind = ASSAY_EDIT_AFTER,
                                     .index = s->output,
                                     .x = o->tensor,
                                     .source = o->value,
                                     .want = want};
    ASSAY_TRY(assay_missing_try(s, &p, &(assay_formula_terms_t){.program = "x"}, "another source",
                                "take"));
    ASSAY_TRY(assay_missing_bounds(s, &p));
    ASSAY_TRY(assay_missing_activations(s, &p));
    ASSAY_TRY(assay_missing_moves(s, &p));
    ASSAY_TRY(assay_missing_functions(s, &p));
    ASSAY_TRY(assay_missing_along(s, &p));
    // Numbers in place of what the node does: statistics of training, not of what is there.
    if (is_input(s->node, o->value)) ASSAY_TRY(assay_missing_fits(s, &p));
  }
  return NULL;
}

// What goes into the node, or is near before it, in another arrangement; or one slice of it.
static assay_status_t rearranged(assay_missing_search_t* s, assay_tensor_t* want) {
  enum { ANCESTORS = 24 };
  for (size_t i = 0, n = 0; i < s->n_others && n < ANCESTORS && !assay_missing_is_over(s); i++) {
    const assay_missing_other_t* o = &s->others[i];
    const bool is_slice = o->tensor->rank == want->rank + 1;
    if (!o->varies || (o->tensor->size != want->size && !is_slice)) continue;
    n++;
    const assay_missing_place_t p = {.kind = ASSAY_EDIT_AFTER,
                                     .index = s->output,
                                     .x = o->tensor,
                                     .source = o->value,
                                     .want = want};
    ASSAY_TRY(assay_missing_arranged(s, &p));
    if (is_slice) ASSAY_TRY(assay_missing_slices(s, &p));
  }
  return NULL;
}

static assay_status_t at_input(assay_missing_search_t* s, size_t i) {
  const assay_missing_place_t p = {.kind = ASSAY_EDIT_BEFORE, .index = i, .x = s->in[i]};
  ASSAY_TRY(assay_missing_activations(s, &p));
  if (!assay_missing_is_over(s)) ASSAY_TRY(assay_missing_reduced(s, &p));
  if (!assay_missing_is_over(s)) ASSAY_TRY(assay_missing_pooled(s, &p));
  return assay_missing_is_over(s) ? NULL : assay_missing_values(s, &p);
}

// What has to go in, by what has to come out.
static assay_status_t backwards(assay_missing_search_t* s, size_t i, const assay_tensor_t* want) {
  assay_tensor_t* x = NULL;
  ASSAY_TRY(assay_missing_inverse(s, i, want, &x));
  if (!x) return NULL;
  const assay_missing_place_t p = {.kind = ASSAY_EDIT_BEFORE, .index = i, .x = s->in[i], .want = x};
  assay_status_t st = all_kinds(s, &p);
  assay_tensor_release(x);
  return st;
}

// How many inputs the operator may have, those that the node leaves out among them.
static size_t inputs_of(const assay_node_t* n) {
  enum { MOST = 8 };
  size_t count = n->n_inputs;
  while (n->schema && count < MOST && assay_schema_input(n->schema, count) &&
         !assay_schema_input(n->schema, count)->is_variadic)
    count++;
  return count;
}

static bool is_constant(const assay_node_t* n, size_t i) {
  return i < n->n_inputs && n->inputs[i] && n->inputs[i]->constant;
}

// What a node without inputs has to be: what is computed from other values.
static assay_status_t in_place_of_constant(assay_missing_search_t* s, assay_tensor_t* want) {
  const assay_missing_place_t p = {
      .kind = ASSAY_EDIT_AFTER, .index = s->output, .x = s->target->truth, .want = want};
  ASSAY_TRY(assay_missing_operators(s, &p));
  if (!assay_missing_is_over(s)) ASSAY_TRY(rearranged(s, want));
  return assay_missing_is_over(s) ? NULL : from_ancestors(s, want);
}

static assay_status_t try_places(assay_missing_search_t* s, const assay_golden_t* golden) {
  assay_tensor_t* want = NULL;
  ASSAY_TRY(assay_tensor_widen(s->target->golden, &want));
  const bool is_constant_node = s->node->n_inputs == 0;
  assay_status_t st = is_constant_node ? in_place_of_constant(s, want) : NULL;
  if (is_constant_node) return assay_tensor_release(want), st;
  if (!st) st = assay_missing_outputs(s);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_hanging(s, want);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_lost(s, golden);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_arrays(s, golden);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_settings(s, want);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_exchanged(s);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_discrete(s);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_uniform(s, want);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_remade(s, want);
  if (!st && !assay_missing_is_over(s)) st = rearranged(s, want);
  if (!st && !assay_missing_is_over(s)) st = at_output(s, want);
  if (!st && !assay_missing_is_over(s)) st = from_ancestors(s, want);
  for (size_t i = 0; !st && i < inputs_of(s->node) && !assay_missing_is_over(s); i++)
    if (!is_constant(s->node, i)) st = at_input(s, i);
  for (size_t i = 0; !st && i < s->n_in && !assay_missing_is_over(s); i++)
    if (!is_constant(s->node, i)) st = backwards(s, i, want);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_joined(s, want);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_rewired(s);
  if (!st && !assay_missing_is_over(s)) st = assay_settings_order(s);
  if (!st && !assay_missing_is_over(s)) st = assay_missing_numbers(s, want);
  assay_tensor_release(want);
  return st;
}

static assay_status_t solve(assay_missing_search_t* s, bool* out_found) {
  const assay_node_t* node = s->node;
  *out_found = false;
  while (s->output < node->n_outputs && node->outputs[s->output] != s->target->value) s->output++;
  if (s->output == node->n_outputs || (node->op && node->op->flags & ASSAY_OP_CONTROL) ||
      !is_known(s->target->golden))
    return NULL;
  const size_t room = inputs_of(node);
  assay_status_t st = assay_new_array(room, sizeof *s->in, &s->in);
  s->n_in = node->n_inputs;
  for (size_t i = 0; !st && i < s->n_in; i++) {
    assay_tensor_t* t = node->inputs[i] ? assay_evaluator_get(s->m, node->inputs[i]) : NULL;
    if (t) st = assay_tensor_widen(t, &s->in[i]);
  }
  if (!st) st = list_others(s);
  if (!st) st = s->arrays_only ? assay_missing_arrays(s, s->golden) : try_places(s, s->golden);
  if (st && (s->found || s->has_refuted)) assay_repair_deinit(s->out);
  *out_found = !st && (s->found || s->has_refuted);
  for (size_t i = 0; s->in && i < room; i++) assay_tensor_release(s->in[i]);
  for (size_t i = 0; i < s->n_others; i++) assay_tensor_release(s->others[i].tensor);
  for (size_t i = 0; i < s->n_made; i++) assay_formula_release(s->made[i].formula);
  assay_free(s->in);
  assay_free(s->others);
  return st;
}

assay_status_t assay_solve_missing(assay_evaluator_t* m, const assay_node_t* node,
                                   const assay_search_target_t* target,
                                   const assay_golden_t* golden, const bool* faulty,
                                   assay_holdout_t* holdout, double deadline, assay_repair_t* out,
                                   bool* out_found) {
  assay_missing_search_t s = {.m = m,
                              .node = node,
                              .target = target,
                              .golden = golden,
                              .faulty = faulty,
                              .deadline = deadline,
                              .holdout = holdout,
                              .out = out};
  return solve(&s, out_found);
}

assay_status_t assay_solve_array(assay_evaluator_t* m, const assay_node_t* node,
                                 const assay_search_target_t* target, const assay_golden_t* golden,
                                 const bool* faulty, assay_holdout_t* holdout, double deadline,
                                 bool unread, assay_repair_t* out, bool* out_found) {
  assay_missing_search_t s = {.m = m,
                              .node = node,
                              .target = target,
                              .golden = golden,
                              .faulty = faulty,
                              .deadline = deadline,
                              .holdout = holdout,
                              .out = out,
                              .arrays_only = true,
                              .unread_only = unread};
  return solve(&s, out_found);
}
