// The shorter way from sums to bytes (ops/int8_quick.h) gives the bytes of the definition wherever
// it says that it is sure: for numbers on ties and next to them, beyond the type, of any scale.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/int8_quick.h"
#include "ops/int8_wide.h"

enum { N = ASSAY_INT8_TILE, GUARD = 64 };

static uint64_t state = 1;

static uint32_t bits(void) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return (uint32_t)(state >> 32);
}

static float uniform(float low, float high) {
  return low + (high - low) * (float)(bits() >> 8) * 0x1p-24F;
}

typedef struct layer {
  assay_int8_t q;
  float factor[N], shift[N];
  int32_t sums[N];
  float quick_factor[N], quick_shift[N];
  int8_quick_t quick;
  uint8_t defined[N];
} layer_t;

typedef struct row {
  const char* what;
  float scale;
  float step;   // of the factor, in scales; 0: any
  float shift;  // in scales, at most
  int sums;     // at most
  bool sure;    // whether most pieces have to be
} row_t;

static const row_t rows[] = {
    {"usual numbers", 0.0173F, 0, 50, 100000, true},
    {"a large scale", 0x1p60F, 0, 50, 100000, true},
    {"a small scale", 0x1p-60F, 0, 50, 100000, true},
    {"large shifts", 0.3F, 0, 3000, 100000, true},
    {"halves", 0.25F, 0.5F - 0x1p-20F, 0, 600, false},
    {"quarters of steps", 0.0173F, 0.25F, 0, 1000, false},
    {"next to ties", 0.0173F, 0.125F + 0x1p-22F, 8, 2000, false},
    {"far beyond the type", 0.0173F, 0.4F, 10, INT32_MAX, false},
};

static void fill(layer_t* l, const row_t* r, int round) {
  for (int i = 0; i < N; i++) {
    l->factor[i] = (r->step > 0 ? r->step : uniform(1e-5F, 1e-2F)) * r->scale;
    if (bits() % 8 == 0) l->factor[i] = -l->factor[i];
    l->shift[i] = uniform(-r->shift, r->shift) * r->scale;
    l->sums[i] = (int32_t)((uniform(-1, 1) * (float)r->sums) * 0.999F);
  }
  l->q = (assay_int8_t){.n_factor = N,
                        .factor = l->factor,
                        .shift = l->shift,
                        .n_sources = 1,
                        .simple = true,
                        .other = -1,
                        .low = round % 3 == 1 ? 0 : -INFINITY,
                        .high = round % 3 == 2 ? 6 * r->scale : INFINITY,
                        .quantizes = true,
                        .type = round % 2 ? ASSAY_TYPE_INT8 : ASSAY_TYPE_UINT8,
                        .scale = r->scale,
                        .zero = (float)(int)(bits() % 256) - (round % 2 ? 128 : 0)};
  const assay_int8_tile_t t = {.integers = l->sums, .factor = l->factor, .shift = l->shift};
  assay_int8_epilogue(&l->q, &t, N, l->defined);
}

// How many of n bytes from element `at` on are sure; those have to be the definition's, and no
// others may be written.
static int64_t compare(const layer_t* l, int64_t at, int64_t n) {
  uint8_t out[N + GUARD];
  int8_quick_t q = l->quick;
  q.factor += at;
  q.shift += at;
  memset(out, 99, sizeof out);
  const int64_t sure = int8_quick_run(&q, l->sums + at, n, out);
  assert_true(sure == n || (sure < n && sure % 64 == 0));
  assert_memory_equal(out, l->defined + at, (size_t)sure);
  for (int64_t i = sure; i < n + GUARD; i++) assert_int_equal(out[i], 99);
  return sure;
}

static int64_t compare_pieces(const layer_t* l) {
  int64_t sure = 0;
  for (int64_t i = 0; i < N; i += 64) sure += compare(l, i, 64) / 64;
  for (int n = 1; n < 200; n += 13) compare(l, bits() % (N - 200), n);
  return sure;
}

// Rows of n sums in the room of 64, all by the channels of the first.
static void compare_rows(const layer_t* l, int64_t n) {
  enum { ROWS = N / 64, STEP = 80 };
  uint8_t out[ROWS * STEP], expected[64];
  memset(out, 99, sizeof out);
  const uint32_t unsure = int8_quick_rows(&l->quick, l->sums, 64, ROWS, n, out, STEP);
  for (int r = 0; r < ROWS; r++) {
    const assay_int8_tile_t t = {
        .integers = l->sums + r * 64, .factor = l->factor, .shift = l->shift};
    const bool sure = !(unsure >> r & 1);
    assay_int8_epilogue(&l->q, &t, n, expected);
    if (sure) assert_memory_equal(out + r * STEP, expected, (size_t)n);
    for (int64_t i = sure ? n : 0; i < STEP; i++) assert_int_equal(out[r * STEP + i], 99);
  }
}

static void same_bytes(void** unused) {
  enum { ROUNDS = 60 };
  static layer_t l;
  (void)unused;
  if (!int8_has_wide()) skip();
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    int64_t sure = 0;
    for (int i = 0; i < ROUNDS; i++) {
      fill(&l, &rows[r], i);
      if (!int8_quick_make(&l.q, N, l.quick_factor, l.quick_shift, &l.quick))
        fail_msg("%s: there is no shorter way", rows[r].what);
      sure += compare_pieces(&l);
      compare_rows(&l, 1 + bits() % 64);
      compare_rows(&l, 64);
    }
    if (rows[r].sure && sure < ROUNDS * N / 64 * 9 / 10)
      fail_msg("%s: %d pieces of %d are sure", rows[r].what, (int)sure, ROUNDS * N / 64);
  }
}

// Where sums could leave int32 on the way, or a number be too far off, there is no shorter way.
static void where_it_is_not(void** unused) {
  static layer_t l;
  (void)unused;
  if (!int8_has_wide()) skip();
  fill(&l, &rows[0], 0);
  assay_int8_t q = l.q;
  l.factor[5] = q.scale;
  assert_false(int8_quick_make(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  fill(&l, &rows[0], 0);
  l.shift[5] = 1e6F * q.scale;
  assert_false(int8_quick_make(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  fill(&l, &rows[0], 0);
  q.scale = 0x1p-110F;
  assert_false(int8_quick_make(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  q = l.q;
  q.other = 1;
  assert_false(int8_quick_make(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  q = l.q;
  q.quantizes = false;
  assert_false(int8_quick_make(&q, N, l.quick_factor, l.quick_shift, &l.quick));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bytes),
                                     cmocka_unit_test(where_it_is_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
