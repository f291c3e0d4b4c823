// Values of the CPU backend in several forms.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cpu/data/move.h"
#include "backends/cpu/pointwise/convert.h"
#include "base/alloc.h"
#include "exec/segment/value_slot.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// A kernel that computes in float32 what its layer takes in fp16 sees rounded elements.
static void elements_are_rounded_on_the_way(void** state) {
  (void)state;
  const float x[2] = {1.0003F, -3.14159F};
  float y[2];
  const assay_storage_t floats = {ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN};
  assay_reformat_t m = {1, {2}, 2, floats, floats, ASSAY_TYPE_FLOAT16};
  assert_true(cpu_move_is_possible(&m));
  cpu_move_run(&m, x, y, NULL);
  assert_true(y[0] == 1.0F && y[1] == -3.140625F);
  m.through = ASSAY_TYPE_FLOAT;
  cpu_move_run(&m, x, y, NULL);
  assert_memory_equal(y, x, sizeof x);
  m.to.type = ASSAY_TYPE_INT64;
  assert_false(cpu_move_is_possible(&m));
}

static void layouts_come_back(void** state) {
  (void)state;
  enum { N = 2, C = 19, H = 5, W = 7, SIZE = N * C * H * W };
  const assay_storage_t plain = {ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN},
                        last = {ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_CHANNELS_LAST};
  const assay_reformat_t there = {4, {N, C, H, W}, SIZE, plain, last, ASSAY_TYPE_FLOAT};
  const assay_reformat_t back = {4, {N, C, H, W}, SIZE, last, plain, ASSAY_TYPE_FLOAT};
  float x[SIZE], y[SIZE], z[SIZE];
  for (int i = 0; i < SIZE; i++) x[i] = (float)i;
  cpu_move_run(&there, x, y, NULL);
  for (int n = 0; n < N; n++)
    for (int c = 0; c < C; c++)
      for (int p = 0; p < H * W; p++)
        assert_true(y[(n * H * W + p) * C + c] == x[(n * C + c) * H * W + p]);
  cpu_move_run(&back, y, z, NULL);
  assert_memory_equal(z, x, sizeof x);
}

// Another type and another layout in one move, through scratch memory.
static void both_at_once(void** state) {
  (void)state;
  enum { C = 3, W = 4 };
  assay_reformat_t m = {3,
                        {1, C, W},
                        C * W,
                        {ASSAY_TYPE_FLOAT, ASSAY_LAYOUT_PLAIN},
                        {ASSAY_TYPE_BFLOAT16, ASSAY_LAYOUT_CHANNELS_LAST},
                        ASSAY_TYPE_BFLOAT16};
  float x[C * W];
  uint16_t y[C * W], scratch[C * W];
  for (int i = 0; i < C * W; i++) x[i] = (float)(i + 1) + 0.001F;
  assert_int_equal(cpu_move_scratch(&m), sizeof scratch);
  cpu_move_run(&m, x, y, scratch);
  for (int c = 0; c < C; c++)
    for (int w = 0; w < W; w++) assert_true(cpu_from_bf16(y[w * C + c]) == (float)(c * W + w + 1));
}

// What lies in a model's file lies at any address.
static void odd_addresses_are_read(void** state) {
  (void)state;
  const float x[3] = {1, 2, 3};
  char bytes[sizeof x + 1];
  memcpy(bytes + 1, x, sizeof x);
  assay_tensor_t *t = NULL, *got = NULL;
  ok(assay_tensor_wrap_packed(ASSAY_TYPE_FLOAT, 1, (int64_t[]){3}, bytes + 1, sizeof x, NULL, NULL,
                              &t));
  assay_value_slot_t v = {0};
  assay_value_slot_put(&v, t);
  ok(assay_value_slot_packed(&v, ASSAY_TYPE_FLOAT, &got));
  assert_true((uintptr_t)got->data % sizeof(float) == 0);
  assert_memory_equal(got->data, x, sizeof x);
  assay_value_slot_clear(&v);
}

// Every fp16 number, and float32 numbers at and around every midpoint, against src/formats.
static void conversions_round_once(void** state) {
  (void)state;
  for (uint32_t h = 0; h < 0x10000; h++) {
    const uint16_t half = (uint16_t)h;
    float x;
    cpu_widen(&half, ASSAY_TYPE_FLOAT16, 0, 1, &x);
    if ((h & 0x7c00) == 0x7c00) {
      assert_true(h & 0x3ff ? isnan(x) : isinf(x));
      continue;
    }
    const float up = nextafterf(x, INFINITY);
    const float mid = x + (h & 0x7c00 ? ldexpf(1, (int)(h >> 10 & 31) - 26) : 0x1p-25F);
    const float tries[] = {x, up, mid, nextafterf(mid, INFINITY), nextafterf(mid, -INFINITY)};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
      for (int type = 0; type < 2; type++) {
        const assay_type_t t = type ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_FLOAT16;
        uint16_t narrow;
        float back;
        cpu_narrow(&tries[i], 1, t, 0, &narrow);
        cpu_widen(&narrow, t, 0, 1, &back);
        const double want =
            assay_format_round(assay_type_format(t), (double)tries[i], ASSAY_OVERFLOW_IEEE);
        if ((double)back != want || !signbit(back) != !signbit(want))
          fail_msg("%a became %a, not %a", (double)tries[i], (double)back, want);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_are_rounded_on_the_way), cmocka_unit_test(layouts_come_back),
      cmocka_unit_test(both_at_once), cmocka_unit_test(odd_addresses_are_read),
      cmocka_unit_test(conversions_round_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
