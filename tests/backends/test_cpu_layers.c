// Layers on the CPU backend against the emulated engine, where kernels are easily wrong: special
// values and tails of pointwise functions, and sizes that turn out at run time not to fit together.
#include <math.h>

#include "exec/backend.h"
#include "onnx/load.h"
#include "passes/graph_case.h"
#include "runtime/executor.h"

typedef struct layer_case {
  graph_case_t graph;
  double tolerance;  // relative, beside one float32 subnormal
} layer_case_t;

static const double specials[] = {0,        -0.0,      1,     -1,     0.5,  -0.5,  3,    -3,  20,
                                  -20,      80,        -80,   95,     -95,  103,   -103, 200, -200,
                                  INFINITY, -INFINITY, 1e-40, -1e-40, 1e38, -1e38, NAN};
enum { SPECIALS = sizeof specials / sizeof *specials };

static const layer_case_t pointwise[] = {
    {{"sigmoid", 17, {"x float[25]"}, {0}, {"Sigmoid s x -> y"}, "y"}, 1e-6},
    {{"tanh", 17, {"x float[25]"}, {0}, {"Tanh s x -> y"}, "y"}, 1e-6},
    {{"softplus", 17, {"x float[25]"}, {0}, {"Softplus s x -> y"}, "y"}, 1e-6},
    {{"erf", 17, {"x float[25]"}, {0}, {"Erf s x -> y"}, "y"}, 1e-6},
    {{"exp", 17, {"x float[25]"}, {0}, {"Exp s x -> y"}, "y"}, 1e-6},
    {{"elu", 17, {"x float[25]"}, {0}, {"Elu s x -> y | alpha=1.5"}, "y"}, 1e-6},
    {{"hard sigmoid", 17, {"x float[25]"}, {0}, {"HardSigmoid s x -> y"}, "y"}, 1e-6},
    {{"hard swish", 17, {"x float[25]"}, {0}, {"HardSwish s x -> y"}, "y"}, 1e-6},
    {{"relu", 17, {"x float[25]"}, {0}, {"Relu s x -> y"}, "y"}, 0},
    {{"clip whose limits cross",
      17,
      {"x float[25]"},
      {"lo float[] 2", "hi float[] -1"},
      {"Clip s x lo hi -> y"},
      "y"},
     0},
    {{"clip", 17, {"x float[25]"}, {"lo float[] -1", "hi float[] 2"}, {"Clip s x lo hi -> y"}, "y"},
     0},
};

// Runs a model with its only input on a backend; *out is retained.
static assay_status_t run_on(const char* backend, assay_model_t* m, size_t n,
                             assay_tensor_t* const* in, assay_tensor_t** out, const char** tactic) {
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  const assay_precision_t fp32 = {.format = ASSAY_FORMAT_FP32};
  op_case_ok(assay_plan_create(m, &fp32, NULL, 1, &plan));
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find(backend), NULL, &e));
  for (size_t i = 0; i < n; i++) op_case_ok(assay_executor_set(e, m->graph->inputs[i], in[i]));
  assay_status_t st = assay_executor_run(e);
  if (!st) *out = assay_tensor_retain(assay_executor_get(e, m->graph->outputs[0]));
  *tactic = assay_executor_tactic(e, 0);
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
  return st;
}

static void functions_keep_special_values(void** state) {
  (void)state;
  const int64_t dims[1] = {SPECIALS};
  assay_tensor_t* x = NULL;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, dims, &x));
  for (int i = 0; i < SPECIALS; i++) assay_f64(x)[i] = (double)(float)specials[i];
  for (size_t c = 0; c < sizeof pointwise / sizeof *pointwise; c++) {
    assay_tensor_t* made[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&pointwise[c].graph, made);
    graph_case_release(made);
    assay_tensor_t *want = NULL, *got = NULL;
    const char *emu, *cpu;
    op_case_ok(run_on("emu", m, 1, &x, &want, &emu));
    op_case_ok(run_on("cpu", m, 1, &x, &got, &cpu));
    assert_string_equal(cpu, "pointwise");
    for (int i = 0; i < SPECIALS; i++) {
      const double a = assay_f64(want)[i], b = assay_f64(got)[i];
      const bool same = isnan(a)   ? isnan(b)
                        : isinf(a) ? a == b
                                   : fabs(a - b) <= pointwise[c].tolerance * fabs(a) + 0x1p-149;
      if (!same) fail_msg("%s of %g is %g, not %g", pointwise[c].graph.name, specials[i], b, a);
    }
    assay_tensor_release(want);
    assay_tensor_release(got);
    assay_model_release(m);
  }
  assay_tensor_release(x);
}

