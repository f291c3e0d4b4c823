// Arrays of numbers as NumPy computes with them: each operation rounded to the array's type, sums
// in NumPy's order, so that what is printed agrees with what its users know to the last digit.
#include "compare/numeric.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/codec.h"
#include "formats/format.h"

// ---- arrays -------------------------------------------------------------------------------------

void assay_numeric_deinit(assay_numeric_t* a) {
  assay_free(a->f);
  assay_free(a->i);
  *a = (assay_numeric_t){0};
}

static assay_numeric_kind_t number_of(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_FLOAT16:
      return ASSAY_NUMERIC_F16;
    case ASSAY_TYPE_DOUBLE:
      return ASSAY_NUMERIC_F64;
    case ASSAY_TYPE_BOOL:
      return ASSAY_NUMERIC_BOOL;
    case ASSAY_TYPE_UINT32:
    case ASSAY_TYPE_INT64:
      return ASSAY_NUMERIC_I64;
    case ASSAY_TYPE_UINT64:
      return ASSAY_NUMERIC_U64;
    default:
      return assay_type_is_float(type) ? ASSAY_NUMERIC_F32 : ASSAY_NUMERIC_I32;
  }
}

static assay_type_t type_of(assay_numeric_kind_t k) {
  static const assay_type_t types[] = {
      [ASSAY_NUMERIC_F16] = ASSAY_TYPE_FLOAT16, [ASSAY_NUMERIC_F32] = ASSAY_TYPE_FLOAT,
      [ASSAY_NUMERIC_F64] = ASSAY_TYPE_DOUBLE,  [ASSAY_NUMERIC_BOOL] = ASSAY_TYPE_BOOL,
      [ASSAY_NUMERIC_I32] = ASSAY_TYPE_INT32,   [ASSAY_NUMERIC_I64] = ASSAY_TYPE_INT64,
      [ASSAY_NUMERIC_U64] = ASSAY_TYPE_UINT64};
  return types[k];
}

static assay_status_t reserve(int rank, const int64_t* dims, int64_t n, assay_numeric_kind_t k,
                              assay_numeric_t* out) {
  assay_numeric_t a = {.number = k, .type = type_of(k), .rank = rank, .n = n};
  if (rank) memcpy(a.dims, dims, (size_t)rank * sizeof *dims);
  if (assay_numeric_is_float(k))
    ASSAY_TRY(assay_new_array((size_t)n, sizeof *a.f, &a.f));
  else
    ASSAY_TRY(assay_new_array((size_t)n, sizeof *a.i, &a.i));
  *out = a;
  return NULL;
}

assay_status_t assay_numeric_like(const assay_numeric_t* shape, assay_numeric_kind_t number,
                                  assay_numeric_t* out) {
  return reserve(shape->rank, shape->dims, shape->n, number, out);
}

assay_status_t assay_numeric_from(assay_tensor_t* t, assay_numeric_t* out) {
  assay_tensor_t* wide = NULL;
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING ||
      assay_type_is_complex(t->type))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "its elements are %s, which are not compared as numbers",
                       t->kind == ASSAY_KIND_TENSOR ? assay_type_name(t->type) : "tensors");
  const assay_numeric_kind_t k = number_of(t->type);
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = reserve(t->rank, t->dims, t->size, k, out);
  if (!st) out->type = t->type;
  if (!st && out->f)
    assay_format_round_n(assay_type_format(type_of(k)), assay_f64(wide), out->f, (size_t)t->size,
                         ASSAY_OVERFLOW_IEEE);
  else if (!st && t->size)
    memcpy(out->i, assay_i64(wide), (size_t)t->size * sizeof *out->i);
  assay_tensor_release(wide);
  return st;
}

void assay_numeric_widen(assay_numeric_t* a) {
  if (a->number == ASSAY_NUMERIC_F16) a->number = ASSAY_NUMERIC_F32;
}

// ---- element by element -------------------------------------------------------------------------

assay_numeric_kind_t assay_numeric_join(assay_numeric_kind_t a, assay_numeric_kind_t b) {
  const assay_numeric_kind_t low = a < b ? a : b, high = a < b ? b : a;
  if (low == high) return low;
  if (assay_numeric_is_float(high)) return high;
  if (assay_numeric_is_float(low)) {
    if (high == ASSAY_NUMERIC_BOOL) return low;
    return ASSAY_NUMERIC_F64;  // 32 and 64 bits of integer do not fit into float32
  }
  if (high == ASSAY_NUMERIC_U64 && low != ASSAY_NUMERIC_BOOL) return ASSAY_NUMERIC_F64;
  return high;
}

// Integers wrap as the machine's do.
static int64_t wrap(assay_numeric_kind_t k, uint64_t x) {
  return k == ASSAY_NUMERIC_I32 ? (int64_t)(int32_t)(uint32_t)x : (int64_t)x;
}

typedef enum operation { SUBTRACT, MULTIPLY, DIVIDE } operation_t;

// A quotient or product of two float32 is exact enough in float64 to be rounded once more.
#define EACH(expression)                                                                        \
  do {                                                                                          \
    if (k == ASSAY_NUMERIC_F64)                                                                 \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = (expression);                \
    else if (k == ASSAY_NUMERIC_F32)                                                            \
      _Pragma("omp simd") for (int64_t i = 0; i < n; i++) out[i] = (double)(float)(expression); \
    else                                                                                        \
      for (int64_t i = 0; i < n; i++) out[i] = assay_numeric_round(k, expression);              \
  } while (0)

