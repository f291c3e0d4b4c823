// What runs along one axis: sums and products of all that came before, differences, shares.
#ifndef ASSAY_DIAGNOSE_SOLVE_ALONG_H_
#define ASSAY_DIAGNOSE_SOLVE_ALONG_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct assay_along_kind {
  const char* says;  // "running sums"
  // Of diagnose/formula.h, with the number of the axis where it has @, and as many numbers as Pad
  // takes, one zero in front of the axis, where it has &. NULL: ONNX has no operator for it.
  const char* program;
  // Element by element of one row along the axis.
  void (*of)(const double* x, int64_t n, double* out);
} assay_along_kind_t;

size_t assay_along_count(void);
const assay_along_kind_t* assay_along_get(size_t i);

#endif  // ASSAY_DIAGNOSE_SOLVE_ALONG_H_
