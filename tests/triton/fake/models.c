// Models and instances of the server, and what it does with them.
#include <dlfcn.h>
#include <jansson.h>
#include <time.h>

#include "inside.h"

typedef TRITONSERVER_Error* backend_fn_t(TRITONBACKEND_Backend* backend);
typedef TRITONSERVER_Error* attribute_fn_t(TRITONBACKEND_Backend* backend,
                                           TRITONBACKEND_BackendAttribute* attribute);
typedef TRITONSERVER_Error* model_fn_t(TRITONBACKEND_Model* model);
typedef TRITONSERVER_Error* instance_fn_t(TRITONBACKEND_ModelInstance* instance);
typedef TRITONSERVER_Error* execute_fn_t(TRITONBACKEND_ModelInstance* instance,
                                         TRITONBACKEND_Request** requests, uint32_t n);

static struct {
  void* library;
  backend_fn_t *initialize, *finalize;
  attribute_fn_t* attributes;
  model_fn_t *model_initialize, *model_finalize;
  instance_fn_t *instance_initialize, *instance_finalize;
  execute_fn_t* execute;
  TRITONBACKEND_Backend* backend;
  char groups[64];
} loaded;

struct fake_model {
  TRITONBACKEND_Model* model;
  size_t n;
  TRITONBACKEND_ModelInstance* instances[FAKE_INSTANCES];
};

// ---- the backend
// --------------------------------------------------------------------------------

static void find(const char* name, void* out) {
  void* symbol = dlsym(loaded.library, name);
  if (!symbol) fake_break("the library has no %s", name);
  memcpy(out, &symbol, sizeof symbol);
}

static void find_all(void) {
  find("TRITONBACKEND_Initialize", &loaded.initialize);
  find("TRITONBACKEND_Finalize", &loaded.finalize);
  find("TRITONBACKEND_GetBackendAttribute", &loaded.attributes);
  find("TRITONBACKEND_ModelInitialize", &loaded.model_initialize);
  find("TRITONBACKEND_ModelFinalize", &loaded.model_finalize);
  find("TRITONBACKEND_ModelInstanceInitialize", &loaded.instance_initialize);
  find("TRITONBACKEND_ModelInstanceFinalize", &loaded.instance_finalize);
  find("TRITONBACKEND_ModelInstanceExecute", &loaded.execute);
}

const char* fake_open(const char* library, const char* settings) {
  fake_forgive();
  loaded.library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!loaded.library) return dlerror();
  find_all();
  loaded.backend = fake_new(sizeof *loaded.backend, "backend");
  loaded.backend->config = fake_message(settings ? settings : "{\"cmdline\":{}}", true);
  const char* error = fake_take_error(loaded.initialize(loaded.backend));
  if (error) return fake_close(), error;
  TRITONBACKEND_BackendAttribute* attribute = fake_new(sizeof *attribute, "attribute");
  error = fake_take_error(loaded.attributes(loaded.backend, attribute));
  snprintf(loaded.groups, sizeof loaded.groups, "%s", attribute->groups);
  attribute->object.alive = false;
  return error;
}

// The library stays in the process: a leak that is found later has its names.
void fake_close(void) {
  const char* error = fake_take_error(loaded.finalize(loaded.backend));
  if (error) fake_break("TRITONBACKEND_Finalize: %s", error);
  loaded.backend->config->object.alive = false;
  loaded.backend->object.alive = false;
  loaded.backend = NULL;
}

void fake_prefer_groups(char* out, size_t capacity) {
  snprintf(out, capacity, "%s", loaded.groups);
}

TRITONSERVER_Error* TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend* backend,
                                                TRITONSERVER_Message** config) {
  CHECK(backend, "backend");
  *config = backend->config;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute* attributes, TRITONSERVER_InstanceGroupKind kind, uint64_t count,
    const uint64_t* devices, uint64_t n_devices) {
  CHECK(attributes, "attribute");
  if (!devices && n_devices)
    fake_break("%llu devices, and none is named", (unsigned long long)n_devices);
  if (count > 64) fake_break("%llu instances by default", (unsigned long long)count);
  strcat(attributes->groups, *attributes->groups ? "," : "");
  strcat(attributes->groups, kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? "GPU" : "CPU");
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
    TRITONBACKEND_BackendAttribute* attributes, bool enabled) {
  CHECK(attributes, "attribute");
  attributes->parallel = enabled;
  return NULL;
}

// ---- what the backend asks of a model
// -----------------------------------------------------------

