// Kernels of a test's own, or of the backend changed, on the CUDA platform without a GPU (fake/);
// with ASSAY_TEST_GPU, for tests that say so, on a real one.
#ifndef TESTS_CUDA_PLATFORM_CASE_H_
#define TESTS_CUDA_PLATFORM_CASE_H_

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cuda/driver.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/nvrtc.h"
#include "base/alloc.h"
#include "fake/fake.h"
#include "status_case.h"

static const assay_device_driver_t* const driver = &assay_device_driver_cuda;
static fake_state_t* fake;  // NULL: a real GPU
static fake_end_fn_t* fake_end;

// The folder of the platform, before any of its libraries is opened.
static void find_platform(void) {
  const char* folder = getenv("ASSAY_TEST_LIBCUDA");
  union {
    void* symbol;
    fake_state_fn_t* state;
    fake_end_fn_t* end;
  } found = {NULL};
  char path[4096];
  snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : ".");
  setenv("ASSAY_CUDA_PATH", folder ? folder : ".", 1);
  if (getenv("ASSAY_TEST_GPU")) return;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library) found.symbol = dlsym(library, "fake_state");
  if (!found.symbol) {
    fprintf(stderr, "no %s: run it by ctest\n", path);
    exit(1);
  }
  fake = found.state();
  found.symbol = dlsym(library, "fake_end");
  fake_end = found.end;
}

// The text of a kernel of the tests' own (kernels/), here or where ASSAY_TEST_KERNELS says; to be
// freed.
static inline char* kernel_text(const char* name) {
  const char* folder = getenv("ASSAY_TEST_KERNELS");
  char path[1024], *text = NULL;
  size_t bytes = 0;
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "cuda/kernels", name);
  FILE* f = fopen(path, "rb");
  if (!f) fail_msg("there is no %s", path);
  FILE* out = open_memstream(&text, &bytes);
  for (int c; (c = fgetc(f)) != EOF;) fputc(c, out);
  fclose(f);
  fclose(out);
  return text;
}

// ---- a device with one queue --------------------------------------------------------------------

typedef struct platform {
  assay_device_t* device;
  assay_queue_t* queue;
} platform_t;

static inline void platform_init(platform_t* p) {
  if (fake) *fake = (fake_state_t){.version = 13000, .devices = 1, .capability = 90};
  ok(driver->open(0, &p->device));
  ok(driver->queue_create(p->device, &p->queue));
}

static inline void platform_deinit(platform_t* p) {
  driver->queue_destroy(p->queue);
  driver->close(p->device);
  if (fake) fake_end();  // also what a lost device held
}

static inline assay_device_ptr_t upload(platform_t* p, const void* data, size_t bytes) {
  assay_device_ptr_t at = 0;
  ok(driver->alloc(p->queue, bytes, &at));
  if (data) ok(driver->upload(p->queue, data, at, bytes));
  return at;
}

// ---- kernels ------------------------------------------------------------------------------------

// Compiles a text; *log is what the compiler says. NULL: it refused.
static inline char* compile_text(const char* text, const char* options, char** log) {
  const cuda_compiler_t* c = NULL;
  const cuda_kernel_file_t* f;
  const char *texts[128], *names[128], *words[64] = {"--gpu-architecture=sm_90a"};
  char buffer[2048], *rest = NULL, *code = NULL;
  int n = 0, n_words = 1;
  nvrtc_program_t program = NULL;
  size_t bytes = 0;
  ok(cuda_compiler_get(13000, &c));
  for (size_t i = 0; (f = cuda_kernel_file_at(i)) != NULL; i++)
    if (!strstr(f->name, ".cu")) texts[n] = f->text, names[n++] = f->name;
  snprintf(buffer, sizeof buffer, "%s " CUDA_COMPILER_OPTIONS, options);
  for (char* w = strtok_r(buffer, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
    words[n_words++] = w;
  assert_int_equal(c->nvrtcCreateProgram(&program, text, "test.cu", n, texts, names), 0);
  const int result = c->nvrtcCompileProgram(program, n_words, words);
  assert_int_equal(c->nvrtcGetProgramLogSize(program, &bytes), 0);
  *log = assay_malloc(bytes);
  assert_int_equal(c->nvrtcGetProgramLog(program, *log), 0);
  if (!result) {
    assert_int_equal(c->nvrtcGetCUBINSize(program, &bytes), 0);
    code = assay_malloc(bytes);
    assert_int_equal(c->nvrtcGetCUBIN(program, code), 0);
  }
  assert_int_equal(c->nvrtcDestroyProgram(&program), 0);
  return code;
}

static inline cuda_module_t load_text(platform_t* p, const char* text, const char* options) {
  char* log = NULL;
  cuda_module_t m = NULL;
  char* code = compile_text(text, options, &log);
  if (!code) fail_msg("%s", log);
  ok(cuda_module_load(p->device, code, 0, &m));
  assay_free(code);
  assay_free(log);
  return m;
}

static inline cuda_kernel_t get_kernel(platform_t* p, cuda_module_t m, const char* name,
                                       int shared_bytes) {
  cuda_kernel_t k = NULL;
  ok(cuda_module_kernel(p->device, m, name, shared_bytes, &k));
  return k;
}

#endif  // TESTS_CUDA_PLATFORM_CASE_H_
