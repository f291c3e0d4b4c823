// What the int8 tactics share: a kernel that makes integer sums in one way or another, and then
// the epilogue that ops/quant/int8.h defines.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_KERNEL_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_KERNEL_H_

#include "backends/cpu/tactic.h"
#include "ops/quant/int8_quick.h"

// An operand of the pointwise part. Element i of the output reads element
// i / block % outer * n + i / inner % n of it.
typedef struct int8_stream {
  int input;  // of the layer; -1: none
  int64_t block, inner, n, outer;
  bool whole;  // element i reads element i
} int8_stream_t;

typedef struct int8_kernel int8_kernel_t;
struct int8_kernel {
  assay_kernel_t base;
  assay_arena_t* arena;   // of q, where the layer brings none
  const assay_int8_t* q;  // NULL: the sums are the output, int32
  int64_t size, m;        // elements of the output; output channels, which lie together
  // Raw sums are over x, with the weights' zero points taken off; what is due for that of x is
  // taken off here: zero_x * tap_sums, by the place in the image where windows reach into padding.
  int32_t zero_x;
  int32_t* tap_sums;      // classes of places * m; NULL: nothing is due
  int32_t* class_of_row;  // by row of the output, of m elements, modulo n_rows; NULL: class 0
  int64_t n_rows;
  int zero_input;  // zero_x is this input of the layer; -1
  assay_type_t zero_type;
  int32_t* bias;          // m; NULL: none
  float *factor, *shift;  // of m channels, repeated to at least a tile more
  float* channel[ASSAY_INT8_SOURCES];
  // The shorter way of the epilogue, likewise repeated; NULL: none.
  int8_quick_t quick;
  float *quick_factor, *quick_shift;
  int8_stream_t streams[ASSAY_INT8_SOURCES];
  int x_input;  // where sums are x less its zero point; else not used
  assay_type_t x_type;
  // Makes the raw sums, in the order of the output's memory. NULL: there is no contraction.
  assay_status_t (*sum)(int8_kernel_t* k, const void* const* in, void* scratch, int32_t* out);
  size_t sum_scratch;               // bytes
  void (*close)(int8_kernel_t* k);  // of what the tactic added; NULL: nothing
};

// A contraction of a layer, as the tactics for sums see it.
typedef struct int8_job {
  const assay_sized_layer_t* l;
  const assay_int8_t* q;  // NULL: ConvInteger, MatMulInteger
  const assay_node_t* anchor;
  assay_arena_t* arena;          // of q if that was read here; goes over to the kernel
  const assay_operand_t *x, *w;  // w NULL: constant weights that the layer quantizes itself
  assay_type_t x_type, w_type;
  int64_t channels;
  // Constant weights less their zero points, in the order of ONNX; NULL: w is read in each run.
  int16_t* weights;
  int64_t n_weights;
  int rank;  // of the weights
  int64_t dims[ASSAY_KERNEL_RANK];
  int weight_axis;         // of the output channels
  bool fits_int8;          // all of `weights` do
  int32_t zero_x, zero_w;  // zero_w: of weights that are read
  int zero_input;          // zero_x is this input; -1
  assay_type_t zero_type;
} int8_job_t;

// Reads a layer with a contraction on 8-bit integers; false: it is none, or its sums may not fit
// into int32. Closed with int8_job_close.
assay_status_t int8_job_open(const assay_sized_layer_t* l, int8_job_t* out, bool* out_is);
void int8_job_close(int8_job_t* j);

// Makes what a kernel needs besides its sums; `layout` is that of the output and of the streams.
// *out_ok tells whether that is possible. The kernel takes over the job's arena.
assay_status_t int8_kernel_init(int8_kernel_t* k, int8_job_t* j, assay_layout_t layout,
                                bool* out_ok);
// The same for layers without a contraction.
assay_status_t int8_kernel_init_pointwise(int8_kernel_t* k, const assay_sized_layer_t* l,
                                          assay_layout_t layout, bool* out_ok);
// Sets the scratch memory, once sum_scratch is known.
void int8_kernel_ready(int8_kernel_t* k);
assay_status_t int8_kernel_run(assay_kernel_t* base, const void* const* in, void* const* out,
                               void* scratch);
void int8_kernel_destroy(assay_kernel_t* base);
// Elements [from, to) of the output.
void int8_kernel_finish(const int8_kernel_t* k, const void* const* in, const int32_t* sums,
                        int32_t zero_x, int64_t from, int64_t to, void* out);

// The same of exact sums, bias and zero points taken in, for `runs` runs of n elements that lie
// `step` apart from `from` on; those of sums lie one after the other. `out` is the whole output.
typedef struct int8_part {
  const int32_t* sums;
  int64_t from, n, runs, step;
} int8_part_t;
void int8_kernel_finish_part(const int8_kernel_t* k, const void* const* in, const int8_part_t* part,
                             void* out);
// What a sum begins with, by channel and up to `capacity`: the bias, less what is due for the zero
// point of x, sums[c] times. *out is freed with assay_free.
assay_status_t int8_kernel_start(const int8_kernel_t* k, int32_t zero_x, const int32_t* sums,
                                 int64_t capacity, int32_t** out);

bool int8_is(const assay_node_t* n, const char* op_type);  // of ai.onnx
bool int8_is_conv(const assay_node_t* n);                  // Conv, QLinearConv, ConvInteger
bool int8_is_product(const assay_node_t* n);               // MatMul, Gemm, QLinear-, -Integer

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_KERNEL_H_
