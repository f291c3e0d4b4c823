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

#include "backends/cpu/convert.h"
#include "backends/cpu/values.h"
#include "base/alloc.h"

static void ok(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

static assay_tensor_t* packed(int rank, const int64_t* dims, const float* x) {
  assay_tensor_t* t = NULL;
  ok(assay_tensor_create_packed(ASSAY_TYPE_FLOAT, rank, dims, &t));
  memcpy(t->data, x, (size_t)t->size * sizeof *x);
  return t;
}

// A kernel that computes in float32 what its layer takes in fp16 sees rounded elements; everybody
// else sees them as they were made.
static void rounded_forms_are_kept_apart(void** state) {
  (void)state;
  const float x[2] = {1.0003F, -3.14159F};
  cpu_value_t v = {0};
  assay_tensor_t *t = NULL, *wide = NULL;
  cpu_value_put(&v, packed(1, (int64_t[]){2}, x), CPU_PLAIN);
  const cpu_form_t floats = {ASSAY_TYPE_FLOAT, CPU_PLAIN};
  ok(cpu_value_in_form(&v, ASSAY_TYPE_FLOAT16, floats, &t));
  assert_true(((float*)t->data)[0] == 1.0F && ((float*)t->data)[1] == -3.140625F);
  ok(cpu_value_in_form(&v, ASSAY_TYPE_FLOAT, floats, &t));
  assert_memory_equal(t->data, x, sizeof x);
  ok(cpu_value_canonical(&v, ASSAY_TYPE_FLOAT, &wide));
  assert_true(assay_f64(wide)[0] == (double)x[0] && assay_f64(wide)[1] == (double)x[1]);
  cpu_value_clear(&v);
}

static void layouts_come_back(void** state) {
  (void)state;
  enum { N = 2, C = 19, H = 5, W = 7, SIZE = N * C * H * W };
  const int64_t dims[4] = {N, C, H, W};
  float x[SIZE];
  for (int i = 0; i < SIZE; i++) x[i] = (float)i;
  cpu_value_t v = {0}, w = {0};
  assay_tensor_t *last = NULL, *plain = NULL;
  cpu_value_put(&v, packed(4, dims, x), CPU_PLAIN);
  ok(cpu_value_in_form(&v, ASSAY_TYPE_FLOAT, (cpu_form_t){ASSAY_TYPE_FLOAT, CPU_CHANNELS_LAST},
                       &last));
  for (int n = 0; n < N; n++)
    for (int c = 0; c < C; c++)
      for (int p = 0; p < H * W; p++)
        assert_true(((float*)last->data)[(n * H * W + p) * C + c] == x[(n * C + c) * H * W + p]);
  cpu_value_put(&w, assay_tensor_retain(last), CPU_CHANNELS_LAST);
  ok(cpu_value_in_form(&w, ASSAY_TYPE_FLOAT, (cpu_form_t){ASSAY_TYPE_FLOAT, CPU_PLAIN}, &plain));
  assert_memory_equal(plain->data, x, sizeof x);
  cpu_value_clear(&v);
  cpu_value_clear(&w);
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
  cpu_value_t v = {0};
  cpu_value_put(&v, t, CPU_PLAIN);
  ok(cpu_value_in_form(&v, ASSAY_TYPE_FLOAT, (cpu_form_t){ASSAY_TYPE_FLOAT, CPU_PLAIN}, &got));
  assert_true((uintptr_t)got->data % sizeof(float) == 0);
  assert_memory_equal(got->data, x, sizeof x);
  cpu_value_clear(&v);
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
      cmocka_unit_test(rounded_forms_are_kept_apart), cmocka_unit_test(layouts_come_back),
      cmocka_unit_test(odd_addresses_are_read), cmocka_unit_test(conversions_round_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
