// Truth 'unquantized': a quantized model computes what its real-valued twin computes with the
// weights as they are.
//
// Each row is a quantized model and its twin, with the same inputs; a quantized weight's twin is (w
// - zero) * scale. Outputs must agree to float64's rounding. As written they must not: then the row
// shows nothing.
#include "passes/graph_case.h"

typedef struct twin {
  graph_case_t quantized;
  graph_case_t real;
} twin_t;

#define SCALES                                                                             \
  "xs float[] 0.05", "xz uint8[] 100", "ws float[] 0.02", "wz int8[] 0", "ys float[] 0.1", \
      "yz uint8[] 120"

static const twin_t twins[] = {
    {{"qdq",
      17,
      {"x float[2,3]"},
      {SCALES, "w int8[3,2] 10 -20 30 -40 50 60"},
      {"QuantizeLinear q x xs xz -> a", "DequantizeLinear dq a xs xz -> b",
       "DequantizeLinear dw w ws wz -> c", "MatMul mm b c -> d", "QuantizeLinear qy d ys yz -> e",
       "DequantizeLinear dqy e ys yz -> y"},
      "y"},
     {"real",
      17,
      {"x float[2,3]"},
      {"w float[3,2] 0.2 -0.4 0.6 -0.8 1 1.2"},
      {"MatMul mm x w -> y"},
      "y"}},
    {{"qlinear matmul",
      17,
      {"x float[2,3]"},
      {SCALES, "w int8[3,2] 10 -20 30 -40 50 60"},
      {"QuantizeLinear q x xs xz -> a", "QLinearMatMul mm a xs xz w ws wz ys yz -> e",
       "DequantizeLinear dqy e ys yz -> y"},
      "y"},
     {"real",
      17,
      {"x float[2,3]"},
      {"w float[3,2] 0.2 -0.4 0.6 -0.8 1 1.2"},
      {"MatMul mm x w -> y"},
      "y"}},
    {{"qlinear conv",
      17,
      {"x float[1,1,2,3]"},
      {SCALES, "w int8[1,1,1,2] 10 -20", "b int32[1] 300"},
      {"QuantizeLinear q x xs xz -> a", "QLinearConv cv a xs xz w ws wz ys yz b -> e",
       "MaxPool mp e -> f | kernel_shape=2,1", "DequantizeLinear dqy f ys yz -> y"},
      "y"},
     {"real",
      17,
      {"x float[1,1,2,3]"},
      {"w float[1,1,1,2] 0.2 -0.4", "b float[1] 0.3"},
      {"Conv cv x w b -> c", "MaxPool mp c -> y | kernel_shape=2,1"},
      "y"}},
    // Integers that are scaled by hand: units of the scales must hold through MatMulInteger, Cast
    // and Mul.
    {{"matmul integer",
      17,
      {"x float[2,3]"},
      {SCALES, "w int8[3,2] 10 -20 30 -40 50 60", "s float[] 0.001"},
      {"QuantizeLinear q x xs xz -> a", "MatMulInteger mm a w xz wz -> c", "Cast ca c -> d | to=1",
       "Mul sc d s -> y"},
      "y"},
     {"real",
      17,
      {"x float[2,3]"},
      {"w float[3,2] 0.2 -0.4 0.6 -0.8 1 1.2"},
      {"MatMul mm x w -> y"},
      "y"}},
    {{"dynamic matmul integer",
      17,
      {"x float[2,3]"},
      {SCALES, "w int8[3,2] 10 -20 30 -40 50 60"},
      {"DynamicQuantizeLinear q x -> a s z", "MatMulInteger mm a w z wz -> c",
       "Cast ca c -> d | to=1", "Mul sc s ws -> f", "Mul sd d f -> y"},
      "y"},
     {"real",
      17,
      {"x float[2,3]"},
      {"w float[3,2] 0.2 -0.4 0.6 -0.8 1 1.2"},
      {"MatMul mm x w -> y"},
      "y"}},
    {{"conv integer",
      17,
      {"x float[1,1,2,3]"},
      {SCALES, "w int8[1,1,1,2] 10 -20"},
      {"DynamicQuantizeLinear q x -> a s z", "ConvInteger cv a w z wz -> c",
       "Cast ca c -> d | to=1", "Mul sc s ws -> f", "Mul sd d f -> y"},
      "y"},
     {"real", 17, {"x float[1,1,2,3]"}, {"w float[1,1,1,2] 0.2 -0.4"}, {"Conv cv x w -> y"}, "y"}},
    // Between quantizer and dequantizer: real numbers beside whole ones, with casts and zero points
    // by hand.
    {{"arithmetic on integers",
      17,
      {"x float[2,3]"},
      {SCALES, "more uint8[2,1] 110 90", "z int32[] 100"},
      {"QuantizeLinear q x xs xz -> a", "Concat cat a more -> b | axis=1",
       "Transpose t b -> c | perm=1,0", "Cast ca c -> d | to=6", "Sub su d z -> e",
       "Cast cb e -> f | to=1", "Mul sc f xs -> y"},
      "y"},
     {"real",
      17,
      {"x float[2,3]"},
      {"more float[2,1] 0.5 -0.5"},
      {"Concat cat x more -> b | axis=1", "Transpose t b -> y | perm=1,0"},
      "y"}},
    // A zero point at the range's end stands for a Relu.
    {{"relu",
      17,
      {"x float[2,3]"},
      {SCALES, "none uint8[] 0"},
      {"QuantizeLinear q x xs none -> a", "DequantizeLinear dq a xs none -> y"},
      "y"},
     {"real", 17, {"x float[2,3]"}, {NULL}, {"Relu r x -> y"}, "y"}},
    // Who needs integers gets those that the real numbers round to.
    {{"indices",
      17,
      {"x float[2,3]"},
      {SCALES, "table float[7] 0 1 4 9 16 25 36", "unit float[] 0.5", "three uint8[] 3"},
      {"QuantizeLinear q x unit three -> a", "Cast ca a -> b | to=7", "Gather g table b -> c",
       "Mul m x c -> y"},
      "y"},
     {"real",
      17,
      {"x float[2,3]"},
      {"table float[7] 0 1 4 9 16 25 36", "two float[] 2", "three float[] 3"},
      {"Mul h x two -> a", "Round r a -> b", "Add p b three -> c", "Cast ca c -> d | to=7",
       "Gather g table d -> e", "Mul m x e -> y"},
      "y"}},
};

