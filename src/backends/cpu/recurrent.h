// A recurrent layer with its weights packed: what is made of a node once, and read in each run.
#ifndef ASSAY_BACKENDS_CPU_RECURRENT_H_
#define ASSAY_BACKENDS_CPU_RECURRENT_H_

#include "backends/cpu/tactic.h"

typedef enum recurrent_cell { RECURRENT_RNN, RECURRENT_GRU, RECURRENT_LSTM } recurrent_cell_t;

// Hidden units are taken in blocks whose gates make one panel of columns: for each gate as many
// columns as the block has units; what is left over is zeros.

typedef struct recurrent {
  cpu_kernel_t base;
  const assay_node_t* node;
  recurrent_cell_t cell;
  bool reverse, batch_first;
  bool reset_first;  // GRU: the state is reset before it is multiplied
  int directions;
  int64_t length, batch, inputs, hidden, units, blocks;  // units of a block
  int x, lengths, initial_h, initial_c;                  // inputs of the layer; -1: none
  int y, y_h, y_c;                                       // outputs; -1: not wanted
  // By direction and block: panels of `inputs` rows, of `hidden` rows, and one row of biases; GRU
  // with reset_first has the hidden gate's panels apart, and its state's bias.
  float *w, *r, *bias, *reset, *state_bias;
} recurrent_t;

// Bytes of scratch memory.
size_t recurrent_scratch(const recurrent_t* k);
assay_status_t recurrent_run(cpu_kernel_t* k, const void* const* in, void* const* out,
                             void* scratch);

#endif  // ASSAY_BACKENDS_CPU_RECURRENT_H_
