// Timing caches: read, and a network is built and run by what they say. The first byte draws the
// network; the rest is the cache, which is taken for this machine's.
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

enum { NETWORKS = 16 };
static char folder[] = "/tmp/assay_fuzz_XXXXXX";
static char file[sizeof folder + 16];

static void remove_folder(void) {
  static const char* const names[] = {"forged", "made.times"};
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

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (!size) return 0;
  snprintf(file, sizeof file, "%s/forged", folder);
  subject_write(file, data + 1, size - 1);
  assay_status_t st = use_cache(data[0] % NETWORKS, file);
  if (assay_status_code(st) == ASSAY_INTERNAL) {
    fprintf(stderr, "%s\n", assay_status_message(st));
    abort();
  }
  assay_status_free(st);
  if (assay_alloc_live()) abort();
  return 0;
}

// A cache without lines, such as a seed, becomes the network's own.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  enum { FEW = 100 };
  const uint8_t network = size ? data[0] : (uint8_t)seed;
  forged_t f = {0};
  if (size < FEW) {
    f = subject_cache(network % NETWORKS, folder);
  } else {
    f = (forged_t){malloc(size), size - 1};
    if (!f.at) abort();
    memcpy(f.at, data + 1, f.n);
  }
  if (f.n) forge_cache(&f, seed);
  const bool fits = f.n && f.n + 1 <= max_size;
  if (fits) {
    data[0] = network;
    memcpy(data + 1, f.at, f.n);
  }
  const size_t n = fits ? f.n + 1 : size;
  free(f.at);
  return n;
}
