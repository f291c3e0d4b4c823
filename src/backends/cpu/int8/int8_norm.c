// Normalizations of rows of bytes with quantizers inside (passes/int8/quantized_norm.h): bytes in,
// bytes out, without floats in memory.
#include "backends/cpu/int8/int8_norm.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/quant/int8.h"

// ---- steps --------------------------------------------------------------------------------------

static float min_of(assay_type_t t) { return t == ASSAY_TYPE_INT8 ? -128 : 0; }
static float max_of(assay_type_t t) { return t == ASSAY_TYPE_INT8 ? 127 : 255; }

static float number_of(uint8_t byte, assay_type_t t) {
  return t == ASSAY_TYPE_INT8 && byte > 127 ? (float)byte - 256 : (float)byte;
}

static uint8_t quantized(const assay_norm_step_t* s, float x) {
  uint8_t q = 0;
  assay_int8_quantize(&x, 1, s->scale, s->zero, s->type, &q);
  return q;
}

static float back(const assay_norm_step_t* s, uint8_t q) {
  return (number_of(q, s->type) - s->back_zero) * s->back_scale;
}

static float through(const assay_norm_step_t* s, float x) {
  return s->is_there ? back(s, quantized(s, x)) : x;
}

// ---- what rows make of their sums ---------------------------------------------------------------

// The byte of the first quantizer after a variance.
static uint8_t key_of(const int8_norm_t* k, float variance) {
  if (k->of_variance.is_there) return quantized(&k->of_variance, variance);
  const float sum = variance + k->epsilon;
  if (k->of_sum.is_there) return quantized(&k->of_sum, sum);
  return quantized(&k->of_root, sqrtf(sum));
}

// What is divided by where that byte is `key`.
static float root_of(const int8_norm_t* k, uint8_t key) {
  if (!k->of_variance.is_there && !k->of_sum.is_there) return back(&k->of_root, key);
  float sum;
  if (k->of_variance.is_there)
    sum = through(&k->of_sum, back(&k->of_variance, key) + k->epsilon);
  else
    sum = back(&k->of_sum, key);
  return through(&k->of_root, sqrtf(sum));
}

static void make_roots(int8_norm_t* k) {
  for (int i = 0; i < 256; i++) {
    const float root = root_of(k, (uint8_t)i);
    const double step = (double)root * (double)k->of_quotient.scale;
    k->root[i] = root;
    // Within these limits nothing below passes what float32 has.
    k->odd[i] = !(root > 0) || !(step > 0x1p-60 && step < 0x1p60);
    k->factor[i] = k->odd[i] ? 0 : (float)((double)k->x_scale / step);
    k->unit[i] = k->odd[i] ? 0 : 1 / step;
  }
}

int8_norm_row_t int8_norm_row_of(const int8_norm_t* k, int64_t sum, int64_t squares) {
  const double variance = (double)(k->size * squares - sum * sum) * k->variance_scale;
  const double zero = (double)k->x_zero + (k->x_type == ASSAY_TYPE_INT8 ? 128 : 0);
  const double mean = ((double)sum - (double)k->size * zero) * k->mean_scale;
  const uint8_t key = key_of(k, (float)variance);
  return (int8_norm_row_t){.factor = k->factor[key],
                           .shift = (float)(-mean * k->unit[key]),
                           .mean = (float)mean,
                           .root = k->root[key],
                           .odd = k->odd[key]};
}

// ---- one element --------------------------------------------------------------------------------

static float limited(float v, float low, float high) {
  v = v > low ? v : low;
  return v < high ? v : high;
}

static uint8_t byte_of(float v, const assay_norm_step_t* s) {
  return (uint8_t)((int)(v + s->zero) & 255);
}

static uint8_t stage_of(const int8_norm_stage_t* s, int64_t c, uint8_t q) {
  float v = back(&s->before, q);
  if (s->times) v = v * s->times[s->n_times > 1 ? c : 0];
  if (s->plus) v = v + s->plus[s->n_plus > 1 ? c : 0];
  return quantized(&s->step, v);
}

uint8_t int8_norm_exactly(const int8_norm_t* k, const int8_norm_row_t* r, uint8_t x, int64_t c,
                          int from) {
  const float centered = number_of(x, k->x_type) - k->x_zero;
  uint8_t q;
  if (from == 0) {
    const float d = centered * k->x_scale - r->mean;
    q = quantized(&k->of_quotient, d / r->root);
  } else {
    const float v = limited(fmaf(centered, r->factor, r->shift), k->low, k->high);
    q = byte_of(rintf(v), &k->of_quotient);
  }
  for (int i = 0; i < k->n_stages; i++) q = stage_of(&k->stages[i], c, q);
  return q;
}

