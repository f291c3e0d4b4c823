// Every pass keeps truth: alone and with all others, on small models and on those in models/. What
// each pass must find is in the rows.
#include <glob.h>

#include "account/account.h"
#include "data/samples.h"
#include "io/npz.h"
#include "onnx/load.h"
#include "passes/truth_case.h"

typedef struct expectation {
  const char* pass;
  size_t n;  // entries of the log
} expectation_t;

typedef struct pass_case {
  graph_case_t graph;
  expectation_t alone[3];  // by that pass alone
  size_t layers;           // of the fused plan
} pass_case_t;

static const pass_case_t cases[] = {
    {{"folding a chain, but no output and no random number",
      17,
      {"x float[2,3]"},
      {"a float[2,3]", "b float[3]", "ratio float[] 0.5", "yes bool[] 1"},
      {"Mul mul a b -> p", "Add add p a -> q", "Add out x q -> y", "Neg neg a -> z",
       "Dropout drop a ratio yes -> d", "Add out2 x d -> w"},
      "y z w"},
     {{"constant_folding", 2}, {"dead_code", 0}},
     4},
    {{"integers: a computed shape",
      17,
      {"x float[2,3,4]"},
      {"two int64[1] 2", "three int64[1] 3"},
      {"Mul mul two three -> six", "Constant minus -> m | value_ints=-1",
       "Concat cat six m -> s | axis=0", "Reshape r x s -> y"},
      "y"},
     {{"constant_folding", 3}, {"shape_arithmetic", 3}},
     1},
    {{"shapes through float arithmetic, one after the other: rounds",
      17,
      {"x float[16,3,4]"},
      {"rest int64[1] -1", "zero int64[1] 0", "one int64[1] 1"},
      {"Shape sx x -> s", "Slice hx s zero one -> h", "Cast fx h -> hf | to=1", "Sqrt rtx hf -> hr",
       "Cast ix hr -> hi | to=7", "Concat cx hi rest -> t | axis=0", "Reshape rx x t -> u",
       "Shape sy u -> v", "Slice hy v zero one -> k", "Cast fy k -> kf | to=1", "Sqrt rty kf -> kd",
       "Cast iy kd -> ki | to=7", "Concat cy ki rest -> w | axis=0", "Reshape ry u w -> y"},
      "y"},
     {{"shape_arithmetic", 8}},
     1},
    {{"a Constant node and a cast that truth does not round",
      17,
      {"x float[2,2]"},
      {"a float[2,2]"},
      {"Constant c -> k | value_float=0.1", "Cast h a -> a16 | to=10", "Cast f a16 -> a32 | to=1",
       "Mul m x k -> p", "Add n p a32 -> y"},
      "y"},
     {{"constant_folding", 1}},
     2},  // the Cast that rounds, and the sum: the Cast back reads float32 by then
    {{"quantization is kept",
      17,
      {"x float[2,3]"},
      {"w int8[3,2] iota", "s float[] 0.5", "z int8[] 1"},
      {"DequantizeLinear dq w s z -> wf", "MatMul mm x wf -> y"},
      "y"},
     {{"constant_folding", 0}, {"epilogue_fusion", 1}},
     1},
    {{"weights that are dequantized and transposed for a product, and what is behind it",
      21,
      {"x float[2,40]"},
      {"w uint4[6,40]", "s float[6,2]", "b float[6]"},
      {"DequantizeLinear dq w s -> wf | axis=1 block_size=20", "Transpose t wf -> wt",
       "Exp e x -> u", "MatMul mm u wt -> h", "Add a h b -> k", "Relu r k -> y"},
      "y"},
     {{"constant_folding", 0}, {"epilogue_fusion", 1}},
     2},
    {{"MatMulNBits and what is behind it",
      17,
      {"x float[2,32]"},
      {"w uint8[6,1,16]", "s float[6]", "b float[6]"},
      {"com.microsoft.MatMulNBits mm x w s -> h | K=32 N=6 block_size=32 bits=4", "Add a h b -> k",
       "Relu r k -> y"},
      "y"},
     {{"epilogue_fusion", 1}},
     1},
    {{"not: dequantized weights that two read, that go out, that stand on the left",
      17,
      {"x float[3,3]", "z float[2,3]"},
      {"w int8[3,2]", "s float[] 0.5", "v int8[3,4]", "u int8[2,3]"},
      {"DequantizeLinear d1 w s -> wf", "MatMul m1 x wf -> a", "MatMul m2 z wf -> b",
       "DequantizeLinear d2 v s -> vf", "MatMul m3 x vf -> c", "DequantizeLinear d3 u s -> uf",
       "MatMul m4 uf x -> d"},
      "a b c d vf"},
     {{"epilogue_fusion", 0}},
     7},
    {{"not: a scale for each row of a product's weights",
      17,
      {"x float[2,3]"},
      {"w int8[3,4]", "s float[3] positive"},
      {"DequantizeLinear dq w s -> wf | axis=0", "MatMul mm x wf -> y"},
      "y"},
     {{"epilogue_fusion", 0}},
     2},
    {{"dead nodes and initializers",
      17,
      {"x float[4]"},
      {"a float[4]", "b float[4]"},
      {"Add add x a -> y", "Mul dead x b -> p", "Relu dead2 p -> q", "Neg dead3 a -> r"},
      "y"},
     {{"dead_code", 3}},
     1},
    {{"shapes",
      17,
      {"x float[2,3,4]"},
      {"zero int64[] 0", "axes int64[1] 0", "rest int64[1] -1"},
      {"Shape s x -> d", "Gather g d zero -> n | axis=0", "Unsqueeze u n axes -> n1",
       "Concat c n1 rest -> t | axis=0", "Reshape r x t -> y", "Shape s2 y -> out"},
      "y out"},
     {{"shape_arithmetic", 4}, {"constant_folding", 0}},
     2},
    {{"BatchNormalization behind Conv, with and without bias",
      15,
      {"x float[1,3,6,6]"},
      {"w float[4,3,3,3]", "b float[4]", "s float[4]", "o float[4]", "m float[4]",
       "v float[4] positive", "w2 float[4,2,3,3]"},
      {"Conv conv x w b -> c | pads=1,1,1,1",
       "BatchNormalization bn c s o m v -> d | epsilon=0.001", "Relu act d -> e",
       "Conv conv2 e w2 -> f | group=2", "BatchNormalization bn2 f s o m v -> y"},
      "y"},
     {{"batchnorm_into_conv", 2}, {"epilogue_fusion", 0}},
     2},
    {{"BatchNormalization behind ConvTranspose with groups",
      9,
      {"x float[2,4,5,5]"},
      {"w float[4,3,3,3]", "s float[6]", "o float[6]", "m float[6]", "v float[6] positive"},
      {"ConvTranspose up x w -> c | group=2 strides=2,2", "BatchNormalization bn c s o m v -> y"},
      "y"},
     {{"batchnorm_into_conv", 1}},
     1},
    {{"BatchNormalization that cannot go away",
      15,
      {"x float[1,3,6,6]", "s float[4]"},
      {"w float[4,3,3,3]", "o float[4]", "m float[4]", "v float[4] positive"},
      {"Conv a x w -> c", "BatchNormalization bn1 c s o m v -> y", "Conv b x w -> d",
       "BatchNormalization bn2 d o o m v -> e", "Add add d e -> z"},
      "y z"},
     {{"batchnorm_into_conv", 0}, {"common_subexpressions", 1}, {"pointwise_fusion", 1}},
     3},
    {{"bias and activations of one and of several nodes",
      18,
      {"x float[1,3,6,6]"},
      {"w float[3,3,1,1]", "bias float[3,1,1]", "six float[] 6", "zero float[] 0",
       "half float[] 0.5", "one float[] 1", "root float[] 1.4142135"},
      {"Conv c1 x w -> a", "Add bias1 a bias -> b", "Clip relu6 b zero six -> c",
       "Conv c2 c w -> d", "Sigmoid sig d -> e", "Mul silu d e -> f", "Conv c3 f w -> g",
       "Softplus sp g -> h", "Tanh th h -> i", "Mul mish g i -> j", "Conv c4 j w -> k",
       "Div d1 k root -> l", "Erf erf l -> n", "Add p1 n one -> p", "Mul m1 k p -> q",
       "Mul gelu q half -> y"},
      "y"},
     {{"epilogue_fusion", 4}, {"pointwise_fusion", 4}},
     4},
    {{"a residual sum, of what is computed behind the convolution",
      17,
      {"x float[1,3,6,6]"},
      {"w float[3,3,1,1]", "v float[3,3,3,3]"},
      {"Conv a x w -> a", "Conv b x v -> b | pads=1,1,1,1", "Add sum a b -> c", "Relu r c -> y"},
      "y"},
     {{"epilogue_fusion", 1}},
     2},
    {{"not of what the convolution reads, and not of what reads the sum's other term",
      17,
      {"x float[1,3,6,6]"},
      {"w float[3,3,1,1]"},
      {"Conv a x w -> a", "Add sum a x -> b", "Conv c b w -> c", "Softmax s c -> s | axis=1",
       "Add sum2 c s -> y"},
      "y"},
     {{"epilogue_fusion", 0}},
     5},
    {{"a gate of another shape",
      17,
      {"x float[1,3,6,6]", "g float[1,3,1,1]"},
      {"w float[3,3,1,1]"},
      {"Conv a x w -> a", "Sigmoid s g -> s", "Mul m a s -> y"},
      "y"},
     {{"epilogue_fusion", 1}},
     2},
    {{"what another reads is not hidden",
      17,
      {"x float[2,4]"},
      {"w float[4,4]", "b float[4]"},
      {"MatMul mm x w -> a", "Add bias a b -> c", "Relu act c -> d", "Softmax soft c -> e",
       "Add sum d e -> y"},
      "y a"},
     {{"epilogue_fusion", 0}, {"pointwise_fusion", 1}},
     4},
    {{"pointwise nodes with a broadcast and an outside node between",
      17,
      {"x float[3,4]", "z float[4]"},
      {"k float[] 2"},
      {"Mul a x z -> p", "Exp b x -> q", "Add c p q -> r", "ReduceSum red x -> s | keepdims=1",
       "Sub d r s -> t", "Neg e z -> u", "Mul f t u -> y"},
      "y"},
     {{"pointwise_fusion", 1}},
     3},
    {{"discrete nodes are layers of their own",
      17,
      {"x float[3,4]"},
      {"k float[] 2"},
      {"Mul a x k -> p", "Floor b p -> q", "Mul c q k -> y"},
      "y"},
     {{"pointwise_fusion", 0}},
     3},
    {{"parts of one tensor, joined again",
      17,
      {"x float[3,8]", "z float[3,2]"},
      {"l int64[2] 3 5"},
      {"Split s x l -> a b | axis=1", "Concat o b a -> c | axis=1", "Softmax n c -> y",
       "Split t x l -> d e | axis=1", "Concat p e d z -> w | axis=1"},
      "y w"},
     {{"joined_parts", 1}},
     4},
    {{"a shape that is computed is written down",
      17,
      {"x float[2,3,8]"},
      {"one int64[1] 1"},
      {"Shape a x -> a", "Concat c a one -> c | axis=0", "Reshape r x c -> r", "Softmax f r -> y"},
      "y"},
     {{"view_chains", 1}},
     2},
    {{"normalized rows go where they are moved",
      17,
      {"x float[4,6,16]"},
      {"s float[16]", "l int64[2] 1 3", "c int64[4] 2 2 6 16", "w float[16,2]"},
      {"LayerNormalization n x s -> n", "Split p n l -> p q | axis=0", "Concat o q p -> o | axis=0",
       "Reshape r o c -> r", "Transpose t r -> t | perm=2,0,1,3", "MatMul m t w -> y"},
      "y"},
     {{"moved_rows", 1}, {"joined_parts", 1}},
     2},
    {{"a sum reads rows where they were",
      17,
      {"x float[4,6,16]", "z float[24,16]"},
      {"l int64[2] 4 2", "c int64[2] 24 16"},
      {"Softmax f x -> f", "Split p f l -> p q | axis=1", "Concat o q p -> o | axis=1",
       "Transpose t o -> t | perm=1,0,2", "Reshape r t c -> r", "Add a r z -> y"},
      "y"},
     {{"pointwise_fusion", 1}},
     2},
    {{"parts that one layer reads alone are its own",
      17,
      {"x float[3,8]"},
      {"l int64[2] 4 4"},
      {"Split s x l -> a b | axis=1", "Sigmoid g b -> c", "Mul m a c -> y"},
      "y"},
     {{"gates", 0}, {"pointwise_fusion", 1}},
     1},
    {{"parts that others read, or that are cut backwards, are not",
      17,
      {"x float[3,8]"},
      {"l int64[2] 4 4", "i int64[1] -1", "n int64[1] -9", "d int64[1] 1"},
      {"Split s x l -> a b | axis=1", "Sigmoid g b -> c", "Mul m a c -> y", "Softmax o a -> z",
       "Slice r x i n d i -> f", "Exp e f -> w", "Neg h w -> v"},
      "y z v"},
     {{"pointwise_fusion", 2}},
     5},
    {{"nor are parts of what the layer computes with",
      17,
      {"x float[1,8]"},
      {"i int64[1] 1", "n int64[1] 2", "d int64[1] 1"},
      {"Slice r x i n d -> f", "Mul m x f -> y"},
      "y"},
     {{"pointwise_fusion", 0}},
     2},
    {{"sums of integers are floats where they are scaled",
      17,
      {"x uint8[3,8]", "z uint8[]", "s float[]"},
      {"w int8[8,4]", "b float[4]"},
      {"MatMulInteger m x w z -> i", "Cast c i -> f | to=1", "Mul k f s -> g", "Add n g b -> y"},
      "y"},
     {{"pointwise_fusion", 1}},
     2},
    {{"but not where others read them, where they are of other types, or alone",
      17,
      {"x uint8[3,8]", "l int64[3,4]", "s float[]"},
      {"w int8[8,4]", "o int8[8,5]"},
      {"MatMulInteger m x w -> i", "Cast c i -> f | to=1", "Mul k f s -> y", "Cast d l -> e | to=1",
       "Mul j e s -> v", "MatMulInteger n x o -> h", "Cast g h -> u | to=1"},
      "y f v u"},
     {{"pointwise_fusion", 0}},
     7},
};
enum { N_CASES = sizeof cases / sizeof *cases };

