// The epilogue by AVX-512 (ops/quant/int8_wide.h) gives the bits of the plain operations that
// ops/quant/int8.h names, also where quotients lie on or next to the middle between two integers,
// beyond all integers, or are not numbers.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ops/quant/int8_wide.h"
#include "skip_case.h"

enum { N = 1000 };

static uint64_t state = 1;

static uint32_t bits(void) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return (uint32_t)(state >> 32);
}

static float uniform(float low, float high) {
  return low + (high - low) * (float)(bits() >> 8) * 0x1p-24F;
}

typedef struct data {
  int32_t sums[N];
  float factor[N], shift[N], floats[N];
  uint8_t bytes[N], others[N];
} data_t;

// About as often as not next to k + 1/2 steps.
static float near_step(float scale, int j) {
  const float at = (float)((int)(bits() % 600) - 300) + (j % 2 ? 0.5F : uniform(0, 1));
  const float x = at * scale;
  return j % 3 == 0 ? nextafterf(x, 1e30F) : j % 3 == 1 ? nextafterf(x, -1e30F) : x;
}

static void fill(data_t* d, float scale) {
  for (int i = 0; i < N; i++) {
    d->sums[i] = (int32_t)(bits() % 200001) - 100000;
    d->factor[i] = uniform(1e-5F, 1e-2F) * scale;
    d->shift[i] = uniform(-50, 50) * scale;
    d->floats[i] = near_step(scale, i);
    d->bytes[i] = (uint8_t)bits();
    d->others[i] = (uint8_t)bits();
  }
  d->floats[7] = NAN;
  d->floats[77] = INFINITY;
  d->floats[177] = -INFINITY;
  d->floats[277] = 3e38F;
  d->floats[377] = -3e38F;
}

static float operand(const int8_wide_operand_t* o, int i) {
  if (o->sums) {
    const volatile float p = (float)o->sums[i] * o->factor[i];
    return p + o->shift[i];
  }
  if (o->bytes) {
    const int x = o->is_signed ? (int8_t)o->bytes[i] : o->bytes[i];
    return (float)(((double)x - (double)o->zero) * (double)o->scale);
  }
  return o->floats ? o->floats[i] : o->number;
}

static float result(const int8_wide_t* w, int i) {
  float y = operand(&w->a, i);
  if (w->has_b) {
    const float z = operand(&w->b, i);
    y = w->operation == ASSAY_INT8_ADD        ? y + z
        : w->operation == ASSAY_INT8_SUB      ? y - z
        : w->operation == ASSAY_INT8_SUB_FROM ? z - y
                                              : y * z;
  }
  y = y < w->low ? w->low : y;
  return y > w->high ? w->high : y;
}

static int integer(const int8_wide_t* w, float y) {
  const bool u8 = w->type == ASSAY_TYPE_UINT8;
  const float v = y / w->scale;
  if (v != v) return 0;
  const float k = rintf(v < -1e6F ? -1e6F : v > 1e6F ? 1e6F : v) + w->zero;
  const float low = u8 ? 0 : -128, high = u8 ? 255 : 127;
  return (int)(k < low ? low : k > high ? high : k);
}

static void compare(const int8_wide_t* w, int n) {
  uint8_t bytes[N + 64];
  float floats[N + 64];
  void* out = w->type == ASSAY_TYPE_FLOAT ? (void*)floats : bytes;
  memset(bytes, 99, sizeof bytes);
  memset(floats, 99, sizeof floats);
  int8_wide_run(w, n, out);
  for (int i = 0; i < n; i++) {
    const float y = result(w, i);
    if (w->type == ASSAY_TYPE_FLOAT)
      assert_true(memcmp(&floats[i], &y, sizeof y) == 0 || (y != y && floats[i] != floats[i]));
    else
      assert_int_equal(bytes[i], (uint8_t)integer(w, y));
  }
  for (int i = n; i < n + 64; i++) {
    assert_int_equal(bytes[i], 99);
    assert_int_equal(((const uint8_t*)floats)[i * 4], 99);
  }
}

static int8_wide_operand_t operand_of(const data_t* d, int kind, bool second) {
  const uint8_t* bytes = second ? d->others : d->bytes;
  switch (kind) {
    case 0:
      return (int8_wide_operand_t){.sums = d->sums, .factor = d->factor, .shift = d->shift};
    case 1:
      return (int8_wide_operand_t){.bytes = bytes, .zero = 131, .scale = 0.0173F};
    case 2:
      return (int8_wide_operand_t){.bytes = bytes, .is_signed = true, .zero = -7, .scale = 0.25F};
    case 3:
      return (int8_wide_operand_t){.floats = d->floats};
    default:
      return (int8_wide_operand_t){.number = 1.5F};
  }
}

static void all_forms(void** unused) {
  static const float scales[] = {0.0123F, 0.25F, 3.0F, 0x1p-120F, 0x1p110F};
  static const assay_type_t types[] = {ASSAY_TYPE_INT8, ASSAY_TYPE_UINT8, ASSAY_TYPE_FLOAT};
  static data_t d;
  (void)unused;
  if (!int8_has_wide()) skip_because("no AVX-512 here");
  for (int s = 0; s < 5; s++)
    for (int a = 0; a < 4; a++)
      for (int b = 0; b < 5; b++)
        for (int t = 0; t < 3; t++)
          for (int operation = 0; operation < 4; operation++) {
            fill(&d, scales[s]);
            int8_wide_t w = {.a = operand_of(&d, a, false),
                             .has_b = b > 0,
                             .operation = (assay_int8_operation_t)operation,
                             .low = operation % 2 ? -INFINITY : 0,
                             .high = operation % 2 ? INFINITY : 6 * scales[s],
                             .type = types[t],
                             .scale = scales[s],
                             .zero = t ? 100 : -20};
            if (b) w.b = operand_of(&d, b, true);
            compare(&w, N);
            compare(&w, (int)(bits() % 130));
          }
}

static void tables(void** unused) {
  uint8_t table[256], x[N], y[N + 1];
  (void)unused;
  if (!int8_has_wide_table()) skip_because("no AVX-512 VBMI here");
  for (int i = 0; i < 256; i++) table[i] = (uint8_t)bits();
  for (int i = 0; i < N; i++) x[i] = (uint8_t)bits();
  for (int n = 0; n < N; n += 37) {
    memset(y, 99, sizeof y);
    int8_wide_table(table, x, n, y);
    for (int i = 0; i < n; i++) assert_int_equal(y[i], table[x[i]]);
    assert_int_equal(y[n], 99);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_forms), cmocka_unit_test(tables)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
