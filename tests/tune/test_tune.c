// Assignments of formats: that requirements are met, that forecasts are near what is measured, and
// what stands behind them.
#include <math.h>
#include <unistd.h>

#include "base/random.h"
#include "fail_case.h"
#include "formats/format.h"
#include "passes/graph_case.h"
#include "tune/model.h"

// 5 * 2e4 passes fp16 between `up` and `down`; before and behind them are layers that do.
#define CHAIN                                                             \
  {"x float[1,4] 1 2 3 -3"},                                              \
      {"e float[4,4] 1 0.5 0 0 0 1 0.5 0 0 0 1 0.5 0.5 0 0 1",            \
       "k float[4,4] 2e4 0 0 0 0 2e4 0 0 0 0 2e4 0 0 0 0 2e4",            \
       "l float[4,4] 1e-4 0 0 0 0 1e-4 0 0 0 0 1e-4 0 0 0 0 1e-4"},       \
      {"MatMul a x e -> u",    "MatMul b u e -> v", "MatMul up v k -> p", \
       "MatMul down p l -> q", "MatMul c q e -> w", "MatMul d w e -> y"}, \
      "y"
#define NOISY                                                                                 \
  {"x float[8,64]"}, {"w float[64,64]", "v float[64,64]", "s float[] 0.2", "u float[64,8]"},  \
      {"MatMul one x w -> a", "Mul m a s -> b", "Tanh t b -> c",    "MatMul two c v -> d",    \
       "Add r c d -> e",      "Mul n e s -> f", "Sigmoid g f -> h", "MatMul three h u -> y"}, \
      "y"
#define IMAGES                                                                      \
  {"x float[2,3,12,12]"}, {"w float[8,3,3,3]", "v float[8,8,3,3]", "u float[4,8]"}, \
      {"Conv one x w -> a | pads=1,1,1,1",                                          \
       "Relu r a -> b",                                                             \
       "Conv two b v -> c | pads=1,1,1,1",                                          \
       "Add add b c -> d",                                                          \
       "MaxPool pool d -> e | kernel_shape=2,2 strides=2,2",                        \
       "GlobalAveragePool mean e -> f",                                             \
       "Flatten flat f -> g",                                                       \
       "Gemm last g u -> y | transB=1"},                                            \
      "y"

static const assay_format_t FP16[] = {ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP32};
static const assay_format_t BF16[] = {ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP32};
static const assay_format_t BOTH[] = {ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16, ASSAY_FORMAT_FP32};

typedef struct row {
  graph_case_t graph;
  const assay_format_t* formats;
  size_t n_formats;
  const assay_backend_t* backend;
  assay_tune_goal_t goal;
  const char* require;  // NULL: the default
  const char* nodes;    // in fp32, "a b c"; NULL: any
} row_t;

