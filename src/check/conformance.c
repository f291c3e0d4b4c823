// ONNX operator tests in their standard layout: finding them, running one.
#include "check/conformance.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compare/compare.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "onnx/test_data.h"
#include "runtime/executor.h"

enum { PATH_BYTES = 4096, MAX_DEPTH = 16 };

// ---- finding ----------------------------------------------------------------------------------

// Puts a path together; one that is too long becomes "", which exists nowhere.
static const char* path_of(char* out, const char* format, ...) ASSAY_PRINTF(2, 3);
static const char* path_of(char* out, const char* format, ...) {
  va_list args;
  va_start(args, format);
  int n = vsnprintf(out, PATH_BYTES, format, args);
  va_end(args);
  if (n < 0 || n >= PATH_BYTES) out[0] = 0;
  return out;
}

static bool exists(const char* path) { return access(path, R_OK) == 0; }

static assay_status_t add_case(assay_case_list_t* list, const char* name) {
  ASSAY_TRY(assay_grow(&list->names, &list->capacity, list->n + 1, sizeof *list->names));
  size_t n = strlen(name) + 1;
  char* copy = assay_malloc(n);
  if (!copy) return assay_status_no_memory();
  list->names[list->n++] = memcpy(copy, name, n);
  return NULL;
}

static assay_status_t find_below(const char* root, const char* relative, int depth,
                                 assay_case_list_t* list) {
  char path[PATH_BYTES], model[PATH_BYTES], data[PATH_BYTES];
  path_of(path, "%s/%s", root, relative);
  path_of(model, "%s/model.onnx", path);
  path_of(data, "%s/test_data_set_0", path);
  if (exists(model) && exists(data)) return add_case(list, *relative ? relative : ".");
  DIR* dir = depth < MAX_DEPTH ? opendir(path) : NULL;
  if (!dir) {
    if (depth) return NULL;
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' is not a folder that can be read", root);
  }
  assay_status_t st = NULL;
  for (struct dirent* e; !st && (e = readdir(dir));) {
    struct stat info;
    char below[PATH_BYTES];
    if (e->d_name[0] == '.') continue;
    int n = snprintf(below, sizeof below, "%s%s%s", relative, *relative ? "/" : "", e->d_name);
    if (n < 0 || (size_t)n >= sizeof below) continue;
    if (fstatat(dirfd(dir), e->d_name, &info, 0) == 0 && S_ISDIR(info.st_mode))
      st = find_below(root, below, depth + 1, list);
  }
  closedir(dir);
  return st;
}

static int by_name(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

assay_status_t assay_conformance_find(const char* root, assay_case_list_t* out) {
  assay_status_t st = find_below(root, "", 0, out);
  if (out->n) qsort(out->names, out->n, sizeof *out->names, by_name);
  return st;
}

void assay_case_list_deinit(assay_case_list_t* list) {
  for (size_t i = 0; i < list->n; i++) assay_free(list->names[i]);
  assay_free(list->names);
  *list = (assay_case_list_t){0};
}

// ---- one case ---------------------------------------------------------------------------------

static assay_status_t read_tolerance(const char* folder, assay_case_tolerance_t* out) {
  char path[PATH_BYTES];
  *out = (assay_case_tolerance_t){.rtol = 1e-3, .atol = 1e-7};
  path_of(path, "%s/data.json", folder);
  if (!exists(path)) return NULL;
  json_error_t error;
  json_t* j = json_load_file(path, 0, &error);
  if (!j) return ASSAY_ERROR(ASSAY_CORRUPT, "%s: %s", path, error.text);
  json_t *rtol = json_object_get(j, "rtol"), *atol = json_object_get(j, "atol");
  if (json_is_number(rtol)) out->rtol = json_number_value(rtol);
  if (json_is_number(atol)) out->atol = json_number_value(atol);
  json_decref(j);
  return NULL;
}

// Whether a Dropout draws: only in training mode with a ratio that is not 0.
static bool dropout_draws(const assay_executor_t* e, const assay_node_t* n) {
  if (n->n_inputs < 3 || !n->inputs[2]) return false;
  assay_tensor_t* ratio = n->inputs[1] ? assay_executor_get(e, n->inputs[1]) : NULL;
  assay_tensor_t* wide = NULL;
  if (!ratio) return true;
  assay_status_t st = assay_tensor_widen(ratio, &wide);
  bool zero = !st && wide->size && wide->store == ASSAY_STORE_F64 && assay_f64(wide)[0] == 0;
  assay_status_free(st);
  assay_tensor_release(wide);
  return !zero;
}

// Whether the outputs are a draw that another generator cannot repeat.
static bool is_random(const assay_executor_t* e, const assay_model_t* model) {
  for (size_t g = 0; g < model->n_graphs; g++) {
    for (size_t i = 0; i < model->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = model->graphs[g]->nodes[i];
      if (!n->op || !(n->op->flags & ASSAY_OP_RANDOM)) continue;
      if (strcmp(n->op_type, "Dropout") != 0 || dropout_draws(e, n)) return true;
    }
  }
  return false;
}

static size_t count_files(const char* folder, const char* stem) {
  size_t n = 0;
  for (;; n++) {
    char path[PATH_BYTES];
    path_of(path, "%s/%s_%zu.pb", folder, stem, n);
    if (!exists(path)) return n;
  }
}

static assay_status_t read_inputs(assay_executor_t* e, const assay_graph_t* g, const char* folder) {
  assay_tensor_t** inputs = NULL;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *inputs, &inputs));
  assay_status_t st = assay_onnx_read_test_data(folder, "input", g->inputs, g->n_inputs, inputs);
  if (!st) st = assay_executor_set_inputs(e, inputs);
  for (size_t i = 0; i < g->n_inputs; i++) assay_tensor_release(inputs[i]);
  assay_free(inputs);
  return st;
}

