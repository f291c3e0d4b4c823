// A part of an array as NumPy writes it: "[:, 4:]", "[0, ..., ::2]", "[-1]".
//
// Entries are whole numbers (which take a dimension away; negative ones count from the end) and
// START:STOP:STEP, each of which may be left out; "..." stands for the dimensions that no entry
// names, which are whole. As in NumPy a range is cut to what there is, a number has to lie within.
#ifndef ASSAY_DATA_SLICE_H_
#define ASSAY_DATA_SLICE_H_

#include "tensor/tensor.h"

typedef struct assay_slice_entry {
  bool number, has_start, has_stop;
  int64_t start, stop, step;  // a number is its start
} assay_slice_entry_t;

typedef struct assay_slice {
  int n;        // entries without "..."
  int rest_at;  // entries before "..."; n: there is none, or it stands at the end
  assay_slice_entry_t at[ASSAY_MAX_RANK];
} assay_slice_t;

// text: with its brackets. Errors: INVALID_ARGUMENT with what is wrong.
assay_status_t assay_slice_parse(const char* text, assay_slice_t* out) ASSAY_MUST_USE;
// Whether it fits these dimensions; -1: a size that is not known. Errors: INVALID_ARGUMENT too many
// entries, or a number that is not within.
assay_status_t assay_slice_check(const assay_slice_t* s, int rank,
                                 const int64_t* dims) ASSAY_MUST_USE;
// The part, as a new tensor. Errors: as of assay_slice_check, of what is not a tensor, NO_MEMORY.
assay_status_t assay_slice_take(const assay_slice_t* s, const assay_tensor_t* t,
                                assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_DATA_SLICE_H_
