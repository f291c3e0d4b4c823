// Reductions of floats over any axes, in the layout in which the input lies.
//
// A result is made piece by piece: pieces of the innermost dimension one after the other, each in
// LANES sums side by side where that dimension is reduced. The order depends on nothing but the
// sizes of what is reduced.
#include <math.h>
#include <string.h>

#include "backends/constants.h"
#include "backends/cpu/data/copies.h"
#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/threads.h"
#include "backends/vmath/vmath.h"
#include "base/alloc.h"
#include "base/target.h"

#define CLONES ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")

enum { LANES = 32, PIECE = 512 };

// ---- kinds ----------------------------------------------------------------------------------
//
// What is done to an element before it is joined with others; m: what has been found before.

typedef struct reduction {
  const char* op;
  float start;
  // Joins n elements into one, or each with its own.
  float (*along)(const float* x, int64_t n, float m, float so_far);
  void (*across)(const float* x, int64_t n, const float* m, float* so_far);
} reduction_t;

static inline float larger(float a, float b) { return a > b || a != a ? a : b; }
static inline float smaller(float a, float b) { return a < b || a != a ? a : b; }
static inline float sum(float a, float b) { return a + b; }
static inline float product(float a, float b) { return a * b; }
static inline float itself(float x, float m) { return (void)m, x; }
static inline float magnitude(float x, float m) { return (void)m, fabsf(x); }
static inline float square(float x, float m) { return (void)m, x * x; }

#define REDUCTION(name, of, joined, neutral)                                            \
  CLONES                                                                                \
  static float name##_along(const float* x, int64_t n, float m, float so_far) {         \
    float lanes[LANES];                                                                 \
    int64_t i = 0;                                                                      \
    for (int k = 0; k < LANES; k++) lanes[k] = neutral;                                 \
    for (; i + LANES <= n; i += LANES)                                                  \
      _Pragma("omp simd") for (int k = 0; k < LANES; k++) lanes[k] =                    \
          joined(lanes[k], of(x[i + k], m));                                            \
    for (int k = 0; i + k < n; k++) lanes[k] = joined(lanes[k], of(x[i + k], m));       \
    for (int half = LANES / 2; half; half /= 2)                                         \
      for (int k = 0; k < half; k++) lanes[k] = joined(lanes[k], lanes[k + half]);      \
    return joined(so_far, lanes[0]);                                                    \
  }                                                                                     \
  CLONES                                                                                \
  static void name##_across(const float* x, int64_t n, const float* m, float* so_far) { \
    (void)m;                                                                            \
    _Pragma("omp simd") for (int64_t i = 0; i < n; i++) so_far[i] =                     \
        joined(so_far[i], of(x[i], 0));                                                 \
  }
REDUCTION(plain_sum, itself, sum, 0)
REDUCTION(plain_product, itself, product, 1)
REDUCTION(largest, itself, larger, -INFINITY)
REDUCTION(smallest, itself, smaller, INFINITY)
REDUCTION(magnitudes, magnitude, sum, 0)
REDUCTION(squares, square, sum, 0)

// The exponentials of x - m are made first.
static float exponentials_along(const float* x, int64_t n, float m, float so_far) {
  float e[PIECE];
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t size = n - i < PIECE ? n - i : PIECE;
    cpu_vmath()->exp_minus(x + i, m, size, e);
    so_far = plain_sum_along(e, size, 0, so_far);
  }
  return so_far;
}
static void exponentials_across(const float* x, int64_t n, const float* m, float* so_far) {
  float e[PIECE];
  for (int64_t i = 0; i < n; i += PIECE) {
    const int64_t size = n - i < PIECE ? n - i : PIECE;
    cpu_vmath()->exp_minus_each(x + i, m + i, size, e);
    plain_sum_across(e, size, NULL, so_far + i);
  }
}

typedef enum kind {
  MEAN,
  SUM,
  PRODUCT,
  MAX,
  MIN,
  L1,
  L2,
  SUM_SQUARE,
  LOG_SUM,
  LOG_SUM_EXP,
  KINDS
} kind_t;

