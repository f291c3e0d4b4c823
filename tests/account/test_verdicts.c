// Every verdict, on small graphs made for it; and small systematic faults, which hide below the
// guaranteed bound of each element and are caught by what all elements say together.
#include "account/account.h"
#include "passes/graph_case.h"

// ---- verdicts -----------------------------------------------------------------------------------

typedef struct row {
  graph_case_t graph;
  assay_format_t format, accumulator;
  const char* inject;
  const char* node;
  assay_verdict_t verdict;
  const char* perturbed;  // of 'amplified': by which input; NULL: not asked
} row_t;

// The first row holds an infinity.
#define UNFINITE                                                              \
  {                                                                           \
    "unfinite", 0, {"x float[2,2] inf 1 2 3"}, {"w float[2,3] 1 2 -1 1 1 4"}, \
        {"MatMul n x w -> y"}, "y"                                            \
  }

static const row_t rows[] = {
    {{"moved", 0, {"x float[4,8]"}, {0}, {"Transpose n x -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_EXACT,
     NULL},
    {{"clipped", 0, {"x float[64]"}, {0}, {"Relu n x -> y"}, "y"},
     ASSAY_FORMAT_BF16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_EXACT,
     NULL},
    {{"summed", 0, {"x float[16,64]"}, {"w float[64,16]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_ROUNDING,
     NULL},
    {{"summed", 0, {"x float[16,64]"}, {"w float[64,16]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     ASSAY_FORMAT_FP16,
     NULL,
     "n",
     ASSAY_VERDICT_ROUNDING,
     NULL},
    // 2,048 is where a running sum of ones in fp16 stops.
    {{"stagnating", 0, {"x float[1,4096] positive"}, {0}, {"ReduceSum n x -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     ASSAY_FORMAT_FP16,
     NULL,
     "n",
     ASSAY_VERDICT_ROUNDING,
     NULL},
    // A difference that is 0 in fp32 and 1e-9 in truth: no range is at fault.
    {{"cancelling",
      0,
      {"x float[4] 1 2 3 4"},
      {"o float[4] 1e-9 1e-9 1e-9 1e-9"},
      {"Add up x o -> p", "Sub n p x -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_AMPLIFIED,
     "p"},
    {{"large", 0, {"x float[4] 1 2 3 -3"}, {"k float[] 4e4"}, {"Mul n x k -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_OVERFLOW,
     NULL},
    {{"large", 0, {"x float[4] 1 2 3 -3"}, {"k float[] 4e4"}, {"Mul n x k -> y"}, "y"},
     ASSAY_FORMAT_BF16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_EXACT,
     NULL},
    {{"small", 0, {"x float[4] 1e-5 2e-5 1 1"}, {"k float[] 1e-5"}, {"Mul n x k -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_UNDERFLOW,
     NULL},
    {{"small", 0, {"x float[4] 1e-30 2e-30 1 1"}, {"k float[] 1e-30"}, {"Mul n x k -> y"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_UNDERFLOW,
     NULL},
    {{"flushed", 0, {"x float[4] 1e-3 2e-3 1 1"}, {"k float[] 1e-2"}, {"Mul n x k -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:flush=1",
     "n",
     ASSAY_VERDICT_UNDERFLOW,
     NULL},
    // The mean's sum passes fp16: infinity over infinity.
    {{"normalized",
      0,
      {"x float[1,4] 40000 20000 30000 10000"},
      {"s float[4] 1 1 1 1"},
      {"LayerNormalization n x s -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     ASSAY_FORMAT_FP16,
     NULL,
     "n",
     ASSAY_VERDICT_INVALID,
     NULL},
    {{"chosen",
      0,
      {"x float[1,3] 1 1.0001 0.5"},
      {"one float[] 1"},
      {"Mul low x one -> p", "ArgMax n p -> y | axis=1"},
      "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_FLIPPED,
     NULL},
    {{"compared",
      0,
      {"x float[3] 1 1.0001 0.5"},
      {"one float[] 1"},
      {"Mul low x one -> p", "Greater n p one -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_FLIPPED,
     NULL},
    {{"rounded",
      0,
      {"x float[3] 1.4999 2.5001 0.25"},
      {"one float[] 1"},
      {"Mul low x one -> p", "Round n p -> y"},
      "y"},
     ASSAY_FORMAT_BF16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_FLIPPED,
     NULL},
    // What is left of p - x is mostly p's rounding.
    {{"ill",
      0,
      {"x float[64] positive"},
      {"k float[] 1.001"},
      {"Mul up x k -> p", "Sub n p x -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_AMPLIFIED,
     "p"},
    // A sum of four is off by more than its roundings explain, if truth has made none itself.
    {{"doubtful", 0, {"x double[1,1,4] 1 1 1 1"}, {0}, {"GlobalLpPool n x -> y | p=1"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:scale=0,1.000000000000001",
     "n",
     ASSAY_VERDICT_UNCERTAIN,
     NULL},
    {{"wrong", 0, {"x float[16,64]"}, {"w float[64,16]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:shift=1",
     "n",
     ASSAY_VERDICT_DEFECT,
     NULL},
    // An infinity that comes in reaches the first row alone, so NaN anywhere else is a fault; and
    // in that row, where the layer gives infinities.
    {UNFINITE, ASSAY_FORMAT_FP16, 0, NULL, "n", ASSAY_VERDICT_EXACT, NULL},
    {UNFINITE, ASSAY_FORMAT_FP16, 0, "n:put=5,nan", "n", ASSAY_VERDICT_DEFECT, NULL},
    {UNFINITE, ASSAY_FORMAT_FP32, 0, "n:put=3,inf", "n", ASSAY_VERDICT_DEFECT, NULL},
    {UNFINITE, ASSAY_FORMAT_BF16, 0, "n:put=0,nan", "n", ASSAY_VERDICT_DEFECT, NULL},
    {UNFINITE, ASSAY_FORMAT_BF16, 0, "n:put=1,-inf", "n", ASSAY_VERDICT_DEFECT, NULL},
    {UNFINITE, ASSAY_FORMAT_FP32, 0, "n:put=0,7", "n", ASSAY_VERDICT_DEFECT, NULL},
    // A sum that passes the range inside the layer, though the mean does not.
    {{"mean", 0, {"x float[2] 3e38 3e38"}, {"z float[2] 3e38 1"}, {"Mean n x z -> y"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_OVERFLOW,
     NULL},
    // It meets a 0: NaN, in truth as here.
    {{"nought",
      0,
      {"x float[2,2] inf 1 2 3"},
      {"w float[2,2] 0 1 1 1"},
      {"MatMul n x w -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_EXACT,
     NULL},
    // What an operator selects is reached by what it compares with, and the emulated layer never
    // gives NaN there; nor does a softmax whose mask is an infinity.
    {{"selected",
      0,
      {"x float[3] inf 1 9"},
      {"low float[] 0", "high float[] 6"},
      {"Clip n x low high -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_EXACT,
     NULL},
    {{"masked", 0, {"x float[2,4] -inf 1 2 3 4 -inf 5 6"}, {0}, {"Softmax n x -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     NULL,
     "n",
     ASSAY_VERDICT_EXACT,
     NULL},
    {{"masked", 0, {"x float[2,4] -inf 1 2 3 4 -inf 5 6"}, {0}, {"Softmax n x -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:put=0,nan",
     "n",
     ASSAY_VERDICT_DEFECT,
     NULL},
    // Faults of the size of rounding, in rows that nothing reaches.
    {{"systematic",
      0,
      {"x float[64,64]"},
      {"w float[64,16]", "pads int64[4] 1 0 0 0", "value float[] inf"},
      {"Pad pad x pads value -> p", "MatMul n p w -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:scale=0,1.00001",
     "n",
     ASSAY_VERDICT_DEFECT,
     NULL},
};

static const assay_layer_account_t* account_of(const row_t* r, assay_model_t* m,
                                               assay_tensor_t* const* in, assay_plan_t** plan,
                                               assay_account_t** a) {
  const assay_precision_t p = {.format = r->format, .accumulator = r->accumulator};
  const assay_plan_options_t o = {.inject = r->inject};
  op_case_ok(assay_plan_create(m, &p, &o, 0, plan));
  op_case_ok(assay_account_create(*plan, &assay_backend_emu, &(assay_account_options_t){0}, a));
  op_case_ok(assay_account_run(*a, in));
  for (size_t i = 0; i < assay_account_layer_count(*a); i++) {
    const assay_layer_account_t* l = assay_account_layer(*a, i);
    if (strcmp(l->node->label, r->node) == 0) return l;
  }
  fail();
  return NULL;
}

static void every_verdict_is_given(void** state) {
  (void)state;
  bool given[ASSAY_VERDICT_DEFECT + 1] = {false};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&r->graph, in);
    assay_plan_t* plan = NULL;
    assay_account_t* a = NULL;
    const assay_layer_account_t* l = account_of(r, m, in, &plan, &a);
    if (l->verdict != r->verdict)
      fail_msg("row %zu, '%s' in %s: %s, not %s", i, r->graph.name, assay_format_name(r->format),
               assay_verdict_name(l->verdict), assay_verdict_name(r->verdict));
    given[l->verdict] = true;
    if (r->perturbed) {
      assert_true(l->perturbations.n > 0 && l->condition > 100);
      assert_string_equal(l->perturbations.at[0].value->name, r->perturbed);
    }
    assay_account_destroy(a);
    assay_plan_destroy(plan);
    assay_model_release(m);
    graph_case_release(in);
  }
  // 'less accurate' is other engines' (cli/test_exec).
  for (int v = 0; v <= ASSAY_VERDICT_DEFECT; v++)
    if (!given[v] && v != ASSAY_VERDICT_UNCLASSIFIED && v != ASSAY_VERDICT_LESS_ACCURATE)
      fail_msg("nothing is %s", assay_verdict_name((assay_verdict_t)v));
}

// ---- each input by itself -----------------------------------------------------------------------

// y = p q - 1 with p q nearly 1: both errors show, a third input's does not.
static void perturbations_are_told_apart(void** state) {
  (void)state;
  static const graph_case_t graph = {
      "apart",
      0,
      {"x float[64] positive", "z float[64]"},
      {"k float[] 1.3", "one float[] 1", "tiny float[] 1e-6"},
      {"Mul up x k -> p", "Sin sine z -> s", "Mul less s tiny -> t", "Reciprocal inv x -> i",
       "Mul kk i one -> q", "Sum n p t -> u", "Mul diff u q -> v", "Sub last v k -> y"},
      "y"};
  const row_t row = {.format = ASSAY_FORMAT_FP16, .node = "last"};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  const assay_layer_account_t* l = account_of(&row, m, in, &plan, &a);
  assert_int_equal(l->verdict, ASSAY_VERDICT_AMPLIFIED);
  assert_int_equal(l->perturbations.n, 1);
  const assay_perturbation_t* p = &l->perturbations.at[0];
  assert_string_equal(p->value->name, "v");
  assert_true(p->in > 0 && p->in < 4e-3 && p->out > 100 * p->in);
  assert_true(fabs(p->condition - p->out / p->in) < 1e-9 * p->condition);
  assay_account_destroy(a);
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(in);
}

// In a layer of several nodes, with one input of which the error is large and does no harm.
static void perturbations_of_fused_layers(void** state) {
  (void)state;
  static const graph_case_t graph = {
      "fused",
      0,
      {"x float[1,64] positive"},
      {"k float[] 1.001", "w float[64,64]", "none float[] 1e-4"},
      {"MatMul mm x w -> a", "Mul up x k -> p", "Sub minus p x -> d", "Mul less a none -> e",
       "Add n d e -> f", "Mul last f k -> y"},
      "y"};
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP16};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&graph, in);
  for (int fused = 0; fused < 2; fused++) {
    assay_plan_t* plan = NULL;
    assay_account_t* a = NULL;
    op_case_ok(assay_plan_create(m, &precision, &(assay_plan_options_t){.fused = fused}, 0, &plan));
    op_case_ok(assay_account_create(plan, &assay_backend_emu, &(assay_account_options_t){0}, &a));
    op_case_ok(assay_account_run(a, in));
    for (size_t i = 0; i < assay_account_layer_count(a); i++) {
      const assay_layer_account_t* l = assay_account_layer(a, i);
      assert_true(l->verdict != ASSAY_VERDICT_DEFECT);
      if (l->verdict == ASSAY_VERDICT_AMPLIFIED) assert_true(l->perturbations.n > 0);
    }
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

// ---- hidden values that the model declares narrow -----------------------------------------------

// Rounded to that between the nodes of a layer, and past its range in the second model.
static void hidden_values_of_declared_types(void** state) {
  (void)state;
  static const graph_case_t graphs[] = {
      {"half",
       0,
       {"x float16[8,64]"},
       {"w float16[64,16]", "k float16[] 1.7", "b float16[16]"},
       {"MatMul mm x w -> a", "Mul m a k -> c", "Add add c b -> d", "Sigmoid s d -> e",
        "Mul silu d e -> y"},
       "y"},
      {"tall",
       0,
       {"x float16[8,64]"},
       {"w float16[64,16]", "k float16[] 30000", "l float16[] 1e-4"},
       {"MatMul mm x w -> a", "Mul up a k -> c", "Mul down c l -> y"},
       "y"},
  };
  for (size_t i = 0; i < 2; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&graphs[i], in);
    for (int fused = 0; fused < 2; fused++) {
      const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
      const assay_plan_options_t o = {.fused = fused};
      assay_plan_t* plan = NULL;
      assay_account_t* a = NULL;
      op_case_ok(assay_plan_create(m, &precision, &o, 0, &plan));
      op_case_ok(assay_account_create(plan, &assay_backend_emu, &(assay_account_options_t){0}, &a));
      op_case_ok(assay_account_run(a, in));
      bool overflows = false;
      for (size_t k = 0; k < assay_account_layer_count(a); k++) {
        const assay_layer_account_t* l = assay_account_layer(a, k);
        if (l->verdict == ASSAY_VERDICT_DEFECT || l->verdict == ASSAY_VERDICT_UNCLASSIFIED)
          fail_msg("'%s'%s: '%s' is %s", graphs[i].name, fused ? ", fused" : "", l->node->label,
                   assay_verdict_name(l->verdict));
        overflows |= l->verdict == ASSAY_VERDICT_OVERFLOW;
      }
      // Passes put the scales into the weights: what overflows node by node does not exist then.
      assert_int_equal(overflows, i && !fused);
      assay_account_destroy(a);
      assay_plan_destroy(plan);
    }
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- small systematic faults --------------------------------------------------------------------

typedef struct fault {
  graph_case_t graph;
  assay_format_t format, accumulator;
  const char* inject;
} fault_t;

static const fault_t faults[] = {
    {{"norm",
      0,
      {"x float[64,64]"},
      {"s float[64] positive"},
      {"LayerNormalization n x s -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:set=epsilon=2e-5"},
    {{"norm",
      0,
      {"x float[64,64]"},
      {"s float[64] positive"},
      {"LayerNormalization n x s -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:set=epsilon=1e-3"},
    {{"sum", 0, {"x float[16,512]"}, {"w float[512,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:terms=1"},
    {{"sum", 0, {"x float[16,512]"}, {"w float[512,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:scale=0,1.00001"},
    {{"sum", 0, {"x float[16,512]"}, {"w float[512,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:enter=bf16"},
    {{"narrow", 0, {"x float[16,512]"}, {"w float[512,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     ASSAY_FORMAT_FP16,
     "n:scale=0,1.05"},
    {{"narrow", 0, {"x float[16,512]"}, {"w float[512,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:accumulate=fp16"},
    {{"narrow", 0, {"x float[16,512]"}, {"w float[512,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP16,
     ASSAY_FORMAT_FP16,
     "n:terms=2"},
    {{"norm",
      0,
      {"x float[64,64]"},
      {"s float[64] positive"},
      {"LayerNormalization n x s -> y"},
      "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:set=epsilon=1.1e-5"},
    {{"norm",
      0,
      {"x float[64,64]"},
      {"s float[64] positive"},
      {"LayerNormalization n x s -> y"},
      "y"},
     ASSAY_FORMAT_FP16,
     ASSAY_FORMAT_FP16,
     "n:set=epsilon=1e-3"},
    {{"long", 0, {"x float[4,8192]"}, {"w float[8192,32]"}, {"MatMul n x w -> y"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:terms=1"},
    {{"mean", 0, {"x float[8,1024] positive"}, {0}, {"ReduceMean n x -> y | axes=1"}, "y"},
     ASSAY_FORMAT_FP32,
     0,
     "n:terms=1"},
    {{"half",
      0,
      {"x float[1,2,16,16]"},
      {"sc float[4] 1 1 2 2"},
      {"Resize n x _ sc -> y | mode=linear coordinate_transformation_mode=half_pixel"},
      "y"},
     ASSAY_FORMAT_FP16,
     0,
     "n:set=coordinate_transformation_mode=asymmetric"},
};

// Gives whether all elements by themselves could be rounding.
static bool hides(const fault_t* f, const char* inject) {
  const row_t row = {
      .format = f->format, .accumulator = f->accumulator, .node = "n", .inject = inject};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&f->graph, in);
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  const assay_layer_account_t* l = account_of(&row, m, in, &plan, &a);
  if ((l->verdict == ASSAY_VERDICT_DEFECT) != (inject != NULL))
    fail_msg("'%s' with '%s': %s; %lld of %lld elements beyond, %lld between, outlying by %.3g",
             f->graph.name, inject ? inject : "no fault", assay_verdict_name(l->verdict),
             (long long)l->judged.beyond, (long long)l->judged.elements,
             (long long)l->judged.between, l->outlying_by);
  const bool hidden = !l->judged.beyond;
  assay_account_destroy(a);
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(in);
  return hidden;
}

static void small_faults_are_caught(void** state) {
  (void)state;
  int hidden = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    assert_true(hides(&faults[i], NULL));
    hidden += hides(&faults[i], faults[i].inject);
  }
  assert_true(hidden >= 6);  // or this tests the guaranteed bound only
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_verdict_is_given), cmocka_unit_test(perturbations_are_told_apart),
      cmocka_unit_test(perturbations_of_fused_layers),
      cmocka_unit_test(hidden_values_of_declared_types), cmocka_unit_test(small_faults_are_caught)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
