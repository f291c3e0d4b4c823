// A model of the repository: how it is found, loaded and compiled.
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

// ---- targets and engines
// ------------------------------------------------------------------------

static bool is_of(const char* target, const char* name) {
  const size_t n = strlen(name);
  return strncmp(target, name, n) == 0 && (target[n] == '\0' || target[n] == ':');
}

TRITONSERVER_Error* model_target(const model_t* model, TRITONSERVER_InstanceGroupKind kind,
                                 int32_t device, char out[MAX_TARGET]) {
  const char* asked = model->settings.target;
  if (asked && strlen(asked) >= MAX_TARGET)
    return error_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter 'target' is '%s'", asked);
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
    if (asked && strcmp(asked, "cuda") != 0 && strcmp(asked, "auto") != 0)
      return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                       "parameter 'target' is '%s', and the instance group is KIND_GPU: leave one "
                       "of them out, or say KIND_CPU",
                       asked);
    snprintf(out, MAX_TARGET, "cuda:%d", device > 0 ? (int)device : 0);
    return NULL;
  }
  if (kind == TRITONSERVER_INSTANCEGROUPKIND_CPU && asked && is_of(asked, "cuda"))
    return error_new(TRITONSERVER_ERROR_INVALID_ARG,
                     "parameter 'target' is '%s', and the instance group is KIND_CPU: say KIND_GPU",
                     asked);
  snprintf(out, MAX_TARGET, "%s", asked ? asked : "cpu");
  return NULL;
}

static assay_status_t compile(const model_t* model, const char* target, assay_engine_t** out) {
  assay_engine_options_t options = model->settings.build;
  assay_model_t* source = NULL;
  options.target = target;
  assay_status_t status = assay_model_load(model->path, &source);
  if (!status) status = assay_engine_build(source, &options, out);
  assay_model_release(source);
  return status;
}

static TRITONSERVER_Error* make_engine(const model_t* model, const char* target,
                                       assay_engine_t** out) {
  if (!model->is_plan)
    return error_of_status(compile(model, target, out), "%s, target %s: ", model->path, target);
  // Refused where it is for another target than the instance.
  return error_of_status(assay_engine_load_on(model->path, target, out), "%s: ", model->path);
}

static TRITONSERVER_Error* add_engine(model_t* model, const char* target, assay_engine_t** out) {
  model_engine_t* row = calloc(1, sizeof *row);
  if (!row) return error_no_memory();
  snprintf(row->target, sizeof row->target, "%s", target);
  TRITONSERVER_Error* error = make_engine(model, target, &row->engine);
  if (error) return free(row), error;
  row->next = model->engines;
  model->engines = row;
  *out = row->engine;
  return NULL;
}

TRITONSERVER_Error* model_get_engine(model_t* model, const char* target, assay_engine_t** out) {
  TRITONSERVER_Error* error = NULL;
  pthread_mutex_lock(&model->lock);
  const model_engine_t* row = model->engines;
  while (row && strcmp(row->target, target) != 0) row = row->next;
  if (row)
    *out = row->engine;
  else
    error = add_engine(model, target, out);
  pthread_mutex_unlock(&model->lock);
  return error;
}

// ---- files
// --------------------------------------------------------------------------------------

static char* join(const char* folder, uint64_t version, const char* file) {
  const size_t n = strlen(folder) + strlen(file) + 24;
  char* path = malloc(n);
  if (path) snprintf(path, n, "%s/%llu/%s", folder, (unsigned long long)version, file);
  return path;
}

// The file that the configuration names, or the first of the usual names that is there.
static TRITONSERVER_Error* find_file(model_t* model, const json_t* config, const char* folder,
                                     uint64_t version) {
  static const char* const usual[] = {"model.onnx", "model.plan"};
  const char* named = json_string_value(json_object_get(config, "default_model_filename"));
  const bool is_named = named && *named;
  const size_t n = is_named ? 1 : sizeof usual / sizeof *usual;
  for (size_t i = 0; i < n; i++) {
    model->path = join(folder, version, is_named ? named : usual[i]);
    if (!model->path) return error_no_memory();
    if (access(model->path, R_OK) == 0) return NULL;
    free(model->path);
    model->path = NULL;
  }
  return error_new(TRITONSERVER_ERROR_NOT_FOUND, "no readable file '%s' in %s/%llu",
                   is_named ? named : "model.onnx' or 'model.plan", folder,
                   (unsigned long long)version);
}

