// Products of matrices in float64, for truth: by AVX-512 where the CPU has it, else by BLAS.
#include "ops/matmul/product_f64.h"

#include <cblas.h>

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f")))
#define INLINE TARGET __attribute__((always_inline)) static inline

// A strip is up to three vectors of columns wide: ROWS x VECTORS sums and what they are made of
// fill the 32 registers. DEPTH rows of a strip, 36 KiB, stay in the first cache while PASS rows of
// a go by; those, and the strips of a panel, stay in the second one.
enum { LANES = 8, VECTORS = 3, DEPTH = 192, ROWS = 8, PASS = 64, PANEL = 12 * LANES };

typedef struct strip {
  int64_t k, lda, ldy;
  bool add;
  __mmask8 last;    // of the last vector: the columns that there are
  const double* b;  // [k][vectors][LANES]
} strip_t;

// `rows` and `vectors` are known where this is called.
INLINE void block(const strip_t* s, const int rows, const int vectors, const double* a, double* y) {
  __m512d sums[ROWS][VECTORS];
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
      const __mmask8 mask = v + 1 < vectors ? 0xff : s->last;
      sums[i][v] =
          s->add ? _mm512_maskz_loadu_pd(mask, y + i * s->ldy + v * LANES) : _mm512_setzero_pd();
    }
  const double* b = s->b;
  for (int64_t l = 0; l < s->k; l++, b += vectors * LANES) {
    __m512d columns[VECTORS];
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) columns[v] = _mm512_load_pd(b + v * LANES);
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
      const __m512d x = _mm512_set1_pd(a[i * s->lda + l]);
#pragma GCC unroll 3
      for (int v = 0; v < vectors; v++) sums[i][v] = _mm512_fmadd_pd(x, columns[v], sums[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
    for (int v = 0; v < vectors; v++) {
      const __mmask8 mask = v + 1 < vectors ? 0xff : s->last;
      _mm512_mask_storeu_pd(y + i * s->ldy + v * LANES, mask, sums[i][v]);
    }
}

INLINE void blocks(const strip_t* s, const int vectors, int64_t m, const double* a, double* y) {
  int64_t i = 0;
  for (; i + ROWS <= m; i += ROWS) block(s, ROWS, vectors, a + i * s->lda, y + i * s->ldy);
  for (; i + 4 <= m; i += 4) block(s, 4, vectors, a + i * s->lda, y + i * s->ldy);
  for (; i < m; i++) block(s, 1, vectors, a + i * s->lda, y + i * s->ldy);
}

// The strips of n columns, as even as they can be: how many vectors the next one has.
static int64_t width_of(int64_t columns) {
  const int64_t vectors = (columns + LANES - 1) / LANES, strips = (vectors + VECTORS - 1) / VECTORS;
  return (vectors + strips - 1) / strips;
}

static __mmask8 mask_of(int64_t columns) {
  return (__mmask8)(columns >= LANES ? 0xff : (1U << columns) - 1);
}

// Strips of rows of b, n columns wide, one strip after the other; zeros beside them.
TARGET static void pack(int64_t n, int64_t k, const double* b, int64_t ldb, double* to) {
  for (int64_t j = 0, width; j < n; j += width * LANES) {
    width = width_of(n - j);
    for (int64_t l = 0; l < k; l++)
      for (int64_t v = 0; v < width; v++, to += LANES)
        _mm512_store_pd(
            to, _mm512_maskz_loadu_pd(mask_of(n - j - v * LANES), b + l * ldb + j + v * LANES));
  }
}

// m rows of a, against all strips of a panel.
TARGET static void pass(strip_t s, int64_t m, int64_t n, const double* a, double* y) {
  for (int64_t j = 0, width; j < n; j += width * LANES) {
    width = width_of(n - j);
    s.last = mask_of(n - j - (width - 1) * LANES);
    if (width == 3)
      blocks(&s, 3, m, a, y + j);
    else if (width == 2)
      blocks(&s, 2, m, a, y + j);
    else
      blocks(&s, 1, m, a, y + j);
    s.b += s.k * width * LANES;
  }
}

TARGET static void product_wide(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
                                const double* b, int64_t ldb, bool add, double* y, int64_t ldy) {
  _Alignas(64) double packed[DEPTH * PANEL];
  for (int64_t j = 0; j < n; j += PANEL) {
    const int64_t columns = n - j < PANEL ? n - j : PANEL;
    for (int64_t l = 0; l < k; l += DEPTH) {
      strip_t s = {.lda = lda, .ldy = ldy, .b = packed};
      s.k = k - l < DEPTH ? k - l : DEPTH;
      s.add = add || l;
      pack(columns, s.k, b + l * ldb + j, ldb, packed);
      for (int64_t i = 0; i < m; i += PASS)
        pass(s, m - i < PASS ? m - i : PASS, columns, a + i * lda + l, y + i * ldy + j);
    }
  }
}

#endif

void assay_product_f64(int64_t m, int64_t n, int64_t k, const double* a, int64_t lda,
                       const double* b, int64_t ldb, bool add, double* y, int64_t ldy) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) {
    product_wide(m, n, k, a, lda, b, ldb, add, y, ldy);
    return;
  }
#endif
  cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)m, (int)n, (int)k, 1.0, a, (int)lda,
              b, (int)ldb, add ? 1.0 : 0.0, y, (int)ldy);
}
