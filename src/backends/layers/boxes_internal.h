// What the files that read boxes out of layers share.
#ifndef ASSAY_BACKENDS_LAYERS_BOXES_INTERNAL_H_
#define ASSAY_BACKENDS_LAYERS_BOXES_INTERNAL_H_

#include "backends/layers/boxes.h"

// What is known while a kernel is made.
typedef struct boxes_maker {
  const assay_sized_layer_t* l;
  const assay_node_t* node;
  const assay_operand_t *x, *y;  // the first input and output
  layer_boxes_t* m;
  assay_kernel_t* kernel;
  assay_layout_t layout;  // of x, and of outputs of its rank
  int64_t x_strides[ASSAY_KERNEL_RANK], y_strides[ASSAY_KERNEL_RANK];
} boxes_maker_t;

// Boxes without elements are left out.
assay_status_t boxes_add(layer_boxes_t* m, box_t box);
// The whole of x into the output, with these strides.
box_t boxes_whole(const boxes_maker_t* k, int rank, const int64_t* dims, const int64_t* from,
                  const int64_t* to);

assay_status_t boxes_of_slice(boxes_maker_t* k, bool* ok);
assay_status_t boxes_of_joined(const boxes_maker_t* k, bool* ok);  // layers of several nodes
assay_status_t boxes_of_pad(boxes_maker_t* k, bool* ok);

#endif  // ASSAY_BACKENDS_LAYERS_BOXES_INTERNAL_H_
