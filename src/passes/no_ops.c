// Nodes whose output is their first input: its readers read that input.
//
// Identity and Dropout in inference; Cast to the type that is there; Reshape, Squeeze, Expand,
// Tile, Slice and Split to the shape that is there; Transpose that leaves the order; Pad by
// nothing; Concat, Sum, Max, Min and Mean of one; x * 1, x / 1, x^1, x - 0, x + (-0). Not x + 0,
// which makes 0 of -0.
#include <math.h>
#include <string.h>

#include "passes/edit.h"
#include "passes/float_types.h"

enum { X, SECOND, THIRD, MAX_INTS = 2 * ASSAY_MAX_RANK };

// Whether the node's first output is input *x.
typedef bool is_noop_t(const assay_node_t* n, size_t* x);

static bool always(const assay_node_t* n, size_t* x) {
  (void)n, (void)x;
  return true;
}

// Elements in their order and in their shape, whatever the node's text says.
static bool same_shape(const assay_node_t* n, size_t* x) {
  (void)x;
  return assay_same_static_shape(n->inputs[X], n->outputs[0]);
}

static bool same_type(const assay_node_t* n, size_t* x) {
  (void)x;
  const assay_type_t t = assay_elem_of(n->inputs[X]);
  return t && t == assay_elem_of(n->outputs[0]);
}

static bool only_one(const assay_node_t* n, size_t* x) {
  (void)x;
  return n->n_inputs == 1;
}

// Source: ONNX Dropout 1, 6 (is_test), 7 and 10 (inference only), 12 and later (training_mode).
static bool does_not_train(const assay_node_t* n, size_t* x) {
  (void)x;
  double training = 0;
  if (n->schema->since < 7) return assay_attr_i64(n, "is_test", 0) != 0;
  if (n->n_inputs <= THIRD || !n->inputs[THIRD]) return true;
  return assay_pass_number(n->inputs[THIRD], &training) && training == 0;
}

// As many elements along each axis in steps forward are all of them.
static bool slices_all(const assay_node_t* n, size_t* x) {
  enum { STEPS = 4 };
  int64_t steps[MAX_INTS];
  if (!same_shape(n, x)) return false;
  if (n->n_inputs <= STEPS || !n->inputs[STEPS]) return true;
  const int count = assay_ints_of(n->inputs[STEPS], MAX_INTS, steps);
  for (int i = 0; i < count; i++)
    if (steps[i] < 1) return false;
  return count >= 0;
}

// Dimensions of size 1 may change places, if the shape stays.
static bool keeps_order(const assay_node_t* n, size_t* x) {
  size_t count = 0;
  const int64_t* perm = assay_attr_ints(n, "perm", &count);
  const int rank = assay_rank_of(n->inputs[X]);
  int64_t last = -1;
  if (rank < 0 || (perm && count != (size_t)rank) || !same_shape(n, x)) return false;
  for (int i = 0; i < rank; i++) {
    const int64_t from = perm ? perm[i] : rank - 1 - i;
    if (assay_dim_of(n->inputs[X], (int)from) == 1) continue;
    if (from < last) return false;
    last = from;
  }
  return true;
}

static bool pads_nothing(const assay_node_t* n, size_t* x) {
  (void)x;
  int64_t pads[MAX_INTS];
  size_t count = 0;
  const int64_t* p = assay_attr_ints(n, n->schema->since < 2 ? "paddings" : "pads", &count);
  if (n->n_inputs > SECOND) {
    const int given = assay_ints_of(n->inputs[SECOND], MAX_INTS, pads);
    if (given < 0) return false;
    p = pads;
    count = (size_t)given;
  }
  for (size_t i = 0; i < count; i++)
    if (p[i]) return false;
  return p != NULL && assay_same_static_shape(n->inputs[X], n->outputs[0]);
}

// All elements of a constant are this number (and this zero), and it does not broadcast the other.
static bool is_filled(const assay_node_t* n, size_t other, size_t with, double number) {
  double x;
  const assay_tensor_t* t = assay_pass_constant(n->inputs[with]);
  if (!t || t->size < 1 || !assay_same_static_shape(n->inputs[other], n->outputs[0]) ||
      assay_elem_of(n->inputs[other]) != assay_elem_of(n->outputs[0]))
    return false;
  if (n->op->flags & ASSAY_OP_POINTWISE && assay_attr_i64(n, "broadcast", 0)) return false;
  if (t->size == 1)
    return assay_pass_number(n->inputs[with], &x) && x == number && signbit(x) == signbit(number);
  if (assay_type_store(t->type) != ASSAY_STORE_F64) return false;
  for (int64_t i = 0; i < t->size; i++) {
    x = assay_tensor_element(t, i);
    if (x != number || signbit(x) != signbit(number)) return false;
  }
  return true;
}

