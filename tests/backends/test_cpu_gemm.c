// Products of panels: the sums of a row and a vector of columns are the same bits whatever is made
// with them, with any number of rows and vectors, and lie where they belong where rows are so near
// to each other that a row's last vector reaches into the next one.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>

#include "backends/cpu/gemm/gemm.h"

enum {
  LANES = 16,
  MAX_ROWS = 26,
  MAX_K = 40,
  MAX_PIECES = 3,
  STEP = 3 * MAX_K,  // of a
  WIDTH = 2 * CPU_PANEL
};

static float a[MAX_ROWS * STEP], panels[2 * MAX_PIECES * MAX_K * CPU_PANEL];
static float start[MAX_ROWS * WIDTH], c[(MAX_ROWS + 1) * WIDTH];

static float number(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(int64_t)(*state >> 11) / 0x1p52 - 1);
}

static void fill(float* x, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) x[i] = number(&seed);
}

typedef struct sizes {
  int64_t k, n_pieces;  // 0: no pieces
  int start;            // 0: none; 1: one row for all; 2: a row for each
} sizes_t;

static const int64_t pieces[MAX_PIECES] = {0, MAX_K + 3, 2 * MAX_K};

// One row and one vector by themselves.
static void alone(const sizes_t* s, int64_t row, int vector, float* to) {
  const int64_t rows = s->k * (s->n_pieces ? s->n_pieces : 1);
  const int64_t from = vector % 2 * LANES;
  const cpu_gemm_block_t b = {
      .m = 1,
      .k = s->k,
      .a = a + row * STEP,
      .a_step = STEP,
      .n_pieces = s->n_pieces,
      .pieces = s->n_pieces ? pieces : NULL,
      .panels = panels + vector / 2 * rows * CPU_PANEL + from,
      .vectors = 1,
      .start = s->start ? start + (s->start - 1) * row * WIDTH + vector * LANES : NULL,
      .c = to,
      .c_step = LANES};
  cpu_gemm_block(&b);
}

static double exact(const sizes_t* s, int64_t row, int64_t column) {
  const int64_t n = s->n_pieces ? s->n_pieces : 1, rows = s->k * n;
  double sum = s->start ? (double)start[(s->start - 1) * row * WIDTH + column] : 0;
  for (int64_t p = 0; p < n; p++)
    for (int64_t i = 0; i < s->k; i++)
      sum += (double)a[row * STEP + (s->n_pieces ? pieces[p] : 0) + i] *
             (double)panels[column / CPU_PANEL * rows * CPU_PANEL + (p * s->k + i) * CPU_PANEL +
                            column % CPU_PANEL];
  return sum;
}

static void check(const sizes_t* s, int64_t m, int vectors, int64_t width) {
  const cpu_gemm_block_t b = {.m = m,
                              .k = s->k,
                              .a = a,
                              .a_step = STEP,
                              .n_pieces = s->n_pieces,
                              .pieces = s->n_pieces ? pieces : NULL,
                              .panels = panels,
                              .vectors = vectors,
                              .start = s->start ? start : NULL,
                              .start_step = s->start > 1 ? WIDTH : 0,
                              .c = c,
                              .c_step = width};
  memset(c, 0xff, sizeof c);
  cpu_gemm_block(&b);
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < width; j++) {
      float one[LANES];
      alone(s, i, (int)(j / LANES), one);
      if (memcmp(&one[j % LANES], &c[i * width + j], sizeof *c) != 0)
        fail_msg("%d rows, %d vectors, width %d: element %d, %d is %.9g, by itself %.9g", (int)m,
                 vectors, (int)width, (int)i, (int)j, (double)c[i * width + j],
                 (double)one[j % LANES]);
      if (fabs((double)one[j % LANES] - exact(s, i, j)) > 1e-5)
        fail_msg("k %d: element %d, %d is %.9g, not %.9g", (int)s->k, (int)i, (int)j,
                 (double)one[j % LANES], exact(s, i, j));
    }
  for (int64_t j = m * width + LANES; j < (int64_t)(sizeof c / sizeof *c); j++)
    assert_true(isnan(c[j]));  // nothing more than a vector behind the last row
}

static void rows_and_vectors_do_not_matter(void** state) {
  (void)state;
  static const sizes_t sizes[] = {{1, 0, 0}, {7, 0, 1}, {40, 0, 2}, {17, 3, 0}, {33, 2, 1}};
  fill(a, sizeof a / sizeof *a, 1);
  fill(panels, sizeof panels / sizeof *panels, 2);
  fill(start, sizeof start / sizeof *start, 3);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int64_t m = 1; m <= MAX_ROWS; m++)
      for (int vectors = 1; vectors <= 4; vectors++) {
        check(&sizes[i], m, vectors, vectors * LANES);
        check(&sizes[i], m, vectors, vectors * LANES - 11);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_and_vectors_do_not_matter)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
