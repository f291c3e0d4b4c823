// Requests and responses of the server.
#include "inside.h"

// ---- made by a test
// -----------------------------------------------------------------------------

TRITONBACKEND_Request* fake_request(void) {
  TRITONBACKEND_Request* request = fake_new(sizeof *request, "request");
  request->cancel_after = -1;
  return request;
}

void fake_add_input(TRITONBACKEND_Request* request, const char* name, TRITONSERVER_DataType type,
                    uint32_t rank, const int64_t* shape, const void* data, size_t bytes,
                    uint32_t n_pieces) {
  TRITONBACKEND_Input* input = &request->inputs[request->n_inputs++];
  input->request = request;
  snprintf(input->name, sizeof input->name, "%s", name);
  input->type = type;
  input->rank = rank;
  input->shape = malloc((rank + 1) * sizeof *shape);
  if (rank) memcpy(input->shape, shape, rank * sizeof *shape);
  input->bytes = bytes;
  input->n_pieces = n_pieces;
  size_t at = 0;
  for (uint32_t k = 0; k < n_pieces; k++) {
    const size_t end = bytes * (k + 1) / n_pieces;
    input->piece_bytes[k] = end - at;
    input->pieces[k] = malloc(end - at);  // as large as it is: reading behind it is found
    if (end > at) memcpy(input->pieces[k], (const uint8_t*)data + at, end - at);
    at = end;
  }
}

static void move_to_gpu(TRITONBACKEND_Input* input) {
  for (uint32_t k = 0; k < input->n_pieces; k++) {
    uint8_t* at = fake_gpu_alloc(input->piece_bytes[k]);
    fake_gpu_write(at, input->pieces[k], input->piece_bytes[k]);
    free(input->pieces[k]);
    input->pieces[k] = at;
  }
  input->is_on_gpu = true;
}

void fake_place_inputs(TRITONBACKEND_Request* request, TRITONSERVER_MemoryType memory) {
  for (size_t i = 0; i < request->n_inputs; i++) {
    request->inputs[i].memory = memory;
    if (memory == TRITONSERVER_MEMORY_GPU && fake_gpu_is_open()) move_to_gpu(&request->inputs[i]);
  }
}

void fake_place_outputs(TRITONBACKEND_Request* request) { request->outputs_on_gpu = true; }

void fake_claim_bytes(TRITONBACKEND_Request* request, uint64_t bytes) {
  request->inputs[0].bytes = bytes;
}

void fake_add_output(TRITONBACKEND_Request* request, const char* name) {
  snprintf(request->wanted[request->n_wanted++], sizeof *request->wanted, "%s", name);
}

void fake_set_flags(TRITONBACKEND_Request* request, uint32_t flags) { request->flags = flags; }
void fake_cancel_after(TRITONBACKEND_Request* request, int n) { request->cancel_after = n; }
void fake_refuse_outputs(TRITONBACKEND_Request* request) { request->refuses_outputs = true; }

static void free_inputs(TRITONBACKEND_Request* request) {
  for (size_t i = 0; i < request->n_inputs; i++) {
    TRITONBACKEND_Input* input = &request->inputs[i];
    for (uint32_t k = 0; k < input->n_pieces; k++)
      if (input->is_on_gpu)
        fake_gpu_free(input->pieces[k]);
      else
        free(input->pieces[k]);
    free(input->shape);
    input->n_pieces = 0;
    input->shape = NULL;
  }
}

void fake_free_request(TRITONBACKEND_Request* request) {
  free_inputs(request);
  for (size_t i = 0; i < request->n_outputs; i++) free(request->outputs[i].data);
  free(request->error);
}

const char* fake_answer_error(const TRITONBACKEND_Request* request) { return request->error; }
size_t fake_answer_count(const TRITONBACKEND_Request* request) { return request->n_outputs; }

const fake_output_t* fake_answer(const TRITONBACKEND_Request* request, const char* name) {
  for (size_t i = 0; i < request->n_outputs; i++)
    if (strcmp(request->outputs[i].name, name) == 0) return &request->outputs[i];
  return NULL;
}

// ---- read by the backend
// ------------------------------------------------------------------------

TRITONSERVER_Error* TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request,
                                                     bool* cancelled) {
  CHECK(request, "request");
  *cancelled = request->cancel_after == 0;
  if (request->cancel_after > 0) request->cancel_after--;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_RequestFlags(TRITONBACKEND_Request* request, uint32_t* flags) {
  CHECK(request, "request");
  *flags = request->flags;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request* request,
                                                    uint32_t* count) {
  CHECK(request, "request");
  *count = (uint32_t)request->n_inputs;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request* request,
                                                      uint32_t index, TRITONBACKEND_Input** input) {
  CHECK(request, "request");
  if (index >= request->n_inputs) {
    fake_break("input %u of %zu is asked for", index, request->n_inputs);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no such input");
  }
  *input = &request->inputs[index];
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request,
                                                     uint32_t* count) {
  CHECK(request, "request");
  *count = (uint32_t)request->n_wanted;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request, uint32_t index,
                                                    const char** name) {
  CHECK(request, "request");
  if (index >= request->n_wanted) {
    fake_break("output name %u of %zu is asked for", index, request->n_wanted);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no such output");
  }
  *name = request->wanted[index];
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name,
                                                  TRITONSERVER_DataType* type,
                                                  const int64_t** shape, uint32_t* rank,
                                                  uint64_t* bytes, uint32_t* buffers) {
  CHECK(input->request, "request");
  if (name) *name = input->name;
  if (type) *type = input->type;
  if (shape) *shape = input->shape;
  if (rank) *rank = input->rank;
  if (bytes) *bytes = input->bytes;
  if (buffers) *buffers = input->n_pieces;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, uint32_t index,
                                              const void** buffer, uint64_t* bytes,
                                              TRITONSERVER_MemoryType* memory, int64_t* device) {
  CHECK(input->request, "request");
  if (index >= input->n_pieces) {
    fake_break("buffer %u of %u is asked for", index, input->n_pieces);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "no such buffer");
  }
  if (*memory > TRITONSERVER_MEMORY_GPU) fake_break("memory of type %d is preferred", (int)*memory);
  *buffer = input->pieces[index];
  *bytes = input->piece_bytes[index];
  *memory = input->memory;
  *device = 0;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags) {
  CHECK(request, "request");
  if (flags != TRITONSERVER_REQUEST_RELEASE_ALL) fake_break("a request is released by %u", flags);
  if (!request->is_executing) fake_break("a request is released that was not the backend's");
  if (!request->is_reported) fake_break("a request is released before it is reported");
  request->object.alive = false;
  free_inputs(request);
  return NULL;
}