// ---- truth before and after --------------------------------------------------------------------

static void check_model(const char* name, assay_model_t* m, assay_tensor_t* const* in) {
  assay_evaluator_t* before = truth_of(m, in);
  for (size_t p = 0; p < assay_pass_count(); p++)
    keeps_truth(name, m, before, in, assay_pass_at(p));
  keeps_truth(name, m, before, in, NULL);
  op_case_ok(assay_model_verify(m));
  assay_evaluator_destroy(before);
}

static void small_models(void** state) {
  (void)state;
  for (size_t i = 0; i < N_CASES; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[i].graph, in);
    check_model(cases[i].graph.name, m, in);
    assay_model_release(m);
    graph_case_release(in);
  }
}

static void stored_models(void** state) {
  (void)state;
  glob_t found;
  assert_int_equal(glob("models/*/model.onnx", 0, NULL, &found), 0);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    char path[512];
    assay_model_t* m = NULL;
    assay_set_t set = {0};
    assay_samples_t samples = {0};
    op_case_ok(assay_onnx_load(found.gl_pathv[i], 0, NULL, &m));
    snprintf(path, sizeof path, "%.*s/inputs.npz",
             (int)(strrchr(found.gl_pathv[i], '/') - found.gl_pathv[i]), found.gl_pathv[i]);
    op_case_ok(assay_npz_read(path, &set));
    op_case_ok(assay_samples_from_set(&set, m->graph->inputs, m->graph->n_inputs, true, &samples));
    check_model(found.gl_pathv[i], m, assay_samples_get(&samples, 0));
    assay_samples_deinit(&samples);
    assay_set_deinit(&set);
    assay_model_release(m);
  }
  globfree(&found);
}

