// The words maxpool and meanpool: windows of one size in all spatial dimensions.
#include "diagnose/formula/program.h"

assay_status_t assay_formula_put_pool(const assay_formula_receiver_t* r, const char* op_type,
                                      const int64_t* list) {
  enum { MOST = ASSAY_MAX_RANK, ATTRS = 4 };
  int64_t kernel[MOST], strides[MOST], pads[2 * MOST];
  const size_t n = (size_t)list[0];
  if (list[0] < 1 || n > MOST) return assay_formula_no_room(op_type);
  for (size_t i = 0; i < n; i++) {
    kernel[i] = list[1];
    strides[i] = list[2];
    pads[i] = list[3];
    pads[n + i] = list[4];
  }
  const struct {
    const char* name;
    int64_t* list;
    size_t n;
  } lists[] = {{"kernel_shape", kernel, n}, {"strides", strides, n}, {"pads", pads, 2 * n}};
  assay_attr_t attrs[ATTRS];
  size_t used = 0;
  for (; used < sizeof lists / sizeof *lists; used++)
    attrs[used] = (assay_attr_t){.name = lists[used].name,
                                 .doc = "",
                                 .ref = "",
                                 .type = ASSAY_ATTR_INTS,
                                 .n = lists[used].n,
                                 .u.ints = lists[used].list};
  if (list[5])
    attrs[used++] = (assay_attr_t){.name = "count_include_pad",
                                   .doc = "",
                                   .ref = "",
                                   .type = ASSAY_ATTR_INT,
                                   .n = 1,
                                   .u.i = 1};
  return assay_formula_put_node(r, op_type, 1, attrs, used);
}