static const reduction_t kinds[KINDS] = {
    [MEAN] = {"ReduceMean", 0, plain_sum_along, plain_sum_across},
    [SUM] = {"ReduceSum", 0, plain_sum_along, plain_sum_across},
    [PRODUCT] = {"ReduceProd", 1, plain_product_along, plain_product_across},
    [MAX] = {"ReduceMax", -INFINITY, largest_along, largest_across},
    [MIN] = {"ReduceMin", INFINITY, smallest_along, smallest_across},
    [L1] = {"ReduceL1", 0, magnitudes_along, magnitudes_across},
    [L2] = {"ReduceL2", 0, squares_along, squares_across},
    [SUM_SQUARE] = {"ReduceSumSquare", 0, squares_along, squares_across},
    [LOG_SUM] = {"ReduceLogSum", 0, plain_sum_along, plain_sum_across},
    [LOG_SUM_EXP] = {"ReduceLogSumExp", 0, exponentials_along, exponentials_across},
};

static float finished(kind_t kind, float x, float m, float count) {
  switch (kind) {
    case MEAN:
      return x / count;
    case L2:
      return sqrtf(x);
    case LOG_SUM:
      return logf(x);
    case LOG_SUM_EXP:
      return logf(x) + m;
    default:
      return x;
  }
}

// ---- sums of short rows ---------------------------------------------------------------------
//
// Many rows that lie one after the other, each of at most a piece: as plain_sum_along has them, in
// registers.

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

static bool has_row_sums(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
}

__attribute__((target("avx512f,avx512dq"))) static void row_sums(const float* x, int64_t rows,
                                                                 int64_t n, float* y) {
  const int64_t left = n % LANES;
  const __mmask16 low = left >= 16 ? 0xffff : (__mmask16)((1U << left) - 1);
  const __mmask16 high = left >= 16 ? (__mmask16)((1U << (left - 16)) - 1) : 0;
  for (int64_t r = 0; r < rows; r++, x += n) {
    __m512 a = _mm512_setzero_ps(), b = a;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
      a = _mm512_add_ps(a, _mm512_loadu_ps(x + i));
      b = _mm512_add_ps(b, _mm512_loadu_ps(x + i + 16));
    }
    a = _mm512_mask_add_ps(a, low, a, _mm512_maskz_loadu_ps(low, x + i));
    b = _mm512_mask_add_ps(b, high, b, _mm512_maskz_loadu_ps(high, x + i + 16));
    a = _mm512_add_ps(a, b);
    const __m256 c = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 d = _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
    d = _mm_add_ps(d, _mm_movehl_ps(d, d));
    y[r] = 0 + _mm_cvtss_f32(_mm_add_ss(d, _mm_movehdup_ps(d)));
  }
}
#else
static bool has_row_sums(void) { return false; }
static void row_sums(const float* x, int64_t rows, int64_t n, float* y) {
  (void)x, (void)rows, (void)n, (void)y;
}
#endif

// ---- kernels --------------------------------------------------------------------------------

// The input's dimensions, those that are kept and those that are reduced, as they lie in memory and
// without the innermost one, which is `columns` long with a step of 1.
typedef struct reduce {
  assay_kernel_t base;
  kind_t kind;
  int input;
  bool along;       // the innermost dimension is reduced
  bool short_rows;  // row_sums has the same bits
  int64_t columns, count;
  int n_kept, n_reduced;
  int64_t kept[ASSAY_KERNEL_RANK], kept_from[ASSAY_KERNEL_RANK], kept_to[ASSAY_KERNEL_RANK];
  int64_t reduced[ASSAY_KERNEL_RANK], reduced_from[ASSAY_KERNEL_RANK];
  int64_t outer, inner, column_step;  // products of kept and of reduced; in the output
} reduce_t;

// One pass over all elements that go into results [at, at + n): n is 1 where the innermost
// dimension is reduced.
static void pass(const reduce_t* k, const reduction_t* r, const void* x, int64_t at, int64_t n,
                 const float* m, float* so_far) {
  const assay_type_t type = k->base.in[k->input].type;
  float buffer[PIECE];
  int64_t index[ASSAY_KERNEL_RANK] = {0};
  for (int64_t i = 0; i < n; i++) so_far[i] = r->start;
  for (int64_t i = 0; i < k->inner; i++) {
    const int64_t total = k->along ? k->columns : n;
    for (int64_t c = 0; c < total; c += PIECE) {
      const int64_t size = total - c < PIECE ? total - c : PIECE;
      const float* from = (const float*)x + at + c;
      if (type != ASSAY_TYPE_FLOAT) {
        cpu_widen(x, type, at + c, size, buffer);
        from = buffer;
      }
      if (k->along)
        so_far[0] = r->along(from, size, m[0], so_far[0]);
      else
        r->across(from, size, m + c, so_far + c);
    }
    for (int d = k->n_reduced - 1; d >= 0; d--) {
      at += k->reduced_from[d];
      if (++index[d] < k->reduced[d]) break;
      at -= index[d] * k->reduced_from[d];
      index[d] = 0;
    }
  }
}

