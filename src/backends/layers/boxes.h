// Layers that move elements and change none, as boxes that are copied: Transpose, Concat, Split,
// Slice, Pad, Expand, Tile, DepthToSpace and SpaceToDepth.
#ifndef ASSAY_BACKENDS_LAYERS_BOXES_H_
#define ASSAY_BACKENDS_LAYERS_BOXES_H_

#include "backends/layers/box.h"

typedef struct layer_boxes {
  size_t elem;  // bytes
  uint64_t
      value;     // of one element, in its first bytes: what boxes without an input are filled with
  box_t* boxes;  // prepared; owned
  size_t n, cap;
  bool view;        // nothing is moved: the output is the input's memory (kernel->in_place)
  int joined_axis;  // of a Concat; -1: it is none
} layer_boxes_t;

// The boxes of a layer, in zeroed or used `m`; *ok false: it is none of these, or its numbers are
// not known before the run. Sets in `kernel`, which becomes another one, what it reads and writes:
// forms, in_place, rooms, extends.
assay_status_t layer_boxes_read(const assay_sized_layer_t* l, assay_kernel_t* kernel,
                                layer_boxes_t* m, bool* ok) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_LAYERS_BOXES_H_
