// Outputs of a run on their way into responses.
#include "instance.h"
#include "strings.h"

void instance_take_results(instance_t* instance) {
  for (size_t o = 0; o < instance->model->io.n_outputs; o++) {
    instance->results[o].tensor = assay_context_output(instance->context, o);
    instance->results[o].is_read = false;
  }
}

void instance_drop_results(instance_t* instance) {
  for (size_t o = 0; o < instance->model->io.n_outputs; o++) {
    assay_tensor_release(instance->results[o].tensor);
    instance->results[o].tensor = NULL;
  }
}

// The part of an output that belongs to a job: elements, and their shape.
typedef struct part {
  const io_value_t* value;
  result_t* result;
  int rank;
  int64_t dims[MAX_RANK];
  int64_t first, n;  // elements
  bool is_whole;
} part_t;

static TRITONSERVER_Error* find_part(const instance_t* instance, size_t o, const job_t* job,
                                     int64_t first, int64_t rows, part_t* out) {
  char shape[256];
  const io_value_t* v = &instance->model->io.outputs[o];
  const assay_tensor_t* t = instance->results[o].tensor;
  if (!t || assay_tensor_kind(t) != ASSAY_KIND_TENSOR || assay_tensor_type(t) != v->type ||
      assay_tensor_rank(t) > MAX_RANK)
    return error_new(TRITONSERVER_ERROR_UNSUPPORTED, "the run left output '%s' empty", v->name);
  const int rank = assay_tensor_rank(t);
  const int64_t* dims = assay_tensor_dims(t);
  const bool batches = instance->model->max_batch > 0;
  if (batches && (rank == 0 || dims[0] != rows))
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "output '%s' is %s for a batch of %lld: the model does not take batches; set "
                     "max_batch_size to 0",
                     v->name, io_shape_text(rank, dims, shape, sizeof shape), (long long)rows);
  *out = (part_t){.value = v, .result = &instance->results[o], .rank = rank, .n = 1};
  for (int d = 0; d < rank; d++) out->dims[d] = dims[d];
  if (batches) out->dims[0] = job->rows;
  for (int d = 0; d < rank; d++) out->n *= out->dims[d];
  out->first = batches ? out->n / job->rows * first : 0;
  out->is_whole = !batches || job->rows == rows;
  if (rank == 0) out->dims[out->rank++] = 1;  // the server has no scalars
  return NULL;
}

// Puts the part's elements to `to`, on the host.
static TRITONSERVER_Error* write_part(const part_t* p, uint8_t* to, uint64_t bytes) {
  result_t* r = p->result;
  const size_t all = assay_tensor_bytes(r->tensor);
  if (p->value->type == ASSAY_TYPE_STRING)
    return strings_write(r->tensor, p->first, p->n, to), NULL;
  if (p->is_whole)
    return error_of_status(assay_tensor_read(r->tensor, to, bytes),
                           "output '%s': ", p->value->name);
  TRITONSERVER_Error* error = r->is_read ? NULL : buffer_reserve(&r->bytes, all);
  if (!error && !r->is_read)
    error = error_of_status(assay_tensor_read(r->tensor, r->bytes.data, all),
                            "output '%s': ", p->value->name);
  r->is_read = !error;
  if (error) return error;
  const uint8_t* from = r->bytes.data + (size_t)p->first * p->value->element_bytes;
  return memory_copy(host_place(to), host_place(from), bytes);
}

// Writes the part to where the server wants it, by way of the host.
static TRITONSERVER_Error* deliver(instance_t* instance, const part_t* p, place_t to,
                                   uint64_t bytes) {
  if (to.memory != TRITONSERVER_MEMORY_GPU) return write_part(p, to.data, bytes);
  TRITONSERVER_Error* error = buffer_reserve(&instance->packed, bytes);
  if (!error) error = write_part(p, instance->packed.data, bytes);
  return error ? error : memory_copy(to, host_place(instance->packed.data), bytes);
}

static TRITONSERVER_Error* scatter_output(instance_t* instance, size_t o, job_t* job, int64_t first,
                                          int64_t rows) {
  part_t p;
  place_t to = host_place(NULL);
  TRITONBACKEND_Output* output = NULL;
  uint64_t bytes = 0;
  TRITONSERVER_Error* error = find_part(instance, o, job, first, rows, &p);
  if (!error && p.value->type == ASSAY_TYPE_STRING)
    error = strings_size(p.result->tensor, p.first, p.n, &bytes);
  else if (!error)
    bytes = (uint64_t)p.n * p.value->element_bytes;
  if (!error)
    error = TRITONBACKEND_ResponseOutput(job->response, &output, p.value->name,
                                         p.value->server_type, p.dims, (uint32_t)p.rank);
  if (!error) error = TRITONBACKEND_OutputBuffer(output, &to.data, bytes, &to.memory, &to.device);
  if (error || bytes == 0) return error;
  if (!to.data)
    return error_new(TRITONSERVER_ERROR_INTERNAL, "output '%s' got no buffer", p.value->name);
  return deliver(instance, &p, to, bytes);
}

TRITONSERVER_Error* instance_scatter(instance_t* instance, job_t* job, int64_t first,
                                     int64_t rows) {
  TRITONSERVER_Error* error = NULL;
  for (size_t o = 0; !error && o < instance->model->io.n_outputs; o++)
    if (job->wanted[o]) error = scatter_output(instance, o, job, first, rows);
  return error;
}
