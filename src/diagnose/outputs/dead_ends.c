// Values that nobody reads: what was left when the nodes that read them were lost.
//
// A network that was written out step by step, or block by block, has lost its gate in each of
// them: the gate of a step goes with what that step makes, which is found from where both begin.
// Sources: pytorch/benchmark issue 55 (output gates), pytorch/audio pull request 2665 (loudness put
// first).
#include "diagnose/outputs/dead_ends.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/causes/chains.h"
#include "diagnose/outputs/set.h"

enum { MOST = 64, TWOS = 6, NTH = 3 };

typedef struct dead_ends {
  assay_trials_t* t;
  assay_surroundings_t* around;
  double end;
  const assay_value_t* at[MOST];
  size_t n;
} dead_ends_t;

static const assay_tensor_t* tensor_of(const dead_ends_t* d, const assay_value_t* v) {
  const assay_tensor_t* x = v ? assay_evaluator_get(d->t->s->evaluator, v) : NULL;
  return x && x->kind == ASSAY_KIND_TENSOR && x->store == ASSAY_STORE_F64 && x->size > 0 &&
                 assay_type_is_float(x->type)
             ? x
             : NULL;
}

static bool is_read(const dead_ends_t* d, const assay_node_t* n) {
  const assay_node_t* const* readers = NULL;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] &&
        (n->outputs[i]->is_output || assay_around_readers(d->around, n->outputs[i], &readers)))
      return true;
  return false;
}

static void list(dead_ends_t* d) {
  const assay_search_t* s = d->t->s;
  for (size_t i = 0; i < s->n_nodes && d->n < MOST; i++) {
    const assay_node_t* n = s->nodes[i];
    if (n->n_inputs && n->n_outputs == 1 && !is_read(d, n) && tensor_of(d, n->outputs[0]))
      d->at[d->n++] = n->outputs[0];
  }
}

// ---- two of them in place of another value -----------------------------------------------------

// By node: whether a value is made from what the node gives.
static bool leads_to(const assay_node_t* a, const assay_node_t* b, int through) {
  if (a == b) return true;
  for (size_t i = 0; through > 0 && i < b->n_inputs; i++) {
    const assay_node_t* by = b->inputs[i] ? b->inputs[i]->producer : NULL;
    if (by && leads_to(a, by, through - 1)) return true;
  }
  return false;
}

static bool is_over(const dead_ends_t* d) { return d->t->found || assay_clock_seconds() > d->end; }

// What `program` makes of two in place of each input that has its shape.
static assay_status_t try_program(dead_ends_t* d, const char* program, const assay_value_t* v,
                                  const assay_value_t* u, int rank, const int64_t* dims) {
  enum { NEAR = 6 };
  const assay_search_t* s = d->t->s;
  for (size_t i = 0; i < s->n_nodes && !is_over(d); i++) {
    const assay_node_t* n = s->nodes[i];
    if (!is_read(d, n) || leads_to(n, v->producer, NEAR) || leads_to(n, u->producer, NEAR) ||
        !assay_around_may_read(d->around, n, v) || !assay_around_may_read(d->around, n, u))
      continue;
    for (size_t k = 0; k < n->n_inputs && !is_over(d); k++) {
      const assay_tensor_t* x = tensor_of(d, n->inputs[k]);
      if (!x || assay_around_is_constant(n->inputs[k]) || x->rank != rank ||
          memcmp(x->dims, dims, (size_t)rank * sizeof *dims) != 0)
        continue;
      assay_repair_t r = {.node = n, .cause = "read by nobody", .n_edits = 1};
      r.edits[0].kind = ASSAY_EDIT_BEFORE;
      r.edits[0].input = k;
      snprintf(r.text, sizeof r.text, "'%.60s' and '%.60s', %s, in place of '%.60s'", v->name,
               u->name, strchr(program, ':') ? "joined" : program, n->inputs[k]->name);
      if (n->inputs[k]->producer) r.beside[r.n_beside++] = n->inputs[k]->producer;
      ASSAY_TRY(assay_formula_create(
          &(assay_formula_terms_t){.program = program, .value = v, .value2 = u},
          &r.edits[0].formula));
      d->t->position = i;
      d->t->rank = (int)assay_proposal_count();
      assay_status_t st = assay_trials_try(d->t, &r);
      assay_repair_deinit(&r);
      ASSAY_TRY(st);
    }
  }
  return NULL;
}

