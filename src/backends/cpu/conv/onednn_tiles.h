// Convolutions by oneDNN in tiles: some rows of one sample, some of the channels. What the layer
// does to each element is done while the tile is in the cache of the core that has made it.
//
// How a sample is cut depends on its own sizes only: neither the batch nor the number of threads
// changes how a sum is made.
#ifndef ASSAY_BACKENDS_CPU_CONV_ONEDNN_TILES_H_
#define ASSAY_BACKENDS_CPU_CONV_ONEDNN_TILES_H_

#include "backends/cpu/onednn.h"
#include "ops/conv/conv.h"

typedef struct dnn_conv {
  assay_conv_t s;
  const assay_operand_t *x, *w, *bias;  // bias NULL: none
} dnn_conv_t;

// The kernel of a layer that begins with this convolution, reading it in `type`; *out stays NULL
// where oneDNN has no implementation, or where programs do not know what comes after it.
assay_status_t dnn_tiles_make(const assay_sized_layer_t* l, const dnn_conv_t* c, assay_type_t type,
                              assay_kernel_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CPU_CONV_ONEDNN_TILES_H_
