// Sums over the difference of two tensors: what every layer of an account needs, and little enough
// to keep for each (stats.h has the full statistics).
#include "formats/error_sum.h"

#include <math.h>

#include "base/functions.h"
#include "formats/error_block.h"

enum { CHUNK = 1 << 14, BLOCK = ASSAY_STATS_BLOCK, BATCH = 256 };

// Where something is not finite: counts it, and copies the pairs with 0 against 0 in its place.
ASSAY_WIDE static void set_aside(assay_error_sum_t* s, const double* got, const double* ref,
                                 int64_t n, double* a, double* b) {
  int64_t both = 0, nan = 0, inf = 0, ref_nan = 0, ref_inf = 0, mismatched = 0;
  int64_t max_g = 0, max_r = 0;
#pragma omp simd reduction(+ : both, nan, inf, ref_nan, ref_inf, mismatched) \
    reduction(max : max_g, max_r)
  for (int64_t i = 0; i < n; i++) {
    double g = got[i], r = ref[i];
    int64_t mg = (int64_t)(assay_bits_of(g) & ~ASSAY_SIGN);
    int64_t mr = (int64_t)(assay_bits_of(r) & ~ASSAY_SIGN);
    const int64_t end = (int64_t)ASSAY_EXPONENT;
    int64_t g_finite = mg < end, r_finite = mr < end;
    int64_t same = (assay_bits_of(g) == assay_bits_of(r)) | ((mg > end) & (mr > end));
    both += g_finite & r_finite;
    nan += mg > end;
    inf += mg == end;
    ref_nan += mr > end;
    ref_inf += mr == end;
    mismatched += !(g_finite & r_finite) & !same;
    int64_t only_g = g_finite ? mg : 0, only_r = r_finite ? mr : 0;
    max_g = only_g > max_g ? only_g : max_g;
    max_r = only_r > max_r ? only_r : max_r;
    a[i] = g_finite & r_finite ? g : 0;
    b[i] = g_finite & r_finite ? r : 0;
  }
  s->finite += both - n;  // the others count as finite pairs from here on
  s->nan += nan;
  s->inf += inf;
  s->ref_nan += ref_nan;
  s->ref_inf += ref_inf;
  s->mismatched += mismatched;
  s->got_max = fmax(s->got_max, assay_of_bits((uint64_t)max_g));
  s->ref_max = fmax(s->ref_max, assay_of_bits((uint64_t)max_r));
}

// Whether one of the relative errors is larger than all before.
ASSAY_WIDE static bool has_larger(const double* error, const double* ref, int64_t n,
                                  double max_rel) {
  int64_t larger = 0;
#pragma omp simd reduction(+ : larger)
  for (int64_t i = 0; i < n; i++) {
    double m = fabs(ref[i]);
    larger += (error[i] > max_rel * m) & (m > 0);
  }
  return larger > 0;
}

ASSAY_WIDE static int64_t count_small(const double* x, int64_t n, double limit) {
  int64_t small = 0;
#pragma omp simd reduction(+ : small)
  for (int64_t i = 0; i < n; i++) small += fabs(x[i]) <= limit;
  return small;
}

// A block whose errors and sums are known.
static void add_block(assay_error_sum_t* s, const assay_error_block_t* k, const double sums[5]) {
  s->finite += k->n;
  if (k->max_error > s->max_abs) {
    int64_t i = 0;
    while (k->error[i] < k->max_error) i++;
    s->max_abs = k->max_error;
    s->worst = k->first + i;
  }
  if (has_larger(k->error, k->b, k->n, s->max_rel)) {
    for (int64_t i = 0; i < k->n; i++) {
      double m = fabs(k->b[i]);
      if (m > 0 && k->error[i] > s->max_rel * m) s->max_rel = k->error[i] / m;
    }
  }
  s->got_max = fmax(s->got_max, k->max[0]);
  s->ref_max = fmax(s->ref_max, k->max[1]);
  s->sum_err += sums[0];
  s->sum_err2 += sums[1];
  s->sum_got2 += sums[2];
  s->sum_ref2 += sums[3];
  s->sum_dot += sums[4];
}