static assay_status_t try_joined(dead_ends_t* d, const assay_value_t* v, const assay_value_t* u) {
  const assay_tensor_t *x = tensor_of(d, v), *y = tensor_of(d, u);
  if (x->rank != y->rank) return NULL;
  for (int axis = 0; axis < x->rank && !is_over(d); axis++) {
    char program[40];
    int64_t dims[ASSAY_MAX_RANK];
    bool fits = true;
    for (int i = 0; i < x->rank; i++) {
      fits &= i == axis || x->dims[i] == y->dims[i];
      dims[i] = x->dims[i] + (i == axis ? y->dims[i] : 0);
    }
    snprintf(program, sizeof program, "v u concat:%d,2", axis);
    if (fits) ASSAY_TRY(try_program(d, program, v, u, x->rank, dims));
  }
  return NULL;
}

static assay_status_t try_twos(dead_ends_t* d) {
  static const char* const PROGRAMS[] = {"v u +", "v u *", "v u -", "v u /"};
  for (size_t i = 0; i < d->n; i++)
    for (size_t k = 0; k < d->n && !is_over(d); k++) {
      if (i == k) continue;
      const assay_tensor_t *x = tensor_of(d, d->at[i]), *y = tensor_of(d, d->at[k]);
      ASSAY_TRY(try_joined(d, d->at[i], d->at[k]));
      for (size_t p = 0; p < sizeof PROGRAMS / sizeof *PROGRAMS; p++)
        if ((i < k || p > 1) && assay_tensor_same_shape(x, y))
          ASSAY_TRY(try_program(d, PROGRAMS[p], d->at[i], d->at[k], x->rank, x->dims));
    }
  return NULL;
}

// ---- one in each step --------------------------------------------------------------------------

// Where a dead end's way begins: the node before it that others read, too.
static const assay_node_t* beginning_of(const dead_ends_t* d, const assay_value_t* v) {
  enum { STEPS = 4 };
  const assay_node_t* n = v->producer;
  for (int i = 0; i < STEPS; i++) {
    const assay_node_t* before = n->n_inputs && n->inputs[0] ? n->inputs[0]->producer : NULL;
    const assay_node_t* const* readers = NULL;
    size_t others = 0;
    if (!before) return n;
    n = before;
    for (size_t k = 0; k < n->n_outputs; k++)
      if (n->outputs[k]) others += assay_around_readers(d->around, n->outputs[k], &readers);
    if (others > 1) return n;
  }
  return n;
}

// The nth node of an operator that is made from where a dead end begins, and has its shape; as many
// nodes as there are in all: there is none. after: a flag for each value, set back.
static size_t find_place(const dead_ends_t* d, const assay_value_t* v, const char* op_type,
                         size_t nth, bool* after) {
  const assay_search_t* s = d->t->s;
  const assay_tensor_t* x = tensor_of(d, v);
  const assay_node_t* begin = beginning_of(d, v);
  memset(after, 0, (size_t)s->model->n_values * sizeof *after);
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    bool is_after = n == begin;
    for (size_t k = 0; k < n->n_inputs && !is_after; k++)
      is_after = n->inputs[k] && after[n->inputs[k]->id];
    for (size_t k = 0; k < n->n_outputs && is_after; k++)
      if (n->outputs[k]) after[n->outputs[k]->id] = true;
    const assay_tensor_t* y = n->n_outputs ? tensor_of(d, n->outputs[0]) : NULL;
    if (!is_after || n == begin || !y || strcmp(n->op_type, op_type) != 0 || !is_read(d, n) ||
        !assay_tensor_same_shape(x, y) || !assay_around_may_read(d->around, n, v))
      continue;
    if (nth-- == 0) return i;
  }
  return s->n_nodes;
}

