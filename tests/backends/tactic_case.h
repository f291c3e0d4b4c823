// Rows that test tactics: a small model whose last layer a tactic has to take, run beside the
// emulated engine, in several formats and with several numbers of threads.
#ifndef ASSAY_TESTS_BACKENDS_TACTIC_CASE_H_
#define ASSAY_TESTS_BACKENDS_TACTIC_CASE_H_

#include <math.h>
#include <omp.h>

#include "account/account.h"
#include "exec/backend.h"
#include "onnx/load.h"
#include "passes/graph_case.h"
#include "runtime/engine.h"
#include "runtime/executor.h"

typedef struct tactic_case {
  graph_case_t graph;
  // That runs the last layer, or how its name begins, or several with | between; NULL: whichever.
  const char* tactic;
  double tolerance;  // relative to the largest element, in fp32; 0: the same bits
  bool specials;     // some elements of float inputs are zeros, infinities, NaN, huge and tiny
} tactic_case_t;

typedef struct tactic_run {
  assay_tensor_t* out[8];
  size_t n_out;
  char tactic[64];
} tactic_run_t;

// What a case asks for is to be run as it stands.
static const char* const tactic_case_off[] = {"view_chains", "transposes", "no_ops",
                                              "slices_to_split", "float_types"};
enum { TACTIC_CASE_OFF = sizeof tactic_case_off / sizeof *tactic_case_off };

// What --tactic-sources restricts the CPU's tactics to in the runs from now on; NULL: to nothing.
static const char* tactic_case_sources;

// Whose tactics they are.
static const char* tactic_case_backend = "cpu";

static inline void tactic_case_release(tactic_run_t* r) {
  for (size_t i = 0; i < r->n_out; i++) assay_tensor_release(r->out[i]);
  *r = (tactic_run_t){0};
}

static inline assay_status_t tactic_case_try_in(assay_fp32_t fp32, assay_model_t* m,
                                                const char* backend, assay_format_t format,
                                                assay_tensor_t* const* in, tactic_run_t* r) {
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {
      .fused = true, .fp32 = fp32, .passes = {.off = tactic_case_off, .n_off = TACTIC_CASE_OFF}};
  *r = (tactic_run_t){0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  assay_engine_t* engine = NULL;
  const assay_backend_options_t choice = {.tactic_sources = tactic_case_sources};
  const bool chosen = tactic_case_sources && strcmp(backend, "cpu") == 0;
  if (chosen) {
    op_case_ok(assay_engine_create(plan, assay_backend_find(backend), &choice, &engine));
    op_case_ok(assay_executor_run_engine(engine, NULL, &e));
  } else {
    op_case_ok(assay_executor_run_plan(plan, assay_backend_find(backend), NULL, &e));
  }
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
  assay_status_t st = assay_executor_run(e);
  r->n_out = st ? 0 : g->n_outputs;
  for (size_t i = 0; i < r->n_out; i++) {
    r->out[i] = assay_executor_get(e, g->outputs[i]);
    assert_non_null(r->out[i]);
    assay_tensor_retain(r->out[i]);
  }
  const size_t steps = assay_executor_n_steps(e);
  snprintf(r->tactic, sizeof r->tactic, "%s", steps ? assay_executor_tactic(e, steps - 1) : "none");
  assay_executor_destroy(e);
  assay_engine_release(engine);
  if (!chosen) assay_plan_destroy(plan);
  return st;
}

static inline assay_status_t tactic_case_try(assay_model_t* m, const char* backend,
                                             assay_format_t format, assay_tensor_t* const* in,
                                             tactic_run_t* r) {
  return tactic_case_try_in(ASSAY_FP32_TIGHT, m, backend, format, in, r);
}

static inline void tactic_case_run(assay_model_t* m, const char* backend, assay_format_t format,
                                   assay_tensor_t* const* in, tactic_run_t* r) {
  op_case_ok(tactic_case_try(m, backend, format, in, r));
}

static inline bool tactic_case_same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->kind == b->kind && a->type == b->type && a->rank == b->rank &&
         (!a->rank || memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0);
}

