// npy files, and npz archives of them.
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/npy.h"
#include "io/npz.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

static void nothing(void* owner) { (void)owner; }

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_set_t set = {0};
  assay_tensor_t *t = NULL, *wide = NULL;
  assay_status_t st = size && *data == 'P' ? assay_npz_parse(data, size, &set)
                                           : assay_npy_parse(data, size, nothing, NULL, &t);
  if (!st && t) st = assay_tensor_widen(t, &wide);
  assay_status_free(st);
  assay_tensor_release(wide);
  assay_tensor_release(t);
  assay_set_deinit(&set);
  if (assay_alloc_live()) abort();
  return 0;
}
