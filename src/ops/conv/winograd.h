// Winograd's minimal filtering F(m, 3): its matrices, and an error model of convolutions by it.
#ifndef ASSAY_OPS_CONV_WINOGRAD_H_
#define ASSAY_OPS_CONV_WINOGRAD_H_

#include "ops/bound.h"
#include "ops/conv/conv.h"
#include "ops/sum_account.h"

enum {
  ASSAY_WINOGRAD_KERNEL = 3,
  ASSAY_WINOGRAD_TILE = 6,      // of `in`, at most
  ASSAY_WINOGRAD_POINTS = 216,  // in three axes
  ASSAY_WINOGRAD_PARTS = 3,
  ASSAY_WINOGRAD_LANES = 16,
};

// Sums on the way of one element of a transform, as coefficients of what is transformed: each is
// rounded once, the last one being the element itself.
typedef struct assay_winograd_sums {
  int n;
  double of[ASSAY_WINOGRAD_PARTS + 1][ASSAY_WINOGRAD_TILE];
} assay_winograd_sums_t;

// One axis of F(out, 3); `in` = out + 2. With d a tile of the input and g a kernel, a tile of the
// output is A^T [(G g) o (B^T d)].
typedef struct assay_winograd {
  int out, in;
  double g[ASSAY_WINOGRAD_TILE][ASSAY_WINOGRAD_KERNEL];
  double b[ASSAY_WINOGRAD_TILE][ASSAY_WINOGRAD_TILE];
  double a[ASSAY_WINOGRAD_TILE][ASSAY_WINOGRAD_TILE];
  // The most on a term's way along one axis: into products, out of them.
  double roundings_in, roundings_out;
  assay_winograd_sums_t in_sums[ASSAY_WINOGRAD_TILE], out_sums[ASSAY_WINOGRAD_TILE];
} assay_winograd_t;

const assay_winograd_t* assay_winograd_of(assay_algorithm_t algorithm);  // NULL: direct

// x[n, ..., n] (rank axes) becomes [m, ..., m] by a matrix [m, n] along each axis, whose rows lie
// `stride` elements apart.
void assay_winograd_transform(int rank, int m, int n, const double* matrix, int stride, double* x);
// The same of so many tiles side by side (at most ASSAY_WINOGRAD_LANES): x[n, ..., n, lanes]. The
// same bits.
void assay_winograd_transform_lanes(int rank, int m, int n, const double* matrix, int stride,
                                    int lanes, double* x);

// What the model says of a convolution with these weights, in its worst channel and place.
// w: [m, cg, kernel...]; for convolutions that the algorithm fits.
assay_status_t assay_winograd_judge(const assay_winograd_t* f, const assay_conv_t* s,
                                    const float* w, assay_sum_account_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_CONV_WINOGRAD_H_