// tolerance: of the largest; infinite: whatever is finite.
static inline void tactic_case_compare(const char* name, const char* format,
                                       const assay_tensor_t* want, const assay_tensor_t* got,
                                       double tolerance) {
  if (!tactic_case_same_shape(want, got)) fail_msg("%s, %s: another shape", name, format);
  double largest = 0;
  for (int64_t i = 0; want->store == ASSAY_STORE_F64 && i < want->size; i++)
    if (isfinite(assay_f64(want)[i])) largest = fmax(largest, fabs(assay_f64(want)[i]));
  for (int64_t i = 0; i < want->size; i++) {
    double a, b;
    if (want->store == ASSAY_STORE_F64) {
      a = assay_f64(want)[i];
      b = assay_f64(got)[i];
    } else {
      a = (double)assay_i64(want)[i];
      b = (double)assay_i64(got)[i];
    }
    const bool same = isnan(a)                                 ? isnan(b)
                      : isinf(a) || isinf(b) || tolerance == 0 ? a == b
                      : isinf(tolerance)                       ? !isnan(b)
                                                               : fabs(a - b) <= tolerance * largest;
    if (!same)
      fail_msg("%s, %s: element %lld is %.9g, not %.9g (largest %g)", name, format, (long long)i, b,
               a, largest);
  }
}

// Bit for bit: zeros have signs here.
static inline bool tactic_case_identical(const assay_tensor_t* a, const assay_tensor_t* b) {
  return tactic_case_same_shape(a, b) &&
         (!a->size || memcmp(a->data, b->data, (size_t)a->size * 8) == 0);
}

static inline void tactic_case_specials(assay_tensor_t* t) {
  static const double values[] = {0,  -0.0, INFINITY, -INFINITY, NAN,  1e-40,
                                  -3, 3,    60,       -60,       1e30, -1e30};
  if (t->store != ASSAY_STORE_F64) return;
  for (int64_t i = 0; i < t->size; i += 3)
    assay_f64(t)[i] = (double)(float)values[i / 3 % (int64_t)(sizeof values / sizeof *values)];
}

// No element may lie beyond what rounding in its layer can do.
static inline void tactic_case_judge(const tactic_case_t* c, assay_fp32_t fp32, assay_model_t* m,
                                     assay_format_t format, assay_tensor_t* const* in) {
  const assay_precision_t precision = {.format = format};
  const assay_account_options_t options = {0};
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  const assay_plan_options_t plan_options = {
      .fused = true, .fp32 = fp32, .passes = {.off = tactic_case_off, .n_off = TACTIC_CASE_OFF}};
  op_case_ok(assay_plan_create(m, &precision, &plan_options, 1, &plan));
  op_case_ok(assay_account_create(plan, assay_backend_find(tactic_case_backend), &options, &a));
  op_case_ok(assay_account_run(a, in));
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (!l->bounded || l->judged.beyond || l->verdict == ASSAY_VERDICT_DEFECT)
      fail_msg("%s: %lld elements of layer '%s' beyond, the worst %.3g times its limit",
               c->graph.name, (long long)l->judged.beyond, l->layer->name, l->judged.worst);
  }
  assay_account_destroy(a);
  assay_plan_destroy(plan);
}

static inline bool tactic_case_is_by(const char* got, const char* tactics) {
  for (const char* t = tactics; t; t = strchr(t, '|') ? strchr(t, '|') + 1 : NULL)
    if (strncmp(got, t, strcspn(t, "|")) == 0) return true;
  return false;
}

