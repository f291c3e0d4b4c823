// Causes that stand around a node: each is found by golden outputs alone, and its repair, made in
// the model, gives golden.
#include "base/clock.h"
#include "diagnose/search_case.h"
#include "onnx/onnx.h"

typedef struct cause_row {
  const char* cause;  // that the repair has
  const char* node;   // at fault
  graph_case_t right;
  const char* wrong[GRAPH_CASE_ROWS];  // nodes
  size_t changed;                      // which constant is wrong, too, and what it is
  const char* constant;                // NULL: none
} cause_row_t;

#define LAYERS \
  { "w float[6,6]", "u float[6,6]", "v float[6,6]", "k float[] 0.4" }

static const cause_row_t rows[] = {
    {"unlike its twins",
     "r2",
     {"twin",
      17,
      {"x float[2,6]"},
      LAYERS,
      {"MatMul m1 x w -> a", "LeakyRelu r1 a -> b | alpha=0.37", "MatMul m2 b u -> c",
       "LeakyRelu r2 c -> d | alpha=0.37", "MatMul m3 d v -> e",
       "LeakyRelu r3 e -> y | alpha=0.37"},
      "y"},
     {"MatMul m1 x w -> a", "LeakyRelu r1 a -> b | alpha=0.37", "MatMul m2 b u -> c",
      "Relu r2 c -> d", "MatMul m3 d v -> e", "LeakyRelu r3 e -> y | alpha=0.37"},
     0,
     NULL},
    {"lost, as twins have it",
     "m2",
     {"missing",
      17,
      {"x float[2,6]"},
      LAYERS,
      {"MatMul m1 x w -> a", "LeakyRelu r1 a -> b | alpha=0.37", "MatMul m2 b u -> c",
       "LeakyRelu r2 c -> d | alpha=0.37", "MatMul m3 d v -> e", "Mul s e k -> y"},
      "y"},
     {"MatMul m1 x w -> a", "LeakyRelu r1 a -> b | alpha=0.37", "MatMul m2 b u -> c",
      "MatMul m3 c v -> e", "Mul s e k -> y"},
     0,
     NULL},
    {"lost activation",
     "m1",
     {"activation",
      17,
      {"x float[2,6]"},
      LAYERS,
      {"MatMul m1 x w -> a", "Sigmoid g a -> b", "Mul h a b -> c", "MatMul m2 c u -> y"},
      "y"},
     {"MatMul m1 x w -> a", "MatMul m2 a u -> y"},
     0,
     NULL},
    {"lost residual",
     "m2",
     {"residual",
      17,
      {"x float[2,6]"},
      LAYERS,
      {"MatMul m1 x w -> a", "Tanh t a -> b", "MatMul m2 b u -> c", "Add s c a -> d",
       "MatMul m3 d v -> y"},
      "y"},
     {"MatMul m1 x w -> a", "Tanh t a -> b", "MatMul m2 b u -> c", "MatMul m3 c v -> y"},
     0,
     NULL},
    {"read by nobody",
     "m1",
     {"branch",
      17,
      {"x float[2,6]"},
      LAYERS,
      {"MatMul m1 x w -> a", "Tanh t a -> b", "MatMul m2 b u -> c", "Add s a c -> d",
       "MatMul m3 d v -> e", "Tanh t3 e -> y"},
      "y"},
     {"MatMul m1 x w -> a", "Tanh t a -> b", "MatMul m2 b u -> c", "MatMul m3 a v -> e",
      "Tanh t3 e -> y"},
     0,
     NULL},
    {"dropped input",
     "l",
     {"states",
      17,
      {"x float[5,2,3]", "h float[1,2,4]", "c float[1,2,4]"},
      {"w float[1,16,3]", "r float[1,16,4]", "b float[1,32]"},
      {"LSTM l x w r b _ h c -> y | hidden_size=4"},
      "y"},
     {"LSTM l x w r b -> y | hidden_size=4"},
     0,
     NULL},
    {"another source",
     "s",
     {"skip",
      17,
      {"x float[2,6]"},
      LAYERS,
      {"MatMul m1 x w -> a", "Tanh t a -> b", "MatMul m2 b u -> c", "Add s c a -> d",
       "MatMul m3 d v -> y"},
      "y"},
     {"MatMul m1 x w -> a", "Tanh t a -> b", "MatMul m2 b u -> c", "Add s c b -> d",
      "MatMul m3 d v -> y"},
     0,
     NULL},
    {"exchanged outputs",
     "p",
     {"halves",
      17,
      {"x float[2,6]"},
      {"w float[6,6]", "h int64[2] 3 3", "u float[3,6]"},
      {"MatMul m1 x w -> a", "Split p a h -> b c | axis=1", "Sigmoid g c -> d", "Tanh t b -> e",
       "Mul f d e -> i", "MatMul m2 i u -> y"},
      "y"},
     {"MatMul m1 x w -> a", "Split p a h -> b c | axis=1", "Sigmoid g b -> d", "Tanh t c -> e",
      "Mul f d e -> i", "MatMul m2 i u -> y"},
     0,
     NULL},
    {"form of GELU",
     "f",
     {"gelu",
      20,
      {"x float[2,6]"},
      {"w float[6,6]", "u float[6,6]", "r float[] 0.70710677", "one float[] 1", "half float[] 0.5"},
      {"MatMul m1 x w -> a", "Gelu g a -> b | approximate=tanh", "MatMul m2 b u -> y"},
      "y"},
     {"MatMul m1 x w -> a", "Mul s a r -> c", "Erf f c -> d", "Add p d one -> e", "Mul h e a -> i",
      "Mul k i half -> b", "MatMul m2 b u -> y"},
     0,
     NULL},
    {"unbiased variance",
     "mean",
     {"variance",
      17,
      {"x float[2,6]"},
      {"u float[6,6]", "e float[] 0.01", "n float[] 1.2", "b float[6]"},
      {"ReduceMean m x -> a | axes=1", "Sub d x a -> c", "Mul q c c -> i",
       "ReduceMean mean i -> j0 | axes=1", "Mul over j0 n -> j", "Add p j e -> k", "Sqrt r k -> l",
       "Div o c l -> z", "MatMul m2 z u -> y0", "Add bias y0 b -> y"},
      "y"},
     {"ReduceMean m x -> a | axes=1", "Sub d x a -> c", "Mul q c c -> i",
      "ReduceMean mean i -> j | axes=1", "Add p j e -> k", "Sqrt r k -> l", "Div o c l -> z",
      "MatMul m2 z u -> y0", "Add bias y0 b -> y"},
     0,
     NULL},
    {"activations",
     "l",
     {"recurrent",
      17,
      {"x float[5,2,3]"},
      {"w float[1,16,3]", "r float[1,16,4]", "b float[1,32]"},
      {"LSTM l x w r b -> y | hidden_size=4 activations=HardSigmoid,Tanh,Tanh"},
      "y"},
     {"LSTM l x w r b -> y | hidden_size=4"},
     0,
     NULL},
    {"dropped input",
     "c",
     {"bias",
      17,
      {"x float[1,2,5,5]"},
      {"w float[3,2,3,3]", "b float[3]"},
      {"Conv c x w b -> a", "Relu r a -> y"},
      "y"},
     {"Conv c x w -> a", "Relu r a -> y"},
     0,
     NULL},
    {"moved constant",
     "g",
     {"positions",
      17,
      {"x float[1,3,4]"},
      {"t float[9,4]", "i int64[3] 2 3 4", "u float[4,5]"},
      {"Gather g t i -> a", "Add s x a -> b", "MatMul m b u -> y"},
      "y"},
     {"Gather g t i -> a", "Add s x a -> b", "MatMul m b u -> y"},
     1,
     "i int64[3] 3 4 5"},
    {"flattened in another order",
     "m",
     {"flatten",
      17,
      {"x float[2,3,2,4]"},
      {"w float[24,5]"},
      {"Transpose p x -> q | perm=0,2,3,1", "Flatten f q -> a", "MatMul m a w -> y"},
      "y"},
     {"Flatten f x -> a", "MatMul m a w -> y"},
     0,
     NULL},
    {"statistics",
     "n",
     {"groups",
      17,
      {"x float[2,6,4]"},
      {"h int64[3] 0 3 -1", "g int64[3] 0 2 -1", "k int64[3] 0 6 -1", "s float[3] 1 1 1",
       "b float[3] 0 0 0", "t float[2] 1 1", "c float[2] 0 0", "w float[4,5]"},
      {"Reshape r x g -> a", "InstanceNormalization n a t c -> d", "Reshape q d k -> e",
       "MatMul m e w -> y"},
      "y"},
     {"Reshape r x h -> a", "InstanceNormalization n a s b -> d", "Reshape q d k -> e",
      "MatMul m e w -> y"},
     0,
     NULL},
    {"mask",
     "o",
     {"causal",
      17,
      {"x float[2,3,3]"},
      {"p float[1,3,3] 0 -9 -9 0 0 -9 0 0 0", "m float[3,3] 0 0 -9 0 0 0 0 0 0", "w float[3,4]"},
      {"Add o x p -> a", "Softmax s a -> b", "MatMul n b w -> y"},
      "y"},
     {"Add o x m -> a", "Softmax s a -> b", "MatMul n b w -> y"},
     0,
     NULL},
    {"order of blocks",
     "m",
     {"interleaved",
      17,
      {"x float[2,4]"},
      {"w float[4,6]", "u float[3,5]", "h int64[3] 0 2 3", "k int64[3] 0 3 2", "z int64[2] 0 6",
       "d float[6,5]"},
      {"MatMul m x w -> a", "Reshape r a k -> b", "Transpose t b -> c | perm=0,2,1",
       "Reshape q c z -> e", "Tanh f e -> g", "MatMul n g d -> y"},
      "y"},
     {"MatMul m x w -> a", "Tanh f a -> g", "MatMul n g d -> y"},
     0,
     NULL},
    {"lost update",
     "m",
     {"scattered",
      17,
      {"x float[4,3]"},
      {"w float[3,3]", "i int64[1,1] 2", "u float[1,3]", "v float[3,5]"},
      {"MatMul m x w -> a", "ScatterND s a i u -> b", "Tanh f b -> c", "MatMul n c v -> y"},
      "y"},
     {"MatMul m x w -> a", "Tanh f a -> c", "MatMul n c v -> y"},
     0,
     NULL},
    {"frozen value",
     "s",
     {"traced",
      17,
      {"x float[4,3]"},
      {"k float[3]", "c float[4,3]", "w float[3,5]"},
      {"Mul m x k -> a", "Tanh t x -> b", "Sub s a b -> d", "MatMul n d w -> y"},
      "y"},
     {"Tanh t x -> b", "Sub s c b -> d", "MatMul n d w -> y"},
     0,
     NULL},
    {"lost sign",
     "q",
     {"rotation",
      17,
      {"x float[2,3]"},
      {"w float[3,3]", "u float[3,3]", "v float[6,5]"},
      {"MatMul m x w -> a", "MatMul o x u -> b", "Neg g a -> c", "Concat q c b -> d | axis=1",
       "Tanh t d -> e", "MatMul n e v -> y"},
      "y"},
     {"MatMul m x w -> a", "MatMul o x u -> b", "Concat q a b -> d | axis=1", "Tanh t d -> e",
      "MatMul n e v -> y"},
     0,
     NULL},
    {"slope of each channel",
     "p",
     {"slopes",
      17,
      {"x float[4,3,6]"},
      {"w float[4,3,3]", "s float[4,1] 0.1 0.4 -0.3 0.7", "o float[1] 0.25", "u float[3,4,3]"},
      {"Conv c x w -> a", "PRelu p a s -> b", "Conv d b u -> y"},
      "y"},
     {"Conv c x w -> a", "PRelu p a o -> b", "Conv d b u -> y"},
     0,
     NULL},
    {"numbers of a constant",
     "c",
     {"weights",
      17,
      {"x float[4,3,9]"},
      {"w float[1,2,3,2]", "z float[2,3,2]", "u float[3,2,3]", "h int64[3] 2 3 2"},
      {"Reshape r w h -> v", "Conv c x v -> a", "Tanh t a -> b", "Conv d b u -> y"},
      "y"},
     {"Conv c x z -> a", "Tanh t a -> b", "Conv d b u -> y"},
     0,
     NULL},
    {"scale and bias of each channel",
     "c",
     {"folded",
      17,
      {"x float[2,3,8,8]"},
      {"w float[4,3,3,3]", "b float[4]", "s float[4] positive", "o float[4]", "m float[4]",
       "v float[4] positive", "u float[2,4,3,3]"},
      {"Conv c x w b -> a", "BatchNormalization n a s o m v -> d", "Tanh t d -> e",
       "Conv c2 e u -> y"},
      "y"},
     {"Conv c x w b -> a", "Tanh t a -> e", "Conv c2 e u -> y"},
     0,
     NULL},
    {"bias of each channel",
     "c",
     {"bias",
      17,
      {"x float[2,3,8,8]"},
      {"w float[4,3,3,3]", "u float[2,4,3,3]", "b float[4]"},
      {"Conv c x w b -> a", "Tanh t a -> e", "Conv c2 e u -> y"},
      "y"},
     {"Conv c x w zero -> a", "Tanh t a -> e", "Conv c2 e u -> y"},
     2,
     "zero float[4] 0 0 0 0"},
    {"order of peepholes",
     "l",
     {"peepholes",
      17,
      {"x float[5,2,3]"},
      {"w float[1,16,3]", "r float[1,16,4]", "b float[1,32]",
       "p float[1,12] 0.3 -0.8 0.5 1.1 -0.9 0.2 0.7 -0.4 1.3 0.6 -1.2 0.1"},
      {"LSTM l x w r b _ _ _ p -> y | hidden_size=4"},
      "y"},
     {"LSTM l x w r b _ _ _ p -> y | hidden_size=4"},
     3,
     "p float[1,12] 0.3 -0.8 0.5 1.1 1.3 0.6 -1.2 0.1 -0.9 0.2 0.7 -0.4"},
    {"bias of a gate",
     "l",
     {"forget",
      17,
      {"x float[5,2,3]"},
      {"w float[1,8,3]", "r float[1,8,2]",
       "b float[1,16] 0.1 0.2 0.3 0.4 1.5 1.6 0.7 0.8 0 0 0 0 0 0 0 0"},
      {"LSTM l x w r b -> y | hidden_size=2"},
      "y"},
     {"LSTM l x w r b -> y | hidden_size=2"},
     2,
     "b float[1,16] 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0 0 0 0 0 0 0 0"},
    {"table by its formula",
     "s",
     {"sinusoids",
      17,
      {"x float[2,5,4]"},
      {"w float[4,3]",
       "t float[1,5,4] 0 0 1 1 0.841470957 0.099833414 0.540302277 0.995004177 "
       "0.909297407 0.198669329 -0.416146845 0.980066597 0.141120002 0.295520216 "
       "-0.989992499 0.955336511 -0.756802499 0.389418334 -0.653643608 0.921060979"},
      {"Add s x t -> a", "Tanh h a -> b", "MatMul m b w -> y"},
      "y"},
     {"Add s x t -> a", "Tanh h a -> b", "MatMul m b w -> y"},
     1,
     "t float[1,5,4] 0 1 0 1 0.841470957 0.540302277 0.099833414 0.995004177 "
     "0.909297407 -0.416146845 0.198669329 0.980066597 0.141120002 -0.989992499 "
     "0.295520216 0.955336511 -0.756802499 -0.653643608 0.389418334 0.921060979"},
    {"window",
     "c",
     {"spectrum",
      17,
      {"x float[2,1,32]"},
      {"u float[2,6,3]",
       "w float[6,1,8] 0 0.146446609 0.5 0.853553391 1 0.853553391 0.5 0.146446609 -0 "
       "-0 -0 -0 -0 -0 -0 -0 0 0.103553391 3.061617e-17 -0.603553391 -1 -0.603553391 "
       "-9.18485099e-17 0.103553391 -0 -0.103553391 -0.5 -0.603553391 -1.2246468e-16 "
       "0.603553391 0.5 0.103553391 0 8.96726857e-18 -0.5 -1.56795214e-16 1 "
       "2.61325357e-16 -0.5 -6.277088e-17 -0 -0.146446609 -6.123234e-17 0.853553391 "
       "2.4492936e-16 -0.853553391 -1.8369702e-16 0.146446609"},
      {"Conv c x w -> a | strides=4", "Mul q a a -> b", "Conv d b u -> y"},
      "y"},
     {"Conv c x w -> a | strides=4", "Mul q a a -> b", "Conv d b u -> y"},
     1,
     "w float[6,1,8] 0 0.188255099 0.611260467 0.950484434 0.950484434 0.611260467 "
     "0.188255099 0 -0 -0 -0 -0 -0 -0 -0 -0 0 0.133116457 3.74289087e-17 "
     "-0.672093989 -0.950484434 -0.432226421 -3.45819007e-17 0 -0 -0.133116457 "
     "-0.611260467 -0.672093989 -1.16400772e-16 0.432226421 0.188255099 0 0 "
     "1.15273002e-17 -0.611260467 -1.74601158e-16 0.950484434 1.87144544e-16 "
     "-0.188255099 -0 -0 -0.188255099 -7.48578174e-17 0.950484434 2.32801544e-16 "
     "-0.611260467 -6.91638014e-17 0"},
    {"scale of a normalization",
     "n",
     {"fixed",
      17,
      {"x float[2,3,8,8]"},
      {"w float[4,3,3,3]", "s float[4] 1.3 0.8 1.1 0.7", "o float[4]", "m float[4]",
       "v float[4] positive", "u float[2,4,3,3]"},
      {"Conv c x w -> a", "BatchNormalization n a s o m v -> d", "Tanh t d -> e",
       "Conv c2 e u -> y"},
      "y"},
     {"Conv c x w -> a", "BatchNormalization n a s o m v -> d", "Tanh t d -> e",
      "Conv c2 e u -> y"},
     1,
     "s float[4] 1 1 1 1"},
    {"numbers of a constant",
     "g",
     {"merged",
      17,
      {"x float[5,4,3]"},
      {"w float[1,6,3]", "r float[1,6,2]",
       "b float[1,12] 0.1 0.2 0.3 0.4 0.5 0.6 0 0 0 0 -0.7 0.9"},
      {"GRU g x w r b -> y | hidden_size=2 linear_before_reset=1"},
      "y"},
     {"GRU g x w r b -> y | hidden_size=2 linear_before_reset=1"},
     2,
     "b float[1,12] 0.1 0.2 0.3 0.4 -0.2 1.5 0 0 0 0 0 0"},
};

