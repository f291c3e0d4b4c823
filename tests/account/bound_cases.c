// The property of rounding bounds: whatever the numbers, no engine that rounds as it says passes
// them. Every operator test is run again and again on data made here, in every format, in the order
// that the emulated engine documents, backwards, and with stochastic rounding; each node's results
// are judged against its row's limits.
//
//   bound_cases [OPTION...] FOLDER...    operator tests below FOLDER, and the models of
//                                        bound_models.h
//
//   --seed S          of the data; default: ASSAY_TEST_SEED, or the time
//   --evaluations N   data sets for each case and format (default 4)
//   --seconds T       instead: cases drawn by chance until T seconds are over
//   --only PATTERN    cases whose name matches
//   --format NAME     one format: fp32 tf32 bf16 fp16 fp16/fp16 bf16/bf16
//   --evaluation K    data set K only (what a violation names)
//   --table FILE      Markdown: counts and tightness by operator
//   --widen F         as if limits were F times as wide: whether that is noticed
//
// A violation is an element beyond its guaranteed limit in any run, or more than 1 in 10^6 past the
// probable one on data that meets its assumptions (independent elements). Stochastic rounding goes
// either way, so its unit is 2u: it is judged with limits twice as wide. A limit that is too wide
// explains anything: the median over evaluations of the median probable limit / the worst own error
// is at most 100, by operator and format and by operator, wherever there are enough evaluations.
// Exit code 1: violations, or limits that are too wide and not among those that are known.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "account/bound_data.h"
#include "account/bound_models.h"
#include "account/judge.h"
#include "account/local.h"
#include "base/alloc.h"
#include "check/conformance.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "plan/plan.h"
#include "seed_case.h"

enum { PATH_BYTES = 4096, SHOWN = 2, MAX_RATIOS = 1 << 14 };

// Limits that are known to be wide, and why.
static const struct {
  const char *op, *why;
} known_wide[] = {
    {"com.microsoft.DynamicQuantizeLSTM",
     "a value next to the middle between two steps of the quantizer may fall to either side, and "
     "then is a whole step off: limits have to hold that, few values do it"},
};
enum { WIDE = 100, ENOUGH_RATIOS = 30 };

// ---- what is varied -----------------------------------------------------------------------------

typedef struct config {
  const char* name;
  assay_format_t format, accumulator;
} config_t;

static const config_t configs[] = {
    {"fp32", ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP32},
    {"tf32", ASSAY_FORMAT_TF32, ASSAY_FORMAT_FP32},
    {"bf16", ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP32},
    {"fp16", ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP32},
    {"fp16/fp16", ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP16},
    {"bf16/bf16", ASSAY_FORMAT_BF16, ASSAY_FORMAT_BF16},
};
enum { N_CONFIGS = sizeof configs / sizeof *configs };

// The runs that are judged: the engine's own, backwards, and two with stochastic rounding.
enum { VARIANTS = 4, FIRST_STOCHASTIC = 2 };

typedef struct options {
  uint64_t seed;
  int64_t evaluations, evaluation;
  double seconds, widen;
  const char *only, *format, *table;
} options_t;

// ---- counts by operator -------------------------------------------------------------------------

typedef struct tally {
  int64_t evaluations, elements, beyond, between, born_nan, unbounded, wrong;
  int64_t fair, fair_between;  // elements of data that meets the assumptions; of them between
  float* ratios;               // probable limit / own error, by evaluation
  size_t n_ratios, cap_ratios;
} tally_t;

typedef struct op_tally {
  char* name;
  int64_t unbounded;  // evaluations without limits
  tally_t by_config[N_CONFIGS];
} op_tally_t;

typedef struct totals {
  op_tally_t* ops;
  size_t n, capacity;
  int64_t evaluations, refused, kept_inputs, unread;
  const options_t* options;
} totals_t;

static op_tally_t* tally_of(totals_t* t, const assay_node_t* node) {
  char name[256];
  snprintf(name, sizeof name, "%s%s%s", node->domain, *node->domain ? "." : "", node->op_type);
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->ops[i].name, name) == 0) return &t->ops[i];
  assay_status_t st = assay_grow(&t->ops, &t->capacity, t->n + 1, sizeof *t->ops);
  char* copy = st ? NULL : assay_malloc(strlen(name) + 1);
  if (!copy) {
    fprintf(stderr, "no memory\n");
    exit(2);
  }
  t->ops[t->n] = (op_tally_t){.name = strcpy(copy, name)};
  return &t->ops[t->n++];
}