static const row_t rows[] = {
    {{"by range", 0, CHAIN}, FP16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, NULL, "up down"},
    {{"by range", 0, CHAIN}, FP16, 2, &assay_backend_cpu, ASSAY_TUNE_LAYERS, NULL, "up down"},
    {{"wide enough", 0, CHAIN}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, NULL, ""},
    {{"either", 0, CHAIN}, BOTH, 3, &assay_backend_emu, ASSAY_TUNE_LAYERS, NULL, ""},
    {{"cosine", 0, NOISY},
     BF16,
     2,
     &assay_backend_emu,
     ASSAY_TUNE_LAYERS,
     "cosine >= 0.999999",
     NULL},
    {{"snr", 0, NOISY}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_TIME, "snr_db >= 54", NULL},
    {{"psnr", 0, NOISY}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, "y: psnr_db >= 60", NULL},
    {{"max_abs", 0, NOISY},
     BF16,
     2,
     &assay_backend_emu,
     ASSAY_TUNE_LAYERS,
     "y: max_abs <= 0.01",
     NULL},
    {{"rms", 0, NOISY}, FP16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, "rms < 1e-3", NULL},
    {{"mean", 0, NOISY}, FP16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, "mean < 1e-4", NULL},
    {{"top1", 0, NOISY}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, "top1 >= 1", NULL},
    {{"two demands", 0, NOISY},
     BOTH,
     3,
     &assay_backend_emu,
     ASSAY_TUNE_LAYERS,
     "snr_db >= 70",
     NULL},
    {{"fused", 0, IMAGES}, BF16, 2, &assay_backend_cpu, ASSAY_TUNE_LAYERS, "snr_db >= 55", NULL},
    {{"images", 0, IMAGES}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_LAYERS, "snr_db >= 55", NULL},
    {{"a judge that takes all", 0, NOISY},
     BF16,
     2,
     &assay_backend_emu,
     ASSAY_TUNE_LAYERS,
     "test -s {outputs}",
     ""},
    // Choices have no derivatives.
    {{"by flips",
      0,
      {"x float[1,3] 1 1.0001 0.5"},
      {"one float[] 1"},
      {"Mul low x one -> p", "ArgMax n p -> y | axis=1"},
      "y"},
     FP16,
     2,
     &assay_backend_emu,
     ASSAY_TUNE_LAYERS,
     NULL,
     NULL},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

typedef struct fixture {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_samples_t inputs;
  assay_requirements_t require;
  assay_check_setting_t check;
  assay_tune_setting_t options;
  assay_tuned_t tuned;
} fixture_t;

static void prepare(const row_t* r, fixture_t* f) {
  *f = (fixture_t){0};
  f->model = graph_case_model(&r->graph, f->in);
  if (r->require) op_case_ok(assay_require_parse(&f->require, r->require));
  f->inputs = (assay_samples_t){.n = 1, .n_values = f->model->graph->n_inputs, .at = f->in};
  f->check = (assay_check_setting_t){.precision = {.format = r->formats[0]},
                                     .plan = {.fused = r->backend != &assay_backend_emu},
                                     .precision_name = "low",
                                     .backend = r->backend,
                                     .require = &f->require};
  f->options = (assay_tune_setting_t){.n_formats = r->n_formats,
                                      .goal = r->goal,
                                      .device = assay_device_roofline_find("orin"),
                                      .front = 4};
  memcpy(f->options.formats, r->formats, r->n_formats * sizeof *r->formats);
}

static void forget(fixture_t* f) {
  assay_tuned_deinit(&f->tuned);
  assay_requirements_deinit(&f->require);
  assay_model_release(f->model);
  graph_case_release(f->in);
}

static void tune(const row_t* r, fixture_t* f) {
  prepare(r, f);
  op_case_ok(assay_tune(f->model, &f->check, &f->options, &f->inputs, NULL, &f->tuned));
}

static void check_nodes(const char* what, const char* nodes, const assay_fix_t* f) {
  char name[64];
  size_t n = 0;
  int used;
  for (const char* p = nodes; sscanf(p, " %63s%n", name, &used) == 1; p += used, n++) {
    bool kept = false;
    for (size_t i = 0; i < f->n_nodes; i++) kept |= strcmp(f->nodes[i]->label, name) == 0;
    if (!kept) fail_msg("'%s': '%s' is not in fp32", what, name);
  }
  if (n != f->n_nodes) fail_msg("'%s': %zu nodes are in fp32, %zu have to", what, f->n_nodes, n);
}

static void demands_are_met(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const row_t* r = &rows[i];
    fixture_t f;
    tune(r, &f);
    const assay_tuned_t* t = &f.tuned;
    if (!t->met) fail_msg("'%s' is not met", r->graph.name);
    const assay_tune_trial_t* c = &t->trials[t->chosen];
    if (!c->met || !c->outputs) fail_msg("'%s': what was chosen has not been run", r->graph.name);
    for (size_t o = 0; o < t->n_outputs; o++) {
      assay_str_t why = {0};
      if (!assay_require_holds(&f.require, &c->outputs[o], &why))
        fail_msg("'%s': %s", r->graph.name, assay_str_get(&why));
      assay_str_deinit(&why);
    }
    if (r->nodes) check_nodes(r->graph.name, r->nodes, &t->fixes[r->n_formats - 1]);
    for (size_t k = 1; k < t->n_front; k++) assert_true(t->front[k].predicted != NULL);
    forget(&f);
  }
}

// What fp32 does not do, nothing does: said after the runs in one format.
static void what_cannot_be_met(void** state) {
  (void)state;
  static const char* const requirements[] = {"snr_db >= 250", "max_abs <= 0", "false {outputs}",
                                             "nan >= 1"};
  for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
    const row_t r = {{requirements[i], 0, NOISY},
                     BF16,
                     2,
                     &assay_backend_emu,
                     ASSAY_TUNE_TIME,
                     requirements[i],
                     NULL};
    fixture_t f;
    tune(&r, &f);
    if (f.tuned.met || f.tuned.n_trials > 2)
      fail_msg("'%s': met %d, %zu runs", requirements[i], f.tuned.met, f.tuned.n_trials);
    assert_false(f.tuned.trials[0].met);
    forget(&f);
  }
}

