#include <stddef.h>

#include "backends/cpu/depthwise.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "backends/cpu/chain_lanes.h"

// Loops over columns have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL_ALL _Pragma("unroll")
#else
#define UNROLL_ALL _Pragma("GCC unroll 32")
#endif

enum { CHANNELS = CPU_DEPTHWISE_CHANNELS, COLUMNS = 7, MOST_KERNEL = 7, MOST_VECTORS = 2 };

// ---- sums --------------------------------------------------------------------------------------

// Of 32 channels in 16 bits those in even places are one vector, those in odd places the other; in
// float32, and where there are at most 16, they lie as they are.
INLINE void load(assay_type_t type, int vectors, __mmask32 mask, const char* from, __m512* x) {
  if (type == ASSAY_TYPE_FLOAT) {
    x[0] = _mm512_maskz_loadu_ps((__mmask16)mask, from);
    if (vectors > 1) x[1] = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + 64);
  } else if (vectors > 1) {
    const __m512i y = _mm512_maskz_loadu_epi16(mask, from);
    x[0] = _mm512_castsi512_ps(_mm512_slli_epi32(y, 16));
    x[1] = _mm512_castsi512_ps(_mm512_and_si512(y, _mm512_set1_epi32((int)0xffff0000u)));
  } else {
    const __m256i y = _mm256_maskz_loadu_epi16((__mmask16)mask, from);
    x[0] = _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(y), 16));
  }
}

// COLUMNS columns: each element of a row is loaded once. All but `d` and `column` are constants
// where this is inlined; edge: some places lie beside the row.
INLINE void tile(assay_type_t type, int kernel, int stride, int vectors, bool edge,
                 const cpu_depthwise_near_t* d, int64_t column) {
  const int span = (COLUMNS - 1) * stride + kernel;
  const int64_t first = column * stride - d->before;
  const float* weights = d->weights;
  const __mmask32 all = d->mask;
  __mmask32 mask[(COLUMNS - 1) * 2 + MOST_KERNEL];
  _Alignas(64) float sums[COLUMNS][MOST_VECTORS][LANES];
  __m512 sum[COLUMNS][MOST_VECTORS];
  if (edge)
    for (int j = 0; j < span; j++) mask[j] = first + j >= 0 && first + j < d->places ? all : 0;
  UNROLL_ALL for (int v = 0; v < vectors; v++) UNROLL_ALL for (int i = 0; i < COLUMNS; i++)
      sum[i][v] = _mm512_loadu_ps(d->bias + v * LANES);
  for (int64_t r = 0; r < d->kernel_rows; r++, weights += kernel * CHANNELS) {
    const int64_t step = d->rows[r].step;
    const char* from = d->rows[r].from + first * step;
    __m512 w[MOST_KERNEL][MOST_VECTORS];
    UNROLL_ALL for (int k = 0; k < kernel; k++) UNROLL_ALL for (int v = 0; v < vectors; v++)
        w[k][v] = _mm512_loadu_ps(weights + k * CHANNELS + v * LANES);
    UNROLL_ALL for (int j = 0; j < span; j++, from += step) {
      __m512 x[MOST_VECTORS];
      load(type, vectors, edge ? mask[j] : all, from, x);
      UNROLL_ALL for (int v = 0; v < vectors; v++) UNROLL_ALL for (int i = 0; i < COLUMNS; i++) {
        const int k = j - i * stride;
        if (k >= 0 && k < kernel) sum[i][v] = _mm512_fmadd_ps(x[v], w[k][v], sum[i][v]);
      }
    }
  }
  UNROLL_ALL for (int i = 0; i < COLUMNS; i++) UNROLL_ALL for (int v = 0; v < vectors; v++)
      _mm512_store_ps(sums[i][v], sum[i][v]);
  d->finish(sums[0][0], vectors, d, (char*)d->out + column * d->out_step);
}

// Part i of n of what comes next: CPUs do not see so far ahead, as rows are read in strides.
INLINE void fetch(const cpu_depthwise_near_t* d, int64_t i, int64_t n) {
  enum { LINE = 64 };
  const char* end = d->fetch + d->fetch_bytes * (i + 1) / n;
  for (const char* at = d->fetch + d->fetch_bytes * i / n; at < end; at += LINE)
    __builtin_prefetch(at);
  end = d->fetch_out + d->fetch_out_bytes * (i + 1) / n;
  for (const char* at = d->fetch_out + d->fetch_out_bytes * i / n; at < end; at += LINE)
    __builtin_prefetch(at, 1);
}

