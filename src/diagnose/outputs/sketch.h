// Equations of numbers that a node might have otherwise: one for each probe (search_predict.h).
//
// Each probe p gives <p, r> + sum over numbers i of <J^T p, dy/di> x_i = 0, in the changes x of the
// numbers; random signs keep sums of squares on average, so that a few more equations than unknowns
// are enough (D. P. Woodruff, Sketching as a Tool for Numerical Linear Algebra, 2014).
#ifndef ASSAY_DIAGNOSE_OUTPUTS_SKETCH_H_
#define ASSAY_DIAGNOSE_OUTPUTS_SKETCH_H_

#include "diagnose/search_trial.h"

enum {
  ASSAY_SITE_CHANNELS = 128,  // at most, with two numbers each
  ASSAY_SITE_NUMBERS = 2 * ASSAY_SITE_CHANNELS,
  ASSAY_SITE_SPARE = 16  // equations besides one for each unknown, on which a fit is judged
};

typedef enum assay_site_kind {
  ASSAY_SITE_OUTPUT,    // factors, then summands, of the output's channels
  ASSAY_SITE_SLOPES,    // a slope for each channel of a PRelu that has one for all
  ASSAY_SITE_CONSTANT,  // elements of a constant
  ASSAY_SITE_SCALE,     // the scale of a normalization, which leaves its bias as it is
  ASSAY_SITE_INPUT,     // factors of the channels that a node reads (sides.h)
  ASSAY_SITE_MOVED,     // factors of a weight's channels that stand on the other side of it
  ASSAY_SITE_AROUND,    // summands of channels on the wrong side of an activation (folded.h)
  ASSAY_SITE_BORDER,    // what a border of each channel lacks
} assay_site_kind_t;

// What is fitted of an output: bit 0 factors, bit 1 summands. Others have numbers only.
enum { ASSAY_SITE_FACTORS = 1, ASSAY_SITE_SUMMANDS = 2 };

// Numbers of a node, and its equations.
typedef struct assay_site {
  assay_site_kind_t kind;
  size_t position;
  int axis;
  int64_t channels;  // of an output
  size_t input;
  int64_t* at;     // of a constant: the elements; owned
  int64_t taken;   // what an element gets is taken from the one so many places before it; 0: not
  size_t columns;  // numbers that an equation has
  double* rows;    // [max, columns]
  size_t max;
  double left;      // of equations that took no part in the fit, over what they are without
  double lefts[4];  // the same by family
  int family;       // whose turn it is
  bool both_done;   // factors and summands had theirs
} assay_site_t;

typedef struct assay_site_sketch {
  const assay_search_t* s;
  assay_site_t* sites;  // in the order of their positions
  size_t n, capacity;
  double* sides;  // [max]: <p, r>
  size_t equations, max;
  size_t elements;  // of golden, in the samples that equations are of: no more can be independent
  double end;
} assay_site_sketch_t;

void assay_site_sketch_deinit(assay_site_sketch_t* k);
assay_tensor_t* assay_site_sketch_truth(const assay_search_t* s, const assay_value_t* v);

// The axis of a node's channels; -1: it has none that anything could be folded into.
int assay_site_axis(const assay_node_t* n, const assay_tensor_t* y);
// Lists a site, if golden has elements enough. Takes site.at over.
assay_status_t assay_site_add(assay_site_sketch_t* k, assay_site_t site,
                              int64_t elements) ASSAY_MUST_USE;
// Lists the numbers of all nodes that the elements of golden are enough for.
assay_status_t assay_site_sketch_list(assay_site_sketch_t* k) ASSAY_MUST_USE;

// Equations of all samples in turn; s: searches of n of them; as far as node `first`.
assay_status_t assay_site_sketch_equations(assay_site_sketch_t* k, const assay_search_t* s,
                                           size_t n, size_t first) ASSAY_MUST_USE;
// Those that a site has.
size_t assay_site_equations(const assay_site_sketch_t* k, const assay_site_t* site);

size_t assay_site_unknowns(const assay_site_t* site, int family);
// How many elements of golden there have to be besides one for each number.
size_t assay_site_spare(size_t unknowns);
// Solves for the unknowns of a family in the first n equations, columns scaled to length 1, by
// Cholesky, with `damping` added to the diagonal. a: room for their square. False: it is singular.
bool assay_site_solve(const assay_site_t* site, int family, const double* sides, size_t n,
                      double damping, double* a, double* x);
// What is left in equations [n, end) with x, over what they are.
double assay_site_left(const assay_site_t* site, int family, const double* sides, size_t n,
                       size_t end, const double* x);

#endif  // ASSAY_DIAGNOSE_OUTPUTS_SKETCH_H_
