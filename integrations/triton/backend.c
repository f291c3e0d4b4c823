// The functions that Triton calls: states of the server's objects are models and instances.
#include "instance.h"

TRITONSERVER_Error* TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend) {
  uint32_t major = 0, minor = 0;
  (void)backend;
  TRITONSERVER_Error* error = TRITONBACKEND_ApiVersion(&major, &minor);
  if (error) return error;
  if (major == BACKEND_API_MAJOR && minor >= BACKEND_API_MINOR) return NULL;
  return error_new(
      TRITONSERVER_ERROR_UNSUPPORTED,
      "the server's backend API is %u.%u, and this backend needs %d.%d or a later %d.x", major,
      minor, BACKEND_API_MAJOR, BACKEND_API_MINOR, BACKEND_API_MAJOR);
}

TRITONSERVER_Error* TRITONBACKEND_Finalize(TRITONBACKEND_Backend* backend) {
  (void)backend;
  memory_close();
  return NULL;
}

// Where a configuration has no instance group: a GPU if the server has one that Assay runs on too,
// and else the CPU, whose instances share the cores: one is enough.
TRITONSERVER_Error* TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend* backend,
                                                      TRITONBACKEND_BackendAttribute* attributes) {
  (void)backend;
  TRITONSERVER_Error* error = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
      attributes, TRITONSERVER_INSTANCEGROUPKIND_GPU, 1, NULL, 0);
  if (!error)
    error = TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        attributes, TRITONSERVER_INSTANCEGROUPKIND_CPU, 1, NULL, 0);
  if (!error)
    error = TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attributes, true);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* server) {
  model_t* model = NULL;
  TRITONSERVER_Error* error = model_create(server, &model);
  if (error) return error;
  error = TRITONBACKEND_ModelSetState(server, model);
  if (error) model_destroy(model);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model* server) {
  void* state = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelState(server, &state);
  if (!error) error = TRITONBACKEND_ModelSetState(server, NULL);
  if (!error) model_destroy(state);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance* server) {
  TRITONBACKEND_Model* model = NULL;
  void* state = NULL;
  instance_t* instance = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceModel(server, &model);
  if (!error) error = TRITONBACKEND_ModelState(model, &state);
  if (!error && !state) error = error_new(TRITONSERVER_ERROR_INTERNAL, "the model is not loaded");
  if (!error) error = instance_create(server, state, &instance);
  if (error) return error;
  error = TRITONBACKEND_ModelInstanceSetState(server, instance);
  if (error) instance_destroy(instance);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance* server) {
  void* state = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceState(server, &state);
  if (!error) error = TRITONBACKEND_ModelInstanceSetState(server, NULL);
  if (!error) instance_destroy(state);
  return error;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* server,
                                                       TRITONBACKEND_Request** requests,
                                                       uint32_t count) {
  void* state = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelInstanceState(server, &state);
  if (!error && !state)
    error = error_new(TRITONSERVER_ERROR_INTERNAL, "the instance is not initialized");
  return error ? error : instance_execute(state, requests, count);
}
