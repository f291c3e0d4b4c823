// Boxes put together.
#include "backends/layers/boxes_internal.h"
#include "base/alloc.h"

// Boxes without elements are left out.
assay_status_t boxes_add(layer_boxes_t* m, box_t box) {
  if (box_is_empty(&box)) return NULL;
  box_prepare(&box);
  ASSAY_TRY(assay_grow(&m->boxes, &m->cap, m->n + 1, sizeof *m->boxes));
  m->boxes[m->n++] = box;
  return NULL;
}

// The whole of x into the output, with these strides.
box_t boxes_whole(const boxes_maker_t* k, int rank, const int64_t* dims, const int64_t* from,
                  const int64_t* to) {
  box_t b = {.from = (int)(k->x - k->l->in), .rank = rank};
  for (int i = 0; i < rank; i++) {
    b.dims[i] = dims[i];
    b.from_strides[i] = from[i];
    b.to_strides[i] = to[i];
  }
  return b;
}
