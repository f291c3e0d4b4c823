// Layers of pointwise nodes as code: what is done to each element of the output, in float32 or in
// integers, with the inputs as streams of elements, whole or broadcast.
//
// A backend makes of it what its machine runs: tiles and functions over arrays, or the text of a
// kernel. Other types are widened as they are read, and the result is rounded once as it is
// written.
//
// Slices and Splits before the nodes are a part of it: streams begin at an offset then, and have
// the strides of the tensor that was cut. So are nodes that move whole rows (moved_rows.h): streams
// have a table of rows then.
#ifndef ASSAY_BACKENDS_LAYERS_POINTWISE_H_
#define ASSAY_BACKENDS_LAYERS_POINTWISE_H_

#include "backends/layers/moved_rows.h"
#include "backends/layers/pointwise_functions.h"
#include "exec/kernel.h"

enum { POINTWISE_INSTRUCTIONS = 48, POINTWISE_STREAMS = 16 };
// Streams that are not inputs of the layer.
enum { POINTWISE_RESULT = -1, POINTWISE_NO_INPUT = -2 };

typedef struct pointwise_stream {
  int input;  // of the layer; POINTWISE_RESULT: what stands before the nodes has made, float32, one
              // an output element; POINTWISE_NO_INPUT: `constant` alone
  assay_type_t type;
  assay_layout_t layout;
  int64_t offset;  // in memory, in elements: where the stream's first element is in the input
  bool cut;  // it is a part of the input, which a Slice or Split of the layer takes, or its rows in
             // other places
  moved_table_t
      table;        // MOVED, owned: the input's row, of the code's columns, by row of the output
  float* constant;  // owned; NULL: given with each run
  int64_t n_constant;
} pointwise_stream_t;

// How a stream runs along the output's elements, whose dimensions are [outer..., columns].
typedef enum pointwise_access {
  POINTWISE_WHOLE = 0,  // element by element, as the output
  POINTWISE_PERIODIC,   // every row the same
  POINTWISE_STRIDED,    // by strides of its own
  POINTWISE_MOVED,      // rows as the stream's table says; strides are those of WHOLE
} pointwise_access_t;

typedef struct pointwise_walk {
  pointwise_access_t access;
  int64_t strides[ASSAY_KERNEL_RANK];  // by dimension of the code; 0: broadcast
  // So many indices of a dimension share an element, as scales of blocks do; 0: of none.
  int64_t block;
  int blocked;  // the dimension
} pointwise_walk_t;

typedef struct pointwise_instruction {
  int function;    // pointwise_function_t, or pointwise_integer_t
  int operand[3];  // a stream, or POINTWISE_STREAMS + an instruction before this one; -1: none
  float param[2];
} pointwise_instruction_t;

typedef struct pointwise_code {
  bool integers;
  pointwise_stream_t streams[POINTWISE_STREAMS];
  pointwise_walk_t walks[POINTWISE_STREAMS];
  size_t n_streams;
  pointwise_instruction_t code[POINTWISE_INSTRUCTIONS];  // the last one makes the output
  size_t n_code;
  // The output's dimensions as they lie in memory, neighbours merged; the last one makes rows.
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], rows, columns;
  int64_t cost;  // operations on an element
} pointwise_code_t;

typedef struct pointwise_options {
  size_t first;                 // node of the layer
  const assay_value_t* result;  // that the node before it makes; NULL: there is none, and nodes
                                // before it make what is an input here
  assay_layout_t layout;        // of the output, and of all streams of its size
  int64_t columns;     // the last dimensions that make so many elements stay rows; 0: as it comes
  int64_t max_copied;  // elements that a constant may have to become one of a stream's own; others
                       // stay inputs of the layer
  bool integers;       // nodes on integers, in int64; nodes on floats are none then
  bool quantizers;  // QuantizeLinear, DequantizeLinear and Cast from and to all types of 8 and 16
                    // bits: streams and outputs may have these types then
} pointwise_options_t;

// The code of nodes [first, end) of a layer. *ok false: a node is neither a pointwise function that
// is known, nor a Slice or Split, forwards, of an input. Without nodes it hands the result on,
// rounded. Errors: NO_MEMORY.
assay_status_t pointwise_compile(const assay_sized_layer_t* l, const pointwise_options_t* options,
                                 pointwise_code_t* out, bool* ok) ASSAY_MUST_USE;
void pointwise_deinit(pointwise_code_t* c);

// Channels last where an input of the output's size, or of which it is a part, lies so: nothing
// needs to be moved then.
assay_layout_t pointwise_layout(const assay_sized_layer_t* l);

// The first input of the layer that is read element by element, as the output; -1: none.
int pointwise_first_whole(const pointwise_code_t* c);
// The input over which an output of this type may be written: it is read element by element, and so
// are all others of that memory. -1: none.
int pointwise_in_place(const pointwise_code_t* c, assay_type_t type);

#endif  // ASSAY_BACKENDS_LAYERS_POINTWISE_H_
