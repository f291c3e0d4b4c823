// Layers that find rows in other places, or write them there (layers/moved_rows.h): which they are,
// and that a backend gives the bits of the plan in which every node that moves is a layer.
#ifndef ASSAY_TESTS_BACKENDS_MOVED_ROW_CASE_H_
#define ASSAY_TESTS_BACKENDS_MOVED_ROW_CASE_H_

#include "tactic_case.h"

typedef struct moved_row_case {
  graph_case_t graph;
  const char* apart;  // outputs with which nothing is folded: y, and what is moved
  size_t steps;       // layers of the plan that are more than views
} moved_row_case_t;

#define MOVED_LIST(...) \
  { __VA_ARGS__ }
#define MOVED_ROW(name, steps, apart, inputs, constants, ...) \
  { {name, 23, inputs, constants, {__VA_ARGS__}, "y"}, apart, steps }
#define MOVED_NORM(n) "s float[" n "] positive", "b float[" n "]"
static const moved_row_case_t moved_row_cases[] = {
    // ---- normalized rows, written where they go
    MOVED_ROW("windows are cut", 2, "y n", {"x float[2,8,12,32]"},
              MOVED_LIST(MOVED_NORM("32"), "w float[32,8]", "c int64[6] 2 2 4 3 4 32",
                         "d int64[3] 12 16 32"),
              "LayerNormalization n x s b -> n", "Reshape r n c -> r",
              "Transpose t r -> t | perm=0,1,3,2,4,5", "Reshape v t d -> v", "MatMul m v w -> y"),
    MOVED_ROW("windows of a rolled image are cut", 2, "y n", {"x float[2,8,12,16]"},
              MOVED_LIST(MOVED_NORM("16"), "w float[16,8]", "h int64[2] 3 5", "k int64[2] 2 10",
                         "c int64[6] 0 2 4 3 4 -1", "d int64[3] -1 16 16"),
              "LayerNormalization n x s b -> n", "Split p n h -> p q | axis=1",
              "Concat o q p -> o | axis=1", "Split e o k -> e f | axis=-2",
              "Concat g f e -> g | axis=2", "Reshape r g c -> r",
              "Transpose t r -> t | perm=0,1,3,2,4,5", "Reshape v t d -> v", "MatMul m v w -> y"),
    MOVED_ROW("sequences and samples change places", 2, "y n", {"x float[3,6,20]"},
              MOVED_LIST("s float[20] positive", "w float[20,4]"), "RMSNormalization n x s -> n",
              "Transpose t n -> t | perm=1,0,2", "MatMul m t w -> y"),
    MOVED_ROW("rows of two axes", 2, "y n", {"x float[3,5,4,8]"},
              MOVED_LIST("s float[4,8] positive", "w float[8,4]"),
              "LayerNormalization n x s -> n | axis=2", "Transpose t n -> t | perm=1,0,2,3",
              "MatMul m t w -> y"),
    MOVED_ROW("several rows stay side by side", 2, "y n", {"x float[3,5,7,24]"},
              MOVED_LIST(MOVED_NORM("24"), "w float[24,4]"), "LayerNormalization n x s b -> n",
              "Transpose t n -> t | perm=1,0,2,3", "MatMul m t w -> y"),
    MOVED_ROW("one row", 2, "y n", {"x float[1,1,2,24]"},
              MOVED_LIST("s float[2,24] positive", "w float[24,4]"),
              "LayerNormalization n x s -> n | axis=2", "Transpose t n -> t | perm=1,0,2,3",
              "MatMul m t w -> y"),
    MOVED_ROW("what leaves is moved no further", 3, "y n", {"x float[3,5,32]"},
              MOVED_LIST(MOVED_NORM("32"), "w float[3,4]"), "LayerNormalization n x s b -> n",
              "Transpose t n -> t | perm=1,0,2", "Transpose u t -> u | perm=0,2,1",
              "MatMul m u w -> y"),
    // ---- operands that are read where they lie
    MOVED_ROW("windows are joined", 2, "y v", MOVED_LIST("x float[12,16,32]", "z float[2,8,12,32]"),
              MOVED_LIST("w float[32,32]", "c int64[6] 2 2 3 4 4 32", "d int64[4] 2 8 12 32"),
              "MatMul m x w -> m", "Reshape r m c -> r", "Transpose t r -> t | perm=0,1,3,2,4,5",
              "Reshape v t d -> v", "Add a z v -> y"),
    MOVED_ROW("windows of a rolled image are joined", 2, "y g",
              MOVED_LIST("x float[12,16,24]", "z float[2,8,12,24]"),
              MOVED_LIST("w float[24,24]", "c int64[6] 2 2 3 4 4 24", "d int64[4] 2 8 12 24",
                         "h int64[2] 3 5", "k int64[2] 2 10"),
              "MatMul m x w -> m", "Reshape r m c -> r", "Transpose t r -> t | perm=0,1,3,2,4,5",
              "Reshape v t d -> v", "Split p v h -> p q | axis=1", "Concat o q p -> o | axis=1",
              "Split e o k -> e f | axis=2", "Concat g f e -> g | axis=2", "Add a g z -> y"),
    MOVED_ROW("a roll by Slices", 2, "y o", MOVED_LIST("x float[3,9,17]", "z float[17]"),
              MOVED_LIST("i int64[1] 0", "j int64[1] 2", "k int64[1] 9", "l int64[1] 1"),
              "Softmax f x -> f", "Slice p f i j l -> p", "Slice q f j k l -> q",
              "Concat o q p -> o | axis=1", "Mul a o z -> y"),
    MOVED_ROW("two operands, a bias and a gate", 3, "y t v",
              MOVED_LIST("x float[4,6,40]", "u float[24,40]", "z float[6,1,1]"),
              MOVED_LIST("b float[40]", "c int64[3] 4 6 40"), "Softmax f x -> f",
              "Softmax h u -> h", "Transpose t f -> t | perm=1,0,2", "Add n t b -> n",
              "Reshape r h c -> r", "Transpose v r -> v | perm=1,0,2", "Sigmoid g n -> g",
              "Mul m g v -> m", "Add a m z -> y"),
    MOVED_ROW("rows of several tiles", 2, "y t",
              MOVED_LIST("x float[2,3,2600]", "z float[3,2,2600]"), {0}, "Softmax f x -> f",
              "Transpose t f -> t | perm=1,0,2", "Max m t z -> y"),
    MOVED_ROW("many short rows", 2, "y t", MOVED_LIST("x float[20,30,16]", "z float[30,20,16]"),
              {0}, "Softmax f x -> f", "Transpose t f -> t | perm=1,0,2", "Max m t z -> m",
              "Exp e m -> y"),
    MOVED_ROW("rows of several dimensions", 2, "y t",
              MOVED_LIST("x float[5,3,4,6,8]", "z float[3,5,4,6,8]", "v float[4,1,8]"), {0},
              "Softmax f x -> f", "Transpose t f -> t | perm=1,0,2,3,4", "Mul m t z -> m",
              "Add a m v -> y"),
    MOVED_ROW("a view of what may be written over", 5, "y u", {"x float[4,4,16]"},
              MOVED_LIST("w float[16,16]", "c int64[2] 16 16", "d int64[3] 2 8 16",
                         "e int64[3] 4 4 16", "f int64[3] 4 16 4"),
              "MatMul m x w -> m", "Reshape r m c -> r", "MatMul k r w -> k", "Reshape v r d -> v",
              "Transpose t v -> t | perm=1,0,2", "Reshape u t e -> u", "Add a m u -> a",
              "Softmax q a -> q", "Reshape h k f -> h", "MatMul p q h -> y"),
    // ---- what stays as it is
    MOVED_ROW("columns are moved", 3, "y", MOVED_LIST("x float[3,32,16]", "z float[3,16,32]"), {0},
              "Softmax f x -> f", "Transpose t f -> t | perm=0,2,1", "Add a t z -> y"),
    MOVED_ROW("a discrete function", 3, "y", MOVED_LIST("x float[5,3,16]", "z float[3,5,16]"), {0},
              "Softmax f x -> f", "Transpose t f -> t | perm=1,0,2", "Less l t z -> y"),
    MOVED_ROW("rows are short", 3, "y", MOVED_LIST("x float[5,3,8]", "z float[3,5,8]"), {0},
              "Softmax f x -> f", "Transpose t f -> t | perm=1,0,2", "Add a t z -> y"),
    MOVED_ROW("the same is read as it lies", 3, "y", {"x float[4,4,16]"}, {0}, "Softmax f x -> f",
              "Transpose t f -> t | perm=1,0,2", "Add a t f -> y"),
    MOVED_ROW("what is moved is broadcast", 3, "y",
              MOVED_LIST("x float[5,3,16]", "z float[2,3,5,16]"), {0}, "Softmax f x -> f",
              "Transpose t f -> t | perm=1,0,2", "Add a t z -> y"),
    MOVED_ROW("whole numbers", 2, "y", MOVED_LIST("x int32[5,3,16]", "z int32[3,5,16]"), {0},
              "Transpose t x -> t | perm=1,0,2", "Add a t z -> y"),
    MOVED_ROW("two tensors are joined", 3, "y",
              MOVED_LIST("x float[2,3,16]", "u float[2,4,16]", "z float[2,7,16]"), {0},
              "Softmax f x -> f", "Concat c f u -> c | axis=1", "Add a c z -> y"),
    MOVED_ROW("it is read twice", 5, "y", MOVED_LIST("x float[5,3,16]", "z float[3,5,16]"),
              {"w float[16,16]"}, "Softmax f x -> f", "Transpose t f -> t | perm=1,0,2",
              "Add a t z -> a", "MatMul m t w -> m", "Softmax g a -> g", "Add e m g -> y"),
    MOVED_ROW("what a caller gives", 2, "y", MOVED_LIST("x float[5,3,16]", "z float[3,5,16]"), {0},
              "Transpose t x -> t | perm=1,0,2", "Add a t z -> y"),
    MOVED_ROW("other parts go elsewhere", 4, "y", MOVED_LIST("x float[6,3,16]", "z float[2,3,16]"),
              {0}, "Softmax f x -> f", "Split p f -> p q r | axis=0 num_outputs=3",
              "Add a q z -> a", "Concat c p r a -> y | axis=0"),
    MOVED_ROW("a part of a normalized row", 3, "y", {"x float[3,6,32]"},
              MOVED_LIST(MOVED_NORM("32"), "w float[16,4]", "c int64[4] 3 6 2 16"),
              "LayerNormalization n x s b -> n", "Reshape r n c -> r",
              "Transpose t r -> t | perm=0,2,1,3", "MatMul m t w -> y"),
    MOVED_ROW("normalized rows are left out", 3, "y", {"x float[3,6,32]"},
              MOVED_LIST(MOVED_NORM("32"), "w float[32,4]", "i int64[1] 1", "j int64[1] 5",
                         "l int64[1] 1"),
              "LayerNormalization n x s b -> n", "Slice p n i j l -> p", "MatMul m p w -> y"),
    MOVED_ROW("normalized rows are read by others", 4, "y", {"x float[6,6,32]"},
              MOVED_LIST(MOVED_NORM("32"), "w float[32,6]"), "LayerNormalization n x s b -> n",
              "Transpose t n -> t | perm=1,0,2", "MatMul m t w -> m", "MatMul k m n -> y"),
};
enum { MOVED_ROW_CASES = sizeof moved_row_cases / sizeof *moved_row_cases };

