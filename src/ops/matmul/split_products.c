// Sums of products of float32 numbers, made of products of bf16 parts: x = h + m + l, parts of 8
// bits each, h = bf16(x), m = bf16(x - h), l = x - h - m.
#include "ops/matmul/split_products.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "ops/matmul/split_account.h"

enum { UNIT = ASSAY_SPLIT_UNIT, LANES = 16 };

int assay_split_parts(assay_algorithm_t algorithm) {
  return algorithm == ASSAY_ALGORITHM_SPLIT_3 ? 2 : algorithm == ASSAY_ALGORITHM_SPLIT_6 ? 3 : 0;
}

// Within a unit a chain of 16 terms and a join; then the products of parts, one after the other,
// and the bias: no more than 6 additions for 16 terms. Magnitudes of parts' products add up to a
// little more than those of the terms.
double assay_split_roundings(double n) { return (n + UNIT) * (1 + 0x1p-6); }

double assay_split_left_out(assay_algorithm_t algorithm) {
  switch (assay_split_parts(algorithm)) {
    case 2:
      return 3 * 0x1p-16 * (1 + 0x1p-6);
    case 3:
      return 2 * 0x1p-24 * (1 + 0x1p-6);
    default:
      return 0;
  }
}

// ---- the error model ----------------------------------------------------------------------------
// Each rounding adds an error that is independent of all others, of mean zero and of a variance
// proportional to the mean square of what is rounded (N. J. Higham and T. Mary, SIAM J. Sci.
// Comput. 41 (2019)). So does each splitting of an input; what is left of the weights is known.
// Variances are in units of that of a number's relative rounding error, which is at most u^2 / 3.

// Inputs: their mean and variance.
typedef struct kind {
  double mean, variance;
} kind_t;

#define TWO_BY_PI 0.63661977236758134308
static const kind_t kinds[2] = {{0, 1}, {0.79788456080286535588, 1 - TWO_BY_PI}};

typedef assay_split_partial_t partial_t;
typedef assay_split_column_t column_t;

static inline double mean_square(kind_t k, partial_t p) {
  return k.variance * p.square + k.mean * k.mean * p.sum * p.sum;
}

double assay_split_mean_square(int kind, partial_t p) { return mean_square(kinds[kind], p); }

// On the way down a column.
typedef struct walk {
  int parts;
  partial_t all, before, chain[2];  // before: up to the last unit; even terms of this one, and odd
  partial_t rest;                   // what the weights' parts leave out
  double rounded[2];                // by kind
  double left_out;                  // of the inputs
} walk_t;

static float rounded_to_bf16(float x) {
  uint32_t b;
  memcpy(&b, &x, sizeof b);
  b = (b + 0x7fff + (b >> 16 & 1)) & 0xffff0000u;
  memcpy(&x, &b, sizeof x);
  return x;
}

static void add(partial_t* p, double w) {
  p->sum += w;
  p->square += w * w;
}

// The additions at a unit's end: all but the last two products' of six (the last of three) go to
// what was there before it.
static void end_unit(walk_t* k) {
  const partial_t unit = {k->chain[0].sum + k->chain[1].sum,
                          k->chain[0].square + k->chain[1].square};
  for (int i = 0; i < 2; i++) {
    const double before = k->parts == 2 ? 1 : 4;
    k->rounded[i] += mean_square(kinds[i], unit) + before * mean_square(kinds[i], k->before) +
                     2 * mean_square(kinds[i], k->all);
  }
  k->before = k->all;
  memset(k->chain, 0, sizeof k->chain);
}

