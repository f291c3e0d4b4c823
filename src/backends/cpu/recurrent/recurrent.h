// A recurrent layer with its weights packed: what is made of a node once, and read in each run.
#ifndef ASSAY_BACKENDS_CPU_RECURRENT_RECURRENT_H_
#define ASSAY_BACKENDS_CPU_RECURRENT_RECURRENT_H_

#include "backends/cpu/tactic.h"

typedef enum recurrent_cell { RECURRENT_RNN, RECURRENT_GRU, RECURRENT_LSTM } recurrent_cell_t;

// Hidden units are taken in blocks whose gates make two panels of columns: for each gate as many
// columns as the block has units; what is left over is zeros. (Where a GRU's hidden gate stands
// alone, its block is one panel.)
enum { RECURRENT_BLOCK = 64 };  // 2 * CPU_PANEL

typedef struct recurrent {
  assay_kernel_t base;
  const assay_node_t* node;
  recurrent_cell_t cell;
  bool reverse, batch_first;
  bool reset_first;  // GRU: the state is reset before it is multiplied
  bool bf16;         // inputs and states are multiplied in bf16
  int directions;
  int64_t length, batch, inputs, hidden, units, blocks;  // units of a block
  int64_t input_row, state_row;          // what is multiplied, in units of 4 bytes (gemm.h)
  int x, lengths, initial_h, initial_c;  // inputs of the layer; -1: none
  int y, y_h, y_c;                       // outputs; -1: not wanted
  // By direction and block: panels of input_row rows, of state_row rows, and one row of biases; GRU
  // with reset_first has the hidden gate's panels apart, and its state's bias.
  uint32_t *w, *r, *reset;
  float *bias, *state_bias;
} recurrent_t;

// Bytes of scratch memory.
size_t recurrent_scratch(const recurrent_t* k);
assay_status_t recurrent_run(assay_kernel_t* k, const void* const* in, void* const* out,
                             void* scratch);

#endif  // ASSAY_BACKENDS_CPU_RECURRENT_RECURRENT_H_