enum { MOVED_ROW_FORMATS = 3 };
static const assay_format_t moved_row_formats[MOVED_ROW_FORMATS] = {
    ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};

typedef struct moved_row_steps {
  size_t n, emulated;
} moved_row_steps_t;

static inline moved_row_steps_t moved_row_run(assay_model_t* m, const char* backend,
                                              assay_format_t format, assay_tensor_t* const* in,
                                              assay_tensor_t** out) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_plan_t* plan = NULL;
  assay_executor_t* e = NULL;
  moved_row_steps_t steps = {0};
  op_case_ok(assay_plan_create(m, &precision, &options, 1, &plan));
  op_case_ok(assay_executor_run_plan(plan, assay_backend_find(backend), NULL, &e));
  const assay_graph_t* g = assay_executor_graph(e);
  for (size_t i = 0; i < g->n_inputs; i++) op_case_ok(assay_executor_set(e, g->inputs[i], in[i]));
  op_case_ok(assay_executor_run(e));
  *out = assay_tensor_retain(assay_executor_get(e, g->outputs[0]));
  for (size_t i = 0; i < assay_executor_n_steps(e); i++) {
    const char* tactic = assay_executor_tactic(e, i);
    const assay_layer_t* l = &assay_plan_layers(plan)->layers[i];
    steps.n += l->n_nodes > 1 || strcmp(l->nodes[0]->op_type, "Reshape") != 0;
    steps.emulated += assay_tactic_is_emulated(tactic) || strcmp(tactic, "host") == 0;
  }
  assay_executor_destroy(e);
  assay_plan_destroy(plan);
  return steps;
}

