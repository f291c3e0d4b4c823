// Infinities and NaN go where the operator takes them and nowhere else: vector code that reads past
// a row multiplies what it finds there by zero, and a comparison loses NaN. Each class of an
// output's elements is that of the emulated engine.
#include <math.h>

#include "exec/backend.h"
#include "onnx/load.h"
#include "passes/graph_case.h"
#include "runtime/executor.h"

static const char* const patterns[] = {
    "Conv | [2,C,5,6] x [8,C,3,3] pads=1,1,1,1",
    "Conv | [2,C,5,6] x [8,C,1,1] strides=1,1",
    "Conv | [2,C,5,6] x [C,1,3,3] group=C",
    "Conv | [1,C,9] x [3,C,3] pads=1,1",
    "MatMul | [5,C] x [C,8]",
    "MatMul | [2,3,C] x [C,17]",
    "MatMul | [2,3,C] x [2,C,4]",
    "Gemm | [5,C] x [C,3] alpha=1.0",
    "MaxPool | [2,C,5,6] kernel_shape=2,2",
    "MaxPool | [2,C,5,6] kernel_shape=3,3 pads=1,1,1,1 strides=2,2",
    "MaxPool | [1,C,9] kernel_shape=3",
    "MaxPool | [2,C,9,7] kernel_shape=7,7 pads=2,3,2,0 strides=2,2",
    "MaxPool | [2,C,5,6] kernel_shape=1,1",
    "GlobalMaxPool | [2,C,5,6]",
    "AveragePool | [2,C,5,6] kernel_shape=2,2",
    "GlobalAveragePool | [2,C,5,6]",
    "Softmax | [3,C] axis=-1",
    "LayerNormalization | [3,C] x [C] axis=-1",
    "ReduceMean | [3,4,C] axes=-1",
    "ReduceMax | [3,4,C] axes=-1",
};
static const double specials[] = {NAN, INFINITY, -INFINITY};
static const int channels[] = {1, 2, 3, 5, 6, 7, 16, 17, 31};

// A pattern with its C, as a graph of one node; C as a number.
static assay_model_t* model_of(const char* pattern, int c, assay_tensor_t** in) {
  char text[160], op[32], x[40] = "", w[40] = "", input[64], weights[64], node[200];
  int n = 0, used = 0;
  for (const char* p = pattern; *p; p++) {
    if (*p == 'C' && p > pattern && (p[-1] == ',' || p[-1] == '[' || p[-1] == '='))
      n += sprintf(text + n, "%d", c);
    else
      text[n++] = *p;
  }
  text[n] = 0;
  assert_true(sscanf(text, "%31s | %39s%n", op, x, &used) == 2);
  int more = 0;
  if (sscanf(text + used, " x %39s%n", w, &more) == 1) used += more;
  snprintf(input, sizeof input, "x float%s", x);
  snprintf(weights, sizeof weights, "w float%s positive", w);
  snprintf(node, sizeof node, "%s n x%s -> y%s%s", op, *w ? " w" : "", text[used] ? " |" : "",
           text + used);
  const graph_case_t row = {pattern, 17, {input}, {*w ? weights : NULL}, {node}, "y"};
  return graph_case_model(&row, in);
}

static assay_status_t run_on(const char* backend, assay_model_t* m, assay_format_t format,
                             assay_tensor_t* x, assay_tensor_t** out) {
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  const assay_precision_t p = {.format = format};
  ASSAY_TRY(assay_plan_create(m, &p, NULL, 1, &plan));
  assay_status_t st = assay_executor_run_plan(plan, assay_backend_find(backend), NULL, &e);
  if (!st) st = assay_executor_set(e, m->graph->inputs[0], x);
  if (!st) st = assay_executor_run(e);
  if (!st) *out = assay_tensor_retain(assay_executor_get(e, m->graph->outputs[0]));
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
  return st;
}

static int class_of(double x) { return isnan(x) ? 2 : isinf(x) ? (x > 0 ? 3 : 4) : 0; }

// How many elements are of another class than the emulated engine's.
static int misplaced(assay_model_t* m, assay_format_t format, assay_tensor_t* x) {
  assay_tensor_t *want = NULL, *got = NULL;
  int n = 0;
  op_case_ok(run_on("emu", m, format, x, &want));
  op_case_ok(run_on("cpu", m, format, x, &got));
  assert_int_equal(want->size, got->size);
  for (int64_t i = 0; i < want->size; i++)
    n += class_of(assay_f64(want)[i]) != class_of(assay_f64(got)[i]);
  assay_tensor_release(want);
  assay_tensor_release(got);
  return n;
}

static void specials_stay_where_they_belong(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  int wrong = 0;
  for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++)
    for (size_t c = 0; c < sizeof channels / sizeof *channels; c++)
      for (int f = 0; f < 3; f++) {
        assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
        assay_model_t* m = model_of(patterns[p], channels[c], in);
        int n = 0;
        for (int64_t at = 0; at < 3; at++) {
          // Among the first, in the middle, the last element.
          const int64_t i = at == 0   ? (channels[c] > 1)
                            : at == 1 ? in[0]->size / 2
                                      : in[0]->size - 1;
          const double was = assay_f64(in[0])[i];
          assay_f64(in[0])[i] = specials[at];
          n += misplaced(m, formats[f], in[0]);
          assay_f64(in[0])[i] = was;
        }
        if (n) print_error("%s, C=%d, format %d: %d misplaced\n", patterns[p], channels[c], f, n);
        wrong += n;
        graph_case_release(in);
        assay_model_release(m);
      }
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(specials_stay_where_they_belong)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
