// Elements put into another form: type, layout or both.
#include "exec/segment/reformat.h"

bool assay_reformat_is_copy(const assay_reformat_t* m) {
  const bool same_layout = m->from.layout == m->to.layout || m->rank < 3;
  return same_layout && m->from.type == m->to.type &&
         (m->through == m->from.type ||
          (m->through == ASSAY_TYPE_FLOAT && assay_type_is_kernel_float(m->from.type)));
}

size_t assay_reformat_bytes(const assay_reformat_t* m, assay_type_t type) {
  int64_t bytes = 0;
  return assay_type_packed_bytes(type, m->size, &bytes) ? (size_t)bytes : 0;
}
