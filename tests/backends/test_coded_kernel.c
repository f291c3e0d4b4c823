// Products with panels of codes, in the versions for any CPU and for AVX-512, against what the
// header promises, element by element: every way in which codes, zeros and blocks may lie.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/cpu/gemm/coded_kernel.h"
#include "backends/cpu/gemm/gemm.h"
#include "skip_case.h"

enum { MAX_K = 200, ROWS = 7, PANEL_BYTES = 1 << 17 };

static const cpu_coded_t cases[] = {
    {.k = 1, .block = 1, .bits = 4, .zeros = CPU_CODED_ONE_ZERO, .zero = 8},
    {.k = 83, .block = 83, .bits = 4, .zeros = CPU_CODED_ONE_ZERO, .zero = -3},
    {.k = 83, .block = 83, .bits = 4, .zeros = CPU_CODED_ONE_ZERO, .zero = 7.3F},
    {.k = 100, .block = 32, .bits = 4, .zeros = CPU_CODED_BYTE_ZEROS},
    {.k = 70, .block = 20, .bits = 4, .zeros = CPU_CODED_BYTE_ZEROS},
    {.k = 70, .block = 24, .bits = 4, .zeros = CPU_CODED_FLOAT_ZEROS},
    {.k = 200, .block = 64, .bits = 4, .zeros = CPU_CODED_ONE_ZERO, .zero = 0},
    {.k = 83, .block = 83, .bits = 8, .zeros = CPU_CODED_ONE_ZERO, .zero = 0},
    {.k = 83, .block = 16, .bits = 8, .zeros = CPU_CODED_ONE_ZERO, .zero = -128},
    {.k = 70, .block = 20, .bits = 8, .zeros = CPU_CODED_BYTE_ZEROS},
    {.k = 200, .block = 128, .bits = 8, .zeros = CPU_CODED_FLOAT_ZEROS},
};

static uint64_t state;
static unsigned next_number(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(state >> 40);
}
static float next_float(void) { return (float)next_number() / (float)(1 << 23) - 1; }

// A panel in memory, and its weights, by the header's words.
typedef struct panel {
  _Alignas(64) uint8_t bytes[PANEL_BYTES];
  float w[MAX_K][CPU_CODED_PANEL];
} panel_t;

static void fill(const cpu_coded_t* c, panel_t* p) {
  uint8_t* at = p->bytes;
  memset(p, 0, sizeof *p);
  for (int64_t first = 0; first < c->k; first += c->block) {
    const int64_t n = c->k - first < c->block ? c->k - first : c->block;
    uint8_t* codes = at + cpu_coded_head_bytes(c);
    for (int64_t j = 0; j < CPU_CODED_PANEL; j++) {
      float scale = next_float(), zero = c->zero;
      memcpy(at + j * 4, &scale, sizeof scale);
      if (c->zeros == CPU_CODED_BYTE_ZEROS) {
        const int8_t byte = (int8_t)(c->bits == 4 ? next_number() % 16 : next_number());
        at[CPU_CODED_PANEL * 4 + j] = (uint8_t)byte;
        zero = byte;
      } else if (c->zeros == CPU_CODED_FLOAT_ZEROS) {
        zero = 8 * next_float();
        memcpy(at + (CPU_CODED_PANEL + j) * 4, &zero, sizeof zero);
      }
      for (int64_t l = 0; l < n; l++) {
        const unsigned code = next_number() % (c->bits == 4 ? 16 : 256);
        if (c->bits == 8) {
          codes[l * CPU_CODED_PANEL + j] = (uint8_t)code;
        } else {
          uint8_t* word = codes + (l / 8 * CPU_CODED_PANEL + j) * 4;
          word[l % 8 / 2] = (uint8_t)(word[l % 8 / 2] | code << l % 2 * 4);
        }
        const float real = c->bits == 8 ? (float)(int8_t)code : (float)code;
        const float less = real - zero;
        p->w[first + l][j] = less * scale;
      }
    }
    at = codes + cpu_coded_code_bytes(c, n);
  }
  assert_int_equal(at - p->bytes, cpu_coded_panel_bytes(c));
}

typedef void rows_t(const cpu_coded_rows_t* r);
typedef void widen_t(const cpu_coded_t* w, const uint8_t* panel, int64_t from, int64_t end,
                     float* to);

static void check_rows(const cpu_coded_t* c, const panel_t* p, rows_t* rows, bool exact) {
  static float a[ROWS * MAX_K], bias[CPU_CODED_PANEL], y[ROWS][CPU_CODED_PANEL];
  for (int64_t i = 0; i < ROWS * MAX_K; i++) a[i] = next_float();
  for (int64_t j = 0; j < CPU_CODED_PANEL; j++) bias[j] = next_float();
  for (int64_t m = 1; m <= ROWS; m++) {
    const cpu_coded_rows_t r = {c,    p->bytes,       m, a, MAX_K, m % 2 ? bias : NULL,
                                y[0], CPU_CODED_PANEL};
    memset(y, 0xff, sizeof y);
    rows(&r);
    for (int64_t i = 0; i < ROWS; i++)
      for (int64_t j = 0; j < CPU_CODED_PANEL; j++) {
        float sum = r.bias ? bias[j] : 0;
        for (int64_t l = 0; l < c->k; l++) sum = fmaf(a[i * MAX_K + l], p->w[l][j], sum);
        const bool right = i >= m  ? isnan(y[i][j])
                           : exact ? y[i][j] == sum
                                   : fabsf(y[i][j] - sum) <= 1e-4F * (1 + fabsf(sum));
        if (!right)
          fail_msg("k %d, block %d, bits %d, zeros %d, row %d of %d, column %d: %g, not %g",
                   (int)c->k, (int)c->block, c->bits, (int)c->zeros, (int)i, (int)m, (int)j,
                   (double)y[i][j], (double)sum);
      }
  }
}

static void check_widen(const cpu_coded_t* c, const panel_t* p, widen_t* widen) {
  static float to[MAX_K * CPU_CODED_PANEL];
  for (int64_t from = 0; from < c->k; from += c->block < 32 ? c->block : 32)
    for (int64_t end = from + (c->block < 32 ? c->block : 32); from < c->k; end += c->block) {
      if (end > c->k) end = c->k;
      widen(c, p->bytes, from, end, to);
      for (int64_t l = from; l < end; l++)
        for (int64_t j = 0; j < CPU_CODED_PANEL; j++) {
          const float* panel = to + j / CPU_PANEL * CPU_PANEL * (end - from);
          assert_true(panel[(l - from) * CPU_PANEL + j % CPU_PANEL] == p->w[l][j]);
        }
      if (end == c->k || from % c->block) break;
    }
}

static void codes_are_what_they_mean(void** unused) {
  (void)unused;
  static panel_t p;
  const bool wide = cpu_coded_has_avx512();
  if (!wide) skipped_part("the kernel of coded_avx512.c", "no AVX-512 here");
  state = 11;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    fill(&cases[i], &p);
    check_rows(&cases[i], &p, cpu_coded_rows_plain, false);
    check_widen(&cases[i], &p, cpu_coded_widen_plain);
    if (!wide) continue;
    check_rows(&cases[i], &p, cpu_coded_rows_avx512, true);
    check_widen(&cases[i], &p, cpu_coded_widen_avx512);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(codes_are_what_they_mean)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