// Results of one place of the outer dimensions, from `column` on.
static void reduce_some(const reduce_t* k, const void* x, int64_t outer, int64_t column, int64_t n,
                        void* y) {
  float so_far[PIECE], m[PIECE] = {0};
  int64_t from = k->along ? 0 : column, to = column * k->column_step;
  for (int d = k->n_kept - 1; d >= 0; d--) {
    from += outer % k->kept[d] * k->kept_from[d];
    to += outer % k->kept[d] * k->kept_to[d];
    outer /= k->kept[d];
  }
  if (k->kind == LOG_SUM_EXP) {
    pass(k, &kinds[MAX], x, from, n, m, so_far);
    for (int64_t i = 0; i < n; i++) m[i] = isfinite(so_far[i]) ? so_far[i] : 0;
  }
  pass(k, &kinds[k->kind], x, from, n, m, so_far);
  for (int64_t i = 0; i < n; i++) so_far[i] = finished(k->kind, so_far[i], m[i], (float)k->count);
  if (k->column_step == 1 || n == 1) {
    cpu_narrow(so_far, n, k->base.out[0].type, to, y);
    return;
  }
  for (int64_t i = 0; i < n; i++)
    cpu_narrow(so_far + i, 1, k->base.out[0].type, to + i * k->column_step, y);
}

// Whether results lie one after the other, each from a row of its own that row_sums takes.
static bool has_short_rows(const reduce_t* k) {
  return (k->kind == MEAN || k->kind == SUM) && k->along && !k->n_reduced && k->n_kept == 1 &&
         k->columns <= PIECE && k->kept_from[0] == k->columns && k->kept_to[0] == 1 &&
         k->base.in[k->input].type == ASSAY_TYPE_FLOAT && k->base.out[0].type == ASSAY_TYPE_FLOAT &&
         has_row_sums();
}

static void run_short_rows(const reduce_t* k, const float* x, float* y) {
  const int64_t blocks = (k->outer + PIECE - 1) / PIECE;
  const int parts = cpu_threads(k->outer * k->columns * 2);
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
  for (int64_t b = 0; b < blocks; b++) {
    const int64_t at = b * PIECE, n = k->outer - at < PIECE ? k->outer - at : PIECE;
    row_sums(x + at * k->columns, n, k->columns, y + at);
    for (int64_t i = at; i < at + n; i++) y[i] = finished(k->kind, y[i], 0, (float)k->count);
  }
}

static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const reduce_t* k = (const reduce_t*)base;
  if (k->short_rows) {
    run_short_rows(k, in[k->input], out[0]);
    return NULL;
  }
  // Fewer columns at a time where there is nothing else to share out.
  const int64_t width = k->along ? 1 : k->outer < 8 ? PIECE / 8 : PIECE;
  const int64_t blocks = k->along ? 1 : (k->columns + width - 1) / width;
  (void)scratch;
  const int64_t pieces = k->outer * blocks;
  const int parts = cpu_threads(k->outer * k->inner * k->columns * 2);
#pragma omp parallel for schedule(static) num_threads(parts) if (parts > 1)
  for (int64_t i = 0; i < pieces; i++) {
    const int64_t column = i % blocks * width, left = k->columns - column;
    reduce_some(k, in[k->input], i / blocks, column,
                k->along       ? 1
                : left < width ? left
                               : width,
                out[0]);
  }
  return NULL;
}

static void destroy(assay_kernel_t* k) { assay_free(k); }

// ---- which layers ------------------------------------------------------------------------------

static bool read_axes(const assay_sized_layer_t* l, const assay_node_t* n, int rank,
                      bool* reduced) {
  int64_t axes[ASSAY_KERNEL_RANK];
  int count;
  if (!assay_known_list(l, n, "axes", 1, ASSAY_KERNEL_RANK, axes, &count)) return false;
  const bool all = count <= 0;
  if (all && assay_attr_i64(n, "noop_with_empty_axes", 0)) return false;
  for (int i = 0; i < rank; i++) reduced[i] = all;
  for (int i = 0; i < count; i++) {
    const int d = assay_known_axis(axes[i], rank);
    if (d < 0 || reduced[d]) return false;
    reduced[d] = true;
  }
  return true;
}