static assay_tensor_t* run(const assay_model_t* m, assay_tensor_t* const* in) {
  assay_evaluator_t* e = search_case_truth(m, in);
  assay_tensor_t* y = assay_tensor_retain(assay_evaluator_get(e, m->graph->outputs[0]));
  assay_evaluator_destroy(e);
  return y;
}

// The repair, made in the model as it was read, gives golden.
static void repair_holds(const cause_row_t* row, const search_case_t* c, const graph_case_t* wrong,
                         const assay_repair_t* r) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(wrong, in);
  op_case_ok(assay_repair_apply(r, m));
  op_case_ok(assay_model_verify(m));
  assay_model_t* prepared = NULL;
  op_case_ok(assay_onnx_prepare(m, 0, NULL, &prepared));
  assay_tensor_t* y = run(prepared, in);
  const assay_difference_t d = assay_difference(y, c->targets[0].golden);
  if (!d.comparable || d.rms > 1e-6 * (1 + d.ref_rms))
    fail_msg("%s: the repaired model is off by %g of %g", row->right.name, d.rms, d.ref_rms);
  assay_tensor_release(y);
  assay_model_release(prepared);
  assay_model_release(m);
  graph_case_release(in);
}

static void causes_are_found(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const cause_row_t* row = &rows[i];
    graph_case_t wrong = row->right;
    memcpy(wrong.nodes, row->wrong, sizeof wrong.nodes);
    if (row->constant) wrong.constants[row->changed] = row->constant;
    search_case_t c;
    assay_fault_t faults[ASSAY_SEARCH_FAULTS] = {{0}};
    size_t n = 0;
    search_case_init(&wrong, &row->right, &c);
    c.targets[0].explained_rms = 1e-6;
    c.targets[0].explained_max = 1e-5;
    c.search.deadline = assay_clock_seconds() + 20;
    c.search.several = true;
    op_case_ok(assay_search_run(&c.search, faults, &n));
    if (!n || !faults[0].restored)
      fail_msg("%s: nothing restores golden, best is '%s'", row->right.name,
               n ? faults[0].repair.text : "");
    if (strcmp(faults[0].node->label, row->node) != 0 ||
        strcmp(faults[0].repair.cause, row->cause) != 0)
      fail_msg("%s: '%s' by '%s', %s", row->right.name, faults[0].node->label,
               faults[0].repair.cause, faults[0].repair.text);
    repair_holds(row, &c, &wrong, &faults[0].repair);
    for (size_t k = 0; k < n; k++) assay_repair_deinit(&faults[k].repair);
    search_case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(causes_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
