// Golden of the network before its weights were rounded, in a type that does not say so.
#ifndef ASSAY_CHECK_ROUNDED_GOLDEN_H_
#define ASSAY_CHECK_ROUNDED_GOLDEN_H_

#include "check/check.h"

// Asked where c->export differs from golden and nothing else explains it: whether the rounding of
// weights does (c->golden_rounded). It does not where a repair brings golden back to rounding: no
// network before gives that by chance.
//   options   of the export's check; with the search's seconds
//   out_done  c->export is final; else the export is searched as if nothing were rounded
assay_status_t assay_check_rounded(assay_check_t* c, const assay_samples_t* inputs,
                                   const assay_export_options_t* options,
                                   bool* out_done) ASSAY_MUST_USE;

// Whether repairs bring golden back to rounding, which proves that it is the model's own and not of
// the network before its weights were rounded or looked up. One number proves nothing: any constant
// can be scaled until it is right.
bool assay_check_is_proof(const assay_check_t* c, const assay_export_t* e);

// The part of an output's energy that is lost by weights, or by few bits that no quantizer of
// integers makes; 0: that is not known, or not theirs.
double assay_check_rounding_loss(const assay_check_t* c, size_t output);
// Whether that is too much for an output, where the user demands nothing else.
bool assay_check_rounding_loses(const assay_check_t* c);

#endif  // ASSAY_CHECK_ROUNDED_GOLDEN_H_