TRITONSERVER_Error* TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  CHECK(model, "model");
  *name = "tested";
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* number) {
  CHECK(model, "model");
  *number = 1;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model,
                                                  TRITONBACKEND_ArtifactType* type,
                                                  const char** folder) {
  CHECK(model, "model");
  *type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  *folder = model->folder;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t number,
                                              TRITONSERVER_Message** config) {
  CHECK(model, "model");
  if (number != 1)
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "there is only version 1");
  *config = fake_message(model->config, false);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model,
                                                          bool* wanted) {
  CHECK(model, "model");
  *wanted = model->completes;
  return NULL;
}

// Takes over what a backend may change; a choice of scheduling that was made stays.
static void update(json_t* config, const json_t* changed) {
  static const char* const taken[] = {"max_batch_size", "input", "output"};
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    json_t* value = json_object_get(changed, taken[i]);
    if (value) json_object_set(config, taken[i], value);
  }
  json_t* batching = json_object_get(changed, "dynamic_batching");
  if (batching) json_object_set(config, "dynamic_batching", batching);
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, uint32_t number,
                                                 TRITONSERVER_Message* config) {
  CHECK(model, "model");
  if (!fake_is(config, "message", __func__)) return NULL;
  if (!model->is_initializing)
    fake_break("a configuration is set after TRITONBACKEND_ModelInitialize");
  if (!model->completes) fake_break("a configuration is set that should not be completed");
  if (number != 1)
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG, "there is only version 1");
  json_t* old = json_loads(model->config, 0, NULL);
  json_t* changed = json_loadb(config->text, config->bytes, 0, NULL);
  update(old, changed);
  free(model->config);
  model->config = json_dumps(old, JSON_COMPACT);
  json_decref(old);
  json_decref(changed);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelBackend(TRITONBACKEND_Model* model,
                                               TRITONBACKEND_Backend** backend) {
  CHECK(model, "model");
  *backend = model->backend;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  CHECK(model, "model");
  *state = model->state;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  CHECK(model, "model");
  model->state = state;
  return NULL;
}

// ---- what it asks of an instance
// ----------------------------------------------------------------

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance,
                                                    const char** name) {
  CHECK(instance, "instance");
  *name = "tested_0";
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance,
                                                    TRITONSERVER_InstanceGroupKind* kind) {
  CHECK(instance, "instance");
  *kind = instance->kind;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance* instance,
                                                        int32_t* device) {
  CHECK(instance, "instance");
  *device = instance->device;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance,
                                                     TRITONBACKEND_Model** model) {
  CHECK(instance, "instance");
  *model = instance->model;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance,
                                                     void** state) {
  CHECK(instance, "instance");
  *state = instance->state;
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance,
                                                        void* state) {
  CHECK(instance, "instance");
  instance->state = state;
  return NULL;
}

// ---- loading and unloading
// ----------------------------------------------------------------------

static TRITONSERVER_InstanceGroupKind kind_of(const json_t* group) {
  const char* kind = json_string_value(json_object_get(group, "kind"));
  if (kind && strcmp(kind, "KIND_GPU") == 0) return TRITONSERVER_INSTANCEGROUPKIND_GPU;
  if (kind && strcmp(kind, "KIND_MODEL") == 0) return TRITONSERVER_INSTANCEGROUPKIND_MODEL;
  return TRITONSERVER_INSTANCEGROUPKIND_CPU;
}

// An instance for each entry of the groups; one on the CPU where there are none.
static const char* add_instance(fake_model_t* model, const json_t* group) {
  TRITONBACKEND_ModelInstance* instance = fake_new(sizeof *instance, "instance");
  instance->model = model->model;
  instance->kind = kind_of(group);
  instance->device = (int32_t)json_integer_value(json_array_get(json_object_get(group, "gpus"), 0));
  model->instances[model->n++] = instance;
  return fake_take_error(loaded.instance_initialize(instance));
}

static const char* add_instances(fake_model_t* model) {
  json_t* config = json_loads(model->model->config, 0, NULL);
  const json_t* groups = json_object_get(config, "instance_group");
  const char* error = NULL;
  if (json_array_size(groups) == 0) error = add_instance(model, NULL);
  for (size_t i = 0; !error && i < json_array_size(groups); i++)
    error = add_instance(model, json_array_get(groups, i));
  json_decref(config);
  return error;
}

const char* fake_load(const char* folder, const char* config, bool completes, fake_model_t** out) {
  fake_model_t* model = calloc(1, sizeof *model);
  static char text[2048];
  model->model = fake_new(sizeof *model->model, "model");
  model->model->backend = loaded.backend;
  model->model->folder = folder;
  model->model->config = strdup(config);
  model->model->completes = completes;
  pthread_mutex_init(&model->model->lock, NULL);
  model->model->is_initializing = true;
  const char* error = fake_take_error(loaded.model_initialize(model->model));
  model->model->is_initializing = false;
  if (!error) error = add_instances(model);
  if (!error) return *out = model, NULL;
  snprintf(text, sizeof text, "%s", error);
  fake_unload(model);
  return text;
}

