// Constants that a format cannot hold: past its range, or too small for it.
#ifndef ASSAY_RANGES_CONSTANTS_H_
#define ASSAY_RANGES_CONSTANTS_H_

#include "plan/plan.h"

typedef struct assay_odd_constant {
  const assay_node_t* node;    // that reads it
  const assay_value_t* value;  // NULL: an attribute (`attribute`)
  const char* attribute;
  assay_format_t format;
  int64_t n, past, flushed,
      subnormal;            // elements: all, infinite in the format, 0 in it, subnormal in it
  int64_t ones;             // 1 or -1 in it, and not before; told only where something breaks at 1
  double example, becomes;  // of the worst kind
  bool matters;
  char why[160];
} assay_odd_constant_t;

typedef struct assay_odd_constants {
  assay_odd_constant_t* at;  // those that matter first
  size_t n, capacity, n_matter;
} assay_odd_constants_t;
void assay_odd_constants_deinit(assay_odd_constants_t* c);

assay_status_t assay_odd_constants_find(const assay_plan_t* plan,
                                        assay_odd_constants_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_CONSTANTS_H_
