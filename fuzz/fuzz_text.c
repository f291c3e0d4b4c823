// Numbers as text.
#include <stdlib.h>

#include "base/alloc.h"
#include "io/text.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const assay_type_t types[] = {ASSAY_TYPE_FLOAT, ASSAY_TYPE_INT8, ASSAY_TYPE_UINT64};
  const int64_t n = assay_text_count(data, size);
  const bool is = assay_text_is(data, size);
  if (is && !n) abort();
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    assay_tensor_t* t = NULL;
    assay_status_t st = assay_text_parse(data, size, types[i], 1, &n, &t);
    if (assay_status_code(st) == ASSAY_INTERNAL) abort();
    assay_status_free(st);
    assay_tensor_release(t);
    if (assay_alloc_live()) abort();
  }
  return 0;
}
