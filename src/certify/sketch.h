// Sketches: a tensor of any size as a few numbers that another tensor does not have.
//
// Number j is the sum of all elements, each with a sign drawn from a counter by its position. The
// difference of two tensors' sketches is the sketch of their difference d: it has mean 0 and, by
// the signs alone, the variance |d|^2 (Euclidean norm), so that the mean of the squares of several
// such numbers estimates |d|^2. Source: N. Alon, Y. Matias, M. Szegedy, The space complexity of
// approximating the frequency moments, STOC 1996. Beyond t |d| with probability at most 2 exp(-t^2
// / 2) (Hoeffding).
#ifndef ASSAY_CERTIFY_SKETCH_H_
#define ASSAY_CERTIFY_SKETCH_H_

#include "tensor/tensor.h"

enum { ASSAY_SKETCH_SUMS = 8 };

typedef struct assay_sketch {
  double sum[ASSAY_SKETCH_SUMS];  // of finite elements
  double norm2;                   // the same: sum of squares
  int64_t size, unfinite;
} assay_sketch_t;

// Of a canonical tensor of floats or integers; false: it is none.
bool assay_sketch_of(const assay_tensor_t* t, assay_sketch_t* out);
// The estimate of |a - b|.
double assay_sketch_distance(const assay_sketch_t* a, const assay_sketch_t* b);

// A positive size as a byte: the next power of two, from 2^-109 to 2^144, so that sums of float32's
// largest numbers fit. 0 is 0; what is larger is infinite.
uint8_t assay_size_code(double x);
double assay_size_decode(uint8_t code);

#endif  // ASSAY_CERTIFY_SKETCH_H_
