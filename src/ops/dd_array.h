// Arrays of numbers of twice the precision of double, with NumPy's broadcasting: what operators'
// definitions are written in, where truth must be finer than float64.
//
// A definition reads like the operator's text:
//
//   const assay_pair_t* e = assay_dd_map1(c, assay_dd_exp, assay_dd_sub(c, x, max));
//   assay_dd_put(c, 0, assay_dd_div(c, e, assay_dd_total(c, e, axes)));
//
// Every array lives until the node is done. A failure is kept in c->status; after it every
// function gives NULL, and takes it.
#ifndef ASSAY_OPS_DD_ARRAY_H_
#define ASSAY_OPS_DD_ARRAY_H_

#include "base/double_double.h"
#include "ops/op.h"

// Two tensors of one shape. low NULL: 0. What does not hold floats has no low part.
typedef struct assay_pair {
  assay_tensor_t *high, *low;
} assay_pair_t;
void assay_pair_deinit(assay_pair_t* p);

struct assay_dd_eval {
  const assay_node_t* node;
  size_t n_in, n_out;
  const assay_pair_t* in;  // high NULL: left out
  assay_pair_t* out;       // to be filled
  // Evaluates the node in arithmetic F64, or, with low, in DD.
  assay_status_t (*evaluate)(assay_dd_eval_t* c, assay_tensor_t* const* in, assay_tensor_t** out,
                             assay_tensor_t** low);
  void* driver;
  assay_status_t status;  // the first failure
  assay_pair_t** made;    // arrays in between
  size_t n_made, scratch_made;
};

// Makes a node's outputs, by its row's definition; by moving both parts for operators that move
// elements whatever these are; by evaluating it where no low parts come in and nothing is rounded.
// Errors: UNSUPPORTED where none of these holds.
assay_status_t assay_dd_node(assay_dd_eval_t* c) ASSAY_MUST_USE;

// ---- arrays ------------------------------------------------------------------------------------

bool assay_dd_has(const assay_dd_eval_t* c, size_t i);
// Input i; NULL if it is left out. Integers count as the numbers that they are.
const assay_pair_t* assay_dd_in(const assay_dd_eval_t* c, size_t i);
const assay_pair_t* assay_dd_number(assay_dd_eval_t* c, assay_dd_t x);
const assay_pair_t* assay_dd_attr(assay_dd_eval_t* c, const char* name, double otherwise);
// Output i, in the type that is inferred for it, else that of input 0.
void assay_dd_put(assay_dd_eval_t* c, size_t i, const assay_pair_t* x);
void assay_dd_unsupported(assay_dd_eval_t* c, const char* what);

// Another shape of as many elements. Vectors as they lie along one axis of a tensor of some rank.
const assay_pair_t* assay_dd_reshape(assay_dd_eval_t* c, const assay_pair_t* x, int rank,
                                     const int64_t* dims);
const assay_pair_t* assay_dd_along(assay_dd_eval_t* c, const assay_pair_t* x, int rank, int axis);

// Marks the axes from the one that attribute `name` says, up to `end` (0: that one alone), of input
// 0's; false on failure.
bool assay_dd_axes(assay_dd_eval_t* c, const char* name, int64_t otherwise, int end, bool* axes);

// Element by element.
typedef assay_dd_t assay_dd_fn1_t(assay_dd_t x);
typedef assay_dd_t assay_dd_fn2_t(assay_dd_t x, assay_dd_t y);
typedef assay_dd_t assay_dd_fn3_t(assay_dd_t x, assay_dd_t y, assay_dd_t z);
const assay_pair_t* assay_dd_map1(assay_dd_eval_t* c, assay_dd_fn1_t* f, const assay_pair_t* x);
const assay_pair_t* assay_dd_map2(assay_dd_eval_t* c, assay_dd_fn2_t* f, const assay_pair_t* x,
                                  const assay_pair_t* y);
const assay_pair_t* assay_dd_map3(assay_dd_eval_t* c, assay_dd_fn3_t* f, const assay_pair_t* x,
                                  const assay_pair_t* y, const assay_pair_t* z);

// f over the elements along the marked axes (`rank` of them), one after the other from `start`; the
// axes stay, with 1 element.
const assay_pair_t* assay_dd_fold(assay_dd_eval_t* c, assay_dd_fn2_t* f, double start,
                                  const assay_pair_t* x, const bool* axes);
const assay_pair_t* assay_dd_total(assay_dd_eval_t* c, const assay_pair_t* x, const bool* axes);
const assay_pair_t* assay_dd_mean(assay_dd_eval_t* c, const assay_pair_t* x, const bool* axes);

static inline const assay_pair_t* assay_dd_sum2(assay_dd_eval_t* c, const assay_pair_t* x,
                                                const assay_pair_t* y) {
  return assay_dd_map2(c, assay_dd_plus, x, y);
}
static inline const assay_pair_t* assay_dd_sub(assay_dd_eval_t* c, const assay_pair_t* x,
                                               const assay_pair_t* y) {
  return assay_dd_map2(c, assay_dd_minus, x, y);
}
static inline const assay_pair_t* assay_dd_mul(assay_dd_eval_t* c, const assay_pair_t* x,
                                               const assay_pair_t* y) {
  return assay_dd_map2(c, assay_dd_times, x, y);
}
static inline const assay_pair_t* assay_dd_div(assay_dd_eval_t* c, const assay_pair_t* x,
                                               const assay_pair_t* y) {
  return assay_dd_map2(c, assay_dd_over, x, y);
}

assay_dd_t assay_dd_max(assay_dd_t x, assay_dd_t y);  // NaN if one is
assay_dd_t assay_dd_min(assay_dd_t x, assay_dd_t y);

// ---- by the node's own kernel ------------------------------------------------------------------

// Sums of products by the node's own kernel, which knows arithmetic DOUBLE_DOUBLE: linear in each
// of the factors (inputs by number); other float inputs are added.
void assay_dd_products(assay_dd_eval_t* c, size_t n_factors, const size_t* factors);
// The node on the high parts of other inputs, for outputs that are whole numbers.
void assay_dd_whole(assay_dd_eval_t* c, const assay_pair_t* const* in);

#endif  // ASSAY_OPS_DD_ARRAY_H_
