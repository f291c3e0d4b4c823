// What is the matter with a quantizer's scales, in words.
#include <math.h>
#include <stdio.h>

#include "diagnose/quantizers/alternatives.h"

const char* assay_quantizer_pattern_name(assay_quantizer_pattern_t p) {
  static const char* const names[] = {"fits",       "channels", "outlier", "too_large", "too_small",
                                      "zero_point", "bits",     "pair",    "axis",      "sign",
                                      "bias",       "order",    "another"};
  return names[p];
}

// A range lies elsewhere from this part of it on.
static const double MOVED = 0.1;
// A scale is another one from so many times on; values far from the others are so many times as
// far; channels are unlike from so many times on; a loss is a scale's from so many times that of
// scales that fit.
static const double OTHER_SCALE = 1.5, FAR = 3, UNLIKE = 100, FAULTY = 4;

static double largest(const assay_quantizer_site_t* s) { return fmax(fabs(s->min), fabs(s->max)); }

// The magnitude below which all but a thousandth of what was drawn lies.
static double usual(const assay_quantizer_site_t* s) {
  double low = 0, high = largest(s);
  for (int k = 0; k < 40; k++) {
    const double middle = (low + high) / 2;
    size_t above = 0;
    for (size_t i = 0; i < s->n_drawn; i++) above += fabs(s->drawn[i]) > middle;
    if (above * 1000 > s->n_drawn)
      low = middle;
    else
      high = middle;
  }
  return high;
}

// Channels that one step of the scale is larger than half of.
static int64_t lost_channels(const assay_quantizer_site_t* s, int axis) {
  int64_t n = 0;
  for (int64_t i = 0; i < s->n_peaks[axis]; i++) n += s->peaks[axis][i] < s->has.scale[0] * 2;
  return n;
}

bool assay_quantizer_is_for_mask(const assay_quantizer_site_t* s) {
  static const double SHARE = 0.3, MASK = 1e4;
  size_t lost = 0;
  if (s->weight || s->has.n != 1 || !s->n_drawn) return false;
  for (size_t i = 0; i < s->n_drawn; i++)
    lost += s->drawn[i] != 0 && fabs(s->drawn[i]) * MASK < s->has.scale[0];
  return (double)lost > SHARE * (double)s->n_drawn;
}

static void explain_mask(assay_quantizer_site_t* s) {
  double others = 0;
  for (size_t i = 0; i < s->n_drawn; i++)
    if (fabs(s->drawn[i]) * 2 < s->has.scale[0]) others = fmax(others, fabs(s->drawn[i]));
  s->pattern = ASSAY_QUANTIZER_OUTLIER;
  snprintf(
      s->why, sizeof s->why,
      "the scale %.4g of '%.80s' is made for a mask of %.4g: all other values, up to %.4g, are "
      "less than half a step, and lost",
      s->has.scale[0], s->value->name, -s->min > s->max ? s->min : s->max, others);
}

static void explain_channels(assay_quantizer_site_t* s, int axis, double spread) {
  s->pattern = ASSAY_QUANTIZER_CHANNELS;
  char times[32];
  if (isfinite(spread))
    snprintf(times, sizeof times, "differ %.3g times", spread);
  else
    snprintf(times, sizeof times, "differ");
  snprintf(s->why, sizeof s->why,
           "one scale for channels that %s along axis %d of '%.80s': %lld of %lld have less than 2 "
           "steps",
           times, s->axes[axis], s->value->name, (long long)lost_channels(s, axis),
           (long long)s->n_peaks[axis]);
}

static void explain_scale(assay_quantizer_site_t* s) {
  const double has = s->has.scale[0], fits = s->fits.scale[0];
  const double from = (s->low - s->has.zero[0]) * has, to = (s->high - s->has.zero[0]) * has;
  const double share = s->elements ? 100 * (double)s->outside / (double)s->elements : 0;
  const double width = fmax(has / fits, fits / has);
  const double moved = fabs(s->has.zero[0] - s->fits.zero[0]) / (s->high - s->low);
  if (width < OTHER_SCALE && moved > MOVED && s->outside) {
    s->pattern = ASSAY_QUANTIZER_ZERO;
    snprintf(s->why, sizeof s->why,
             "zero point %g clips %.2g %% of '%.80s': its range is [%.4g, %.4g], values lie in "
             "[%.4g, %.4g]; %g fits",
             s->has.zero[0], share, s->value->name, from, to, s->min, s->max, s->fits.zero[0]);
  } else if (s->loss.clipping > s->loss.rounding || fits > OTHER_SCALE * has) {
    s->pattern = ASSAY_QUANTIZER_SMALL;
    snprintf(s->why, sizeof s->why,
             "clips %.2g %% of '%.80s': its range is [%.4g, %.4g], values lie in [%.4g, %.4g]; the "
             "scale %.4g is %.2g times too small",
             share, s->value->name, from, to, s->min, s->max, has, fits / has);
  } else if (largest(s) * OTHER_SCALE * 2 > fmax(fabs(from), fabs(to)) &&
             largest(s) > FAR * usual(s)) {
    s->pattern = ASSAY_QUANTIZER_OUTLIER;
    snprintf(
        s->why, sizeof s->why,
        "the scale %.4g is made for few values of '%.80s' up to %.4g; all but a thousandth lie "
        "within %.4g, and %.4g fits",
        has, s->value->name, largest(s), usual(s), fits);
  } else {
    s->pattern = ASSAY_QUANTIZER_LARGE;
    snprintf(s->why, sizeof s->why,
             "the scale %.4g of '%.80s' is %.3g times too large: its range is [%.4g, %.4g], values "
             "lie in [%.4g, %.4g]",
             has, s->value->name, has / fits, from, to, s->min, s->max);
  }
}