// A term, and what is not added of its product: of an input's parts, relative to it, m has mean
// square 2^-16 / 3 and l 2^-32 / 3 at most.
static void add_term(walk_t* k, int64_t i, float x, column_t* out) {
  const double w = (double)x, size = fabs(w);
  const float h = rounded_to_bf16(x), r = x - h, m = rounded_to_bf16(r);
  partial_t* chain = &k->chain[i % 2];
  add(&k->all, w);
  add(chain, w);
  out->size += size;
  out->square += w * w;
  out->splits &= size == 0 || (size >= 0x1p-102 && size < 0x1p100);
  for (int j = 0; j < 2; j++) {
    out->plain[j] += mean_square(kinds[j], k->all);
    if (i % UNIT > 1) k->rounded[j] += mean_square(kinds[j], *chain);  // one product is exact
  }
  if (k->parts == 2) {
    add(&k->rest, (double)r - (double)m);
    k->left_out += 0x1p32 * (double)m * (double)m + 0x1p16 * w * w;
  } else {
    const double l = (double)(r - m);
    k->left_out += 0x1p32 * l * l + 0x1p16 * (double)m * (double)m;
  }
  if (i % UNIT == UNIT - 1) end_unit(k);
}

static void end(walk_t* k, int64_t n, column_t* out) {
  if (n % UNIT) end_unit(k);
  for (int i = 0; i < 2; i++)
    out->own[i] = k->rounded[i] + k->left_out + 3 * 0x1p48 * mean_square(kinds[i], k->rest);
}

static void judge_columns(int parts, const assay_split_weights_t* w, int64_t from, int64_t lanes,
                          column_t* out) {
  walk_t walks[LANES];
  memset(walks, 0, sizeof walks);
  for (int64_t l = 0; l < lanes; l++) {
    walks[l].parts = parts;
    out[l] = (column_t){.splits = true};
  }
  for (int64_t i = 0; i < w->n; i++)
    for (int64_t l = 0; l < lanes; l++)
      add_term(&walks[l], i, w->w[(from + l) * w->column_step + i * w->step], &out[l]);
  for (int64_t l = 0; l < lanes; l++) end(&walks[l], w->n, &out[l]);
}

// Every number on the way is at most the largest input times the sum of the weights, and a little
// more. What is flushed is at most 2^-126 for each operation; beside the roundings of sums, of
// which the terms' own is the smallest, that is nothing if a term of middling size is 2^-100 or
// more.
static void add_range(const assay_split_weights_t* w, const column_t* columns,
                      assay_sum_account_t* out) {
  double size = 1, min = 0x1p-102;
  bool splits = true;
  for (int64_t j = 0; j < w->columns; j++) {
    const column_t* c = &columns[j];
    splits &= c->splits;
    size = fmax(size, c->size);
    if (c->square > 0) min = fmax(min, 0x1p-100 / sqrt(c->square / (double)w->n));
  }
  out->min = assay_exp2(ceil(assay_log2(min)));
  out->max = splits && isfinite(size) ? assay_exp2(floor(assay_log2(0x1p125 / size))) : 0;
}

void assay_split_add_up(const assay_split_weights_t* w, const column_t* columns,
                        assay_sum_account_t* out) {
  double own[2] = {0}, plain[2] = {0};
  *out = (assay_sum_account_t){0};
  for (int64_t j = 0; j < w->columns; j++) {
    const column_t* c = &columns[j];
    for (int k = 0; k < 2; k++) {
      const double sigma = 6 * sqrt(c->own[k] / 3), bound = (double)w->n * c->size * kinds[1].mean;
      own[k] += c->own[k];
      plain[k] += c->plain[k];
      if (sigma * out->bound >= out->six_sigma * bound) {
        out->six_sigma = sigma;
        out->bound = bound;
      }
    }
  }
  const int worse = own[1] * plain[0] > own[0] * plain[1];
  out->own = sqrt(own[worse] / (double)w->columns / 3);
  out->plain = sqrt(plain[worse] / (double)w->columns / 3);
  add_range(w, columns, out);
}

assay_status_t assay_split_judge(assay_algorithm_t algorithm, const assay_split_weights_t* w,
                                 assay_sum_account_t* out) {
  const int parts = assay_split_parts(algorithm);
  column_t* columns = NULL;
  ASSAY_TRY(assay_new_array((size_t)w->columns, sizeof *columns, &columns));
#pragma omp parallel for schedule(static) if (w->columns * w->n > 10000)
  for (int64_t j = 0; j < w->columns; j += LANES)
    judge_columns(parts, w, j, w->columns - j < LANES ? w->columns - j : LANES, &columns[j]);
  assay_split_add_up(w, columns, out);
  assay_free(columns);
  return NULL;
}
