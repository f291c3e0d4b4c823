// int8 layers: nodes from DequantizeLinear to QuantizeLinear that are computed on the integers.
//
//   sum = exact sum of (x - z_x) (w - z_w)                  an integer
//   f   = fl32(sum) * factor[c] + shift[c]                  each operation rounded to float32
//   y   = fl32(what the pointwise nodes make of f)          evaluated in float64, rounded once
//   q   = sat(rne(y / s_y) + z_y)                           the quotient rounded to float32
//
// factor is s_x * s_w[c], shift the bias; a BatchNormalization directly after, or a multiplication
// by constants of which there is one a channel, is in both. They are computed in float64 and
// rounded once. Where nothing quantizes, y is the layer's output. A layer without a contraction has
// no f, but for a BatchNormalization of a quantized tensor: its sum is (x - z_x), its factor s_x
// times the normalization's. Other quantized operands of the pointwise nodes are fl32((q - z) s);
// float32 values are read as they are, by layers whose pointwise part is one float32 operation
// (`simple`). "Evaluated in float64": int8_functions.h; sums, products and quotients of floats are
// those of IEEE float64, so that a single one of them, rounded once more, is the float32 operation.
// (S. A. Figueroa, When is double rounding innocuous?, SIGNUM Newsletter 30, 1995.)
//
// This is the one definition for all backends: sums may come from anywhere, since they are exact;
// what follows is assay_int8_epilogue(), or has its bits.
#ifndef ASSAY_OPS_QUANT_INT8_H_
#define ASSAY_OPS_QUANT_INT8_H_

#include "ops/op.h"

enum {
  ASSAY_INT8_SOURCES = 12,
  ASSAY_INT8_STEPS = 20,
  ASSAY_INT8_AFFINE = 12,
  ASSAY_INT8_TILE = 1024,
};

// A quantized operand of a contraction: int8 or uint8.
typedef struct assay_int8_operand {
  const assay_value_t* value;      // that holds its integers; NULL: `constant` does
  const assay_tensor_t* constant;  // packed or canonical; NULL: known when the layer runs
  assay_type_t type;
  int axis;              // of a constant: along which the output channels lie
  const int32_t* zeros;  // one, or one for each output channel
  const float* scales;   // as many as zeros, or one
  int64_t n_zeros, n_scales;
} assay_int8_operand_t;

// What the pointwise nodes read.
typedef enum assay_int8_kind {
  ASSAY_INT8_RESULT = 0,  // f
  ASSAY_INT8_OPERAND,     // a quantized value, dequantized by a table
  ASSAY_INT8_CHANNEL,     // constants, one for each output channel
  ASSAY_INT8_SCALAR,
  ASSAY_INT8_REAL,  // a float32 value, as it is
} assay_int8_kind_t;

typedef struct assay_int8_source {
  assay_int8_kind_t kind;
  const assay_value_t* value;  // of an OPERAND: the quantized one; of a REAL: the float32 one
  const assay_value_t* real;   // the float that it is, or the constant; not of RESULT
  const float* table;          // of an OPERAND: by the byte that holds it, 256
  assay_type_t type;           // of an OPERAND: fl32((q - zero) * scale) is what the table has
  float zero, scale;
  const float* channel;
  double scalar;
} assay_int8_source_t;

// Whether a source is a value of the run: an OPERAND or a REAL.
static inline bool assay_int8_reads_value(const assay_int8_source_t* s) {
  return s->kind == ASSAY_INT8_OPERAND || s->kind == ASSAY_INT8_REAL;
}

// One step of the pointwise part, over registers: first the sources, then one a step.
typedef struct assay_int8_step {
  int function;  // a row of int8_steps.inc
  int a, b;      // b -1: none
  double p[2];
} assay_int8_step_t;

typedef enum assay_int8_operation {
  ASSAY_INT8_ADD = 0,
  ASSAY_INT8_SUB,       // source 0 less the other
  ASSAY_INT8_SUB_FROM,  // the other less source 0
  ASSAY_INT8_MUL,
} assay_int8_operation_t;

