// Outputs judged by slices: what the statistics of a whole output cannot show.
//
// A detector's boxes reach 640 and its scores 1: in one output of both, scores that all became 0
// leave a cosine of 0.99995. So the slices along the axes that channels lie along are summed
// each: those that vary in the reference and are constant in what was got are dead, and those of a
// hundredth of the largest one's size, and less, are judged together by themselves.
#ifndef ASSAY_ACCOUNT_VERDICT_SLICES_H_
#define ASSAY_ACCOUNT_VERDICT_SLICES_H_

#include "base/packing.h"
#include "tensor/tensor.h"

typedef struct assay_slices assay_slices_t;

// What was found along the axis that shows most.
typedef struct assay_slices_found {
  int axis;                 // -1: nothing
  int64_t slices;           // of the axis
  int64_t dead, first;      // how many are dead, and the first of them
  double got;               // what that one is everywhere
  double ref_min, ref_max;  // what it is in the reference
  double small_loss;  // of slices that are small beside others: energy of their error over theirs
  int64_t small, first_small;  // how many these are; 0: slices are alike
} assay_slices_found_t;

assay_status_t assay_slices_create(assay_slices_t** out) ASSAY_MUST_USE;
void assay_slices_destroy(assay_slices_t* s);  // NULL is allowed
// Adds a sample: tensors of floats of one shape. Samples of another number of axes are left out.
assay_status_t assay_slices_add(assay_slices_t* s, const assay_tensor_t* got,
                                const assay_tensor_t* ref) ASSAY_MUST_USE;
assay_slices_found_t assay_slices_judge(const assay_slices_t* s);

// From now on samples of other shapes than the first one's are kept, too: of a part of the samples,
// before which there may be others (assay_slices_join).
void assay_slices_keep_all(assay_slices_t* s);
// As bytes, and back into empty ones. Errors: UNSUPPORTED too many shapes; NO_MEMORY; what a
// packing has against its bytes shows there.
assay_status_t assay_slices_pack(assay_packing_t* p, assay_slices_t* s) ASSAY_MUST_USE;
// Adds those of samples that follow, which have kept all.
assay_status_t assay_slices_join(assay_slices_t* s, const assay_slices_t* more) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_VERDICT_SLICES_H_
