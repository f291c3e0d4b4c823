// Powers of 2 by a multiprocessor's own instruction (EXP2_STEPS): those that emu/like/exp2.h says,
// of all multiples of 2^-13 that kernels ask for. On the platform without a GPU (fake/) this
// compares two readings of one table; on a real one of compute capability 9.0 (ASSAY_TEST_GPU), the
// table with it.
#include <math.h>

#include "backends/emu/like/exp2.h"
#include "platform_case.h"

typedef struct ex2_args {
  uint64_t powers;
  int32_t first;
} ex2_args_t;

// From 2^16 down to 2^-160, of which those below 2^-126 are 0.
enum { FIRST = 16 * EMU_EXP2_STEPS, N = 176 * EMU_EXP2_STEPS, THREADS = 256, CAPABILITY = 90 };

static void powers_are_the_table(void** state) {
  (void)state;
  platform_t p;
  platform_init(&p);
  if (cuda_device_properties(p.device).capability != CAPABILITY) {
    print_message("skipped: compute capability %d\n", cuda_device_properties(p.device).capability);
    platform_deinit(&p);
    return;
  }
  char* text = kernel_text("ex2.cu");
  float* got = calloc(N, sizeof *got);
  assert_non_null(got);
  cuda_module_t m = load_text(&p, text, "");
  cuda_kernel_t k = get_kernel(&p, m, "ex2", 0);
  const ex2_args_t args = {upload(&p, got, N * sizeof *got), FIRST};
  const cuda_grid_t grid = {.blocks = N / THREADS, .threads = THREADS};
  int wrong = 0;
  ok(cuda_queue_launch(p.queue, k, &grid, &args));
  ok(driver->download(p.queue, args.powers, got, N * sizeof *got));
  for (int i = 0; i < N; i++) {
    const float x = (float)(FIRST - i) / EMU_EXP2_STEPS, want = emu_exp2(x);
    if (memcmp(&want, &got[i], sizeof want) != 0 && wrong++ < 10)
      print_message("2^%a: %a, not %a\n", (double)x, (double)got[i], (double)want);
  }
  print_message("%d of %d differ\n", wrong, N);
  driver->free(p.queue, args.powers);
  ok(driver->queue_wait(p.queue, NULL));
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
  free(got);
  free(text);
  assert_int_equal(wrong, 0);
}

int main(void) {
  find_platform();
  const struct CMUnitTest tests[] = {cmocka_unit_test(powers_are_the_table)};
  return cmocka_run_group_tests_name("cuda_ex2", tests, NULL, NULL);
}
