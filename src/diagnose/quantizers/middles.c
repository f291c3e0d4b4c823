// Zero points of stored weights that golden tells to be others.
//
// Weights that were quantized without symmetry are read about their own middles; who takes the
// middle of the type instead moves all weights of a channel by the same number. What golden is off
// by is a parabola in that number, to second order: three runs tell where it ends. Source:
// vllm-project/compressed-tensors issue 458.
#include <math.h>

#include "diagnose/quantizers/suspect.h"

typedef assay_quantizer_suspect_t suspect_t;

// Channel c's zero point, or all of them where c is negative.
static void set_zero(assay_quantizer_alternative_t* a, int64_t c, double zero) {
  for (int64_t i = 0; i < a->by.n; i++)
    if (c < 0 || i == c) a->by.zero[i] = zero;
}

// What golden is off by with a zero point, which stays if that is less than *off.
static assay_status_t try_zero(suspect_t* u, size_t site, assay_quantizer_alternative_t* a,
                               int64_t c, double zero, double* off, double* out) {
  const assay_quantizer_site_t* s = &u->q->at[site];
  const int64_t one = c < 0 ? 0 : c;
  const double was = a->by.zero[one];
  assay_suspect_measured_t m = {0};
  *out = (double)NAN;
  if (zero < s->low || zero > s->high || zero == was || assay_suspect_is_late(u)) return NULL;
  set_zero(a, c, zero);
  ASSAY_TRY(assay_suspect_run_with(u, site, a, &m));
  *out = m.off;
  if (m.off < *off)
    *off = m.off;
  else
    set_zero(a, c, was);
  return NULL;
}

// Where a parabola through three runs ends, and the numbers beside that.
static assay_status_t fit_zero(suspect_t* u, size_t site, assay_quantizer_alternative_t* a,
                               int64_t c, double* off) {
  enum { STEP = 4, BESIDE = 2 };
  const double zero = a->by.zero[c < 0 ? 0 : c], here = *off;
  double none = 0, high = 0, low = 0, got = 0;  // none: these runs change nothing
  ASSAY_TRY(try_zero(u, site, a, c, zero + STEP, &none, &high));
  ASSAY_TRY(try_zero(u, site, a, c, zero - STEP, &none, &low));
  const double curve = high + low - 2 * here;
  if (!(curve > 0)) return NULL;
  const double end = rint(zero - STEP * (high - low) / 2 / curve);
  ASSAY_TRY(try_zero(u, site, a, c, end, off, &got));
  for (int k = 1; k <= BESIDE && *off > 0; k++) {
    ASSAY_TRY(try_zero(u, site, a, c, end + k, off, &got));
    ASSAY_TRY(try_zero(u, site, a, c, end - k, off, &got));
  }
  return NULL;
}

assay_status_t assay_suspect_fit_zeros(suspect_t* u, size_t site, assay_quantizer_alternative_t* a,
                                       double* off) {
  enum { ROUNDS = 6, MOST = 64 };
  static const double LESS = 0.95;
  const assay_quantizer_site_t* s = &u->q->at[site];
  if (!s->stored || s->bias || s->high - s->low > 255 || a->by.n > MOST) return NULL;
  ASSAY_TRY(fit_zero(u, site, a, -1, off));
  for (int round = 0; round<ROUNDS&& * off> 0 && !assay_suspect_is_late(u); round++) {
    const double before = *off;
    for (int64_t c = 0; c<a->by.n&& * off> 0; c++)
      ASSAY_TRY(fit_zero(u, site, a, a->by.n == 1 ? -1 : c, off));
    if (*off > LESS * before) break;
  }
  return NULL;
}
