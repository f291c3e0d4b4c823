// `tune` beside all assignments: tune_exhaustive MODEL INPUTS.npz FORMAT DB.
//
// The demand is DB decibels above the SNR of all layers in FORMAT. `tune` is asked for the least
// time (of a device without launch overhead, so that small layers differ; and with it), and for the
// fewest layers in fp32; then assignments of the two formats to the layers are run on the emulated
// engine, cheapest first by the same price, until one meets the demand. Prints, for each goal, what
// tune took and what the optimum is, as a line of JSON. For models of at most 16 layers.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "io/npz.h"
#include "onnx/load.h"
#include "tune/model.h"

enum { MAX = 16, GOALS = 3 };
static const char* const goal_names[GOALS] = {"time", "time and launches", "layers"};

typedef struct bench {
  assay_model_t* model;
  assay_samples_t inputs;
  assay_requirements_t require;
  assay_format_t format;
  char demand[64];
  assay_device_roofline_t devices[GOALS];
  signed char* met;  // by assignment, a bit a free unit: 1, 0; -1: not run
  size_t runs;
} bench_t;

static assay_check_setting_t check_options(bench_t* b) {
  return (assay_check_setting_t){.precision = {.format = b->format},
                                 .precision_name = "low",
                                 .backend = &assay_backend_emu,
                                 .require = &b->require};
}

static assay_tune_setting_t tune_options(const bench_t* b, int goal) {
  return (assay_tune_setting_t){.formats = {b->format, ASSAY_FORMAT_FP32},
                                .n_formats = 2,
                                .goal = goal == 2 ? ASSAY_TUNE_LAYERS : ASSAY_TUNE_TIME,
                                .device = &b->devices[goal]};
}

static assay_runs_setting_t runs_setting(bench_t* b, const assay_plan_options_t* plan) {
  return (assay_runs_setting_t){
      .backend = &assay_backend_emu, .plan = plan, .require = &b->require, .inputs = &b->inputs};
}

// The demand: so much above all layers in the format.
static assay_status_t set_requirement(bench_t* b, double above) {
  const assay_plan_options_t plan = {0};
  const assay_runs_setting_t setting = runs_setting(b, &plan);
  const assay_precision_t p = {.format = b->format};
  assay_runs_t* runs = NULL;
  assay_run_result_t got = {0};
  ASSAY_TRY(assay_runs_create(b->model, &setting, &runs));
  assay_status_t st = assay_runs_try(runs, &p, &got, NULL, NULL);
  if (!st) {
    snprintf(b->demand, sizeof b->demand, "snr_db >= %.2f",
             assay_error_sum_snr_db(&got.outputs[0].error) + above);
    st = assay_require_parse(&b->require, b->demand);
  }
  assay_run_result_deinit(&got);
  assay_runs_destroy(runs);
  return st;
}

// ---- all assignments ----------------------------------------------------------------------------

typedef struct entry {
  uint32_t mask;  // units in fp32
  double price;
} entry_t;

static int cheapest_first(const void* a, const void* b) {
  const double x = ((const entry_t*)a)->price, y = ((const entry_t*)b)->price;
  return (x > y) - (x < y);
}

typedef struct all {
  bench_t* b;
  assay_runs_t* runs;
  assay_tune_model_t model;
  size_t units[MAX];
  size_t n;
  uint8_t* format;
  assay_format_t* given;
} all_t;

static void set_mask(all_t* a, uint32_t mask) {
  for (size_t i = 0; i < a->n; i++) a->format[a->units[i]] = mask >> i & 1;
}

static assay_status_t is_met(all_t* a, uint32_t mask, bool* out) {
  assay_precision_t p = a->model.bases[0].precision;
  assay_run_result_t got = {0};
  if (a->b->met[mask] < 0) {
    set_mask(a, mask);
    memset(a->given, 0, (size_t)a->model.model->n_node_ids * sizeof *a->given);
    assay_tune_model_given(&a->model, a->format, a->given);
    p.given = a->given;
    ASSAY_TRY(assay_runs_try(a->runs, &p, &got, NULL, NULL));
    a->b->met[mask] = got.faithful;
    a->b->runs++;
    assay_run_result_deinit(&got);
  }
  *out = a->b->met[mask] == 1;
  return NULL;
}

static assay_status_t price_all(all_t* a, int goal, entry_t* entries) {
  for (uint32_t mask = 0; mask < 1u << a->n; mask++) {
    set_mask(a, mask);
    entries[mask] = (entry_t){.mask = mask};
    if (goal == 2)
      entries[mask].price = __builtin_popcount(mask);
    else
      ASSAY_TRY(assay_tune_model_seconds(&a->model, a->format, &entries[mask].price));
  }
  qsort(entries, (size_t)1 << a->n, sizeof *entries, cheapest_first);
  return NULL;
}