static assay_tensor_t* run(const graph_case_t* row, bool unquantized) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *y = NULL;
  assay_model_t* m = graph_case_model(row, in);
  assay_evaluator_t* evaluator = NULL;
  assay_evaluator_config_t config = {.unquantized = unquantized, .verify = true};
  op_case_ok(assay_evaluator_create_run(m, &config, in, &evaluator));
  y = assay_tensor_retain(assay_evaluator_get(evaluator, m->graph->outputs[0]));
  assay_evaluator_destroy(evaluator);
  assay_model_release(m);
  graph_case_release(in);
  return y;
}

static double difference(const assay_tensor_t* a, const assay_tensor_t* b) {
  double d = 0;
  assert_int_equal(a->size, b->size);
  assert_int_equal(a->type, b->type);
  for (int64_t i = 0; i < a->size; i++) d = fmax(d, fabs(assay_f64(a)[i] - assay_f64(b)[i]));
  return d;
}

static void quantized_models_have_real_twins(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof twins / sizeof *twins; i++) {
    const char* name = twins[i].quantized.name;
    assay_tensor_t *real = run(&twins[i].real, false), *plain = run(&twins[i].quantized, true);
    assay_tensor_t* written = run(&twins[i].quantized, false);
    // Scales such as 0.02 and the twin's weights are not the same to more than float32.
    if (difference(real, plain) > 2e-7)
      fail_msg("%s: differs by %g", name, difference(real, plain));
    if (strcmp(name, "indices") != 0 && difference(real, written) < 1e-4)
      fail_msg("%s: nothing is quantized", name);
    assay_tensor_release(real);
    assay_tensor_release(plain);
    assay_tensor_release(written);
  }
}

// An output of integer type leaves the graph as integers, rounded once; inside it is real for who
// reads on.
static void integer_outputs_are_integers(void** state) {
  (void)state;
  static const graph_case_t row = {
      "outputs",
      17,
      {"x float[3] 0.31 -9 40"},
      {"s float[] 0.1", "z uint8[] 10"},
      {"QuantizeLinear q x s z -> a", "DequantizeLinear dq a s z -> y"},
      "a y"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&row, in);
  assay_evaluator_t* evaluator = NULL;
  op_case_ok(assay_evaluator_create(
      m, &(assay_evaluator_config_t){.unquantized = true, .verify = true}, &evaluator));
  for (int round = 0; round < 2; round++) {
    op_case_ok(assay_evaluator_run_on(evaluator, in));
    const assay_tensor_t *a = assay_evaluator_get(evaluator, m->graph->outputs[0]),
                         *y = assay_evaluator_get(evaluator, m->graph->outputs[1]);
    assert_int_equal(a->type, ASSAY_TYPE_UINT8);
    assert_int_equal(assay_i64(a)[0], 13);
    assert_int_equal(assay_i64(a)[1], 0);
    assert_int_equal(assay_i64(a)[2], 255);
    for (int i = 0; i < 3; i++) assert_true(fabs(assay_f64(y)[i] - assay_f64(in[0])[i]) < 1e-12);
  }
  assay_evaluator_destroy(evaluator);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(quantized_models_have_real_twins),
                                     cmocka_unit_test(integer_outputs_are_integers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
