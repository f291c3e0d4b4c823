// What the parts of the server for tests share.
#ifndef TESTS_TRITON_FAKE_INSIDE_H_
#define TESTS_TRITON_FAKE_INSIDE_H_

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

// What every object begins with.
typedef struct object {
  struct object* next;  // of all that were made
  const char* kind;
  bool alive;
} object_t;

struct TRITONSERVER_Error {
  object_t object;
  TRITONSERVER_Error_Code code;
  char* message;
};

struct TRITONSERVER_Message {
  object_t object;
  char* text;
  size_t bytes;
  bool is_lent;  // the server's: the backend must not delete it
};

struct TRITONBACKEND_Backend {
  object_t object;
  TRITONSERVER_Message* config;
};

struct TRITONBACKEND_BackendAttribute {
  object_t object;
  char groups[64];
  bool parallel;
};

struct TRITONBACKEND_Model {
  object_t object;
  TRITONBACKEND_Backend* backend;
  const char* folder;
  char* config;
  bool completes, is_initializing;
  void* state;
  pthread_mutex_t lock;
  fake_statistics_t statistics;
};

struct TRITONBACKEND_ModelInstance {
  object_t object;
  TRITONBACKEND_Model* model;
  TRITONSERVER_InstanceGroupKind kind;
  int32_t device;
  void* state;
};

struct TRITONBACKEND_Input {
  TRITONBACKEND_Request* request;
  char name[32];
  TRITONSERVER_DataType type;
  uint32_t rank;
  int64_t* shape;
  uint64_t bytes;
  uint32_t n_pieces;
  uint8_t* pieces[FAKE_PIECES];
  uint64_t piece_bytes[FAKE_PIECES];
  TRITONSERVER_MemoryType memory;
  bool is_on_gpu;  // the pieces are the GPU's indeed
};

struct TRITONBACKEND_Output {
  TRITONBACKEND_Response* response;
  bool has_buffer;
  fake_output_t made;
};

struct TRITONBACKEND_Response {
  object_t object;
  TRITONBACKEND_Request* request;
  size_t n;
  TRITONBACKEND_Output outputs[FAKE_VALUES];
};

struct TRITONBACKEND_Request {
  object_t object;
  uint32_t flags;
  size_t n_inputs, n_wanted;
  TRITONBACKEND_Input inputs[FAKE_VALUES];
  char wanted[FAKE_VALUES][32];
  int cancel_after;  // -1: never
  bool refuses_outputs, outputs_on_gpu;
  bool is_executing, is_reported;
  int n_answers;
  char* error;
  size_t n_outputs;
  fake_output_t outputs[FAKE_VALUES];
};

void* fake_new(size_t size, const char* kind);  // zeroed, alive
// Whether an object is what a function takes, and alive; else a rule is broken.
bool fake_is(const void* object, const char* kind, const char* function);
void fake_break(const char* format, ...) __attribute__((format(printf, 1, 2)));
// NULL, or the fault that this call of a function is to have.
TRITONSERVER_Error* fake_fault(const char* function);
int fake_faults(void);  // by fake_fail_call(), so far
// "INVALID_ARG: text" of an error, which is deleted; NULL of NULL. Valid until the next call.
const char* fake_take_error(TRITONSERVER_Error* error);
TRITONSERVER_Message* fake_message(const char* text, bool is_lent);
void fake_forgive(void);  // what was broken is forgotten
void fake_free_request(TRITONBACKEND_Request* request);

bool fake_gpu_is_open(void);
void* fake_gpu_alloc(size_t bytes);
void fake_gpu_free(void* at);
void fake_gpu_write(void* to, const void* from, size_t bytes);
void fake_gpu_read(void* to, const void* from, size_t bytes);

#define FAULT                                         \
  do {                                                \
    TRITONSERVER_Error* fault = fake_fault(__func__); \
    if (fault) return fault;                          \
  } while (0)
// The object of a call, and faults that were asked for.
#define CHECK(object, kind)                                                          \
  do {                                                                               \
    if (!fake_is(object, kind, __func__))                                            \
      return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "a rule is broken"); \
    FAULT;                                                                           \
  } while (0)

#endif  // TESTS_TRITON_FAKE_INSIDE_H_
