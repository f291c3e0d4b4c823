// What the oneDNN tactics share: the engine, descriptions of memory, and a kernel that runs one
// primitive and then a pointwise program over its result.
#ifndef ASSAY_BACKENDS_CPU_ONEDNN_H_
#define ASSAY_BACKENDS_CPU_ONEDNN_H_

#include <oneapi/dnnl/dnnl.h>

#include "backends/cpu/program.h"

// DEVICE with what failed; NULL for success.
assay_status_t dnn_check(dnnl_status_t status, const char* what);
assay_status_t dnn_engine(dnnl_engine_t* out);
dnnl_data_type_t dnn_type(assay_type_t type);  // dnnl_data_type_undef: none
bool dnn_is_float(assay_type_t type);          // float32, float16, bfloat16

// Describes an operand of these dimensions as it lies in memory. Destroyed by the caller.
assay_status_t dnn_md(int rank, const int64_t* dims, assay_type_t type, cpu_layout_t layout,
                      dnnl_memory_desc_t* out);
assay_status_t dnn_md_any(int rank, const int64_t* dims, assay_type_t type,
                          dnnl_memory_desc_t* out);

typedef struct dnn_kernel {
  cpu_kernel_t base;
  dnnl_primitive_t primitive;
  dnnl_memory_t src, weights, bias, dst, scratchpad;  // NULL: the primitive has none
  int src_input, weights_input;  // of the layer; weights -1: packed, they are in `weights`
  void* packed;                  // of weights and bias: freed with the kernel
  float* bias_data;
  cpu_program_t* program;  // NULL: none
  int64_t size;            // elements of the output
  size_t dst_offset;       // in the scratch memory: where the result lies before the program; with
                           // dst_apart only
  bool dst_apart;
} dnn_kernel_t;

// A kernel without anything yet, which reads this input of the layer.
assay_status_t dnn_new(int src_input, dnn_kernel_t** out);
// Attributes that every primitive gets: scratch memory is ours. Destroyed by the caller.
assay_status_t dnn_attr(dnnl_primitive_attr_t* out);
// Takes over `descriptor` and makes the primitive and its memory objects. weights, bias: whether it
// has them. k->src_input and the like are set by the caller.
assay_status_t dnn_finish(dnn_kernel_t* k, dnnl_primitive_desc_t descriptor, bool weights,
                          bool bias);
// Converts weights, float32 and row-major, into the order that the primitive wants.
assay_status_t dnn_pack_weights(dnn_kernel_t* k, const_dnnl_primitive_desc_t descriptor,
                                const_dnnl_memory_desc_t from_md, const float* from);
// Adds the epilogue: nodes from the second on; *out_ok tells whether that is possible. `result` is
// what the first node makes.
assay_status_t dnn_epilogue(dnn_kernel_t* k, const cpu_layer_t* l, cpu_layout_t layout,
                            bool* out_ok);
void dnn_destroy(cpu_kernel_t* k);
assay_status_t dnn_run(cpu_kernel_t* k, const void* const* in, void* const* out, void* scratch);

#endif  // ASSAY_BACKENDS_CPU_ONEDNN_H_
