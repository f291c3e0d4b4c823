// What the int8 tactics share: a kernel that makes integer sums in one way or another, and then
// the epilogue that ops/quant/int8.h defines.
#ifndef ASSAY_BACKENDS_CPU_INT8_INT8_KERNEL_H_
#define ASSAY_BACKENDS_CPU_INT8_INT8_KERNEL_H_

#include "backends/cpu/tactic.h"
#include "backends/layers/int8_job.h"
#include "ops/quant/int8_quick.h"

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
// The same into room that is there: for another zero point.
void int8_kernel_restart(const int8_kernel_t* k, int32_t zero_x, const int32_t* sums, int32_t* out);
// The zero point of x, which may be a value of the run.
int32_t int8_kernel_zero(const int8_kernel_t* k, const void* const* in);

#endif  // ASSAY_BACKENDS_CPU_INT8_INT8_KERNEL_H_
