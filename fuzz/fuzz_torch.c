// What torch.save writes: 'P' begins an archive, of a tensor or of several; anything else is the
// pickle within one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/torch.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_tensor_t *t = NULL, *wide = NULL;
  assay_set_t set = {0};
  bool named;
  const bool archive = size && *data == 'P';
  assay_status_t st =
      archive ? assay_torch_read(data, size, &set, &named) : assay_torch_unpickle(data, size, &t);
  if (!st && archive) t = assay_tensor_retain(set.tensors[0]);
  assay_set_deinit(&set);
  if (!st) st = assay_tensor_widen(t, &wide);
  if (assay_status_code(st) == ASSAY_INTERNAL) abort();
  assay_status_free(st);
  assay_tensor_release(wide);
  assay_tensor_release(t);
  if (assay_alloc_live()) abort();
  return 0;
}
