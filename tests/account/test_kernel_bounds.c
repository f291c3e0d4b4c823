// Kernels of the CPU that round to bf16 at a few places inside, against the limits that their
// rounding (tactic.h) gives: on random and structured data no element passes its guaranteed limit,
// and limits are not far from what rounding does.
//
//   ASSAY_TEST_SEED: of the data; else the time. A failure names it.
#include <stdio.h>

#include "account/bound_data.h"
#include "account/judge.h"
#include "account/local.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu_level.h"
#include "passes/graph_case.h"
#include "runtime/executor.h"
#include "seed_case.h"
#include "skip_case.h"

enum { ROUNDS = 3, MAX_RATIOS = 256, TIGHT = 20 };

// What enters comes out of layers, as bf16.
#define NEGATED "Neg a q0 -> q", "Neg b k0 -> k", "Neg c v0 -> v"
#define QKV(batch, heads, queries, keys, size)                                      \
  {                                                                                 \
    "q0 float[" #batch "," #heads "," #queries "," #size "]",                       \
        "k0 float[" #batch "," #heads "," #keys "," #size "]",                      \
        "v0 float[" #batch "," #heads "," #keys "," #size "]", "m float[" #keys "]" \
  }
#define NODES                                                                                 \
  {                                                                                           \
    NEGATED, "Transpose kt k -> kt | perm=0,1,3,2", "Mul f q f -> qf", "MatMul m qf kt -> s", \
        "Add a s m -> sm", "Softmax p sm -> p", "MatMul o p v -> y"                           \
  }
#define RECURRENT(name, gates, x, inputs, hidden, node, attributes, outputs)    \
  {                                                                             \
    {name,                                                                      \
     22,                                                                        \
     {x},                                                                       \
     {"w float[2," #gates "," #inputs "]", "r float[2," #gates "," #hidden "]", \
      "b float[2," #gates "]", "c float[2," #gates "]"},                        \
     {"Neg a x0 -> x", "Concat d b c -> e | axis=1",                            \
      node " | " attributes "hidden_size=" #hidden " direction=bidirectional"}, \
     outputs},                                                                  \
        "recurrent_bf16"                                                        \
  }

typedef struct kernel_case {
  graph_case_t graph;
  const char* tactic;
} kernel_case_t;

static const kernel_case_t cases[] = {
    {{"nodes, 64 keys", 17, QKV(2, 3, 33, 64, 32), {"f float[] 0.18"}, NODES, "y"},
     "attention_bf16"},
    {{"nodes, 601 keys", 17, QKV(1, 2, 40, 601, 64), {"f float[] 0.125"}, NODES, "y"},
     "attention_bf16"},
    {{"Attention", 23, QKV(1, 2, 40, 250, 64), {0}, {NEGATED, "Attention n q k v m -> y"}, "y"},
     "attention_bf16"},
    {{"Attention, causal",
      23,
      QKV(1, 2, 130, 130, 16),
      {0},
      {NEGATED, "Attention n q k v m -> y | is_causal=1"},
      "y"},
     "attention_bf16"},
    {{"Attention, capped",
      23,
      QKV(1, 2, 17, 700, 16),
      {0},
      {NEGATED, "Attention n q k v m -> y | softcap=2.0"},
      "y"},
     "attention_bf16"},
    RECURRENT("LSTM", 256, "x0 float[12,3,40]", 40, 64, "LSTM n x w r e -> y h z", "", "y h z"),
    RECURRENT("GRU", 192, "x0 float[12,3,40]", 40, 64, "GRU n x w r e -> y h", "", "y h"),
    RECURRENT("GRU, reset behind", 192, "x0 float[12,3,40]", 40, 64, "GRU n x w r e -> y h",
              "linear_before_reset=1 ", "y h"),
    RECURRENT("RNN", 64, "x0 float[20,3,40]", 40, 64, "RNN n x w r e -> y h", "", "y h"),
};

// ---- one run ------------------------------------------------------------------------------------

typedef struct run {
  const kernel_case_t* c;
  assay_locals_t* locals;
  const assay_rounding_t* rounding;
  assay_judgement_t judged;
  double ratios[MAX_RATIOS];  // of `tightness`, by output of the layer that is looked at
  size_t n_ratios;
  bool keeps_ratios;
} run_t;

static const assay_rounding_t* rounding_of(const char* tactic) {
  for (size_t i = 0; i < cpu_n_tactics; i++)
    if (strcmp(cpu_tactics[i]->name, tactic) == 0) return &cpu_tactics[i]->rounding;
  fail_msg("no tactic '%s'", tactic);
  return NULL;
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  run_t* r = user;
  assay_local_t local = {0};
  (void)iteration, (void)n_out;
  if (strcmp(node->op_type, "Concat") == 0 || strcmp(node->op_type, "Neg") == 0) return NULL;
  assay_status_t st = assay_locals_run(r->locals, layer, node, n_in, in, r->rounding, NULL, &local);
  if (!st && !local.bounded) fail_msg("%s: no bound", r->c->graph.name);
  if (!st)
    st = assay_local_judge(&local, local.converted, out, layer, r->rounding, NULL, &r->judged);
  for (size_t i = 0; !st && r->keeps_ratios && i < local.n_out; i++) {
    double ratio;
    st = tightness(out[i], local.converted[i], &local.limits[i],
                   assay_layer_storage(layer, out[i]->type), r->rounding->compute, &ratio);
    if (!st && ratio > 0 && r->n_ratios < MAX_RATIOS) r->ratios[r->n_ratios++] = ratio;
  }
  assay_local_deinit(&local);
  return st;
}

// Fills the model's floats anew; weights so that sums of them are of the size of 1.
static void refill(assay_model_t* m, assay_tensor_t** in, data_t* d, pattern_t pattern) {
  const assay_format_info_t* f = assay_format_info(ASSAY_FORMAT_BF16);
  for (size_t i = 0; in[i]; i++) {
    make_pattern(d, pattern, f, assay_f64(in[i]), in[i]->size);
    assay_format_round_n(ASSAY_FORMAT_BF16, assay_f64(in[i]), assay_f64(in[i]), (size_t)in[i]->size,
                         ASSAY_OVERFLOW_IEEE);
  }
  for (size_t i = 0; i < m->graph->n_initializers; i++) {
    assay_tensor_t* t = m->graph->initializers[i]->constant;
    if (t->rank == 0) continue;
    const double scale = t->rank == 3 ? 1 / sqrt((double)t->dims[2]) : 0.1;
    for (int64_t k = 0; k < t->size; k++) assay_f64(t)[k] = scale * normal(d);
    assay_format_round_n(ASSAY_FORMAT_FP32, assay_f64(t), assay_f64(t), (size_t)t->size,
                         ASSAY_OVERFLOW_IEEE);
  }
}

static void run_case(run_t* r, pattern_t pattern, data_t* d) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&r->c->graph, in);
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  const assay_precision_t precision = {.format = ASSAY_FORMAT_BF16};
  const assay_tap_t tap = {.layer = on_layer, .user = r};
  refill(m, in, d, pattern);
  op_case_ok(assay_plan_create(m, &precision, &(assay_plan_options_t){.fused = true}, 1, &plan));
  op_case_ok(assay_locals_create(assay_plan_layers(plan), false, &r->locals));
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find("cpu"), &tap, &e));
  op_case_ok(assay_executor_set_inputs(e, in));
  op_case_ok(assay_executor_run(e));
  const char* tactic = assay_executor_tactic(e, assay_executor_n_steps(e) - 1);
  if (strcmp(tactic, r->c->tactic) != 0) fail_msg("%s: by %s", r->c->graph.name, tactic);
  assay_executor_destroy(e);
  assay_locals_destroy(r->locals);
  assay_plan_destroy(plan);
  graph_case_release(in);
  assay_model_release(m);
}

