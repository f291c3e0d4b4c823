// A job: one request while it is executed, and its response.
#ifndef ASSAY_TRITON_JOB_H_
#define ASSAY_TRITON_JOB_H_

#include "io.h"

// What a request has for an input of the model.
typedef struct job_input {
  TRITONBACKEND_Input* input;  // NULL: nothing
  int rank;
  const int64_t* dims;  // as the request has them
  uint64_t bytes;       // that there are, in so many buffers
  uint32_t n_buffers;
} job_input_t;

// When the run that a request was part of went on; nanoseconds of the steady clock.
typedef struct job_times {
  uint64_t exec_start, compute_start, compute_end;
} job_times_t;

typedef struct job {
  TRITONBACKEND_Request* request;    // NULL: released
  TRITONBACKEND_Response* response;  // NULL: there is none
  TRITONSERVER_Error* error;         // that the response is sent with; owned
  int64_t rows;                      // of the batch dimension; 1 where there is none
  job_input_t* inputs;               // one for each input of the model
  bool* wanted;                      // for each output of the model
  job_times_t times;
} job_t;

// Reads what a request asks for. What is wrong with it becomes the job's error.
//   inputs, wanted   room for those of the model
void job_open(job_t* job, TRITONBACKEND_Request* request, const io_t* io, int64_t max_batch);
// Whether the job waits for its run.
bool job_is_open(const job_t* job);
// Gives the job an error, which it takes over; of several it keeps the first. NULL is allowed.
void job_fail(job_t* job, TRITONSERVER_Error* error);
// Fails the job if the client has cancelled the request.
void job_look_for_cancel(job_t* job);
// Sends the response, reports statistics, releases the request: the job's end.
void job_close(job_t* job, TRITONBACKEND_ModelInstance* instance);

uint64_t job_now(void);  // the steady clock

#endif  // ASSAY_TRITON_JOB_H_