// What the caller hands over has other sizes than the model declares: an error, as on the emulated
// engine, and no reading past an end.
static const struct {
  graph_case_t graph;
  int64_t a[2], b[2];
} misfits[] = {
    {{"rows of a join",
      17,
      {"a float[3,2]", "b float[3,2]"},
      {0},
      {"Concat c a b -> y | axis=1"},
      "y"},
     {6, 2},
     {3, 2}},
    {{"inner sizes of a product",
      17,
      {"a float[3,4]", "b float[4,2]"},
      {0},
      {"MatMul p a b -> y"},
      "y"},
     {3, 4},
     {5, 2}},
    {{"a sum", 17, {"a float[3,2]", "b float[3,2]"}, {0}, {"Add s a b -> y"}, "y"}, {3, 2}, {5, 2}},
};

static void sizes_that_do_not_fit_are_errors(void** state) {
  (void)state;
  for (size_t c = 0; c < sizeof misfits / sizeof *misfits; c++) {
    assay_tensor_t* made[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&misfits[c].graph, made);
    graph_case_release(made);
    assay_tensor_t *in[2] = {NULL}, *out = NULL;
    const char* tactic;
    op_case_ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, 2, misfits[c].a, &in[0]));
    op_case_ok(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, 2, misfits[c].b, &in[1]));
    assay_status_t st = run_on("cpu", m, 2, in, &out, &tactic);
    if (!st) fail_msg("%s: no error, by %s", misfits[c].graph.name, tactic);
    assay_status_free(st);
    assay_tensor_release(in[0]);
    assay_tensor_release(in[1]);
    assay_model_release(m);
  }
}

// The sum takes one of its inputs in a form that can be had, and the other in one that cannot, so
// no kernel runs it: what was asked for the first must not be taken for made by the next layer.
static void layers_without_kernel_leave_nothing_unmade(void** state) {
  (void)state;
  static const graph_case_t graph = {
      "mixed formats",
      17,
      {"x float[5]"},
      {0},
      {"Relu wide x -> a", "Neg double x -> b", "Add sum a b -> c", "Sqrt narrow a -> y"},
      "y"};
  const int64_t dims[1] = {5};
  assay_tensor_t *x = NULL, *made[GRAPH_CASE_ROWS] = {NULL}, *out[2] = {NULL};
  assay_precision_t precision = {.format = ASSAY_FORMAT_BF16};
  op_case_ok(assay_precision_parse(&precision, "wide:fp32,double:fp64"));
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, dims, &x));
  for (int i = 0; i < 5; i++) assay_f64(x)[i] = (double)(float)(1.3 * i + 0.7);
  assay_model_t* m = graph_case_model(&graph, made);
  graph_case_release(made);
  for (int k = 0; k < 2; k++) {
    assay_plan_t* plan = NULL;
    assay_executor_t* e = NULL;
    op_case_ok(assay_plan_create(m, &precision, NULL, 1, &plan));
    op_case_ok(assay_executor_run_plan(plan, assay_backend_find(k ? "cpu" : "emu"), NULL, &e));
    op_case_ok(assay_executor_set(e, m->graph->inputs[0], x));
    op_case_ok(assay_executor_run(e));
    if (k) assert_string_equal(assay_executor_tactic(e, 2), "emu");
    if (k) assert_string_equal(assay_executor_tactic(e, 3), "pointwise");
    out[k] = assay_tensor_retain(assay_executor_get(e, m->graph->outputs[0]));
    assay_executor_destroy(e);
    assay_plan_destroy(plan);
  }
  assert_memory_equal(out[0]->data, out[1]->data, 5 * sizeof(double));
  assay_tensor_release(out[0]);
  assay_tensor_release(out[1]);
  assay_tensor_release(x);
  assay_precision_deinit(&precision);
  assay_model_release(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_keep_special_values),
                                     cmocka_unit_test(sizes_that_do_not_fit_are_errors),
                                     cmocka_unit_test(layers_without_kernel_leave_nothing_unmade)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
