// A model of the repository: its settings, its inputs and outputs, and an engine for each target
// that its instances run on.
#ifndef ASSAY_TRITON_MODEL_H_
#define ASSAY_TRITON_MODEL_H_

#include <pthread.h>

#include "io.h"
#include "settings.h"

enum { MAX_TARGET = 32 };

typedef struct model_engine {
  char target[MAX_TARGET];
  assay_engine_t* engine;
  struct model_engine* next;
} model_engine_t;

typedef struct model {
  char* name;
  char* path;  // of the ONNX model or plan file
  bool is_plan;
  settings_t settings;
  io_t io;
  int64_t max_batch;  // 0: requests have no batch dimension
  pthread_mutex_t lock;
  model_engine_t* engines;  // those that were asked for; made once each, shared by instances
} model_t;

// Loads a model as its configuration says, which is completed where the server wants it.
// Errors: NOT_FOUND no file; INVALID_ARG, UNSUPPORTED a file or a configuration that is not right
TRITONSERVER_Error* model_create(TRITONBACKEND_Model* server, model_t** out);
void model_destroy(model_t* model);  // NULL is allowed

// The target of an instance, such as "cuda:1".
// Errors: INVALID_ARG the parameter `target` is for another kind of instance
TRITONSERVER_Error* model_target(const model_t* model, TRITONSERVER_InstanceGroupKind kind,
                                 int32_t device, char out[MAX_TARGET]);
// The engine for a target, borrowed, alive as long as the model.
// Threads: any; the first that asks makes it, while others wait
TRITONSERVER_Error* model_get_engine(model_t* model, const char* target, assay_engine_t** out);

#endif  // ASSAY_TRITON_MODEL_H_