void assay_quantizer_explain(assay_quantizer_site_t* s) {
  double spread = 1;
  if (s->book) {
    s->pattern = ASSAY_QUANTIZER_BITS;
    snprintf(s->why, sizeof s->why, "rounds weights to the %g numbers of '%.80s'", s->high + 1,
             s->node->inputs[0]->name);
    return;
  }
  const int axis = assay_quantizer_unlike_axis(s, &spread);
  const double steps = s->high - s->low;
  if (s->reads.n) {
    s->pattern = ASSAY_QUANTIZER_PAIR;
    snprintf(s->why, sizeof s->why,
             "'%.80s' is quantized by the scale %.7g and zero point %g, and dequantized by %.7g "
             "and %g",
             s->value->name, s->has.scale[0], s->has.zero[0], s->reads.scale[0], s->reads.zero[0]);
    return;
  }
  if (assay_quantizer_explain_told(s)) return;
  if (assay_quantizer_is_for_mask(s)) {
    explain_mask(s);
    return;
  }
  const bool faulty = s->loss.all > FAULTY * s->loss.fitting;
  if (s->has.axis < 0 && axis >= 0 && spread > UNLIKE && lost_channels(s, axis) &&
      (faulty || !s->weight)) {
    explain_channels(s, axis, spread);
  } else if (faulty && s->fits.n && s->has.axis < 0) {
    explain_scale(s);
  } else if (s->loss.all > 0) {
    s->pattern = ASSAY_QUANTIZER_BITS;
    snprintf(s->why, sizeof s->why, "rounds '%.80s' to %g steps, by %s", s->value->name, steps + 1,
             s->has.axis >= 0 ? "scales of its channels" : "a scale that fits");
  } else {
    snprintf(s->why, sizeof s->why, "rounds '%.80s'", s->value->name);
  }
}

void assay_quantizer_describe(const assay_quantizer_site_t* s, assay_quantizer_change_t change,
                              char* out, size_t size) {
  const char* name = s->value->name;
  const bool paired = change == ASSAY_QUANTIZER_PAIRED || change == ASSAY_QUANTIZER_READ;
  if (change == ASSAY_QUANTIZER_FLOAT)
    snprintf(out, size, "'%.80s' stays in float", name);
  else if (change == ASSAY_QUANTIZER_APART)
    snprintf(out, size, "%lld scales of '%.80s', one for each index of axis %d",
             (long long)s->apart.n, name, s->apart.axis);
  else if (paired)
    snprintf(out, size, "%s of '%.80s' by the scale %.7g and zero point %g, as %s",
             change == ASSAY_QUANTIZER_PAIRED ? "dequantizing" : "quantizing", name,
             change == ASSAY_QUANTIZER_PAIRED ? s->has.scale[0] : s->reads.scale[0],
             change == ASSAY_QUANTIZER_PAIRED ? s->has.zero[0] : s->reads.zero[0],
             change == ASSAY_QUANTIZER_PAIRED ? "it is quantized" : "it is dequantized");
  else if (s->other_sign)
    snprintf(out, size, "the bytes of '%.80s' read %s a sign, zero point %g", name,
             s->low < 0 ? "without" : "with", s->fits.zero[0]);
  else if (s->fits.n > 1 && s->fits.axis != s->has.axis && s->has.n == s->fits.n)
    snprintf(out, size, "the %lld scales of '%.80s' along axis %d", (long long)s->fits.n, name,
             s->fits.axis);
  else if (s->fits.n > 1)
    snprintf(out, size, "other scales of the %lld channels of '%.80s' (%s)", (long long)s->fits.n,
             name, s->fits.how);
  else if (change == ASSAY_QUANTIZER_SCALED && s->fits.zero[0] != s->has.zero[0])
    snprintf(out, size, "scale of '%.80s' %.7g instead of %.7g, zero point %g instead of %g (%s)",
             name, s->fits.scale[0], s->has.scale[0], s->fits.zero[0], s->has.zero[0], s->fits.how);
  else
    snprintf(out, size, "scale of '%.80s' %.7g instead of %.7g (%s)", name, s->fits.scale[0],
             s->has.scale[0], s->fits.how);
}
