// Certificates, whose checksum is made to fit: read, and a run of a network, which their first byte
// behind the magic draws, is held against them.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "certify/certificate.h"
#include "subjects.h"

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

enum { NETWORKS = 16, HEADER = 13 };

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  omp_set_num_threads(1);
  assay_memory_set_limit(200 << 20);
  return 0;
}

// The checksum's bytes say nothing in an input: one of them draws.
static uint8_t network_of(const uint8_t* data, size_t size) {
  return size > HEADER ? data[HEADER - 1] % NETWORKS : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  uint8_t* sealed = malloc(size + 1);
  if (!sealed) abort();
  if (size) memcpy(sealed, data, size);
  assay_certificate_seal(sealed, size);
  assay_status_t st = use_certificate(network_of(data, size), sealed, size);
  free(sealed);
  if (assay_status_code(st) == ASSAY_INTERNAL) {
    fprintf(stderr, "%s\n", assay_status_message(st));
    abort();
  }
  assay_status_free(st);
  if (assay_alloc_live()) abort();
  return 0;
}

// What is too short becomes the certificate of a network.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  enum { FEW = 40 };
  const uint8_t network = size > FEW ? network_of(data, size) : (uint8_t)(seed % NETWORKS);
  forged_t f = {0};
  if (size <= FEW) {
    f = subject_certificate(network);
  } else {
    f = (forged_t){malloc(size), size};
    if (!f.at) abort();
    memcpy(f.at, data, size);
  }
  if (f.n) forge_certificate(&f, seed);
  if (f.n > HEADER) f.at[HEADER - 1] = network;
  const bool fits = f.n && f.n <= max_size;
  if (fits) memcpy(data, f.at, f.n);
  const size_t n = fits ? f.n : size;
  free(f.at);
  return n;
}