ASSAY_WIDE static void apply_floats(operation_t op, assay_numeric_kind_t k, const double* a,
                                    const double* b, int64_t n, double* out) {
  if (op == SUBTRACT)
    EACH(a[i] - b[i]);
  else if (op == MULTIPLY)
    EACH(a[i] * b[i]);
  else
    EACH(a[i] / b[i]);
}

// As above, where one of them at least is of integers.
static void apply_mixed(operation_t op, const assay_numeric_t* a, const assay_numeric_t* b,
                        assay_numeric_t* out) {
  enum { SOME = 256 };
  double x[SOME], y[SOME];
  for (int64_t i = 0; i < a->n; i += SOME) {
    const int64_t n = a->n - i < SOME ? a->n - i : SOME;
    for (int64_t k = 0; k < n; k++) {
      x[k] = assay_numeric_at(a, i + k);
      y[k] = assay_numeric_at(b, i + k);
    }
    apply_floats(op, out->number, x, y, n, out->f + i);
  }
}

static void apply_integers(operation_t op, const assay_numeric_t* a, const assay_numeric_t* b,
                           assay_numeric_t* out) {
  for (int64_t i = 0; i < a->n; i++) {
    const uint64_t x = (uint64_t)a->i[i], y = (uint64_t)b->i[i];
    out->i[i] = wrap(out->number, op == SUBTRACT ? x - y : x * y);
  }
}

static assay_status_t apply(operation_t op, const assay_numeric_t* a, const assay_numeric_t* b,
                            assay_numeric_t* out) {
  assay_numeric_kind_t k = assay_numeric_join(a->number, b->number);
  if (k == ASSAY_NUMERIC_BOOL) k = ASSAY_NUMERIC_I32;
  if (op == DIVIDE) k = assay_numeric_of_mean(k);
  assay_numeric_t made = {0};
  ASSAY_TRY(assay_numeric_like(a, k, &made));
  if (made.i)
    apply_integers(op, a, b, &made);
  else if (a->f && b->f)
    apply_floats(op, k, a->f, b->f, a->n, made.f);
  else
    apply_mixed(op, a, b, &made);
  *out = made;
  return NULL;
}

assay_status_t assay_numeric_subtract(const assay_numeric_t* a, const assay_numeric_t* b,
                                      assay_numeric_t* out) {
  return apply(SUBTRACT, a, b, out);
}
assay_status_t assay_numeric_multiply(const assay_numeric_t* a, const assay_numeric_t* b,
                                      assay_numeric_t* out) {
  return apply(MULTIPLY, a, b, out);
}
assay_status_t assay_numeric_divide(const assay_numeric_t* a, const assay_numeric_t* b,
                                    assay_numeric_t* out) {
  return apply(DIVIDE, a, b, out);
}

void assay_numeric_abs(assay_numeric_t* a) {
  for (int64_t i = 0; a->f && i < a->n; i++) a->f[i] = fabs(a->f[i]);
  for (int64_t i = 0; a->i && a->number != ASSAY_NUMERIC_U64 && i < a->n; i++)
    if (a->i[i] < 0) a->i[i] = wrap(a->number, 0 - (uint64_t)a->i[i]);
}

// ---- histograms ---------------------------------------------------------------------------------

bool assay_numeric_bins(const assay_numeric_t* a, const assay_numeric_range_t* range,
                        assay_numeric_bins_t* out) {
  enum { N = ASSAY_NUMERIC_BINS };
  // Numbers of Python take part in float64; the elements, and the edges, are of the array's type.
  const assay_numeric_kind_t own = assay_numeric_of_mean(a->number);
  const assay_numeric_kind_t in = range ? ASSAY_NUMERIC_F64 : own;
  double first = range ? range->first : assay_numeric_min(a).x;
  double last = range ? range->last : assay_numeric_max(a).x;
  assay_numeric_bins_t b = {0};
  if (!isfinite(first) || !isfinite(last)) return false;
  if (first == last) {
    first = assay_numeric_round(in, first - 0.5);
    last = assay_numeric_round(in, last + 0.5);
  }
  const double span = assay_numeric_round(in, last - first);
  const double step = assay_numeric_round(in, span / N);
  for (int i = 0; i < N; i++)
    b.edges[i] = assay_numeric_round(
        own, assay_numeric_round(in, assay_numeric_round(in, i * step) + first));
  b.edges[N] = assay_numeric_round(own, last);
  const double from = assay_numeric_round(own, first), to = assay_numeric_round(own, last);
  for (int64_t i = 0; i < a->n; i++) {
    const double x = assay_numeric_round(own, assay_numeric_at(a, i));
    if (!(x >= from && x <= to)) continue;
    const double above = assay_numeric_round(own, x - from);
    const double at = assay_numeric_round(in, assay_numeric_round(in, above / span) * N);
    int k = at >= N ? N - 1 : at > 0 ? (int)at : 0;
    // Rounding may put a value beside its bin.
    if (x < b.edges[k] && k > 0)
      k--;
    else if (k < N - 1 && x >= b.edges[k + 1])
      k++;
    b.count[k]++;
  }
  *out = b;
  return true;
}

bool assay_numeric_same_shape(const assay_numeric_t* a, const assay_numeric_t* b) {
  return a->rank == b->rank &&
         (!a->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}
