// Whole accounts, watched: every element of every value that a layer gives, as its error is split.
// Engine and truth are run once more by themselves, so that the account's own numbers are held
// against what it did not compute.
#ifndef ASSAY_TESTS_ACCURACY_ACCOUNT_CASE_H_
#define ASSAY_TESTS_ACCURACY_ACCOUNT_CASE_H_

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/account.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "data/samples.h"
#include "eval/evaluator.h"
#include "io/npz.h"
#include "onnx/load.h"

// What was seen of one run.
typedef struct account_case {
  const assay_layers_t* layers;
  uint64_t* engine;  // by value id: of what the engine gives without an account; 0: none
  uint64_t* truth;   // the same of truth by itself
  int64_t values, elements, finite;
  double worst;  // largest |total - (own + inherited)| / (|own| + |inherited|) of an element
  const char* worst_value;
  int64_t other_engine, other_truth;  // values that are not what the run by itself gave
  int64_t flipped;
  bool same_checksum, same_outputs;
} account_case_t;

static inline uint64_t account_case_hash(const assay_tensor_t* t) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->store == ASSAY_STORE_STR) return 1;
  if (t->store == ASSAY_STORE_PACKED) return 2;
  return assay_hash(t->data, (size_t)t->size * assay_store_elem_bytes(t->store), 0);
}

// total = own + inherited, for one value of one run.
static inline void account_case_value(void* user, const assay_layer_account_t* layer,
                                      const assay_value_t* value, const assay_tensor_t* engine,
                                      const assay_tensor_t* local, const assay_tensor_t* truth) {
  account_case_t* c = user;
  (void)layer;
  c->values++;
  c->elements += engine->size;
  for (int64_t i = 0; i < engine->size; i++) {
    const double e = assay_f64(engine)[i], l = assay_f64(local)[i], t = assay_f64(truth)[i];
    if (!isfinite(e) || !isfinite(l) || !isfinite(t)) continue;
    const double own = e - l, inherited = l - t, total = e - t;
    const double scale = fabs(own) + fabs(inherited), off = fabs(total - (own + inherited));
    const double ratio = off > 0 ? off / scale : 0;
    c->finite++;
    if (!(ratio > c->worst)) continue;
    c->worst = ratio;
    c->worst_value = value->name;
  }
  if (value->graph != c->layers->model->graph) return;
  c->other_engine += account_case_hash(engine) != c->engine[value->id];
  c->other_truth += account_case_hash(truth) != c->truth[value->id];
}

// ---- engine and truth by themselves -------------------------------------------------------------

static inline assay_status_t account_case_note(void* user, const assay_layer_t* layer,
                                               const assay_node_t* node, uint64_t iteration,
                                               size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                               assay_tensor_t* const* out) {
  account_case_t* c = user;
  (void)layer, (void)iteration, (void)n_in, (void)in;
  for (size_t i = 0; i < n_out; i++)
    if (node->outputs[i]) c->engine[node->outputs[i]->id] = account_case_hash(out[i]);
  return NULL;
}

static inline assay_status_t account_case_note_truth(void* user, const assay_node_t* node,
                                                     size_t n_in, assay_tensor_t* const* in,
                                                     size_t n_out, assay_tensor_t** out) {
  account_case_t* c = user;
  (void)n_in, (void)in;
  for (size_t i = 0; i < n_out; i++)
    if (node->outputs[i]) c->truth[node->outputs[i]->id] = account_case_hash(out[i]);
  return NULL;
}

// The engine with or without a tap; outputs' hashes.
static inline assay_status_t account_case_engine(account_case_t* c, bool tapped,
                                                 assay_tensor_t* const* inputs, uint64_t* outputs) {
  const assay_graph_t* g = c->layers->model->graph;
  const assay_tap_t tap = {.layer = account_case_note, .user = c};
  void* state = NULL;
  ASSAY_TRY(assay_backend_emu.open(c->layers, NULL, tapped ? &tap : NULL, &state));
  assay_status_t st = assay_backend_set_inputs(&assay_backend_emu, state, g, inputs);
  for (size_t i = 0; !st && i < c->layers->n_layers; i++) st = assay_backend_emu.step(state, i);
  for (size_t i = 0; !st && i < g->n_outputs; i++)
    outputs[i] = account_case_hash(assay_backend_emu.get(state, g->outputs[i]));
  assay_backend_emu.close(state);
  return st;
}

