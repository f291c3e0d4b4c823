// How far the elements of tensors moved, summed up over several.
#ifndef ASSAY_EDIT_MOVED_H_
#define ASSAY_EDIT_MOVED_H_

#include "tensor/tensor.h"

// The largest difference of a value from what it was, over all that was compared.
typedef struct assay_moved {
  bool same_shape;        // kinds, shapes and counts agree
  int64_t n;              // elements
  int64_t different;      // elements that differ at all
  int64_t broken;         // not finite on one side only, or other text
  double largest, scale;  // of the difference; of what it was
  double rms, snr_db;
} assay_moved_t;

typedef struct assay_moved_sums {
  assay_moved_t m;
  double err2, ref2;
} assay_moved_sums_t;
#define ASSAY_MOVED_SUMS_INIT ((assay_moved_sums_t){.m = {.same_shape = true}})

// Compares what it was with what it is: tensors, sequences and the like; NULL: not there.
assay_status_t assay_moved_add(assay_moved_sums_t* s, assay_tensor_t* was,
                               assay_tensor_t* is) ASSAY_MUST_USE;
assay_moved_t assay_moved_finish(const assay_moved_sums_t* s);
// Element i of a canonical tensor of numbers as a double; complex ones have two each.
double assay_moved_element(const assay_tensor_t* t, int64_t i);

// Whether it moved by no more than float64 rounds.
bool assay_moved_is_none(const assay_moved_t* m);
// Below this part of the largest magnitude a difference is float64's own rounding.
#define ASSAY_MOVED_TINY 1e-10

#endif  // ASSAY_EDIT_MOVED_H_
