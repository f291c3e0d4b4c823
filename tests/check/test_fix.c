// Fixes: what is kept in fp32, in how many runs, and by whose requirements.
#include <unistd.h>

#include "account/samples_run.h"
#include "check/check.h"
#include "fail_case.h"
#include "passes/graph_case.h"

typedef struct row {
  graph_case_t graph;
  assay_format_t format;
  bool fused;
  const char* require;  // NULL: the default
  const char* nodes;    // that the fix keeps in fp32, "a b c"; NULL: any; "": the check is faithful
} row_t;

// 4e4 * 2 passes fp16: p as a value of a branch that minds, q of one that does not.
#define INPUT "x float[4] 1 2 3 -3"
static const row_t rows[] = {
    {{"minded",
      0,
      {INPUT},
      {"k float[] 4e4", "l float[] 1e-5"},
      {"Mul up x k -> p", "Mul down p l -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     "up down"},
    {{"absorbed", 0, {INPUT}, {"k float[] 4e4"}, {"Mul up x k -> p", "Sigmoid s p -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     ""},
    {{"both",
      0,
      {INPUT},
      {"k float[] 4e4", "l float[] 1e-5"},
      {"Mul up x k -> p", "Mul down p l -> r", "Mul high x k -> q", "Sigmoid s q -> t",
       "Add sum r t -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     "up down"},
    {{"one value, two readers",
      0,
      {INPUT},
      {"k float[] 4e4", "l float[] 1e-5"},
      {"Mul up x k -> p", "Mul down p l -> r", "Sigmoid s p -> t", "Add sum r t -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     "up down"},
    {{"a chain that absorbs",
      0,
      {INPUT},
      {"k float[] 4e4", "l float[] 1e-5", "m float[] 2", "six float[] 6", "none float[] -6"},
      {"Mul up x k -> p", "Mul down p l -> r", "Mul high x k -> q", "Mul higher q m -> u",
       "Clip clip u none six -> t", "Add sum r t -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     "up down"},
    {{"squares",
      0,
      {"x float[1,64] positive"},
      {"k float[] 400"},
      {"Mul scale x k -> z", "Mul square z z -> q", "ReduceMean mean q -> m | axes=1",
       "Sqrt root m -> r", "Div div z r -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     "square mean root"},
    {{"fused",
      0,
      {INPUT},
      {"k float[] 4e4", "l float[] 1e-5"},
      {"Mul up x k -> p", "Exp e x -> r", "Softmax so p -> t", "Mul down p l -> y"},
      "y t"},
     ASSAY_FORMAT_FP16,
     true,
     NULL,
     NULL},
    // By shares: the requirement says how much of the error has to go.
    {{"noisy",
      0,
      {"x float[8,64]"},
      {"w float[64,64]", "v float[64,8]"},
      {"MatMul one x w -> a", "Tanh t a -> b", "MatMul two b v -> y"},
      "y"},
     ASSAY_FORMAT_BF16,
     false,
     "snr_db >= 30",
     ""},
    {{"noisy",
      0,
      {"x float[8,64]"},
      {"w float[64,64]", "v float[64,8]"},
      {"MatMul one x w -> a", "Tanh t a -> b", "MatMul two b v -> y"},
      "y"},
     ASSAY_FORMAT_BF16,
     false,
     "snr_db >= 52",
     NULL},
    {{"noisy",
      0,
      {"x float[8,64]"},
      {"w float[64,64]", "v float[64,8]"},
      {"MatMul one x w -> a", "Tanh t a -> b", "MatMul two b v -> y"},
      "y"},
     ASSAY_FORMAT_BF16,
     false,
     "y: max_abs <= 1e-4",
     NULL},
    // What only hands elements on brings the rounding of those before it to its readers.
    {{"handed on",
      0,
      {"x float[8,64]"},
      {"w float[64,64]", "v float[8,8]"},
      {"MatMul one x w -> a", "Transpose turn a -> b", "Relu cut b -> c", "Abs more c -> d",
       "MatMul two d v -> y"},
      "y"},
     ASSAY_FORMAT_BF16,
     false,
     "snr_db >= 60",
     NULL},
    // What differs is not a float.
    {{"chosen",
      0,
      {"x float[1,3] 1 1.0001 0.5"},
      {"one float[] 1"},
      {"Mul low x one -> p", "ArgMax n p -> y | axis=1"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     "low n"},
    // Integers that stand for numbers: a step at a tie, steps that are small beside the spread,
    // steps that are not.
    {{"a tie",
      21,
      {"x float[2] 0.50001 1"},
      {"s float[] 1", "z uint8[] 0", "one float[] 1"},
      {"Mul low x one -> p", "QuantizeLinear q p s z -> r", "Flatten f r -> y | axis=0"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     ""},
    {{"many steps",
      21,
      {"x float[4] 1 100.3 200.1 300.1"},
      {"s float[] 0.01", "z uint16[] 0", "one float[] 1"},
      {"Mul low x one -> p", "QuantizeLinear q p s z -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     ""},
    {{"too many steps",
      21,
      {"x float[4] 300.1 300.12 300.14 300.16"},
      {"s float[] 0.01", "z uint16[] 0", "one float[] 1"},
      {"Mul low x one -> p", "QuantizeLinear q p s z -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     false,
     NULL,
     NULL},
};

// One sample of these inputs; borrows them.
static assay_samples_t sample_of(const assay_model_t* m, assay_tensor_t** in) {
  return (assay_samples_t){.n = 1, .n_values = m->graph->n_inputs, .at = in};
}

static assay_check_t* check_of(assay_model_t* m, assay_tensor_t** in, assay_format_t format,
                               bool fused, const assay_requirements_t* require) {
  const assay_samples_t inputs = sample_of(m, in);
  assay_check_t* c = NULL;
  assay_check_setting_t o = {.precision = {.format = format},
                             .plan = {.fused = fused},
                             .precision_name = "low",
                             .backend = &assay_backend_emu,
                             .require = require};
  op_case_ok(assay_check_model(m, &o, &inputs, NULL, &c));
  return c;
}

static bool keeps(const assay_fix_t* f, const char* label) {
  for (size_t i = 0; i < f->n_nodes; i++)
    if (strcmp(f->nodes[i]->label, label) == 0) return true;
  return false;
}

static void check_nodes(const row_t* r, const assay_fix_t* f) {
  char name[64];
  size_t n = 0;
  int used;
  for (const char* p = r->nodes; sscanf(p, " %63s%n", name, &used) == 1; p += used, n++)
    if (!keeps(f, name)) fail_msg("'%s': '%s' is not kept", r->graph.name, name);
  if (n != f->n_nodes)
    fail_msg("'%s': %zu nodes are kept, %zu are needed; the first is '%s'", r->graph.name,
             f->n_nodes, n, f->nodes[0]->label);
}

// ---- the fewest ---------------------------------------------------------------------------------

enum { MAX_NODES = 8 };

// Whether outputs are faithful with these nodes kept in fp32: bit i is node i of the graph.
static bool does(assay_model_t* m, const row_t* r, const assay_requirements_t* require,
                 assay_tensor_t** in, unsigned pinned) {
  const assay_samples_t inputs = sample_of(m, in);
  bool chosen[MAX_NODES] = {false}, faithful = false;
  const assay_precision_t precision = {
      .format = r->format, .pinned = chosen, .pinned_format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t plan_options = {.fused = r->fused};
  const assay_account_options_t options = {.outputs_only = true};
  assay_plan_t* plan = NULL;
  assay_account_t* account = NULL;
  assay_output_check_t* outputs = NULL;
  assert_true(m->n_node_ids <= MAX_NODES);
  for (size_t i = 0; i < m->graph->n_nodes; i++) chosen[m->graph->nodes[i]->id] = pinned >> i & 1;
  op_case_ok(assay_plan_create(m, &precision, &plan_options, 0, &plan));
  op_case_ok(assay_account_create(plan, &assay_backend_emu, &options, &account));
  op_case_ok(assay_output_checks_create(m->graph, require, &outputs));
  op_case_ok(
      assay_samples_run(account, m, &inputs, NULL, false, require, outputs, &faithful, NULL, NULL));
  assay_free(outputs);
  assay_account_destroy(account);
  assay_plan_destroy(plan);
  return faithful;
}

// The size of the smallest set of nodes that does, by trying all of them.
static size_t fewest(assay_model_t* m, const row_t* r, const assay_requirements_t* require,
                     assay_tensor_t** in) {
  size_t best = m->graph->n_nodes + 1;
  for (unsigned pinned = 0; pinned < 1u << m->graph->n_nodes; pinned++) {
    size_t n = 0;
    for (unsigned k = pinned; k; k &= k - 1) n++;
    if (n < best && does(m, r, require, in, pinned)) best = n;
  }
  return best;
}

static void fixes_keep_what_is_needed(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&r->graph, in);
    assay_requirements_t require = {0};
    if (r->require) op_case_ok(assay_require_parse(&require, r->require));
    assay_check_t* c = check_of(m, in, r->format, r->fused, &require);
    const bool healthy = r->nodes && !*r->nodes;
    if (c->faithful != healthy || c->has_fix == healthy)
      fail_msg("'%s' is %s", r->graph.name, c->faithful ? "faithful" : "unfaithful");
    if (!healthy) {
      // Two, and at most 512 to take layers out again.
      if (!c->fix.verified || c->fix.runs > 2 + 512)
        fail_msg("'%s': %zu nodes, %sverified in %d runs", r->graph.name, c->fix.n_nodes,
                 c->fix.verified ? "" : "not ", c->fix.runs);
      if (r->nodes) check_nodes(r, &c->fix);
      const size_t min = fewest(m, r, &require, in);
      if (c->fix.n_nodes > min)
        fail_msg("'%s': %zu nodes are kept, %zu do", r->graph.name, c->fix.n_nodes, min);
    }
    assay_check_destroy(c);
    assay_requirements_deinit(&require);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- both, without memory
// ------------------------------------------------------------------------

static void both_without_memory(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&rows[0].graph, in);
  const assay_samples_t inputs = sample_of(m, in);
  bool reached = true;
  for (uint64_t n = 1; reached; n = fail_next(n, 2000)) {
    const int64_t live = assay_alloc_live();
    assay_check_t* c = NULL;
    assay_check_setting_t o = {.precision = {.format = ASSAY_FORMAT_FP16},
                               .precision_name = "low",
                               .backend = &assay_backend_emu,
                               .fix = ASSAY_FIX_BEST};
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_check_model(m, &o, &inputs, NULL, &c);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) fail_msg("%s", assay_status_message(st));
    assert_true(st || (c->has_fix && c->fix.verified && c->front.has_best));
    assay_status_free(st);
    assay_check_destroy(c);
    assay_precision_deinit(&o.precision);
    assert_int_equal(assay_alloc_live(), live);
  }
  assay_model_release(m);
  graph_case_release(in);
}

// ---- the user's own command ---------------------------------------------------------------------

static const graph_case_t plain = {
    "plain", 0, {"x float[8,64]"}, {"w float[64,8]"}, {"MatMul one x w -> y"}, "y"};

// Says no until it is asked for the second time: a file remembers.
static void a_command_decides(void** state) {
  (void)state;
  static const struct {
    const char* command;
    bool faithful, verified;
    const char* unmet;
  } commands[] = {
      {"test -s {outputs} && test -s {truth} && test -s {inputs}", true, false, ""},
      {"echo too dark; test ! -s {outputs}", false, false, "too dark"},
      {"test -e {mark} && exit 0; touch {mark}; false # {outputs}", false, true, "says no"},
  };
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    char text[512] = "", mark[64];
    snprintf(mark, sizeof mark, "/tmp/assay_test_fix.%d", (int)getpid());
    for (const char* p = commands[i].command; *p;) {
      const bool here = strncmp(p, "{mark}", 6) == 0;
      strncat(text, here ? mark : p, here ? sizeof mark : 1);
      p += here ? 6 : 1;
    }
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&plain, in);
    assay_requirements_t require = {0};
    op_case_ok(assay_require_parse(&require, text));
    assert_true(assay_require_has_commands(&require) && !assay_require_has_statistics(&require));
    assay_check_t* c = check_of(m, in, ASSAY_FORMAT_BF16, false, &require);
    unlink(mark);
    assert_int_equal(c->faithful, commands[i].faithful);
    assert_int_equal(c->fix.verified, commands[i].verified);
    assert_true(c->fix.runs <= 2);
    assert_non_null(strstr(assay_str_get(&c->unmet), commands[i].unmet));
    assay_check_destroy(c);
    assay_requirements_deinit(&require);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// A command that breaks down, or asks for what there is not, is an error and no answer.
static void commands_that_fail(void** state) {
  (void)state;
  static const char* const commands[] = {"exit 3 # {outputs}", "kill -9 $$ # {outputs}",
                                         "no_such_program {outputs}", "cat {outputs} {golden}"};
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&plain, in);
    const assay_samples_t inputs = sample_of(m, in);
    assay_requirements_t require = {0};
    assay_check_t* c = NULL;
    op_case_ok(assay_require_parse(&require, commands[i]));
    assay_check_setting_t o = {.precision = {.format = ASSAY_FORMAT_FP16},
                               .precision_name = "fp16",
                               .backend = &assay_backend_emu,
                               .require = &require};
    assay_status_t st = assay_check_model(m, &o, &inputs, NULL, &c);
    assert_non_null(st);
    assert_non_null(strstr(assay_status_message(st), "--require"));
    assay_status_free(st);
    assay_requirements_deinit(&require);
    assay_model_release(m);
    graph_case_release(in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fixes_keep_what_is_needed), cmocka_unit_test(both_without_memory),
      cmocka_unit_test(a_command_decides), cmocka_unit_test(commands_that_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