// ---- data ---------------------------------------------------------------------------------------

static bool is_data(const assay_tensor_t* t) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->size) return false;
  return t->type == ASSAY_TYPE_FLOAT || t->type == ASSAY_TYPE_FLOAT16 ||
         t->type == ASSAY_TYPE_BFLOAT16;
}

// New contents for an input. float32 ones are values of the layers' format, mostly.
static assay_status_t make_input(data_t* d, pattern_t pattern, const config_t* config,
                                 const assay_tensor_t* like, assay_tensor_t** out) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(like->type, like->rank, like->dims, &t));
  assay_format_t format = assay_type_format(like->type);
  const bool as_stored = uniform(d) < 0.2;
  if (format == ASSAY_FORMAT_FP32 && !as_stored) format = config->format;
  const assay_format_t range = format == ASSAY_FORMAT_FP32 ? config->format : format;
  make_pattern(d, pattern, assay_format_info(range), assay_f64(t), t->size);
  assay_format_round_n(format, assay_f64(t), assay_f64(t), (size_t)t->size, ASSAY_OVERFLOW_IEEE);
  *out = t;
  return NULL;
}

// ---- cases --------------------------------------------------------------------------------------

typedef struct bound_case {
  const char* name;
  assay_model_t* model;
  assay_tensor_t** in;  // by graph input; NULL: as the model has it
  bool* changes;        // new contents are accepted
} bound_case_t;

static void case_deinit(bound_case_t* c) {
  for (size_t i = 0; c->in && i < c->model->graph->n_inputs; i++) assay_tensor_release(c->in[i]);
  assay_free(c->in);
  assay_free(c->changes);
  assay_model_release(c->model);
}

static assay_status_t read_inputs(bound_case_t* c, const char* folder) {
  const assay_graph_t* g = c->model->graph;
  char path[PATH_BYTES + 64];
  size_t files = 0;
  for (;; files++) {
    snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, files);
    FILE* f = fopen(path, "rb");
    if (!f) break;
    fclose(f);
  }
  for (size_t i = 0, file = 0; i < g->n_inputs && file < files; i++) {
    if (files < g->n_inputs && g->inputs[i]->constant) continue;
    snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", folder, file++);
    ASSAY_TRY(assay_onnx_read_value(path, g->inputs[i]->declared, &c->in[i]));
  }
  return NULL;
}

// Inputs that say how much to compute: with other contents a case would be another one, or run for
// ever. Loop's scalars count turns, the size of a region for RoiAlign sampling points. One scale of
// quantized weights stays, too: with another one they would all be too large for a recurrent layer.
static bool says_how_much(const bound_case_t* c, size_t i) {
  static const struct {
    const char* op;
    unsigned inputs;  // bits
  } rows[] = {
      {"Resize", ~1U}, {"Upsample", ~1U}, {"Range", ~0U}, {"OneHot", 2}, {"MelWeightMatrix", ~0U}};
  const assay_graph_t* g = c->model->graph;
  for (size_t k = 0; k < g->n_nodes; k++) {
    const assay_node_t* n = g->nodes[k];
    if (strcmp(n->op_type, "Loop") == 0 && c->in[i]->size == 1) return true;
    for (size_t j = 0; j < n->n_inputs; j++) {
      if (n->inputs[j] != g->inputs[i]) continue;
      const bool align = strcmp(n->op_type, "RoiAlign") == 0;
      const bool lstm = strcmp(n->op_type, "DynamicQuantizeLSTM") == 0;
      if (lstm && (j == 8 || j == 10) && c->in[i]->size == 1) return true;
      if (align && j == 1 && assay_attr_i64(n, "sampling_ratio", 0) == 0) return true;
      for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        if (strcmp(rows[r].op, n->op_type) == 0 && rows[r].inputs >> j & 1) return true;
    }
  }
  return false;
}

static uint64_t stream_start(int64_t evaluation, size_t config) {
  return ((uint64_t)evaluation * N_CONFIGS + config) << 32;
}

