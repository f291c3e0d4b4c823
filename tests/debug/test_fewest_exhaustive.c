// The fewest layers in fp32 of small random models, against all subsets of their nodes: what
// check's fix, `debug precision` and tune find.
//
//   test_fewest_exhaustive [SEED [MODELS]]
#include <math.h>
#include <stdlib.h>

#include "account/runs.h"
#include "base/random.h"
#include "debug/precision.h"
#include "passes/graph_case.h"
#include "tune/tune.h"

enum { MIN_NODES = 6, MAX_NODES = 10 };
static uint64_t first_seed = 1;
static size_t n_models = 60;

// ---- a model ------------------------------------------------------------------------------------

typedef struct made {
  uint64_t seed;
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_samples_t inputs;
  assay_format_t format;
  char text[64];  // the requirement
  assay_requirements_t require;
  size_t n;
} made_t;

static size_t draw(const assay_random_t* r, uint64_t* at, size_t n) {
  return (size_t)(assay_random_uniform(r, (*at)++) * (double)n);
}

// A chain of products, sums and functions, some of which read values from further up.
static void make_model(made_t* t) {
  static const char* const kinds[] = {"MatMul",  "Mul", "Add", "Tanh",
                                      "Sigmoid", "Sub", "Sin", "Far"};
  enum { N_KINDS = sizeof kinds / sizeof *kinds };
  char text[MAX_NODES][96];
  const assay_random_t random = assay_random_make(t->seed, "fewest", 0);
  uint64_t at = 0;
  graph_case_t g = {"random",         0,
                    {"x float[4,8]"}, {"w float[8,8]", "k float[] 1.37", "far float[] 300"},
                    {NULL},           ""};
  t->n = MIN_NODES + draw(&random, &at, MAX_NODES - MIN_NODES + 1);
  t->format = draw(&random, &at, 2) ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16;
  size_t n_far = 0;
  for (size_t i = 0; i < t->n; i++) {
    const char* kind = kinds[draw(&random, &at, N_KINDS)];
    const size_t from = i, other = draw(&random, &at, i + 1);
    char a[8], b[8];
    snprintf(a, sizeof a, from ? "v%zu" : "x", from - 1);
    snprintf(b, sizeof b, other ? "v%zu" : "x", other - 1);
    const char* second = strcmp(kind, "MatMul") == 0                            ? "w"
                         : strcmp(kind, "Mul") == 0                             ? "k"
                         : strcmp(kind, "Add") == 0 || strcmp(kind, "Sub") == 0 ? b
                                                                                : "";
    if (strcmp(kind, "Sub") == 0 && from == other) kind = "Add";
    // Values that cancel later have so few places left that some layers need not be wide at all.
    if (strcmp(kind, "Far") == 0) {
      kind = n_far++ % 2 ? "Sub" : "Add";
      second = "far";
    }
    snprintf(text[i], sizeof text[i], "%s n%zu %s %s -> v%zu", kind, i, a, second, i);
    g.nodes[i] = text[i];
  }
  char output[8];
  snprintf(output, sizeof output, "v%zu", t->n - 1);
  g.outputs = output;
  t->model = graph_case_model(&g, t->in);
  t->inputs = (assay_samples_t){.n = 1, .n_values = t->model->graph->n_inputs, .at = t->in};
}

static void forget(made_t* t) {
  assay_requirements_deinit(&t->require);
  assay_model_release(t->model);
  graph_case_release(t->in);
}

// ---- all subsets --------------------------------------------------------------------------------

static assay_error_sum_t error_with(made_t* t, assay_runs_t* runs, unsigned set) {
  bool chosen[2 * MAX_NODES] = {false};
  const assay_precision_t p = {
      .format = t->format, .pinned = chosen, .pinned_format = ASSAY_FORMAT_FP32};
  assay_run_result_t got = {0};
  assert_true(t->model->n_node_ids <= 2 * MAX_NODES);
  for (size_t i = 0; i < t->n; i++) chosen[t->model->graph->nodes[i]->id] = set >> i & 1;
  op_case_ok(assay_runs_try(runs, &p, &got, NULL, NULL));
  const assay_error_sum_t e = got.outputs[0].error;
  assay_run_result_deinit(&got);
  return e;
}