// The step in the output of each dimension of the input; false: the output has another shape.
static bool output_strides(const assay_operand_t* x, const assay_operand_t* y, const bool* reduced,
                           assay_layout_t layout, int64_t* strides) {
  int64_t own[ASSAY_KERNEL_RANK] = {0};
  const bool keeps = y->rank == x->rank;
  box_layout_strides(y->rank, y->dims, layout, own);
  int at = 0;
  for (int i = 0; i < x->rank; i++) {
    strides[i] = 0;
    if (reduced[i] && !keeps) continue;
    if (at >= y->rank || y->dims[at] != (reduced[i] ? 1 : x->dims[i])) return false;
    strides[i] = own[at++];
  }
  return at == y->rank;
}

// One more kept dimension, or more of the last one where it runs on.
static void keep(reduce_t* k, int64_t size, int64_t from, int64_t to) {
  const int last = k->n_kept - 1;
  if (last < 0 || k->kept_from[last] != size * from || k->kept_to[last] != size * to) {
    k->kept[k->n_kept] = size;
    k->kept_from[k->n_kept] = from;
    k->kept_to[k->n_kept++] = to;
  } else {
    k->kept[last] *= size;
    k->kept_from[last] = from;
    k->kept_to[last] = to;
  }
}

// The dimensions from the outermost to the innermost in memory; neighbours of one kind that run on
// become one.
static void lay_out(reduce_t* k, const assay_operand_t* x, const bool* reduced,
                    assay_layout_t layout, const int64_t* to) {
  int64_t from[ASSAY_KERNEL_RANK];
  box_layout_strides(x->rank, x->dims, layout, from);
  int order[ASSAY_KERNEL_RANK], n = 0, last = -1;
  for (int i = 0; i < x->rank; i++)
    if (x->dims[i] != 1) order[n++] = i;
  for (int i = 1; i < n; i++)
    for (int j = i; j && from[order[j - 1]] < from[order[j]]; j--) {
      const int t = order[j];
      order[j] = order[j - 1];
      order[j - 1] = t;
    }
  k->columns = 1;
  k->along = true;
  for (int i = n - 1; i >= 0; i--) {
    const int d = order[i];
    const bool joins = last >= 0 && reduced[d] == reduced[last] &&
                       (reduced[d] || to[d] == k->column_step * k->columns);
    if (last >= 0 && !joins) break;
    if (last < 0) k->column_step = to[d];
    k->along = reduced[d];
    k->columns *= x->dims[d];
    last = d;
    n = i;
  }
  k->outer = k->inner = 1;
  for (int i = 0; i < n; i++) {
    const int d = order[i];
    if (reduced[d]) {
      k->reduced[k->n_reduced] = x->dims[d];
      k->reduced_from[k->n_reduced++] = from[d];
      k->inner *= x->dims[d];
    } else {
      keep(k, x->dims[d], from[d], to[d]);
      k->outer *= x->dims[d];
    }
  }
  k->count = k->inner * (k->along ? k->columns : 1);
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_operand_t* x = n->n_inputs ? assay_sized_input(l, n->inputs[0]) : NULL;
  int kind = 0;
  while (kind < KINDS && strcmp(kinds[kind].op, n->op_type) != 0) kind++;
  if (kind == KINDS || *n->domain || l->layer->n_nodes != 1 || l->n_out != 1 || !l->out[0].value ||
      !x || !x->size || !assay_type_is_kernel_float(x->type) ||
      !assay_type_is_kernel_float(l->out[0].type))
    return NULL;
  bool reduced[ASSAY_KERNEL_RANK];
  int64_t to[ASSAY_KERNEL_RANK];
  const bool last = assay_operand_is_channels_last(x);
  const assay_layout_t from = last ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  const assay_layout_t made =
      last && l->out[0].rank == x->rank ? ASSAY_LAYOUT_CHANNELS_LAST : ASSAY_LAYOUT_PLAIN;
  if (!read_axes(l, n, x->rank, reduced) || !output_strides(x, &l->out[0], reduced, made, to))
    return NULL;
  reduce_t* k = NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->kind = (kind_t)kind;
  k->input = (int)(x - l->in);
  k->base.in[k->input] = (assay_storage_t){x->type, from};
  k->base.out[0] = (assay_storage_t){l->out[0].type, made};
  lay_out(k, x, reduced, from, to);
  k->short_rows = has_short_rows(k);
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_reduce = {
    .name = "reduce",
    .source = "assay",
    .make = make,
    .layouts = ASSAY_LAYOUT_FOLLOWS_BITS,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 2},
};
