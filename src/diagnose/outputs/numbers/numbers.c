// Several numbers that are lost at once.
//
// A line: what is subtracted, and what is multiplied by then, as of ranges of colours and of
// sensors (ITU-R BT.601: (y - 16) 255 / 219). An exporter that takes one range for another has both
// wrong, and neither alone brings golden near. Steepness: a number before each of the functions
// that bend (J. Zhu et al., Transformers without Normalization, 2025), all of which are lost
// together.
#include "diagnose/outputs/numbers/numbers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/causes/chains.h"
#include "diagnose/outputs/set.h"
#include "diagnose/search_joint.h"

enum { MOST = ASSAY_JOINT_NUMBERS };

// Positions of nodes, in order.
typedef struct group {
  size_t at[MOST], n;
  bool is_line;  // a summand after the first, a factor after the second; else a factor before each
  double merit;
} group_t;

typedef struct groups {
  group_t* at;
  size_t n, capacity;
} groups_t;

static bool is_one_of(const assay_node_t* n, const char* const* ops) {
  for (size_t i = 0; ops[i]; i++)
    if (!*n->domain && strcmp(n->op_type, ops[i]) == 0) return true;
  return false;
}

static bool is_float(const assay_search_t* s, const assay_value_t* v) {
  const assay_tensor_t* x = v ? assay_evaluator_get(s->evaluator, v) : NULL;
  return x && x->kind == ASSAY_KIND_TENSOR && x->store == ASSAY_STORE_F64 && x->size > 0 &&
         assay_type_is_float(x->type);
}

static assay_status_t add(const assay_trials_t* t, groups_t* g, group_t group) {
  for (size_t i = 0; i < group.n; i++) group.merit = fmax(group.merit, t->merit[group.at[i]]);
  ASSAY_TRY(assay_grow(&g->at, &g->capacity, g->n + 1, sizeof *g->at));
  g->at[g->n++] = group;
  return NULL;
}

// ---- which -------------------------------------------------------------------------------------

// Adds, subtracts, multiplies or divides by constants.
static bool is_straight(const assay_node_t* n) {
  static const char* const OPS[] = {"Add", "Sub", "Mul", "Div", NULL};
  return is_one_of(n, OPS) && n->n_inputs == 2 && n->inputs[1] &&
         assay_around_is_constant(n->inputs[1]) && n->inputs[0] &&
         !assay_around_is_constant(n->inputs[0]);
}

static assay_status_t list_lines(const assay_trials_t* t, const assay_surroundings_t* around,
                                 groups_t* g) {
  const assay_search_t* s = t->s;
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_node_t* const* readers = NULL;
    const assay_node_t* n = s->nodes[i];
    if (!is_straight(n) || !is_float(s, n->outputs[0]) ||
        assay_around_readers(around, n->outputs[0], &readers) != 1 || !is_straight(readers[0]))
      continue;
    for (size_t k = i + 1; k < s->n_nodes; k++)
      if (s->nodes[k] == readers[0])
        ASSAY_TRY(add(t, g, (group_t){.at = {i, k}, .n = 2, .is_line = true}));
  }
  return NULL;
}

// Functions for which a factor before them is none after them.
static bool is_bent(const assay_search_t* s, const assay_node_t* n) {
  static const char* const OPS[] = {
      "Tanh",     "Sigmoid",  "Erf",         "Exp",  "Sin", "Cos",  "Gelu", "Softmax",
      "Softplus", "Softsign", "HardSigmoid", "Atan", "Elu", "Selu", "Mish", NULL};
  return is_one_of(n, OPS) && is_float(s, n->inputs[0]);
}

static assay_status_t list_bent(const assay_trials_t* t, groups_t* g) {
  const assay_search_t* s = t->s;
  for (size_t i = 0; i < s->n_nodes; i++) {
    group_t group = {.at = {i}, .n = 1};
    bool first = is_bent(s, s->nodes[i]);
    // All of one operator: those at a block's end have another part than those within.
    for (size_t k = 0; k < i && first; k++)
      first = strcmp(s->nodes[k]->op_type, s->nodes[i]->op_type) != 0;
    for (size_t k = i + 1; first && k < s->n_nodes && group.n <= MOST; k++) {
      if (!is_bent(s, s->nodes[k]) || strcmp(s->nodes[k]->op_type, s->nodes[i]->op_type) != 0)
        continue;
      if (group.n < MOST) group.at[group.n] = k;
      group.n++;
    }
    if (first && group.n > 1 && group.n <= MOST) ASSAY_TRY(add(t, g, group));
  }
  return NULL;
}

// Lines first, which have two numbers only; of each the likeliest.
static int by_turn(const void* a, const void* b) {
  const group_t *x = a, *y = b;
  if (x->is_line != y->is_line) return x->is_line ? -1 : 1;
  if (x->merit != y->merit) return x->merit > y->merit ? -1 : 1;
  return x->at[0] < y->at[0] ? -1 : x->at[0] > y->at[0];
}

// ---- fitting -----------------------------------------------------------------------------------

static assay_status_t make(const assay_search_t* s, const group_t* g, size_t i,
                           assay_repair_t* out) {
  static const assay_chain_step_t FACTOR[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Mul", .of = {ASSAY_START, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}}};
  static const assay_chain_step_t SUMMAND[ASSAY_CHAIN_STEPS] = {
      {.op_type = "Add", .of = {ASSAY_START, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}}};
  static const double NEXT_TO_NOTHING = 1e-6;  // what a summand begins at
  const assay_node_t* n = s->nodes[g->at[i]];
  const bool summand = g->is_line && i == 0;
  const assay_value_t* v = g->is_line ? n->outputs[0] : n->inputs[0];
  const assay_tensor_t* x = assay_evaluator_get(s->evaluator, v);
  *out = (assay_repair_t){.node = n, .cause = "several numbers", .n_edits = 1, .fits = true};
  out->start = out->value = summand ? NEXT_TO_NOTHING : 1;
  assay_chain_edit(&out->edits[0], summand ? SUMMAND : FACTOR, x);
  out->edits[0].at_input = !g->is_line;
  return assay_tensor_scalar_f64(x->type, out->start, &out->edits[0].tensor);
}

static assay_status_t fit(assay_trials_t* t, const group_t* g, double end, assay_fault_t* out,
                          size_t* out_n) {
  assay_repair_t repairs[MOST] = {{0}};
  assay_joint_group_t joint = {.repairs = repairs, .n = g->n};
  size_t trials = 0;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n; i++) st = make(t->s, g, i, &repairs[i]);
  if (!st) st = assay_search_joint_fit(t->s, &joint, end, out, out_n, &trials);
  t->s->trials += trials;
  for (size_t i = 0; i < g->n; i++) assay_repair_deinit(&repairs[i]);
  if (st)
    for (size_t i = 0; i < *out_n; i++) assay_repair_deinit(&out[i].repair);
  if (st) *out_n = 0;
  return st || !*out_n ? st : assay_repair_set_confirm(t, out, out_n);
}

assay_status_t assay_search_numbers(assay_trials_t* t, const assay_surroundings_t* around,
                                    double end, assay_fault_t* out, size_t* out_n) {
  groups_t groups = {0};
  *out_n = 0;
  assay_status_t st = list_lines(t, around, &groups);
  if (!st) st = list_bent(t, &groups);
  if (!st && groups.n) qsort(groups.at, groups.n, sizeof *groups.at, by_turn);
  for (size_t i = 0; !st && i < groups.n && !*out_n && assay_clock_seconds() < end; i++)
    st = fit(t, &groups.at[i], end, out, out_n);
  assay_free(groups.at);
  return st;
}
