// Inputs of requests on their way into a run. One request whose input is in one piece is read where
// it lies; everything else is copied once, into memory that the instance keeps.
#include "instance.h"
#include "strings.h"

// A piece of an input. The server is asked for memory that the engine can read.
static TRITONSERVER_Error* get_piece(const instance_t* instance, const job_input_t* in,
                                     uint32_t index, place_t* out, uint64_t* out_bytes) {
  const void* data = NULL;
  out->memory = instance->device >= 0 ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU;
  out->device = instance->device >= 0 ? instance->device : 0;
  TRITONSERVER_Error* error =
      TRITONBACKEND_InputBuffer(in->input, index, &data, out_bytes, &out->memory, &out->device);
  out->data = (void*)(uintptr_t)data;
  return error;
}

static TRITONSERVER_Error* bad_pieces(const io_value_t* v, const job_input_t* in) {
  return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                   "the buffers of input '%s' do not have the %llu bytes that it should have",
                   v->name, (unsigned long long)in->bytes);
}

// Copies an input's pieces to `to`, which has room for in->bytes.
static TRITONSERVER_Error* copy_pieces(const instance_t* instance, const io_value_t* v,
                                       const job_input_t* in, uint8_t* to) {
  uint64_t at = 0;
  for (uint32_t k = 0; k < in->n_buffers; k++) {
    place_t piece = {0};
    uint64_t bytes = 0;
    TRITONSERVER_Error* error = get_piece(instance, in, k, &piece, &bytes);
    if (!error && bytes > in->bytes - at) error = bad_pieces(v, in);
    if (!error) error = memory_copy(host_place(to + at), piece, bytes);
    if (error) return error;
    at += bytes;
  }
  return at == in->bytes ? NULL : bad_pieces(v, in);
}

// Input i of all jobs, one after another.
static TRITONSERVER_Error* copy_group(instance_t* instance, size_t i, job_t* const* group, size_t n,
                                      uint64_t* out_bytes) {
  const io_value_t* v = &instance->model->io.inputs[i];
  uint64_t bytes = 0;
  for (size_t k = 0; k < n; k++)
    if (__builtin_add_overflow(bytes, group[k]->inputs[i].bytes, &bytes)) return error_no_memory();
  TRITONSERVER_Error* error = buffer_reserve(&instance->gathered[i], bytes);
  uint8_t* to = instance->gathered[i].data;
  for (size_t k = 0; !error && k < n; k++) {
    error = copy_pieces(instance, v, &group[k]->inputs[i], to);
    to += group[k]->inputs[i].bytes;
  }
  *out_bytes = bytes;
  return error;
}

// ---- binding
// ------------------------------------------------------------------------------------

// An input's shape in the run, and where its bytes are: on the host, or on the engine's device.
typedef struct binding {
  size_t i;
  int rank;
  int64_t dims[MAX_RANK];
  place_t from;
  uint64_t bytes;
} binding_t;

static TRITONSERVER_Error* bind_plain(const instance_t* instance, const binding_t* b) {
  const io_value_t* v = &instance->model->io.inputs[b->i];
  assay_status_t status =
      b->from.memory == TRITONSERVER_MEMORY_GPU
          ? assay_context_bind_input_on_device(instance->context, b->i, v->type, b->rank, b->dims,
                                               (uint64_t)(uintptr_t)b->from.data, b->bytes)
          : assay_context_bind_input(instance->context, b->i, v->type, b->rank, b->dims,
                                     b->from.data, b->bytes);
  return error_of_status(status, "input '%s': ", v->name);
}

// Strings and optionals are tensors of Assay's own.
static TRITONSERVER_Error* bind_tensor(const instance_t* instance, const binding_t* b,
                                       bool is_given) {
  const io_value_t* v = &instance->model->io.inputs[b->i];
  assay_tensor_t *tensor = NULL, *held = NULL;
  TRITONSERVER_Error* error = NULL;
  if (is_given && v->type == ASSAY_TYPE_STRING)
    error = strings_read(v->name, b->rank, b->dims, b->from.data, b->bytes, &tensor);
  else if (is_given)
    error = error_of_status(
        assay_tensor_make(v->type, b->rank, b->dims, b->from.data, b->bytes, &tensor),
        "input '%s': ", v->name);
  if (!error && v->optional) {
    held = tensor;
    tensor = NULL;
    error = error_of_status(
        assay_tensor_make_container(ASSAY_KIND_OPTIONAL, v->type, is_given ? 1 : 0, &held, &tensor),
        "input '%s': ", v->name);
  }
  if (!error)
    error = error_of_status(assay_context_set_input(instance->context, b->i, tensor),
                            "input '%s': ", v->name);
  assay_tensor_release(tensor);
  assay_tensor_release(held);
  return error;
}

// Whether the one request's input can be read where it lies; b->from is the place then.
static TRITONSERVER_Error* find_in_place(const instance_t* instance, const job_input_t* in,
                                         bool needs_host, binding_t* b, bool* out) {
  place_t piece = {0};
  uint64_t bytes = 0;
  *out = false;
  if (in->n_buffers != 1 || in->bytes == 0) return NULL;
  TRITONSERVER_Error* error = get_piece(instance, in, 0, &piece, &bytes);
  if (error || bytes != in->bytes || !piece.data) return error;
  const bool on_device = piece.memory == TRITONSERVER_MEMORY_GPU;
  *out = !on_device || (!needs_host && piece.device == instance->device);
  b->from = piece;
  b->bytes = bytes;
  return NULL;
}

static TRITONSERVER_Error* bind_input(instance_t* instance, size_t i, job_t* const* group, size_t n,
                                      int64_t rows) {
  const io_value_t* v = &instance->model->io.inputs[i];
  const job_input_t* first = &group[0]->inputs[i];
  const bool makes_tensor = v->optional || v->type == ASSAY_TYPE_STRING;
  bool in_place = false;
  binding_t b = {.i = i, .rank = v->rank == 0 ? 0 : first->rank};
  if (!first->input) return bind_tensor(instance, &b, false);
  for (int d = 0; d < b.rank; d++) b.dims[d] = first->dims[d];
  if (instance->model->max_batch > 0 && b.rank > 0) b.dims[0] = rows;
  TRITONSERVER_Error* error =
      n == 1 ? find_in_place(instance, first, makes_tensor, &b, &in_place) : NULL;
  if (!error && !in_place) {
    error = copy_group(instance, i, group, n, &b.bytes);
    b.from = host_place(instance->gathered[i].data);
  }
  if (error) return error;
  return makes_tensor ? bind_tensor(instance, &b, true) : bind_plain(instance, &b);
}

TRITONSERVER_Error* instance_gather(instance_t* instance, job_t* const* group, size_t n,
                                    int64_t rows) {
  TRITONSERVER_Error* error = NULL;
  for (size_t i = 0; !error && i < instance->model->io.n_inputs; i++)
    error = bind_input(instance, i, group, n, rows);
  return error;
}
