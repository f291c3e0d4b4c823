// The CUDA platform without a GPU (fake/): streams behind the caller's back, memory, kernels.
#include "platform_case.h"

static const char adds[] =
    "#include \"prelude.h\"\n"
    "typedef struct args { address_t x, y; int n; } args_t;\n"
    "KERNEL(adds, args_t, 256) {\n"
    "  const float* x = GLOBAL(const float, a.x);\n"
    "  float* y = GLOBAL(float, a.y);\n"
    "  SHARED float tile[256];\n"
    "  const int64_t i = BLOCK * THREADS + THREAD;\n"
    "  tile[THREAD] = i < a.n ? x[i] : 0;\n"
    "  SYNC();\n"
    "  if (i < a.n) y[i] = tile[THREADS - 1 - THREAD] + 1;\n"
    "}\n";

typedef struct adds_args {
  uint64_t x, y;
  int n;
} adds_args_t;

static void kernels_run(void** state) {
  (void)state;
  enum { N = 1024 };
  platform_t p;
  float x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = (float)i;
  platform_init(&p);
  cuda_module_t m = load_text(&p, adds, "");
  const adds_args_t args = {upload(&p, x, sizeof x), upload(&p, NULL, sizeof y), N};
  const cuda_grid_t grid = {.blocks = N / 256, .threads = 256};
  ok(cuda_queue_launch(p.queue, get_kernel(&p, m, "adds", 0), &grid, &args));
  ok(driver->download(p.queue, args.y, y, sizeof y));
  for (int i = 0; i < N; i++) assert_int_equal((int)y[i], i / 256 * 256 + 255 - i % 256 + 1);
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
}

// Pinned memory is read when the stream comes to it, pageable memory before the call returns.
static void copies_are_late(void** state) {
  (void)state;
  platform_t p;
  float *pinned = NULL, pageable = 1, out[2];
  platform_init(&p);
  ok(driver->host_alloc(p.device, sizeof *pinned, (void**)&pinned));
  *pinned = 1;
  const assay_device_ptr_t at = upload(&p, NULL, sizeof out);
  fake->paused = true;
  ok(driver->upload(p.queue, pinned, at, 4));
  ok(driver->upload(p.queue, &pageable, at + 4, 4));
  *pinned = pageable = 2;
  fake->paused = false;
  ok(driver->download(p.queue, at, out, sizeof out));
  assert_int_equal((int)out[0], 2);
  assert_int_equal((int)out[1], 1);
  driver->host_free(p.device, pinned);
  platform_deinit(&p);
}

// Memory that nobody wrote is NaN; the one that was freed fails the launch.
static void memory_is_poisoned_and_checked(void** state) {
  (void)state;
  platform_t p;
  float out[256];
  platform_init(&p);
  fake->quiet = true;
  cuda_module_t m = load_text(&p, adds, "");
  cuda_kernel_t k = get_kernel(&p, m, "adds", 0);
  adds_args_t args = {upload(&p, NULL, sizeof out), upload(&p, NULL, sizeof out), 256};
  const cuda_grid_t grid = {.blocks = 1, .threads = 256};
  ok(cuda_queue_launch(p.queue, k, &grid, &args));
  ok(driver->download(p.queue, args.y, out, sizeof out));
  for (int i = 0; i < 256; i++) assert_true(out[i] != out[i]);
  driver->free(p.queue, args.x);
  ok(driver->queue_wait(p.queue, NULL));
  ok(cuda_queue_launch(p.queue, k, &grid, &args));
  fails(driver->queue_wait(p.queue, NULL), ASSAY_DEVICE, "kernel adds, block 0 of 1");
  platform_deinit(&p);
}

// What the driver refuses: more threads than the kernel allows, code of another GPU.
static void launches_are_checked(void** state) {
  (void)state;
  platform_t p;
  platform_init(&p);
  cuda_module_t m = load_text(&p, adds, "");
  cuda_kernel_t k = get_kernel(&p, m, "adds", 0);
  const adds_args_t args = {0, 0, 0};
  fails(cuda_queue_launch(p.queue, k, &(cuda_grid_t){.blocks = 1, .threads = 512}, &args),
        ASSAY_DEVICE, "cuLaunchKernelEx gave");
  fails(cuda_queue_launch(
            p.queue, k, &(cuda_grid_t){.blocks = 1, .threads = 32, .shared_bytes = 1 << 16}, &args),
        ASSAY_DEVICE, "cuLaunchKernelEx gave");
  cuda_module_unload(p.device, m);
  char* log = NULL;
  char* code = compile_text(adds, "", &log);
  assert_non_null(code);
  fake->capability = 80;
  fails(cuda_module_load(p.device, code, 0, &m), ASSAY_DEVICE, "cuModuleLoadData gave");
  assay_free(code);
  assay_free(log);
  platform_deinit(&p);
}