// What was made unfinished by a fault that was asked for is finished by a second call.
static void finalize_instance(TRITONBACKEND_ModelInstance* instance) {
  const int faults = fake_faults();
  const char* error = fake_take_error(loaded.instance_finalize(instance));
  if (error && fake_faults() > faults) error = fake_take_error(loaded.instance_finalize(instance));
  if (error) fake_break("TRITONBACKEND_ModelInstanceFinalize: %s", error);
  if (instance->state) fake_break("an instance keeps its state");
  instance->object.alive = false;
}

static void finalize_model(TRITONBACKEND_Model* model) {
  const int faults = fake_faults();
  const char* error = fake_take_error(loaded.model_finalize(model));
  if (error && fake_faults() > faults) error = fake_take_error(loaded.model_finalize(model));
  if (error) fake_break("TRITONBACKEND_ModelFinalize: %s", error);
  if (model->state) fake_break("a model keeps its state");
  pthread_mutex_destroy(&model->lock);
  free(model->config);
  model->config = NULL;
  model->object.alive = false;
}

// As the server does it, what failed to initialize is finalized as well.
void fake_unload(fake_model_t* model) {
  for (size_t i = 0; i < model->n; i++) finalize_instance(model->instances[i]);
  finalize_model(model->model);
  free(model);
}

const char* fake_config(const fake_model_t* model) { return model->model->config; }

TRITONBACKEND_ModelInstance* fake_instance(const fake_model_t* model, size_t i) {
  return model->instances[i];
}

fake_statistics_t fake_statistics(const fake_model_t* model) { return model->model->statistics; }

// ---- executing
// ----------------------------------------------------------------------------------

// After success each request is released, has been reported, and has its one last answer; less if
// the server itself has failed.
static void check_done(TRITONBACKEND_Request* request, bool server_failed) {
  if (server_failed) {
    request->object.alive = false;
    return;
  }
  if (request->object.alive) fake_break("a request was not released");
  if (!request->is_reported) fake_break("a request has no statistics");
  if (request->n_answers != 1) fake_break("a request has %d answers", request->n_answers);
}

static _Thread_local uint64_t execute_ns;

uint64_t fake_execute_ns(void) { return execute_ns; }

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

const char* fake_execute(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests,
                         uint32_t n) {
  const int faults = fake_faults();
  TRITONBACKEND_Request** lent = malloc(n * sizeof *lent);  // the array goes back with the call
  memcpy(lent, requests, n * sizeof *lent);
  for (uint32_t k = 0; k < n; k++) requests[k]->is_executing = true;
  const uint64_t start = now();
  TRITONSERVER_Error* result = loaded.execute(instance, lent, n);
  execute_ns = now() - start;
  const char* error = fake_take_error(result);
  free(lent);
  for (uint32_t k = 0; k < n; k++) {
    if (!error) {
      check_done(requests[k], fake_faults() > faults);
      continue;
    }
    if (!requests[k]->object.alive || requests[k]->n_answers)
      fake_break("a request was used, though the call failed");
    requests[k]->is_reported = true;
    TRITONBACKEND_RequestRelease(requests[k], TRITONSERVER_REQUEST_RELEASE_ALL);
  }
  return error;
}

// Times do not go back.
static bool in_order(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  return a > 0 && a <= b && b <= c && c <= d;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request, bool success,
    uint64_t exec_start, uint64_t compute_start, uint64_t compute_end, uint64_t exec_end) {
  if (fake_is(request, "request", __func__)) {
    if (request->is_reported) fake_break("a request has its statistics twice");
    request->is_reported = true;
    if (success && !in_order(exec_start, compute_start, compute_end, exec_end))
      fake_break("the times of a request are in no order");
    if (success != (request->error == NULL) && request->n_answers)
      fake_break("a request is reported as what it is not");
  }
  CHECK(instance, "instance");
  pthread_mutex_lock(&instance->model->lock);
  *(success ? &instance->model->statistics.succeeded : &instance->model->statistics.failed) += 1;
  pthread_mutex_unlock(&instance->model->lock);
  return NULL;
}

TRITONSERVER_Error* TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance* instance, uint64_t batch, uint64_t exec_start,
    uint64_t compute_start, uint64_t compute_end, uint64_t exec_end) {
  CHECK(instance, "instance");
  if (!in_order(exec_start, compute_start, compute_end, exec_end) || batch < 1)
    fake_break("the statistics of a batch are not right");
  pthread_mutex_lock(&instance->model->lock);
  instance->model->statistics.runs++;
  instance->model->statistics.rows += (int)batch;
  pthread_mutex_unlock(&instance->model->lock);
  return NULL;
}
