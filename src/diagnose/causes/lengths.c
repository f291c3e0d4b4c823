// Sequences that were taken for as long as their padding: what has to be told how long each is.
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { TEXT = ASSAY_FORMULA_TEXT, LENGTHS = 3 };

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

// Integers, one a sequence, none beyond the steps that there are.
static bool are_lengths(const assay_tensor_t* x, int64_t steps) {
  if (!x || x->store != ASSAY_STORE_I64 || x->rank != 1 || x->type == ASSAY_TYPE_BOOL) return false;
  for (int64_t i = 0; i < x->size; i++)
    if (assay_i64(x)[i] < 1 || assay_i64(x)[i] > steps) return false;
  return x->size > 0;
}

typedef struct place {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  int time;      // the axis of steps
  size_t drops;  // whether what comes out lacks that axis
} place_t;

static assay_status_t offer(const place_t* p, const assay_formula_terms_t* terms,
                            const char* what) {
  assay_repair_t r = assay_repair_of(p->s, p->cause, ASSAY_EDIT_AFTER);
  snprintf(r.text, sizeof r.text, "%s of each sequence by its length, '%.100s'", what,
           terms->value->name);
  ASSAY_TRY(assay_formula_create(terms, &r.edits[0].formula));
  return assay_offer(p->t, &r, p->stop);
}

// ---- what may be done by lengths ---------------------------------------------------------------

// Turned round: what is behind a sequence's end stays there. Source: tensorflow/tensorflow issue
// 2895.
static assay_status_t offer_reversed(const place_t* p, const assay_value_t* v, int batch) {
  const assay_formula_terms_t terms = {.program = "x v int reverse",
                                       .source = p->s->node->inputs[0],
                                       .value = v,
                                       .axes = {batch, p->time},
                                       .n_axes = 2};
  return offer(p, &terms, "the reverse");
}

// Numbers 0, 1, ... or 1, 2, ... along the steps, and the lengths along the batch.
static assay_status_t counts(const place_t* p, assay_type_t type, int64_t from,
                             assay_tensor_t** out) {
  const assay_tensor_t* x = p->s->in[0];
  int64_t dims[ASSAY_MAX_RANK];
  for (int k = 0; k < x->rank; k++) dims[k] = k == p->time ? x->dims[k] : 1;
  ASSAY_TRY(assay_tensor_create(type, x->rank, dims, out));
  for (int64_t i = 0; i < (*out)->size; i++) assay_i64(*out)[i] = i + from;
  return NULL;
}

// program: with one %s, where the lengths stand in the data's shape, and one where steps are left
// out, or stay as a dimension of 1.
static assay_status_t offer_sum(const place_t* p, const assay_value_t* v, int batch, int64_t from,
                                const char* before, const char* after, const char* what) {
  const assay_tensor_t* x = p->s->in[0];
  const assay_tensor_t* length = assay_around_tensor(p->s->around, v);
  int64_t dims[ASSAY_MAX_RANK];
  char program[TEXT];
  assay_tensor_t* at = NULL;
  for (int k = 0; k < x->rank; k++) dims[k] = k == batch ? -1 : 1;
  size_t used = assay_formula_append(program, 0, before, NULL, 0);
  used = assay_formula_append(program, used, "reshape", dims, x->rank);
  used = assay_formula_append(program, used, after, NULL, 0);
  if (used >= TEXT || !length) return NULL;
  ASSAY_TRY(counts(p, length->type, from, &at));
  const assay_formula_terms_t terms = {.program = program,
                                       .source = p->s->node->inputs[0],
                                       .value = v,
                                       .c = at,
                                       .axes = {p->time},
                                       .n_axes = 1};
  assay_status_t st = offer(p, &terms, what);
  assay_tensor_release(at);
  return st;
}

// The last step, where the last of the padding was taken.
static assay_status_t offer_last(const place_t* p, const assay_value_t* v, int batch) {
  return offer_sum(p, v, batch, 1, "x c v", p->drops ? "== cast * sum." : "== cast * sum",
                   "the last step");
}

// The sum of the steps that there are, and their mean.
static assay_status_t offer_pooled(const place_t* p, const assay_value_t* v, int batch) {
  const char* sum = p->drops ? "< cast * sum." : "< cast * sum";
  if (!is_op(p->s->node, "ReduceMean") && !is_op(p->s->node, "GlobalAveragePool"))
    return offer_sum(p, v, batch, 0, "x c v", sum, "the sum");
  const assay_tensor_t* x = p->s->in[0];
  int64_t dims[ASSAY_MAX_RANK];
  char after[TEXT];
  int n = 0;
  for (int k = 0; k < x->rank; k++)
    if (k != p->time || !p->drops) dims[n++] = k == batch ? -1 : 1;
  size_t used = assay_formula_append(after, 0, sum, NULL, 0);
  used = assay_formula_append(after, used, "v", NULL, 0);
  used = assay_formula_append(after, used, "cast", NULL, 0);
  used = assay_formula_append(after, used, "reshape", dims, n);
  used = assay_formula_append(after, used, "/", NULL, 0);
  return used < TEXT ? offer_sum(p, v, batch, 0, "x c v", after, "the mean") : NULL;
}

typedef assay_status_t by_lengths(const place_t* p, const assay_value_t* v, int batch);

