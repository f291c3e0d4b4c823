// Sums over the difference of two tensors: what every layer of an account needs, and little enough
// to keep for each (stats.h has the full statistics).
//
// Pairs where both sides are NaN, or both the same infinity, count as no error and are counted
// apart. Pairs where just one side is not finite have no finite error: they are counted as
// mismatched and leave the sums alone.
#ifndef ASSAY_FORMATS_ERROR_SUM_H_
#define ASSAY_FORMATS_ERROR_SUM_H_

#include <assay/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct assay_error_sum {
  int64_t n;         // pairs seen
  int64_t finite;    // of them, both finite: what the sums are over
  int64_t nan, inf;  // of `got`
  int64_t ref_nan, ref_inf;
  int64_t mismatched;  // exactly one side not finite, or infinities of opposite signs, or NaN
                       // against Inf
  double max_abs;      // largest |got - ref|
  double max_rel;      // largest |got - ref| / |ref| over ref != 0
  double ref_max;      // largest |ref|
  double got_max;
  int64_t near_zero;  // finite pairs with |ref| <= 2^-20 * ref_max of the chunk they came in
  int64_t worst;      // index of max_abs, counted over all that was added; -1: none
  double sum_err, sum_err2, sum_ref2, sum_got2, sum_dot;
} assay_error_sum_t;

#define ASSAY_ERROR_SUM_INIT ((assay_error_sum_t){.worst = -1})

// Adds n pairs. The same bits for any number of threads: fixed chunks, joined in their order.
void assay_error_sum_add(assay_error_sum_t* s, const double* got, const double* ref, size_t n);
// Joins statistics of pairs that follow those of *s.
void assay_error_sum_join(assay_error_sum_t* s, const assay_error_sum_t* more);

// 0 if there were no pairs. Cosine: 1 if both are all zero, 0 if one of them is. SNR and PSNR in
// dB, +infinity without error.
double assay_error_sum_rms(const assay_error_sum_t* s);
double assay_error_sum_mean(const assay_error_sum_t* s);
double assay_error_sum_cosine(const assay_error_sum_t* s);
double assay_error_sum_snr_db(const assay_error_sum_t* s);
double assay_error_sum_psnr_db(const assay_error_sum_t* s, double peak);

#endif  // ASSAY_FORMATS_ERROR_SUM_H_
