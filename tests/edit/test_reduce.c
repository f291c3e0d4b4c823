// Parts that still fail: injected faults and overflows come down to the nodes that make them.
#include <unistd.h>

#include "base/alloc.h"
#include "edit/reduce/reduce.h"
#include "edit/reduce/reduce_sets.h"
#include "eval/evaluator.h"
#include "io/npz.h"
#include "passes/graph_case.h"

#define CHAIN                                                                                \
  {                                                                                          \
    "Relu first x -> a", "MatMul left a w -> b", "Mul square b b -> c", "Add bias c v -> d", \
        "MatMul right d u -> e", "Tanh last e -> y"                                          \
  }
#define CONSTANTS \
  { "w float[4,4]", "u float[4,4]", "v float[4] positive" }

static const struct row {
  graph_case_t graph;
  assay_format_t format;
  const char *inject, *judge, *require;
  bool fused;
  assay_reduce_verdict_t verdict;
  assay_reduce_way_t way;
  const char* nodes;  // that are left, in order; NULL: any, more than one
} rows[] = {
    {{"healthy", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_FP32,
     NULL,
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_SOUND,
     ASSAY_REDUCE_ALONE,
     ""},
    {{"a constant off", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_FP32,
     "right:scale=1,1.01",
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     "right"},
    {{"terms left out", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_BF16,
     "left:terms=2",
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     "left"},
    {{"the first node", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_FP32,
     "first:tail=3",
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     "first"},
    {{"the last node", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_FP32,
     "last:op=Sigmoid",
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     "last"},
    // The fault needs a constant that another node reads.
    {{"another layer's constant", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_FP32,
     "right:constant=1,w",
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_NEIGHBOURS,
     "left right"},
    {{"in a fused layer",
      13,
      {"x float[1,3,6,6]"},
      {"w float[4,3,3,3]"},
      {"Sigmoid before x -> a", "Conv conv a w -> b | pads=1,1,1,1", "Relu relu b -> c",
       "Sigmoid behind c -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     "conv:terms=4",
     NULL,
     NULL,
     true,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     "conv"},
    {{"overflow",
      0,
      {"x float[2,4] 1 2 3 4 300 6 7 8"},
      {"w float[4] 1 2 3 4"},
      {"Relu before x -> a", "Mul square a a -> b", "Mul scaled b w -> c", "Neg behind c -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     NULL,
     NULL,
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     "square"},
    // No layer fails by itself; rounding adds up.
    {{"many roundings",
      0,
      {"x float[4,4]"},
      {"w float[4,4]", "v float[4,4]"},
      {"MatMul n0 x w -> a", "MatMul n1 a v -> b", "MatMul n2 b w -> c", "MatMul n3 c v -> d",
       "MatMul n4 d w -> e", "MatMul n5 e v -> f", "MatMul n6 f w -> g", "MatMul n7 g v -> y"},
      "y"},
     ASSAY_FORMAT_BF16,
     NULL,
     NULL,
     "snr_db >= 46",
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_ALONE,
     NULL},
    // The user's judge: two nodes that are far apart.
    {{"judged",
      0,
      {"x float[2,4]"},
      {NULL},
      {"Relu n0 x -> a", "Neg alpha a -> b", "Relu n1 b -> c", "Sigmoid n2 c -> d",
       "Tanh n3 d -> e", "Exp n4 e -> f", "Neg n5 f -> g", "Tanh omega g -> h", "Relu n6 h -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     NULL,
     "! { grep -q alpha {model} && grep -q omega {model}; }",
     NULL,
     false,
     ASSAY_REDUCE_REDUCED,
     ASSAY_REDUCE_DELTA,
     "alpha omega"},
    // It sees what the engine gave: the fault, not its layer, has to be there.
    {{"judged by outputs", 0, {"x float[2,4] positive"}, CONSTANTS, CHAIN, "y"},
     ASSAY_FORMAT_FP32,
     "square:swap=0,1",
     "test -s {outputs} && test -s {golden} && test -s {inputs}",
     NULL,
     false,
     ASSAY_REDUCE_SOUND,
     ASSAY_REDUCE_ALONE,
     ""},
    {{"nothing smaller",
      0,
      {"x float[2,4]"},
      {NULL},
      {"Relu alpha x -> a", "Neg n1 a -> b", "Tanh omega b -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     NULL,
     "! { grep -q alpha {model} && grep -q n1 {model} && grep -q omega {model}; }",
     NULL,
     false,
     ASSAY_REDUCE_WHOLE,
     ASSAY_REDUCE_DELTA,
     ""},
};

typedef struct reduced_case {
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_model_t* model;
  assay_requirements_t require;
  assay_check_setting_t check;
  assay_reduced_t r;
} reduced_case_t;

static void open_case(reduced_case_t* c, const struct row* row) {
  *c = (reduced_case_t){0};
  c->model = graph_case_model(&row->graph, c->in);
  if (row->require) op_case_ok(assay_require_parse(&c->require, row->require));
  c->check = (assay_check_setting_t){.backend = &assay_backend_emu,
                                     .precision = {.format = row->format},
                                     .plan = {.fused = row->fused, .inject = row->inject},
                                     .require = &c->require};
}

static void close_case(reduced_case_t* c) {
  assay_reduced_deinit(&c->r);
  assay_requirements_deinit(&c->require);
  assay_model_release(c->model);
  graph_case_release(c->in);
}

static void node_names(const assay_model_t* m, char text[256]) {
  text[0] = 0;
  for (size_t i = 0; m && i < m->graph->n_nodes; i++) {
    if (i) strcat(text, " ");
    strcat(text, m->graph->nodes[i]->name);
  }
}

static void the_fault_is_what_is_left(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const struct row* row = &rows[i];
    reduced_case_t c;
    char names[256];
    open_case(&c, row);
    const assay_samples_t samples = {.n = 1, .n_values = c.model->graph->n_inputs, .at = c.in};
    const assay_reduce_options_t options = {.check = &c.check, .judge = row->judge};
    op_case_ok(assay_reduce_run(c.model, &samples, &options, &c.r));
    node_names(c.r.model, names);
    if (c.r.verdict != row->verdict)
      fail_msg("'%s': %s, %s", row->graph.name, assay_reduce_verdict_name(c.r.verdict),
               c.r.before.why);
    if (row->nodes && strcmp(names, row->nodes) != 0)
      fail_msg("'%s': '%s' is left, not '%s'", row->graph.name, names, row->nodes);
    if (row->nodes && c.r.way != row->way)
      fail_msg("'%s': found by %s", row->graph.name, assay_reduce_way_name(c.r.way));
    if (!row->nodes && (c.r.n_nodes < 2 || c.r.n_nodes >= c.r.n_nodes_before))
      fail_msg("'%s': '%s' is left", row->graph.name, names);
    if (c.r.verdict == ASSAY_REDUCE_REDUCED && (!c.r.minimal || !c.r.after.fails || !c.r.tries))
      fail_msg("'%s': '%s' is not minimal", row->graph.name, names);
    close_case(&c);
  }
}

// ---- what is written ----------------------------------------------------------------------------

static void read_samples(const char* path, assay_value_t* const* values, size_t n,
                         assay_samples_t* out) {
  assay_set_t set = {0};
  op_case_ok(assay_npz_read(path, &set));
  op_case_ok(assay_samples_from_set(&set, values, n, true, out));
  assay_set_deinit(&set);
}

// Reads the files back: the model fails on each sample, and golden is its truth.
static void try_files(const char* folder, const assay_check_setting_t* check, size_t n) {
  char path[128];
  assay_model_t* m = NULL;
  assay_samples_t inputs = {0}, golden = {0};
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  op_case_ok(assay_onnx_load(path, 0, NULL, &m));
  unlink(path);
  snprintf(path, sizeof path, "%s/inputs.npz", folder);
  read_samples(path, m->graph->inputs, m->graph->n_inputs, &inputs);
  unlink(path);
  snprintf(path, sizeof path, "%s/golden.npz", folder);
  read_samples(path, m->graph->outputs, m->graph->n_outputs, &golden);
  unlink(path);
  rmdir(folder);
  assert_int_equal(inputs.n, n);
  assert_int_equal(golden.n, n);
  for (size_t k = 0; k < n; k++) {
    const assay_samples_t one = {
        .n = 1, .n_values = inputs.n_values, .at = inputs.at + k * inputs.n_values};
    const assay_samples_t gold = {
        .n = 1, .n_values = golden.n_values, .at = golden.at + k * golden.n_values};
    assay_check_setting_t o = *check;
    assay_check_t* c = NULL;
    o.no_fix = true;
    op_case_ok(assay_check_model(m, &o, &one, &gold, &c));
    assert_false(c->faithful);
    assert_true(c->outputs[0].has_golden);
    assert_true(c->outputs[0].golden.mismatched == 0 &&
                assay_error_sum_rms(&c->outputs[0].golden) <= 1e-6 * c->outputs[0].golden.ref_max);
    assay_check_destroy(c);
  }
  assay_samples_deinit(&inputs);
  assay_samples_deinit(&golden);
  assay_model_release(m);
}

// Of three samples two overflow, the last one worst.
static void samples_are_honoured(void** state) {
  (void)state;
  static const struct row row = {{"three",
                                  0,
                                  {"x float[2,4] 1 2 3 4 5 6 7 8"},
                                  {NULL},
                                  {"Relu before x -> a", "Mul square a a -> b", "Tanh t b -> y"},
                                  "y"},
                                 ASSAY_FORMAT_FP16,
                                 NULL,
                                 NULL,
                                 NULL,
                                 false,
                                 0,
                                 0,
                                 NULL};
  static const double factors[3] = {1, 40, 90};
  reduced_case_t c;
  assay_tensor_t* at[3] = {0};
  char folder[64];
  size_t written = 0;
  // What Tanh gives of infinity is right: the part is judged, so is the model where it hands b out.
  open_case(&c, &row);
  c.model->graph->outputs[0] = assay_graph_find(c.model->graph, "b");
  c.model->graph->outputs[0]->is_output = true;
  for (int k = 0; k < 3; k++) {
    op_case_ok(assay_tensor_copy(c.in[0], &at[k]));
    for (int64_t i = 0; i < at[k]->size; i++) assay_f64(at[k])[i] *= factors[k];
  }
  const assay_samples_t samples = {.n = 3, .n_values = 1, .at = at};
  const assay_reduce_options_t options = {.check = &c.check};
  op_case_ok(assay_reduce_run(c.model, &samples, &options, &c.r));
  assert_int_equal(c.r.verdict, ASSAY_REDUCE_REDUCED);
  assert_int_equal(c.r.n_failing, 2);
  assert_int_equal(c.r.inputs.n, 2);
  assert_int_equal(c.r.sample_of[0], 2);
  assert_int_equal(c.r.sample_of[1], 1);
  assert_int_equal(c.r.n_nodes, 1);
  snprintf(folder, sizeof folder, "/tmp/assay_reduce_%d", (int)getpid());
  op_case_ok(assay_reduced_write(&c.r, folder, &written));
  assert_int_equal(written, 2);
  try_files(folder, &c.check, written);
  for (int k = 0; k < 3; k++) assay_tensor_release(at[k]);
  close_case(&c);
}

// ---- faults of the export -----------------------------------------------------------------------

// Truth of the values that are named, by a model of other constants: what golden is.
static void add_golden(const assay_model_t* m, assay_tensor_t* const* in, const char* names,
                       assay_set_t* out) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  assay_evaluator_t* truth = NULL;
  char name[64];
  int used;
  op_case_ok(assay_evaluator_create_run(m, &config, in, &truth));
  for (; sscanf(names, " %63s%n", name, &used) == 1; names += used) {
    assay_tensor_t* t = NULL;
    op_case_ok(assay_tensor_pack(assay_evaluator_get(truth, assay_graph_find(m->graph, name)), &t));
    op_case_ok(assay_set_add(out, name, t));
  }
  assay_evaluator_destroy(truth);
}

static void exports_are_cut_at_golden(void** state) {
  (void)state;
  static const struct {
    const char *golden, *wrong, *nodes;  // values that golden has; the node that was exported wrong
  } cases[] = {
      {"a b c d e y", "Mul square b b -> c", ""},
      {"a b c d e y", "Mul square b a -> c", "square"},
      {"a d y", "Mul square b a -> c", "left square bias"},
      // Another shape than golden's, which no part behind it can be given.
      {"a b c d e y", "ReduceMean square b -> c | axes=1 keepdims=1", "square"},
      {"b e y", "Add bias c u -> d", "square bias right"},
      {"y", "Tanh last a -> y", "first last"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    struct row right = {.graph = {"exported", 0, {"x float[4,4] positive"}, CONSTANTS, CHAIN, "y"},
                        .format = ASSAY_FORMAT_FP32};
    struct row wrong = right;
    char label[64], names[256];
    assert_int_equal(sscanf(cases[i].wrong, "%*s %63s", label), 1);
    for (size_t k = 0; wrong.graph.nodes[k]; k++)
      if (strstr(wrong.graph.nodes[k], label)) wrong.graph.nodes[k] = cases[i].wrong;
    reduced_case_t c, g;
    assay_set_t golden = {0};
    open_case(&g, &right);
    open_case(&c, &wrong);
    add_golden(g.model, g.in, cases[i].golden, &golden);
    const assay_samples_t samples = {.n = 1, .n_values = c.model->graph->n_inputs, .at = c.in};
    const assay_reduce_options_t options = {.check = &c.check, .golden = &golden};
    op_case_ok(assay_reduce_run(c.model, &samples, &options, &c.r));
    node_names(c.r.model, names);
    if (strcmp(names, cases[i].nodes) != 0)
      fail_msg("'%s' with golden %s: '%s' is left", cases[i].wrong, cases[i].golden, names);
    if (*names) assert_int_equal(c.r.before.blame, ASSAY_BLAME_EXPORT);
    assay_set_deinit(&golden);
    close_case(&c);
    close_case(&g);
  }
}

// Golden of two samples, behind each other along the first axis or along one of their own.
static void stack(const assay_set_t* first, const assay_set_t* second, bool own, assay_set_t* out) {
  for (size_t i = 0; i < first->n; i++) {
    const assay_tensor_t* parts[] = {first->tensors[i], second->tensors[i]};
    assay_tensor_t *wide = NULL, *t = NULL;
    const int64_t own_dims[] = {2, parts[0]->dims[0], parts[0]->dims[1]};
    const int64_t dims[] = {2 * parts[0]->dims[0], parts[0]->dims[1]};
    op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, own ? 3 : 2, own ? own_dims : dims, &t));
    for (int k = 0; k < 2; k++) {
      op_case_ok(assay_tensor_widen((assay_tensor_t*)parts[k], &wide));
      memcpy(assay_f64(t) + k * wide->size, wide->data, (size_t)wide->size * sizeof(double));
      assay_tensor_release(wide);
    }
    op_case_ok(assay_set_add(out, first->names[i], t));
  }
}

static void golden_of_several_samples(void** state) {
  (void)state;
  for (int own = 0; own < 2; own++) {
    struct row right = {.graph = {"exported", 0, {"x float[4,4] positive"}, CONSTANTS, CHAIN, "y"},
                        .format = ASSAY_FORMAT_FP32};
    struct row wrong = right;
    for (size_t k = 0; wrong.graph.nodes[k]; k++)
      if (strstr(wrong.graph.nodes[k], "square")) wrong.graph.nodes[k] = "Mul square b a -> c";
    reduced_case_t c, g;
    assay_set_t each[2] = {{0}, {0}}, golden = {0};
    assay_tensor_t* at[2] = {NULL};
    open_case(&g, &right);
    open_case(&c, &wrong);
    for (int k = 0; k < 2; k++) {
      op_case_ok(assay_tensor_copy(c.in[0], &at[k]));
      for (int64_t i = 0; i < at[k]->size; i++) assay_f64(at[k])[i] *= 1 + 0.25 * k;
      add_golden(g.model, &at[k], "b c y", &each[k]);
    }
    stack(&each[0], &each[1], own, &golden);
    const assay_samples_t samples = {.n = 2, .n_values = 1, .at = at};
    const assay_reduce_options_t options = {.check = &c.check, .golden = &golden};
    op_case_ok(assay_reduce_run(c.model, &samples, &options, &c.r));
    assert_int_equal(c.r.verdict, ASSAY_REDUCE_REDUCED);
    assert_int_equal(c.r.before.blame, ASSAY_BLAME_EXPORT);
    assert_int_equal(c.r.n_failing, 2);
    assert_int_equal(c.r.inputs.n, 2);
    for (size_t k = 0; k < 2; k++) {
      assay_tensor_t *want = NULL, *got = NULL;
      size_t o = 0;
      while (strcmp(c.r.model->graph->outputs[o]->name, "c") != 0) o++;
      op_case_ok(assay_tensor_widen(assay_set_find(&each[c.r.sample_of[k]], "c"), &want));
      op_case_ok(assay_tensor_widen(c.r.golden.at[k * c.r.golden.n_values + o], &got));
      assert_int_equal(got->size, want->size);
      assert_memory_equal(got->data, want->data, (size_t)got->size * sizeof(double));
      assay_tensor_release(want);
      assay_tensor_release(got);
    }
    for (int k = 0; k < 2; k++) {
      assay_set_deinit(&each[k]);
      assay_tensor_release(at[k]);
    }
    assay_set_deinit(&golden);
    close_case(&c);
    close_case(&g);
  }
}

static void golden_of_other_samples(void** state) {
  (void)state;
  struct row row = {.graph = {"exported", 0, {"x float[4,4] positive"}, CONSTANTS, CHAIN, "y"},
                    .format = ASSAY_FORMAT_FP32};
  reduced_case_t c;
  assay_set_t golden = {0};
  open_case(&c, &row);
  add_golden(c.model, c.in, "y", &golden);
  assay_tensor_t* at[] = {c.in[0], c.in[0], c.in[0]};
  const assay_samples_t samples = {.n = 3, .n_values = 1, .at = at};
  const assay_reduce_options_t options = {.check = &c.check, .golden = &golden};
  assay_status_t st = assay_reduce_run(c.model, &samples, &options, &c.r);
  assert_non_null(st);
  assert_non_null(strstr(assay_status_message(st), "it does not hold the 3 samples of the inputs"));
  assay_status_free(st);
  assay_set_deinit(&golden);
  close_case(&c);
}

// ---- memory -------------------------------------------------------------------------------------

static void memory_may_run_out(void** state) {
  (void)state;
  static const int tried[] = {1, 5, 6, 11};  // alone, with neighbours, fused, whole
  for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
    const struct row* row = &rows[tried[i]];
    reduced_case_t c;
    open_case(&c, row);
    const assay_samples_t samples = {.n = 1, .n_values = c.model->graph->n_inputs, .at = c.in};
    const assay_reduce_options_t options = {.check = &c.check, .judge = row->judge};
    op_case_ok(assay_reduce_run(c.model, &samples, &options, &c.r));  // what is made once is there
    assay_reduced_deinit(&c.r);
    assay_alloc_fail_after(0, false);
    op_case_ok(assay_reduce_run(c.model, &samples, &options, &c.r));
    assay_reduced_deinit(&c.r);
    const uint64_t total = assay_alloc_fail_after(0, false);
    const uint64_t step = getenv("ASSAY_FULL") ? 1 : 1 + total / 150;
    for (uint64_t n = 1; n <= total; n += step) {
      const int64_t live = assay_alloc_live();
      assay_alloc_fail_after(n, false);
      assay_status_t st = assay_reduce_run(c.model, &samples, &options, &c.r);
      assay_alloc_fail_after(0, false);
      // A few are asked for where there is a way without.
      const bool clean =
          st ? assay_status_code(st) == ASSAY_NO_MEMORY : c.r.verdict == row->verdict;
      if (!clean)
        fail_msg("'%s': allocation %llu of %llu fails: %s", row->graph.name, (unsigned long long)n,
                 (unsigned long long)total, st ? assay_status_message(st) : "another verdict");
      assay_status_free(st);
      assay_reduced_deinit(&c.r);
      if (assay_alloc_live() != live)
        fail_msg("'%s': allocation %llu of %llu fails: %lld are not freed", row->graph.name,
                 (unsigned long long)n, (unsigned long long)total,
                 (long long)(assay_alloc_live() - live));
    }
    close_case(&c);
  }
}

static void a_judge_is_given_something(void** state) {
  (void)state;
  reduced_case_t c;
  open_case(&c, &rows[0]);
  const assay_samples_t samples = {.n = 1, .n_values = 1, .at = c.in};
  const assay_reduce_options_t options = {.check = &c.check, .judge = "true {inputs}"};
  assay_status_t st = assay_reduce_run(c.model, &samples, &options, &c.r);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  close_case(&c);
}

// ---- sets ---------------------------------------------------------------------------------------

// Fails where all that is wanted is there; late after so many questions.
typedef struct wanted {
  size_t at[4], n, asked, max;
} wanted_t;

static assay_status_t has_all(void* user, const bool* nodes, bool* out_fails, bool* out_late) {
  wanted_t* w = user;
  *out_fails = true;
  if ((*out_late = w->asked == w->max)) return *out_fails = false, NULL;
  w->asked++;
  for (size_t i = 0; i < w->n; i++) *out_fails &= nodes[w->at[i]];
  return NULL;
}

static void sets_shrink(void** state) {
  (void)state;
  static const struct {
    wanted_t w;
    bool minimal;
  } cases[] = {{{{0}, 1, 0, 1000}, true},           {{{19}, 1, 0, 1000}, true},
               {{{7, 8}, 2, 0, 1000}, true},        {{{0, 19}, 2, 0, 1000}, true},
               {{{1, 5, 6, 18}, 4, 0, 1000}, true}, {{{3, 16}, 2, 0, 0}, false},
               {{{3, 16}, 2, 0, 6}, false}};
  graph_case_t row = {"twenty", 0, {"x float[2]"}, {NULL}, {NULL}, "y"};
  char texts[20][32];
  for (int i = 0; i < 20; i++) {
    char from[8], to[8];
    snprintf(from, sizeof from, "v%d", i % 100);
    snprintf(to, sizeof to, "v%d", (i + 1) % 100);
    snprintf(texts[i], sizeof texts[i], "Neg n%d %s -> %s", i % 100, i ? from : "x",
             i < 19 ? to : "y");
    row.nodes[i] = texts[i];
  }
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  assay_model_t* m = graph_case_model(&row, in);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    wanted_t w = cases[i].w;
    const assay_set_test_t test = {has_all, &w};
    bool nodes[20] = {0}, minimal = false;
    op_case_ok(assay_set_bisect(m->graph, &test, nodes));
    for (size_t k = 0; k < w.n; k++) assert_true(nodes[w.at[k]]);
    op_case_ok(assay_set_minimize(m->graph, &test, nodes, &minimal));
    for (size_t k = 0; k < w.n; k++) assert_true(nodes[w.at[k]]);
    assert_int_equal(minimal, cases[i].minimal);
    if (minimal) assert_int_equal(assay_set_count(m->graph, nodes), w.n);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fault_is_what_is_left),  cmocka_unit_test(samples_are_honoured),
      cmocka_unit_test(exports_are_cut_at_golden),  cmocka_unit_test(golden_of_several_samples),
      cmocka_unit_test(golden_of_other_samples),    cmocka_unit_test(memory_may_run_out),
      cmocka_unit_test(a_judge_is_given_something), cmocka_unit_test(sets_shrink),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