// The columns of a row; where they are no multiple of COLUMNS, some are made twice.
INLINE void row(assay_type_t type, int kernel, int stride, int vectors,
                const cpu_depthwise_near_t* d) {
  for (int64_t c = 0; c < d->columns; c += COLUMNS) {
    if (d->fetch) fetch(d, c / COLUMNS, (d->columns + COLUMNS - 1) / COLUMNS);
    const int64_t column = c + COLUMNS > d->columns ? d->columns - COLUMNS : c;
    const int64_t first = column * stride - d->before;
    if (first < 0 || first + (COLUMNS - 1) * stride + kernel > d->places)
      tile(type, kernel, stride, vectors, true, d, column);
    else
      tile(type, kernel, stride, vectors, false, d, column);
  }
}

typedef void row_t(const cpu_depthwise_near_t* d);
#define ROW(name, type, kernel, stride)                                                           \
  TARGET static void name##_1(const cpu_depthwise_near_t* d) { row(type, kernel, stride, 1, d); } \
  TARGET static void name##_2(const cpu_depthwise_near_t* d) { row(type, kernel, stride, 2, d); }
#define KERNELS(name, type, kernel) \
  ROW(name##_by_1, type, kernel, 1) \
  ROW(name##_by_2, type, kernel, 2)
KERNELS(float_3, ASSAY_TYPE_FLOAT, 3)
KERNELS(float_5, ASSAY_TYPE_FLOAT, 5)
KERNELS(float_7, ASSAY_TYPE_FLOAT, 7)
KERNELS(bf16_3, ASSAY_TYPE_BFLOAT16, 3)
KERNELS(bf16_5, ASSAY_TYPE_BFLOAT16, 5)
KERNELS(bf16_7, ASSAY_TYPE_BFLOAT16, 7)

#define STRIDES(name)                                                \
  {                                                                  \
    {name##_by_1_1, name##_by_1_2}, { name##_by_2_1, name##_by_2_2 } \
  }
static row_t* const rows_float[3][2][2] = {STRIDES(float_3), STRIDES(float_5), STRIDES(float_7)};
static row_t* const rows_bf16[3][2][2] = {STRIDES(bf16_3), STRIDES(bf16_5), STRIDES(bf16_7)};

bool cpu_depthwise_is_near(assay_type_t type, int64_t kernel, int64_t stride, int64_t columns) {
  if (!cpu_has_depthwise() || columns < COLUMNS || (kernel != 3 && kernel != 5 && kernel != 7) ||
      (stride != 1 && stride != 2))
    return false;
  return type == ASSAY_TYPE_FLOAT ||
         (type == ASSAY_TYPE_BFLOAT16 && __builtin_cpu_supports("avx512bf16"));
}

void cpu_depthwise_near_run(assay_type_t type, const cpu_depthwise_near_t* d) {
  const int kernel = (int)(d->kernel - 3) / 2, wide = (d->mask >> LANES) != 0;
  (type == ASSAY_TYPE_FLOAT ? rows_float : rows_bf16)[kernel][d->stride - 1][wide](d);
}

// ---- what comes behind -------------------------------------------------------------------------

// kind is a constant where this is inlined.
INLINE void apply(cpu_link_kind_t kind, cpu_vmath_use_t use, const float* param, __m512* x) {
  if (kind == CPU_LINK_RELU) relu(x);
  if (kind == CPU_LINK_SWISH) swish(x, param[0], use);
  if (kind == CPU_LINK_HARD_SWISH) hard_swish(x, 0, use);
  if (kind == CPU_LINK_CLIP)
    UNROLL for (int v = 0; v < VECTORS; v++) x[v] =
        limited(x[v], _mm512_set1_ps(param[0]), _mm512_set1_ps(param[1]));
}

// Vectors of a block: the next sums of one channel vector each, or of two; behind the last ones the
// last one again.
INLINE int take(const float* sums, int vectors, int column, __m512* x) {
  const int each = VECTORS / vectors, n = COLUMNS - column < each ? COLUMNS - column : each;
  UNROLL for (int v = 0; v < VECTORS; v++) {
    const int i = v / vectors < n ? v / vectors : n - 1;
    x[v] = _mm512_load_ps(sums + ((column + i) * MOST_VECTORS + v % vectors) * LANES);
  }
  return n;
}

INLINE void finish_float(cpu_link_kind_t kind, const float* sums, int vectors,
                         const cpu_depthwise_near_t* d, char* out) {
  const int each = VECTORS / vectors;
  for (int c = 0; c < COLUMNS; c += each) {
    __m512 x[VECTORS];
    const int n = take(sums, vectors, c, x);
    apply(kind, CPU_V_FLOAT32, d->param, x);
    UNROLL for (int v = 0; v < VECTORS; v++) if (v / vectors < n)
        _mm512_mask_storeu_ps(out + (c + v / vectors) * d->out_step + v % vectors * 64,
                              (__mmask16)(d->mask >> (v % vectors * LANES)), x[v]);
  }
}

static inline TARGET_BF16 __attribute__((always_inline)) void finish_bf16(
    cpu_link_kind_t kind, const float* sums, int vectors, const cpu_depthwise_near_t* d,
    char* out) {
  const int each = VECTORS / vectors;
  // Even places' and odd places' channels, one behind the other.
  const __m512i places = _mm512_add_epi32(
      _mm512_set1_epi32(0x00100000),
      _mm512_mullo_epi32(_mm512_set1_epi32(0x00010001),
                         _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)));
  for (int c = 0; c < COLUMNS; c += each) {
    __m512 x[VECTORS];
    const int n = take(sums, vectors, c, x);
    apply(kind, CPU_V_BFLOAT16, d->param, x);
    const bool slow = some_subnormal(x);
    UNROLL for (int v = 0; v < VECTORS; v += vectors) {
      if (v / vectors >= n) break;
      char* to = out + (c + v / vectors) * d->out_step;
      if (vectors == 1) {
        const __m256i y = slow ? to_bf16(x[v]) : (__m256i)_mm512_cvtneps_pbh(x[v]);
        _mm256_mask_storeu_epi16(to, (__mmask16)d->mask, y);
      } else {
        const __m512i y =
            slow ? _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(x[v])), to_bf16(x[v + 1]), 1)
                 : (__m512i)_mm512_cvtne2ps_pbh(x[v + 1], x[v]);
        _mm512_mask_storeu_epi16(to, d->mask, _mm512_permutexvar_epi16(places, y));
      }
    }
  }
}