static double median_of(double* x, size_t n) {
  qsort(x, n, sizeof *x, ascending);
  return n ? x[n / 2] : 0;
}

static void limits_hold(void** state) {
  const uint64_t seed = *(const uint64_t*)*state;
  if (cpu_level() < CPU_LEVEL_BF16) skip_because("no products of bf16 here (AVX512_BF16)");
  int wide = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run_t r = {.c = &cases[i], .rounding = rounding_of(cases[i].tactic)};
    data_t d = {.random = assay_random_make(seed, cases[i].graph.name, 0)};
    for (int k = 0; k < ROUNDS * PATTERN_COUNT; k++) {
      const pattern_t pattern = (pattern_t)(k % PATTERN_COUNT);
      r.judged = (assay_judgement_t){0};
      r.keeps_ratios = pattern == PATTERN_NORMAL;
      run_case(&r, pattern, &d);
      if (r.judged.beyond)
        fail_msg("%s, seed %llu, run %d (%s): %lld elements beyond; %.9g, truth %.9g, limit %.3g",
                 cases[i].graph.name, (unsigned long long)seed, k, pattern_names[pattern],
                 (long long)r.judged.beyond, r.judged.worst_engine, r.judged.worst_truth,
                 r.judged.worst_limit);
      if (pattern == PATTERN_NORMAL && r.judged.between)
        fail_msg("%s, seed %llu, run %d: %lld of %lld elements past the probable limit",
                 cases[i].graph.name, (unsigned long long)seed, k, (long long)r.judged.between,
                 (long long)r.judged.elements);
    }
    const double ratio = median_of(r.ratios, r.n_ratios);
    printf("%-20s median probable limit / worst own error: %.1f\n", cases[i].graph.name, ratio);
    wide += !(ratio > 0 && ratio <= TIGHT);
  }
  assert_int_equal(wide, 0);
}

int main(void) {
  uint64_t seed = test_seed();
  const struct CMUnitTest tests[] = {cmocka_unit_test_prestate(limits_hold, &seed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
