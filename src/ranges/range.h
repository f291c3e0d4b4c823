// The ranges of one node: what the functions of rows.inc are given, and what they share.
#ifndef ASSAY_RANGES_RANGE_H_
#define ASSAY_RANGES_RANGE_H_

#include <math.h>

#include "eval/evaluator.h"
#include "ops/bound.h"
#include "ranges/ranges.h"

// Of a value: canonical tensors of its shape and type. One and the same tensor: known exactly.
// NULLs: nothing is known, the shape included. What is not a tensor of numbers is known exactly or
// not at all.
typedef struct assay_range {
  assay_tensor_t *lo, *hi;
} assay_range_t;

typedef struct assay_ranger assay_ranger_t;  // propagate.c
typedef struct assay_range_row assay_range_row_t;

typedef struct assay_range_node {
  assay_ranger_t* ranger;
  const assay_node_t* node;
  const assay_range_row_t* row;  // NULL: the operator has none
  assay_rounding_t rounding;     // how the engine rounds inside
  double u, tiny;                // of one operation: relative, absolute
  double inner_max;              // the largest number inside the operator
  size_t n_in, n_out;
  assay_range_t* in;   // rounded as they enter the layer
  assay_range_t* out;  // to be made; before they are rounded to where they are stored. What stays
                       // NULL may hold anything
  double*
      slack;  // by element of output 0: what its ends were widened by for rounding; NULL: nothing
  int64_t n_slack;
  assay_hazard_t hazard;  // the node's; set by assay_range_hazard
  bool has_hazard;
} assay_range_node_t;

typedef assay_status_t assay_range_fn(assay_range_node_t* c);

typedef enum assay_range_terms {
  ASSAY_TERMS_NONE = 0,
  ASSAY_TERMS_REDUCED,  // input's elements per output's
  ASSAY_TERMS_SCANNED,  // up to all along the largest dimension
  ASSAY_TERMS_INPUTS,
  ASSAY_TERMS_KERNEL,  // the attribute kernel_shape
} assay_range_terms_t;

// A row. Operators of any version; `signs` and what follows are the ready-made functions'.
struct assay_range_row {
  const char *domain, *op;
  assay_range_fn* run;
  // One letter an input, the last one repeats: + grows with it, - falls, * monotone in it with the
  // others fixed (either way), | grows with its magnitude, . must be known exactly, _ does not
  // matter.
  const char* signs;
  double ops;                // roundings in a row
  assay_range_terms_t sums;  // how many elements it adds up; NONE: it does not
  char wraps;                // of integers, which wrap: '+' adds or '*' multiplies two; 0: neither
  bool turns;                // not monotone: has an extremum at `turn`
  double turn;
  double min, max;                // of what comes out, if least < most
  double domain_min, domain_max;  // of input 0, if domain_min < domain_max
  bool open;                      // the ends of the domain do not belong to it
  uint32_t indices;               // bit i: output i counts elements of input 0
};
const assay_range_row_t* assay_range_find(const assay_node_t* node);

// ---- ranges -------------------------------------------------------------------------------------

static inline bool assay_range_exact(const assay_range_t* r) { return r->lo && r->lo == r->hi; }
static inline bool assay_range_has(const assay_range_node_t* c, size_t i) {
  return i < c->n_in && c->node->inputs[i];
}
bool assay_range_is_float(const assay_range_t* r);
void assay_range_release(assay_range_t* r);
void assay_range_release_all(size_t n, assay_tensor_t** t);
// Takes over both references; drops a twin that is equal.
void assay_range_set(assay_range_t* r, assay_tensor_t* take_lo, assay_tensor_t* take_hi);
assay_range_t assay_range_retain(const assay_range_t* r);
// The smallest that holds both: shapes must be the same, else nothing is known.
assay_status_t assay_range_hull(const assay_range_t* a, const assay_range_t* b,
                                assay_range_t* out) ASSAY_MUST_USE;
// All elements between lo and hi.
assay_status_t assay_range_fill(assay_type_t type, int rank, const int64_t* dims, double lo,
                                double hi, assay_range_t* out) ASSAY_MUST_USE;
// Output i of its inferred shape, all elements between lo and hi; nothing if the shape is open.
assay_status_t assay_range_fill_output(assay_range_node_t* c, size_t i, double lo,
                                       double hi) ASSAY_MUST_USE;
// The same with what its type can hold at all (and the format that stores it).
assay_status_t assay_range_whole(assay_range_node_t* c, size_t i) ASSAY_MUST_USE;

