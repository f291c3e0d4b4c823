// Vector-Jacobian products against central differences: each row of the table, every element of
// every input that has a rule.
#include "eval/gradients/vjp.h"
#include "passes/graph_case.h"

enum { PROBES = 3 };

typedef struct vjp_row {
  const char* node;
  const char* inputs[4];     // those whose derivatives are asked for
  const char* constants[8];  // the others
  int opset;                 // 0: 17
  const char* outputs;       // NULL: "y"
  bool unknown;              // there must be no rule
} vjp_row_t;

static const vjp_row_t rows[] = {
    {.node = "Identity n x -> y", .inputs = {"x float[2,3]"}},
    {.node = "Reshape n x s -> y", .inputs = {"x float[2,3]"}, .constants = {"s int64[1] -1"}},
    {.node = "Flatten n x -> y", .inputs = {"x float[2,3,2]"}},
    {.node = "Squeeze n x -> y", .inputs = {"x float[2,1,3]"}},
    {.node = "Unsqueeze n x a -> y", .inputs = {"x float[2,3]"}, .constants = {"a int64[1] 1"}},
    {.node = "Transpose n x -> y | perm=2,0,1", .inputs = {"x float[2,3,4]"}},
    {.node = "Concat n a b c -> y | axis=1",
     .inputs = {"a float[2,2]", "b float[2,1]", "c float[2,3]"}},
    {.node = "Concat n a b a -> y | axis=0", .inputs = {"a float[2,2]", "b float[1,2]"}},
    {.node = "Split n x -> y z | axis=1", .inputs = {"x float[2,4]"}, .outputs = "y z"},
    {.node = "Slice n x s e a t -> y",
     .inputs = {"x float[4,5]"},
     .constants = {"s int64[2] 3 1", "e int64[2] 0 5", "a int64[2] 0 1", "t int64[2] -2 2"}},
    {.node = "Gather n x i -> y | axis=1",
     .inputs = {"x float[2,4]"},
     .constants = {"i int64[3] 3 0 3"}},
    {.node = "GatherElements n x i -> y | axis=1",
     .inputs = {"x float[2,3]"},
     .constants = {"i int64[2,2] 1 1 0 2"}},
    {.node = "GatherND n x i -> y", .inputs = {"x float[3,2]"}, .constants = {"i int64[2,1] 2 2"}},
    {.node = "Expand n x s -> y", .inputs = {"x float[2,1,3]"}, .constants = {"s int64[3] 2 4 1"}},
    {.node = "Tile n x r -> y", .inputs = {"x float[2,2]"}, .constants = {"r int64[2] 2 3"}},
    {.node = "Pad n x p -> y", .inputs = {"x float[2,3]"}, .constants = {"p int64[4] 1 0 0 2"}},
    {.node = "Pad n x p -> y | mode=reflect",
     .inputs = {"x float[2,3]"},
     .constants = {"p int64[4] 1 1 0 2"}},
    {.node = "DepthToSpace n x -> y | blocksize=2 mode=CRD", .inputs = {"x float[1,8,2,1]"}},
    {.node = "SpaceToDepth n x -> y | blocksize=2", .inputs = {"x float[1,2,2,4]"}},
    {.node = "Trilu n x -> y | upper=0", .inputs = {"x float[3,3]"}},
    {.node = "Compress n x c -> y | axis=0",
     .inputs = {"x float[3,2]"},
     .constants = {"c bool[3] 1 0 1"}},
    {.node = "ReverseSequence n x l -> y | time_axis=0 batch_axis=1",
     .inputs = {"x float[3,2]"},
     .constants = {"l int64[2] 2 3"}},
    {.node = "Add n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}},
    {.node = "Sub n a b -> y", .inputs = {"a float[2,1,3]", "b float[4,1]"}},
    {.node = "Mul n a a -> y", .inputs = {"a float[2,3]"}},
    {.node = "Div n a b -> y", .inputs = {"a float[2,3]", "b float[2,1] positive"}},
    {.node = "Pow n a b -> y", .inputs = {"a float[2,3] positive"}, .constants = {"b float[] 3"}},
    {.node = "Sqrt n x -> y", .inputs = {"x float[5] positive"}},
    {.node = "Erf n x -> y", .inputs = {"x float[2,3]"}},
    {.node = "Sigmoid n x -> y", .inputs = {"x float[7]"}},
    {.node = "HardSwish n x -> y", .inputs = {"x float[7]"}},
    {.node = "Elu n x -> y | alpha=0.3", .inputs = {"x float[7]"}},
    {.node = "Gelu n x -> y", .inputs = {"x float[7]"}, .opset = 20},
    {.node = "PRelu n x s -> y", .inputs = {"x float[2,3]", "s float[3]"}},
    {.node = "Cast n x -> y | to=1", .inputs = {"x float[3]"}},
    {.node = "Cast n x -> y | to=10", .inputs = {"x float[3]"}},
    {.node = "CastLike n x t -> y", .inputs = {"x float[3]"}, .constants = {"t double[1] 0"}},
    {.node = "Where n c a b -> y",
     .inputs = {"a float[2,3]", "b float[3]"},
     .constants = {"c bool[2,3] 1 0 1 0 0 1"}},
    {.node = "Max n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}},
    {.node = "Min n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}},
    {.node = "Clip n x l h -> y",
     .inputs = {"x float[9]"},
     .constants = {"l float[] -0.4", "h float[] 0.5"}},
    {.node = "Dropout n x -> y", .inputs = {"x float[5]"}},
    {.node = "BatchNormalization n x s o m v -> y | epsilon=0.01",
     .inputs = {"x float[2,3,4]"},
     .constants = {"s float[3]", "o float[3]", "m float[3]", "v float[3] positive"}},
    {.node = "Conv n x w b -> y | pads=1,0,2,1",
     .inputs = {"x float[2,3,6,5]"},
     .constants = {"w float[4,3,3,2]", "b float[4]"}},
    {.node = "Conv n x w -> y | pads=2,2,1,2 strides=2,3 dilations=2,1 group=2",
     .inputs = {"x float[1,4,8,7]"},
     .constants = {"w float[6,2,3,3]"}},
    {.node = "Conv n x w -> y | auto_pad=SAME_UPPER strides=2",
     .inputs = {"x float[1,2,7]"},
     .constants = {"w float[3,2,4]"}},
    {.node = "ConvTranspose n x w b -> y | pads=1,0,1,1 strides=2,1",
     .inputs = {"x float[2,3,4,3]"},
     .constants = {"w float[3,2,3,3]", "b float[2]"}},
    {.node = "ConvTranspose n x w -> y | strides=2 output_padding=1 group=2",
     .inputs = {"x float[1,4,3]"},
     .constants = {"w float[4,2,3]"}},
    {.node = "MatMul n a b -> y", .inputs = {"a float[3,4]", "b float[4,2]"}},
    {.node = "MatMul n a b -> y", .inputs = {"a float[2,3,4]"}, .constants = {"b float[4,2]"}},
    {.node = "MatMul n a b -> y", .inputs = {"a float[2,1,3,4]", "b float[5,4,2]"}},
    {.node = "Gemm n a b c -> y | alpha=0.5 beta=2",
     .inputs = {"a float[3,4]", "b float[4,2]", "c float[2]"}},
    {.node = "Gemm n a b c -> y | transA=1 transB=1",
     .inputs = {"a float[4,3]", "b float[2,4]", "c float[3,1]"}},
    {.node = "CumSum n x a -> y | exclusive=1",
     .inputs = {"x float[2,4]"},
     .constants = {"a int64[] 1"}},
    {.node = "CumSum n x a -> y | reverse=1",
     .inputs = {"x float[3,2]"},
     .constants = {"a int64[] 0"}},
    {.node = "LSTM n x w r b -> y yh yc | hidden_size=3 direction=bidirectional",
     .inputs = {"x float[4,2,3]"},
     .constants = {"w float[2,12,3]", "r float[2,12,3]", "b float[2,24]"},
     .outputs = "y yh yc"},
    {.node = "LSTM n x w r _ _ h c -> y | hidden_size=2 direction=reverse",
     .inputs = {"x float[3,2,2]"},
     .constants = {"w float[1,8,2]", "r float[1,8,2]", "h float[1,2,2]", "c float[1,2,2]"}},
    {.node = "Softmax n x -> y | axis=1", .inputs = {"x float[2,3,4]"}},
    {.node = "Softmax n x -> y | axis=1", .inputs = {"x float[2,3,2]"}, .opset = 11},
    {.node = "LogSoftmax n x -> y", .inputs = {"x float[2,4]"}},
    {.node = "LayerNormalization n x s o -> y | axis=-2 epsilon=0.01",
     .inputs = {"x float[2,3,4]"},
     .constants = {"s float[3,4]", "o float[3,4]"}},
    {.node = "RMSNormalization n x s -> y",
     .inputs = {"x float[2,5]"},
     .constants = {"s float[5]"},
     .opset = 23},
    {.node = "InstanceNormalization n x s o -> y",
     .inputs = {"x float[2,3,4]"},
     .constants = {"s float[3]", "o float[3]"}},
    {.node = "GroupNormalization n x s o -> y | num_groups=2",
     .inputs = {"x float[2,4,3]"},
     .constants = {"s float[4]", "o float[4]"},
     .opset = 21},
    {.node = "ReduceSum n x a -> y | keepdims=0",
     .inputs = {"x float[2,3,4]"},
     .constants = {"a int64[2] 0 -1"}},
    {.node = "ReduceMean n x -> y | axes=1", .inputs = {"x float[2,3,4]"}},
    {.node = "ReduceMax n x -> y | axes=1", .inputs = {"x float[2,3,4]"}},
    {.node = "ReduceMin n x -> y", .inputs = {"x float[2,3]"}},
    {.node = "ReduceL1 n x -> y | axes=0", .inputs = {"x float[2,3]"}},
    {.node = "ReduceL2 n x -> y | axes=1", .inputs = {"x float[2,3]"}},
    {.node = "ReduceSumSquare n x -> y | axes=1", .inputs = {"x float[2,3]"}},
    {.node = "ReduceLogSum n x -> y | axes=1", .inputs = {"x float[2,3] positive"}},
    {.node = "ReduceLogSumExp n x -> y | axes=1", .inputs = {"x float[2,3]"}},
    {.node = "GlobalAveragePool n x -> y", .inputs = {"x float[2,3,2,2]"}},
    {.node = "GlobalMaxPool n x -> y", .inputs = {"x float[2,3,2,2]"}},
    {.node = "AveragePool n x -> y | kernel_shape=2,3 pads=1,1,0,1 strides=1,2",
     .inputs = {"x float[2,2,4,5]"}},
    {.node = "AveragePool n x -> y | kernel_shape=2,2 pads=1,1,1,1 count_include_pad=1",
     .inputs = {"x float[1,2,3,3]"}},
    {.node = "MaxPool n x -> y | kernel_shape=3,2 pads=1,0,1,1 strides=2,1",
     .inputs = {"x float[2,2,5,4]"}},
    {.node = "MaxPool n x -> y | kernel_shape=2 ceil_mode=1 strides=2",
     .inputs = {"x float[1,2,5]"}},
    {.node = "Resize n x _ s -> y | mode=linear",
     .inputs = {"x float[1,2,3,4]"},
     .constants = {"s float[4] 1 1 2 1.5"}},
    {.node = "Resize n x _ _ z -> y | mode=cubic coordinate_transformation_mode=align_corners",
     .inputs = {"x float[1,2,3,4]"},
     .constants = {"z int64[4] 1 2 5 7"}},
    {.node = "Resize n x _ s -> y | mode=nearest",
     .inputs = {"x float[2,3,4]"},
     .constants = {"s float[3] 2 1 0.5"}},
    {.node = "Upsample n x s -> y | mode=linear",
     .inputs = {"x float[1,2,3]"},
     .constants = {"s float[3] 1 1 2"},
     .opset = 9},
    // What has no rule says so.
    {.node = "LayerNormalization n x s -> y",
     .inputs = {"x float[2,3]", "s float[3]"},
     .unknown = true},
    {.node = "Conv n x w -> y", .inputs = {"x float[1,2,5]", "w float[2,2,3]"}},
    {.node = "Conv n x w b -> y | pads=2,1,0,2 strides=2,1 dilations=1,2 group=2",
     .inputs = {"x float[2,4,5,6]", "w float[6,2,2,3]", "b float[6]"}},
    {.node = "Conv n x w -> y | group=3 auto_pad=SAME_LOWER",
     .inputs = {"x float[1,3,4,4]", "w float[3,1,3,3]"}},
    {.node = "Cast n x -> y | to=7", .inputs = {"x float[3]"}, .unknown = true},
    {.node = "Floor n x -> y", .inputs = {"x float[3]"}, .unknown = true},
    {.node = "TopK n x k -> y z | axis=1",
     .inputs = {"x float[2,5,3]"},
     .constants = {"k int64[1] 2"}},
    {.node = "TopK n x k -> y z | axis=0 largest=0",
     .inputs = {"x float[5]"},
     .constants = {"k int64[1] 3"}},
    {.node = "GRU n x w r b -> y yh | hidden_size=3 direction=bidirectional linear_before_reset=1",
     .inputs = {"x float[4,2,3]", "b float[2,18]"},
     .constants = {"w float[2,9,3]", "r float[2,9,3]"},
     .outputs = "y yh"},
    {.node = "RNN n x w r -> y | hidden_size=2",
     .inputs = {"x float[3,1,2]", "w float[1,2,2]"},
     .constants = {"r float[1,2,2]"}},
    {.node = "Einsum n a b -> y | equation=bij,bjk->bik",
     .inputs = {"a float[2,2,3]", "b float[2,3,2]"}},
    {.node = "LRN n x -> y | size=3", .inputs = {"x float[1,5,2,2]"}},
    {.node = "MeanVarianceNormalization n x -> y", .inputs = {"x float[2,2,2,2]"}},
    {.node = "LpNormalization n x -> y | axis=1 p=2", .inputs = {"x float[2,4]"}},
    {.node = "ReduceProd n x -> y | axes=1", .inputs = {"x float[2,3]"}},
    {.node = "LpPool n x -> y | kernel_shape=2", .inputs = {"x float[1,2,5]"}},
    {.node = "GlobalLpPool n x -> y", .inputs = {"x float[1,2,5]"}},
    {.node = "GridSample n x g -> y", .inputs = {"x float[1,2,3,3]", "g float[1,2,2,2]"}},
    {.node = "AffineGrid n t s -> y",
     .inputs = {"t float[1,2,3]"},
     .constants = {"s int64[4] 1 1 2 3"},
     .opset = 20},
    {.node = "RoiAlign n x r b -> y | output_height=2 output_width=2",
     .inputs = {"x float[1,2,6,6]"},
     .constants = {"r float[1,4] 1 1 4 5", "b int64[1] 0"}},
    {.node = "MaxUnpool n x i -> y | kernel_shape=2,2 strides=2,2",
     .inputs = {"x float[1,1,2,2]"},
     .constants = {"i int64[1,1,2,2] 0 3 9 14"}},
    {.node = "Col2Im n x s b -> y",
     .inputs = {"x float[1,4,6]"},
     .constants = {"s int64[2] 3 4", "b int64[2] 2 2"},
     .opset = 18},
    {.node = "ScatterElements n x i u -> y | axis=1",
     .inputs = {"x float[2,3]", "u float[2,1]"},
     .constants = {"i int64[2,1] 2 0"}},
    {.node = "ScatterND n x i u -> y",
     .inputs = {"x float[4,2]", "u float[2,2]"},
     .constants = {"i int64[2,1] 3 1"}},
    {.node = "Det n x -> y", .inputs = {"x float[2,3,3]"}},
    {.node = "DFT n x -> y | axis=1", .inputs = {"x float[1,4,1]"}},
    {.node = "STFT n x s w -> y",
     .inputs = {"x float[1,8,1]", "w float[4]"},
     .constants = {"s int64[] 2"}},
    {.node = "Attention n q k v -> y | q_num_heads=2 kv_num_heads=2",
     .inputs = {"q float[1,2,4]", "k float[1,3,4]", "v float[1,3,4]"},
     .opset = 23},
    {.node = "RotaryEmbedding n x c s -> y",
     .inputs = {"x float[1,2,2,4]", "c float[1,2,2]", "s float[1,2,2]"},
     .opset = 23},
    {.node = "MatMul n a b -> y", .inputs = {"a float[4]", "b float[4,2]"}, .unknown = true},
    {.node = "LSTM n x w r -> y | hidden_size=2 input_forget=1",
     .inputs = {"x float[3,1,2]"},
     .constants = {"w float[1,8,2]", "r float[1,8,2]"}},
    {.node = "LSTM n x w r b _ _ _ p -> y | hidden_size=2",
     .inputs = {"x float[3,1,2]", "p float[1,6]"},
     .constants = {"w float[1,8,2]", "r float[1,8,2]", "b float[1,16]"}},
    {.node = "NonZero n x -> y", .inputs = {"x float[3]"}, .unknown = true},
};

typedef struct vjp_case {
  assay_evaluator_t* evaluator;
  const assay_node_t* node;
  assay_tensor_t *in[8], *out[4];
  double *out_g[4], *in_g[8];
} vjp_case_t;

static double* random_blocks(int64_t n, uint64_t* state) {
  double* x = calloc((size_t)n + 1, sizeof *x);
  assert_non_null(x);
  for (int64_t i = 0; i < n; i++) x[i] = graph_case_random(state);
  return x;
}

static void case_init(const assay_model_t* m, assay_tensor_t* const* inputs, vjp_case_t* c) {
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH, .keep_all = true};
  uint64_t state = 11;
  c->node = m->graph->nodes[0];
  op_case_ok(assay_evaluator_create_run(m, &config, inputs, &c->evaluator));
  for (size_t i = 0; i < c->node->n_inputs; i++) {
    const assay_value_t* v = c->node->inputs[i];
    if (!v) continue;
    op_case_ok(assay_tensor_widen(assay_evaluator_get(c->evaluator, v), &c->in[i]));
    if (v->is_input) c->in_g[i] = calloc((size_t)c->in[i]->size * PROBES + 1, sizeof(double));
  }
  for (size_t i = 0; i < c->node->n_outputs; i++) {
    const assay_value_t* v = c->node->outputs[i];
    if (!v) continue;
    op_case_ok(assay_tensor_widen(assay_evaluator_get(c->evaluator, v), &c->out[i]));
    if (c->out[i]->store == ASSAY_STORE_F64)
      c->out_g[i] = random_blocks(c->out[i]->size * PROBES, &state);
  }
}

static void case_deinit(vjp_case_t* c) {
  for (int i = 0; i < 8; i++) assay_tensor_release(c->in[i]), free(c->in_g[i]);
  for (int i = 0; i < 4; i++) assay_tensor_release(c->out[i]), free(c->out_g[i]);
  assay_evaluator_destroy(c->evaluator);
}

// The weighted sum of the outputs with one element moved.
static double weighted(const vjp_case_t* c, const assay_value_t* moved, int64_t e, double step,
                       int probe) {
  assay_tensor_t *in[8] = {NULL}, *out[4] = {NULL};
  double sum = 0;
  for (size_t i = 0; i < c->node->n_inputs; i++) {
    if (!c->in[i]) continue;
    op_case_ok(assay_tensor_copy(c->in[i], &in[i]));
    if (c->node->inputs[i] == moved) assay_f64(in[i])[e] += step;
  }
  op_case_ok(
      assay_evaluator_node(c->evaluator, c->node, c->node->n_inputs, in, c->node->n_outputs, out));
  for (size_t o = 0; o < c->node->n_outputs; o++)
    for (int64_t i = 0; c->out_g[o] && i < out[o]->size; i++)
      sum += c->out_g[o][probe * out[o]->size + i] * assay_f64(out[o])[i];
  for (int i = 0; i < 8; i++) assay_tensor_release(in[i]);
  for (int i = 0; i < 4; i++) assay_tensor_release(out[i]);
  return sum;
}

// What all places of a value add up to: it may be read twice.
static double product(const vjp_case_t* c, const assay_value_t* v, int64_t e, int probe) {
  double sum = 0;
  for (size_t i = 0; i < c->node->n_inputs; i++)
    if (c->node->inputs[i] == v) sum += c->in_g[i][probe * c->in[i]->size + e];
  return sum;
}

static void check_input(const vjp_row_t* row, const vjp_case_t* c, size_t input) {
  const double step = 1e-4;
  const assay_value_t* v = c->node->inputs[input];
  for (int64_t e = 0; e < c->in[input]->size; e++)
    for (int p = 0; p < PROBES; p++) {
      const double up = weighted(c, v, e, step, p), down = weighted(c, v, e, -step, p);
      const double want = (up - down) / (2 * step), got = product(c, v, e, p);
      if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
        fail_msg("%s: element %lld of input %zu, probe %d: %.9g, central difference %.9g",
                 row->node, (long long)e, input, p, got, want);
    }
}

static void check_row(const vjp_row_t* row) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  graph_case_t g = {"vjp",  row->opset,  {NULL},
                    {NULL}, {row->node}, row->outputs ? row->outputs : "y"};
  for (int i = 0; i < 4; i++) g.inputs[i] = row->inputs[i];
  for (int i = 0; i < 8; i++) g.constants[i] = row->constants[i];
  assay_model_t* m = graph_case_model(&g, in);
  vjp_case_t c = {0};
  case_init(m, in, &c);
  bool known = false;
  const assay_vjp_t vjp = {.evaluator = c.evaluator,
                           .node = c.node,
                           .n_in = c.node->n_inputs,
                           .n_out = c.node->n_outputs,
                           .in = c.in,
                           .out = c.out,
                           .probes = PROBES,
                           .out_g = (const double* const*)c.out_g,
                           .in_g = c.in_g};
  op_case_ok(assay_vjp_run(&vjp, &known));
  if (known == row->unknown)
    fail_msg("%s: a rule is %s", row->node, known ? "known, which should not be" : "missing");
  for (size_t i = 0; known && i < c.node->n_inputs; i++)
    if (c.in_g[i]) check_input(row, &c, i);
  case_deinit(&c);
  assay_model_release(m);
  graph_case_release(in);
}

static void rules_agree_with_central_differences(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) check_row(&rows[i]);
}

static void every_rule_is_tested(void** state) {
  (void)state;
#define ASSAY_VJP(op, function) op,
  static const char* const ops[] = {
#include "eval/gradients/vjp.inc"
  };
#undef ASSAY_VJP
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    bool tested = false;
    const size_t n = strlen(ops[i]);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
      tested |= !rows[k].unknown && !strncmp(rows[k].node, ops[i], n) && rows[k].node[n] == ' ';
    if (!tested) fail_msg("the rule of %s has no row in this test", ops[i]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rules_agree_with_central_differences),
      cmocka_unit_test(every_rule_is_tested),
  };
  return cmocka_run_group_tests_name("vjp", tests, NULL, NULL);
}
