// What the oneDNN tactics share: the engine, descriptions of memory, and a kernel that runs one
// primitive and then a pointwise program over its result.
#ifndef ASSAY_BACKENDS_CPU_ONEDNN_H_
#define ASSAY_BACKENDS_CPU_ONEDNN_H_

#include <oneapi/dnnl/dnnl.h>

#include "backends/cpu/pointwise/program.h"
#include "ops/conv/window.h"

// DEVICE with what failed; NULL for success.
assay_status_t dnn_check(dnnl_status_t status, const char* what);
assay_status_t dnn_engine(dnnl_engine_t* out);
// Runs a primitive and waits for it, after a call of dnn_engine.
assay_status_t dnn_execute(dnnl_primitive_t primitive, int n, const dnnl_exec_arg_t* args,
                           const char* what);
dnnl_data_type_t dnn_type(assay_type_t type);  // dnnl_data_type_undef: none

// Describes an operand of these dimensions as it lies in memory. Destroyed by the caller.
assay_status_t dnn_md(int rank, const int64_t* dims, assay_type_t type, assay_layout_t layout,
                      dnnl_memory_desc_t* out);
assay_status_t dnn_md_any(int rank, const int64_t* dims, assay_type_t type,
                          dnnl_memory_desc_t* out);

typedef struct dnn_kernel dnn_kernel_t;
struct dnn_kernel {
  assay_kernel_t base;
  dnnl_primitive_t primitive;
  dnnl_memory_t src, weights, bias, dst, scratchpad;  // NULL: the primitive has none
  int src_input, weights_input;  // of the layer; weights -1: packed, they are in `weights`
  float* bias_data;
  cpu_program_t* program;  // NULL: none
  int64_t size;            // elements of the output
  size_t dst_offset;       // in the scratch memory: where the result lies before the program; with
                           // dst_apart only
  bool dst_apart;
  // What is done after the primitive to what it has written, still in its type; NULL: nothing.
  void (*behind)(const dnn_kernel_t* k, const void* src, void* dst);
  assay_window_t window;  // for `behind`
  int64_t channels;
};

// What a tactic builds of a layer, with `what` as it has read it, computing in `type`; *out_ok
// stays false where oneDNN has no implementation.
typedef assay_status_t dnn_build_t(dnn_kernel_t* k, const assay_sized_layer_t* l, const void* what,
                                   assay_type_t type, bool* out_ok);
// Builds a kernel that reads this input, in the type in which the layer takes it, or in float32
// where oneDNN does not compute in that on this CPU; *out stays NULL if neither can be built.
assay_status_t dnn_make(const assay_sized_layer_t* l, int src_input, dnn_build_t* build,
                        const void* what, assay_kernel_t** out);

// ---- for building, in this order

// Adds the epilogue: nodes from the second on; *out_ok tells whether that is possible.
assay_status_t dnn_epilogue(dnn_kernel_t* k, const assay_sized_layer_t* l, assay_layout_t layout,
                            bool* out_ok);
// The type that the primitive writes: float32 for a program, which takes sums unrounded.
assay_type_t dnn_dst_type(const dnn_kernel_t* k, const assay_sized_layer_t* l, assay_type_t type);
// A window as oneDNN wants it; what a stride leaves over at the end is not padding.
typedef struct dnn_window {
  dnnl_dims_t strides, kernel, dilations, before, behind;
} dnn_window_t;
void dnn_window(const assay_window_t* w, dnn_window_t* out);
// Attributes that every primitive gets: scratch memory is ours.
assay_status_t dnn_attr(dnnl_primitive_attr_t* out);
// Frees what a primitive was described with; NULL is allowed.
void dnn_free(size_t n, const dnnl_memory_desc_t* descriptions, dnnl_primitive_attr_t attr);
// The outcome of describing a primitive: *descriptor is NULL where there is no implementation.
assay_status_t dnn_described(dnnl_status_t status, const char* what,
                             dnnl_primitive_desc_t* descriptor);
// Packs a constant, whose elements lie as from_md says, into the order that the primitive wants
// (onednn_pack.c).
assay_status_t dnn_pack_weights(dnn_kernel_t* k, const_dnnl_primitive_desc_t descriptor,
                                const_dnnl_memory_desc_t from_md, const assay_operand_t* weights);
// The same for a part of the constant, from element `first` on, as a memory object.
assay_status_t dnn_packed_weights(const_dnnl_primitive_desc_t descriptor,
                                  const_dnnl_memory_desc_t from_md, const assay_operand_t* weights,
                                  int64_t first, dnnl_memory_t* out);
// Makes the primitive and its memory objects. bias NULL: it has none.
assay_status_t dnn_finish(dnn_kernel_t* k, const assay_sized_layer_t* l,
                          dnnl_primitive_desc_t descriptor, assay_type_t dst_type, bool weights,
                          const assay_operand_t* bias);

#endif  // ASSAY_BACKENDS_CPU_ONEDNN_H_