// ---- responses
// ----------------------------------------------------------------------------------

TRITONSERVER_Error* TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response,
                                              TRITONBACKEND_Request* request) {
  CHECK(request, "request");
  *response = fake_new(sizeof **response, "response");
  (*response)->request = request;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response,
                                                 TRITONBACKEND_Output** output, const char* name,
                                                 TRITONSERVER_DataType type, const int64_t* shape,
                                                 uint32_t rank) {
  CHECK(response, "response");
  if (response->n == FAKE_VALUES || rank > FAKE_RANK) {
    fake_break("an output too many, or one of rank %u", rank);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "too many");
  }
  TRITONBACKEND_Output* out = &response->outputs[response->n++];
  out->response = response;
  out->made.type = type;
  out->made.rank = rank;
  snprintf(out->made.name, sizeof out->made.name, "%s", name);
  memcpy(out->made.shape, shape, rank * sizeof *shape);
  for (size_t i = 0; i + 1 < response->n; i++)
    if (strcmp(response->outputs[i].made.name, name) == 0) fake_break("output '%s' twice", name);
  *output = out;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer,
                                               uint64_t bytes, TRITONSERVER_MemoryType* memory,
                                               int64_t* device) {
  CHECK(output->response, "response");
  if (output->has_buffer) fake_break("an output gets its buffer twice");
  if (output->response->request->refuses_outputs)
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no memory for outputs");
  output->has_buffer = true;
  const bool on_gpu = output->response->request->outputs_on_gpu;
  output->made.bytes = bytes;
  output->made.data = on_gpu ? fake_gpu_alloc(bytes) : malloc(bytes ? bytes : 1);
  if (!on_gpu) memset(output->made.data, 0xa5, bytes);
  *buffer = bytes ? output->made.data : NULL;
  // Not what was asked for, which is allowed.
  *memory = on_gpu ? TRITONSERVER_MEMORY_GPU : TRITONSERVER_MEMORY_CPU_PINNED;
  *device = 0;
  return NULL;
}

static size_t size_of(TRITONSERVER_DataType type) {
  static const size_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2};
  return sizes[type];
}

// An output that is sent has a buffer, of the bytes that its shape takes.
static void check_output(const TRITONBACKEND_Output* output) {
  const fake_output_t* made = &output->made;
  uint64_t bytes = size_of(made->type);
  for (uint32_t d = 0; d < made->rank; d++) bytes *= (uint64_t)made->shape[d];
  if (!output->has_buffer) fake_break("output '%s' is sent without a buffer", made->name);
  if (size_of(made->type) && bytes != made->bytes)
    fake_break("output '%s' has %llu bytes instead of %llu", made->name,
               (unsigned long long)made->bytes, (unsigned long long)bytes);
}

// The server takes the response, whatever it returns. The buffers go to the client: they move, so
// that writing into them afterwards is found.
TRITONSERVER_Error* TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, uint32_t flags,
                                               TRITONSERVER_Error* error) {
  if (!fake_is(response, "response", __func__)) return NULL;
  TRITONBACKEND_Request* request = response->request;
  if (!fake_is(request, "request", __func__)) return NULL;
  if (flags != TRITONSERVER_RESPONSE_COMPLETE_FINAL) fake_break("a response has flags %u", flags);
  if (request->n_answers++) fake_break("a request is answered twice");
  response->object.alive = false;
  for (size_t i = 0; i < response->n; i++) {
    fake_output_t* made = &response->outputs[i].made;
    if (!error) check_output(&response->outputs[i]);
    if (!error && made->data) {
      fake_output_t* out = &request->outputs[request->n_outputs++];
      *out = *made;
      out->data = malloc(made->bytes + 1);
      if (request->outputs_on_gpu)
        fake_gpu_read(out->data, made->data, made->bytes);
      else
        memcpy(out->data, made->data, made->bytes);
    }
    if (request->outputs_on_gpu && made->data)
      fake_gpu_free(made->data);
    else
      free(made->data);
  }
  if (error && fake_is(error, "error", __func__)) {
    char text[2048];
    snprintf(text, sizeof text, "%d: %s", (int)error->code, error->message);
    request->error = strdup(text);
  }
  FAULT;
  return NULL;
}