// ---- what passes find --------------------------------------------------------------------------

static void passes_find(void** state) {
  (void)state;
  for (size_t i = 0; i < N_CASES; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[i].graph, in);
    for (const expectation_t* e = cases[i].alone; e < cases[i].alone + 3 && e->pass; e++) {
      assay_rewrite_t* r = NULL;
      op_case_ok(assay_passes_run(m, &(assay_pass_options_t){.only = e->pass}, &r));
      for (size_t k = 0; log_entries(r, e->pass) != e->n && k < r->n_log; k++)
        print_error("  %s %s: %s\n", r->log[k].pass, r->log[k].nodes[0]->label, r->log[k].why);
      if (log_entries(r, e->pass) != e->n)
        fail_msg("%s: %s did %zu things, expected %zu", cases[i].graph.name, e->pass,
                 log_entries(r, e->pass), e->n);
      assay_rewrite_destroy(r);
    }
    assay_plan_t* plan = NULL;
    op_case_ok(assay_plan_create(m, &(assay_precision_t){.format = ASSAY_FORMAT_FP32},
                                 &(assay_plan_options_t){.fused = true}, 0, &plan));
    size_t layers = assay_plan_layers(plan)->n_layers;
    if (layers != cases[i].layers)
      fail_msg("%s: %zu layers, expected %zu", cases[i].graph.name, layers, cases[i].layers);
    assay_plan_destroy(plan);
    assay_model_release(m);
    graph_case_release(in);
  }
}