typedef struct assay_int8 {
  const assay_node_t* anchor;  // Conv, ConvTranspose, MatMul, Gemm, QLinearConv, QLinearMatMul;
                               // NULL: no contraction
  bool scales_x;               // no contraction: the sum is x less its zero point, by element
  assay_int8_operand_t x, w;
  const assay_value_t* result;  // f's value: what the last node of the affine part makes
  // Nodes whose numbers are integers, or in factor and shift.
  const assay_node_t* affine[ASSAY_INT8_AFFINE];
  size_t n_affine;
  int64_t channels;  // of the output, along `channel_axis`; 0: not known, all have one
  int channel_axis;
  // As many as channels, or 1.
  const float *factor, *shift;
  int64_t n_factor;
  const int64_t* bias;  // as many integers, which belong to the sum; NULL: none
  assay_int8_source_t sources[ASSAY_INT8_SOURCES];
  size_t n_sources;
  assay_int8_step_t steps[ASSAY_INT8_STEPS];
  size_t n_steps;
  // What is enough for most layers, with the same bits: one float32 operation on source 0 and
  // `other`, limited. other: a source; -1: none.
  bool simple;
  assay_int8_operation_t operation;
  int other;
  float low, high;
  bool quantizes;
  assay_type_t type;  // of the output: INT8, UINT8, FLOAT
  float scale, zero;  // of the output
} assay_int8_t;

// Whether a node may be part of the pointwise part: what it computes is known here. Its operands
// are looked at by assay_int8_read.
bool assay_int8_knows(const assay_node_t* node);
// Whether a node is QuantizeLinear or DequantizeLinear between float32 and 8-bit integers.
bool assay_int8_is_quantizer(const assay_node_t* node);
bool assay_int8_is_dequantizer(const assay_node_t* node);
// BatchNormalization in inference; its numbers are looked at by assay_int8_read.
bool assay_int8_is_norm(const assay_node_t* node);
// Whether a node's first output may be the sum of an int8 layer.
bool assay_int8_is_anchor(const assay_node_t* node);
// Whether a layer with the output y may read v as the float32 value that it is: one of y's shape,
// or one number for each channel of a sample, so that all backends find its elements.
bool assay_int8_takes_real(const assay_value_t* v, const assay_value_t* y);

// Reads nodes, in their graph's order, as one int8 layer; the last one's output is the layer's.
// *out stays NULL if they are none. Everything is made in the arena; the tensor of weights that
// the layer itself quantizes is the caller's: *out_weights, NULL if there is none.
assay_status_t assay_int8_read(assay_arena_t* arena, const assay_node_t* const* nodes, size_t n,
                               assay_int8_t** out, assay_tensor_t** out_weights) ASSAY_MUST_USE;
// Whether a node's own rounding is part of f (or absent: its numbers are integers), so that limits
// on rounding are those of assay_int8_limits at `result` and none before.
bool assay_int8_in_affine(const assay_int8_t* q, const assay_node_t* node);
// The guaranteed limit on |f - truth's f| where truth's f is t in channel c.
double assay_int8_limit(const assay_int8_t* q, double t, int64_t c);

// ---- the epilogue ------------------------------------------------------------------------------

// What it reads for n <= ASSAY_INT8_TILE elements, one entry each.
typedef struct assay_int8_tile {
  const float* sums;                           // fl32 of the integer sums; not read without f
  const int32_t* integers;                     // the sums themselves; NULL: `sums` has them
  const float *factor, *shift;                 // likewise
  const uint8_t* operand[ASSAY_INT8_SOURCES];  // by source: of OPERANDs
  const float* channel[ASSAY_INT8_SOURCES];    // by source: of CHANNELs and REALs
  const struct int8_quick* quick;              // a shorter way from `integers`; NULL: none
} assay_int8_tile_t;

// out: int8_t, uint8_t or float elements.
void assay_int8_epilogue(const assay_int8_t* q, const assay_int8_tile_t* t, int64_t n, void* out);
// q = sat(rne(x / scale) + zero) alone.
void assay_int8_quantize(const float* x, int64_t n, float scale, float zero, assay_type_t type,
                         void* out);
// For one OPERAND and scalars only: the output for each byte; 256 elements. False: it is not so.
bool assay_int8_table(const assay_int8_t* q, void* out);

// For reading nodes: the function of a node with its parameters; -1: none. Its operands are the
// node's first two inputs, or only the first.
int assay_int8_function(const assay_node_t* node, double p[2], bool* out_binary);
int assay_int8_function_named(const char* name);
const char* assay_int8_function_name(int function);

#endif  // ASSAY_OPS_QUANT_INT8_H_
