// The CPU backend against the emulated engine: both run the same plan of a model, or both refuse
// it; what comes out has the same types and sizes, and no layer has an error that rounding cannot
// explain. Inputs are models; anything else stands for a network that is drawn by its first bytes.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "base/alloc.h"
#include "data/samples.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "runtime/executor.h"
#include "subjects.h"
#include "wire.h"

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);

enum { MAX_ELEMS = 1 << 14, MAX_VALUES = 400, NUMBER_BYTES = 4 };
static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  omp_set_num_threads(1);
  assay_memory_set_limit(200 << 20);
  return 0;
}

static void fail(const char* what, const char* of) {
  fprintf(stderr, "%s %s\n", what, of);
  abort();
}

// ---- models -------------------------------------------------------------------------------------

static bool is_small_tensor(const assay_value_t* v) {
  const assay_valtype_t* t = v->type;
  int64_t size = 1;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return false;
  for (int d = 0; d < t->rank; d++) {
    int64_t dim;
    if (!assay_dim_value(t->dims[d], &dim) || !assay_mul_i64(size, dim, &size)) return false;
    if (size > MAX_ELEMS) return false;
  }
  return true;
}

// Small ones, whose sizes are known, without loops: what runs long is none of this target's.
static bool is_small(const assay_model_t* m) {
  if (m->n_values > MAX_VALUES || m->n_graphs > 1) return false;
  for (size_t i = 0; i < m->graph->n_inputs; i++)
    if (!is_small_tensor(m->graph->inputs[i])) return false;
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* n = m->graph->nodes[i];
    for (size_t o = 0; o < n->n_outputs; o++)
      if (n->outputs[o] && !is_small_tensor(n->outputs[o])) return false;
  }
  return true;
}

// A network's message; its open sizes are 2.
static forged_t drawn(const uint8_t* data, size_t n) {
  uint32_t number = 0;
  uint8_t* bytes = NULL;
  size_t n_bytes = 0;
  memcpy(&number, data, n < sizeof number ? n : sizeof number);
  assay_model_t* m = subject_model(number);
  assay_status_t st = assay_onnx_write_bytes(m, &bytes, &n_bytes);
  assay_model_release(m);
  if (st) fail("writing a network:", assay_status_message(st));
  const forged_t f = {malloc(n_bytes), n_bytes};
  if (!f.at) abort();
  memcpy(f.at, bytes, n_bytes);
  assay_free(bytes);
  return f;
}

static forged_t model_of(const uint8_t* data, size_t n) {
  if (n <= NUMBER_BYTES) return drawn(data, n);
  const forged_t f = {malloc(n), n};
  if (!f.at) abort();
  memcpy(f.at, data, n);
  return f;
}

static assay_status_t read_model(const forged_t* f, assay_model_t** out) {
  assay_model_t *model = NULL, *flat = NULL;
  ASSAY_TRY(assay_onnx_read_bytes(f->at, f->n, NULL, &model));
  assay_status_t st = assay_onnx_prepare(model, 0, NULL, &flat);
  assay_model_release(model);
  if (!st) st = assay_onnx_close_sizes(flat, 2, 0, NULL, out);
  assay_model_release(flat);
  return st;
}

// ---- runs ---------------------------------------------------------------------------------------

