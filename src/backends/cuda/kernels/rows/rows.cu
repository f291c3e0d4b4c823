// Softmax and normalizations of rows (rows.h). Elements are of type T, scale and bias of type S,
// statistics that are outputs of type M; all is computed in float32, and rounded as it is stored.
// SCALE, BIAS: 0: there is none, 1: of elements, 2: one; FIXED 1: no layer before this one writes
// them.
// One kernel is compiled at a time: SOFTMAX, NORMALIZE, or neither. QUANTIZED: bytes of the results
// are stored, too (int8/quantizer.h), and results only where there is a place for them.
#include "rows.h"

#ifdef QUANTIZED
typedef int64_t index_t;
#include "quantizer.h"
#endif

#ifdef SOFTMAX
#include "vmath.h"
#endif

// A row, and where its first element is; in the output and in `skip`, too.
typedef struct row {
  int64_t number, first, to, skip;
} row_t;

DEVICE row_t row_of(const rows_args_t* a) {
  row_t row = {ROW_OF_BLOCKS, 0, 0, 0};
  row.first = row_place(&a->g, a->g.row_from, row.number);
  row.to = row.first;
#ifdef MOVED
  // Threads past the last row have none.
  if (row.number < a->g.rows) {
    const uint32_t within = (uint32_t)row.number % (uint32_t)a->period;
    row.to = (row.number - within + GLOBAL(const int32_t, a->places)[within]) * a->g.terms;
  }
#endif
#ifdef SKIP
  row.skip = row.number % a->skip_rows * a->g.terms;
#endif
  return row;
}

DEVICE int64_t element(const rows_args_t* a, const row_t* row, int v) {
  return row->first + term_place(&a->g, (uint32_t)v * VEC);
}

// Vector v of a row: x, or x + skip + bias.
DEVICE void take(const rows_args_t* a, const row_t* row, int v, float* x) {
  LOAD_N(VEC, T)(GLOBAL(const ELEMENT(T), a->x), element(a, row, v), x);
#ifdef SKIP
  float other[VEC];
  LOAD_N(VEC, T)(GLOBAL(const ELEMENT(T), a->skip), row->skip + (int64_t)v * VEC, other);
  UNROLL for (int i = 0; i < VEC; i++) x[i] = x[i] + other[i];
  if (!a->skip_bias) return;
  LOAD_N(VEC, T)(GLOBAL(const ELEMENT(T), a->skip_bias), (int64_t)v * VEC, other);
  UNROLL for (int i = 0; i < VEC; i++) x[i] = x[i] + other[i];
#endif
}

DEVICE void put(const rows_args_t* a, const row_t* row, int v, const float* y) {
  const int64_t at = row->to + term_place(&a->g, (uint32_t)v * VEC);
#ifdef QUANTIZED
  store_quantized(&a->quantizer, at, VEC, y);
  if (!a->y) return;
#endif
  STORE_N(VEC, T)(GLOBAL(ELEMENT(T), a->y), at, y);
}

// Vectors of the thread's row that are there; none past the last row, whose threads take part in
// what all do together.
DEVICE int vectors_of(const rows_args_t* a, const row_t* row) {
  return row->number < a->g.rows ? a->g.terms / VEC : 0;
}

#if KEEP
#define TAKE_ROW(a, row, n, x) EACH_VECTOR(k, v, n) take(a, row, v, x[k])
#define TAKE_AGAIN(a, row, v, x) (void)0
#else
#define TAKE_ROW(a, row, n, x) (void)0
#define TAKE_AGAIN(a, row, v, x) take(a, row, v, x)
#endif

// ---- softmax ------------------------------------------------------------------------------------

#ifdef SOFTMAX
JOIN_FLOATS(larger)
JOIN_FLOATS(sum)

