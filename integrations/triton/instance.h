// An instance of a model: a context of its engine, and the memory that its requests go through.
#ifndef ASSAY_TRITON_INSTANCE_H_
#define ASSAY_TRITON_INSTANCE_H_

#include "job.h"
#include "memory.h"
#include "model.h"

// What the last run made of an output.
typedef struct result {
  assay_tensor_t* tensor;  // NULL: nothing
  buffer_t bytes;          // its elements, where several requests share them
  bool is_read;            // whether they are in it
} result_t;

typedef struct instance {
  TRITONBACKEND_ModelInstance* server;
  model_t* model;
  assay_context_t* context;
  int device;          // that the engine runs on and can read memory of; -1: the host
  buffer_t* gathered;  // one for each input
  result_t* results;   // one for each output
  buffer_t packed;     // an output's elements on their way to a device
  size_t capacity;     // of the next four, in requests
  job_t* jobs;
  job_t** group;        // those that are run together
  job_input_t* inputs;  // of all jobs
  bool* wanted;         // of all jobs
  uint64_t run_ns;      // how long the last run took
} instance_t;

TRITONSERVER_Error* instance_create(TRITONBACKEND_ModelInstance* server, model_t* model,
                                    instance_t** out);
void instance_destroy(instance_t* instance);  // NULL is allowed

// Executes requests: those that fit together in one run, the others one after another. Each gets
// its response and is released.
// Errors: UNAVAILABLE no memory; the requests are untouched then
// Threads: one call at a time
TRITONSERVER_Error* instance_execute(instance_t* instance, TRITONBACKEND_Request** requests,
                                     uint32_t n);

// ---- parts, for instance.c
// ----------------------------------------------------------------------

// Binds the inputs of a group, whose rows are put one after another (gather.c).
TRITONSERVER_Error* instance_gather(instance_t* instance, job_t* const* group, size_t n,
                                    int64_t rows);
// Takes over what the run has made, and gives it up again (scatter.c).
void instance_take_results(instance_t* instance);
void instance_drop_results(instance_t* instance);
// Puts rows first to first + job->rows, of `rows`, of the wanted outputs into the job's response.
TRITONSERVER_Error* instance_scatter(instance_t* instance, job_t* job, int64_t first, int64_t rows);

#endif  // ASSAY_TRITON_INSTANCE_H_
