// Golden that was stored with fewer digits than it was computed with: printed as text ("%.6g",
// np.savetxt with "%.4f"), or rounded to 16 bits. Its numbers are off by up to half a unit of the
// last digit.
#ifndef ASSAY_DIAGNOSE_GOLDEN_PRINTED_H_
#define ASSAY_DIAGNOSE_GOLDEN_PRINTED_H_

#include "formats/format.h"
#include "tensor/tensor.h"

// The ways in which an array may have been stored; where it fits several, its numbers may be off by
// as much as any of them leaves open.
typedef struct assay_printed {
  int digits;             // significant ones that a number has at most ("%.6g"); 0: not limited
  int places;             // behind the point, the same ("%.6f")
  assay_format_t format;  // that all numbers are of; NONE, 0: they are not
} assay_printed_t;

static inline bool assay_is_printed(const assay_printed_t* p) {
  return p->digits || p->places || p->format != ASSAY_FORMAT_NONE;
}

// What n arrays of floats, which went the same way, show together, of each some elements looked at.
// Numbers that nobody printed end in so few digits by chance: that has to be less likely than
// 2^-evidence. Whole numbers and halves end in few digits too, so only those count that need most
// of the digits. Arrays of other types show nothing.
assay_printed_t assay_golden_printed(const assay_tensor_t* const* golden, size_t n,
                                     double evidence);

// The same of an array among others that were printed like `as`: however few its elements are, and
// however many digits they need.
assay_printed_t assay_golden_printed_as(const assay_tensor_t* golden, const assay_printed_t* as);

// Whether numbers that nobody printed have no more digits by themselves, but for rounding: steps of
// a quantizer, counts. Printing takes nothing from these.
bool assay_printed_is_natural(const assay_printed_t* p, const assay_tensor_t* t);

// The unit of the last digit of x; 0: it was not printed.
double assay_printed_unit(const assay_printed_t* p, double x);

// Whether golden's infinity is what its format made of x, which is past its end (a mask's -1e9 in
// fp16).
bool assay_printed_is_past(const assay_printed_t* p, double x, double golden);

#endif  // ASSAY_DIAGNOSE_GOLDEN_PRINTED_H_