// With each value that may be the lengths: the model's inputs, and what is made of them.
static assay_status_t offer_each(const place_t* p, by_lengths* f) {
  const assay_tensor_t* x = p->s->in[0];
  const assay_graph_t* g = p->s->model->graph;
  size_t found = 0;
  for (size_t i = 0; i < g->n_inputs + g->n_nodes && found < LENGTHS && !*p->stop; i++) {
    const assay_value_t* v = i < g->n_inputs ? g->inputs[i] : NULL;
    if (!v && g->nodes[i - g->n_inputs]->n_outputs) v = g->nodes[i - g->n_inputs]->outputs[0];
    if (!v || assay_around_is_constant(v)) continue;
    const assay_tensor_t* n = assay_around_tensor(p->s->around, v);
    if (!are_lengths(n, x->dims[p->time]) || !assay_around_may_read(p->s->around, p->s->node, v))
      continue;
    found++;
    for (int batch = 0; batch < x->rank && !*p->stop; batch++)
      if (batch != p->time && x->dims[batch] == n->size) ASSAY_TRY(f(p, v, batch));
  }
  return NULL;
}

// ---- nodes that have none ----------------------------------------------------------------------

static bool one_number(const assay_suspect_t* s, size_t input, int64_t* out) {
  const assay_tensor_t* t = input < s->n_in ? s->in[input] : NULL;
  if (!t || t->store != ASSAY_STORE_I64 || t->size != 1) return false;
  return *out = assay_i64(t)[0], true;
}

static assay_status_t at_slice(place_t* p) {
  int64_t start = 0, end = 0, axis = 0, step = 1;
  const assay_suspect_t* s = p->s;
  if (s->n_in < 3 || !one_number(s, 1, &start) || !one_number(s, 2, &end)) return NULL;
  if (s->n_in > 3 && s->in[3] && !one_number(s, 3, &axis)) return NULL;
  if (s->n_in > 4 && s->in[4] && !one_number(s, 4, &step)) return NULL;
  p->time = (int)(axis < 0 ? axis + s->in[0]->rank : axis);
  if (p->time < 0 || p->time >= s->in[0]->rank) return NULL;
  const int64_t length = s->in[0]->dims[p->time];
  start = start < 0 ? start + length : start;
  if (step == -1 && start >= length - 1 && s->out[0] && s->out[0]->size == s->in[0]->size)
    return offer_each(p, offer_reversed);
  if (step == 1 && start == length - 1 && s->out[0] && s->out[0]->dims[p->time] == 1)
    return offer_each(p, offer_last);
  return NULL;
}

// Whether indices count down from the last step to the first.
static bool count_down(const assay_tensor_t* at, int64_t length) {
  if (at->size != length || at->rank != 1 || length < 2) return false;
  for (int64_t i = 0; i < length; i++)
    if (assay_i64(at)[i] != length - 1 - i && assay_i64(at)[i] != -1 - i) return false;
  return true;
}

static assay_status_t at_gather(place_t* p) {
  const assay_suspect_t* s = p->s;
  const int64_t axis = assay_attr_i64(s->node, "axis", 0);
  const assay_tensor_t* at = s->n_in > 1 ? s->in[1] : NULL;
  p->time = (int)(axis < 0 ? axis + s->in[0]->rank : axis);
  if (!at || at->store != ASSAY_STORE_I64 || p->time < 0 || p->time >= s->in[0]->rank) return NULL;
  if (!assay_around_is_constant(s->node->inputs[1])) return NULL;
  const int64_t length = s->in[0]->dims[p->time];
  if (count_down(at, length)) return offer_each(p, offer_reversed);
  if (at->size != 1 || at->rank > 1) return NULL;
  p->drops = at->rank == 0;
  if (assay_i64(at)[0] != -1 && assay_i64(at)[0] != length - 1) return NULL;
  return offer_each(p, offer_last);
}

static assay_status_t at_reduction(place_t* p) {
  const assay_tensor_t *x = p->s->in[0], *y = p->s->out[0];
  if (!y) return NULL;
  p->drops = y->rank < x->rank;
  for (p->time = 1; p->time < x->rank && !*p->stop; p->time++) {
    const bool reduces = p->drops ? y->size * x->dims[p->time] == x->size
                                  : y->dims[p->time] == 1 && y->size * x->dims[p->time] == x->size;
    if (reduces && x->dims[p->time] > 1) ASSAY_TRY(offer_each(p, offer_pooled));
  }
  return NULL;
}

assay_status_t assay_propose_lengths(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  place_t p = {.s = s, .cause = cause, .t = t, .stop = stop};
  if (!s->around || !s->n_in || !s->n_out || !s->in[0] || !s->node->inputs[0]) return NULL;
  if (s->in[0]->kind != ASSAY_KIND_TENSOR || s->in[0]->store != ASSAY_STORE_F64) return NULL;
  if (s->in[0]->rank < 2 || assay_around_is_constant(s->node->inputs[0])) return NULL;
  if (is_op(s->node, "Slice")) return at_slice(&p);
  if (is_op(s->node, "Gather")) return at_gather(&p);
  if (is_op(s->node, "ReduceMean") || is_op(s->node, "ReduceSum")) return at_reduction(&p);
  return NULL;
}