// Libraries of operators, for all models from now on. A path that does not begin at the root begins
// in the model's folder.
static TRITONSERVER_Error* load_operators(const json_t* config, const char* folder) {
  const json_t* names =
      json_object_get(json_object_get(config, "model_operations"), "op_library_filename");
  for (size_t i = 0; i < json_array_size(names); i++) {
    char path[4096];
    const char* name = json_string_value(json_array_get(names, i));
    const bool whole = name && *name == '/';
    const int n = snprintf(path, sizeof path, "%s%s%s", whole ? "" : folder, whole ? "" : "/",
                           name ? name : "");
    if (!name || n >= (int)sizeof path)
      return error_new(TRITONSERVER_ERROR_INVALID_ARG, "op_library_filename is not a path");
    TRITONSERVER_Error* error = error_of_status(assay_ops_load(path), "op_library_filename: ");
    if (error) return error;
  }
  return NULL;
}

static TRITONSERVER_Error* check_plan(model_t* model) {
  model->is_plan = assay_engine_is_plan_file(model->path);
  if (!model->is_plan || !model->settings.build_only) return NULL;
  return error_new(
      TRITONSERVER_ERROR_INVALID_ARG,
      "%s is a plan file, which is compiled already: parameter '%s' is for ONNX models",
      model->path, model->settings.build_only);
}

// ---- configuration
// ------------------------------------------------------------------------------

// The target of the first instance, which is compiled for first to see inputs and outputs.
static TRITONSERVER_Error* first_target(const model_t* model, const json_t* config,
                                        char out[MAX_TARGET]) {
  const json_t* group = json_array_get(json_object_get(config, "instance_group"), 0);
  const char* kind = json_string_value(json_object_get(group, "kind"));
  const json_t* device = json_array_get(json_object_get(group, "gpus"), 0);
  TRITONSERVER_InstanceGroupKind number = TRITONSERVER_INSTANCEGROUPKIND_CPU;
  if (kind && strcmp(kind, "KIND_GPU") == 0) number = TRITONSERVER_INSTANCEGROUPKIND_GPU;
  if (kind && strcmp(kind, "KIND_MODEL") == 0) number = TRITONSERVER_INSTANCEGROUPKIND_MODEL;
  return model_target(model, number, (int32_t)config_integer(device, 0), out);
}

static TRITONSERVER_Error* read_config(TRITONBACKEND_Model* server, json_t** out) {
  TRITONSERVER_Message* message = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelConfig(server, 1, &message);
  if (error) return error;
  error = config_parse(message, out);
  error_log(TRITONSERVER_MessageDelete(message), "deleting a configuration");
  return error;
}

static TRITONSERVER_Error* set_config(TRITONBACKEND_Model* server, const json_t* config) {
  TRITONSERVER_Message* message = NULL;
  char* text = json_dumps(config, JSON_COMPACT);
  if (!text) return error_no_memory();
  TRITONSERVER_Error* error =
      TRITONSERVER_MessageNewFromSerializedJson(&message, text, strlen(text));
  if (!error) error = TRITONBACKEND_ModelSetConfig(server, 1, message);
  if (message) error_log(TRITONSERVER_MessageDelete(message), "deleting a configuration");
  free(text);
  return error;
}

// Completes the configuration if the server wants that; *config is then what the server made of it.
static TRITONSERVER_Error* complete(const model_t* model, TRITONBACKEND_Model* server,
                                    json_t** config) {
  bool wanted = false, changed = false;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelAutoCompleteConfig(server, &wanted);
  if (error || !wanted) return error;
  error = config_complete(*config, &model->io, model->settings.max_batch, &changed);
  if (error || !changed) return error;
  error = set_config(server, *config);
  if (error) return error;
  json_decref(*config);
  *config = NULL;
  return read_config(server, config);
}

