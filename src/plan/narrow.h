// Constants that a plan file may hold in 16 bits.
#ifndef ASSAY_PLAN_NARROW_H_
#define ASSAY_PLAN_NARROW_H_

#include "plan/plan.h"

// A constant of float32 that all its readers round to one type of 16 bits before they do anything
// else with it may be stored as that type: no result changes.
typedef struct assay_narrow {
  assay_type_t type;  // FLOAT16 or BFLOAT16; UNDEFINED: some reader wants float32, or nobody reads
  // All of them multiply it in sums of products, or fetch elements of it as of a table: what no
  // pass judges by its elements.
  bool factor;
} assay_narrow_t;

// Of all values, by id; *out: assay_free.
assay_status_t assay_narrow_find(const assay_layers_t* l, assay_narrow_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_PLAN_NARROW_H_