// Each element is held to its own limit; in fp32 to the case's tolerance, too, which is the tighter
// one where sums do not cancel. What is not finite stands where the emulated engine has it.
static inline void tactic_case_check_in(assay_fp32_t fp32, const tactic_case_t* c) {
  static const struct {
    const char* name;
    assay_format_t format;
  } formats[] = {
      {"fp32", ASSAY_FORMAT_FP32}, {"bf16", ASSAY_FORMAT_BF16}, {"fp16", ASSAY_FORMAT_FP16}};
  const int threads = omp_get_max_threads();
  for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&c->graph, in);
    tactic_run_t want, got, again;
    for (size_t i = 0; c->specials && in[i]; i++) tactic_case_specials(in[i]);
    tactic_case_run(m, "emu", formats[f].format, in, &want);
    op_case_ok(tactic_case_try_in(fp32, m, tactic_case_backend, formats[f].format, in, &got));
    if (c->tactic && !tactic_case_is_by(got.tactic, c->tactic))
      fail_msg("%s, %s: by %s, not by %s", c->graph.name, formats[f].name, got.tactic, c->tactic);
    omp_set_num_threads(threads == 1 ? 3 : 1);
    op_case_ok(tactic_case_try_in(fp32, m, tactic_case_backend, formats[f].format, in, &again));
    omp_set_num_threads(threads);
    const bool judged = c->tolerance > 0;
    if (judged) tactic_case_judge(c, fp32, m, formats[f].format, in);
    for (size_t i = 0; i < want.n_out; i++) {
      tactic_case_compare(
          c->graph.name, formats[f].name, want.out[i], got.out[i],
          formats[f].format != ASSAY_FORMAT_FP32 && judged ? (double)INFINITY : c->tolerance);
      if (!tactic_case_identical(got.out[i], again.out[i]))
        fail_msg("%s, %s: depends on the number of threads", c->graph.name, formats[f].name);
    }
    tactic_case_release(&want);
    tactic_case_release(&got);
    tactic_case_release(&again);
    graph_case_release(in);
    assay_model_release(m);
  }
}

static inline void tactic_case_check(const tactic_case_t* c) {
  tactic_case_check_in(ASSAY_FP32_TIGHT, c);
}

static inline void tactic_case_all(const tactic_case_t* cases, size_t n) {
  for (size_t i = 0; i < n; i++) tactic_case_check(&cases[i]);
}

// A layer that makes bytes: of the emulated engine's, `tolerance` is the share that may be one step
// off (what adds floats in another order). In fp32 only; judged by its bounds, too.
static inline void tactic_case_check_bytes(const tactic_case_t* c) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want, got, again;
  if (c->specials) tactic_case_specials(in[0]);
  tactic_case_run(m, "emu", ASSAY_FORMAT_FP32, in, &want);
  tactic_case_run(m, "cpu", ASSAY_FORMAT_FP32, in, &got);
  if (!tactic_case_is_by(got.tactic, c->tactic))
    fail_msg("%s: by %s, not by %s", c->graph.name, got.tactic, c->tactic);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(threads == 1 ? 3 : 1);
  tactic_case_run(m, "cpu", ASSAY_FORMAT_FP32, in, &again);
  omp_set_num_threads(threads);
  assert_true(tactic_case_same_shape(want.out[0], got.out[0]));
  assert_true(tactic_case_identical(got.out[0], again.out[0]));
  int64_t n = 0;
  for (int64_t i = 0; i < got.out[0]->size; i++) {
    const int64_t d = assay_i64(want.out[0])[i] - assay_i64(got.out[0])[i];
    if (d < -1 || d > 1) fail_msg("%s: element %lld", c->graph.name, (long long)i);
    n += d != 0;
  }
  if ((double)n > c->tolerance * (double)got.out[0]->size)
    fail_msg("%s: %lld of %lld elements differ", c->graph.name, (long long)n,
             (long long)got.out[0]->size);
  tactic_case_judge(c, ASSAY_FP32_TIGHT, m, ASSAY_FORMAT_FP32, in);
  tactic_case_release(&want);
  tactic_case_release(&got);
  tactic_case_release(&again);
  graph_case_release(in);
  assay_model_release(m);
}

#endif  // ASSAY_TESTS_BACKENDS_TACTIC_CASE_H_
