// Engines and the same models with other weights, for the tests of what refit does.
#ifndef TESTS_RUNTIME_REFIT_CASE_H_
#define TESTS_RUNTIME_REFIT_CASE_H_

#include <unistd.h>

#include "base/alloc.h"
#include "engine_case.h"
#include "io/npz.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "runtime/engine.h"

static char folder[] = "/tmp/assay-test-refit-XXXXXX";

static inline const char* at(const char* name) {
  static char paths[4][512];
  static int next;
  char* p = paths[next++ % 4];
  snprintf(p, 512, "%s/%s", folder, name);
  return p;
}

static inline const char* model_path(const char* name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s/model.onnx", getenv("ASSAY_TEST_MODELS"), name);
  return path;
}

static inline assay_model_t* load(const char* path) {
  assay_model_t* m = NULL;
  ok(assay_model_load(path, &m));
  return m;
}

// Floats of more than one element, changed by up to a tenth.
static inline assay_tensor_t* changed(assay_tensor_t* t, uint32_t seed) {
  assay_tensor_t *wide = NULL, *copy = NULL, *packed = NULL;
  ok(assay_tensor_widen(t, &wide));
  ok(assay_tensor_copy(wide, &copy));
  for (int64_t i = 0; i < copy->size; i++) {
    seed = seed * 1664525u + 1013904223u;
    assay_f64(copy)[i] *= 1 + ((double)(seed >> 8) / 16777216.0 - 0.5) / 5;
  }
  ok(assay_tensor_pack(copy, &packed));
  assay_tensor_release(wide);
  assay_tensor_release(copy);
  return packed;
}

static inline bool is_trained(const assay_value_t* v) {
  return v->constant->type == ASSAY_TYPE_FLOAT && v->constant->size > 1;
}

// Writes the model with other weights; and these by name, where names is given.
static inline void write_changed(const char* from, const char* to, uint32_t seed,
                                 assay_set_t* set) {
  assay_model_t* m = NULL;
  ok(assay_onnx_read(from, &m));
  const assay_graph_t* g = m->graph;
  for (size_t i = 0; i < g->n_initializers; i++) {
    assay_value_t* v = g->initializers[i];
    if (!is_trained(v)) continue;
    assay_tensor_t* t = changed(v->constant, seed + (uint32_t)i);
    ok(assay_model_take_tensor(m, assay_tensor_retain(t)));
    v->constant = t;
    if (set) ok(assay_set_add(set, v->name, assay_tensor_retain(t)));
    assay_tensor_release(t);
  }
  ok(assay_onnx_write(m, to, NULL));
  assay_model_release(m);
}

static inline assay_engine_t* build(const char* path, const assay_engine_options_t* options) {
  assay_model_t* m = load(path);
  assay_engine_t* e = NULL;
  ok(assay_engine_build(m, options, &e));
  assay_model_release(m);
  return e;
}

// The bytes of a plan's file; its length is the first.
static inline uint8_t* bytes_of(const assay_engine_t* e, size_t* out_n) {
  assay_mapping_t* m = NULL;
  ok(assay_engine_save(e, at("saved.plan")));
  ok(assay_mapping_open(at("saved.plan"), &m));
  *out_n = assay_mapping_size(m);
  uint8_t* bytes = malloc(*out_n);
  assert_non_null(bytes);
  memcpy(bytes, assay_mapping_data(m), *out_n);
  assay_mapping_release(m);
  return bytes;
}

static inline void assert_same_plan(const assay_engine_t* a, const assay_engine_t* b,
                                    const char* what) {
  size_t n, m;
  uint8_t *x = bytes_of(a, &n), *y = bytes_of(b, &m);
  if (n != m || memcmp(x, y, n) != 0) fail_msg("%s: %zu bytes, and %zu", what, n, m);
  free(x);
  free(y);
}

typedef struct row {
  const char *model, *input;
  int rank;
  int64_t dims[4];
  assay_format_t format;
  const char *rules, *sources, *target;
  bool unfused;
} row_t;

static const row_t rows[] = {
    {"classifier", "image", 4, {2, 3, 16, 16}, ASSAY_FORMAT_FP32, NULL, NULL, "cpu", false},
    {"classifier",
     "image",
     4,
     {2, 3, 16, 16},
     ASSAY_FORMAT_BF16,
     "/Gemm*:fp32",
     "assay",
     "cpu",
     false},
    {"transformer", "tokens", 2, {2, 16}, ASSAY_FORMAT_FP32, NULL, NULL, "cpu", false},
    {"transformer", "tokens", 2, {-1, -1}, ASSAY_FORMAT_FP32, NULL, NULL, "cpu", false},
    {"transformer", "tokens", 2, {2, 16}, ASSAY_FORMAT_FP16, NULL, NULL, "emu", true},
    {"transformer", "tokens", 2, {2, 16}, ASSAY_FORMAT_FP16, NULL, NULL, "cpu", false},
    {"quantized", NULL, 0, {0}, ASSAY_FORMAT_FP32, NULL, NULL, "cpu", false},
    {"loop", NULL, 0, {0}, ASSAY_FORMAT_FP32, NULL, NULL, "cpu", false},
    {"external", NULL, 0, {0}, ASSAY_FORMAT_BF16, NULL, NULL, "cpu", false},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static inline assay_engine_options_t options_of(const row_t* r, assay_engine_shape_t* shape) {
  assay_engine_options_t o = ASSAY_ENGINE_OPTIONS_INIT;
  *shape = (assay_engine_shape_t){.input = r->input, .rank = r->rank, .dims = r->dims};
  o.target = r->target;
  o.precision = r->format;
  o.layer_precision = r->rules;
  o.tactic_sources = r->sources;
  o.fusion = r->unfused ? ASSAY_FUSION_OFF : ASSAY_FUSION_TARGET;
  o.shapes = shape;
  o.n_shapes = r->input ? 1 : 0;
  o.timing_cache = strcmp(r->target, "cpu") == 0 ? at("times.txt") : NULL;
  o.seed = 5;
  return o;
}

static inline int make_folder(void** state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static inline int remove_folder(void** state) {
  (void)state;
  static const char* const names[] = {"new.onnx",   "new.onnx.data", "old.plan",     "saved.plan",
                                      "first.plan", "times.txt",     "stripped.plan"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unlink(at(names[i]));
  rmdir(folder);
  return 0;
}

#endif  // TESTS_RUNTIME_REFIT_CASE_H_
