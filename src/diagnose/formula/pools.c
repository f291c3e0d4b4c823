// The words maxpool and meanpool: windows of one size in all spatial dimensions.
#include "diagnose/formula/program.h"

static assay_attr_t list_of(const char* name, int64_t* list, size_t n) {
  return (assay_attr_t){
      .name = name, .doc = "", .ref = "", .type = ASSAY_ATTR_INTS, .n = n, .u.ints = list};
}

size_t assay_formula_read_pool(const int64_t* list, assay_formula_pool_t* out) {
  const size_t n = list[0] > 0 && list[0] < ASSAY_MAX_RANK ? (size_t)list[0] : 0;
  size_t used = 0;
  for (size_t i = 0; i < n; i++) {
    out->kernel[i] = list[1];
    out->strides[i] = list[2];
    out->pads[i] = list[3];
    out->pads[n + i] = list[4];
  }
  if (!n) return 0;
  out->attrs[used++] = list_of("kernel_shape", out->kernel, n);
  out->attrs[used++] = list_of("strides", out->strides, n);
  out->attrs[used++] = list_of("pads", out->pads, 2 * n);
  if (list[5])
    out->attrs[used++] = (assay_attr_t){.name = "count_include_pad",
                                        .doc = "",
                                        .ref = "",
                                        .type = ASSAY_ATTR_INT,
                                        .n = 1,
                                        .u.i = 1};
  return used;
}
