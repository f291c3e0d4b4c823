// Discrete Fourier transforms of any length.
#ifndef ASSAY_OPS_MATH_FFT_H_
#define ASSAY_OPS_MATH_FFT_H_

#include "ops/op.h"

typedef struct assay_fft assay_fft_t;

// A transform of n >= 1 complex numbers (pairs of doubles), not scaled: y[k] = sum over j of
// x[j] * exp(-+ 2 pi i j k / n), + if inverse. Every product and sum is rounded (assay_acc).
// Errors: NO_MEMORY
assay_status_t assay_fft_create(const assay_eval_t* c, int64_t n, bool inverse,
                                assay_fft_t** out) ASSAY_MUST_USE;
// How often an input's part of an output is rounded on its way there.
typedef struct assay_fft_path {
  double products, sums;  // of complex numbers
  int64_t chirp;          // 0, or the length of the three transforms that make a convolution
} assay_fft_path_t;
assay_fft_path_t assay_fft_path(int64_t n, int64_t largest_factor);
enum { ASSAY_FFT_LARGEST_FACTOR = 61 };  // of those above

void assay_fft_destroy(assay_fft_t* f);  // NULL is allowed

// Doubles of room that a run needs beside input and output.
int64_t assay_fft_scratch(const assay_fft_t* f);
// x, y and room must not overlap. A transform may be used by many threads, each with its own room.
void assay_fft_run(const assay_fft_t* f, const double* x, double* y, double* scratch);

#endif  // ASSAY_OPS_MATH_FFT_H_