static void rules_of_the_user_stand(void** state) {
  (void)state;
  static const row_t r = {{"pinned", 0, NOISY}, BF16,           2,   &assay_backend_emu,
                          ASSAY_TUNE_LAYERS,    "snr_db >= 20", NULL};
  fixture_t f;
  prepare(&r, &f);
  op_case_ok(assay_precision_parse(&f.check.precision, "two:fp32"));
  op_case_ok(assay_tune(f.model, &f.check, &f.options, &f.inputs, NULL, &f.tuned));
  assert_true(f.tuned.met);
  assert_int_equal(f.tuned.n_pinned, 1);
  assert_int_equal(f.tuned.trials[f.tuned.chosen].count[1], 1);
  assert_int_equal(f.tuned.fixes[1].n_nodes, 0);  // the rule says it already
  forget(&f);
}

// A rule for what makes no floats leaves nothing to choose, and does no harm.
static void rules_for_sizes(void** state) {
  (void)state;
  static const row_t r = {{"of sizes",
                           0,
                           {"x float[2,3,4]"},
                           {"w float[12,4]", "tail int64[1] -1"},
                           {"Shape s x -> n | end=1", "Concat shape n tail -> r | axis=0",
                            "Reshape flat x r -> a", "MatMul one a w -> y"},
                           "y"},
                          BF16,
                          2,
                          &assay_backend_emu,
                          ASSAY_TUNE_LAYERS,
                          "snr_db >= 100",
                          NULL};
  fixture_t f;
  prepare(&r, &f);
  op_case_ok(assay_precision_parse(&f.check.precision, "s:fp32"));
  op_case_ok(assay_tune(f.model, &f.check, &f.options, &f.inputs, NULL, &f.tuned));
  assert_true(f.tuned.met);
  forget(&f);
}

// ---- forecasts ----------------------------------------------------------------------------------

static double rms(const assay_output_check_t* o) { return sqrt(assay_tune_mean_square(o)); }

// Random assignments of the units, forecast from the run in one format, then run.
static void count_forecasts(const row_t* r, uint64_t seed, size_t* within, size_t* of) {
  enum { ASSIGNMENTS = 24 };
  fixture_t f;
  prepare(r, &f);
  const assay_runs_setting_t setting = {
      .backend = r->backend, .plan = &f.check.plan, .require = &f.require, .inputs = &f.inputs};
  assay_runs_t* runs = NULL;
  assay_tune_model_t m = {0};
  assay_run_result_t base = {0};
  assay_tune_state_t s = {0};
  const assay_random_t random = assay_random_make(seed, r->graph.name, 0);
  uint64_t at = 0;
  op_case_ok(assay_runs_create(f.model, &setting, &runs));
  op_case_ok(assay_tune_model_create(f.model, &f.check, &f.options, &f.inputs, runs, &m));
  assay_precision_t p = m.bases[0].precision;
  assay_format_t given[64];
  assert_true(f.model->n_node_ids <= 64);
  op_case_ok(assay_runs_try(runs, &p, &base, NULL, NULL));
  op_case_ok(assay_tune_model_errors(&m, 0, base.outputs));
  op_case_ok(assay_tune_state_create(&m.layout.problem, 0, &s));
  for (int k = 0; k < ASSIGNMENTS; k++) {
    assay_run_result_t got = {0};
    for (size_t u = 0; u < m.layout.n_units; u++) {
      const uint8_t format = assay_random_uniform(&random, at++) < 0.5;
      if (assay_tune_allowed(&m.layout.problem, u, format))
        assay_tune_state_set(&m.layout.problem, &s, u, format);
    }
    memset(given, 0, sizeof given);
    assay_tune_model_given(&m, s.format, given);
    p.given = given;
    op_case_ok(assay_runs_try(runs, &p, &got, NULL, NULL));
    const double said = sqrt(assay_tune_error(&m.layout.problem, &s, 0)),
                 has = rms(&got.outputs[0]);
    *within += said <= 2 * has && has <= 2 * said;
    *of += 1;
    assay_run_result_deinit(&got);
  }
  assay_tune_state_deinit(&s);
  assay_run_result_deinit(&base);
  assay_tune_model_deinit(&m);
  assay_runs_destroy(runs);
  forget(&f);
}

