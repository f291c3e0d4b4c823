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
       "-DIN=f32 -DOUT=f32 -DCONV=0 -DBM=64 -DBN=64 -DTM=4 -DTN=4 -DX_ALONG_K=1 -DW_ALONG_K=0"},
      {"product_mma.cu",
       "-DIN=f16 -DOUT=f16 -DCONV=0 -DIN_IS_F32=0 -DBM=64 -DBN=64 -DWM=2 -DWN=2 -DX_FAST=1 "
       "-DW_FAST=1"},
      {"product_mma.cu",
       "-DIN=f32 -DOUT=f32 -DCONV=1 -DIN_IS_F32=1 -DBM=64 -DBN=64 -DWM=2 -DWN=2 -DX_FAST=1 "
       "-DW_FAST=2"},
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

int main(void) {
  find_platform();
  const struct CMUnitTest tests[] = {cmocka_unit_test(kernels_run),
                                     cmocka_unit_test(kernels_compile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
