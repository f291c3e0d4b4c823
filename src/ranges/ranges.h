// Ranges: between which numbers every value of a model lies when its inputs lie in a box.
//
// Intervals, element by element, are carried through the graph: each operator's row in rows.inc
// says how (most ask the operator itself, in float64, at the ends of what comes in). They hold for
// the numbers as an engine computes them in the plan's formats: what enters a layer is rounded to
// its format, results are widened by a running error bound of the arithmetic inside (Wilkinson's,
// as ops/bound.h) and rounded as they are stored. So where no hazard is found, no input of the box
// gives a NaN or an infinity anywhere in the emulated engine.
//
// Infinities that a constant brings in (masks) are not hazards until they make a NaN.
#ifndef ASSAY_RANGES_RANGES_H_
#define ASSAY_RANGES_RANGES_H_

#include "plan/plan.h"
#include "ranges/box.h"

typedef enum assay_hazard_kind {
  ASSAY_HAZARD_OVERFLOW = 0,  // a value past the range of the format that stores it
  ASSAY_HAZARD_ACCUMULATOR,   // a sum inside the operator past the range of what it is kept in
  ASSAY_HAZARD_DIVISION,      // a divisor may be 0
  ASSAY_HAZARD_DOMAIN,        // Sqrt, Log, ... of what they are not defined for
  ASSAY_HAZARD_INVALID,       // infinities meet: NaN
  ASSAY_HAZARD_CAST,          // a number that the integer type cannot hold
  ASSAY_HAZARD_WRAP,          // integers past their type
  ASSAY_HAZARD_UNKNOWN,       // no range is known for the operator, so for nothing after it
} assay_hazard_kind_t;
const char* assay_hazard_name(assay_hazard_kind_t kind);

typedef struct assay_hazard {
  const assay_node_t* node;    // NULL: the graph input
  const assay_value_t* value;  // the output (DIVISION, DOMAIN, CAST: the input) that is meant
  assay_hazard_kind_t kind;
  size_t index;     // of `value` among the node's outputs (inputs)
  int64_t element;  // the worst one
  double figure;    // how far it may go; DIVISION, DOMAIN: the end of the interval
  double other;     // the interval's other end
  double limit;     // what the format holds
  assay_format_t format;
} assay_hazard_t;

// A value's interval over all elements, for reports.
typedef struct assay_value_range {
  double lo, hi;
  bool known;
} assay_value_range_t;

typedef struct assay_ranges {
  assay_hazard_t* hazards;  // in the order of the nodes; at most one a node
  size_t n_hazards, cap_hazards;
  size_t n_unknown;             // of kind UNKNOWN
  assay_value_range_t* values;  // by value id; of the plan's model
  size_t n_values;
} assay_ranges_t;
void assay_ranges_deinit(assay_ranges_t* r);

typedef struct assay_ranges_options {
  bool first_only;  // stop at the first hazard
  void (*progress)(void* user, double fraction);
  void* user;
} assay_ranges_options_t;

// Sizes of the model must be closed (assay_onnx_close_sizes); the plan is not fused.
// Errors: INVALID_ARGUMENT an input's shape is open.
assay_status_t assay_ranges_find(const assay_plan_t* plan, const assay_box_t* box,
                                 const assay_ranges_options_t* options,
                                 assay_ranges_t* out) ASSAY_MUST_USE;

// The largest scale of the box (to 2 %) without a hazard; 0: none was found down to 2^-40. `max`:
// the scale at which the box passes what the inputs' format holds: where that is safe, it is the
// answer.
typedef struct assay_radius {
  double scale, max;
  assay_hazard_t next;  // the hazard just beyond; node NULL: there is none
} assay_radius_t;
assay_status_t assay_ranges_radius(const assay_plan_t* plan, const assay_box_t* box, bool safe_at_1,
                                   const assay_ranges_options_t* options,
                                   assay_radius_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_RANGES_H_
