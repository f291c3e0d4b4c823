// Formulas: what each evaluates to in truth, and that the nodes which are put into a model give the
// same.
#include <math.h>

#include "base/alloc.h"
#include "diagnose/formula.h"
#include "eval/evaluator.h"
#include "onnx/load.h"
#include "passes/graph_case.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[2,3,4]"},
    {"u float[3,1]", "keep bool[2,3,1] 1 0 1 1 0 1", "steps int32[2] 2 3"},
    {"Neg neg x -> n", "Exp exp n -> e", "Mul mul e u -> y"},
    "y"};

typedef struct formula_row {
  const char* program;
  int opset;
  int n_axes, axes[2];
  const char* value;  // after '=' another formula
} formula_row_t;

static const formula_row_t rows[] = {
    {"x", 17, 0, {0}, NULL},
    {"x Relu", 17, 0, {0}, NULL},
    {"x 0.70710678118654752 * Erf 1 + x * 0.5 *", 17, 0, {0}, NULL},
    {"x v +", 17, 0, {0}, "u"},
    {"x v cast -2.5 * 1 + *", 17, 0, {0}, "keep"},
    {"v x -1e9 where", 17, 0, {0}, "keep"},
    {"v bool x -1e9 where", 17, 0, {0}, "u"},
    {"v not x -1e9 where", 17, 0, {0}, "keep"},
    {"x x mean - dup dup * mean 1e-05 + Sqrt /", 13, 1, {2}, NULL},
    {"x x mean - dup dup * mean 1e-05 + Sqrt /", 18, 2, {1, 2}, NULL},
    {"x x x * sum Sqrt 1e-12 max /", 11, 1, {1}, NULL},
    {"x x x * sum Sqrt 1e-12 max /", 17, 1, {1}, NULL},
    {"x softmax", 17, 1, {1}, NULL},
    {"x logsoftmax", 17, 1, {2}, NULL},
    {"x c +", 17, 0, {0}, NULL},
    {"x gather", 17, 1, {2}, NULL},
    {"x gather gather2", 17, 2, {1, 2}, NULL},
    {"x v ^", 17, 0, {0}, "u"},
    {"x v > v x >= xor x v == or x v < x v <= and or cast x +", 17, 0, {0}, "u"},
    {"x v min v max", 17, 0, {0}, "u"},
    {"x x mean. unsqueeze -", 13, 1, {1}, NULL},
    {"x x highest. unsqueeze -", 18, 1, {2}, NULL},
    {"x x lowest x highest + -", 17, 1, {1}, NULL},
    {"x v int reverse", 17, 2, {0, 1}, "steps"},
    {"x pad:1,0,0,0,0,2", 17, 0, {0}, NULL},
    {"x unsqueeze", 11, 1, {0}, NULL},
    {"x unsqueeze", 17, 1, {0}, NULL},
    {"x slice:1,2,3,1 x slice:1,0,2,1 concat:1,2", 17, 0, {0}, NULL},
    {"x slice:1,-1,-9,-1", 17, 0, {0}, NULL},
    {"x slice:2,1,9,1", 9, 0, {0}, NULL},
    {"x v + x w:0 like:2,0,0 -", 17, 0, {0}, "u"},
    {"x cumsum:1,0,0 x cumsum:2,1,1 *", 17, 0, {0}, NULL},
    {"x k:0 +", 17, 0, {0}, NULL},
    {"x v +", 17, 0, {0}, "=x Neg Relu"},
    {"x v v * -", 17, 0, {0}, "=x w:0 like:2,0,0"},
};

static const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};

// Elements for `c` and `d`: numbers that broadcast, or the order of elements.
static assay_tensor_t* constant_for(const formula_row_t* row, int which) {
  const bool gathers = strstr(row->program, "gather") != NULL;
  if (!gathers) return op_case_tensor("float[1,3,1] 0.5 -1 2");
  return op_case_tensor(row->axes[which] == 2 ? "int64[4] 2 3 0 1" : "int64[3] 2 0 1");
}

static assay_formula_t* formula_of(const formula_row_t* row, const assay_model_t* m) {
  assay_formula_t *f = NULL, *other = NULL;
  assay_tensor_t *c = constant_for(row, 0), *d = constant_for(row, 1);
  const bool is_made = row->value && *row->value == '=';
  assay_formula_terms_t terms = {.program = row->program,
                                 .more = {assay_graph_find(m->graph, "u")},
                                 .constants = {c},
                                 .like = {m->graph->nodes[2]},
                                 .c = c,
                                 .d = d,
                                 .n_axes = row->n_axes};
  for (int i = 0; i < row->n_axes; i++) terms.axes[i] = row->axes[i];
  if (is_made) {
    assay_formula_terms_t made = terms;
    made.program = row->value + 1;
    op_case_ok(assay_formula_create(&made, &other));
  } else if (row->value) {
    terms.value = assay_graph_find(m->graph, row->value);
  }
  terms.value_made = other;
  op_case_ok(assay_formula_create(&terms, &f));
  assay_formula_release(other);
  assay_tensor_release(c);
  assay_tensor_release(d);
  return f;
}

static void assert_same(const char* program, const assay_tensor_t* a, const assay_tensor_t* b) {
  assert_true(assay_tensor_alike(a, b));
  for (int64_t i = 0; i < a->size; i++)
    if (!(fabs(assay_f64(a)[i] - assay_f64(b)[i]) <= 1e-12))
      fail_msg("%s: element %lld is %g, not %g", program, (long long)i, assay_f64(a)[i],
               assay_f64(b)[i]);
}

