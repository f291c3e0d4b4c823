// The ONNX reader, checker, inliner and writer. Seeds: fuzz/make_corpus.py.
#include <stdlib.h>

#include "base/alloc.h"
#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_model_t *model = NULL, *flat = NULL, *again = NULL;
  uint8_t* bytes = NULL;
  size_t n = 0;
  assay_status_t st = assay_onnx_read_bytes(data, size, NULL, &model);
  if (!st) {
    // What was read can be written, and what was written can be read.
    st = assay_onnx_write_bytes(model, &bytes, &n);
    if (!st) st = assay_onnx_read_bytes(bytes, n, NULL, &again);
    assay_free(bytes);
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) abort();
  }
  if (!st) st = assay_onnx_check(model);
  if (!st) st = assay_onnx_inline_functions(model, &flat);
  assay_status_free(st);
  assay_model_release(again);
  assay_model_release(flat);
  assay_model_release(model);
  if (assay_alloc_live()) abort();
  return 0;
}