#define FINISH(name, target, finish, kind)                                               \
  target static void name(const float* sums, int vectors, const cpu_depthwise_near_t* d, \
                          char* out) {                                                   \
    if (vectors == 1)                                                                    \
      finish(kind, sums, 1, d, out);                                                     \
    else                                                                                 \
      finish(kind, sums, MOST_VECTORS, d, out);                                          \
  }
#define BOTH(name, kind)                           \
  FINISH(float_##name, TARGET, finish_float, kind) \
  FINISH(bf16_##name, TARGET_BF16, finish_bf16, kind)
BOTH(as_it_is, CPU_LINK_IDENTITY)
BOTH(relu, CPU_LINK_RELU)
BOTH(swish, CPU_LINK_SWISH)
BOTH(hard_swish, CPU_LINK_HARD_SWISH)
BOTH(clip, CPU_LINK_CLIP)

cpu_depthwise_finish_t* cpu_depthwise_finish(assay_type_t type, cpu_link_kind_t kind) {
  const bool bf16 = type == ASSAY_TYPE_BFLOAT16;
  switch (kind) {
    case CPU_LINK_IDENTITY:
      return bf16 ? bf16_as_it_is : float_as_it_is;
    case CPU_LINK_RELU:
      return bf16 ? bf16_relu : float_relu;
    case CPU_LINK_SWISH:
      return bf16 ? bf16_swish : float_swish;
    case CPU_LINK_HARD_SWISH:
      return bf16 ? bf16_hard_swish : float_hard_swish;
    case CPU_LINK_CLIP:
      return bf16 ? bf16_clip : float_clip;
    default:
      return NULL;
  }
}

#else
bool cpu_depthwise_is_near(assay_type_t type, int64_t kernel, int64_t stride, int64_t columns) {
  (void)type, (void)kernel, (void)stride, (void)columns;
  return false;
}
void cpu_depthwise_near_run(assay_type_t type, const cpu_depthwise_near_t* d) {
  (void)type, (void)d;
}
cpu_depthwise_finish_t* cpu_depthwise_finish(assay_type_t type, cpu_link_kind_t kind) {
  (void)type, (void)kind;
  return NULL;
}
#endif
