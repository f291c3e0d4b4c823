// Kernels by the real compiler, where that is there (nvidia-cuda-nvrtc of PyPI; it needs no GPU):
// without a warning, a spill or a stack, and with as many registers as their row allows.
//
//   test_nvrtc [CAPABILITY...]   80, 90 (and what only that has, "sm_90a"), 100, 120; 80 and 90
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
// cmocka wants those before it.
#include <cmocka.h>

#include "backends/cuda/kernels.h"
#include "backends/cuda/nvrtc.h"
#include "base/alloc.h"
#include "skip_case.h"
#include "status_case.h"

typedef struct row {
  const char *file, *options, *program;
  int registers, spills;
} row_t;

static const row_t rows[] = {
#define KERNEL_ROW(file, options, program, registers, spills) \
  {file, options, program, registers, spills},
#include "kernel_rows.inc"
#undef KERNEL_ROW
};
enum { N_ROWS = sizeof rows / sizeof *rows, MAX_CAPABILITIES = 8, MAX_PROGRAM = 1 << 16 };

static int capabilities[MAX_CAPABILITIES] = {80, 90}, n_capabilities = 2;

static void every_kernel_has_a_row(void** state) {
  (void)state;
  const cuda_kernel_file_t* f;
  for (size_t i = 0; (f = cuda_kernel_file_at(i)) != NULL; i++) {
    bool has = !strstr(f->name, ".cu");
    for (size_t k = 0; !has && k < N_ROWS; k++) has = strcmp(rows[k].file, f->name) == 0;
    if (!has)
      fail_msg("kernel_rows.inc has no row for %s: add one for each of its variants", f->name);
  }
}

static char* read_program(const char* name) {
  char path[256];
  char* text = NULL;
  if (!name) return NULL;
  snprintf(path, sizeof path, "cuda/kernels/programs/%s", name);
  FILE* f = fopen(path, "rb");
  if (!f) fail_msg("there is no %s", path);
  text = assay_malloc(MAX_PROGRAM);
  assert_non_null(text);
  text[fread(text, 1, MAX_PROGRAM - 1, f)] = 0;
  fclose(f);
  return text;
}

// The largest of the numbers that ptxas says before or behind some words, one for each kernel.
static int number_behind(const char* log, const char* words) {
  int most = -1;
  for (const char* at = strstr(log, words); at; at = strstr(at + 1, words)) {
    const int n = (int)strtol(at + strlen(words), NULL, 10);
    if (most < n) most = n;
  }
  return most;
}

static int number_before(const char* log, const char* words) {
  int most = -1;
  for (const char* found = strstr(log, words); found; found = strstr(found + 1, words)) {
    const char* at = found;
    while (at > log && (at[-1] == ' ' || (at[-1] >= '0' && at[-1] <= '9'))) at--;
    const int n = (int)strtol(at, NULL, 10);
    if (most < n) most = n;
  }
  return most;
}

// How many of a row's demands are not met.
static int judge(const row_t* r, int capability, const char* log) {
  static const char* const none[] = {"bytes stack frame", "bytes spill stores",
                                     "bytes spill loads"};
  int bad = 0;
  const int used = number_behind(log, "Used ");
  if (strstr(log, "warning")) bad++, print_message("a warning\n");
  if (used < 0 || used > r->registers)
    bad++, print_message("%d registers, more than %d\n", used, r->registers);
  for (size_t i = 0; i < sizeof none / sizeof *none; i++)
    if (number_before(log, none[i]) < 0 || number_before(log, none[i]) > r->spills)
      bad++, print_message("%d %s\n", number_before(log, none[i]), none[i]);
  if (bad) print_message("%s %s, sm_%d:\n%s\n", r->file, r->options, capability, log);
  return bad;
}

static void kernels_compile_well(void** state) {
  (void)state;
  const cuda_compiler_t* c = NULL;
  int bad = 0;
  assay_status_t missing = cuda_compiler_get(13000, &c);
  if (missing) {
    assay_status_free(missing);
    skip_because("there is no libnvrtc.so.13 (scripts/setup test installs it on x86-64)");
  }
  for (int k = 0; k < n_capabilities; k++)
    for (size_t i = 0; i < N_ROWS; i++) {
      const row_t* r = &rows[i];
      char* program = read_program(r->program);
      assay_str_t log = {0};
      void* code = NULL;
      size_t bytes = 0;
      assay_status_t st = cuda_compile(c,
                                       &(cuda_compilation_t){.file = r->file,
                                                             .program = program,
                                                             .options = r->options,
                                                             .capability = capabilities[k]},
                                       &code, &bytes, &log);
      if (st) bad++, print_message("%s\n", assay_status_message(st));
      if (!st) bad += judge(r, capabilities[k], assay_str_get(&log));
      if (!st && getenv("ASSAY_TEST_VERBOSE"))
        print_message("%s %s, sm_%d: %d registers\n", r->file, r->options, capabilities[k],
                      number_behind(assay_str_get(&log), "Used "));
      assay_status_free(st);
      assay_str_deinit(&log);
      assay_free(program);
      assay_free(code);
    }
  assert_int_equal(bad, 0);
}

int main(int argc, char** argv) {
  const char* folder = getenv("ASSAY_TEST_NVRTC");
  if (folder) setenv("ASSAY_CUDA_PATH", folder, 1);
  if (argc > 1) n_capabilities = 0;
  for (int i = 1; i < argc && n_capabilities < MAX_CAPABILITIES; i++)
    capabilities[n_capabilities++] = (int)strtol(argv[i], NULL, 10);
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_kernel_has_a_row),
                                     cmocka_unit_test(kernels_compile_well)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
