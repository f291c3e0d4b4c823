// Affine forms: small values as sums of the elements of one value before them, so that what is the
// same number on two ways stays so (residual sums, x - mean(x), running sums that are subtracted,
// products after products).
//
//   element i of the stored value = middle[i] + sum over k of slope[k, i] e[k] + rest[i], |e[k]| <=
//   1, |rest| bounded
//
// e belongs to a 'source', a value of few elements whose interval it spans. Operators that are
// linear carry forms on, rounding adds to the rest, Relu is put between two straight lines; every
// other operator's output is a source of its own. Source: J. Stolfi and L. H. de Figueiredo,
// Self-validated numerical methods (1997), for affine arithmetic; G. Singh and others, Fast and
// effective robustness certification (2018), for Relu.
#ifndef ASSAY_RANGES_AFFINE_H_
#define ASSAY_RANGES_AFFINE_H_

#include "ranges/range.h"

typedef struct assay_affine {
  int64_t source;          // a number; 0: there is no form
  int64_t n;               // elements of the source
  assay_tensor_t* middle;  // the value's shape and type
  assay_tensor_t* rest;
  double* slopes;         // n times the value's elements
  assay_format_t format;  // in which the value is stored
} assay_affine_t;
void assay_affine_deinit(assay_affine_t* a);

// The form of output 0 of a linear node, from those of its inputs (by input; source 0: none):
// narrows c->out[0]. *out has source 0 where there is none.
assay_status_t assay_affine_run(assay_range_node_t* c, const assay_affine_t* const* in,
                                assay_affine_t* out) ASSAY_MUST_USE;
// Storing the value in a format rounds it.
void assay_affine_store(assay_affine_t* a, assay_format_t format);
// The form of a value that a layer rounds to a format as it enters.
assay_status_t assay_affine_enter(const assay_affine_t* a, assay_format_t format,
                                  assay_affine_t* out) ASSAY_MUST_USE;
// A value as a source; none if it has too many elements or is known exactly.
assay_status_t assay_affine_begin(const assay_range_t* r, int64_t source, assay_format_t format,
                                  assay_affine_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_AFFINE_H_