static assay_status_t walk(all_t* a, int goal, double* out_price) {
  entry_t* entries = NULL;
  ASSAY_TRY(assay_new_array((size_t)1 << a->n, sizeof *entries, &entries));
  assay_status_t st = price_all(a, goal, entries);
  bool met = false;
  for (size_t i = 0; !st && !met && i < (size_t)1 << a->n; i++) {
    st = is_met(a, entries[i].mask, &met);
    *out_price = entries[i].price;
  }
  assay_free(entries);
  return st;
}

static assay_status_t optimum(bench_t* b, int goal, size_t* out_units, double* out_price) {
  const assay_plan_options_t plan = {0};
  const assay_runs_setting_t setting = runs_setting(b, &plan);
  const assay_tune_setting_t options = tune_options(b, goal);
  assay_check_setting_t check = check_options(b);
  all_t a = {.b = b};
  ASSAY_TRY(assay_runs_create(b->model, &setting, &a.runs));
  assay_status_t st =
      assay_tune_model_create(b->model, &check, &options, &b->inputs, a.runs, &a.model);
  const assay_tune_layout_t* l = &a.model.layout;
  if (!st) st = assay_new_array(l->n_units, 1, &a.format);
  if (!st) st = assay_new_array((size_t)b->model->n_node_ids, sizeof *a.given, &a.given);
  for (size_t u = 0; !st && u < l->n_units; u++) {
    a.format[u] = a.model.out_of_range[u];
    if (!l->floats[u] || a.model.out_of_range[u]) continue;
    if (a.n == MAX)
      st = ASSAY_ERROR(ASSAY_UNSUPPORTED, "the model has more than %d layers", MAX);
    else
      a.units[a.n++] = u;
  }
  if (!st && !b->met) st = assay_new_array((size_t)1 << a.n, 1, &b->met);
  if (!st && !b->runs) memset(b->met, -1, (size_t)1 << a.n);
  if (!st) st = walk(&a, goal, out_price);
  *out_units = a.n;
  assay_tune_model_deinit(&a.model);
  assay_runs_destroy(a.runs);
  assay_free(a.format);
  assay_free(a.given);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t one_goal(bench_t* b, int goal) {
  const assay_tune_setting_t options = tune_options(b, goal);
  assay_check_setting_t check = check_options(b);
  assay_tuned_t tuned = {0};
  double best = 0;
  size_t units = 0;
  ASSAY_TRY(assay_tune(b->model, &check, &options, &b->inputs, NULL, &tuned));
  assay_status_t st = optimum(b, goal, &units, &best);
  if (!st) {
    const assay_tune_trial_t* t = &tuned.trials[tuned.chosen];
    printf(
        "{\"goal\": \"%s\", \"met\": %s, \"tune\": %.9g, \"optimum\": %.9g, \"units\": %zu, "
        "\"demand\": \"%s\", \"fp32\": %zu, \"trials\": %zu, \"runs\": %zu}\n",
        goal_names[goal], tuned.met ? "true" : "false",
        goal == 2 ? (double)t->count[1] : t->seconds, best, units, b->demand, t->count[1],
        tuned.n_trials, b->runs);
    fflush(stdout);
  }
  assay_tuned_deinit(&tuned);
  return st;
}

static assay_status_t run(bench_t* b, char** argv) {
  assay_set_t set = {0};
  b->format = assay_format_parse(argv[3]);
  for (int g = 0; g < GOALS; g++) b->devices[g] = *assay_device_roofline_find("orin");
  b->devices[0].microseconds = b->devices[2].microseconds = 0;
  ASSAY_TRY(assay_onnx_load(argv[1], 0, NULL, &b->model));
  assay_status_t st = assay_npz_read(argv[2], &set);
  if (!st)
    st = assay_samples_from_set(&set, b->model->graph->inputs, b->model->graph->n_inputs, true,
                                &b->inputs);
  assay_set_deinit(&set);
  if (!st) st = set_requirement(b, atof(argv[4]));
  for (int g = 0; !st && g < GOALS; g++) st = one_goal(b, g);
  return st;
}

int main(int argc, char** argv) {
  bench_t b = {0};
  if (argc != 5) return fprintf(stderr, "tune_exhaustive MODEL INPUTS.npz FORMAT DB\n"), 2;
  assay_status_t st = run(&b, argv);
  if (st) fprintf(stderr, "%s\n", assay_status_message(st));
  const int code = st ? 4 : 0;
  assay_status_free(st);
  assay_free(b.met);
  assay_samples_deinit(&b.inputs);
  assay_requirements_deinit(&b.require);
  assay_model_release(b.model);
  return code;
}
