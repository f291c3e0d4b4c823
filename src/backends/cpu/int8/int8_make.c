// How the int8 tactics that make sums in some way make their kernels, and how those round.
#include "backends/cpu/int8/int8_make.h"

#include "base/alloc.h"

assay_status_t int8_make(const assay_sized_layer_t* l, size_t bytes,
                         bool (*wants)(const int8_job_t* j), int8_build_t* build,
                         void (*close)(int8_kernel_t* k), assay_kernel_t** out) {
  int8_job_t j;
  bool ok = false;
  ASSAY_TRY(int8_job_open(l, wants, &j, &ok));
  if (!ok) return NULL;
  void* memory = NULL;
  assay_status_t st = assay_new_array(1, bytes, &memory);
  int8_kernel_t* k = memory;
  if (!st) {
    k->close = close;
    st = build(k, &j, &ok);
  }
  int8_job_close(&j);
  if (k && (st || !ok)) int8_kernel_destroy(&k->base);
  if (!st && ok) *out = &k->base;
  return st;
}