static double snr_with(made_t* t, assay_runs_t* runs, unsigned set) {
  const assay_error_sum_t e = error_with(t, runs, set);
  return assay_error_sum_snr_db(&e);
}

static size_t size_of(unsigned set) {
  size_t n = 0;
  for (; set; set &= set - 1) n++;
  return n;
}

// Requires something between what the low format and fp32 reach, and counts the fewest nodes that
// it takes, and that it takes to be within 3 dB of all in fp32. False: the low format is enough, or
// there is little between the two.
static bool require_some(made_t* t, size_t* out_min, size_t* out_best) {
  static const assay_plan_options_t plain = {0};
  const assay_runs_setting_t setting = {
      .backend = &assay_backend_emu, .plan = &plain, .inputs = &t->inputs};
  const unsigned all = (1u << t->n) - 1;
  const assay_random_t random = assay_random_make(t->seed, "demand", 0);
  assay_runs_t* runs = NULL;
  op_case_ok(assay_runs_create(t->model, &setting, &runs));
  const double low = snr_with(t, runs, 0), high = snr_with(t, runs, all);
  const double part = 0.1 + 0.3 * assay_random_uniform(&random, 0);
  const double want = low + part * (fmin(high, 150) - low);
  *out_min = t->n;
  snprintf(t->text, sizeof t->text, "snr_db >= %.6f", want);
  *out_best = t->n;
  const assay_error_sum_t wide = error_with(t, runs, all);
  const double near_wide = 2 * fmax(wide.sum_err2, wide.sum_ref2 * ldexp(1, -48));
  for (unsigned set = 0; set < all; set++) {
    const assay_error_sum_t e = error_with(t, runs, set);
    if (assay_error_sum_snr_db(&e) < atof(t->text + strlen("snr_db >= "))) continue;
    if (size_of(set) < *out_min) *out_min = size_of(set);
    if (e.sum_err2 <= near_wide && size_of(set) < *out_best) *out_best = size_of(set);
  }
  assay_runs_destroy(runs);
  return isfinite(low) && high > low + 20 && *out_min > 0;
}

// ---- what is found ------------------------------------------------------------------------------

static assay_check_setting_t setting_of(made_t* t) {
  return (assay_check_setting_t){.precision = {.format = t->format},
                                 .precision_name = "low",
                                 .backend = &assay_backend_emu,
                                 .require = &t->require};
}

static size_t by_check(made_t* t, size_t* runs) {
  assay_check_setting_t o = setting_of(t);
  assay_check_t* c = NULL;
  op_case_ok(assay_check_model(t->model, &o, &t->inputs, NULL, &c));
  assert_true(!c->faithful && c->has_fix);
  const size_t n = c->fix.verified ? c->fix.n_nodes : SIZE_MAX;
  *runs = (size_t)c->fix.runs;
  assay_check_destroy(c);
  return n;
}

static size_t by_check_best(made_t* t, size_t* runs) {
  assay_check_setting_t o = setting_of(t);
  o.fix = ASSAY_FIX_BEST;
  assay_check_t* c = NULL;
  op_case_ok(assay_check_model(t->model, &o, &t->inputs, NULL, &c));
  assert_true(!c->faithful && c->has_fix && c->fix.verified && c->front.has_best);
  assert_int_equal(c->front.chosen, ASSAY_FIX_BEST);
  const assay_fix_t* few = assay_fix_front_get(&c->front, &c->fix, ASSAY_FIX_FEWEST);
  const assay_fix_t* best = assay_fix_front_get(&c->front, &c->fix, ASSAY_FIX_BEST);
  assert_true(best == &c->fix && (few == best) == !c->front.differ);
  assert_true(few->verified && few->n_nodes <= best->n_nodes);
  assert_true(few->n_nodes < t->n || c->front.time_fewest == 1);
  assert_true(c->front.time_fewest > 0 && c->front.time_best <= 1);
  const size_t n = best->n_nodes;
  *runs = (size_t)best->runs;
  assay_check_destroy(c);
  return n;
}