// One chunk. Squares of differences stay finite: inputs are at most 1e154 in any tensor of
// interest; where they are not, the sums say infinity, which is the truth about them in float64.
static assay_error_sum_t chunk_stats(const double* got, const double* ref, size_t n) {
  assay_error_sum_t s = ASSAY_ERROR_SUM_INIT;
  double error[BLOCK], finite[2][BLOCK], sums[5];
  s.n = (int64_t)n;
  for (int64_t i = 0; i < s.n; i += BLOCK) {
    assay_error_block_t k = {.a = got + i, .b = ref + i, .first = i, .error = error};
    k.n = s.n - i < BLOCK ? s.n - i : BLOCK;
    if (!assay_error_block_scan(&k, sums)) {
      set_aside(&s, k.a, k.b, k.n, finite[0], finite[1]);
      k.a = finite[0];
      k.b = finite[1];
      (void)assay_error_block_scan(&k, sums);
    }
    add_block(&s, &k, sums);
  }
  s.near_zero = count_small(ref, s.n, 0x1p-20 * s.ref_max);
  return s;
}

void assay_error_sum_join(assay_error_sum_t* s, const assay_error_sum_t* more) {
  if (more->worst >= 0 && (s->worst < 0 || more->max_abs > s->max_abs))
    s->worst = s->n + more->worst;
  s->n += more->n;
  s->finite += more->finite;
  s->nan += more->nan;
  s->inf += more->inf;
  s->ref_nan += more->ref_nan;
  s->ref_inf += more->ref_inf;
  s->mismatched += more->mismatched;
  s->near_zero += more->near_zero;
  s->max_abs = fmax(s->max_abs, more->max_abs);
  s->max_rel = fmax(s->max_rel, more->max_rel);
  s->ref_max = fmax(s->ref_max, more->ref_max);
  s->got_max = fmax(s->got_max, more->got_max);
  s->sum_err += more->sum_err;
  s->sum_err2 += more->sum_err2;
  s->sum_ref2 += more->sum_ref2;
  s->sum_got2 += more->sum_got2;
  s->sum_dot += more->sum_dot;
}

void assay_error_sum_add(assay_error_sum_t* s, const double* got, const double* ref, size_t n) {
  assay_error_sum_t parts[BATCH];
  for (size_t start = 0; start < n; start += (size_t)BATCH * CHUNK) {
    size_t left = n - start, chunks = (left + CHUNK - 1) / CHUNK;
    if (chunks > BATCH) chunks = BATCH;
#pragma omp parallel for schedule(static) if (chunks > 4)
    for (size_t k = 0; k < chunks; k++) {
      size_t at = start + k * CHUNK;
      parts[k] = chunk_stats(got + at, ref + at, n - at < CHUNK ? n - at : CHUNK);
    }
    for (size_t k = 0; k < chunks; k++) assay_error_sum_join(s, &parts[k]);
  }
}

double assay_error_sum_rms(const assay_error_sum_t* s) {
  return s->finite ? sqrt(s->sum_err2 / (double)s->finite) : 0;
}

double assay_error_sum_mean(const assay_error_sum_t* s) {
  return s->finite ? s->sum_err / (double)s->finite : 0;
}

double assay_error_sum_cosine(const assay_error_sum_t* s) {
  if (s->sum_ref2 == 0 && s->sum_got2 == 0) return 1;
  if (s->sum_ref2 == 0 || s->sum_got2 == 0) return 0;
  return s->sum_dot / (sqrt(s->sum_ref2) * sqrt(s->sum_got2));
}

double assay_error_sum_snr_db(const assay_error_sum_t* s) {
  return s->sum_err2 == 0 ? (double)INFINITY : 10 * assay_log10(s->sum_ref2 / s->sum_err2);
}

double assay_error_sum_psnr_db(const assay_error_sum_t* s, double peak) {
  double rms = assay_error_sum_rms(s);
  return rms == 0 ? (double)INFINITY : 20 * assay_log10(peak / rms);
}