// Where nobody says how many threads a run has, instances that run side by side on the CPU share
// the cores: each with all of them would wait for the others' threads.
static int share_threads(const json_t* config) {
  const json_t* groups = json_object_get(config, "instance_group");
  const char* limit = getenv("OMP_NUM_THREADS");
  int64_t instances = 0, cores = limit ? atoi(limit) : 0;
  for (size_t i = 0; i < json_array_size(groups); i++) {
    const json_t* group = json_array_get(groups, i);
    const char* kind = json_string_value(json_object_get(group, "kind"));
    const int64_t count = config_integer(json_object_get(group, "count"), 1);
    if (!kind || strcmp(kind, "KIND_GPU") != 0) instances += count > 0 && count < 4096 ? count : 1;
  }
  if (instances < 2) return 0;
  if (cores < 1) cores = sysconf(_SC_NPROCESSORS_ONLN);
  return cores > instances ? (int)(cores / instances) : 1;
}

static TRITONSERVER_Error* read_settings(model_t* model, TRITONBACKEND_Model* server,
                                         const json_t* config, const char* folder) {
  TRITONBACKEND_Backend* backend = NULL;
  TRITONSERVER_Message* message = NULL;  // the backend's own
  json_t* of_backend = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelBackend(server, &backend);
  if (!error) error = TRITONBACKEND_BackendConfig(backend, &message);
  if (!error) error = config_parse(message, &of_backend);
  if (!error) error = settings_init(&model->settings, of_backend, config, folder);
  json_decref(of_backend);
  return error;
}

static TRITONSERVER_Error* load(model_t* model, TRITONBACKEND_Model* server, json_t** config) {
  TRITONBACKEND_ArtifactType type = TRITONBACKEND_ARTIFACT_FILESYSTEM;
  const char* folder = NULL;
  uint64_t version = 0;
  char target[MAX_TARGET];
  assay_engine_t* engine = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelRepository(server, &type, &folder);
  if (!error && type != TRITONBACKEND_ARTIFACT_FILESYSTEM)
    error = error_new(TRITONSERVER_ERROR_UNSUPPORTED, "the model is not in a file system");
  if (!error) error = TRITONBACKEND_ModelVersion(server, &version);
  if (!error) error = config_check_features(*config);
  if (!error) error = read_settings(model, server, *config, folder);
  if (!error) error = load_operators(*config, folder);
  if (!error) error = find_file(model, *config, folder, version);
  if (!error) error = check_plan(model);
  if (!error) error = first_target(model, *config, target);
  if (!error) error = model_get_engine(model, target, &engine);
  if (!error) error = io_init(&model->io, engine);
  if (!error) error = complete(model, server, config);
  if (!error) error = config_check(*config, &model->io, &model->max_batch);
  if (!error && model->settings.threads < 0) model->settings.threads = share_threads(*config);
  return error;
}

TRITONSERVER_Error* model_create(TRITONBACKEND_Model* server, model_t** out) {
  const char* name = NULL;
  json_t* config = NULL;
  TRITONSERVER_Error* error = TRITONBACKEND_ModelName(server, &name);
  if (error) return error;
  model_t* model = calloc(1, sizeof *model);
  if (!model) return error_no_memory();
  pthread_mutex_init(&model->lock, NULL);
  model->name = strdup(name);
  error = model->name ? read_config(server, &config) : error_no_memory();
  if (!error) error = load(model, server, &config);
  json_decref(config);
  if (error) return model_destroy(model), error;
  *out = model;
  return NULL;
}

void model_destroy(model_t* model) {
  if (!model) return;
  while (model->engines) {
    model_engine_t* next = model->engines->next;
    assay_engine_release(model->engines->engine);
    free(model->engines);
    model->engines = next;
  }
  io_deinit(&model->io);
  settings_deinit(&model->settings);
  pthread_mutex_destroy(&model->lock);
  free(model->path);
  free(model->name);
  free(model);
}
