// Files of test data: TensorProto, SequenceProto, OptionalProto, MapProto.
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "onnx/onnx.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  char path[64];
  int fd = memfd_create("value", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, size) != (ssize_t)size) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  for (int kind = 0; kind < 4; kind++) {
    const assay_valtype_t element = {.kind = ASSAY_KIND_TENSOR, .elem = ASSAY_TYPE_INT64};
    const assay_valtype_t type = {
        .kind = (assay_kind_t)kind, .elem = ASSAY_TYPE_INT64, .of = &element};
    assay_tensor_t *t = NULL, *wide = NULL;
    assay_status_t st = assay_onnx_read_value(path, kind ? &type : NULL, &t);
    if (!st && t->kind == ASSAY_KIND_TENSOR) st = assay_tensor_widen(t, &wide);
    if (assay_status_code(st) == ASSAY_INTERNAL) abort();
    assay_status_free(st);
    assay_tensor_release(wide);
    assay_tensor_release(t);
    if (assay_alloc_live()) abort();
  }
  close(fd);
  return 0;
}
