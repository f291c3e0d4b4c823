// Which layers need more precision: found from the account, and by prefixes.
#include <unistd.h>

#include "debug/precision.h"
#include "onnx/onnx.h"
#include "passes/graph_case.h"

// 5 * 2e4 passes fp16 between `up` and `down`; before and behind them are layers that do.
#define CHAIN                                                             \
  {"x float[1,4] 1 2 3 -3"},                                              \
      {"e float[4,4] 1 0.5 0 0 0 1 0.5 0 0 0 1 0.5 0.5 0 0 1",            \
       "k float[4,4] 2e4 0 0 0 0 2e4 0 0 0 0 2e4 0 0 0 0 2e4",            \
       "l float[4,4] 1e-4 0 0 0 0 1e-4 0 0 0 0 1e-4 0 0 0 0 1e-4"},       \
      {"MatMul a x e -> u",    "MatMul b u e -> v", "MatMul up v k -> p", \
       "MatMul down p l -> q", "MatMul c q e -> w", "MatMul d w e -> y"}, \
      "y"
#define NOISY                                             \
  {"x float[8,64]"}, {"w float[64,64]", "v float[64,8]"}, \
      {"MatMul one x w -> a", "Tanh t a -> b", "MatMul two b v -> y"}, "y"

typedef struct row {
  graph_case_t graph;
  assay_format_t format;
  const assay_backend_t* backend;
  const char* require;  // NULL: the default
  const char* nodes;    // to be kept, "a b c"; NULL: any; "": it does as it is
  size_t runs;          // at most, before layers are taken out again
} row_t;

