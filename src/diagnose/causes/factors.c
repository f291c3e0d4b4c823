// Numbers that were lost on the way: a factor or a summand after a node or before one of several
// that read a value, and a bound that is approached by tanh.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/chains.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

#define TENSOR \
  { ASSAY_OPERAND_TENSOR, 0, 0, NULL }

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static bool is_op(const assay_node_t* n, const char* const* names) {
  for (; !*n->domain && *names; names++)
    if (strcmp(n->op_type, *names) == 0) return true;
  return false;
}

// A repair whose only edit is a chain with a number that is fitted. Nothing can be fitted from 0,
// nor from the largest of values that a mask made infinite.
static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            const assay_tensor_t* like, const assay_chain_t* c, double start,
                            bool fits, const assay_trial_t* t, bool* stop) {
  if (start == 0 || !isfinite(start)) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CHAIN);
  assay_repair_edit_t* e = &r.edits[0];
  e->at_input = input < s->n_in;
  e->input = e->at_input ? input : 0;
  assay_chain_edit(e, c->steps, like);
  ASSAY_TRY(assay_tensor_scalar_f64(like->type, start, &e->tensor));
  r.fits = fits;
  r.value = r.start = start;
  assay_status_t st = assay_repair_set_value(&r, start);
  if (st) return assay_repair_deinit(&r), st;
  return assay_offer(t, &r, stop);
}

static const assay_chain_t factor = {"factor", {{.op_type = "Mul", .of = {ASSAY_START, TENSOR}}}};
static const assay_chain_t summand = {"summand", {{.op_type = "Add", .of = {ASSAY_START, TENSOR}}}};
static const assay_chain_t power = {"power", {{.op_type = "Pow", .of = {ASSAY_START, TENSOR}}}};
static const assay_chain_t cap = {"cap",
                                  {{.op_type = "Div", .of = {ASSAY_START, TENSOR}},
                                   {.op_type = "Tanh", .of = {ASSAY_STEP(0)}},
                                   {.op_type = "Mul", .of = {ASSAY_STEP(1), TENSOR}}}};

// What a factor or a summand after these is the same as in a constant of theirs.
static bool has_own_factor(const assay_suspect_t* s) {
  static const char* const ops[] = {"Mul", "Div", "MatMul", NULL};
  bool any = false;
  for (size_t i = 0; i < s->n_in; i++) any |= assay_around_is_constant(s->node->inputs[i]);
  return any && is_op(s->node, ops);
}

static bool has_own_summand(const assay_suspect_t* s) {
  static const char* const ops[] = {"Add",  "Sub",           "Conv",      "Gemm",
                                    "LSTM", "ConvTranspose", "Transpose", NULL};
  return is_op(s->node, ops);
}

// These only hand on what a node before them makes.
static bool only_moves(const assay_node_t* n) {
  static const char* const ops[] = {"Transpose", "Reshape", "Squeeze",  "Unsqueeze", "Slice",
                                    "Split",     "Flatten", "Identity", "Dropout",   "Cast",
                                    "Expand",    "Concat",  "Constant", NULL};
  return is_op(n, ops);
}

// Several read the value, or nobody makes it: a factor before one of them is no other's.
static bool is_shared(const assay_suspect_t* s, size_t i) {
  const assay_node_t* const* readers = NULL;
  const assay_value_t* v = s->node->inputs[i];
  if (!v || assay_around_is_constant(v) || !is_float(s->in[i])) return false;
  return !v->producer || assay_around_readers(s->around, v, &readers) > 1;
}

// Far from 1 a fit may not find the way: the root of a width.
static assay_status_t offer_usual(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  static const char* const sums[] = {"Gather", "Log",    "Add",     "Conv",      "Gemm",
                                     "Split",  "MatMul", "Softmax", "Transpose", NULL};
  const assay_tensor_t* y = s->out[0];
  const double width = y->rank ? (double)y->dims[y->rank - 1] : 1;
  const double numbers[] = {sqrt(width), 1 / sqrt(width)};
  for (size_t i = 0; is_op(s->node, sums) && i < sizeof numbers / sizeof *numbers && !*stop; i++)
    if (numbers[i] != 1)
      ASSAY_TRY(offer(s, cause, s->n_in, y, &factor, numbers[i], false, t, stop));
  return NULL;
}

