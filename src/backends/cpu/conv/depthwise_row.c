// Depthwise convolutions: a piece of a row at a time.
#include <stddef.h>

#include "backends/cpu/conv/depthwise.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,fma")))
#define INLINE TARGET __attribute__((always_inline)) static inline

// Loops over columns have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

enum { LANES = 16, CHANNELS = CPU_DEPTHWISE_CHANNELS, VECTORS = 2, COLUMNS = 7, MAX_KERNEL = 7 };

bool cpu_has_depthwise(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("fma");
}

INLINE __mmask16 mask_of(int channels, int v) {
  const int n = channels - v * LANES;
  return n >= LANES ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

// ---- rows --------------------------------------------------------------------------------------

// type and channels are constants where this is inlined; channels 0: as many as there are.
INLINE void fill(assay_type_t type, int channels, const cpu_depthwise_fill_t* f, float* to) {
  const char* from = f->from;
  const int n = channels ? channels : f->channels;
  const __mmask16 mask[VECTORS] = {mask_of(n, 0), mask_of(n, 1)};
  for (int64_t i = 0; i < f->n; i++, from += f->step, to += CHANNELS)
    UNROLL for (int v = 0; v < VECTORS; v++) {
      __m512 x;
      if (type == ASSAY_TYPE_FLOAT) {
        x = _mm512_maskz_loadu_ps(mask[v], (const float*)(const void*)from + v * LANES);
      } else {
        const __m256i y =
            _mm256_maskz_loadu_epi16(mask[v], (const uint16_t*)(const void*)from + v * LANES);
        x = type == ASSAY_TYPE_FLOAT16
                ? _mm512_cvtph_ps(y)
                : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(y), 16));
      }
      _mm512_storeu_ps(to + v * LANES, x);
    }
}

#define FILL(type)                 \
  do {                             \
    if (f->channels == CHANNELS)   \
      fill(type, CHANNELS, f, to); \
    else                           \
      fill(type, 0, f, to);        \
  } while (0)

TARGET void cpu_depthwise_fill(const cpu_depthwise_fill_t* f, float* to) {
  if (f->type == ASSAY_TYPE_FLOAT)
    FILL(ASSAY_TYPE_FLOAT);
  else if (f->type == ASSAY_TYPE_FLOAT16)
    FILL(ASSAY_TYPE_FLOAT16);
  else
    FILL(ASSAY_TYPE_BFLOAT16);
}

// ---- sums --------------------------------------------------------------------------------------

INLINE void store(const cpu_depthwise_t* d, float* out, int vectors, const __m512* sum) {
  UNROLL for (int v = 0; v < vectors; v++) {
    if (d->channels >= (v + 1) * LANES)
      _mm512_storeu_ps(out + v * LANES, sum[v]);
    else
      _mm512_mask_storeu_ps(out + v * LANES, mask_of(d->channels, v), sum[v]);
  }
}

// COLUMNS columns: each element of a row is loaded once. kernel, stride and vectors are constants
// where this is inlined.
INLINE void tile(int kernel, int stride, int vectors, const cpu_depthwise_t* d, int64_t column) {
  const int span = (COLUMNS - 1) * stride + kernel;
  const float* weights = d->weights;
  __m512 sum[COLUMNS][VECTORS];
  UNROLL for (int v = 0; v < vectors; v++) UNROLL for (int i = 0; i < COLUMNS; i++) sum[i][v] =
      _mm512_loadu_ps(d->bias + v * LANES);
  for (int64_t r = 0; r < d->kernel_rows; r++, weights += kernel * CHANNELS) {
    const float* from = d->rows[r] + column * stride * CHANNELS;
    __m512 w[MAX_KERNEL][VECTORS];
    UNROLL for (int k = 0; k < kernel; k++) UNROLL for (int v = 0; v < vectors; v++) w[k][v] =
        _mm512_loadu_ps(weights + k * CHANNELS + v * LANES);
    UNROLL for (int j = 0; j < span; j++) UNROLL for (int v = 0; v < vectors; v++) {
      const __m512 x = _mm512_loadu_ps(from + j * CHANNELS + v * LANES);
      UNROLL for (int i = 0; i < COLUMNS; i++) {
        const int k = j - i * stride;
        if (k >= 0 && k < kernel) sum[i][v] = _mm512_fmadd_ps(x, w[k][v], sum[i][v]);
      }
    }
  }
  float* out = d->out + column * d->out_column;
  UNROLL for (int i = 0; i < COLUMNS; i++) store(d, out + i * d->out_column, vectors, sum[i]);
}

// The columns of a row; where they are no multiple of COLUMNS, some are made twice.
INLINE void row(int kernel, int stride, int vectors, const cpu_depthwise_t* d) {
  for (int64_t c = 0; c < d->columns; c += COLUMNS)
    tile(kernel, stride, vectors, d, c + COLUMNS > d->columns ? d->columns - COLUMNS : c);
}

typedef void row_t(const cpu_depthwise_t* d);
#define ROW(name, kernel, stride)                     \
  TARGET static void name(const cpu_depthwise_t* d) { \
    if (d->channels <= LANES)                         \
      row(kernel, stride, 1, d);                      \
    else                                              \
      row(kernel, stride, VECTORS, d);                \
  }
ROW(row_3, 3, 1)
ROW(row_3_by_2, 3, 2)
ROW(row_5, 5, 1)
ROW(row_5_by_2, 5, 2)
ROW(row_7, 7, 1)
ROW(row_7_by_2, 7, 2)

TARGET static void row_any(const cpu_depthwise_t* d) {
  for (int64_t c = 0; c < d->columns; c++) {
    const float* weights = d->weights;
    __m512 sum[VECTORS];
    UNROLL for (int v = 0; v < VECTORS; v++) sum[v] = _mm512_loadu_ps(d->bias + v * LANES);
    for (int64_t r = 0; r < d->kernel_rows; r++) {
      const float* x = d->rows[r] + c * d->stride * CHANNELS;
      for (int64_t k = 0; k < d->kernel; k++, x += d->dilation * CHANNELS, weights += CHANNELS)
        UNROLL for (int v = 0; v < VECTORS; v++) sum[v] = _mm512_fmadd_ps(
            _mm512_loadu_ps(x + v * LANES), _mm512_loadu_ps(weights + v * LANES), sum[v]);
    }
    store(d, d->out + c * d->out_column, VECTORS, sum);
  }
}

void cpu_depthwise_run(const cpu_depthwise_t* d) {
  static const struct {
    int64_t kernel, stride;
    row_t* run;
  } all[] = {{3, 1, row_3},      {3, 2, row_3_by_2}, {5, 1, row_5},
             {5, 2, row_5_by_2}, {7, 1, row_7},      {7, 2, row_7_by_2}};
  row_t* run = row_any;
  for (size_t i = 0; d->dilation == 1 && d->columns >= COLUMNS && i < sizeof all / sizeof *all; i++)
    if (all[i].kernel == d->kernel && all[i].stride == d->stride) run = all[i].run;
  run(d);
}
#else
bool cpu_has_depthwise(void) { return false; }
void cpu_depthwise_fill(const cpu_depthwise_fill_t* f, float* to) { (void)f, (void)to; }
void cpu_depthwise_run(const cpu_depthwise_t* d) { (void)d; }
#endif
