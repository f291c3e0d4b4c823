// Elements put into another form: type, layout or both.
#include "exec/segment/move.h"

bool assay_move_is_copy(const assay_move_t* m) {
  const bool same_layout = m->from.layout == m->to.layout || m->rank < 3;
  return same_layout && m->from.type == m->to.type &&
         (m->through == m->from.type ||
          (m->through == ASSAY_TYPE_FLOAT && assay_type_is_kernel_float(m->from.type)));
}

size_t assay_move_bytes(const assay_move_t* m, assay_type_t type) {
  int64_t bytes = 0;
  return assay_type_packed_bytes(type, m->size, &bytes) ? (size_t)bytes : 0;
}