// What y is where the formula stands between exp and mul, by evaluating it beside the model.
static assay_tensor_t* by_evaluating(const formula_row_t* row, const graph_case_t* g) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *made = NULL, *y = NULL;
  assay_model_t* m = graph_case_model(g, in);
  const assay_graph_t* graph = m->graph;
  assay_evaluator_t* truth = NULL;
  assay_formula_t* f = formula_of(row, m);
  op_case_ok(assay_evaluator_create_run(m, &config, in, &truth));
  assay_tensor_t* e = assay_evaluator_get(truth, assay_graph_find(graph, "e"));
  op_case_ok(assay_formula_evaluate(f, truth, graph->nodes[2], e, &made));
  assay_tensor_t* operands[2] = {made, assay_evaluator_get(truth, assay_graph_find(graph, "u"))};
  op_case_ok(assay_evaluator_node(truth, graph->nodes[2], 2, operands, 1, &y));
  assay_tensor_release(made);
  assay_formula_release(f);
  assay_evaluator_destroy(truth);
  assay_model_release(m);
  graph_case_release(in);
  return y;
}

// The same by putting its nodes into the model, as it would be in a file.
static assay_tensor_t* by_inserting(const formula_row_t* row, const graph_case_t* g) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *y = NULL;
  assay_model_t *m = graph_case_begin(g, in), *prepared = NULL;
  for (size_t i = 0; i < GRAPH_CASE_ROWS && g->nodes[i]; i++)
    graph_case_node(m->graph, g->nodes[i], (int)m->opsets[0].version);
  graph_case_outputs(m->graph, g->outputs);
  assay_formula_t* f = formula_of(row, m);
  assay_evaluator_t* truth = NULL;
  size_t at = 2;
  op_case_ok(assay_formula_insert(f, m->graph, ASSAY_TYPE_FLOAT, assay_graph_find(m->graph, "e"),
                                  NULL, &at, &m->graph->nodes[2]->inputs[0]));
  assert_int_equal(at, m->graph->n_nodes - 1);
  op_case_ok(assay_onnx_prepare(m, 0, NULL, &prepared));
  op_case_ok(assay_evaluator_create_run(prepared, &config, in, &truth));
  y = assay_tensor_retain(assay_evaluator_get(truth, prepared->graph->outputs[0]));
  assay_evaluator_destroy(truth);
  assay_formula_release(f);
  assay_model_release(prepared);
  assay_model_release(m);
  graph_case_release(in);
  return y;
}

static void inserted_as_evaluated(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    graph_case_t g = network;
    g.opset = rows[i].opset;
    assay_tensor_t *a = by_evaluating(&rows[i], &g), *b = by_inserting(&rows[i], &g);
    assert_same(rows[i].program, a, b);
    assay_tensor_release(a);
    assay_tensor_release(b);
  }
}

// What single programs give of x = -1, 0, 2.
static void values(void** state) {
  (void)state;
  static const struct {
    const char* program;
    double want[3];
  } known[] = {
      {"x Relu", {0, 0, 2}},
      {"x 3 + 0 max 6 min 0.5 *", {1, 1.5, 2.5}},
      {"1 x -", {2, 1, -1}},
      {"x x mean -", {-4. / 3, -1. / 3, 5. / 3}},
      {"x dup * sum Sqrt", {2.23606797749979, 2.23606797749979, 2.23606797749979}},
  };
  static const graph_case_t one = {
      "one", 17, {"x float[1,3] -1 0 2"}, {NULL}, {"Identity id x -> y"}, "y"};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *made = NULL;
    assay_model_t* m = graph_case_model(&one, in);
    assay_evaluator_t* truth = NULL;
    assay_formula_t* f = NULL;
    const assay_formula_terms_t terms = {.program = known[i].program, .axes = {1}, .n_axes = 1};
    op_case_ok(assay_evaluator_create_run(m, &config, in, &truth));
    op_case_ok(assay_formula_create(&terms, &f));
    op_case_ok(assay_formula_evaluate(f, truth, m->graph->nodes[0],
                                      assay_evaluator_get(truth, m->graph->inputs[0]), &made));
    for (int64_t k = 0; k < 3; k++) {
      const double got = assay_f64(made)[made->size == 3 ? k : 0];
      if (!(fabs(got - known[i].want[k]) < 1e-12))
        fail_msg("'%s' gives %g, not %g", known[i].program, got, known[i].want[k]);
    }
    assay_tensor_release(made);
    assay_formula_release(f);
    assay_evaluator_destroy(truth);
    assay_model_release(m);
    graph_case_release(in);
  }
}

static void malformed(void** state) {
  (void)state;
  static const char* const programs[] = {
      "", "x x", "+", "x +", "x NoSuchOperator", "v", "x x x x x x x x x", "dup x", "x softmax"};
  static const graph_case_t one = {
      "one", 17, {"x float[1,3] -1 0 2"}, {NULL}, {"Identity id x -> y"}, "y"};
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *made = NULL;
    assay_model_t* m = graph_case_model(&one, in);
    assay_evaluator_t* truth = NULL;
    assay_formula_t* f = NULL;
    const assay_formula_terms_t terms = {.program = programs[i], .axes = {7}, .n_axes = 1};
    op_case_ok(assay_evaluator_create_run(m, &config, in, &truth));
    op_case_ok(assay_formula_create(&terms, &f));
    assay_status_t st = assay_formula_evaluate(
        f, truth, m->graph->nodes[0], assay_evaluator_get(truth, m->graph->inputs[0]), &made);
    if (!st) fail_msg("'%s' was evaluated", programs[i]);
    assert_null(made);
    assay_status_free(st);
    assay_formula_release(f);
    assay_evaluator_destroy(truth);
    assay_model_release(m);
    graph_case_release(in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(inserted_as_evaluated),
      cmocka_unit_test(values),
      cmocka_unit_test(malformed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
