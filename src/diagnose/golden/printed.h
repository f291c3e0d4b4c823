// Golden that went through text: arrays that were written with six digits or so, as many tools
// print them, are off by half a unit of the last one.
#ifndef ASSAY_DIAGNOSE_GOLDEN_PRINTED_H_
#define ASSAY_DIAGNOSE_GOLDEN_PRINTED_H_

#include "tensor/tensor.h"

typedef struct assay_printed {
  int digits;  // significant ones that every element has at most ("%.6g"); 0: more than are printed
  int places;  // behind the point, the same ("%.6f")
} assay_printed_t;

// What the elements of an array of floats show, of which some hundred are looked at. Numbers that
// nobody printed end in so few digits by a chance of one in ten; whole numbers and halves do too,
// but so many need every digit only where they were cut.
assay_printed_t assay_golden_printed(const assay_tensor_t* golden);

// The same of an array among others that were printed like `as`: however few its elements are, and
// however many digits they need.
assay_printed_t assay_golden_printed_as(const assay_tensor_t* golden, const assay_printed_t* as);

// The unit of the last digit of x; 0: it was not printed.
double assay_printed_unit(const assay_printed_t* p, double x);

#endif  // ASSAY_DIAGNOSE_GOLDEN_PRINTED_H_