static const row_t rows[] = {
    {{"by range", 0, CHAIN}, ASSAY_FORMAT_FP16, &assay_backend_emu, NULL, "up down", 2},
    {{"by range, on the CPU", 0, CHAIN}, ASSAY_FORMAT_FP16, &assay_backend_cpu, NULL, "up down", 2},
    {{"wide enough", 0, CHAIN}, ASSAY_FORMAT_BF16, &assay_backend_emu, NULL, "", 1},
    {{"absorbed",
      0,
      {"x float[4] 1 2 3 -3"},
      {"k float[] 4e4"},
      {"Mul up x k -> p", "Sigmoid s p -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     NULL,
     "",
     1},
    // No reader of the infinities absorbs them, but the one behind it does.
    {{"absorbed later",
      0,
      {"x float[4] 1 2 3 -3"},
      {"k float[] 4e4"},
      {"Mul up x k -> p", "Neg turn p -> q", "Sigmoid s q -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     NULL,
     "",
     2},
    {{"does", 0, NOISY}, ASSAY_FORMAT_BF16, &assay_backend_emu, "snr_db >= 30", "", 1},
    {{"by shares", 0, NOISY}, ASSAY_FORMAT_BF16, &assay_backend_emu, "snr_db >= 52", NULL, 3},
    {{"by shares", 0, NOISY}, ASSAY_FORMAT_BF16, &assay_backend_cpu, "y: max_abs <= 1e-3", NULL, 3},
    // Steps of 16 where the outputs are of some 3: what makes and what reads these numbers, and no
    // more.
    {{"by loss",
      0,
      {"x float[1,4] 1 2 3 -3"},
      {"e float[4,4] 1 0.5 0 0 0 1 0.5 0 0 0 1 0.5 0.5 0 0 1", "far float[] 2e4"},
      {"MatMul a x e -> u", "Add up u far -> p", "Neg turn p -> q", "Add down q far -> r",
       "MatMul c r e -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     NULL,
     "up turn down",
     2},
    // The same beside something so much larger that it does not show.
    {{"lost, but small",
      0,
      {"x float[4] 1 2 3 -3"},
      {"far float[] 2e4", "k float[] 1e3"},
      {"Add up x far -> p", "Sub down p far -> q", "Mul big x k -> b", "Add both b q -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     NULL,
     "",
     1},
    {{"by flips",
      0,
      {"x float[1,3] 1 1.0001 0.5"},
      {"one float[] 1"},
      {"Mul low x one -> p", "ArgMax n p -> y | axis=1"},
      "y"},
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     NULL,
     "low n",
     3},
};

typedef struct fixture {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_requirements_t require;
  assay_precision_found_t found;
} fixture_t;

static void find(const row_t* r, const assay_precision_options_t* options, fixture_t* f) {
  *f = (fixture_t){0};
  f->model = graph_case_model(&r->graph, f->in);
  if (r->require) op_case_ok(assay_require_parse(&f->require, r->require));
  const assay_samples_t inputs = {.n = 1, .n_values = f->model->graph->n_inputs, .at = f->in};
  assay_check_setting_t o = {.precision = {.format = r->format},
                             .plan = {.fused = r->backend != &assay_backend_emu},
                             .precision_name = "low",
                             .backend = r->backend,
                             .require = &f->require};
  op_case_ok(assay_precision_find(f->model, &o, options, &inputs, NULL, &f->found));
}

static void forget(fixture_t* f) {
  assay_precision_found_deinit(&f->found);
  assay_requirements_deinit(&f->require);
  assay_model_release(f->model);
  graph_case_release(f->in);
}

static bool keeps(const assay_fix_t* f, const char* label) {
  for (size_t i = 0; i < f->n_nodes; i++)
    if (strcmp(f->nodes[i]->label, label) == 0) return true;
  return false;
}

static void check_nodes(const char* what, const char* nodes, const assay_fix_t* f) {
  char name[64];
  size_t n = 0;
  int used;
  for (const char* p = nodes; sscanf(p, " %63s%n", name, &used) == 1; p += used, n++)
    if (!keeps(f, name)) fail_msg("'%s': '%s' is not kept", what, name);
  if (n != f->n_nodes) fail_msg("'%s': %zu nodes are kept, %zu are needed", what, f->n_nodes, n);
}

static void the_account_finds_the_fewest(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    const assay_precision_options_t o = {.as_asked = true};
    fixture_t f;
    find(r, &o, &f);
    const assay_fewest_found_t* c = &f.found.fewest;
    const bool healthy = r->nodes && !*r->nodes;
    if (c->faithful != healthy)
      fail_msg("'%s' is taken for %s", r->graph.name, healthy ? "unfaithful" : "faithful");
    if (c->has_fix == healthy || (c->has_fix && !c->fix.verified))
      fail_msg("'%s': %zu nodes do not do", r->graph.name, c->fix.n_nodes);
    if (c->runs - c->removals > r->runs || f.found.builds)
      fail_msg("'%s': %zu runs, %zu builds", r->graph.name, c->runs - c->removals, f.found.builds);
    if (r->nodes) check_nodes(r->graph.name, r->nodes, &c->fix);
    forget(&f);
  }
}

static const row_t* row_named(const char* name) {
  const row_t* r = rows;
  while (strcmp(r->graph.name, name) != 0) r++;
  return r;
}

// Truth predicts it: the first run verifies, and the sum that loses is named.
static void cancelling_is_foreseen(void** state) {
  (void)state;
  const row_t* r = row_named("by loss");
  const assay_precision_options_t o = {0};
  fixture_t f;
  find(r, &o, &f);
  const assay_fewest_found_t* c = &f.found.fewest;
  check_nodes(r->graph.name, r->nodes, &c->fix);
  assert_int_equal(c->runs - c->removals, 1);
  assert_true(c->fix.verified);
  assert_int_equal(f.found.culprits.n, 1);
  assert_string_equal(f.found.culprits.at[0].account->node->label, "down");
  assert_string_equal(f.found.culprits.at[0].why,
                      "cancellation: values of 2e+04 leave 2.49, fp16 has steps of 16 there");
  forget(&f);
}

// What nothing can meet is told, in no more runs.
static void nothing_is_found(void** state) {
  (void)state;
  static const row_t r = {{"more than fp32 has", 0, NOISY},
                          ASSAY_FORMAT_BF16,
                          &assay_backend_emu,
                          "snr_db >= 250",
                          NULL,
                          3};
  for (int mode = 0; mode <= ASSAY_PRECISION_LINEAR; mode++) {
    const assay_precision_options_t o = {.mode = (assay_precision_mode_t)mode};
    fixture_t f;
    find(&r, &o, &f);
    assert_false(f.found.fewest.faithful);
    assert_false(f.found.fewest.has_fix && f.found.fewest.fix.verified);
    assert_true(mode || f.found.fewest.runs <= r.runs);
    forget(&f);
  }
}

static const struct {
  const char* name;
  assay_precision_mode_t mode;
  bool from_end;
  size_t prefix, trials;
} prefixes[] = {
    {"from the start", ASSAY_PRECISION_BISECT, false, 4, 4},  // 6, 3, 5, 4
    {"from the end", ASSAY_PRECISION_BISECT, true, 4, 4},
    {"one by one", ASSAY_PRECISION_LINEAR, false, 4, 5},
    {"one by one, from the end", ASSAY_PRECISION_LINEAR, true, 4, 5},
};

static void prefixes_end_where_it_does(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
    for (int on_cpu = 0; on_cpu < 2; on_cpu++) {
      row_t r = rows[0];
      r.backend = on_cpu ? &assay_backend_cpu : &assay_backend_emu;
      const assay_precision_options_t o = {.mode = prefixes[i].mode,
                                           .from_end = prefixes[i].from_end};
      fixture_t f;
      find(&r, &o, &f);
      const assay_fewest_found_t* c = &f.found.fewest;
      if (f.found.fewest.n_prefix != prefixes[i].prefix ||
          f.found.fewest.n_trials != prefixes[i].trials)
        fail_msg("%s: a prefix of %zu in %zu trials", prefixes[i].name, f.found.fewest.n_prefix,
                 f.found.fewest.n_trials);
      assert_true(c->has_fix && c->fix.verified && c->fix.outputs[0].faithful);
      assert_int_equal(c->fix.n_nodes, prefixes[i].prefix);
      assert_int_equal(f.found.builds, 0);
      forget(&f);
    }
  }
}

// What does as it is has no prefix, though every prefix of it does.
static void nothing_is_kept_of_healthy_models(void** state) {
  (void)state;
  static const row_t r = {
      {"wide enough", 0, CHAIN}, ASSAY_FORMAT_BF16, &assay_backend_emu, NULL, "", 4};
  for (int mode = ASSAY_PRECISION_BISECT; mode <= ASSAY_PRECISION_LINEAR; mode++) {
    const assay_precision_options_t o = {.mode = (assay_precision_mode_t)mode};
    fixture_t f;
    find(&r, &o, &f);
    assert_true(f.found.fewest.faithful);
    assert_false(f.found.fewest.has_fix);
    assert_int_equal(f.found.fewest.n_prefix, 0);
    assert_true(f.found.fewest.runs <= r.runs);
    forget(&f);
  }
}

// Built anew each time, from the file: the same answer.
static void builds_agree(void** state) {
  (void)state;
  char path[64];
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&rows[0].graph, in);
  snprintf(path, sizeof path, "/tmp/assay_test_precision.%d.onnx", (int)getpid());
  op_case_ok(assay_onnx_write(m, path, NULL));
  for (int on_cpu = 0; on_cpu < 2; on_cpu++) {
    row_t r = rows[0];
    r.backend = on_cpu ? &assay_backend_cpu : &assay_backend_emu;
    const assay_precision_options_t o = {.mode = ASSAY_PRECISION_BISECT, .rebuild = path};
    fixture_t f;
    find(&r, &o, &f);
    assert_int_equal(f.found.fewest.n_prefix, 4);
    assert_int_equal(f.found.builds, f.found.fewest.n_trials);
    forget(&f);
  }
  unlink(path);
  assay_model_release(m);
  graph_case_release(in);
}

// A command of the user's decides in each mode. NaN that truth lacks never does, whatever it says.
static void commands_decide(void** state) {
  (void)state;
  static const row_t commands[] = {
      {{"yes", 0, CHAIN},
       ASSAY_FORMAT_FP16,
       &assay_backend_emu,
       "test -s {outputs} && test -s {truth}",
       "up down",
       2},
      {{"no", 0, CHAIN},
       ASSAY_FORMAT_FP16,
       &assay_backend_emu,
       "echo too dark; exit 1 # {outputs}",
       NULL,
       4},
  };
  for (int k = 0; k < 2; k++) {
    for (int mode = 0; mode <= ASSAY_PRECISION_LINEAR; mode++) {
      const assay_precision_options_t o = {.mode = (assay_precision_mode_t)mode};
      fixture_t f;
      find(&commands[k], &o, &f);
      const assay_fewest_found_t* c = &f.found.fewest;
      assert_int_equal(c->has_fix && c->fix.verified, !k);
      // A command of the user's may take long.
      assert_true(mode || c->runs - c->removals <= commands[k].runs);
      assert_true(c->removals <= 8);
      if (k) assert_non_null(strstr(assay_str_get(&f.found.fewest.unmet), "too dark"));
      forget(&f);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_account_finds_the_fewest),
                                     cmocka_unit_test(cancelling_is_foreseen),
                                     cmocka_unit_test(nothing_is_found),
                                     cmocka_unit_test(prefixes_end_where_it_does),
                                     cmocka_unit_test(nothing_is_kept_of_healthy_models),
                                     cmocka_unit_test(builds_agree),
                                     cmocka_unit_test(commands_decide)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
