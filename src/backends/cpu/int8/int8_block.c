// Exact sums of products of 8-bit integers by AVX512-VNNI, for kernels that make them tile by tile.
#include "backends/cpu/int8/int8_block.h"

#include <string.h>

#include "base/target.h"

int64_t int8_panels_bytes(int64_t k, int64_t n) {
  return (k + 3) / 4 * 4 * ((n + INT8_LANES - 1) / INT8_LANES * INT8_LANES);
}

void int8_panels_pack(const int16_t* w, int64_t row_step, int64_t column_step, int64_t k, int64_t n,
                      int8_t* to) {
  const int64_t units = (k + 3) / 4;
  memset(to, 0, (size_t)int8_panels_bytes(k, n));
  for (int64_t j = 0; j < n; j += INT8_PANEL) {
    const int64_t left = (n - j + INT8_LANES - 1) / INT8_LANES * INT8_LANES;
    const int64_t width = left < INT8_PANEL ? left : INT8_PANEL;
    for (int64_t i = 0; i < k; i++)
      for (int64_t c = 0; c < width && j + c < n; c++)
        to[(i / 4 * width + c) * 4 + i % 4] = (int8_t)w[i * row_step + (j + c) * column_step];
    to += units * width * 4;
  }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// Loops over rows have to disappear for the sums to be registers.
#ifdef __clang__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { AHEAD = 6144, MAX = 12, WIDE = 4, COLUMNS = 8 };

bool int8_has_vnni(void) {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

TARGET __attribute__((always_inline)) static inline __m512i unit(const uint8_t* at) {
  int32_t x;
  memcpy(&x, at, sizeof x);
  return _mm512_set1_epi32(x);
}

// Rows of sums, which are in the first cache still. (Finished in registers they would be a little
// faster, but compilers spill them in the loop over units then.)
static void finish(const int8_block_t* b, int64_t row, int rows, int64_t step,
                   const int32_t* sums) {
  uint8_t* to = b->out + row * b->out_step;
  const uint32_t unsure = int8_quick_rows(b->quick, sums, step, rows, b->width, to, b->out_step);
  for (int i = 0; unsure >> i; i++)
    if (unsure >> i & 1) b->unsure(b->user, to + i * b->out_step, sums + i * step, b->width);
}

// `rows` and `vectors` are constants where this is inlined: its sums stay in registers.
TARGET __attribute__((always_inline)) static inline void block(int rows, int vectors,
                                                               const int8_block_t* b, int64_t row) {
  const int64_t step = b->a_step, units = b->units;
  const uint8_t* a = b->a + row * step;
  const int8_t* panel = b->panel;
  __m512i sum[MAX][WIDE];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++) sum[i][j] =
      _mm512_loadu_si512(b->start + (row + i) * b->start_step + j * INT8_LANES);
  for (int64_t p = 0; p < b->n_pieces; p++) {
    const uint8_t* at = a + b->pieces[p];
    for (int64_t l = 0; l < units; l++, panel += vectors * 64, at += 4) {
      const __m512i b0 = _mm512_loadu_si512(panel);
      const __m512i b1 = vectors > 1 ? _mm512_loadu_si512(panel + 64) : b0;
      const __m512i b2 = vectors > 2 ? _mm512_loadu_si512(panel + 128) : b0;
      const __m512i b3 = vectors > 3 ? _mm512_loadu_si512(panel + 192) : b0;
      if (vectors == WIDE)
        UNROLL for (int j = 0; j < WIDE; j++)
            _mm_prefetch((const char*)panel + AHEAD + j * 64, _MM_HINT_T0);
      UNROLL for (int i = 0; i < rows; i++) {
        const __m512i x = unit(at + i * step);
        sum[i][0] = _mm512_dpbusd_epi32(sum[i][0], x, b0);
        if (vectors > 1) sum[i][1] = _mm512_dpbusd_epi32(sum[i][1], x, b1);
        if (vectors > 2) sum[i][2] = _mm512_dpbusd_epi32(sum[i][2], x, b2);
        if (vectors > 3) sum[i][3] = _mm512_dpbusd_epi32(sum[i][3], x, b3);
      }
    }
  }
  if (!b->quick) {
    UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
        _mm512_storeu_si512(b->c + (row + i) * b->c_step + j * INT8_LANES, sum[i][j]);
    return;
  }
  int32_t sums[MAX * WIDE * INT8_LANES];
  UNROLL for (int i = 0; i < rows; i++) UNROLL for (int j = 0; j < vectors; j++)
      _mm512_storeu_si512(sums + (i * vectors + j) * INT8_LANES, sum[i][j]);
  finish(b, row, rows, vectors * INT8_LANES, sums);
}

#define ROWS(n, vectors) \
  for (; b->rows - row >= (n); row += (n)) block(n, vectors, b, row);
#define NARROW(vectors) \
  ROWS(12, vectors) ROWS(8, vectors) ROWS(4, vectors) ROWS(2, vectors) ROWS(1, vectors)
// Seven rows are four and three: six and one would leave the units for products idle.
#define BROAD(vectors)                                                             \
  for (; b->rows - row >= 6 && b->rows - row != 7 && b->rows - row != 8; row += 6) \
    block(6, vectors, b, row);                                                     \
  if (b->rows - row == 5) block(5, vectors, b, row), row += 5;                     \
  ROWS(4, vectors) ROWS(3, vectors) ROWS(2, vectors) ROWS(1, vectors)

TARGET void int8_block_run(const int8_block_t* b) {
  int64_t row = 0;
  switch (b->vectors) {
    case 1:
      NARROW(1)
      break;
    case 2:
      NARROW(2)
      break;
    case 3:
      BROAD(3)
      break;
    default:
      BROAD(4)
      break;
  }
}

// ---- depthwise ---------------------------------------------------------------------------------

TARGET void int8_line_units(const int8_line_t* l, uint32_t* to) {
  const __mmask16 mask = (__mmask16)((1U << l->channels) - 1);
  const __m512i flip = _mm512_set1_epi32(l->flip ? 128 : 0);
  const __m512i padding = _mm512_set1_epi32(l->padding);
  __m512i u = _mm512_setzero_si512();
  const uint8_t* from = l->from;
  for (int64_t p = -3; p < l->n; p++) {
    const int64_t at = p + 3 - l->before;
    __m512i x = padding;
    if (at >= 0 && at < l->inside) {
      x = _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(mask, from));
      x = _mm512_xor_si512(x, flip);
      from += l->step;
    }
    u = _mm512_or_si512(_mm512_srli_epi32(u, 8), _mm512_slli_epi32(x, 24));
    if (p >= 0) _mm512_storeu_si512(to + p * INT8_LANES, u);
  }
}

