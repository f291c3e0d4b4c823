// Depthwise convolutions of small kernels: all places of a row in registers.
#include <stddef.h>

#include "backends/cpu/conv/depthwise.h"
#include "exec/kernel.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include "backends/cpu/pointwise/chain_lanes.h"

// Loops over columns have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL_ALL _Pragma("unroll")
#else
#define UNROLL_ALL _Pragma("GCC unroll 32")
#endif

enum { CHANNELS = CPU_DEPTHWISE_CHANNELS, COLUMNS = 7, MAX_KERNEL = 7, MAX_VECTORS = 2 };

// ---- sums --------------------------------------------------------------------------------------

// Of 32 channels in bf16 those in even places are one vector, those in odd places the other; in
// other types, and where there are at most 16, they lie as they are.
INLINE void load(assay_type_t type, int vectors, __mmask32 mask, const char* from, __m512* x) {
  if (type == ASSAY_TYPE_FLOAT) {
    x[0] = _mm512_maskz_loadu_ps((__mmask16)mask, from);
    if (vectors > 1) x[1] = _mm512_maskz_loadu_ps((__mmask16)(mask >> 16), from + 64);
  } else if (type == ASSAY_TYPE_FLOAT16) {
    x[0] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)mask, from));
    if (vectors > 1)
      x[1] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16((__mmask16)(mask >> 16), from + 32));
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
  __mmask32 mask[(COLUMNS - 1) * 2 + MAX_KERNEL];
  _Alignas(64) float sums[COLUMNS][MAX_VECTORS][LANES];
  __m512 sum[COLUMNS][MAX_VECTORS];
  if (edge)
    for (int j = 0; j < span; j++) mask[j] = first + j >= 0 && first + j < d->places ? all : 0;
  UNROLL_ALL for (int v = 0; v < vectors; v++) UNROLL_ALL for (int i = 0; i < COLUMNS; i++)
      sum[i][v] = _mm512_loadu_ps(d->bias + v * LANES);
  for (int64_t r = 0; r < d->kernel_rows; r++, weights += kernel * CHANNELS) {
    const int64_t step = d->rows[r].step;
    const char* from = d->rows[r].from + first * step;
    __m512 w[MAX_KERNEL][MAX_VECTORS];
    UNROLL_ALL for (int k = 0; k < kernel; k++) UNROLL_ALL for (int v = 0; v < vectors; v++)
        w[k][v] = _mm512_loadu_ps(weights + k * CHANNELS + v * LANES);
    UNROLL_ALL for (int j = 0; j < span; j++, from += step) {
      __m512 x[MAX_VECTORS];
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
KERNELS(fp16_3, ASSAY_TYPE_FLOAT16, 3)
KERNELS(fp16_5, ASSAY_TYPE_FLOAT16, 5)
KERNELS(fp16_7, ASSAY_TYPE_FLOAT16, 7)
KERNELS(bf16_3, ASSAY_TYPE_BFLOAT16, 3)
KERNELS(bf16_5, ASSAY_TYPE_BFLOAT16, 5)
KERNELS(bf16_7, ASSAY_TYPE_BFLOAT16, 7)

#define STRIDES(name)                                                \
  {                                                                  \
    {name##_by_1_1, name##_by_1_2}, { name##_by_2_1, name##_by_2_2 } \
  }
static row_t* const rows[3][3][2][2] = {{STRIDES(float_3), STRIDES(float_5), STRIDES(float_7)},
                                        {STRIDES(fp16_3), STRIDES(fp16_5), STRIDES(fp16_7)},
                                        {STRIDES(bf16_3), STRIDES(bf16_5), STRIDES(bf16_7)}};

static int place_of(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT ? 0 : type == ASSAY_TYPE_FLOAT16 ? 1 : 2;
}

bool cpu_depthwise_is_near(assay_type_t type, int64_t kernel, int64_t stride, int64_t columns) {
  return cpu_has_depthwise() && assay_type_is_kernel_float(type) && columns >= COLUMNS &&
         (kernel == 3 || kernel == 5 || kernel == 7) && (stride == 1 || stride == 2);
}

void cpu_depthwise_near_run(assay_type_t type, const cpu_depthwise_near_t* d) {
  const int kernel = (int)(d->kernel - 3) / 2, wide = (d->mask >> LANES) != 0;
  rows[place_of(type)][kernel][d->stride - 1][wide](d);
}

// ---- what comes after -------------------------------------------------------------------------

// kind is a constant where this is inlined.
INLINE void apply(cpu_link_kind_t kind, cpu_vmath_use_t use, const float* param, __m512* x) {
  if (kind == CPU_LINK_RELU) relu(x);
  if (kind == CPU_LINK_SWISH) swish(x, param[0], use);
  if (kind == CPU_LINK_HARD_SWISH) hard_swish(x, 0, use);
  if (kind == CPU_LINK_CLIP)
    UNROLL for (int v = 0; v < VECTORS; v++) x[v] =
        limited(x[v], _mm512_set1_ps(param[0]), _mm512_set1_ps(param[1]));
}

// Vectors of a block: the next sums of one channel vector each, or of two; after the last ones the
// last one again.
INLINE int take(const float* sums, int vectors, int column, __m512* x) {
  const int each = VECTORS / vectors, n = COLUMNS - column < each ? COLUMNS - column : each;
  UNROLL for (int v = 0; v < VECTORS; v++) {
    const int i = v / vectors < n ? v / vectors : n - 1;
    x[v] = _mm512_load_ps(sums + ((column + i) * MAX_VECTORS + v % vectors) * LANES);
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

INLINE void finish_fp16(cpu_link_kind_t kind, const float* sums, int vectors,
                        const cpu_depthwise_near_t* d, char* out) {
  const int each = VECTORS / vectors;
  for (int c = 0; c < COLUMNS; c += each) {
    __m512 x[VECTORS];
    const int n = take(sums, vectors, c, x);
    apply(kind, CPU_V_FLOAT16, d->param, x);
    UNROLL for (int v = 0; v < VECTORS; v++) if (v / vectors < n) _mm256_mask_storeu_epi16(
        out + (c + v / vectors) * d->out_step + v % vectors * 32,
        (__mmask16)(d->mask >> (v % vectors * LANES)),
        _mm512_cvtps_ph(x[v], _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
}

// For CPUs that do not round to bf16 themselves.
INLINE void finish_soft(cpu_link_kind_t kind, const float* sums, int vectors,
                        const cpu_depthwise_near_t* d, char* out) {
  const int each = VECTORS / vectors;
  for (int c = 0; c < COLUMNS; c += each) {
    __m512 x[VECTORS];
    const int n = take(sums, vectors, c, x);
    apply(kind, CPU_V_BFLOAT16, d->param, x);
    UNROLL for (int v = 0; v < VECTORS; v += vectors) {
      if (v / vectors >= n) break;
      char* to = out + (c + v / vectors) * d->out_step;
      if (vectors == 1) {
        _mm256_mask_storeu_epi16(to, (__mmask16)d->mask, to_bf16(x[v]));
      } else {  // even and odd places' channels, one of each in four bytes
        const __m512i even = _mm512_srli_epi32(rounded_to_bf16(x[v]), 16);
        const __m512i odd =
            _mm512_and_si512(rounded_to_bf16(x[v + 1]), _mm512_set1_epi32((int)0xffff0000u));
        _mm512_mask_storeu_epi16(to, d->mask, _mm512_or_si512(even, odd));
      }
    }
  }
}

static inline TARGET_BF16 __attribute__((always_inline)) void finish_bf16(
    cpu_link_kind_t kind, const float* sums, int vectors, const cpu_depthwise_near_t* d,
    char* out) {
  const int each = VECTORS / vectors;
  // Even places' and odd places' channels, one after the other.
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
      finish(kind, sums, MAX_VECTORS, d, out);                                           \
  }
#define ALL(name, kind)                            \
  FINISH(float_##name, TARGET, finish_float, kind) \
  FINISH(fp16_##name, TARGET, finish_fp16, kind)   \
  FINISH(soft_##name, TARGET, finish_soft, kind)   \
  FINISH(bf16_##name, TARGET_BF16, finish_bf16, kind)
ALL(as_it_is, CPU_LINK_IDENTITY)
ALL(relu, CPU_LINK_RELU)
ALL(swish, CPU_LINK_SWISH)
ALL(hard_swish, CPU_LINK_HARD_SWISH)
ALL(clip, CPU_LINK_CLIP)

#define ROWS_OF(name) \
  { float_##name, fp16_##name, soft_##name, bf16_##name }
cpu_depthwise_finish_t* cpu_depthwise_finish(assay_type_t type, cpu_link_kind_t kind) {
  static const struct {
    cpu_link_kind_t kind;
    cpu_depthwise_finish_t* finish[4];
  } table[] = {{CPU_LINK_IDENTITY, ROWS_OF(as_it_is)},
               {CPU_LINK_RELU, ROWS_OF(relu)},
               {CPU_LINK_SWISH, ROWS_OF(swish)},
               {CPU_LINK_HARD_SWISH, ROWS_OF(hard_swish)},
               {CPU_LINK_CLIP, ROWS_OF(clip)}};
  const int place = place_of(type), soft = 2;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (table[i].kind == kind)
      return table[i]
          .finish[place == soft && __builtin_cpu_supports("avx512bf16") ? soft + 1 : place];
  return NULL;
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
