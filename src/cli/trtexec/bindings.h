// The inputs of the runs, and what is done with the outputs of the last one.
#ifndef ASSAY_CLI_TRTEXEC_BINDINGS_H_
#define ASSAY_CLI_TRTEXEC_BINDINGS_H_

#include "cli/trtexec/job.h"

// Tensors of all inputs, packed, in the engine's order.
typedef struct trt_inputs {
  assay_tensor_t** tensors;
  size_t n;
} trt_inputs_t;

// Of --loadInputs, the others random. Says which is what.
assay_status_t trt_inputs_make(const trt_job_t* j, trt_inputs_t* out) ASSAY_MUST_USE;
void trt_inputs_deinit(trt_inputs_t* in);

// --dumpOutput, --exportOutput, --dumpRawBindingsToFile, of the last run of a context.
assay_status_t trt_tell_outputs(const trt_job_t* j, const trt_inputs_t* in,
                                assay_context_t* context) ASSAY_MUST_USE;

#endif  // ASSAY_CLI_TRTEXEC_BINDINGS_H_
