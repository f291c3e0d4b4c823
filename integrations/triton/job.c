// A job: one request while it is executed, and its response.
#include "job.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

uint64_t job_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool job_is_open(const job_t* job) { return job->request && !job->error; }

void job_fail(job_t* job, TRITONSERVER_Error* error) {
  if (!error) return;
  if (job->error)
    TRITONSERVER_ErrorDelete(error);
  else
    job->error = error;
}

void job_look_for_cancel(job_t* job) {
  bool cancelled = false;
  error_log(TRITONBACKEND_RequestIsCancelled(job->request, &cancelled), "looking for a cancel");
  if (cancelled)
    job_fail(job, TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_CANCELLED, "the request was cancelled"));
}

// ---- reading a request
// --------------------------------------------------------------------------

static TRITONSERVER_Error* check_flags(const job_t* job) {
  uint32_t flags = 0;
  TRITONSERVER_Error* error = TRITONBACKEND_RequestFlags(job->request, &flags);
  if (error || !(flags & (TRITONSERVER_REQUEST_FLAG_SEQUENCE_START |
                          TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)))
    return error;
  return error_new(TRITONSERVER_ERROR_UNSUPPORTED,
                   "the request begins or ends a sequence, and this model has none: each request "
                   "is a run of its own");
}

// The model's shape with what the server adds: scalars come as [1].
static bool fits_model(const io_value_t* v, const job_input_t* in) {
  if (v->rank < 0) return true;
  if (v->rank == 0) return in->rank == 0 || (in->rank == 1 && in->dims[0] == 1);
  if (in->rank != v->rank) return false;
  for (int d = 0; d < in->rank; d++)
    if (v->dims[d] >= 0 && v->dims[d] != in->dims[d]) return false;
  return true;
}

static TRITONSERVER_Error* check_input(const io_value_t* v, const job_input_t* in,
                                       TRITONSERVER_DataType type) {
  char has[256], wants[256];
  uint64_t bytes = 0;
  if (type != v->server_type)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is %s, and the model takes %s",
                     v->name, io_config_type(type), io_config_type(v->server_type));
  if (in->rank > MAX_RANK || !fits_model(v, in))
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is %s, and the model takes %s",
                     v->name, io_shape_text(in->rank, in->dims, has, sizeof has),
                     io_shape_text(v->rank, v->dims, wants, sizeof wants));
  if (!io_bytes(in->rank, in->dims, v->element_bytes ? v->element_bytes : 1, &bytes))
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is %s, which is not a shape",
                     v->name, io_shape_text(in->rank, in->dims, has, sizeof has));
  if (v->element_bytes && bytes != in->bytes)
    return error_new(
        TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has %llu bytes, and %s of %s takes %llu",
        v->name, (unsigned long long)in->bytes, io_shape_text(in->rank, in->dims, has, sizeof has),
        io_config_type(v->server_type), (unsigned long long)bytes);
  return NULL;
}

static TRITONSERVER_Error* read_input(job_t* job, uint32_t index, const io_t* io) {
  TRITONBACKEND_Input* input = NULL;
  const char* name = NULL;
  TRITONSERVER_DataType type = TRITONSERVER_TYPE_INVALID;
  uint32_t rank = 0;
  job_input_t in = {0};
  TRITONSERVER_Error* error = TRITONBACKEND_RequestInputByIndex(job->request, index, &input);
  if (!error)
    error = TRITONBACKEND_InputProperties(input, &name, &type, &in.dims, &rank, &in.bytes,
                                          &in.n_buffers);
  if (error) return error;
  const size_t i = io_find(io->inputs, io->n_inputs, name);
  if (i == io->n_inputs)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "the model has no input '%s'", name);
  in.input = input;
  in.rank = rank <= MAX_RANK ? (int)rank : MAX_RANK + 1;
  if (in.rank > MAX_RANK)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' has %u dimensions", name, rank);
  if (job->inputs[i].input)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is given twice", name);
  job->inputs[i] = in;
  return check_input(&io->inputs[i], &in, type);
}

