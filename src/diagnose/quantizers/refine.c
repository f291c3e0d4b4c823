// Scales that nothing tells but golden: moved as long as it comes nearer.
#include <math.h>

#include "diagnose/quantizers/suspect.h"

typedef assay_quantizer_suspect_t suspect_t;
typedef assay_suspect_measured_t measured_t;

// One range more in the place of the best guess, if golden comes nearer.
static assay_status_t try_range(suspect_t* u, double low, double high, bool* out_better) {
  const assay_quantizer_site_t* s = &u->q->at[u->best_site];
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
  measured_t m = {0};
  const double scale = (high - low) / (s->high - s->low);
  *out_better = false;
  if (!(scale > 0) || low > 0 || high < 0 || assay_suspect_is_late(u)) return NULL;
  ASSAY_TRY(assay_quantizer_scaled(&u->best.by, 1, "fitted to golden", &a.by));
  a.by.scale[0] = (double)(float)scale;
  a.by.zero[0] = fmin(fmax(rint(s->low - low / scale), s->low), s->high);
  assay_status_t st = assay_suspect_run_with(u, u->best_site, &a, &m);
  *out_better = !st && m.off < u->best_off;
  if (*out_better) {
    assay_quantizer_scales_deinit(&u->best.by);
    u->best.by = a.by;
    a.by = (assay_quantizer_scales_t){0};
    u->best_off = m.off;
  }
  assay_quantizer_scales_deinit(&a.by);
  return st;
}

// A guess from what reaches a quantizer here is near the range that was calibrated: both its ends
// are moved as long as golden comes nearer, by smaller and smaller steps.
assay_status_t assay_suspect_refine(suspect_t* u) {
  static const double SMALLEST = 1e-6;
  const assay_quantizer_site_t* s = &u->q->at[u->best_site];
  const assay_quantizer_scales_t* by = &u->best.by;
  if (u->best.change != ASSAY_QUANTIZER_SCALED || s->stored || by->n != 1) return NULL;
  double low = (s->low - by->zero[0]) * by->scale[0], high = (s->high - by->zero[0]) * by->scale[0];
  for (double step = (high - low) / 16; step > SMALLEST * (high - low) && u->best_off > 0;) {
    bool better = false;
    for (int k = 0; k < 8 && !better; k++) {
      const double a = k % 3 == 0 ? 0 : k % 3 == 1 ? step : -step;
      const double b = k / 3 == 0 ? step : k / 3 == 1 ? -step : 0;
      ASSAY_TRY(try_range(u, low + a, high + b, &better));
      if (better) low += a, high += b;
    }
    if (!better) step /= 2;
  }
  return NULL;
}

// One channel's scale: how the outputs move by a little of it tells how far it has to go.
static assay_status_t fit_channel(suspect_t* u, size_t site, assay_quantizer_alternative_t* a,
                                  int64_t channel, double larger, double* off) {
  static const double parts[] = {1, 0.5, 0.25};
  double* scale = &a->by.scale[channel];
  const double was = *scale;
  measured_t probed = {0}, m = {0};
  *scale = (double)(float)(was * larger);
  ASSAY_TRY(assay_suspect_run_with(u, site, a, &probed));
  *scale = was;
  if (probed.off < *off) return *scale = (double)(float)(was * larger), *off = probed.off, NULL;
  // From where the channel stands: what is left shrinks by this step's square.
  *scale = (double)(float)(was / larger);
  ASSAY_TRY(assay_suspect_run_with(u, site, a, &m));
  if (m.off < *off) return *off = m.off, NULL;
  *scale = was;
  // A parabola through the three.
  const double curve = probed.off + m.off - 2 * *off, slope = (probed.off - m.off) / 2;
  if (!(curve > 0)) return NULL;
  for (size_t k = 0; k < sizeof parts / sizeof *parts && !assay_suspect_is_late(u); k++) {
    *scale = (double)(float)(was * (1 - parts[k] * slope / curve * (larger - 1)));
    ASSAY_TRY(assay_suspect_run_with(u, site, a, &m));
    if (m.off < *off) return *off = m.off, NULL;
  }
  *scale = was;
  return NULL;
}

assay_status_t assay_suspect_fit_channels(suspect_t* u, size_t site,
                                          assay_quantizer_alternative_t* a, const bool* only,
                                          double finest, double* off) {
  for (double larger = 1.25; larger > finest && *off > 0 && !assay_suspect_is_late(u);) {
    const double before = *off;
    for (int64_t c = 0; c < a->by.n && !assay_suspect_is_late(u); c++)
      if (!only || only[c]) ASSAY_TRY(fit_channel(u, site, a, c, larger, off));
    if (*off > 0.9 * before) larger = 1 + (larger - 1) / 2;
  }
  return NULL;
}
