// The ONNX reader, writer, checker, inliner, inference and the passes. Seeds: fuzz/make_corpus.py.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "plan/plan.h"

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

// External data can be read from here.
static char folder[] = "/tmp/assay_fuzz_XXXXXX";
static char file[sizeof folder + 16];

static void remove_folder(void) {
  unlink(file);
  rmdir(folder);
}

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  if (!mkdtemp(folder)) abort();
  snprintf(file, sizeof file, "%s/data.bin", folder);
  FILE* f = fopen(file, "wb");
  if (!f || fwrite(file, 1, 32, f) != 32 || fclose(f)) abort();
  atexit(remove_folder);
  omp_set_num_threads(1);
  assay_memory_set_limit(200 << 20);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_model_t *model = NULL, *flat = NULL, *again = NULL;
  assay_plan_t* plan = NULL;
  uint8_t* bytes = NULL;
  size_t n = 0;
  assay_status_t st = assay_onnx_read_bytes(data, size, folder, &model);
  if (!st) {
    // What was read can be written, and what was written can be read.
    st = assay_onnx_write_bytes(model, &bytes, &n);
    if (!st) st = assay_onnx_read_bytes(bytes, n, folder, &again);
    assay_free(bytes);
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) abort();
  }
  if (!st) st = assay_onnx_prepare(model, 0, NULL, &flat);
  if (!st) {
    const assay_precision_t fp16 = {.format = ASSAY_FORMAT_FP16};
    const assay_plan_options_t fused = {.fused = true};
    st = assay_plan_create(flat, &fp16, &fused, 0, &plan);
  }
  // Our own mistakes are none of the file's.
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  assay_plan_destroy(plan);
  assay_model_release(again);
  assay_model_release(flat);
  assay_model_release(model);
  if (assay_alloc_live()) abort();
  return 0;
}
