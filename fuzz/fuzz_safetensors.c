// safetensors files.
#include <stdlib.h>

#include "base/alloc.h"
#include "io/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_set_t set = {0};
  assay_str_t metadata = {0};
  assay_status_t st = assay_safetensors_parse(data, size, &set, &metadata);
  for (size_t i = 0; !st && i < set.n; i++) {
    assay_tensor_t* wide = NULL;
    st = assay_tensor_widen(set.tensors[i], &wide);
    assay_tensor_release(wide);
  }
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  assay_str_deinit(&metadata);
  assay_set_deinit(&set);
  if (assay_alloc_live()) abort();
  return 0;
}