static void forecasts_are_near(void** state) {
  (void)state;
  static const row_t some[] = {
      {{"noisy, bf16", 0, NOISY}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_TIME, NULL, NULL},
      {{"noisy, fp16", 0, NOISY}, FP16, 2, &assay_backend_emu, ASSAY_TUNE_TIME, NULL, NULL},
      {{"images, bf16", 0, IMAGES}, BF16, 2, &assay_backend_emu, ASSAY_TUNE_TIME, NULL, NULL},
      {{"images, fp16", 0, IMAGES}, FP16, 2, &assay_backend_emu, ASSAY_TUNE_TIME, NULL, NULL},
  };
  size_t within = 0, of = 0;
  for (size_t i = 0; i < sizeof some / sizeof *some; i++)
    count_forecasts(&some[i], 20 + i, &within, &of);
  print_message("seeds 20 to 23: %zu of %zu within a factor 2\n", within, of);
  if (within < of * 19 / 20) fail_msg("%zu of %zu within a factor 2", within, of);
}

// Statistics at another size of the error are those of an error of that size.
static void statistics_are_resized(void** state) {
  (void)state;
  enum { N = 4096 };
  static double ref[N], golden[N], got[N], small[N];
  const assay_random_t random = assay_random_make(5, "resize", 0);
  assay_value_t v = {.name = "y"};
  assay_output_check_t a = {.value = &v, .is_float = true, .has_golden = true};
  a.error = a.golden = a.engine_golden = ASSAY_ERROR_SUM_INIT;
  assay_output_check_t b = a;
  const double root = 0.3;
  for (size_t i = 0; i < N; i++) {
    const double e = 1e-2 * assay_random_normal(&random, 3 * i + 2);
    ref[i] = 1 + assay_random_normal(&random, 3 * i);
    golden[i] = ref[i] + 5e-3 * assay_random_normal(&random, 3 * i + 1);
    got[i] = ref[i] + e;
    small[i] = ref[i] + root * e;
  }
  assay_error_sum_add(&a.error, got, ref, N);
  assay_error_sum_add(&a.golden, ref, golden, N);
  assay_error_sum_add(&a.engine_golden, got, golden, N);
  assay_error_sum_add(&b.error, small, ref, N);
  b.golden = a.golden;
  assay_error_sum_add(&b.engine_golden, small, golden, N);
  const assay_output_check_t c = assay_tune_forecast(&a, NULL, root * root);
  static const char* const requirements[] = {
      "cosine >= 0",        "snr_db >= 0",      "psnr_db >= 0", "max_abs >= 0",
      "rms >= 0",           "mean >= 0",        "max_rel >= 0", "golden_psnr_db >= 0",
      "golden_snr_db >= 0", "drop_psnr_db >= 0"};
  for (size_t i = 0; i < sizeof requirements / sizeof *requirements; i++) {
    assay_requirements_t r = {0};
    const char* name = NULL;
    double x = 0, y = 0;
    op_case_ok(assay_require_parse(&r, requirements[i]));
    assert_true(assay_require_value(&r.at[0], &b, &name, &x));
    assert_true(assay_require_value(&r.at[0], &c, &name, &y));
    const bool cosine = strcmp(name, "cosine") == 0;
    if (fabs(cosine ? (1 - x) / (1 - y) - 1 : x / y - 1) > 1e-6)
      fail_msg("%s: %.9g, forecast %.9g", name, x, y);
    assay_requirements_deinit(&r);
  }
}

static void ratios_are_found(void** state) {
  (void)state;
  static const struct {
    const char* demand;
    double ratio;  // of an error of 0.1 on values of 1; 0: none does
  } some[] = {{"rms <= 0.05", 0.25}, {"rms <= 0.2", 4},      {"snr_db >= 40", 0.01},
              {"snr_db >= 1000", 0}, {"nan == 0", INFINITY}, {"nan == 1", 0},
              {"max_abs < 0.1", 1}};
  double ref[4] = {1, -1, 1, -1}, got[4] = {1.1, -1.1, 0.9, -0.9};
  assay_value_t v = {.name = "y"};
  assay_output_check_t o = {.value = &v, .is_float = true, .error = ASSAY_ERROR_SUM_INIT};
  assay_error_sum_add(&o.error, got, ref, 4);
  for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
    assay_requirements_t r = {0};
    op_case_ok(assay_require_parse(&r, some[i].demand));
    const double ratio = assay_tune_largest_ratio(&o, NULL, &r);
    if (isfinite(some[i].ratio) ? fabs(ratio - some[i].ratio) > 1e-6 : isfinite(ratio))
      fail_msg("'%s': %.9g, expected %.9g", some[i].demand, ratio, some[i].ratio);
    assay_requirements_deinit(&r);
  }
}

