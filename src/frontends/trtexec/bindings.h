// The inputs of the runs, and what is done with the outputs of the last one.
#ifndef ASSAY_FRONTENDS_TRTEXEC_BINDINGS_H_
#define ASSAY_FRONTENDS_TRTEXEC_BINDINGS_H_

#include "frontends/trtexec/job.h"
#include "frontends/trtexec/specs.h"

// Tensors of all inputs, packed, in the engine's order.
typedef struct trt_inputs {
  assay_tensor_t** tensors;
  size_t n;
} trt_inputs_t;

// Of a list as --loadInputs has it (NULL: none), the others random. Says which is what.
assay_status_t trt_inputs_make(const trt_job_t* j, const char* list,
                               trt_inputs_t* out) ASSAY_MUST_USE;
void trt_inputs_deinit(trt_inputs_t* in);
// Whether integers of an input are numbers wherever they go, and no index, size or count (draw.c).
assay_status_t trt_are_numbers(const assay_model_t* m, const assay_value_t* input,
                               bool* out) ASSAY_MUST_USE;

// A file of a binding's values: raw, in the binding's layout; npy or npz, in rows. flag and what
// ("input"): for messages.
typedef struct trt_source {
  const char *flag, *what, *path;
  const trt_layout_t* layout;
} trt_source_t;
assay_status_t trt_read_file(const trt_source_t* from, const assay_io_t* io, int rank,
                             const int64_t* dims, assay_tensor_t** out) ASSAY_MUST_USE;
// "Input binding for x with dimensions 1x3x4x4 and type fp32:chw4 is created."; of rows without
// the layout. which: "Input".
void trt_report_binding(const trt_job_t* j, const char* which, const assay_io_t* io, int rank,
                        const int64_t* dims);
// The layout of an input or output.
const trt_layout_t* trt_layout_of(const trt_job_t* j, const assay_io_t* io, bool output);
// The item of a list that a name is meant by: an exact one before a '*'; NULL: none.
const trt_item_t* trt_file_of(const trt_item_t* items, size_t n, const char* name);

// --loadRefOutputs against the outputs of the last run of a context, and of the pairs after the
// first one in runs of their own: fails where one is too far from its file (reference.c).
assay_status_t trt_check_reference(const trt_job_t* j, assay_context_t* context) ASSAY_MUST_USE;

// --dumpOutput, --exportOutput, --dumpRawBindingsToFile, of the last run of a context.
assay_status_t trt_report_outputs(const trt_job_t* j, const trt_inputs_t* in,
                                  assay_context_t* context) ASSAY_MUST_USE;

// --saveDebugTensors and --saveAllDebugTensors, in a run of their own (debug.c).
assay_status_t trt_save_debug(const trt_job_t* j, const trt_inputs_t* in) ASSAY_MUST_USE;

#endif  // ASSAY_FRONTENDS_TRTEXEC_BINDINGS_H_