TARGET __attribute__((always_inline)) static inline void columns(int n,
                                                                 const int8_depthwise_row_t* d,
                                                                 int64_t column) {
  const int64_t step = d->stride * INT8_LANES;
  const int8_t* weights = d->weights;
  __m512i sum[COLUMNS];
  UNROLL for (int i = 0; i < n; i++) sum[i] = _mm512_loadu_si512(d->start);
  for (int64_t r = 0; r < d->n_rows; r++) {
    const uint32_t* at = d->rows[r] + column * step;
    for (int64_t q = 0; q < d->quads; q++, weights += 64, at += 4 * INT8_LANES) {
      const __m512i w = _mm512_loadu_si512(weights);
      UNROLL for (int i = 0; i < n; i++) sum[i] =
          _mm512_dpbusd_epi32(sum[i], _mm512_loadu_si512(at + i * step), w);
    }
  }
  UNROLL for (int i = 0; i < n; i++)
      _mm512_storeu_si512(d->out + (column + i) * d->out_step, sum[i]);
}

TARGET void int8_depthwise_run(const int8_depthwise_row_t* d) {
  int64_t c = 0;
  for (; d->columns - c >= 8; c += 8) columns(8, d, c);
  for (; d->columns - c >= 4; c += 4) columns(4, d, c);
  for (; c < d->columns; c++) columns(1, d, c);
}
#else
bool int8_has_vnni(void) { return false; }
void int8_block_run(const int8_block_t* b) { (void)b; }
void int8_line_units(const int8_line_t* l, uint32_t* to) { (void)l, (void)to; }
void int8_depthwise_run(const int8_depthwise_row_t* d) { (void)d; }
#endif