static inline double assay_elem(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64    ? assay_f64(t)[i]
         : t->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)assay_i64(t)[i]
                                        : (double)assay_i64(t)[i];
}
void assay_range_ends(const assay_range_t* r, double* lo, double* hi);  // over all elements
double assay_range_magnitude(const assay_range_t* r);

// ---- evaluating ---------------------------------------------------------------------------------

// The node in float64 on other inputs; out[n_out] is filled.
assay_status_t assay_range_evaluate(const assay_range_node_t* c, assay_tensor_t* const* in,
                                    assay_tensor_t** out) ASSAY_MUST_USE;
// The same of another node, such as a copy with other attributes.
assay_status_t assay_range_evaluate_as(const assay_range_node_t* c, const assay_node_t* node,
                                       size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                       assay_tensor_t** out) ASSAY_MUST_USE;
// A copy of the node as an operator of ai.onnx of the model's version (or `version`, if not 0),
// without attributes but those that are given.
assay_node_t assay_range_as(const assay_range_node_t* c, const char* op, int64_t version,
                            size_t n_attrs, assay_attr_t* attrs);

// Float tensors of an input: the middle, half the width (rounded up; together they cover it), the
// largest magnitude, the smallest.
typedef enum assay_range_part {
  ASSAY_RANGE_MIDDLE,
  ASSAY_RANGE_HALF_WIDTH,
  ASSAY_RANGE_LARGEST,
  ASSAY_RANGE_SMALLEST,
} assay_range_part_t;
assay_status_t assay_range_take(const assay_range_t* r, assay_range_part_t part,
                                assay_tensor_t** out) ASSAY_MUST_USE;

// ---- making -------------------------------------------------------------------------------------

// The node's hazard, if it has none yet or a lesser one.
void assay_range_hazard(assay_range_node_t* c, assay_hazard_kind_t kind, size_t index,
                        int64_t element, double figure, double other, double limit);
// Sums inside the operator whose magnitudes may add up to these: checked against the accumulator.
void assay_range_accumulates(assay_range_node_t* c, const assay_tensor_t* magnitude);
void assay_range_accumulates_to(assay_range_node_t* c, double magnitude);

// Makes the tensors of output i the caller's alone, and two.
assay_status_t assay_range_own(assay_range_node_t* c, size_t i) ASSAY_MUST_USE;
// Widens output i by ops roundings, and by `terms` roundings of numbers as large as `magnitude`
// (NULL: none).
assay_status_t assay_range_widen(assay_range_node_t* c, size_t i, double ops, double terms,
                                 const assay_tensor_t* magnitude) ASSAY_MUST_USE;
static inline double assay_down(const assay_range_node_t* c, double x, double ops) {
  const double e = ops * c->u * fabs(x) + (ops > 0 ? c->tiny : 0);
  return x >= 0 ? fmax(x - e, 0) : x - e;
}
static inline double assay_up(const assay_range_node_t* c, double x, double ops) {
  const double e = ops * c->u * fabs(x) + (ops > 0 ? c->tiny : 0);
  return x <= 0 ? fmin(x + e, 0) : x + e;
}
// Output i is no less and no more than these.
assay_status_t assay_range_limit(assay_range_node_t* c, size_t i, double min,
                                 double max) ASSAY_MUST_USE;

// ---- ready-made functions, and those of families ------------------------------------------------

assay_range_fn assay_range_monotone;  // by `signs`
assay_range_fn
    assay_range_moved;  // elements of the data inputs, moved; anything else unknown: their hull
#define ASSAY_RANGE(domain, op, function, ...) assay_range_fn function;
#include "ranges/rows.inc"
#undef ASSAY_RANGE

// By the row's bound function (ops/bound.h), in which half the width counts as an error of the
// inputs. Leaves outputs unknown where it does not take that.
assay_status_t assay_range_by_bound(assay_range_node_t* c) ASSAY_MUST_USE;
// What other nodes say about this one's output (facts.c): narrows it.
assay_status_t assay_range_by_facts(assay_range_node_t* c) ASSAY_MUST_USE;

// ---- the graph around (propagate.c) -------------------------------------------------------------

const assay_range_t* assay_ranger_get(const assay_ranger_t* r, const assay_value_t* v);
// Runs a subgraph of the node: its inputs' ranges by position, its outputs' into out[], retained.
assay_status_t assay_ranger_graph(assay_ranger_t* r, const assay_graph_t* g, size_t n_in,
                                  const assay_range_t* in, size_t n_out,
                                  assay_range_t* out) ASSAY_MUST_USE;
assay_format_t assay_ranger_storage(const assay_range_node_t* c, assay_type_t type);

#endif  // ASSAY_RANGES_RANGE_H_