// Own errors, and names of what layers hide, are there as of any layer.
static inline void moved_row_judge(const moved_row_case_t* c, assay_model_t* m, const char* backend,
                                   assay_format_t format, assay_tensor_t* const* in) {
  const assay_precision_t precision = {.format = format};
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  op_case_ok(assay_plan_create(m, &precision, &(assay_plan_options_t){.fused = true}, 1, &plan));
  op_case_ok(
      assay_account_create(plan, assay_backend_find(backend), &(assay_account_options_t){0}, &a));
  op_case_ok(assay_account_run(a, in));
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (!l->bounded || l->judged.beyond || l->verdict > ASSAY_VERDICT_ROUNDING)
      fail_msg("%s: layer '%s' is beyond its bound", c->graph.name, l->layer->name);
  }
  assay_account_destroy(a);
  assay_plan_destroy(plan);
}

// In the first so many formats.
static inline void moved_row_check(const moved_row_case_t* c, const char* backend, size_t formats) {
  graph_case_t apart = c->graph;
  apart.outputs = c->apart;
  for (size_t f = 0; f < formats; f++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *same[GRAPH_CASE_ROWS] = {NULL};
    assay_tensor_t *want = NULL, *got = NULL;
    assay_model_t* m = graph_case_model(&c->graph, in);
    assay_model_t* reference = graph_case_model(&apart, same);
    const moved_row_steps_t before =
        moved_row_run(reference, backend, moved_row_formats[f], same, &want);
    const moved_row_steps_t steps = moved_row_run(m, backend, moved_row_formats[f], in, &got);
    if (steps.n != c->steps) fail_msg("%s: %zu layers, not %zu", c->graph.name, steps.n, c->steps);
    if (steps.emulated > before.emulated) fail_msg("%s: no kernel takes a layer", c->graph.name);
    if (!tactic_case_identical(want, got)) fail_msg("%s: other bits", c->graph.name);
    moved_row_judge(c, m, backend, moved_row_formats[f], in);
    assay_tensor_release(want);
    assay_tensor_release(got);
    graph_case_release(in);
    graph_case_release(same);
    assay_model_release(m);
    assay_model_release(reference);
  }
}

#endif  // ASSAY_TESTS_BACKENDS_MOVED_ROW_CASE_H_
