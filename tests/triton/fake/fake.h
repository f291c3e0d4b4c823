// A server for tests of the backend: it has the functions of Triton's API that the backend calls,
// and holds each call against what the API's documentation says: who owns what, what is called
// when, what is alive. What is broken is counted and told (fake_broken); objects stay as corpses
// until fake_reset(), so that a call with one of them is seen, while the memory that they lent is
// freed at once, for the address sanitizer.
#ifndef TESTS_TRITON_FAKE_FAKE_H_
#define TESTS_TRITON_FAKE_FAKE_H_

#include "api.h"

enum { FAKE_RANK = 8, FAKE_VALUES = 8, FAKE_PIECES = 8, FAKE_INSTANCES = 4 };

// ---- rules and faults
// ---------------------------------------------------------------------------

// How often a rule was broken since fake_open(); the first of them as text.
int fake_broken(void);
const char* fake_first_broken(void);
// Call number n of the functions that can fail fails from now on (1: the next); 0: none. Returns
// how many were made since the last such call.
int fake_fail_call(int n);
// Likewise the backend's allocations, where it is built to ask (faults.c).
int fake_fail_allocation(int n);
// The function of that name fails each time, with this code; NULL: none.
void fake_fail_function(const char* name, TRITONSERVER_Error_Code code);
// What TRITONBACKEND_ApiVersion() says.
void fake_set_version(uint32_t major, uint32_t minor);
// Nothing is alive any more: errors, messages, requests, responses. Else a rule is broken. Frees
// the corpses.
void fake_reset(void);

// ---- memory of a GPU
// ----------------------------------------------------------------------------

bool fake_gpu_open(void);  // GPU 0, for this thread; false: there is none

// ---- models
// -------------------------------------------------------------------------------------

typedef struct fake_model fake_model_t;

// Loads the backend. Its settings are those of the real server's command line; NULL: none.
// Returns NULL, or why not (valid until the next call).
const char* fake_open(const char* library, const char* settings);
void fake_close(void);

// Loads a model, as the server does: configuration (JSON), then an instance for each of its
// instance groups. completes: as without --disable-auto-complete-config.
// Returns NULL, or the error, with its code in front as in "INVALID_ARG: ..."
const char* fake_load(const char* folder, const char* config, bool completes, fake_model_t** out);
void fake_unload(fake_model_t* model);
const char* fake_config(const fake_model_t* model);  // as it is now; JSON
TRITONBACKEND_ModelInstance* fake_instance(const fake_model_t* model, size_t i);
// What was reported: requests that succeeded and failed, runs, and their rows.
typedef struct fake_statistics {
  int succeeded, failed, runs, rows;
} fake_statistics_t;
fake_statistics_t fake_statistics(const fake_model_t* model);
const char* fake_last_log(void);                      // the last line that was logged
void fake_prefer_groups(char* out, size_t capacity);  // the backend's, as "GPU,CPU"

// ---- requests
// -----------------------------------------------------------------------------------

TRITONBACKEND_Request* fake_request(void);
// An input of these bytes, which are copied, in so many buffers. memory: where they are said to be.
void fake_add_input(TRITONBACKEND_Request* request, const char* name, TRITONSERVER_DataType type,
                    uint32_t rank, const int64_t* shape, const void* data, size_t bytes,
                    uint32_t n_pieces);
// memory: GPU moves them there, if fake_gpu_open() has one; else they only say so.
void fake_place_inputs(TRITONBACKEND_Request* request, TRITONSERVER_MemoryType memory);
// The first input says that it has so many bytes, whatever its buffers have.
void fake_claim_bytes(TRITONBACKEND_Request* request, uint64_t bytes);
void fake_add_output(TRITONBACKEND_Request* request, const char* name);  // that is asked for
void fake_set_flags(TRITONBACKEND_Request* request, uint32_t flags);
// The client cancels after so many questions whether it has; 0: at once.
void fake_cancel_after(TRITONBACKEND_Request* request, int questions);
// Outputs of this request are to be put into the GPU's memory.
void fake_place_outputs(TRITONBACKEND_Request* request);
// The server has no memory for outputs of this request.
void fake_refuse_outputs(TRITONBACKEND_Request* request);

// Executes requests on an instance; afterwards each is released and answered. Returns NULL, or the
// error of a call that left them to the server, which takes them back.
const char* fake_execute(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
                         uint32_t n);

uint64_t fake_execute_ns(void);  // that this thread's last call of the backend took

// What came back; valid until fake_reset().
typedef struct fake_output {
  char name[32];
  TRITONSERVER_DataType type;
  uint32_t rank;
  int64_t shape[FAKE_RANK];
  uint64_t bytes;
  uint8_t* data;
} fake_output_t;

const char* fake_answer_error(const TRITONBACKEND_Request* request);  // NULL: success
size_t fake_answer_count(const TRITONBACKEND_Request* request);
const fake_output_t* fake_answer(const TRITONBACKEND_Request* request, const char* name);

#endif  // TESTS_TRITON_FAKE_FAKE_H_