static assay_status_t run(const assay_plan_t* plan, const char* backend, const assay_samples_t* s,
                          assay_executor_t** out) {
  assay_executor_t* e = NULL;
  ASSAY_TRY(assay_executor_run_plan(plan, assay_backend_find(backend), NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_inputs; i++)
    if (s->at[i]) st = assay_executor_set(e, g->inputs[i], s->at[i]);
  if (!st) st = assay_executor_run(e);
  if (st) return assay_executor_destroy(e), st;
  *out = e;
  return NULL;
}

static void compare_outputs(const assay_executor_t* a, const assay_executor_t* b) {
  const assay_graph_t* g = assay_executor_graph(a);
  for (size_t i = 0; i < g->n_outputs; i++) {
    const assay_tensor_t* x = assay_executor_get(a, g->outputs[i]);
    const assay_tensor_t* y = assay_executor_get(b, g->outputs[i]);
    if (!x != !y) fail("one engine alone makes output", g->outputs[i]->name);
    if (!x) continue;
    bool same = x->kind == y->kind && x->type == y->type && x->rank == y->rank;
    for (int d = 0; same && d < x->rank; d++) same = x->dims[d] == y->dims[d];
    if (!same) fail("other type or size of output", g->outputs[i]->name);
  }
}

// Layer by layer, on what entered each.
static void judge(const assay_plan_t* plan, const assay_samples_t* s) {
  const assay_account_options_t options = {0};
  assay_account_t* a = NULL;
  assay_status_t st = assay_account_create(plan, assay_backend_find("cpu"), &options, &a);
  if (!st) st = assay_account_run(a, s->at);
  for (size_t i = 0; !st && i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (l->verdict == ASSAY_VERDICT_DEFECT) fail("a defect in layer", l->layer->name);
  }
  if (assay_status_code(st) == ASSAY_INTERNAL) fail("account:", assay_status_message(st));
  assay_status_free(st);
  assay_account_destroy(a);
}

static void compare(const assay_plan_t* plan, const assay_samples_t* s) {
  assay_executor_t *cpu = NULL, *emu = NULL;
  assay_status_t a = run(plan, "cpu", s, &cpu), b = run(plan, "emu", s, &emu);
  const bool memory =
      assay_status_code(a) == ASSAY_NO_MEMORY || assay_status_code(b) == ASSAY_NO_MEMORY;
  if (!memory && !a != !b)
    fail(a ? "only cpu refuses:" : "only emu refuses:", assay_status_message(a ? a : b));
  if (!a && !b) {
    compare_outputs(cpu, emu);
    judge(plan, s);
  }
  assay_status_free(a);
  assay_status_free(b);
  assay_executor_destroy(cpu);
  assay_executor_destroy(emu);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const forged_t f = model_of(data, size);
  const assay_precision_t precision = {.format = formats[f.n % 3]};
  const assay_plan_options_t options = {.fused = true};
  assay_model_t* m = NULL;
  assay_plan_t* plan = NULL;
  assay_samples_t samples = {0};
  assay_status_t st = read_model(&f, &m);
  const bool small = !st && is_small(m);
  free(f.at);
  if (small) st = assay_plan_create(m, &precision, &options, 1, &plan);
  if (small && !st) st = assay_samples_generate(m, 5, &samples);
  if (small && !st) compare(plan, &samples);
  if (assay_status_code(st) == ASSAY_INTERNAL) fail("", assay_status_message(st));
  assay_status_free(st);
  assay_samples_deinit(&samples);
  assay_plan_destroy(plan);
  assay_model_release(m);
  if (assay_alloc_live()) fail("allocations are left", "");
  return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const forged_t none = {(uint8_t[1]){0}, 0};
  wire_seed(seed);
  if (wire_draw(8) == 0 && max_size >= NUMBER_BYTES) {  // another network
    for (int i = 0; i < NUMBER_BYTES; i++) data[i] = (uint8_t)wire_draw(256);
    return NUMBER_BYTES;
  }
  forged_t f = model_of(data, size);
  if (wire_draw(4) == 0 || !forge_model(&f, &none)) {
    uint8_t* made = malloc(f.n + WIRE_CAPACITY);
    if (!made) abort();
    const size_t n = wire_change(f.at, f.n, made);
    if (n) {
      free(f.at);
      f = (forged_t){made, n};
    } else {
      free(made);
    }
  }
  const bool fits = f.n > NUMBER_BYTES && f.n <= max_size;
  if (fits) memcpy(data, f.at, f.n);
  const size_t n = fits ? f.n : size;
  free(f.at);
  return n;
}
