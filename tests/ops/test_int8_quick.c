// The shorter way from sums to bytes (ops/quant/int8_quick.h) gives the bytes of the definition
// wherever it says that it is sure: for numbers on ties and next to them, beyond the type, of any
// scale. Its arithmetic is tried on any CPU, the kernel itself where there is AVX-512: to the bit
// the same.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/quant/int8_quick.h"
#include "ops/quant/int8_wide.h"
#include "skip_case.h"

enum { N = ASSAY_INT8_TILE, GUARD = 64 };
enum { ROWS = N / 64, STEP = 80, OUT_BYTES = ROWS * STEP };  // of several rows

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

// ---- the kernel's arithmetic, one number after the other ----------------------------------------

// n <= 64 sums of channels from `at` on. False: not all are sure, and none is written.
static bool piece_by_numbers(const int8_quick_t* q, const int32_t* sums, int64_t at, int64_t n,
                             uint8_t* out) {
  uint8_t bytes[64];
  for (int64_t i = 0; i < n; i++) {
    const float v = fmaf((float)sums[i], q->factor[at + i], q->shift[at + i]), k = rintf(v);
    if (fabsf(v - k) > q->sure) return false;
    uint8_t b = (uint8_t)(k < 0 ? 0 : k > 255 ? 255 : k);
    b = b < q->min ? q->min : b;
    bytes[i] = (b > q->max ? q->max : b) ^ q->turn;
  }
  memcpy(out, bytes, (size_t)n);
  return true;
}

static int64_t run_by_numbers(const int8_quick_t* q, const int32_t* sums, int64_t n, void* out) {
  int64_t i = 0;
  for (; i < n; i += 64)
    if (!piece_by_numbers(q, sums + i, i, n - i < 64 ? n - i : 64, (uint8_t*)out + i)) return i;
  return n;
}

static uint32_t rows_by_numbers(const int8_quick_t* q, const int32_t* sums, int64_t n,
                                uint8_t* out) {
  uint32_t unsure = 0;
  for (int r = 0; r < ROWS; r++)
    unsure |= (uint32_t)!piece_by_numbers(q, sums + r * 64, 0, n, out + r * STEP) << r;
  return unsure;
}

// The kernel's own results, where it runs, have to be those.
static int64_t quick_run(const int8_quick_t* q, const int32_t* sums, int64_t n, uint8_t* out) {
  uint8_t by_kernel[N + GUARD];
  memcpy(by_kernel, out, sizeof by_kernel);
  const int64_t sure = run_by_numbers(q, sums, n, out);
  if (!int8_has_wide()) return sure;
  assert_int_equal(int8_quick_run(q, sums, n, by_kernel), sure);
  assert_memory_equal(by_kernel, out, sizeof by_kernel);
  return sure;
}

static uint32_t quick_rows(const int8_quick_t* q, const int32_t* sums, int64_t n,
                           uint8_t out[OUT_BYTES]) {
  uint8_t by_kernel[OUT_BYTES];
  memcpy(by_kernel, out, OUT_BYTES);
  const uint32_t unsure = rows_by_numbers(q, sums, n, out);
  if (!int8_has_wide()) return unsure;
  assert_int_equal(int8_quick_rows(q, sums, 64, ROWS, n, by_kernel, STEP), unsure);
  assert_memory_equal(by_kernel, out, OUT_BYTES);
  return unsure;
}

// ---- against the definition ---------------------------------------------------------------------

// How many of n bytes from element `at` on are sure; those have to be the definition's, and no
// others may be written.
static int64_t compare(const layer_t* l, int64_t at, int64_t n) {
  uint8_t out[N + GUARD];
  int8_quick_t q = l->quick;
  q.factor += at;
  q.shift += at;
  memset(out, 99, sizeof out);
  const int64_t sure = quick_run(&q, l->sums + at, n, out);
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
  uint8_t out[OUT_BYTES], expected[64];
  memset(out, 99, sizeof out);
  const uint32_t unsure = quick_rows(&l->quick, l->sums, n, out);
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
  if (!int8_has_wide())
    skipped_part("the kernel of int8_quick.h", "no AVX-512 here (its arithmetic ran)");
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    int64_t sure = 0;
    for (int i = 0; i < ROUNDS; i++) {
      fill(&l, &rows[r], i);
      if (!int8_quick_numbers(&l.q, N, l.quick_factor, l.quick_shift, &l.quick))
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
  fill(&l, &rows[0], 0);
  assay_int8_t q = l.q;
  l.factor[5] = q.scale;
  assert_false(int8_quick_numbers(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  fill(&l, &rows[0], 0);
  l.shift[5] = 1e6F * q.scale;
  assert_false(int8_quick_numbers(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  fill(&l, &rows[0], 0);
  q.scale = 0x1p-110F;
  assert_false(int8_quick_numbers(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  q = l.q;
  q.other = 1;
  assert_false(int8_quick_numbers(&q, N, l.quick_factor, l.quick_shift, &l.quick));
  q = l.q;
  q.quantizes = false;
  assert_false(int8_quick_numbers(&q, N, l.quick_factor, l.quick_shift, &l.quick));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(same_bytes),
                                     cmocka_unit_test(where_it_is_not)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
