// Products of whose columns the two halves are multiplied, or put together otherwise (GLU, SwiGLU,
// GEGLU): the layer of the product and that of what is done to its halves, in one launch. The
// tactics of products take both as one layer, among whose inputs is what its first nodes make.
// Nobody has that: the program is given a column of either half.
#ifndef ASSAY_BACKENDS_CUDA_PRODUCT_HALVES_H_
#define ASSAY_BACKENDS_CUDA_PRODUCT_HALVES_H_

#include "backends/cuda/product/product.h"

// Two layers as one. The nodes are the caller's to free.
typedef struct cuda_joint_layer {
  assay_layer_t layer;
  assay_sized_layer_t sized;
  const assay_node_t** nodes;
} cuda_joint_layer_t;
assay_status_t cuda_halves_join(const assay_layer_pair_t* pair,
                                cuda_joint_layer_t* out) ASSAY_MUST_USE;

// The input of such a layer that its own nodes make; -1: it is none.
int cuda_halves_input(const assay_sized_layer_t* l);
// What a layer's product makes, with its bias: the output, or that input.
const assay_operand_t* cuda_product_result(const assay_sized_layer_t* l);

// Makes the columns of a product that was read those of halves in turn, with weights that lie so;
// direct: they stay as they are. *ok false: the product is none for it. Errors: NO_MEMORY, DEVICE
assay_status_t cuda_halves_take(const assay_sized_layer_t* l, bool direct, cuda_product_t* p,
                                bool* ok) ASSAY_MUST_USE;
// The program of the nodes behind it; *out stays NULL where these read something else than halves.
assay_status_t cuda_halves_program(const assay_sized_layer_t* l, const cuda_product_t* p,
                                   cuda_program_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_CUDA_PRODUCT_HALVES_H_