static assay_repair_t repair_of(const dead_ends_t* d, size_t position, const char* op,
                                const assay_value_t* v) {
  const assay_chain_step_t steps[ASSAY_CHAIN_STEPS] = {
      {.op_type = op, .of = {ASSAY_START, ASSAY_VALUE(v)}}};
  const assay_node_t* n = d->t->s->nodes[position];
  assay_repair_t r = {.node = n, .cause = "read by nobody", .n_edits = 1};
  assay_chain_edit(&r.edits[0], steps, tensor_of(d, n->outputs[0]));
  snprintf(r.text, sizeof r.text, "%s with '%.150s' after it", op, v->name);
  return r;
}

// Dead ends that one operator makes, of one shape, which go with the nth node of another one; where
// two go with the same node, the later one does.
static assay_status_t try_steps(dead_ends_t* d, const assay_value_t* like, const char* op,
                                const char* op_type, size_t nth, bool* after, assay_fault_t* out,
                                size_t* out_n) {
  assay_repair_set_t set = {0};
  size_t last = d->t->s->n_nodes, places[MOST];
  bool fits = true, restored = false;
  assay_status_t st = NULL;
  for (size_t i = 0; i < d->n; i++) {
    places[i] = d->t->s->n_nodes;
    if (strcmp(d->at[i]->producer->op_type, like->producer->op_type) == 0 &&
        assay_tensor_same_shape(tensor_of(d, d->at[i]), tensor_of(d, like)))
      places[i] = find_place(d, d->at[i], op_type, nth, after);
    for (size_t k = 0; k < i; k++)
      if (places[k] == places[i]) places[k] = last;
  }
  for (size_t i = 0; !st && fits && i < d->n; i++) {
    if (places[i] == last) continue;
    assay_repair_t r = repair_of(d, places[i], op, d->at[i]);
    st = assay_repair_set_add(&set, &r, &fits);
  }
  if (!st && fits && set.n > 1) st = assay_trials_try_set(d->t, &set, &restored);
  d->t->s->trials++;
  if (!st && restored) assay_repair_set_report(d->t, &set, out, out_n);
  assay_repair_set_deinit(&set);
  return st;
}

// All operators that make what has the shape of one of them.
static assay_status_t try_all_steps(dead_ends_t* d, const assay_value_t* like, bool* after,
                                    assay_fault_t* out, size_t* out_n) {
  static const char* const OPERATORS[] = {"Mul", "Add", "Sub"};
  const assay_search_t* s = d->t->s;
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    const assay_tensor_t* y = n->n_outputs ? tensor_of(d, n->outputs[0]) : NULL;
    bool first = y && is_read(d, n) && assay_tensor_same_shape(y, tensor_of(d, like));
    for (size_t k = 0; k < i && first; k++) first = strcmp(s->nodes[k]->op_type, n->op_type) != 0;
    for (size_t nth = 0; first && nth < NTH; nth++)
      for (size_t k = 0; k < sizeof OPERATORS / sizeof *OPERATORS; k++) {
        if (is_over(d)) return NULL;
        ASSAY_TRY(try_steps(d, like, OPERATORS[k], n->op_type, nth, after, out, out_n));
        if (*out_n) return NULL;
      }
  }
  return NULL;
}

assay_status_t assay_search_dead_ends(assay_trials_t* t, assay_surroundings_t* around, double end,
                                      assay_fault_t* out, size_t* out_n) {
  dead_ends_t d = {.t = t, .around = around, .end = end};
  bool* after = NULL;
  *out_n = 0;
  list(&d);
  if (d.n < 2) return NULL;
  ASSAY_TRY(assay_new_array((size_t)t->s->model->n_values, sizeof *after, &after));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < d.n && !*out_n && !is_over(&d); i++) {
    bool first = true;
    for (size_t k = 0; k < i; k++)
      first &= strcmp(d.at[k]->producer->op_type, d.at[i]->producer->op_type) != 0 ||
               !assay_tensor_same_shape(tensor_of(&d, d.at[k]), tensor_of(&d, d.at[i]));
    if (first) st = try_all_steps(&d, d.at[i], after, out, out_n);
  }
  // Where there are many of them, none was one of two that are left.
  if (!st && !*out_n && d.n <= TWOS) st = try_twos(&d);
  assay_free(after);
  return st;
}