// ---- rows ---------------------------------------------------------------------------------------

static void sums_of(const int8_norm_t* k, const uint8_t* x, int64_t* sum, int64_t* squares) {
  const uint8_t turn = k->x_type == ASSAY_TYPE_INT8 ? 128 : 0;
  int32_t s = 0;
  uint32_t q = 0;
  for (int64_t i = 0; i < k->size; i++) {
    const int v = x[i] ^ turn;
    s += v;
    q += (uint32_t)(v * v);
  }
  *sum = s;
  *squares = q;
}

static uint8_t element(const int8_norm_t* k, const int8_norm_row_t* r, uint8_t x, int64_t c) {
  float v = fmaf(number_of(x, k->x_type) - k->x_zero, r->factor, r->shift);
  v = limited(v, k->low, k->high);
  const assay_norm_step_t* last = &k->of_quotient;
  for (int i = 0; i < k->n_stages; i++) {
    const int8_norm_stage_t* s = &k->stages[i];
    v = limited(fmaf(rintf(v), s->factor[c], s->shift[c]), s->low, s->high);
    last = &s->step;
  }
  return byte_of(rintf(v), last);
}

void int8_norm_rows_plain(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y) {
  for (int64_t i = 0; i < rows; i++, x += k->size, y += k->size) {
    int64_t sum, squares;
    sums_of(k, x, &sum, &squares);
    const int8_norm_row_t r = int8_norm_row_of(k, sum, squares);
    for (int64_t c = 0; c < k->size; c++)
      y[c] = r.odd ? int8_norm_exactly(k, &r, x[c], c, 0) : element(k, &r, x[c], c);
    for (int64_t j = 0; j < k->n_odd_channels && !r.odd; j++) {
      const int64_t c = k->odd_channels[j];
      y[c] = int8_norm_exactly(k, &r, x[c], c, 1);
    }
  }
}

void int8_norm_rows(const int8_norm_t* k, const uint8_t* x, int64_t rows, uint8_t* y) {
  if (int8_norm_has_wide())
    int8_norm_rows_wide(k, x, rows, y);
  else
    int8_norm_rows_plain(k, x, rows, y);
}

// ---- making -------------------------------------------------------------------------------------

static assay_status_t copied(const float* x, int64_t n, float** out) {
  if (!x) return NULL;
  ASSAY_TRY(assay_new_array((size_t)n, sizeof **out, out));
  memcpy(*out, x, (size_t)n * sizeof *x);
  return NULL;
}

// A fused operation for channel c. False: there is none.
static bool fit_channel(int8_norm_stage_t* s, int64_t c, const uint8_t want[256]) {
  // Numbers at a tie may fall to the other side: a little less or more of the shift.
  static const double nudges[] = {0, 0x1p-17, -0x1p-17, 0x1p-15, -0x1p-15, 0x1p-13, -0x1p-13};
  const double times = s->times ? (double)s->times[s->n_times > 1 ? c : 0] : 1;
  const double plus = s->plus ? (double)s->plus[s->n_plus > 1 ? c : 0] : 0;
  const double factor = (double)s->before.back_scale * times / (double)s->step.scale;
  const double shift = plus / (double)s->step.scale +
                       ((double)s->before.zero - (double)s->before.back_zero) * factor;
  if (!(fabs(factor) < 0x1p60) || !(fabs(shift) < 0x1p60)) return false;
  for (size_t i = 0; i < sizeof nudges / sizeof *nudges; i++) {
    s->factor[c] = (float)factor;
    s->shift[c] = (float)(shift + nudges[i]);
    if (int8_norm_gives(s, s->factor[c], s->shift[c], want)) return true;
  }
  return false;
}

static bool same_as_before(const int8_norm_stage_t* s, int64_t c) {
  return c > 0 && (!s->times || s->n_times == 1 || s->times[c] == s->times[c - 1]) &&
         (!s->plus || s->n_plus == 1 || s->plus[c] == s->plus[c - 1]);
}

// odd: by channel. *out_changes: some byte becomes another one.
static void fit_stage(int8_norm_stage_t* s, int64_t size, bool* odd, bool* out_changes) {
  uint8_t want[256];
  bool fits = true;
  *out_changes = s->step.type != s->before.type || s->step.zero != s->before.zero;
  for (int64_t c = 0; c < size; c++) {
    if (same_as_before(s, c)) {
      s->factor[c] = s->factor[c - 1];
      s->shift[c] = s->shift[c - 1];
    } else {
      for (int i = 0; i < 256; i++) {
        want[i] = stage_of(s, c, (uint8_t)i);
        *out_changes |= want[i] != i;
      }
      fits = fit_channel(s, c, want);
    }
    odd[c] |= !fits;
  }
}