// Two layers have the same kernel, and one of them asks for less shared memory than the other.
static void who_asks_for_less_takes_none_away(void** state) {
  enum { MORE = 64 << 10, LESS = 8 << 10 };
  (void)state;
  platform_t p;
  platform_init(&p);
  float x[256] = {0};
  const adds_args_t args = {upload(&p, x, sizeof x), upload(&p, NULL, sizeof x), 256};
  cuda_module_t m = load_text(&p, adds, "");
  cuda_kernel_t more = get_kernel(&p, m, "adds", MORE), less = get_kernel(&p, m, "adds", LESS);
  assert_ptr_equal(more, less);
  ok(cuda_queue_launch(p.queue, more,
                       &(cuda_grid_t){.blocks = 1, .threads = 256, .shared_bytes = MORE}, &args));
  ok(driver->queue_wait(p.queue, NULL));
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
}

static void what_the_compiler_says_is_told(void** state) {
  (void)state;
  platform_t p;
  char* log = NULL;
  platform_init(&p);
  assert_null(compile_text("#include \"prelude.h\"\nKERNEL(f, int, 32) { return a; }\n", "", &log));
  assert_non_null(strstr(log, "test.cu:2"));
  assay_free(log);
  platform_deinit(&p);
}

static const char conversions[] =
    "#include \"prelude.h\"\n"
    "typedef struct args { address_t x, y; } args_t;\n"
    "KERNEL(conversions, args_t, 32) {\n"
    "  const float* x = GLOBAL(const float, a.x);\n"
    "  uint32_t* y = GLOBAL(uint32_t, a.y);\n"
    "  if (THREAD < 16) y[THREAD] = f32_to_f16(x[THREAD]) | (uint32_t)f32_to_bf16(x[THREAD]) << "
    "16;\n"
    "  int bad = 0;\n"
    "  for (uint32_t h = (uint32_t)THREAD; h < 0x7c00; h += 32)\n"
    "    bad += f32_to_f16(f16_to_f32((f16_t)h)) != h;\n"
    "  const uint32_t lanes = ballot(bad);\n"
    "  if (THREAD == 0) y[16] = lanes;\n"
    "}\n";

// To nearest, ties to even; IEEE 754's binary16, and bfloat16.
static void conversions_round(void** state) {
  (void)state;
  static const struct {
    float x;
    uint32_t f16, bf16;
  } rows[16] = {{0, 0, 0},
                {-0.0F, 0x8000, 0x8000},
                {1, 0x3c00, 0x3f80},
                {1 + 0x1p-11F, 0x3c00, 0x3f80},      // half way: to even
                {1 + 0x1.8p-10F, 0x3c02, 0x3f80},    // the other way
                {1 + 0x1.002p-11F, 0x3c01, 0x3f80},  // a little more than half way
                {1 + 0x1p-8F, 0x3c04, 0x3f80},
                {1 + 0x1.8p-7F, 0x3c0c, 0x3f82},
                {65504, 0x7bff, 0x4780},
                {65519, 0x7bff, 0x4780},
                {65520, 0x7c00, 0x4780},
                {0x1p-24F, 1, 0x3380},
                {0x1p-25F, 0, 0x3300},
                {0x1.8p-24F, 2, 0x33c0},
                {0x1.ffcp-15F, 0x3ff + 1, 0x3880},
                {-1e30F, 0xfc00, 0xf14a}};
  platform_t p;
  float x[16];
  uint32_t y[17];
  for (int i = 0; i < 16; i++) x[i] = rows[i].x;
  platform_init(&p);
  cuda_module_t m = load_text(&p, conversions, "");
  const adds_args_t args = {upload(&p, x, sizeof x), upload(&p, NULL, sizeof y), 0};
  ok(cuda_queue_launch(p.queue, get_kernel(&p, m, "conversions", 0),
                       &(cuda_grid_t){.blocks = 1, .threads = 32}, &args));
  ok(driver->download(p.queue, args.y, y, sizeof y));
  for (int i = 0; i < 16; i++)
    if (y[i] != (rows[i].f16 | rows[i].bf16 << 16))
      fail_msg("%a: %08x", (double)x[i], (unsigned)y[i]);
  assert_int_equal(y[16], 0);
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
}