static inline assay_status_t account_case_truth(account_case_t* c, assay_tensor_t* const* inputs) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH,
                                           .seed = c->layers->seed,
                                           .hooks = {.after = account_case_note_truth, .user = c}};
  assay_evaluator_t* m = NULL;
  assay_status_t st = assay_evaluator_create_run(c->layers->model, &config, inputs, &m);
  assay_evaluator_destroy(m);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

static inline void account_case_deinit(account_case_t* c) {
  assay_free(c->engine);
  assay_free(c->truth);
}

// Runs a plan with and without its account. *out_account may be NULL; c->layers is set here.
static inline assay_status_t account_case_run(const assay_plan_t* plan,
                                              assay_tensor_t* const* inputs, account_case_t* c,
                                              assay_account_t** out_account) {
  c->layers = assay_plan_layers(plan);
  const assay_graph_t* g = c->layers->model->graph;
  uint64_t *bare = NULL, *tapped = NULL;
  assay_account_t* a = NULL;
  const assay_account_options_t options = {.watch = {account_case_value, c}};
  assay_status_t st = assay_new_array((size_t)c->layers->model->n_values, 8, &c->engine);
  if (!st) st = assay_new_array((size_t)c->layers->model->n_values, 8, &c->truth);
  if (!st) st = assay_new_array(g->n_outputs, sizeof *bare, &bare);
  if (!st) st = assay_new_array(g->n_outputs, sizeof *tapped, &tapped);
  const uint64_t before = assay_plan_checksum(plan);
  if (!st) st = account_case_engine(c, false, inputs, bare);
  if (!st) st = account_case_engine(c, true, inputs, tapped);
  if (!st) st = account_case_truth(c, inputs);
  if (!st) st = assay_account_create(plan, &assay_backend_emu, &options, &a);
  if (!st) st = assay_account_run(a, inputs);
  c->same_checksum = assay_plan_checksum(plan) == before;
  c->same_outputs = !st;
  for (size_t i = 0; !st && i < g->n_outputs; i++)
    c->same_outputs &=
        bare[i] == tapped[i] && bare[i] == account_case_hash(assay_account_engine_output(a, i));
  for (size_t i = 0; !st && i < assay_account_layer_count(a); i++)
    c->flipped += assay_account_layer(a, i)->flipped;
  assay_free(bare);
  assay_free(tapped);
  if (out_account && !st)
    *out_account = a;
  else
    assay_account_destroy(a);
  return st;
}

// A model of a file, and its inputs: of an npz file, or drawn where that is NULL.
static inline assay_status_t account_case_load(const char* model, const char* inputs,
                                               assay_model_t** out, assay_samples_t* samples) {
  assay_set_t set = {0};
  ASSAY_TRY(assay_onnx_load(model, 0, NULL, out));
  if (!inputs) return assay_samples_generate(*out, 1, samples);
  assay_status_t st = assay_npz_read(inputs, &set);
  const assay_graph_t* g = (*out)->graph;
  if (!st) st = assay_samples_from_set(&set, g->inputs, g->n_inputs, true, samples);
  assay_set_deinit(&set);
  return st;
}

// The model of that name, and its inputs. "small/NAME" is a file of the tree, with inputs drawn;
// others are made for the tests.
static inline assay_status_t account_case_model(const char* name, assay_model_t** out,
                                                assay_samples_t* inputs) {
  char model[512], arrays[512];
  const bool small = strncmp(name, "small/", 6) == 0;
  const char* folder = getenv("ASSAY_TEST_MODELS");
  if (!folder) return ASSAY_ERROR(ASSAY_NOT_FOUND, "ASSAY_TEST_MODELS is not set");
  snprintf(model, sizeof model, small ? "models/%s%s.onnx" : "%s/%s/model.onnx",
           small ? "" : folder, name);
  snprintf(arrays, sizeof arrays, "%s/%s/inputs.npz", folder, name);
  return account_case_load(model, small ? NULL : arrays, out, inputs);
}

#endif  // ASSAY_TESTS_ACCURACY_ACCOUNT_CASE_H_