// An error as large as the gap behind the largest element turns rows over, one much smaller does
// not.
static void rows_turn_over(void** state) {
  (void)state;
  int64_t dims[] = {2, 6};
  assay_tensor_t* t = NULL;
  assay_tune_gaps_t gaps = {0};
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 2, dims, &t));
  for (int i = 0; i < 12; i++) assay_f64(t)[i] = i < 6 ? i : 100 * i;
  op_case_ok(assay_tune_gaps_add(&gaps, t));
  assert_int_equal(gaps.n, 2);
  assert_true(gaps.first[0] == 1 && gaps.first[1] == 100 && gaps.fifth[0] == 1);
  assay_value_t v = {.name = "y"};
  assay_output_check_t o = {.value = &v,
                            .is_float = true,
                            .error = ASSAY_ERROR_SUM_INIT,
                            .rows = 100,
                            .top1 = 100,
                            .top5 = 100};
  const double got[2] = {1, -1}, ref[2] = {0, 0};
  assay_error_sum_add(&o.error, got, ref, 2);
  assert_int_equal(assay_tune_forecast(&o, &gaps, 1e-4).top1, 100);
  assert_int_equal(assay_tune_forecast(&o, &gaps, 9).top1,
                   80);  // 1/(3 * 2): 0.59 of the first row's kind
  assert_int_equal(assay_tune_forecast(&o, &gaps, 1e10).top1, 50);  // all is chance
  assay_tune_gaps_deinit(&gaps);
  assay_tensor_release(t);
}

// ---- times --------------------------------------------------------------------------------------

static void rooflines_are_sound(void** state) {
  (void)state;
  for (size_t i = 0; assay_device_roofline(i); i++) {
    const assay_device_roofline_t* d = assay_device_roofline(i);
    assert_true(d->fp16 >= d->tf32 && d->tf32 >= d->fp32 && d->bf16 >= d->fp32 &&
                d->fp8 >= d->fp32);
    // The default's launches are free: they would hide what formats do.
    assert_true(d->gigabytes > 0 && (i ? d->microseconds > 0 : d->microseconds == 0));
    assert_true(i || (d->fp16 > d->fp32 && d->bf16 > d->fp32));
    assert_ptr_equal(assay_device_roofline_find(d->name), d);
  }
  assert_null(assay_device_roofline_find("abacus"));
  static const row_t r = {{"images", 0, IMAGES}, FP16, 2,   &assay_backend_emu,
                          ASSAY_TUNE_TIME,       NULL, NULL};
  fixture_t f;
  tune(&r, &f);
  assert_true(f.tuned.trials[0].seconds > 0);
  forget(&f);
}

// ---- failures -----------------------------------------------------------------------------------

// Allocations fail, one of them in each attempt: all of the first ones, then ever fewer.
static void without_memory(void** state) {
  (void)state;
  static const row_t r = {{"noisy", 0, NOISY}, BF16,           2,   &assay_backend_emu,
                          ASSAY_TUNE_LAYERS,   "snr_db >= 58", NULL};
  size_t attempts = 0;
  for (uint64_t nth = 1;; nth = fail_next(nth, 400), attempts++) {
    fixture_t f;
    prepare(&r, &f);
    f.options.max_runs = 2;
    assay_alloc_fail_after(nth, false);
    assay_status_t st = assay_tune(f.model, &f.check, &f.options, &f.inputs, NULL, &f.tuned);
    const bool reached = assay_alloc_fail_after(0, false) >= nth;
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
      fail_msg("allocation %llu: %s", (unsigned long long)nth, assay_status_message(st));
    assay_status_free(st);
    assay_precision_deinit(&f.check.precision);
    forget(&f);
    if (!reached) break;  // not at a success: some do without what they could not have
  }
  assert_true(attempts > 400);
}

static void formats_are_counted(void** state) {
  (void)state;
  static const row_t r = {{"noisy", 0, NOISY}, FP16, 2,   &assay_backend_emu,
                          ASSAY_TUNE_TIME,     NULL, NULL};
  fixture_t f;
  prepare(&r, &f);
  f.options.n_formats = 1;
  assay_status_t st = assay_tune(f.model, &f.check, &f.options, &f.inputs, NULL, &f.tuned);
  assert_non_null(st);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  forget(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(demands_are_met),         cmocka_unit_test(what_cannot_be_met),
      cmocka_unit_test(rules_of_the_user_stand), cmocka_unit_test(rules_for_sizes),
      cmocka_unit_test(forecasts_are_near),      cmocka_unit_test(statistics_are_resized),
      cmocka_unit_test(ratios_are_found),        cmocka_unit_test(rows_turn_over),
      cmocka_unit_test(rooflines_are_sound),     cmocka_unit_test(without_memory),
      cmocka_unit_test(formats_are_counted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