static size_t by_precision(made_t* t, size_t* runs) {
  const assay_precision_options_t options = {0};
  assay_check_setting_t o = setting_of(t);
  assay_precision_found_t f = {0};
  op_case_ok(assay_precision_find(t->model, &o, &options, &t->inputs, NULL, &f));
  assert_true(f.fewest.has_fix);
  const size_t n = f.fewest.fix.verified ? f.fewest.fix.n_nodes : SIZE_MAX;
  *runs = f.fewest.runs;
  assay_precision_found_deinit(&f);
  return n;
}

static size_t by_tune(made_t* t, size_t* runs) {
  assay_check_setting_t o = setting_of(t);
  const assay_tune_setting_t options = {.formats = {t->format, ASSAY_FORMAT_FP32},
                                        .n_formats = 2,
                                        .goal = ASSAY_TUNE_LAYERS,
                                        .device = assay_device_roofline(0)};
  assay_tuned_t tuned = {0};
  op_case_ok(assay_tune(t->model, &o, &options, &t->inputs, NULL, &tuned));
  assert_true(tuned.met);
  const size_t n = tuned.fixes[1].n_nodes;
  *runs = tuned.n_trials;
  assay_tuned_deinit(&tuned);
  return n;
}

static const struct {
  const char* name;
  size_t (*find)(made_t* t, size_t* runs);
  size_t max_runs;
  bool best;
} searches[] = {{"check", by_check, 520, false},
                {"check --fix best", by_check_best, 520, true},
                {"debug precision", by_precision, 520, false},
                {"tune", by_tune, 520, false}};
enum { N_SEARCHES = sizeof searches / sizeof *searches };

static void nothing_smaller_does(void** state) {
  (void)state;
  size_t models = 0, all_runs[N_SEARCHES] = {0}, wrong = 0, unverified = 0, n_partial = 0;
  for (uint64_t seed = first_seed; models < n_models; seed++) {
    made_t t = {.seed = seed};
    size_t fewest = 0, best = 0;
    make_model(&t);
    if (require_some(&t, &fewest, &best)) {
      models++;
      n_partial += best < t.n && best > fewest;
      op_case_ok(assay_require_parse(&t.require, t.text));
      for (size_t s = 0; s < N_SEARCHES; s++) {
        size_t runs = 0;
        const size_t min = searches[s].best ? best : fewest;
        const size_t n = searches[s].find(&t, &runs);
        all_runs[s] += runs;
        if (n == SIZE_MAX) {
          unverified++;
          continue;
        }
        if (n != min)
          print_message("seed %d, %s: %zu of %zu nodes are kept, %zu do (%s)\n", (int)seed,
                        searches[s].name, n, t.n, min, t.text);
        wrong += n != min;
        if (runs > searches[s].max_runs)
          fail_msg("seed %d, %s: %zu runs", (int)seed, searches[s].name, runs);
      }
    }
    forget(&t);
  }
  for (size_t s = 0; s < N_SEARCHES; s++)
    print_message("%s: %.1f runs a model\n", searches[s].name,
                  (double)all_runs[s] / (double)models);
  print_message("%zu models whose best is neither the fewest nor all\n", n_partial);
  // All in fp32 do, so some set always does.
  print_message("%zu of %zu sets do not do\n", unverified, N_SEARCHES * models);
  assert_int_equal(unverified, 0);
  if (wrong) fail_msg("%zu of %zu searches kept more than has to be", wrong, N_SEARCHES * models);
}

int main(int argc, char** argv) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_smaller_does)};
  if (argc > 1) first_seed = strtoull(argv[1], NULL, 10);
  if (argc > 2) n_models = strtoull(argv[2], NULL, 10);
  printf("seeds from %llu on\n", (unsigned long long)first_seed);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