static void unknown_passes_are_errors(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&cases[0].graph, in);
  assay_rewrite_t* r = NULL;
  const char* off[] = {"dead_code", "dead_coda"};
  assay_status_t st = assay_passes_run(m, &(assay_pass_options_t){.off = off, .n_off = 2}, &r);
  assert_int_equal(assay_status_code(st), ASSAY_NOT_FOUND);
  assert_non_null(strstr(assay_status_message(st), "dead_coda"));
  assay_status_free(st);
  assay_model_release(m);
  graph_case_release(in);
}

// Allocation N fails, for all N: nothing is lost, and the model stays as it was.
static void failing_allocations(void** state) {
  (void)state;
  for (size_t i = 0; i < N_CASES; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&cases[i].graph, in);
    const assay_precision_t p = {.format = ASSAY_FORMAT_FP16};
    int64_t live = assay_alloc_live();
    bool reached = false;
    uint64_t n = 0;
    do {
      assay_plan_t* plan = NULL;
      assay_alloc_fail_after(++n, false);
      assay_status_t st =
          assay_plan_create(m, &p, &(assay_plan_options_t){.fused = true}, 0, &plan);
      reached = assay_alloc_fail_after(0, false) >= n;
      if (!reached) op_case_ok(st), st = NULL;
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_plan_destroy(plan);
      assert_int_equal(assay_alloc_live(), live);
    } while (reached);
    assert_true(n > 20);
    op_case_ok(assay_model_verify(m));
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- bodies ------------------------------------------------------------------------------------

static assay_graph_t* add_body(assay_node_t* owner, size_t attr, const char* name, const char* row,
                               const char* output) {
  assay_graph_t* body = NULL;
  op_case_ok(assay_graph_create(owner->graph->model, owner->graph, &body));
  body->owner = owner;
  body->name = name;
  graph_case_node(body, row, 17);
  graph_case_outputs(body, output);
  owner->attrs[attr] =
      (assay_attr_t){.name = name, .doc = "", .ref = "", .type = ASSAY_ATTR_GRAPH, .n = 1};
  owner->attrs[attr].u.g = body;
  if (owner->n_attrs <= attr) owner->n_attrs = attr + 1;
  return body;
}

// Two Ifs read `p` within their bodies; only the first one's result is wanted.
static assay_model_t* model_with_bodies(assay_tensor_t** in) {
  static const graph_case_t row = {"bodies",         17,     {"x float[2,3]", "c bool[] 1"},
                                   {"k float[2,3]"}, {NULL}, "y"};
  assay_model_t* m = graph_case_begin(&row, in);
  assay_graph_t* g = m->graph;
  graph_case_node(g, "Mul mul x k -> p", 17);
  graph_case_node(g, "Exp exp p -> q", 17);
  assay_node_t* wanted = graph_case_node(g, "If if c -> r", 17);
  add_body(wanted, 0, "then_branch", "Neg neg p -> a", "a");
  add_body(wanted, 1, "else_branch", "Mul double k k -> b", "b");
  assay_node_t* dead = graph_case_node(g, "If dead c -> s", 17);
  add_body(dead, 0, "then_branch", "Abs abs q -> a2", "a2");
  add_body(dead, 1, "else_branch", "Sqrt sqrt p -> b2", "b2");
  graph_case_node(g, "Add add q r -> y", 17);
  graph_case_outputs(g, "y");
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  return m;
}

static void bodies_read_and_go(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = model_with_bodies(in);
  check_model("bodies", m, in);
  assay_rewrite_t* r = NULL;
  op_case_ok(assay_passes_run(m, NULL, &r));
  // `p` is read by a body, so that `mul` hides nothing; exp and add are one layer.
  assert_int_equal(r->n_groups, 1);
  assert_int_equal(r->group_of_node[r->model->graph->nodes[0]->id], -1);
  size_t nodes = 0;
  for (size_t i = 0; i < r->model->n_graphs; i++) nodes += r->model->graphs[i]->n_nodes;
  assert_int_equal(
      nodes, 6);  // `dead` and its bodies are gone; `double` makes an output of its body and stays
  assay_rewrite_destroy(r);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(small_models),       cmocka_unit_test(stored_models),
      cmocka_unit_test(passes_find),        cmocka_unit_test(unknown_passes_are_errors),
      cmocka_unit_test(bodies_read_and_go), cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests_name("passes", tests, NULL, NULL);
}
