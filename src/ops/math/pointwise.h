// What pointwise operators share: loops over broadcast operands, and integer results.
#ifndef ASSAY_OPS_MATH_POINTWISE_H_
#define ASSAY_OPS_MATH_POINTWISE_H_

#include <string.h>

#include "ops/op.h"

// A loop nest over operands, each with its own strides (in elements; 0 repeats). The result is an
// operand, too. Dimensions are merged where all operands allow it, so that same shapes are one long
// loop and a broadcast along the inner or the outer dimensions is a nest of two.
enum { ASSAY_NEST_OPERANDS = 5 };

typedef struct assay_nest {
  int operands, rank;
  int64_t dims[ASSAY_MAX_RANK];
  int64_t strides[ASSAY_NEST_OPERANDS][ASSAY_MAX_RANK];
} assay_nest_t;

// A run of elements of the innermost loop: n elements; operand k starts at element at[k] and goes
// by step[k].
typedef void assay_span_fn(const void* user, int64_t n, const int64_t* at, const int64_t* step);

void assay_nest_init(assay_nest_t* nest, int rank, const int64_t* dims);
void assay_nest_add(assay_nest_t* nest, const int64_t* strides);
// Adds a tensor as it broadcasts to the nest's dims (which must fit).
void assay_nest_add_tensor(assay_nest_t* nest, const assay_tensor_t* t);
// Runs the nest. cost: operations per element, for the decision to use threads. The nest is
// changed.
void assay_nest_run(assay_nest_t* nest, double cost, assay_span_fn* f, const void* user);

// Runs f(user, first, n) over [0, size) in chunks, in several threads if the work is worth it.
typedef void assay_chunk_fn(const void* user, int64_t first, int64_t n);
void assay_chunks_run(int64_t size, double cost, assay_chunk_fn* f, const void* user);

// Wraps n integers to a type, as assay_type_wrap.
void assay_wrap_n(assay_type_t type, int64_t* x, int64_t n);

// uint64 travels as the int64 with the same bits.
static inline uint64_t assay_as_u64(int64_t x) { return (uint64_t)x; }
static inline int64_t assay_as_i64(uint64_t x) {
  int64_t r;
  memcpy(&r, &x, sizeof r);
  return r;
}
// The value of a canonical integer, rounded to the nearest float64.
static inline double assay_i64_to_f64(assay_type_t type, int64_t x) {
  return type == ASSAY_TYPE_UINT64 ? (double)assay_as_u64(x) : (double)x;
}
// Element i of a canonical tensor of floats, integers or bools as float64.
static inline double assay_elem_f64(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : assay_i64_to_f64(t->type, assay_i64(t)[i]);
}

// Truncates towards zero and converts to an integer type. Where the value does not fit, ONNX leaves
// the result open (Cast: 'undefined if OOR'); this is what numpy on x86-64 gives:
//   types of up to 16 bits   through int32: the low bits; 0 where int32 overflows
//   int32, int64             the smallest value
//   uint32                   through int64: the low bits; 0 where int64 overflows
//   uint64                   negative values wrap; 0 from 2^64 on, 2^63 below -2^63
//   NaN                      as a value below the range
//   bool                     x != 0
int64_t assay_f64_to_int(assay_type_t type, double x);

// Shape of the outputs of the pointwise operators below opset 7, whose attribute `broadcast` lets B
// repeat to the shape of A from dimension `axis` on (the last ones if not set).
assay_status_t assay_infer_legacy_broadcast(assay_infer_t* c, assay_type_t elem) ASSAY_MUST_USE;
// B's strides within A's shape, under the same rule.
assay_status_t assay_eval_legacy_strides(const assay_eval_t* c, const assay_tensor_t* a,
                                         const assay_tensor_t* b, int64_t* strides) ASSAY_MUST_USE;

// Cost of pointwise operators: so many operations an element of output 0.
void assay_pointwise_cost(const assay_eval_t* c, assay_cost_t* out);  // 1

#endif  // ASSAY_OPS_MATH_POINTWISE_H_
