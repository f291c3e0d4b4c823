// Sums of products of float32 numbers, made of products of tf32 parts.
#include "ops/matmul/tf32_products.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/matmul/split_account.h"

enum { UNIT = 16, STEP = 8, LOST_BITS = 13 };

static uint32_t bits_of(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

static float float_of(uint32_t b) {
  float x;
  memcpy(&x, &b, sizeof x);
  return x;
}

// To nearest, ties to even; what is not finite stays.
static float rounded(float x) {
  const uint32_t b = bits_of(x), low = (1U << LOST_BITS) - 1;
  return isfinite(x) ? float_of((b + (low >> 1) + (b >> LOST_BITS & 1)) & ~low) : x;
}

float assay_tf32_part(float x) {
  const float nearest = rounded(x);
  return isfinite(nearest) ? nearest : float_of(bits_of(x) & ~((1U << LOST_BITS) - 1));
}

float assay_tf32_rest(float x, float part) { return isfinite(part) ? rounded(x - part) : 0; }

// ---- bounds -------------------------------------------------------------------------------------

double assay_tf32_roundings(double n) { return ceil(n / UNIT) + 1; }

// A step has nine numbers, each of which loses less than 2^-25 of the largest, and its sum less
// than 2^-23 of itself: 6.5 u of what the unit's terms are together, u = 2^-24. Two steps are of b
// b; four of terms that are 2^-10 of these at most.
double assay_tf32_cut(void) { return (2 + 4 * 0x1p-9) * 6.5 * (1 + 0x1p-8); }

double assay_tf32_left_out(void) { return 3 * 0x1p-22 * (1 + 0x1p-8); }

// ---- the error model ----------------------------------------------------------------------------
// As in split_products.c: variances are in units of u^2 / 3. What a step cuts off a number is
// uniform between 0 and 2^-25 of the largest one's power of two, and takes the number's sign: of
// inputs of mean zero it is one more random error; of those of one sign errors of weights of one
// sign add up, over units, too.

typedef struct walk {
  assay_split_partial_t all, unit;  // unit: of this one so far
  assay_split_partial_t rest;       // what the weights' parts leave out
  double rounded[2], left_out, bias, signs, largest;
} walk_t;

static void add(assay_split_partial_t* p, double w) {
  p->sum += w;
  p->square += w * w;
}

static double square(double x) { return x * x; }

// Of the eight products whose weights' signs add up to `signs`, and of the sum.
static void end_step(walk_t* k) {
  for (int i = 0; i < 2; i++) {
    const double result = assay_split_mean_square(i, k->unit);
    const double top = fmax(result, 4 * square(k->largest)) / 2;  // of the power of two
    // Second moments: nine numbers, u^2 / 4 / 3 each; the result, 4 u^2 / 3, of its power's.
    k->rounded[i] += (STEP + 1) * top / 4 + (i ? 0 : 4) * result / 2;
    if (i) {
      const double sign = k->unit.sum < 0 ? -1 : 1;
      k->bias += sqrt(top) / 4 * k->signs + sign * sqrt(result / 2);
    }
  }
  k->signs = k->largest = 0;
}

static void end_unit(walk_t* k) {
  for (int i = 0; i < 2; i++) k->rounded[i] += assay_split_mean_square(i, k->all);
  memset(&k->unit, 0, sizeof k->unit);
}

// A term, and what is not added of its product: of an input's parts, relative to it, s has mean
// square 2^-22 / 3, and what is left behind that 2^-44 / 9, at most.
static void add_term(walk_t* k, int64_t i, float x, assay_split_column_t* out) {
  const double w = (double)x, size = fabs(w);
  const float part = assay_tf32_part(x), rest = assay_tf32_rest(x, part);
  add(&k->all, w);
  add(&k->unit, w);
  add(&k->rest, w - (double)part - (double)rest);
  k->largest = fmax(k->largest, size);
  k->signs += w < 0 ? -1 : w > 0;
  k->left_out += 0x1p26 * square((double)rest) + 0x1p4 / 3 * square(w);
  out->size += size;
  out->square += w * w;
  out->splits &= size == 0 || (size >= 0x1p-102 && size < 0x1p11);
  for (int j = 0; j < 2; j++) out->plain[j] += assay_split_mean_square(j, k->all);
  if (i % STEP == STEP - 1) end_step(k);
  if (i % UNIT == UNIT - 1) end_unit(k);
}

static void judge_column(const assay_split_weights_t* w, int64_t column,
                         assay_split_column_t* out) {
  walk_t k = {0};
  *out = (assay_split_column_t){.splits = true};
  for (int64_t i = 0; i < w->n; i++)
    add_term(&k, i, w->w[column * w->column_step + i * w->step], out);
  if (w->n % STEP) end_step(&k);
  if (w->n % UNIT) end_unit(&k);
  for (int i = 0; i < 2; i++)
    out->own[i] = k.rounded[i] + k.left_out + 3 * 0x1p48 * assay_split_mean_square(i, k.rest) +
                  (i ? 3 * square(k.bias) : 0);
}

assay_status_t assay_tf32_judge(const assay_split_weights_t* w, assay_sum_account_t* out) {
  assay_split_column_t* columns = NULL;
  ASSAY_TRY(assay_new_array((size_t)w->columns, sizeof *columns, &columns));
#pragma omp parallel for schedule(static) if (w->columns * w->n > 10000)
  for (int64_t j = 0; j < w->columns; j++) judge_column(w, j, &columns[j]);
  assay_split_add_up(w, columns, out);
  assay_free(columns);
  return NULL;
}
