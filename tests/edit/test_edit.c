// What edits make of small models, and what the proof says of it.
#include "edit/edit_case.h"
#include "fail_case.h"

#define X \
  { "x float[2,3,8]" }
#define IMAGE \
  { "x float[2,4,3,5]" }
#define BY_CHANNEL "s float[4] positive", "b float[4]"

#define SAME ASSAY_EDIT_UNCHANGED
#define ROUNDED ASSAY_EDIT_ROUNDED
#define CHANGED ASSAY_EDIT_CHANGED

static const edit_case_t cases[] = {
    // ---- extract
    {"extract",
     {"from=a", "to=c"},
     "Neg Abs",
     SAME,
     {"inner values",
      17,
      X,
      {NULL},
      {"Relu r x -> a", "Neg n a -> b", "Abs m b -> c", "Exp e c -> y"},
      "y"}},
    {"extract",
     {"to=b"},
     "Relu Neg",
     SAME,
     {"to a value", 17, X, {NULL}, {"Relu r x -> a", "Neg n a -> b", "Exp e b -> y"}, "y"}},
    {"extract",
     {"nodes=n", "nodes=m"},
     "Neg Add",
     SAME,
     {"around nodes",
      17,
      X,
      {"c float[8]"},
      {"Relu r x -> a", "Neg n a -> b", "Add m b c -> d", "Exp e d -> y"},
      "y"}},
    {"extract",
     {"from=a"},
     "Split Add",
     SAME,
     {"another input stays",
      17,
      {"x float[2,4]", "z float[2,2]"},
      {NULL},
      {"Relu r x -> a", "Split s a -> p q | axis=1", "Add m p z -> y"},
      "y"}},
    // ---- broadcasts
    {"broadcasts",
     {NULL},
     "Expand Add",
     SAME,
     {"a vector", 17, X, {"c float[8]"}, {"Add a x c -> y"}, "y"}},
    {"broadcasts",
     {NULL},
     "Expand Expand Mul",
     SAME,
     {"an outer product", 17, {"x float[2,1,8]", "z float[3,1]"}, {NULL}, {"Mul a x z -> y"}, "y"}},
    {"broadcasts",
     {NULL},
     "Expand MatMul",
     SAME,
     {"batches of matrices",
      17,
      {"x float[2,3,4,5]", "z float[3,5,6]"},
      {NULL},
      {"MatMul a x z -> y"},
      "y"}},
    {"broadcasts",
     {NULL},
     "Mul Clip",
     SAME,
     {"numbers and limits stay",
      17,
      X,
      {"two float[] 2", "lo float[] -1", "hi float[] 1"},
      {"Mul a x two -> b", "Clip c b lo hi -> y"},
      "y"}},
    {"broadcasts",
     {"numbers"},
     "Expand Mul",
     SAME,
     {"numbers, too", 17, X, {"two float[] 2"}, {"Mul a x two -> y"}, "y"}},
    {"broadcasts",
     {NULL},
     "Greater Expand Expand Expand Where",
     SAME,
     {"three operands",
      17,
      {"x float[2,1,8]", "z float[3,8]"},
      {"c float[1]"},
      {"Greater g x c -> m", "Where w m z x -> y"},
      "y"}},
    // ---- decompose
    {"decompose",
     {NULL},
     "Softplus Tanh Mul",
     SAME,
     {"Mish", 18, X, {NULL}, {"Mish m x -> y"}, "y"}},
    {"decompose",
     {"op=Mish", "op=Softplus"},
     "Relu Abs Neg Exp Add Log Add Tanh Mul",
     SAME,
     {"again", 18, X, {NULL}, {"Mish m x -> y"}, "y"}},
    {"decompose",
     {NULL},
     "Relu Min Exp Sub Mul Add",
     SAME,
     {"Elu", 17, X, {NULL}, {"Elu m x -> y | alpha=0.5"}, "y"}},
    {"decompose",
     {NULL},
     "Relu Min Exp Sub Add",
     SAME,
     {"Elu of 1", 17, X, {NULL}, {"Elu m x -> y"}, "y"}},
    {"decompose",
     {NULL},
     "Div Erf Add Mul Mul",
     ROUNDED,
     {"Gelu", 20, X, {NULL}, {"Gelu m x -> y"}, "y"}},
    {"decompose",
     {NULL},
     "Mul Mul Mul Add Mul Tanh Add Mul Mul",
     ROUNDED,
     {"Gelu by tanh", 20, X, {NULL}, {"Gelu m x -> y | approximate=tanh"}, "y"}},
    {"decompose",
     {NULL},
     "Add Max Min Mul Div",
     ROUNDED,
     {"HardSwish", 17, X, {NULL}, {"HardSwish m x -> y"}, "y"}},
    {"decompose",
     {NULL},
     "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add",
     SAME,
     {"LayerNormalization",
      17,
      X,
      {"s float[8] positive", "b float[8]"},
      {"LayerNormalization m x s b -> y | axis=-1"},
      "y"}},
    {"decompose",
     {NULL},
     "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul",
     SAME,
     {"without a bias, over two axes",
      18,
      X,
      {"s float[3,8] positive"},
      {"LayerNormalization m x s -> y | axis=1 epsilon=0.001"},
      "y"}},
    {"decompose",
     {NULL},
     "LayerNormalization Add",
     SAME,
     {"its mean is read",
      17,
      X,
      {"s float[8] positive", "b float[8]"},
      {"LayerNormalization m x s b -> z u | axis=-1", "Add a z u -> y"},
      "y"}},
    {"decompose",
     {NULL},
     "Mul ReduceMean Add Sqrt Div Mul",
     SAME,
     {"RMSNormalization", 23, X, {"s float[8] positive"}, {"RMSNormalization m x s -> y"}, "y"}},
    {"decompose",
     {NULL},
     "ReduceMean Sub Mul ReduceMean Add Sqrt Div Mul Add",
     SAME,
     {"InstanceNormalization",
      17,
      IMAGE,
      {BY_CHANNEL},
      {"InstanceNormalization m x s b -> y"},
      "y"}},
    {"decompose",
     {NULL},
     "Reshape ReduceMean Sub Mul ReduceMean Add Sqrt Div Reshape Mul Add",
     SAME,
     {"GroupNormalization",
      21,
      IMAGE,
      {BY_CHANNEL},
      {"GroupNormalization m x s b -> y | num_groups=2"},
      "y"}},
    {"decompose",
     {"op=BatchNormalization"},
     "Sub Add Sqrt Div Mul Add",
     SAME,
     {"BatchNormalization",
      17,
      IMAGE,
      {BY_CHANNEL, "u float[4]", "v float[4] positive"},
      {"BatchNormalization m x s b u v -> y"},
      "y"}},
    {"decompose",
     {"op=Gemm"},
     "Transpose MatMul Mul Mul Add",
     SAME,
     {"Gemm",
      17,
      {"x float[4,3]"},
      {"w float[4,5]", "c float[5]"},
      {"Gemm m x w c -> y | transA=1 alpha=0.5 beta=2"},
      "y"}},
    {"decompose",
     {"op=Gemm"},
     "Transpose MatMul",
     SAME,
     {"Gemm without an addend",
      17,
      {"x float[3,4]"},
      {"w float[5,4]"},
      {"Gemm m x w -> y | transB=1"},
      "y"}},
    {"decompose",
     {"op=Softmax"},
     "ReduceMax Sub Exp ReduceSum Div",
     SAME,
     {"Softmax", 17, X, {NULL}, {"Softmax m x -> y | axis=1"}, "y"}},
    {"decompose",
     {"op=LogSoftmax"},
     "ReduceMax Sub Exp ReduceSum Log Sub",
     SAME,
     {"LogSoftmax", 18, X, {NULL}, {"LogSoftmax m x -> y"}, "y"}},
    {"decompose",
     {"op=Clip"},
     "Max",
     SAME,
     {"Clip below", 17, X, {"lo float[] 0.5"}, {"Clip m x lo -> y"}, "y"}},
    {"decompose",
     {NULL},
     "Clip",
     SAME,
     {"Clip is left", 17, X, {"lo float[] 0.5"}, {"Clip m x lo -> y"}, "y"}},
    {"decompose",
     {NULL},
     "Mul Sigmoid Mul",
     SAME,
     {"QuickGelu", 17, X, {NULL}, {"com.microsoft.QuickGelu m x -> y | alpha=1.5"}, "y"}},
    {"decompose", {"not=m"}, "Elu", SAME, {"not that node", 17, X, {NULL}, {"Elu m x -> y"}, "y"}},
    // ---- assemble
    {"assemble",
     {NULL},
     "Gelu",
     ROUNDED,
     {"Gelu",
      20,
      X,
      {"r float[] 1.4142135623730951", "one float[] 1", "h float[] 0.5"},
      {"Div a x r -> a", "Erf b a -> b", "Add c b one -> c", "Mul d x c -> d", "Mul e d h -> y"},
      "y"}},
    {"assemble",
     {NULL},
     "Div Erf Add Mul Mul",
     SAME,
     {"no Gelu in this operator set",
      17,
      X,
      {"r float[] 1.4142135623730951", "one float[] 1", "h float[] 0.5"},
      {"Div a x r -> a", "Erf b a -> b", "Add c b one -> c", "Mul d x c -> d", "Mul e d h -> y"},
      "y"}},
    {"assemble",
     {"op=Gelu"},
     "Softplus Tanh Mul",
     SAME,
     {"not asked for",
      20,
      X,
      {NULL},
      {"Softplus a x -> a", "Tanh b a -> b", "Mul c x b -> y"},
      "y"}},
    // ---- sanitize
    {"sanitize",
     {NULL},
     "Relu Neg Mul",
     SAME,
     {"idle, dead and equal nodes",
      17,
      X,
      {"one float[] 1"},
      {"Identity i x -> a", "Mul m a one -> b", "Relu r b -> c", "Relu s b -> d", "Neg n c -> e",
       "Exp z x -> f", "Mul p d e -> y"},
      "y"}},
    {"sanitize",
     {NULL},
     "Add",
     ROUNDED,
     {"constants", 17, X, {"a float[8]", "b float[8]"}, {"Mul m a b -> c", "Add n x c -> y"}, "y"}},
    // ---- cast
    {"cast",
     {"format=fp16"},
     "Cast Relu Cast",
     ROUNDED,
     {"to fp16", 17, X, {NULL}, {"Relu a x -> y"}, "y"}},
    {"cast",
     {"format=bf16", "nodes=b"},
     "Neg Cast Exp Cast",
     ROUNDED,
     {"one node", 17, X, {NULL}, {"Neg a x -> a", "Exp b a -> y"}, "y"}},
    {"cast",
     {"format=fp32"},
     "Cast Relu",
     SAME,
     {"to fp32",
      17,
      {"x float16[4] 1 -2 3 -4"},
      {NULL},
      {"Cast a x -> a | to=10", "Relu b a -> y"},
      "y"}},
    // ---- quantize
    {"quantize",
     {NULL},
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear MatMul",
     CHANGED,
     {"a product", 17, {"x float[4,8]"}, {"w float[8,3]"}, {"MatMul a x w -> y"}, "y"}},
    {"quantize",
     {"format=fp8", "calibrator=entropy"},
     "QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Conv",
     CHANGED,
     {"fp8", 19, {"x float[1,2,5,5]"}, {"w float[3,2,3,3]"}, {"Conv a x w -> y"}, "y"}},
    // What is quantized and constant becomes codes; what is not constant, and the graph's output,
    // stay.
    {"sanitize",
     {"store_codes", "no_shapes"},
     "DequantizeLinear QuantizeLinear DequantizeLinear MatMul QuantizeLinear",
     SAME,
     {"codes",
      21,
      {"x float[4,8]"},
      {"w float[8,3]", "s float[1,3] 0.3 0.2 0.1", "z int4[1,3] 0 0 0", "sx float[] 0.02",
       "zx float8e4m3fn[] 0", "v float[5]"},
      {"QuantizeLinear q w s z -> wq | axis=0 block_size=8",
       "DequantizeLinear d wq s z -> wf | axis=0 block_size=8", "QuantizeLinear qx x sx zx -> xq",
       "DequantizeLinear dx xq sx zx -> xf", "MatMul m xf wf -> y",
       "QuantizeLinear qv v sx zx -> u"},
      "y u"}},
    // Weights of products alone: the convolution stays, and so do activations.
    {"quantize",
     {"format=int4"},
     "Conv QuantizeLinear DequantizeLinear MatMul QuantizeLinear DequantizeLinear Gemm",
     CHANGED,
     {"int4",
      21,
      {"x float[1,1,6,32]"},
      {"k float[1,1,1,1]", "w float[32,3]", "v float[5,40]", "z float[6,40]"},
      {"Conv c x k -> a", "MatMul m a w -> y", "Gemm g z v -> u | transB=1"},
      "y u"}},
    {"quantize",
     {"per_tensor"},
     "Relu QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Gemm QuantizeLinear "
     "DequantizeLinear "
     "MatMul",
     CHANGED,
     {"one activation, two readers",
      13,
      {"x float[4,8]"},
      {"w float[8,3]", "v float[8,8]"},
      {"Relu r x -> a", "Gemm g a w -> y", "MatMul m a v -> z"},
      "y z"}},
    // What is added to a product, wherever it stands, and once for all that read it.
    {"quantize",
     {"residuals"},
     "Relu QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Conv "
     "BatchNormalization Add Relu Add QuantizeLinear DequantizeLinear QuantizeLinear "
     "DequantizeLinear Conv QuantizeLinear DequantizeLinear QuantizeLinear DequantizeLinear Conv "
     "QuantizeLinear DequantizeLinear Add",
     CHANGED,
     {"residual sums",
      17,
      {"x float[2,4,5,5]"},
      {"w float[4,4,1,1]", "g float[4]", "m float[4]", "v float[4] positive"},
      {"Relu r x -> a", "Conv c1 a w -> b", "BatchNormalization n b g g m v -> h", "Add s a h -> d",
       "Relu t d -> e", "Add f e a -> i", "Conv c2 i w -> k", "Conv c3 d w -> l", "Add o k l -> y"},
      "y"}},
    // ---- rename, set
    {"rename",
     {"value=x=image", "value=y=out", "node=a=first"},
     "Relu Neg",
     SAME,
     {"names", 17, X, {NULL}, {"Relu a x -> b", "Neg n b -> y"}, "y"}},
    {"set",
     {"nodes=a", "attr=alpha=0.25"},
     "Elu",
     CHANGED,
     {"an attribute", 17, X, {NULL}, {"Elu a x -> y"}, "y"}},
    {"set",
     {"nodes=a", "attr=alpha="},
     "LeakyRelu",
     SAME,
     {"an attribute's default", 17, X, {NULL}, {"LeakyRelu a x -> y | alpha=0.01"}, "y"}},
    {"set",
     {"shape=x=Nx3x8"},
     "Relu",
     SAME,
     {"an open batch", 17, X, {NULL}, {"Relu a x -> y"}, "y"}},
    {"set",
     {"type=x=float16", "type=y=double"},
     "Cast Relu Cast",
     SAME,
     {"types of the ends", 17, X, {NULL}, {"Relu a x -> y"}, "y"}},
    {"set",
     {"opset=15"},
     "Relu",
     SAME,
     {"a later operator set", 14, X, {NULL}, {"Relu a x -> y"}, "y"}},
};
enum { N_CASES = sizeof cases / sizeof *cases };

