// Layers that run two at a time: the bits of two launches, and the layers that stay alone.
#ifndef ASSAY_TESTS_CUDA_PAIR_CASE_H_
#define ASSAY_TESTS_CUDA_PAIR_CASE_H_

#include <stdlib.h>

#include "cuda/product_case.h"

enum { PAIR_CASE_RUNS = 3 };  // the second one is captured, the third one launches what was

typedef struct pair_case_run {
  assay_tensor_t* out[8];
  size_t n_out;
  int pairs;     // layers that run with the next one
  int joined;    // layers that run in the launch of a later one
  int siblings;  // of an earlier one
} pair_case_run_t;

static inline void pair_case_release(pair_case_run_t* r) {
  for (size_t i = 0; i < r->n_out; i++) assay_tensor_release(r->out[i]);
}

static inline int pair_case_count(const assay_executor_t* e, const char* words) {
  int n = 0;
  for (size_t i = 0; i < assay_executor_n_steps(e); i++) {
    assay_str_t text = {0};
    assay_executor_explain(e, i, &text);
    n += strstr(assay_str_get(&text), words) != NULL;
    assay_str_deinit(&text);
  }
  return n;
}

// tactic: of pairs that are counted, NULL: all are; sources: of tactics; kernel: that is asked for
// of the last layer; times: a timing cache, and what one is after kernels were measured; backend:
// not CUDA.
typedef struct pair_case_way {
  const char *tactic, *sources, *kernel, *times, *backend;
  const assay_tap_t* tap;
  assay_str_t* measured;
} pair_case_way_t;

static inline void pair_case_times(const assay_engine_t* engine, assay_str_t* out) {
  const assay_backend_t* cuda = assay_backend_find("cuda");
  bool any;
  op_case_ok(cuda->timings(assay_engine_shared(engine), out, &any));
  assert_true(any);
}

static inline void pair_case_run(assay_model_t* m, assay_format_t format,
                                 const pair_case_way_t* way, assay_tensor_t* const* in,
                                 pair_case_run_t* r) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_plan_t* plan = NULL;
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  *r = (pair_case_run_t){0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  const assay_layers_t* layers = assay_plan_layers(plan);
  char forced[256];
  snprintf(forced, sizeof forced, "%s %s\n", way->kernel ? way->kernel : "",
           layers->layers[layers->n_layers - 1].name);
  const assay_backend_options_t choice = {.tactic_sources = way->sources,
                                          .forced = way->kernel ? forced : NULL,
                                          .measure = way->measured != NULL,
                                          .timings = way->times,
                                          .timings_bytes = way->times ? strlen(way->times) : 0};
  const char* backend = way->backend ? way->backend : "cuda";
  op_case_ok(assay_engine_create(plan, assay_backend_find(backend), &choice, &engine));
  op_case_ok(assay_executor_run_engine(engine, way->tap, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (int run = 0; run < PAIR_CASE_RUNS; run++) {
    assay_executor_reset(e);
    for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
    op_case_ok(assay_executor_run(e));
  }
  for (; r->n_out < g->n_outputs; r->n_out++)
    r->out[r->n_out] = assay_tensor_retain(assay_executor_get(e, g->outputs[r->n_out]));
  char words[96] = "runs in one launch with the next layer";
  if (way->tactic) snprintf(words, sizeof words, "(%s)", way->tactic);
  r->pairs = pair_case_count(e, words);
  r->joined = pair_case_count(e, "runs in the launch of a later layer");
  r->siblings = pair_case_count(e, "runs in the launch of an earlier layer");
  if (way->measured) pair_case_times(engine, way->measured);
  assay_executor_destroy(e);
  assay_engine_release(engine);
}

static inline void pair_case_same(const char* name, const pair_case_run_t* a,
                                  const pair_case_run_t* b) {
  assert_int_equal(a->n_out, b->n_out);
  for (size_t i = 0; i < a->n_out; i++)
    if (!tactic_case_identical(a->out[i], b->out[i])) fail_msg("%s: other bits", name);
}

typedef struct pair_case_sample {
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_model_t* m;
} pair_case_sample_t;

static inline void pair_case_init(const graph_case_t* c, pair_case_sample_t* s) {
  *s = (pair_case_sample_t){0};
  s->m = graph_case_model(c, s->in);
  print_message("%s\n", c->name);
}

static inline void pair_case_deinit(pair_case_sample_t* s) {
  graph_case_release(s->in);
  assay_model_release(s->m);
}

// tactic: of pairs; others: of tactics that are none, as sources.
static inline void pair_case_check(const char* tactic, const char* others, const graph_case_t* c,
                                   assay_format_t format, int pairs) {
  char without[256];
  snprintf(without, sizeof without, "-%s%s%s", tactic, others ? "," : "", others ? others : "");
  const pair_case_way_t apart = {.tactic = tactic, .sources = without},
                        any = {.tactic = tactic, .sources = others};
  pair_case_sample_t s;
  pair_case_run_t want, got;
  pair_case_init(c, &s);
  pair_case_run(s.m, format, &apart, s.in, &want);
  pair_case_run(s.m, format, &any, s.in, &got);
  assert_int_equal(want.pairs, 0);
  if (got.pairs != pairs) fail_msg("%s: %d pairs of layers, not %d", c->name, got.pairs, pairs);
  pair_case_same(c->name, &want, &got);
  pair_case_release(&want);
  pair_case_release(&got);
  pair_case_deinit(&s);
}

#endif  // ASSAY_TESTS_CUDA_PAIR_CASE_H_