// The backend's own kernels compile for the host, too.
static void kernels_compile(void** state) {
  (void)state;
  static const struct {
    const char *file, *options;
  } rows[] = {
      {"move.cu", "-DBITS=16"},
      {"move.cu", "-DFROM=f16 -DTO=bf16 -DTHROUGH=f32"},
      {"direct_conv.cu", "-DIN=f32 -DOUT=f32 -DCONV=1 -DOPERAND=f32"},
      {"product_fma.cu",
       "-DOUT=f32 -DCONV=0 -DBM=64 -DBN=64 -DTM=4 -DTN=4 -DGROUPS=1 -DJOINS=1 -DX_FAST=1 "
       "-DW_FAST=2 -DSTAGES=3 "
       "-DW_CONSTANT=0"},
      {"product_mma.cu",
       "-DIN=f16 -DOUT=f16 -DCONV=0 -DIN_IS_F32=0 -DBM=64 -DBN=64 -DWM=2 -DWN=2 -DX_FAST=1 "
       "-DW_FAST=1 -DSTAGES=6 -DW_CONSTANT=1"},
      {"product_mma.cu",
       "-DIN=f32 -DOUT=f32 -DCONV=1 -DIN_IS_F32=1 -DBM=64 -DBN=64 -DWM=2 -DWN=2 -DX_FAST=1 "
       "-DW_FAST=2 -DSTAGES=3 -DW_CONSTANT=0"},
      {"product_wgmma.cu",
       "-DIN=bf16 -DOUT=f16 -DCONV=1 -DBM=128 -DBN=256 -DX_FAST=0 -DW_FAST=1 -DSTAGES=4 "
       "-DW_CONSTANT=1"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char* log = NULL;
    const cuda_kernel_file_t* f = cuda_kernel_file_find(rows[i].file);
    assert_non_null(f);
    char* code = compile_text(f->text, rows[i].options, &log);
    if (!code) fail_msg("%s %s\n%s", rows[i].file, rows[i].options, log);
    assay_free(code);
    assay_free(log);
  }
}

// Blocks of a cluster arrive at each other's barriers.
static const char pairs[] =
    "#include \"prelude.h\"\n"
    "typedef struct args { address_t y; } args_t;\n"
    "KERNEL(pairs, args_t, 64) {\n"
    "  uint32_t* y = GLOBAL(uint32_t, a.y);\n"
    "  DYNAMIC(uint32_t, bytes);\n"
    "  const uint32_t barrier = shared_address(bytes);\n"
    "  if (THREAD == 0) {\n"
    "    barrier_make(barrier, 2);\n"
    "    BARRIERS_MADE();\n"
    "  }\n"
    "  BEGIN\n"
    "  if (THREAD < 2) barrier_arrive_in(barrier, (uint32_t)THREAD);\n"
    "  END\n"
    "  if (THREAD == 0) y[BLOCK] = 10 + CLUSTER_RANK;\n"
    "}\n";

static assay_status_t run_pairs(platform_t* p, const char* options, uint32_t* y) {
  cuda_module_t m = load_text(p, pairs, options);
  const uint64_t at = upload(p, NULL, 6 * sizeof *y);
  const cuda_grid_t grid = {.blocks = 6, .threads = 64, .shared_bytes = 64, .cluster = 2};
  assay_status_t st = cuda_queue_launch(p->queue, get_kernel(p, m, "pairs", 64), &grid, &at);
  if (!st) st = driver->download(p->queue, at, y, 6 * sizeof *y);
  cuda_module_unload(p->device, m);
  return st;
}

static void clusters_run_together(void** state) {
  (void)state;
  static const struct {
    const char *options, *says;
  } rows[] = {{"-DBEGIN=SYNC_CLUSTER(); -DEND=barrier_wait(barrier,0);", NULL},
              {"-DBEGIN=SYNC(); -DEND=barrier_wait(barrier,0);", "with no SYNC_CLUSTER"},
              {"-DBEGIN=SYNC_CLUSTER(); -DEND=", "end"},
              {"-DBEGIN=SYNC_CLUSTER(); -DEND=barrier_wait(barrier,1);", "end"},
              {"-DBEGIN=if(CLUSTER_RANK)SYNC_CLUSTER();return; -DEND=", "a cluster's barrier"},
              {"-DBEGIN=if(THREAD<32)SYNC_CLUSTER(); -DEND=", "not reached by all threads"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    platform_t p;
    uint32_t y[6] = {0};
    platform_init(&p);
    fake->quiet = true;
    assay_status_t st = run_pairs(&p, rows[i].options, y);
    if (rows[i].says) {
      assert_non_null(st);
      if (!strstr(fake->message, rows[i].says)) fail_msg("%s: %s", rows[i].options, fake->message);
    }
    for (uint32_t k = 0; !st && k < 6; k++) assert_int_equal(y[k], 10 + k % 2);
    assay_status_free(st);
    platform_deinit(&p);
  }
}

int main(void) {
  find_platform();
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_run),
                                     cmocka_unit_test(copies_are_late),
                                     cmocka_unit_test(memory_is_poisoned_and_checked),
                                     cmocka_unit_test(launches_are_checked),
                                     cmocka_unit_test(who_asks_for_less_takes_none_away),
                                     cmocka_unit_test(what_the_compiler_says_is_told),
                                     cmocka_unit_test(conversions_round),
                                     cmocka_unit_test(clusters_run_together),
                                     cmocka_unit_test(kernels_compile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
