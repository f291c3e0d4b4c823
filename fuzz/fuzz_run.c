// Evaluation: models are read, prepared and run in truth and native mode on drawn inputs, within
// limits that keep each run short: memory, elements that a node reads, nodes, processor time, trips
// of a Loop. Inference must agree with what evaluation makes. Seeds: the ONNX operator tests, their
// inputs made initializers (fuzz/make_corpus.py).
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "data/samples.h"
#include "eval/evaluator.h"
#include "onnx/load.h"
#include "onnx/onnx.h"

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

enum { MAX_BYTES = 4 << 20, MAX_READ = 4096, MAX_NODES = 2000, MAX_TRIPS = 20 };
static const double max_seconds = 0.5;

typedef struct budget {
  int nodes;
  double deadline;
} budget_t;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int64_t elements(const assay_tensor_t* t) {
  if (t->kind == ASSAY_KIND_TENSOR) return t->size;
  int64_t n = 0;
  for (int64_t i = 0; i < t->n_items; i++)
    if (t->items[i]) n += elements(t->items[i]);
  return n;
}

// A Loop without a trip count, or with a large one, goes on for ever by right; so does a Scan over
// a long sequence, be it of items without elements.
static bool endless(const assay_node_t* node, size_t n_in, assay_tensor_t* const* in) {
  if (strcmp(node->op_type, "Scan") == 0)
    for (size_t i = 0; i < n_in; i++)
      for (int d = 0; in[i] && in[i]->kind == ASSAY_KIND_TENSOR && d < in[i]->rank; d++)
        if (in[i]->dims[d] > MAX_READ) return true;
  if (strcmp(node->op_type, "Loop") != 0) return false;
  assay_tensor_t* trips = NULL;
  if (!n_in || !in[0] || assay_tensor_size(in[0]) != 1) return true;
  assay_status_t st = assay_tensor_widen(in[0], &trips);
  bool long_one = st || trips->store != ASSAY_STORE_I64 || assay_i64(trips)[0] > MAX_TRIPS;
  assay_status_free(st);
  assay_tensor_release(trips);
  return long_one;
}

static assay_status_t before(void* user, const assay_node_t* node, size_t n_in,
                             assay_tensor_t** in) {
  budget_t* b = user;
  int64_t read = 0;
  for (size_t i = 0; i < n_in; i++)
    if (in[i]) read += elements(in[i]);
  if (--b->nodes < 0 || read > MAX_READ || seconds() > b->deadline || endless(node, n_in, in))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "enough");
  return NULL;
}

static assay_status_t run(const assay_model_t* model, assay_mode_t mode, uint64_t seed) {
  budget_t budget = {MAX_NODES, seconds() + max_seconds};
  assay_evaluator_config_t config = {
      .mode = mode, .verify = true, .seed = seed, .hooks = {.before = before, .user = &budget}};
  assay_evaluator_t* evaluator = NULL;
  assay_samples_t samples = {0};
  assay_status_t st = assay_samples_generate(model, seed, &samples);
  if (!st) st = assay_evaluator_create_run(model, &config, samples.at, &evaluator);
  assay_evaluator_destroy(evaluator);
  assay_samples_deinit(&samples);
  return st;
}

// What the file says of outputs may be wrong for these inputs; what inference finds may not.
static void forget_declared(assay_model_t* m) {
  for (size_t k = 0; k < m->n_graphs; k++)
    for (size_t i = 0; i < m->graphs[k]->n_nodes; i++)
      for (size_t j = 0; j < m->graphs[k]->nodes[i]->n_outputs; j++)
        if (m->graphs[k]->nodes[i]->outputs[j]) m->graphs[k]->nodes[i]->outputs[j]->declared = NULL;
}

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  omp_set_num_threads(1);
  assay_memory_set_limit(MAX_BYTES);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  assay_model_t *model = NULL, *flat = NULL;
  assay_status_t st = assay_onnx_read_bytes(data, size, NULL, &model);
  if (!st) forget_declared(model);
  if (!st) st = assay_onnx_prepare(model, 0, NULL, &flat);
  for (int mode = 0; !st && mode < 2; mode++) {
    st = run(flat, mode ? ASSAY_MODE_NATIVE : ASSAY_MODE_TRUTH, 1);
    if (!mode && assay_status_code(st) != ASSAY_INTERNAL) {
      assay_status_free(st);
      st = NULL;
    }
  }
  // Says that inference and evaluation disagree, or that an output was not made.
  if (assay_status_code(st) == ASSAY_INTERNAL) {
    fprintf(stderr, "%s\n", assay_status_message(st));
    abort();
  }
  assay_status_free(st);
  assay_model_release(flat);
  assay_model_release(model);
  if (assay_alloc_live()) abort();
  return 0;
}