static bool with_neutral(const assay_node_t* n, double number, bool either, size_t* x) {
  if (n->n_inputs != 2 || !n->inputs[X] || !n->inputs[SECOND]) return false;
  *x = X;
  if (is_filled(n, X, SECOND, number)) return true;
  *x = SECOND;
  return either && is_filled(n, SECOND, X, number);
}

static bool times_one(const assay_node_t* n, size_t* x) { return with_neutral(n, 1, true, x); }
static bool by_one(const assay_node_t* n, size_t* x) { return with_neutral(n, 1, false, x); }
static bool minus_zero(const assay_node_t* n, size_t* x) { return with_neutral(n, 0, false, x); }
// -0 + -0 is -0, and all else is as it was. Integers have only one zero.
static bool plus_nothing(const assay_node_t* n, size_t* x) {
  const bool is_float = assay_type_is_float(assay_elem_of(n->outputs[0]));
  return with_neutral(n, is_float ? -0.0 : 0.0, true, x);
}

static const struct {
  const char* op;
  is_noop_t* is_noop;
  const char* why;
} rows[] = {
    {"Identity", always, "it hands on what it reads"},
    {"Dropout", does_not_train, "it does nothing in inference"},
    {"Cast", same_type, "its input has the type"},
    {"CastLike", same_type, "its input has the type"},
    {"Reshape", same_shape, "its input has the shape"},
    {"Flatten", same_shape, "its input has the shape"},
    {"Squeeze", same_shape, "its input has the shape"},
    {"Unsqueeze", same_shape, "its input has the shape"},
    {"Expand", same_shape, "its input has the shape"},
    {"Tile", same_shape, "its input has the shape"},
    {"Split", same_shape, "it makes one part"},
    {"Slice", slices_all, "it takes all of its input"},
    {"Transpose", keeps_order, "it leaves the order"},
    {"Pad", pads_nothing, "it adds nothing"},
    {"Concat", only_one, "it has one input"},
    {"Sum", only_one, "it has one input"},
    {"Max", only_one, "it has one input"},
    {"Min", only_one, "it has one input"},
    {"Mean", only_one, "it has one input"},
    {"Mul", times_one, "a factor is 1"},
    {"Div", by_one, "the divisor is 1"},
    {"Pow", by_one, "the exponent is 1"},
    {"Sub", minus_zero, "what it subtracts is 0"},
    {"Add", plus_nothing, "what it adds is nothing"},
};

static bool is_noop(const assay_edit_t* e, const assay_node_t* n, size_t* x, const char** why) {
  if (!n->op || !n->schema || *n->domain || !n->n_inputs || !n->n_outputs || !n->inputs[X] ||
      !n->outputs[0])
    return false;
  // A mask of Dropout that somebody reads.
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i] && (assay_uses_of(&e->uses, n->outputs[i]) || n->outputs[i]->is_output))
      return false;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].op, n->op_type) != 0) continue;
    *why = rows[i].why;
    *x = X;
    return rows[i].is_noop(n, x) && !assay_rewrite_rounds(e->c->rewrite, n);
  }
  return false;
}

static assay_status_t visit(assay_edit_t* e, assay_node_t* n) {
  size_t x;
  const char* why = NULL;
  for (size_t i = 0; i < n->n_inputs; i++)
    if (n->inputs[i]) n->inputs[i] = assay_edit_value(e, n->inputs[i]);
  if (!is_noop(e, n, &x, &why)) return NULL;
  assay_value_t *from = n->outputs[0], *to = n->inputs[x];
  if (!assay_edit_can_redirect(e, from, to)) return NULL;
  const assay_node_t* node = n;
  ASSAY_TRY(assay_pass_record(e->c, ASSAY_PASS_REMOVED, &node, 1, "%s", why));
  assay_edit_kill(e, n);
  assay_edit_redirect(e, from, to);
  return NULL;
}

static assay_status_t run(assay_pass_context_t* c) { return assay_edit_each(c, visit); }

const assay_pass_t assay_pass_no_ops = {
    .name = "no_ops",
    .summary = "nodes that change nothing go: Identity, Cast to the same type, Mul by 1 ...",
    .until_fixpoint = true,
    .run = run,
};
