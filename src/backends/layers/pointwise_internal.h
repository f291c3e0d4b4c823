// What the files of the compiler of pointwise nodes share.
#ifndef ASSAY_BACKENDS_LAYERS_POINTWISE_INTERNAL_H_
#define ASSAY_BACKENDS_LAYERS_POINTWISE_INTERNAL_H_

#include "backends/layers/pointwise.h"
#include "backends/layers/slice.h"

enum { POINTWISE_CUTS = 2 * POINTWISE_STREAMS };

// A value that is a part of an input.
typedef struct pointwise_cut {
  const assay_value_t* value;
  int input;
  layer_slice_t slice;
} pointwise_cut_t;

typedef struct pointwise_compiler {
  const assay_sized_layer_t* l;
  const pointwise_options_t* options;
  pointwise_code_t* p;
  // By dimension in memory, not merged.
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  int64_t strides[POINTWISE_STREAMS][ASSAY_KERNEL_RANK];
  int64_t blocks[POINTWISE_STREAMS];  // of the walk; and its dimension here
  int blocked[POINTWISE_STREAMS];
  const assay_value_t* moved[POINTWISE_STREAMS];  // the hidden value that the stream is; or NULL
  int64_t moved_columns;  // elements that stay side by side in all of those; 0: there are none
  // By instruction: the hidden value that it makes.
  const assay_value_t* made[POINTWISE_INSTRUCTIONS];
  pointwise_cut_t cuts[POINTWISE_CUTS];
  int stream_of_cut[POINTWISE_CUTS];  // 1 + its number; 0: not read yet
  size_t n_cuts;
  assay_status_t status;
} pointwise_compiler_t;

// ---- streams (pointwise_streams.c); numbers of streams, -1: there is none -----------------------

// Which dimension of the output comes at place i in memory.
int pointwise_memory_order(const pointwise_compiler_t* c, int i);
int pointwise_add_stream(pointwise_compiler_t* c, const assay_operand_t* o, int input,
                         bool integers);
// Adds a stream to the code.
int pointwise_new_stream(pointwise_compiler_t* c, pointwise_stream_t s);
int pointwise_cut_stream(pointwise_compiler_t* c, const pointwise_cut_t* cut);
// A value that nodes of the layer make of an input by moving its rows.
int pointwise_moved_stream(pointwise_compiler_t* c, const assay_value_t* v);
int pointwise_result_stream(pointwise_compiler_t* c);
int pointwise_number_stream(pointwise_compiler_t* c, float x);
// An input with one element for each index of an axis of the output, or for each block of indices;
// 0: no blocks. Axis -1: it has one element.
int pointwise_axis_stream(pointwise_compiler_t* c, const assay_value_t* v, int axis, int64_t block);
// Whether a type is one of those that quantizers bring.
bool pointwise_is_float8(assay_type_t t);
bool pointwise_is_whole(assay_type_t t);  // of at most 16 bits
// A stream of one number a channel; the values are taken over.
int pointwise_channel_stream(pointwise_compiler_t* c, float* take_values);

// ---- moved rows (pointwise_moved.c)
// --------------------------------------------------------------

// The most elements of a row: what the output's last dimensions have that stays side by side.
int64_t pointwise_moved_row(const pointwise_compiler_t* c);
// Makes the tables, once rows are known; false: rows are no parts of what is moved.
bool pointwise_moved_finish(pointwise_compiler_t* c);

// ---- instructions (pointwise_instructions.c) ----------------------------------------------------

// Operands are streams, or POINTWISE_STREAMS + an instruction; -1: there is none.
// The stream or instruction that gives a value.
int pointwise_value(pointwise_compiler_t* c, const assay_value_t* v, bool integers);
int pointwise_emit(pointwise_compiler_t* c, int function, int n, const int* operands,
                   const float* param, int cost);

// ---- cuts (pointwise_cuts.c)
// ---------------------------------------------------------------------

bool pointwise_is_cut(const assay_node_t* n);
// Notes what a Slice or Split takes; false: that is not known, or backwards.
bool pointwise_cut_node(pointwise_compiler_t* c, const assay_node_t* n);
const pointwise_cut_t* pointwise_cut_of(const pointwise_compiler_t* c, const assay_value_t* v);

// ---- nodes --------------------------------------------------------------------------------------

// The instruction that a node ends in.
int pointwise_node(pointwise_compiler_t* c, const assay_node_t* n);      // pointwise_nodes.c
int pointwise_int_node(pointwise_compiler_t* c, const assay_node_t* n);  // pointwise_integers.c
// pointwise_quantizers.c
int pointwise_quantize(pointwise_compiler_t* c, const assay_node_t* n);
int pointwise_dequantize(pointwise_compiler_t* c, const assay_node_t* n);
// A value as one of a float of 8 bits, as a node's attribute `saturate` says.
int pointwise_to_float8(pointwise_compiler_t* c, const assay_node_t* n, int value,
                        assay_type_t type);

#endif  // ASSAY_BACKENDS_LAYERS_POINTWISE_INTERNAL_H_
