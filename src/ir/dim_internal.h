// How dimensions are kept.
//
//   dim        a sum of terms, by degree (highest first), then by their atoms; no zeros, none twice
//   term       an integer times a monomial
//   monomial   a product of atoms, in order; the empty one stands with the constant term
//   atom       a name, floor(a/b), min(...), max(...) or broadcast(...); the arguments are dims
//
// All of these are interned: equal ones are one object. a mod b is a - b*floor(a/b), and
// ceil(a/b) is floor((a + b - 1)/b), or -floor(-a/b) where b's sign is not known.
#ifndef ASSAY_IR_DIM_INTERNAL_H_
#define ASSAY_IR_DIM_INTERNAL_H_

#include "base/str.h"
#include "ir/dim.h"

enum {
  DIM_MAX_TERMS = 64,    // of a sum
  DIM_MAX_WEIGHT = 512,  // of everything in it, counted as a tree; so recursion over it is short
  DIM_MAX_BUILD = 256,   // terms of a sum before equal ones are joined
  DIM_MAX_ARGS = 8,      // of min, max and broadcast
  // Past this much memory a pool makes only names and numbers: a model cannot use more.
  DIM_MAX_POOL_BYTES = 64 << 20,
};

typedef enum dim_kind { DIM_SYMBOL, DIM_FLOORDIV, DIM_MIN, DIM_MAX, DIM_BROADCAST } dim_kind_t;

// What a value lies between, whatever the names stand for; lo INT64_MIN and hi INT64_MAX: no limit.
typedef struct range {
  int64_t lo, hi;
} range_t;

typedef struct atom {
  dim_kind_t kind;
  int n;  // arguments; FLOORDIV: 2
  uint32_t weight;
  range_t range;
  uint64_t order;    // SYMBOL: which one of the pool it is
  const char* name;  // SYMBOL
  const assay_dim_t* args[];
} atom_t;

typedef struct mono {
  uint64_t hash;
  int n;
  uint32_t weight;
  range_t range;
  const atom_t* atoms[];
} mono_t;

typedef struct term {
  int64_t coef;
  const mono_t* mono;
} term_t;

struct assay_dim {
  uint64_t hash;
  int n;
  uint32_t weight;
  range_t range;
  term_t terms[];
};

// A sum while it is made. `bad`: it cannot be expressed.
typedef struct build {
  int n;
  bool bad;
  term_t terms[DIM_MAX_BUILD];
} build_t;

void dim_build_init(build_t* b);
void dim_build_add(build_t* b, int64_t coef, const mono_t* mono);
// Joins equal terms and interns the sum; NULL if it is too large, bad, or without memory.
const assay_dim_t* dim_build_done(assay_dims_t* p, build_t* b);

const mono_t* dim_mono_one(assay_dims_t* p);
const mono_t* dim_mono_atom(assay_dims_t* p, const atom_t* atom);
// NULL if too large, or without memory; NULL operands give NULL.
const mono_t* dim_mono_mul(assay_dims_t* p, const mono_t* a, const mono_t* b);
// a / b if b's atoms are all in a; NULL otherwise.
const mono_t* dim_mono_div(assay_dims_t* p, const mono_t* a, const mono_t* b);

// The dim of an atom with these arguments as they are; arguments of min, max and broadcast are put
// in order. NULL arguments give NULL.
const assay_dim_t* dim_atom(assay_dims_t* p, dim_kind_t kind, int n,
                            const assay_dim_t* const* args);

// Whether d is 0 or more, whatever the names stand for; false if that cannot be shown.
bool dim_is_nonnegative(assay_dims_t* p, const assay_dim_t* d);

// The order of atoms, monomials and dims. Does not depend on the history of the pool, other than
// through the order of its names.
int dim_compare(const assay_dim_t* a, const assay_dim_t* b);

// The atom that d is, if it is nothing else; NULL otherwise.
const atom_t* dim_as_atom(const assay_dim_t* d);
// The constant term.
int64_t dim_constant(const assay_dim_t* d);

// b > 0
static inline int64_t dim_floordiv_i64(int64_t a, int64_t b) { return a / b - (a % b < 0); }

#endif  // ASSAY_IR_DIM_INTERNAL_H_