KERNEL(rows_softmax, rows_args_t, ROW_THREADS) {
  SHARED float joined[2][JOINED_PLACES];
  const row_t row = row_of(&a);
  const int n = vectors_of(&a, &row);
  float x[KEPT][VEC] = {{0}}, m = -POSITIVE_INFINITY, s = 0;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  TAKE_ROW(&a, &row, n, x);
  EACH_VECTOR(k, v, n) {
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) m = larger(m, x[k][i]);
  }
  m = larger_of_row(m, joined[0]);
  EACH_VECTOR(k, v, n) {
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) {
      const float e = v_exp(x[k][i] - m);
      s = s + e;
#ifndef LOGARITHM
      x[k][i] = e;
#endif
    }
  }
  s = sum_of_row(s, joined[1]);
#ifdef LOGARITHM
  s = v_log(s, false);
#endif
  EACH_VECTOR(k, v, n) {
    float y[VEC];
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) {
#ifdef LOGARITHM
      y[i] = (x[k][i] - m) - s;
#elif KEEP
      y[i] = x[k][i] / s;
#else
      y[i] = v_exp(x[k][i] - m) / s;
#endif
    }
    put(&a, &row, v, y);
  }
}
#elif defined NORMALIZE

// ---- normalizations -----------------------------------------------------------------------------

JOIN_FLOATS(sum)

#ifndef AFFINE
#define FIXED 0
#else
// The first parameter of a row.
DEVICE int64_t first_parameter(const rows_args_t* a, const row_t* row) {
  return AFFINE ? row->number % a->groups * a->channels : 0;
}

// Those of the elements of vector v.
DEVICE void parameters(const rows_args_t* a, address_t from, int single, int64_t first, int v,
                       float* x) {
  const ELEMENT(S)* p = GLOBAL(const ELEMENT(S), from);
#if AFFINE == 0
  (void)a, (void)first;
  if (!single) {
    LOAD_N(VEC, S)(p, (int64_t)v * VEC, x);
    return;
  }
  UNROLL for (int i = 0; i < VEC; i++) x[i] = LOAD(S)(p, 0);
#else
  (void)single;
  UNROLL for (int i = 0; i < VEC; i++) {
    const uint32_t e = (uint32_t)(v * VEC + i);
    const uint32_t c = AFFINE == 1 ? e / (uint32_t)a->run : e % (uint32_t)a->channels;
    x[i] = LOAD(S)(p, (uint32_t)(first + c) / (uint32_t)a->shared);
  }
#endif
}
#endif

// Those of the thread's vectors, where it keeps few elements: they are read beside the row, before
// anybody waits for sums.
#if defined AFFINE && KEEP * VEC > 0 && KEEP * VEC <= 8
#define EARLY 1
#else
#define EARLY 0
#endif
typedef struct affine {
#if EARLY
  float scale[KEPT][VEC], bias[KEPT][VEC];
#else
  char nothing;
#endif
} affine_t;

DEVICE void take_parameters(const rows_args_t* a, const row_t* row, int n, affine_t* p) {
#if EARLY
  const int64_t first = first_parameter(a, row);
  EACH_VECTOR(k, v, n) {
    if (SCALE) parameters(a, a->scale, SCALE == 2, first, v, p->scale[k]);
    if (BIAS) parameters(a, a->bias, BIAS == 2, first, v, p->bias[k]);
  }
#else
  (void)a, (void)row, (void)n, (void)p;
#endif
}

// y = x scale + bias, of vector v, the k-th that the thread keeps.
DEVICE void scale_and_put(const rows_args_t* a, const row_t* row, const affine_t* p, int k, int v,
                          float* y) {
  (void)p, (void)k;
#if EARLY
  if (SCALE) UNROLL
  for (int i = 0; i < VEC; i++) y[i] = y[i] * p->scale[k][i];
  if (BIAS) UNROLL
  for (int i = 0; i < VEC; i++) y[i] = y[i] + p->bias[k][i];
#elif defined AFFINE
  const int64_t first = first_parameter(a, row);
  float of[VEC];
  if (SCALE) {
    parameters(a, a->scale, SCALE == 2, first, v, of);
    UNROLL for (int i = 0; i < VEC; i++) y[i] = y[i] * of[i];
  }
  if (BIAS) {
    parameters(a, a->bias, BIAS == 2, first, v, of);
    UNROLL for (int i = 0; i < VEC; i++) y[i] = y[i] + of[i];
  }
#endif
  put(a, row, v, y);
}

