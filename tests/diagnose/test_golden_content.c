// Golden tensors whose names say nothing find their values by elements, shape and statistics.
#include "diagnose/golden/golden_content.h"
#include "eval/evaluator.h"
#include "passes/graph_case.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[2,4,8,8]"},
    {"w1 float[6,4,3,3]", "b1 float[6]", "w2 float[6,6,3,3]", "k float[] 0.7", "w3 float[96,5]"},
    {"Conv conv1 x w1 b1 -> c1 | pads=1,1,1,1", "Elu elu c1 -> e1 | alpha=0.3",
     "Conv conv2 e1 w2 -> c2 | pads=1,1,1,1", "Tanh tanh c2 -> t2", "Mul scale t2 k -> m2",
     "AveragePool pool m2 -> p2 | kernel_shape=2,2 strides=2,2", "Flatten flat p2 -> f2 | axis=1",
     "MatMul fc f2 w3 -> y", "ReduceMean mean e1 -> z | axes=2,3 keepdims=0"},
    "y z"};

typedef struct content_row {
  const char* node;  // the row that the model has instead of node `at`; NULL: it is right
  size_t at;
  const char* names;  // values that golden holds, in this order
  const char* found;  // what they are to be taken for; '-': nothing
} content_row_t;

static const content_row_t rows[] = {
    {NULL, 0, "t2 c1 y e1 z c2", "t2 c1 y e1 z c2"},
    {NULL, 0, "z y", "z y"},
    // Faults: what the node gives is found by its statistics, all behind it by elements again.
    {"Elu elu c1 -> e1 | alpha=0.5", 1, "t2 c1 y e1 z c2 p2", "t2 c1 y e1 z c2 p2"},
    {"Tanh tanh c2 -> t2", 3, "m2 c1 t2 y", "m2 c1 t2 y"},
    {"Erf tanh c2 -> t2", 3, "y c2 z t2 m2", "y c2 z t2 m2"},
    {"Conv conv1 x w1 b1 -> c1 | pads=2,1,0,1", 0, "e1 c2 c1 z y", "e1 c2 c1 z y"},
    // An output differs however much: there is only one of its shape.
    {"Neg tanh c2 -> t2", 3, "z y", "z y"},
};

static assay_set_t golden_of(const assay_model_t* m, assay_tensor_t* const* in, const char* names) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  assay_evaluator_t* evaluator = NULL;
  assay_set_t set = {0};
  char name[64];
  int used = 0;
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  for (const char* p = names; sscanf(p, "%63s%n", name, &used) == 1; p += used) {
    char theirs[80];
    assay_tensor_t* t = NULL;
    snprintf(theirs, sizeof theirs, "layer%zu/out:0", set.n);
    const assay_value_t* v = assay_graph_find(m->graph, name);
    op_case_ok(assay_tensor_retype(assay_evaluator_get(evaluator, v), ASSAY_TYPE_DOUBLE, &t));
    op_case_ok(assay_set_add(&set, theirs, t));
  }
  assay_evaluator_destroy(evaluator);
  return set;
}

static void match(const assay_set_t* set, const assay_model_t* m, assay_tensor_t* const* in,
                  assay_golden_t* out) {
  op_case_ok(assay_golden_match(set, m, NULL, out));
  op_case_ok(assay_golden_match_content(out, m, in, &(assay_content_options_t){.seed = 1}));
}

static void names_are_told_by_contents(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *again[GRAPH_CASE_ROWS] = {NULL};
    graph_case_t held = network;
    if (rows[i].node) held.nodes[rows[i].at] = rows[i].node;
    assay_model_t* right = graph_case_model(&network, in);
    assay_model_t* m = graph_case_model(&held, again);
    assay_set_t set = golden_of(right, in, rows[i].names);
    assay_golden_t g = {0};
    char name[64];
    int used = 0;
    const char* p = rows[i].found;
    match(&set, m, again, &g);
    for (size_t k = 0; k < g.n; k++, p += used) {
      assert_int_equal(sscanf(p, "%63s%n", name, &used), 1);
      const char* got = g.at[k].value ? g.at[k].value->name : "-";
      if (strcmp(got, name) != 0)
        fail_msg("row %zu: '%s' is taken for '%s', not '%s'\n%s", i, g.at[k].name, got, name,
                 assay_str_get(&g.notes));
      if (g.at[k].value) assert_int_equal(g.at[k].match, ASSAY_GOLDEN_BY_CONTENT);
    }
    assay_golden_deinit(&g);
    assay_set_deinit(&set);
    assay_model_release(right);
    assay_model_release(m);
    graph_case_release(in);
    graph_case_release(again);
  }
}

// A healthy model's golden may hold tensors that the model does not have: nothing is taken for
// them, however near it is, and that is said.
static void what_the_model_lacks_is_left_out(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&network, in);
  assay_set_t set = golden_of(m, in, "y z");
  assay_set_t inner = golden_of(m, in, "c1");
  assay_tensor_t* near = NULL;
  op_case_ok(assay_tensor_copy(inner.tensors[0], &near));
  for (int64_t i = 0; i < near->size; i++) assay_f64(near)[i] += 1e-4;
  op_case_ok(assay_set_add(&set, "conv_and_epsilon", near));
  op_case_ok(assay_set_add(&set, "counts", op_case_tensor("double[2,6,8,8] iota")));
  assay_golden_t g = {0};
  match(&set, m, in, &g);
  assert_string_equal(g.at[0].value->name, "y");
  assert_string_equal(g.at[1].value->name, "z");
  assert_null(g.at[2].value);
  assert_null(g.at[3].value);
  assert_non_null(strstr(assay_str_get(&g.notes), "'conv_and_epsilon' is like no value"));
  assay_golden_deinit(&g);
  assay_set_deinit(&inner);
  assay_set_deinit(&set);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_told_by_contents),
      cmocka_unit_test(what_the_model_lacks_is_left_out),
  };
  return cmocka_run_group_tests_name("golden by contents", tests, NULL, NULL);
}
