// What an int8 layer does to its sums (ops/quant/int8.h), for kernels: a text that they include as
// "program.h" (kernels/int8/int8_end.h), and its arguments. Numbers are arguments, so that layers
// that do the same share a text.
#ifndef ASSAY_BACKENDS_CUDA_INT8_END_H_
#define ASSAY_BACKENDS_CUDA_INT8_END_H_

#include "backends/cuda/kernels/int8_args.h"
#include "backends/cuda/tactic.h"
#include "backends/layers/int8_job.h"

typedef struct cuda_int8_end {
  const assay_int8_t* q;
  bool both;  // what it quantizes is stored, too
  int8_stream_t streams[ASSAY_INT8_SOURCES];
  int8_end_args_t args;  // but for addresses of operands
  int n_cells;           // in which kernels may look bytes up (cells.h); 0: they have none
  assay_str_t text;
} cuda_int8_end_t;

// For an output of m channels that lie together. both: q is what the layer and a quantizer behind
// it do; kernels store both outputs. *ok false: it reads operands that lie in another way. Errors:
// NO_MEMORY, DEVICE. Closed with cuda_int8_end_close in any case.
assay_status_t cuda_int8_end_open(const assay_sized_layer_t* l, const assay_int8_t* q, bool both,
                                  int64_t m, assay_layout_t layout, cuda_int8_end_t* e,
                                  bool* ok) ASSAY_MUST_USE;
void cuda_int8_end_close(cuda_int8_end_t* e);

// Says in which form the operands are read; false: one of them is read in another form already.
bool cuda_int8_end_forms(const cuda_int8_end_t* e, const assay_sized_layer_t* l,
                         assay_layout_t layout, assay_kernel_t* k);
// The arguments for a run; in: by input of the layer; real: where the float32 output goes, where
// both are stored.
void cuda_int8_end_fill(const cuda_int8_end_t* e, const assay_device_ptr_t* in,
                        assay_device_ptr_t real, int8_end_args_t* out);

// ---- within this folder -------------------------------------------------------------------------

// Whether the inverse of the output's scale is a float that kernels may multiply by.
bool cuda_int8_has_inverse(const assay_int8_t* q);

// Of the arguments those of limits and of what quantizes.
void cuda_int8_end_numbers(const assay_int8_t* q, cuda_int8_end_t* e);

// What the nodes make of an element's sources, those that are no scalars: a function of that name.
void cuda_int8_made_print(const assay_int8_t* q, const char* name, assay_str_t* out);
void cuda_int8_end_print(const cuda_int8_end_t* e, bool short_index, assay_str_t* out);

#endif  // ASSAY_BACKENDS_CUDA_INT8_END_H_
