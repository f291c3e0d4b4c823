// Contents: what is known before running about the elements of small integer tensors.
//
// Shape -> Gather -> Mul -> Concat -> Reshape: the operators on such a chain hand on expressions,
// so that Reshape knows its target. These helpers are for the infer functions of all families: call
// one after the output's type and shape are set. They do nothing where nothing is known.
#ifndef ASSAY_OPS_CONTENT_H_
#define ASSAY_OPS_CONTENT_H_

#include "ops/op.h"

// Contents longer than this are not followed: shapes, pads and the like are shorter.
enum { ASSAY_CONTENT_MAX = 512 };

// A content in the caller's storage. NULL elements are unknown.
typedef struct assay_content_list {
  int rank;  // 0 or 1
  int64_t n;
  const assay_dim_t* elems[ASSAY_CONTENT_MAX];
} assay_content_list_t;

// One element of the result; NULL in or out: unknown.
typedef const assay_dim_t* assay_content_fn1_t(assay_dims_t* p, const assay_dim_t* a);
typedef const assay_dim_t* assay_content_fn2_t(assay_dims_t* p, const assay_dim_t* a,
                                               const assay_dim_t* b);

// The content of an input of integers, bools, or floats that are whole numbers; false if it is not
// one, too long or unknown.
bool assay_content_read(const assay_infer_t* c, size_t input, assay_content_list_t* out);
// The content of an input that holds integers by meaning (Tile-1 has them as floats): floats that
// are whole numbers count.
bool assay_content_read_any(const assay_infer_t* c, size_t input, assay_content_list_t* out);
// Sets an output's content. Elements that its type cannot hold become unknown (`like`: an input of
// that type, where the output's is not set).
assay_status_t assay_content_write(assay_infer_t* c, size_t output, size_t like,
                                   const assay_content_list_t* list) ASSAY_MUST_USE;

// Output 0 has the elements of an input: Identity, Cast between integer types, Dropout ...
assay_status_t assay_content_same(assay_infer_t* c, size_t input) ASSAY_MUST_USE;
// Output 0 is f of each element of input 0.
assay_status_t assay_content_unary(assay_infer_t* c, assay_content_fn1_t* f) ASSAY_MUST_USE;
// Output 0 is f of the elements of inputs 0 and 1, broadcast. Not for floats where f is only right
// for integers (division).
assay_status_t assay_content_binary(assay_infer_t* c, assay_content_fn2_t* f) ASSAY_MUST_USE;
// The same folded over all inputs: Max, Min, Sum.
assay_status_t assay_content_variadic(assay_infer_t* c, assay_content_fn2_t* f) ASSAY_MUST_USE;
// Output 0 is Where(input 0, input 1, input 2).
assay_status_t assay_content_where(assay_infer_t* c) ASSAY_MUST_USE;

// Functions for the above; assay_dim_add, _sub, _mul, _min, _max serve as they are.
assay_content_fn2_t assay_content_div;  // Div: towards zero
assay_content_fn2_t assay_content_mod;  // Mod with fmod=0: sign of the divisor
assay_content_fn2_t assay_content_equal, assay_content_less, assay_content_less_equal;
assay_content_fn2_t assay_content_greater, assay_content_greater_equal;
assay_content_fn2_t assay_content_and, assay_content_or;
assay_content_fn1_t assay_content_not, assay_content_neg, assay_content_abs;

// Whether an expression is known to be 0 or more (as sizes are), or to be negative.
bool assay_dim_nonneg(assay_dims_t* p, const assay_dim_t* d);
bool assay_dim_negative(const assay_dim_t* d);
// max(d, 0), and d itself where it is known not to be negative.
const assay_dim_t* assay_dim_clamp0(assay_dims_t* p, const assay_dim_t* d);

#endif  // ASSAY_OPS_CONTENT_H_