static TRITONSERVER_Error* read_inputs(job_t* job, const io_t* io) {
  uint32_t n = 0;
  TRITONSERVER_Error* error = TRITONBACKEND_RequestInputCount(job->request, &n);
  memset(job->inputs, 0, io->n_inputs * sizeof *job->inputs);
  for (uint32_t k = 0; !error && k < n; k++) error = read_input(job, k, io);
  for (size_t i = 0; !error && i < io->n_inputs; i++)
    if (!job->inputs[i].input && !io->inputs[i].optional)
      error =
          error_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' is missing", io->inputs[i].name);
  return error;
}

// The rows of a batch, of which all inputs have as many.
static TRITONSERVER_Error* read_rows(job_t* job, const io_t* io, int64_t max_batch) {
  const io_value_t* first = NULL;
  job->rows = 1;
  if (max_batch == 0) return NULL;
  for (size_t i = 0; i < io->n_inputs; i++) {
    const job_input_t* in = &job->inputs[i];
    if (!in->input) continue;
    const int64_t rows = in->rank > 0 ? in->dims[0] : 0;
    if (first && rows != job->rows)
      return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "input '%s' has a batch of %lld, and input '%s' one of %lld",
                       io->inputs[i].name, (long long)rows, first->name, (long long)job->rows);
    first = &io->inputs[i];
    job->rows = rows;
  }
  if (job->rows < 1 || job->rows > max_batch)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "the request has a batch of %lld, and max_batch_size is %lld",
                     (long long)job->rows, (long long)max_batch);
  return NULL;
}

// Which outputs are asked for; none is all.
static TRITONSERVER_Error* read_wanted(job_t* job, const io_t* io) {
  uint32_t n = 0;
  TRITONSERVER_Error* error = TRITONBACKEND_RequestOutputCount(job->request, &n);
  memset(job->wanted, n == 0, io->n_outputs * sizeof *job->wanted);
  for (uint32_t k = 0; !error && k < n; k++) {
    const char* name = NULL;
    error = TRITONBACKEND_RequestOutputName(job->request, k, &name);
    if (error) break;
    const size_t o = io_find(io->outputs, io->n_outputs, name);
    if (o == io->n_outputs)
      error = error_new(TRITONSERVER_ERROR_INVALID_ARG, "the model has no output '%s'", name);
    else
      job->wanted[o] = true;
  }
  return error;
}

void job_open(job_t* job, TRITONBACKEND_Request* request, const io_t* io, int64_t max_batch) {
  job->request = request;
  job->response = NULL;
  job->times = (job_times_t){0};
  job->error = TRITONBACKEND_ResponseNew(&job->response, request);
  if (job->error) {
    log_line(TRITONSERVER_LOG_ERROR, "a request gets no response: %s",
             TRITONSERVER_ErrorMessage(job->error));
    job->response = NULL;
  }
  if (!job->error) job->error = check_flags(job);
  if (!job->error) job->error = read_inputs(job, io);
  if (!job->error) job->error = read_rows(job, io, max_batch);
  if (!job->error) job->error = read_wanted(job, io);
}

// ---- the end of a request
// -----------------------------------------------------------------------

void job_close(job_t* job, TRITONBACKEND_ModelInstance* instance) {
  const bool success = !job->error;
  const uint64_t now = job_now();
  if (job->response)
    error_log(
        TRITONBACKEND_ResponseSend(job->response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, job->error),
        "sending a response");
  error_log(TRITONBACKEND_ModelInstanceReportStatistics(
                instance, job->request, success, job->times.exec_start, job->times.compute_start,
                job->times.compute_end, now),
            "reporting statistics");
  error_log(TRITONBACKEND_RequestRelease(job->request, TRITONSERVER_REQUEST_RELEASE_ALL),
            "releasing a request");
  if (job->error) TRITONSERVER_ErrorDelete(job->error);
  job->request = NULL;
  job->response = NULL;
  job->error = NULL;
}
