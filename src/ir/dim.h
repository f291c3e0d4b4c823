// Symbolic dimensions: integers, names, and their arithmetic.
//
// A dimension is a pointer to an expression that its pool interned: equal expressions are equal
// pointers. NULL is 'unknown'. Expressions are kept as sums of products with integer coefficients
// over names and divisions, so that N*2*3 is 6*N and (N+1)-1 is N. Operations on unknown give
// unknown; so do operations without memory, and the pool remembers that (assay_dims_status).
// Names are sizes: never negative. What would grow past some 64 terms is unknown.
#ifndef ASSAY_IR_DIM_H_
#define ASSAY_IR_DIM_H_

#include <stdbool.h>
#include <stdint.h>

#include "base/alloc.h"

typedef struct assay_dim assay_dim_t;    // always used as const assay_dim_t*
typedef struct assay_dims assay_dims_t;  // a pool

assay_status_t assay_dims_create(assay_dims_t** out) ASSAY_MUST_USE;
void assay_dims_destroy(assay_dims_t* pool);  // NULL is allowed
assay_status_t assay_dims_status(const assay_dims_t* pool) ASSAY_MUST_USE;

const assay_dim_t* assay_dim_const(assay_dims_t* pool, int64_t value);
const assay_dim_t* assay_dim_symbol(assay_dims_t* pool, const char* name);
// A name that nothing else has, starting with `hint`, for a size only known when running.
const assay_dim_t* assay_dim_fresh(assay_dims_t* pool, const char* hint);

// Integer arithmetic. Division by zero and overflow give unknown. floordiv rounds towards
// -infinity, ceildiv towards +infinity; mod has the divisor's sign (as Python's).
const assay_dim_t* assay_dim_add(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_sub(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_mul(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_floordiv(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_ceildiv(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_mod(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_min(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
const assay_dim_t* assay_dim_max(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
// The size of what two sizes broadcast to: they are equal, or one of them is 1 and it is the other.
// Where they are neither it has no value. NULL if it cannot be expressed.
const assay_dim_t* assay_dim_broadcast(assay_dims_t* p, const assay_dim_t* a, const assay_dim_t* b);
// With a constant on the right.
const assay_dim_t* assay_dim_add_i(assay_dims_t* p, const assay_dim_t* a, int64_t b);
const assay_dim_t* assay_dim_mul_i(assay_dims_t* p, const assay_dim_t* a, int64_t b);

// Whether it is a number, and which. False for NULL.
bool assay_dim_value(const assay_dim_t* d, int64_t* out);
// Whether it is a plain name, and which; NULL otherwise.
const char* assay_dim_name(const assay_dim_t* d);
// Known to be equal (the same expression; unknown is equal to nothing).
bool assay_dim_same(const assay_dim_t* a, const assay_dim_t* b);
// Known to differ: both numbers and different, or differing by a nonzero constant.
bool assay_dim_differ(const assay_dim_t* a, const assay_dim_t* b);
// Whether it can stand for a size: 0 or more for any sizes that the names stand for, or 1 or more
// for sizes of 1 and more (2*L - 1 can, N - 1 cannot).
bool assay_dim_is_size(assay_dims_t* p, const assay_dim_t* d);
// "N", "2*N + 1", "floor((H + 1)/2)", "?" into buffer; returns buffer.
const char* assay_dim_text(const assay_dim_t* d, char* buffer, size_t capacity);

// The number that it is when each name has the value that lookup gives; false if a name has none
// or the arithmetic fails.
bool assay_dim_eval(const assay_dim_t* d,
                    bool (*lookup)(void* user, const char* name, int64_t* out), void* user,
                    int64_t* out);
// d with every occurrence of a plain name replaced.
const assay_dim_t* assay_dim_replace(assay_dims_t* p, const assay_dim_t* d, const char* name,
                                     const assay_dim_t* by);
// The same expression in another pool; and all names of a pool, in their order, so that expressions
// copied later read the same and no fresh name of the copy is one of these.
const assay_dim_t* assay_dim_copy(assay_dims_t* to, const assay_dim_t* d);
void assay_dims_copy_names(assay_dims_t* to, const assay_dims_t* from);

#endif  // ASSAY_IR_DIM_H_