#ifdef CENTERED
#define MINUS_MEAN(x) ((x)-mean)
#else
#define MINUS_MEAN(x) (x)
#endif

// (x - mean) / sqrt(variance + epsilon), in two passes.
KERNEL(rows_normalize, rows_args_t, ROW_THREADS) {
  SHARED float joined[2][JOINED_PLACES];
  const row_t row = row_of(&a);
  const int n = vectors_of(&a, &row);
  const float terms = (float)a.g.terms;
  float x[KEPT][VEC] = {{0}}, mean = 0, s = 0;
  affine_t affine;
  (void)mean;
  if (FIXED) take_parameters(&a, &row, n, &affine);
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  TAKE_ROW(&a, &row, n, x);
  if (!FIXED) take_parameters(&a, &row, n, &affine);
#ifdef CENTERED
  EACH_VECTOR(k, v, n) {
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) mean = mean + x[k][i];
  }
  mean = sum_of_row(mean, joined[0]) / terms;
#endif
  EACH_VECTOR(k, v, n) {
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) {
      const float d = MINUS_MEAN(x[k][i]);
      s = s + d * d;
    }
  }
  const float variance = sum_of_row(s, joined[1]) / terms;
#ifdef DEVIATION  // MeanVarianceNormalization's
  const float deviation = SQRT(variance) + a.epsilon;
#else
  const float inverse = 1 / SQRT(variance + a.epsilon);
#endif
  EACH_VECTOR(k, v, n) {
    float y[VEC];
    TAKE_AGAIN(&a, &row, v, x[k]);
#ifdef SKIP
    if (a.sum) STORE_N(VEC, T)(GLOBAL(ELEMENT(T), a.sum), element(&a, &row, v), x[k]);
#endif
    UNROLL for (int i = 0; i < VEC; i++) {
#ifdef DEVIATION
      y[i] = MINUS_MEAN(x[k][i]) / deviation;
#else
      y[i] = MINUS_MEAN(x[k][i]) * inverse;
#endif
    }
    scale_and_put(&a, &row, &affine, k, v, y);
  }
#ifdef M
  if (FIRST_VECTOR || !n) return;
  if (a.mean) STORE(M)(GLOBAL(ELEMENT(M), a.mean), row.number, mean);
  if (a.inverse) STORE(M)(GLOBAL(ELEMENT(M), a.inverse), row.number, inverse);
#endif
}

#else

// ---- norms --------------------------------------------------------------------------------------

JOIN_FLOATS(sum)

// x / (the sum of |x|, or the root of the sum of squares); 0 where that is 0.
KERNEL(rows_divide_by_norm, rows_args_t, ROW_THREADS) {
  SHARED float joined[JOINED_PLACES];
  const row_t row = row_of(&a);
  const int n = vectors_of(&a, &row);
  float x[KEPT][VEC] = {{0}}, s = 0;
  WAIT_FOR_INPUTS();
  LAUNCH_NEXT();
  TAKE_ROW(&a, &row, n, x);
  EACH_VECTOR(k, v, n) {
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) {
#ifdef SQUARES
      s = s + x[k][i] * x[k][i];
#else
      s = s + float_of(bits_of(x[k][i]) & 0x7fffffffu);
#endif
    }
  }
  s = sum_of_row(s, joined);
#ifdef SQUARES
  s = SQRT(s);
#endif
  EACH_VECTOR(k, v, n) {
    float y[VEC];
    TAKE_AGAIN(&a, &row, v, x[k]);
    UNROLL for (int i = 0; i < VEC; i++) y[i] = s == 0 ? 0 : x[k][i] / s;
    put(&a, &row, v, y);
  }
}
#endif
