// Times of kernels, on the CUDA platform without a GPU (fake/), whose clock the test sets: a launch
// takes the host longer than a short kernel takes the GPU, and does not count as the kernel's time.
#include "exec/device/bench.h"
#include "platform_case.h"

static const char text[] =
    "#include \"prelude.h\"\n"
    "typedef struct args { address_t x; } args_t;\n"
    "KERNEL(writes, args_t, 32) {\n"
    "  WAIT_FOR_INPUTS();\n"
    "  GLOBAL(float, a.x)[THREAD] = 1;\n"
    "}\n";

typedef struct writes {
  assay_kernel_t base;
  cuda_kernel_t code;
  bool allocates;  // in each run, as is possible in no capture
} writes_t;

static assay_status_t enqueue(assay_kernel_t* base, assay_queue_t* q, const assay_device_ptr_t* in,
                              const assay_device_ptr_t* out, assay_device_ptr_t scratch) {
  const writes_t* k = (const writes_t*)base;
  const cuda_grid_t grid = {.blocks = 1, .threads = 32, .dependent = true};
  assay_device_ptr_t own = 0;
  (void)in, (void)out;
  if (k->allocates) ASSAY_TRY(driver->alloc(q, 8, &own));
  assay_status_t st = cuda_queue_launch(q, k->code, &grid, &scratch);
  driver->free(q, own);
  return st;
}

static const assay_device_kind_t kind = {.driver = &assay_device_driver_cuda};
static const assay_layer_t layer = {.name = "a layer"};
static const assay_sized_layer_t sized = {.layer = &layer};

enum { US = 1000 };

typedef struct time_row {
  fake_times_t times;
  int runs;
  bool allocates;
  double microseconds;
  int launches;  // of the kernel
} time_row_t;

static const time_row_t rows[] = {
    // Short ones: 2 alone, and 20 at once, 3 times behind as many, whatever the launch takes.
    {{8 * US, 0, 5 * US, 0}, 0, false, 5, 122},
    {{20 * US, 0, 5 * US, 0}, 0, false, 5, 80},
    {{US, 0, 15 * US, 0}, 0, false, 15, 122},
    // Longer ones fewer at once; long ones alone, where the launch is a small part of the time.
    {{8 * US, 0, 60 * US, 0}, 0, false, 60, 26},
    {{8 * US, 0, 200 * US, 0}, 0, false, 208, 11},
    {{8 * US, 0, 20000 * US, 0}, 0, false, 20008, 4},
    // The mean of so many runs at least.
    {{8 * US, 0, 5 * US, 0}, 30, false, 5, 62},
    {{8 * US, 0, 200 * US, 0}, 7, false, 208, 8},
    // What cannot be captured is timed with its launches.
    {{8 * US, 0, 5 * US, 0}, 0, true, 13, 21},
    {{8 * US, 0, 5 * US, 0}, 4, true, 13, 5},
};

static void launches_are_not_counted(void** state) {
  (void)state;
  platform_t p;
  platform_init(&p);
  cuda_module_t m = load_text(&p, text, "");
  const assay_device_shared_t shared = {.kind = &kind, .device = p.device};
  writes_t k = {.base = {.scratch = 128, .enqueue = enqueue}};
  k.code = get_kernel(&p, m, "writes", 0);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const time_row_t* r = &rows[i];
    const int before = fake->launches;
    double us = 0;
    fake->times = r->times;
    k.allocates = r->allocates;
    ok(assay_bench_time((void*)(uintptr_t)&shared, &sized, &k.base, r->runs, &us));
    if (us != r->microseconds || fake->launches - before != r->launches)
      fail_msg("row %zu: %g us by %d launches", i, us, fake->launches - before);
  }
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
}

// Whatever call fails, and wherever the host has no memory: a time, or an error, and nothing left.
static void failures_leave_nothing(void** state) {
  (void)state;
  platform_t p;
  platform_init(&p);
  cuda_module_t m = load_text(&p, text, "");
  const assay_device_shared_t shared = {.kind = &kind, .device = p.device};
  writes_t k = {.base = {.scratch = 128, .enqueue = enqueue}};
  k.code = get_kernel(&p, m, "writes", 0);
  fake->times = (fake_times_t){8 * US, 0, 40 * US, 0};
  int told = 0;
  for (int n = 1; fake->fail_after == 0; n++) {
    const int live = fake->live;
    double us = 0;
    fake->fail_after = n;
    fake->result = 999;
    assay_status_t st = assay_bench_time((void*)(uintptr_t)&shared, &sized, &k.base, 0, &us);
    // 48: a call of the capture failed, and the kernel is timed alone.
    if (!st) assert_true(us == 40 || us == 48);
    if (st) assert_non_null(strstr(assay_status_message(st), "timing a kernel of layer 'a layer'"));
    told += st != NULL;
    assay_status_free(st);
    if (fake->live != live) fail_msg("call %d, %s: left", n, fake->failed);
  }
  assert_true(told > 20);
  fake->fail_after = 0;
  for (uint64_t n = 1;; n++) {
    const int64_t before = assay_alloc_live();
    double us = 0;
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_bench_time((void*)(uintptr_t)&shared, &sized, &k.base, 0, &us);
    const bool done = assay_alloc_fail_after(0, false) < n;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), before);
    if (done) break;
  }
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
}

int main(void) {
  find_platform();
  const struct CMUnitTest tests[] = {cmocka_unit_test(launches_are_not_counted),
                                     cmocka_unit_test(failures_leave_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
