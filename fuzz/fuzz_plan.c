// Plan files: read, run, written again and refitted. Inputs are plans; anything else stands for the
// plan of a network that is drawn by its first byte, so that a corpus needs no plans to start from:
// those of another build or machine would not be read.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "subjects.h"

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

enum { NETWORK = 6 };  // whose weights stripped plans are given
static char folder[] = "/tmp/assay_fuzz_XXXXXX";
static char file[sizeof folder + 16];

static void remove_folder(void) {
  static const char* const names[] = {"forged", "made.plan"};
  for (int i = 0; i < 2; i++) {
    snprintf(file, sizeof file, "%s/%s", folder, names[i]);
    unlink(file);
  }
  rmdir(folder);
}

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  if (!mkdtemp(folder)) abort();
  atexit(remove_folder);
  omp_set_num_threads(1);
  assay_memory_set_limit(200 << 20);
  return 0;
}

static forged_t plan_of(const uint8_t* data, size_t n) {
  if (!forge_is_plan(data, n)) return subject_plan(n ? data[0] : 0, folder);
  const forged_t f = {malloc(n), n};
  if (!f.at) abort();
  memcpy(f.at, data, n);
  return f;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forged_t f = plan_of(data, size);
  forge_seal_plan(f.at, f.n);
  snprintf(file, sizeof file, "%s/forged", folder);
  subject_write(file, f.at, f.n);
  free(f.at);
  assay_status_t st = use_plan(NETWORK, file);
  if (assay_status_code(st) == ASSAY_INTERNAL) {
    fprintf(stderr, "%s\n", assay_status_message(st));
    abort();
  }
  assay_status_free(st);
  if (assay_alloc_live()) abort();
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  forged_t f = plan_of(data, size);
  if (f.n) forge_plan(&f, seed);
  const bool fits = f.n && f.n <= max_size;
  if (fits) memcpy(data, f.at, f.n);
  const size_t n = fits ? f.n : size;
  free(f.at);
  return n;
}