// Whether truth accepts the case with normal data (all of one sign: positive) for these inputs.
static bool accepts(bound_case_t* c, const bool* changes, bool positive) {
  const assay_graph_t* g = c->model->graph;
  const assay_evaluator_config_t evaluator_config = {.mode = ASSAY_MODE_TRUTH};
  assay_evaluator_t* m = NULL;
  data_t d = {.random = assay_random_make(1, c->name, 0)};
  assay_status_t st = assay_evaluator_create(c->model, &evaluator_config, &m);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    if (!c->in[i]) continue;
    assay_tensor_t* t = NULL;
    if (changes[i])
      st = make_input(&d, PATTERN_NORMAL, &configs[0], c->in[i], &t);
    else
      t = assay_tensor_retain(c->in[i]);
    if (st) break;
    if (changes[i] && positive)
      for (int64_t k = 0; k < t->size; k++) assay_f64(t)[k] = fabs(assay_f64(t)[k]);
    assay_evaluator_set(m, g->inputs[i], t);
    assay_tensor_release(t);
  }
  if (!st) st = assay_evaluator_run(m);
  const bool accepted = !st;
  assay_status_free(st);
  assay_evaluator_destroy(m);
  return accepted;
}

static assay_status_t choose_inputs(bound_case_t* c, totals_t* totals) {
  const assay_graph_t* g = c->model->graph;
  ASSAY_TRY(assay_new_array(g->n_inputs, sizeof *c->changes, &c->changes));
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (!is_data(c->in[i])) continue;
    c->changes[i] = !says_how_much(c, i);
    if (c->changes[i] && !accepts(c, c->changes, false) && !accepts(c, c->changes, true))
      c->changes[i] = false;
#pragma omp atomic
    totals->kept_inputs += !c->changes[i];
  }
  return NULL;
}

static assay_status_t case_init(bound_case_t* c, const char* root, const char* name,
                                totals_t* totals) {
  *c = (bound_case_t){.name = name};
  if (!root) {
    ASSAY_TRY(bound_model_create(name, &c->model, &c->in));
    return choose_inputs(c, totals);
  }
  char folder[PATH_BYTES], path[PATH_BYTES + 64];
  snprintf(folder, sizeof folder, "%s/%s", root, name);
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  ASSAY_TRY(assay_onnx_load(path, 0, NULL, &c->model));
  ASSAY_TRY(assay_new_array(c->model->graph->n_inputs, sizeof *c->in, &c->in));
  ASSAY_TRY(read_inputs(c, folder));
  return choose_inputs(c, totals);
}

// ---- judging ------------------------------------------------------------------------------------

typedef struct evaluation {
  totals_t* totals;
  const bound_case_t* c;
  size_t config;
  int64_t number;
  pattern_t pattern;
  bool fair;  // the data meets the probable limits' assumptions
  void* engine;
  assay_locals_t* locals;
  bool judging;    // a failure now is not the model's
  bool fair_node;  // so do the node's inputs
} evaluation_t;

static bool has_unfinite(const assay_tensor_t* t, const assay_layer_t* layer) {
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->store != ASSAY_STORE_F64) return false;
  const double max = layer && t->type == ASSAY_TYPE_FLOAT ? assay_format_info(layer->format)->max
                                                          : (double)INFINITY;
  for (int64_t i = 0; i < t->size; i++) {
    const double m = fabs(assay_f64(t)[i]);
    if (!(m < (double)INFINITY) || m > max) return true;
  }
  return false;
}

static void print(const evaluation_t* e, const assay_node_t* node, const char* run,
                  const char* what, const assay_judgement_t* j) {
  printf("VIOLATION %s, %s (%s), %s, evaluation %lld (%s): %s", node->op_type, e->c->name,
         node->label, configs[e->config].name, (long long)e->number, pattern_names[e->pattern],
         what);
  if (j)
    printf(": %lld elements; element %lld is %.17g, truth %.17g, limit %.3g (%.3g times)",
           (long long)j->beyond, (long long)j->worst_index, j->worst_engine, j->worst_truth,
           j->worst_limit, j->worst);
  printf("; %s\n", run);
  fflush(stdout);
}

static assay_status_t scale_limits(const assay_limits_t* l, double by, assay_limits_t* out) {
  if (!l->guaranteed) return NULL;
  ASSAY_TRY(assay_tensor_copy(l->guaranteed, &out->guaranteed));
  ASSAY_TRY(assay_tensor_copy(l->probable ? l->probable : l->guaranteed, &out->probable));
  for (int64_t i = 0; i < out->guaranteed->size; i++) {
    assay_f64(out->guaranteed)[i] *= by;
    assay_f64(out->probable)[i] *= by;
  }
  return NULL;
}

