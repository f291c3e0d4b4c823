// Named tensors, in order: what an npz file, a folder of test data, or a run's inputs hold.
#ifndef ASSAY_IO_SET_H_
#define ASSAY_IO_SET_H_

#include "base/nearest.h"
#include "tensor/tensor.h"

// Starts as {0}. Fields are read freely.
typedef struct assay_set {
  char** names;
  assay_tensor_t** tensors;
  size_t n, cap_names, cap_tensors;
} assay_set_t;

void assay_set_deinit(assay_set_t* s);
// Adds a tensor after the others; the set takes over one reference (also on failure).
// INVALID_ARGUMENT if the name is there already.
assay_status_t assay_set_add(assay_set_t* s, const char* name,
                             assay_tensor_t* take_tensor) ASSAY_MUST_USE;
// Adds what another set has: its tensors are retained. Errors: INVALID_ARGUMENT a name is in both.
assay_status_t assay_set_add_all(assay_set_t* s, const assay_set_t* from) ASSAY_MUST_USE;
assay_tensor_t* assay_set_find(const assay_set_t* s, const char* name);  // borrowed; NULL: none
// The names that are near to one that the set lacks.
assay_nearest_t assay_set_near(const assay_set_t* s, const char* name);
// For messages: "; did you mean 'image'?", or "".
#define ASSAY_SET_NEAR_TEXT(set, name) \
  ASSAY_NEAREST_TEXT((assay_nearest_t[]){assay_set_near(set, name)})

#endif  // ASSAY_IO_SET_H_
