// A recurrent layer on a GPU: what is read of it, and the kernels that run it.
#ifndef ASSAY_BACKENDS_CUDA_RECURRENT_RECURRENT_H_
#define ASSAY_BACKENDS_CUDA_RECURRENT_RECURRENT_H_

#include "backends/cuda/kernels/recurrent_args.h"
#include "backends/cuda/product/plain.h"
#include "backends/cuda/watch.h"

typedef enum cuda_cell { CUDA_CELL_RNN, CUDA_CELL_GRU, CUDA_CELL_LSTM } cuda_cell_t;

typedef struct cuda_recurrent {
  assay_kernel_t base;
  const cuda_own_t* own;
  const assay_node_t* node;
  cuda_cell_t cell;
  bool couples;      // LSTM: the forget gate is 1 - input gate
  bool reset_first;  // GRU: the state is reset before it is multiplied
  int gates;
  int64_t inputs;
  assay_type_t type;         // of what is multiplied
  bool tf32;                 // float32 is rounded to tf32 there, but for states of the layer's own
  const char* functions[3];  // as activations.h names them; those of both directions
  // Inputs and outputs of the layer; -1: none.
  int x, w, r, bias, lengths, initial_h, initial_c, peepholes, y, y_h, y_c;
  recurrent_args_t args;  // without addresses
  cuda_plain_product_t product;
  cuda_kernel_t begin, step, second, end;  // second: of a GRU with reset_first
  int rows;                                // batch elements of a warp
  int64_t blocks;                          // of a step
  cuda_watch_t watch;                      // of the lengths
} cuda_recurrent_t;

// False: the layer is none for us.
bool cuda_recurrent_read(const assay_sized_layer_t* l, cuda_recurrent_t* k);
// Its functions and their parameters; false: there are others, or the two directions have
// different ones.
bool cuda_recurrent_read_functions(const assay_node_t* n, cuda_recurrent_t* k);

size_t cuda_recurrent_scratch(const cuda_recurrent_t* k);
assay_status_t cuda_recurrent_enqueue(assay_kernel_t* base, assay_queue_t* q,
                                      const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                                      assay_device_ptr_t scratch);

#endif  // ASSAY_BACKENDS_CUDA_RECURRENT_RECURRENT_H_