// Limits are not negative, and the probable one is the smaller.
static bool limits_make_sense(const assay_limits_t* l) {
  if (!l->guaranteed || !l->probable) return !l->guaranteed && !l->probable;
  for (int64_t i = 0; i < l->guaranteed->size; i++) {
    const double g = assay_f64(l->guaranteed)[i], p = assay_f64(l->probable)[i];
    if (g < 0 || p < 0 || p > g * (1 + 1e-9)) return false;
  }
  return true;
}

// Judges the outputs of one run. wrong: a shape or a limit is not as it must be.
static assay_status_t judge_outputs(const assay_local_t* local, assay_tensor_t* const* got,
                                    const assay_layer_t* layer, const assay_rounding_t* rounding,
                                    double widen, bool unfinite, assay_judgement_t* out,
                                    bool* wrong) {
  for (size_t i = 0; i < local->n_out; i++) {
    const assay_tensor_t *y = got[i], *t = local->converted[i];
    if (!y || !t || y->kind != ASSAY_KIND_TENSOR || y->store > ASSAY_STORE_I64) continue;
    if (t->store == ASSAY_STORE_PACKED) continue;  // an item of a sequence that came in
    if (!same_shape(y, t) || !limits_make_sense(&local->limits[i])) {
      *wrong = true;
      continue;
    }
    assay_limits_t limits = {0};
    uint8_t* reached = NULL;  // any element: what does not fit the layer's format counts, too
    assay_status_t st = scale_limits(&local->limits[i], widen, &limits);
    if (!st && unfinite) st = assay_new_array((size_t)t->size, 1, &reached);
    if (reached) memset(reached, ASSAY_REACHED, (size_t)t->size);
    const assay_judge_input_t in = {.engine = y,
                                    .truth = t,
                                    .limits = &limits,
                                    .storage = assay_layer_storage(layer, y->type),
                                    .compute = rounding->compute,
                                    .special = reached};
    if (!st) st = assay_judge(&in, out);
    assay_limits_deinit(&limits);
    assay_free(reached);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t note_ratio(tally_t* tally, double ratio) {
  if (!(ratio > 0) || tally->n_ratios == MAX_RATIOS) return NULL;
  ASSAY_TRY(
      assay_grow(&tally->ratios, &tally->cap_ratios, tally->n_ratios + 1, sizeof *tally->ratios));
  tally->ratios[tally->n_ratios++] = (float)ratio;
  return NULL;
}

static void count(evaluation_t* e, const assay_node_t* node, int variant,
                  const assay_judgement_t* j, bool wrong) {
  static const char* const runs[] = {"as documented", "backwards", "stochastic", "stochastic"};
#pragma omp critical(totals)
  {
    tally_t* t = &tally_of(e->totals, node)->by_config[e->config];
    if (wrong && t->wrong++ < SHOWN)
      print(e, node, runs[variant], "a shape differs, or limits are below 0 or out of order", NULL);
    if (j->beyond && t->beyond < SHOWN) print(e, node, runs[variant], "beyond", j);
    t->evaluations += variant == 0;
    t->elements += j->elements;
    t->beyond += j->beyond;
    t->between += j->between;
    t->born_nan += j->born_nan;
    t->unbounded += j->unbounded;
    if (e->fair_node) {
      if (j->between && t->fair_between < SHOWN)
        printf("between: %s, %s, %s, evaluation %lld (%s): %lld of %lld elements; %s\n",
               node->op_type, e->c->name, configs[e->config].name, (long long)e->number,
               pattern_names[e->pattern], (long long)j->between, (long long)j->elements,
               runs[variant]);
      t->fair += j->elements;
      t->fair_between += j->between;
    }
  }
}

static assay_status_t count_tightness(evaluation_t* e, const assay_layer_t* layer,
                                      const assay_node_t* node, assay_tensor_t* const* got,
                                      const assay_rounding_t* rounding,
                                      const assay_local_t* local) {
  for (size_t i = 0; i < local->n_out; i++) {
    if (!got[i]) continue;
    double ratio;
    ASSAY_TRY(tightness(got[i], local->converted[i], &local->limits[i],
                        assay_layer_storage(layer, got[i]->type), rounding->compute, &ratio));
    assay_status_t st = NULL;
#pragma omp critical(totals)
    st = note_ratio(&tally_of(e->totals, node)->by_config[e->config],
                    ratio * e->totals->options->widen);
    if (st) return st;
  }
  return NULL;
}

static assay_status_t judge_variants(evaluation_t* e, const assay_layer_t* layer,
                                     const assay_node_t* node, size_t n_in,
                                     assay_tensor_t* const* in, assay_tensor_t* const* engine,
                                     const assay_rounding_t* rounding, const assay_local_t* local) {
  bool unfinite = false;
  for (size_t i = 0; i < n_in; i++) unfinite |= has_unfinite(in[i], layer);
  assay_tensor_t** again = NULL;
  ASSAY_TRY(assay_new_array(local->n_out, sizeof *again, &again));
  assay_status_t st = NULL;
  for (int variant = 0; !st && variant < VARIANTS; variant++) {
    assay_judgement_t j = {0};
    bool wrong = false;
    const int draws = variant + (int)(e->number % 1000) * VARIANTS;
    if (variant)
      st = assay_locals_rerun(e->locals, layer, node, n_in, in,
                              variant < FIRST_STOCHASTIC ? variant : draws, local->n_out, again);
    assay_tensor_t* const* got = variant ? again : engine;
    const double widen = variant < FIRST_STOCHASTIC ? 1 : 2;
    if (!st) st = judge_outputs(local, got, layer, rounding, widen, unfinite, &j, &wrong);
    if (!st) count(e, node, variant, &j, wrong);
    if (!st && variant == 0 && e->fair && !unfinite)
      st = count_tightness(e, layer, node, got, rounding, local);
    for (size_t i = 0; i < local->n_out; i++) {
      assay_tensor_release(again[i]);
      again[i] = NULL;
    }
  }
  assay_free(again);
  return st;
}

// Elements are independent where they were made so: in inputs of the model, and constants. What
// nodes before this one made of them is not (a few weights, gathered for many targets), and neither
// are inputs that stay as the case has them, but for scalars.
static bool is_fair(const evaluation_t* e, const assay_node_t* node, assay_tensor_t* const* in) {
  const assay_graph_t* g = e->c->model->graph;
  for (size_t i = 0; i < node->n_inputs; i++) {
    if (!holds_floats(in[i]) || in[i]->size <= 1) continue;
    bool made = false;
    for (size_t k = 0; k < g->n_inputs; k++)
      made |= node->inputs[i] == g->inputs[k] && e->c->changes[k];
    if (!made) return false;
  }
  return e->fair;
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  evaluation_t* e = user;
  assay_locals_set_iteration(e->locals, iteration);
  bool floats = false;
  for (size_t i = 0; i < n_in; i++) floats |= holds_floats(in[i]);
  for (size_t i = 0; i < n_out; i++) floats |= holds_floats(out[i]);
  if (!floats || !node->op || node->op->flags & ASSAY_OP_CONTROL) return NULL;
  e->fair_node = is_fair(e, node, in);
  e->judging = true;
  assay_rounding_t rounding = {0};
  assay_local_t local = {0};
  assay_backend_emu.rounding(e->engine, layer, n_in, in, &rounding);
  ASSAY_TRY(assay_locals_run(e->locals, layer, node, n_in, in, &rounding, NULL, &local));
  assay_status_t st = NULL;
  if (local.bounded) {
    st = judge_variants(e, layer, node, n_in, in, out, &rounding, &local);
  } else {
#pragma omp critical(totals)
    tally_of(e->totals, node)->unbounded++;
  }
  assay_local_deinit(&local);
  if (!st) e->judging = false;
  return st;
}

// ---- running ------------------------------------------------------------------------------------

// Sets the inputs: new contents for those that may change, unless `few`: for the first of them.
static assay_status_t set_inputs(evaluation_t* e, bool few) {
  const assay_graph_t* g = e->c->model->graph;
  data_t d = {.random = assay_random_make(e->totals->options->seed, e->c->name, 0),
              .at = stream_start(e->number, e->config)};
  // Half of the data meets the assumptions.
  e->pattern = (pattern_t)(uniform(&d) < 0.3 ? below(&d, 2) : below(&d, PATTERN_COUNT));
  const bool mixed = uniform(&d) < 0.3;
  e->fair = e->pattern <= PATTERN_ONE_SIGN;
  bool changed = false;
  for (size_t i = 0; i < g->n_inputs; i++) {
    assay_tensor_t* t = NULL;
    if (!e->c->in[i]) continue;
    pattern_t pattern = e->pattern;
    if (mixed) pattern = (pattern_t)below(&d, e->fair ? 2 : PATTERN_COUNT);
    if (e->c->changes[i] && !(few && changed))
      ASSAY_TRY(make_input(&d, pattern, &configs[e->config], e->c->in[i], &t));
    else
      t = assay_tensor_retain(e->c->in[i]);
    changed |= e->c->changes[i];
    assay_status_t st = assay_backend_emu.set(e->engine, g->inputs[i], t);
    assay_tensor_release(t);
    if (st) return st;
  }
  return NULL;
}

static void evaluate(evaluation_t* e, const assay_layers_t* layers) {
  assay_status_t st = NULL;
  for (int few = 0; few < 2; few++) {
    assay_backend_emu.reset(e->engine);
    st = set_inputs(e, few);
    for (size_t i = 0; !st && i < layers->n_layers; i++) st = assay_backend_emu.step(e->engine, i);
    // Whether an input is accepted may itself hang on rounding (a matrix that is singular).
    if (st && assay_status_code(st) == ASSAY_INVALID_ARGUMENT) e->judging = false;
    if (!st || e->judging) break;
    if (!few) assay_status_free(st);
  }
#pragma omp critical(totals)
  {
    e->totals->evaluations++;
    e->totals->refused += st && !e->judging;
    if (st && e->judging) {
      printf("VIOLATION %s, %s, evaluation %lld: judging failed: %s\n", e->c->name,
             configs[e->config].name, (long long)e->number, assay_status_message(st));
      e->totals->unread++;
    }
  }
  e->judging = false;
  assay_status_free(st);
}

static bool wanted(const options_t* o, size_t config) {
  return !o->format || strcmp(o->format, configs[config].name) == 0;
}

static assay_status_t run_config(const bound_case_t* c, size_t config, int64_t first, int64_t n,
                                 totals_t* totals) {
  evaluation_t e = {.totals = totals, .c = c, .config = config};
  const assay_tap_t tap = {.layer = on_layer, .user = &e};
  const assay_precision_t precision = {.format = configs[config].format,
                                       .accumulator = configs[config].accumulator};
  assay_plan_t* plan = NULL;
  ASSAY_TRY(assay_plan_create(c->model, &precision, NULL, totals->options->seed, &plan));
  const assay_layers_t* layers = assay_plan_layers(plan);
  assay_status_t st = assay_backend_emu.open(layers, NULL, &tap, &e.engine);
  if (!st) st = assay_locals_create(layers, false, &e.locals);
  for (int64_t k = first; !st && k < first + n; k++) {
    e.number = k;
    evaluate(&e, layers);
  }
  assay_locals_destroy(e.locals);
  assay_backend_emu.close(e.engine);
  assay_plan_destroy(plan);
  return st;
}

typedef struct item {
  const char *root, *name;  // root NULL: of bound_models.h
} item_t;

// visit: the how-manieth time that cases are drawn by chance; -1: all evaluations are run.
static void run_case(const item_t* item, int64_t visit, totals_t* totals) {
  const options_t* o = totals->options;
  bound_case_t c;
  assay_status_t st = case_init(&c, item->root, item->name, totals);
  const assay_random_t chance = assay_random_make(o->seed, item->name, 0);
  const size_t drawn = (size_t)(assay_random_uniform(&chance, ~(uint64_t)visit) * N_CONFIGS);
  for (size_t k = 0; !st && k < N_CONFIGS; k++) {
    if (!wanted(o, k) || (visit >= 0 && k != drawn)) continue;
    const int64_t first = o->evaluation >= 0 ? o->evaluation : visit >= 0 ? 2 * visit : 0;
    st = run_config(&c, k, first, o->evaluation >= 0 ? 1 : visit >= 0 ? 2 : o->evaluations, totals);
  }
  if (st) {
#pragma omp critical(totals)
    {
      totals->unread++;
      printf("VIOLATION %s: not run: %s\n", item->name, assay_status_message(st));
    }
    assay_status_free(st);
  }
  case_deinit(&c);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_all(const item_t* items, size_t n, totals_t* totals) {
  const options_t* o = totals->options;
  const double end = now() + o->seconds;
  const assay_random_t chance = assay_random_make(o->seed, "order of cases", 0);
  // Turns that come after the end cost nothing.
  const int64_t rounds = o->seconds > 0 ? (int64_t)(20000 * o->seconds) : (int64_t)n;
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < rounds; i++) {
    if (o->seconds <= 0) {
      run_case(&items[i], -1, totals);
    } else if (now() < end) {
      const size_t k = (size_t)(assay_random_uniform(&chance, (uint64_t)i) * (double)n);
      run_case(&items[k], i, totals);
    }
  }
}

// ---- results ------------------------------------------------------------------------------------

static int by_value(const void* a, const void* b) {
  float x = *(const float*)a, y = *(const float*)b;
  return (x > y) - (x < y);
}

static double median(tally_t* t) {
  if (!t->n_ratios) return 0;
  qsort(t->ratios, t->n_ratios, sizeof *t->ratios, by_value);
  return (double)t->ratios[t->n_ratios / 2];
}

static int by_op(const void* a, const void* b) {
  return strcmp(((const op_tally_t*)a)->name, ((const op_tally_t*)b)->name);
}

// More than independent errors explain: 6 standard deviations are passed once in 10^9.
static bool too_often(const tally_t* t) {
  return (double)t->fair_between > 1e-6 * (double)t->fair + 2;
}

static void print_table(totals_t* t, FILE* f) {
  fprintf(f, "| operator | evaluations | elements | past probable | beyond |");
  for (size_t k = 0; k < N_CONFIGS; k++) fprintf(f, " %s |", configs[k].name);
  fprintf(f, "\n| --- | ---: | ---: | ---: | ---: |");
  for (size_t k = 0; k < N_CONFIGS; k++) fprintf(f, " ---: |");
  fprintf(f, "\n");
  for (size_t i = 0; i < t->n; i++) {
    tally_t all = {0};
    for (size_t k = 0; k < N_CONFIGS; k++) {
      const tally_t* c = &t->ops[i].by_config[k];
      all.evaluations += c->evaluations;
      all.elements += c->elements;
      all.fair_between += c->fair_between;
      all.beyond += c->beyond;
    }
    if (!all.evaluations) continue;
    fprintf(f, "| %s | %lld | %lld | %lld | %lld |", t->ops[i].name, (long long)all.evaluations,
            (long long)all.elements, (long long)all.fair_between, (long long)all.beyond);
    for (size_t k = 0; k < N_CONFIGS; k++) {
      const double m = median(&t->ops[i].by_config[k]);
      fprintf(f, m > 0 ? " %.3g |" : " |", m);
    }
    fprintf(f, "\n");
  }
}

// 1 if the limits are too wide, and it is not known why.
static int print_wide(const char* op, const char* config, tally_t* t, FILE* f) {
  const char* why = NULL;
  if (median(t) <= WIDE) return 0;
  const bool enough = t->n_ratios >= ENOUGH_RATIOS;
  for (size_t i = 0; i < sizeof known_wide / sizeof *known_wide; i++)
    if (strcmp(known_wide[i].op, op) == 0) why = known_wide[i].why;
  fprintf(f, "%s %s, %s: limits are %.3g times the error (%zu evaluations%s)%s%s\n",
          enough && !why ? "FAIL" : "wide", op, config, median(t), t->n_ratios,
          enough ? "" : ", too few to say", why ? ": " : "", why ? why : "");
  return enough && !why;
}

// Prints what there is to say; gives the number of violations.
static int64_t report(totals_t* t, FILE* f) {
  int64_t wrong = t->unread, judged = 0, elements = 0, nan = 0, unbounded = 0;
  if (t->n) qsort(t->ops, t->n, sizeof *t->ops, by_op);
  for (size_t i = 0; i < t->n; i++) {
    for (size_t k = 0; k < N_CONFIGS; k++) {
      tally_t* c = &t->ops[i].by_config[k];
      judged += c->evaluations;
      elements += c->elements;
      nan += c->born_nan;
      unbounded += c->unbounded;
      wrong += c->beyond + c->wrong + too_often(c);
      if (c->beyond || c->wrong || too_often(c))
        fprintf(f, "FAIL %s, %s: %lld of %lld elements beyond, %lld of %lld past probable\n",
                t->ops[i].name, configs[k].name, (long long)c->beyond, (long long)c->elements,
                (long long)c->fair_between, (long long)c->fair);
      wrong += print_wide(t->ops[i].name, configs[k].name, c, f);
    }
    tally_t all = {0};
    for (size_t k = 0; k < N_CONFIGS; k++)
      for (size_t j = 0; j < t->ops[i].by_config[k].n_ratios; j++)
        if (note_ratio(&all, (double)t->ops[i].by_config[k].ratios[j])) exit(2);
    wrong += print_wide(t->ops[i].name, "all formats", &all, f);
    assay_free(all.ratios);
  }
  for (size_t i = 0; i < t->n; i++)
    if (t->ops[i].unbounded)
      fprintf(f, "no bound: %s (%lld evaluations)\n", t->ops[i].name,
              (long long)t->ops[i].unbounded);
  fprintf(f,
          "%lld evaluations of models (%lld refused; %lld inputs kept as they are), %lld of nodes, "
          "each run %d times: %lld elements, %lld NaN, %lld without limit; %lld violations\n",
          (long long)t->evaluations, (long long)t->refused, (long long)t->kept_inputs,
          (long long)judged, VARIANTS, (long long)elements, (long long)nan, (long long)unbounded,
          (long long)wrong);
  return wrong;
}

static assay_status_t write_table(totals_t* t) {
  const char* path = t->options->table;
  FILE* f = path ? fopen(path, "w") : NULL;
  if (!path) return NULL;
  if (!f) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' cannot be written", path);
  fprintf(f,
          "Rounding bounds by operator: elements past the probable limit on data of independent "
          "elements, elements beyond the guaranteed one on any data (seed %llu); by format the "
          "median over evaluations of the median probable limit / the worst own error.\n\n",
          (unsigned long long)t->options->seed);
  print_table(t, f);
  fprintf(f, "\n");
  report(t, f);
  return fclose(f) ? ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' cannot be written", path) : NULL;
}

static void totals_deinit(totals_t* t) {
  for (size_t i = 0; i < t->n; i++) {
    for (size_t k = 0; k < N_CONFIGS; k++) assay_free(t->ops[i].by_config[k].ratios);
    assay_free(t->ops[i].name);
  }
  assay_free(t->ops);
}

// ---- main ---------------------------------------------------------------------------------------

typedef struct items {
  item_t* at;
  size_t n, capacity;
} items_t;

static assay_status_t add_item(items_t* items, const options_t* o, const char* root,
                               const char* name) {
  if (o->only && !assay_glob_match(o->only, name)) return NULL;
  ASSAY_TRY(assay_grow(&items->at, &items->capacity, items->n + 1, sizeof *items->at));
  items->at[items->n++] = (item_t){root, name};
  return NULL;
}

static int run(const options_t* o, size_t n_roots, char** roots) {
  assay_case_list_t* lists = NULL;
  items_t items = {0};
  totals_t totals = {.options = o};
  printf("seed %llu\n", (unsigned long long)o->seed);
  assay_status_t st = assay_new_array(n_roots, sizeof *lists, &lists);
  for (size_t r = 0; !st && r < n_roots; r++) {
    st = assay_conformance_find(roots[r], &lists[r]);
    for (size_t i = 0; !st && i < lists[r].n; i++)
      st = add_item(&items, o, roots[r], lists[r].names[i]);
  }
  for (size_t i = 0; !st && bound_model_name(i); i++)
    st = add_item(&items, o, NULL, bound_model_name(i));
  int64_t wrong = 0;
  if (!st && items.n) {
    run_all(items.at, items.n, &totals);
    wrong = report(&totals, stdout);
    st = write_table(&totals);
  }
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  const bool failed = st || wrong || !totals.evaluations;
  assay_status_free(st);
  for (size_t r = 0; lists && r < n_roots; r++) assay_case_list_deinit(&lists[r]);
  assay_free(lists);
  assay_free(items.at);
  totals_deinit(&totals);
  return failed;
}

int main(int argc, char** argv) {
  options_t o = {.seed = test_seed(), .evaluations = 4, .evaluation = -1, .widen = 1};
  int i = 1;
  for (; i + 1 < argc && strncmp(argv[i], "--", 2) == 0; i += 2) {
    const char *name = argv[i] + 2, *value = argv[i + 1];
    if (strcmp(name, "seed") == 0)
      o.seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "evaluations") == 0)
      o.evaluations = test_draws(strtoll(value, NULL, 10));
    else if (strcmp(name, "evaluation") == 0)
      o.evaluation = strtoll(value, NULL, 10);
    else if (strcmp(name, "seconds") == 0)
      o.seconds = strtod(value, NULL);
    else if (strcmp(name, "widen") == 0)
      o.widen = strtod(value, NULL);
    else if (strcmp(name, "only") == 0)
      o.only = value;
    else if (strcmp(name, "format") == 0)
      o.format = value;
    else if (strcmp(name, "table") == 0)
      o.table = value;
    else
      return fprintf(stderr, "unknown option %s\n", argv[i]), 2;
  }
  return run(&o, (size_t)(argc - i), argv + i);
}
