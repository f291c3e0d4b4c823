// Attention written out in nodes, softmax(scale Q K^T + mask) V, as one layer.
//
// The pass `attention` groups the nodes and leaves them as they are. It does not make ONNX's
// operator Attention of them, since that is not always the same: where a mask forbids a whole row
// Attention gives 0 (ONNX Attention 23, errata) and the nodes give NaN, and what a mask says is
// known only when the model runs. So truth holds whatever the mask, bounds and values at risk are
// those of the nodes, and a tactic asks assay_attention_read() what a layer computes and may do so
// tile by tile, without the matrix of scores ever in memory.
// Source: T. Dao and others, FlashAttention, NeurIPS 2022.
#ifndef ASSAY_PASSES_ASSEMBLE_ATTENTION_H_
#define ASSAY_PASSES_ASSEMBLE_ATTENTION_H_

#include "ir/ir.h"

enum {
  ASSAY_ATTENTION_NODES = 24,
  ASSAY_ATTENTION_RANK = 8,
  ASSAY_ATTENTION_MASKS = 3,
  ASSAY_ATTENTION_WAY = 8,
  ASSAY_ATTENTION_FACTORS = 6
};

// A matrix for each batch and head that the layer reads. As used it has the dimensions [batch...,
// rows, columns]; nodes of the layer, each reading the one before it, give another order, another
// shape or a part of the value: Transpose, Squeeze, Unsqueeze, Split, and Reshapes of the value
// itself or of a last dimension into two. Each of its dimensions so has one distance in memory.
typedef struct assay_attention_operand {
  const assay_value_t* value;
  const assay_node_t* way[ASSAY_ATTENTION_WAY];
  int outputs[ASSAY_ATTENTION_WAY];  // of each, the output that is read
  int n_way;
} assay_attention_operand_t;

typedef enum assay_attention_mask_kind {
  ASSAY_ATTENTION_ADDED = 0,  // scores + mask
  ASSAY_ATTENTION_KEEPS,      // mask ? scores : fill
  ASSAY_ATTENTION_DROPS,      // mask ? fill : scores
} assay_attention_mask_kind_t;

typedef struct assay_attention_mask {
  assay_attention_mask_kind_t kind;
  const assay_value_t* value;
  double fill;
  const assay_value_t* fill_value;
  // The hidden value that the mask makes: the mask is broadcast to its shape, which has the
  // elements of the scores in their order and their last dimension, but maybe other ones in front.
  const assay_value_t* scores;
} assay_attention_mask_t;

typedef struct assay_attention_factor {
  const assay_value_t* value;
  bool divides;
} assay_attention_factor_t;

typedef struct assay_attention_nodes {
  int rank;                          // of all operands
  assay_attention_operand_t q;       // [..., queries, size]
  assay_attention_operand_t k;       // [..., size, keys]: K transposed
  assay_attention_operand_t v;       // [..., keys, size of values]
  const assay_value_t* y;            // [..., queries, size of values]:
  int y_axes[ASSAY_ATTENTION_RANK];  // dimension i of that is y's y_axes[i]
  double scale;                      // all factors together, before the masks
  assay_attention_factor_t factors[ASSAY_ATTENTION_FACTORS];  // as constants, which layers round
  int n_factors;
  assay_attention_mask_t masks[ASSAY_ATTENTION_MASKS];  // in the order in which they are put on
  int n_masks;
} assay_attention_nodes_t;

// What the nodes of a layer, in order, compute. False: no attention that this pass made.
bool assay_attention_read(const assay_node_t* const* nodes, size_t n, assay_attention_nodes_t* out);

#endif  // ASSAY_PASSES_ASSEMBLE_ATTENTION_H_
