// What a layer of attention computes and where its operands lie, of an operator
// (attention_operator.c) or written out in nodes (attention_nodes.c), for the tactics of all
// backends.
#ifndef ASSAY_BACKENDS_LAYERS_ATTENTION_H_
#define ASSAY_BACKENDS_LAYERS_ATTENTION_H_

#include "exec/kernel.h"
#include "passes/assemble/attention.h"

// Distances between elements of an operand, from one batch and head, row, column to the next. Rows
// of keys are keys.
typedef struct attention_view {
  int index;  // of the layer's inputs; 0 for the output
  assay_type_t type;
  int64_t at, batch[ASSAY_ATTENTION_RANK], row, column;
} attention_view_t;

typedef struct attention_mask {
  int index;
  assay_attention_mask_kind_t kind;
  assay_type_t type;
  float fill;
  // The scores' rows are counted through these dimensions; distances along them and along keys.
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], strides[ASSAY_KERNEL_RANK], key;
} attention_mask_t;

// y = softmax(mask(scale q k^T)) v, for each batch and head.
typedef struct attention_layer {
  int n_batch;
  int64_t batch[ASSAY_ATTENTION_RANK], heads;  // all batches and heads
  int64_t q_len, kv_len, size, v_size;
  attention_view_t q, k, v, y;
  float scale, cap;  // of scores; cap 0: none
  // Keys before and after its own place that a query sees. Places begin anew after `period` rows:
  // queries of heads that share keys may be rows of one head here.
  bool windowed;
  int64_t left, right, period;
  bool zero_unseen;  // a query without keys gives zeros, not NaN
  attention_mask_t masks[ASSAY_ATTENTION_MASKS];
  int n_masks;
  assay_storage_t in[ASSAY_KERNEL_OPERANDS], out;  // as a kernel's
  bool rooms;
} attention_layer_t;

// *ok: whether a layer is one of these; *out is zeroed before.
assay_status_t attention_read(const assay_sized_layer_t* l, attention_layer_t* out,
                              bool* ok) ASSAY_MUST_USE;

// ---- between the files of it --------------------------------------------------------------------

assay_status_t attention_read_nodes(const assay_sized_layer_t* l, attention_layer_t* k,
                                    bool* ok) ASSAY_MUST_USE;
bool attention_read_operator(const assay_sized_layer_t* l, attention_layer_t* k);

#endif  // ASSAY_BACKENDS_LAYERS_ATTENTION_H_