static void stage_deinit(int8_norm_stage_t* s) {
  assay_free(s->factor);
  assay_free(s->shift);
  assay_free(s->times);
  assay_free(s->plus);
}

static assay_status_t add_stage(int8_norm_t* k, const assay_quantized_norm_t* q, int i,
                                const int8_norm_numbers_t* numbers, bool* odd) {
  const size_t capacity = ((size_t)k->size + 15) / 16 * 16;
  int8_norm_stage_t* s = &k->stages[k->n_stages++];
  s->before = k->n_stages > 1 ? s[-1].step : k->of_quotient;
  s->step = q->stages[i].step;
  s->low = min_of(s->step.type) - s->step.zero;
  s->high = max_of(s->step.type) - s->step.zero;
  s->n_times = numbers->n_factor[i];
  s->n_plus = numbers->n_term[i];
  ASSAY_TRY(assay_new_array(capacity, sizeof *s->factor, &s->factor));
  ASSAY_TRY(assay_new_array(capacity, sizeof *s->shift, &s->shift));
  ASSAY_TRY(copied(numbers->factor[i], s->n_times, &s->times));
  ASSAY_TRY(copied(numbers->term[i], s->n_plus, &s->plus));
  bool changes;
  fit_stage(s, k->size, odd, &changes);
  if (changes) return NULL;
  // Bytes stay as they are: only what stands for them may be another number.
  assay_norm_step_t* before = k->n_stages > 1 ? &s[-1].step : &k->of_quotient;
  before->back_scale = s->step.back_scale;
  before->back_zero = s->step.back_zero;
  stage_deinit(s);
  *s = (int8_norm_stage_t){.factor = NULL};
  k->n_stages--;
  return NULL;
}

static assay_status_t note_odd(int8_norm_t* k, const bool* odd) {
  for (int64_t c = 0; c < k->size; c++) k->n_odd_channels += odd[c];
  if (!k->n_odd_channels) return NULL;
  ASSAY_TRY(assay_new_array((size_t)k->n_odd_channels, sizeof *k->odd_channels, &k->odd_channels));
  for (int64_t c = 0, n = 0; c < k->size; c++)
    if (odd[c]) k->odd_channels[n++] = c;
  return NULL;
}

assay_status_t int8_norm_init(int8_norm_t* k, const assay_quantized_norm_t* q, int64_t size,
                              const int8_norm_numbers_t* numbers) {
  const double n = (double)size, scale = (double)q->x_scale;
  *k = (int8_norm_t){.size = size,
                     .x_type = q->x_type,
                     .x_scale = q->x_scale,
                     .x_zero = q->x_zero,
                     .mean_scale = scale / n,
                     .variance_scale = scale * scale / (n * n),
                     .epsilon = numbers->epsilon,
                     .of_variance = q->of_variance,
                     .of_sum = q->of_sum,
                     .of_root = q->of_root,
                     .of_quotient = q->of_quotient};
  k->low = min_of(q->of_quotient.type) - q->of_quotient.zero;
  k->high = max_of(q->of_quotient.type) - q->of_quotient.zero;
  make_roots(k);
  bool* odd = NULL;
  assay_status_t st = assay_new_array((size_t)size, sizeof *odd, &odd);
  for (int i = 0; !st && i < q->n_stages; i++) st = add_stage(k, q, i, numbers, odd);
  if (!st) st = note_odd(k, odd);
  assay_free(odd);
  if (st) int8_norm_deinit(k);
  return st;
}

void int8_norm_deinit(int8_norm_t* k) {
  for (int i = 0; i < ASSAY_QUANTIZED_NORM_STAGES; i++) stage_deinit(&k->stages[i]);
  assay_free(k->odd_channels);
}

bool int8_norm_gives(const int8_norm_stage_t* s, float factor, float shift,
                     const uint8_t want[256]) {
  if (int8_norm_has_wide()) return int8_norm_gives_wide(s, factor, shift, want);
  for (int i = 0; i < 256; i++) {
    const float x = number_of((uint8_t)i, s->before.type) - s->before.zero;
    const float v = limited(fmaf(x, factor, shift), s->low, s->high);
    if (byte_of(rintf(v), &s->step) != want[i]) return false;
  }
  return true;
}