// Sources: embeddings times the root of their width, A. Vaswani et al., 2017, 3.4; branches that
// are scaled before they are added, H. Touvron et al., 2021 (LayerScale); logarithms to other
// bases.
assay_status_t assay_propose_factor(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  if (!s->around || *s->node->domain) return NULL;
  const bool after = s->n_out && is_float(s->out[0]) && !only_moves(s->node);
  if (after && !has_own_factor(s))
    ASSAY_TRY(offer(s, cause, s->n_in, s->out[0], &factor, 1, true, t, stop));
  if (after && !*stop) ASSAY_TRY(offer_usual(s, cause, t, stop));
  static const char* const readers[] = {
      "Add", "Sub", "Mul",     "Div",  "Conv", "Gemm", "Exp",  "MatMul",  "Concat", "Sum",
      "Sin", "Cos", "Sigmoid", "Tanh", "Pow",  "Erf",  "Gelu", "Softmax", NULL};
  for (size_t i = 0; is_op(s->node, readers) && i < s->n_in && !*stop; i++)
    if (is_shared(s, i)) ASSAY_TRY(offer(s, cause, i, s->in[i], &factor, 1, true, t, stop));
  return NULL;
}

// Such as the 1 of weights that are stored less one: Gemma's normalization, Gemma Team, 2024.
assay_status_t assay_propose_summand(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  static const double NEXT_TO_NOTHING = 1e-6;  // what the number begins at
  if (!s->around || *s->node->domain || !s->n_out || !is_float(s->out[0])) return NULL;
  if (only_moves(s->node) || has_own_summand(s)) return NULL;
  return offer(s, cause, s->n_in, s->out[0], &summand, NEXT_TO_NOTHING, true, t, stop);
}

// A power of what is above 0, whose exponent is fitted: light as screens have it, what is heard,
// means of powers. Sources: IEC 61966-2-1 (2.4 and 2.2); R. Hermansky, 1990 (the cube root of
// power); F. Radenovic et al., 2018 (generalized means).
assay_status_t assay_propose_power(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  static const char* const scales[] = {"Pow", "Sqrt", "Softmax", "Constant", NULL};
  if (!s->around || *s->node->domain || !s->n_out || !is_float(s->out[0])) return NULL;
  if (only_moves(s->node) || is_op(s->node, scales)) return NULL;
  double low = HUGE_VAL, high = 0;
  for (int64_t i = 0; i < s->out[0]->size; i++) {
    low = fmin(low, assay_f64(s->out[0])[i]);
    high = fmax(high, assay_f64(s->out[0])[i]);
  }
  if (low < 0 || !(high > low)) return NULL;
  return offer(s, cause, s->n_in, s->out[0], &power, 1, true, t, stop);
}

static double largest(const assay_tensor_t* x) {
  double max = 0;
  for (int64_t i = 0; i < x->size; i++) max = fmax(max, fabs(assay_f64(x)[i]));
  return max;
}

// Whether what a node gives is read by a Softmax soon, or is near the end.
static bool is_scores(const assay_suspect_t* s) {
  enum { HOPS = 4, LAST = 6 };
  const assay_node_t* const* readers = NULL;
  const assay_node_t* n = s->node;
  if (s->model->graph->n_nodes - s->around->order[n->id] <= LAST) return true;
  for (int hops = 0; hops < HOPS && n->n_outputs && n->outputs[0]; hops++) {
    if (!assay_around_readers(s->around, n->outputs[0], &readers)) return false;
    n = readers[0];
    if (strcmp(n->op_type, "Softmax") == 0) return true;
  }
  return false;
}

// c tanh(x / c) of scores and of what a model gives. Source: Gemma Team, 2024: Gemma 2, 2.
assay_status_t assay_propose_cap(const assay_suspect_t* s, const char* cause,
                                 const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"MatMul", "Gemm", "Conv", "Add", "Mul", "Div", "Einsum", NULL};
  static const double usual[] = {30, 50, 20, 10, 5, 15, 100, 1, 2, 3};
  static const double LEAST = 0.02;  // of the cap, that is reached
  if (!s->around || !is_op(s->node, ops) || !s->n_out || !is_float(s->out[0])) return NULL;
  if (!is_scores(s)) return NULL;
  const double max = largest(s->out[0]);
  for (size_t i = 0; i < sizeof usual / sizeof *usual && !*stop; i++)
    if (max > LEAST * usual[i])
      ASSAY_TRY(offer(s, cause, s->n_in, s->out[0], &cap, usual[i], false, t, stop));
  if (!(max > 0) || *stop) return NULL;
  return offer(s, cause, s->n_in, s->out[0], &cap, max, true, t, stop);
}