// Other engines refuse nodes of the same name.
static bool names_differ(const assay_model_t* m) {
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    for (size_t k = 0; k < i; k++)
      if (*m->graph->nodes[i]->name &&
          strcmp(m->graph->nodes[i]->name, m->graph->nodes[k]->name) == 0)
        return false;
  return true;
}

static void edits(void** state) {
  (void)state;
  bool failed = false;
  for (size_t i = 0; i < N_CASES; i++) {
    const edit_case_t* c = &cases[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t *m = graph_case_model(&c->graph, in), *out = NULL;
    assay_edit_result_t r = {0};
    char text[1024] = "nothing was written";
    op_case_ok(assay_status_note(edit_run(c->edit, m, c->requests, &r, &out), "%s: %s", c->edit,
                                 c->graph.name));
    if (out) edit_operators(out, text);
    if (out && !names_differ(out)) {
      print_error("%s: %s: two nodes of the same name\n", c->edit, c->graph.name);
      failed = true;
    }
    if (strcmp(text, c->after) != 0 || r.verdict != c->verdict) {
      print_error("%s: %s: '%s' (%s), expected '%s' (%s); %s\n", c->edit, c->graph.name, text,
                  assay_edit_verdict_name(r.verdict), c->after, assay_edit_verdict_name(c->verdict),
                  assay_str_get(&r.why_not));
      failed = true;
    }
    assay_edit_result_deinit(&r);
    assay_model_release(out);
    assay_model_release(m);
    graph_case_release(in);
  }
  assert_false(failed);
}

// What was written out is put together again.
static void there_and_back(void** state) {
  (void)state;
  static const char* const none[6] = {NULL};
  for (size_t i = 0; i < N_CASES; i++) {
    const edit_case_t* c = &cases[i];
    static const char* const known[] = {"Mish",
                                        "Elu",
                                        "Elu of 1",
                                        "Gelu",
                                        "Gelu by tanh",
                                        "HardSwish",
                                        "LayerNormalization",
                                        "without a bias, over two axes",
                                        "RMSNormalization",
                                        "InstanceNormalization",
                                        "GroupNormalization"};
    bool back = false;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
      back |= strcmp(known[k], c->graph.name) == 0;
    if (!back || strcmp(c->edit, "decompose") != 0) continue;
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t *m = graph_case_model(&c->graph, in), *apart = NULL, *whole = NULL;
    assay_edit_result_t r = {0};
    char was[1024], is[1024];
    op_case_ok(edit_run("decompose", m, c->requests, &r, &apart));
    assay_edit_result_deinit(&r);
    op_case_ok(edit_run("assemble", apart, none, &r, &whole));
    assay_edit_result_deinit(&r);
    assert_non_null(whole);
    edit_operators(m, was);
    edit_operators(whole, is);
    assert_string_equal(was, is);
    assay_model_release(whole);
    assay_model_release(apart);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- what is refused, and how -------------------------------------------------------------------

static const struct {
  const char* edit;
  const char* requests[6];
  assay_code_t code;
  const char* message;
} errors[] = {
    {"extract", {NULL}, ASSAY_INVALID_ARGUMENT, "say where to cut"},
    {"extract", {"to=middel"}, ASSAY_NOT_FOUND, "no value 'middel'; did you mean 'middle'?"},
    {"extract", {"to=first"}, ASSAY_NOT_FOUND, "name its output"},
    {"extract", {"from=w", "to=y"}, ASSAY_INVALID_ARGUMENT, "'w' is a constant"},
    {"extract",
     {"from=middle", "to=middle"},
     ASSAY_INVALID_ARGUMENT,
     "both an input and an output"},
    {"extract", {"nodes=firs"}, ASSAY_NOT_FOUND, "'firs' matches no node; did you mean 'first'?"},
    {"decompose", {"op=Conv"}, ASSAY_NOT_FOUND, "'Conv' cannot be written out; there are Mish,"},
    {"assemble", {"op=Conv"}, ASSAY_NOT_FOUND, "'Conv' cannot be put together"},
    {"cast", {NULL}, ASSAY_INVALID_ARGUMENT, "--to fp16"},
    {"cast", {"format=int3"}, ASSAY_INVALID_ARGUMENT, "--to 'int3'"},
    {"quantize", {"format=int5"}, ASSAY_INVALID_ARGUMENT, "int8, fp8 and int4"},
    {"quantize",
     {"format=fp8"},
     ASSAY_UNSUPPORTED,
     "need operator set 19, and the model imports 17"},
    {"quantize", {"calibrator=frob"}, ASSAY_INVALID_ARGUMENT, "none of minmax, entropy"},
    {"rename", {NULL}, ASSAY_INVALID_ARGUMENT, "say what to rename"},
    {"rename", {"value=x"}, ASSAY_INVALID_ARGUMENT, "is not OLD=NEW"},
    {"rename", {"value=x=y"}, ASSAY_INVALID_ARGUMENT, "a value of that name is there"},
    {"rename", {"node=first=last"}, ASSAY_INVALID_ARGUMENT, "there is a node of that name"},
    {"rename", {"dim=N=M"}, ASSAY_NOT_FOUND, "no input has a dimension 'N'"},
    {"set", {NULL}, ASSAY_INVALID_ARGUMENT, "say what to set"},
    {"set", {"attr=alpha=1"}, ASSAY_INVALID_ARGUMENT, "needs --nodes"},
    {"set", {"nodes=first", "attr=beta=1"}, ASSAY_NOT_FOUND, "no attribute 'beta'"},
    {"set", {"nodes=first", "attr=alpha=one"}, ASSAY_INVALID_ARGUMENT, "'one' is not a number"},
    {"set", {"shape=y=1x2"}, ASSAY_INVALID_ARGUMENT, "'y' is not an input"},
    {"set", {"shape=x=1xx2"}, ASSAY_INVALID_ARGUMENT, "is not a list of sizes"},
    {"set", {"type=x=int7"}, ASSAY_INVALID_ARGUMENT, "'int7' is not a type"},
    {"set", {"opset=99"}, ASSAY_INVALID_ARGUMENT, "operator sets of ai.onnx are 1 to"},
};

static const graph_case_t small = {
    "small", 17, X, {"w float[8]"}, {"Elu first x -> middle", "Add last middle w -> y"}, "y"};

static void refusals(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t *m = graph_case_model(&small, in), *out = NULL;
    assay_edit_result_t r = {0};
    assay_status_t st = edit_run(errors[i].edit, m, errors[i].requests, &r, &out);
    if (!st) fail_msg("%s: row %zu was not refused", errors[i].edit, i);
    if (assay_status_code(st) != errors[i].code ||
        !strstr(assay_status_message(st), errors[i].message))
      fail_msg("%s: '%s', expected '%s'", errors[i].edit, assay_status_message(st),
               errors[i].message);
    assay_status_free(st);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- the proof itself ---------------------------------------------------------------------------

// An edit that is wrong is found out: the models differ in one attribute.
static void wrong_edits_are_found(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t *m = graph_case_model(&small, in), *other = NULL, *after = NULL;
  op_case_ok(assay_model_clone(m, &other));
  assay_node_t* n = other->graph->nodes[0];
  static assay_attr_t alpha = {
      .name = "alpha", .doc = "", .ref = "", .type = ASSAY_ATTR_FLOAT, .n = 1, .u.f = 0.99f};
  n->attrs = &alpha;
  n->n_attrs = 1;
  op_case_ok(assay_onnx_prepare(other, 0, NULL, &after));
  assay_samples_t samples = {0};
  op_case_ok(assay_proof_samples(m, 0, NULL, 1, 7, &samples));
  assay_proof_t proof;
  bool of_after = false, touched[2] = {true, true};
  const assay_rounded_t rounded = {touched, 2, ASSAY_FORMAT_NONE};
  const assay_proof_options_t options = {.rounded = &rounded};
  op_case_ok(assay_proof_run(m, after, &samples, &options, &proof, &of_after));
  assert_false(proof.unchanged);
  assert_false(proof.within);  // one percent is not rounding of float32
  assert_true(proof.has_explained && proof.outputs[0].explained > 0);
  assert_true(proof.outputs[0].truth.largest > 1e-4);
  assay_proof_deinit(&proof);
  assay_samples_deinit(&samples);
  assay_model_release(after);
  assay_model_release(other);
  assay_model_release(m);
  graph_case_release(in);
}

// Allocation N fails, for all N.
static void failing_allocations(void** state) {
  (void)state;
  static const char* const which[] = {"extract",  "broadcasts", "decompose", "sanitize", "cast",
                                      "quantize", "rename",     "set",       "assemble"};
  static const char* const requests[][6] = {
      {"to=middle"},     {NULL}, {NULL}, {NULL}, {"format=fp16"}, {NULL}, {"value=x=z"},
      {"shape=x=Nx3x8"}, {NULL}};
  for (size_t i = 0; i < sizeof which / sizeof *which; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    const int64_t live = assay_alloc_live();
    bool reached = true;
    for (uint64_t n = 1; reached; n = fail_next(n, 200)) {
      assay_model_t* m = graph_case_model(&small, in);
      edit_requests_t w;
      edit_request(&w, requests[i]);
      assay_edit_result_t r = {0};
      const assay_editor_options_t options = {.seed = 3};
      assay_alloc_fail_after(n, false);
      assay_status_t st = assay_editor_run(assay_editor_find(which[i]), m, &w.w, &options, &r);
      reached = assay_alloc_fail_after(0, false) >= n;
      // Without memory for the proof it is said so, and the edit is not written.
      if (!reached) {
        op_case_ok(st), st = NULL;
        assert_int_not_equal(r.verdict, ASSAY_EDIT_NOT_PROVEN);
      }
      if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assay_edit_result_deinit(&r);
      assay_model_release(m);
      graph_case_release(in);
      memset(in, 0, sizeof in);
      assert_int_equal(assay_alloc_live(), live);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(edits),
      cmocka_unit_test(there_and_back),
      cmocka_unit_test(refusals),
      cmocka_unit_test(wrong_edits_are_found),
      cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