static assay_status_t compare_outputs(assay_executor_t* e, const assay_graph_t* g,
                                      const char* folder, const assay_case_tolerance_t* tolerance,
                                      assay_str_t* why) {
  size_t n = count_files(folder, "output");
  if (n > g->n_outputs) n = g->n_outputs;
  for (size_t i = 0; i < n; i++) {
    char path[PATH_BYTES];
    assay_tensor_t* want = NULL;
    assay_tensor_t* got = assay_executor_get(e, g->outputs[i]);
    if (!got) return ASSAY_ERROR(ASSAY_INTERNAL, "output %zu has no value", i);
    path_of(path, "%s/output_%zu.pb", folder, i);
    ASSAY_TRY(assay_onnx_read_value(path, g->outputs[i]->declared, &want));
    size_t before = why->len;
    assay_status_t st = assay_compare_close(want, got, tolerance, why);
    assay_tensor_release(want);
    if (st) return st;
    if (why->len > before) {
      assay_str_printf(why, " [output %zu '%s']", i, g->outputs[i]->name);
      return NULL;
    }
  }
  return NULL;
}

// The evaluator, or a plan of one layer a node on a backend.
static assay_status_t open_case(assay_model_t* model, const char* backend, assay_plan_t** out_plan,
                                assay_executor_t** out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .verify = true};
  const assay_precision_t declared = {.format = ASSAY_FORMAT_FP32};
  if (!backend) return assay_executor_evaluate(model, &config, out);
  ASSAY_TRY(assay_plan_create(model, &declared, NULL, 0, out_plan));
  return assay_executor_run_plan(*out_plan, assay_backend_find(backend), NULL, out);
}

static assay_status_t run_case(const char* folder, const char* backend, assay_str_t* why) {
  char path[PATH_BYTES];
  assay_model_t* model = NULL;
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  assay_case_tolerance_t tolerance;
  ASSAY_TRY(read_tolerance(folder, &tolerance));
  path_of(path, "%s/model.onnx", folder);
  ASSAY_TRY(assay_onnx_load(path, 0, NULL, &model));
  assay_status_t st = open_case(model, backend, &plan, &e);
  for (int k = 0; !st && !why->len; k++) {
    path_of(path, "%s/test_data_set_%d", folder, k);
    if (!exists(path)) break;
    assay_executor_reset(e);
    st = read_inputs(e, model->graph, path);
    if (!st) tolerance.shape_only = is_random(e, model);
    if (!st) st = assay_executor_run(e);
    if (!st) st = compare_outputs(e, model->graph, path, &tolerance, why);
  }
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
  assay_model_release(model);
  return st;
}

assay_status_t assay_conformance_run(const char* folder, const char* backend, assay_str_t* why) {
  assay_status_t st = run_case(folder, backend, why);
  if (!st) return NULL;
  if (assay_status_code(st) == ASSAY_NO_MEMORY && !*assay_status_message(st)) return st;
  assay_str_append(why, assay_status_message(st));
  assay_status_free(st);
  return assay_str_status(why);
}
