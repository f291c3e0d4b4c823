// Faults injected in the emulated engine: the layer that has one is the only defect, and what is no
// fault is refused.
#include "account/account.h"
#include "passes/graph_case.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[2,4,8,8]"},
    {"w float[6,4,3,3]", "w2 float[6,4,3,3]", "b float[6]", "s float[6] positive", "o float[6]",
     "m float[6]", "v float[6] positive", "k float[] 1.7", "weights float[12,12]"},
    {"Conv conv x w b -> c | pads=1,1,1,1", "BatchNormalization bn c s o m v -> n",
     "Sigmoid sig n -> e", "Mul mul n e -> p", "Sub sub p k -> q", "LeakyRelu leaky q -> l",
     "Transpose turn l -> t | perm=0,2,3,1", "ReduceMean mean t -> r | axes=1,2 keepdims=0",
     "Concat join r r -> j | axis=1", "MatMul fc j weights -> y0", "Softmax soft y0 -> y"},
    "y"};

// Fused, all from `dx` to `qm` is one layer on integers.
static const graph_case_t quantized = {
    "quantized",
    17,
    {"x float[2,4,8,8]"},
    {"w int8[4,4,1,1] 90 -20 33 7 -50 60 11 -3 8 100 -70 2 5 -9 40 80", "sx float[] 0.01",
     "z uint8[] 128", "sw float[] 0.02", "zw int8[] 0", "sy float[] 0.03", "zy uint8[] 90"},
    {"QuantizeLinear q x sx z -> xq", "DequantizeLinear dx xq sx z -> xf",
     "DequantizeLinear dw w sw zw -> wf", "Conv conv xf wf -> c",
     "LeakyRelu act c -> m | alpha=0.1", "QuantizeLinear qm m sy zy -> mq",
     "DequantizeLinear dm mq sy zy -> y"},
    "y"};

static const char* const faults_on_integers[] = {
    "conv:stale=1,2",        "conv:scale=1,1.05", "conv:terms=1",
    "conv:set=pads=1,1,0,0", "act:set=alpha=0.3", "act:tail=300",
    "dx:scale=1,0.9",        "qm:shift=1",        "qm:add=2,0,3",
};

static const struct {
  const char* fault;
  const char* layer;
} faults[] = {
    {"bn:set=epsilon=1e-3", "bn"},
    {"leaky:set=alpha=0.02", "leaky"},
    {"conv:set=pads=2,1,0,1", "conv"},
    {"sub:swap=0,1", "sub"},
    {"conv:scale=1,1.01", "conv"},
    {"bn:add=2,3,1", "bn"},
    {"conv:stale=1,2", "conv"},
    {"conv:constant=1,w2", "conv"},
    {"conv:stale=1,2", "conv"},
    {"fc:enter=fp16", "fc"},
    {"fc:terms=1", "fc"},
    {"conv:terms=2", "conv"},
    {"mean:terms=1", "mean"},
    {"conv:accumulate=fp16", "conv"},
    {"fc:accumulate=bf16", "fc"},
    {"mul:round=zero", "mul"},
    {"sig:store=bf16", "sig"},
    {"conv:tail=3", "conv"},
    {"turn:shift=1", "turn"},
    {"sig:op=Tanh", "sig"},
};

// What is not a fault, or fits no node.
static const char* const refused[] = {
    "",
    "conv",
    "conv:",
    "conv:set",
    "conv:set=pads",
    "conv:oops=1",
    "nowhere:tail=1",
    "conv:set=nothing=1",
    "conv:scale=1",
    "conv:scale=1,x",
    "conv:tail=a",
    "conv:constant=1,nothing",
    "sig:op=Nothing",
    "conv:store=int8",
    "mul:round=up",
    "conv:add=1,2,3,4",
    "bn:set=epsilon=x",
};

static assay_status_t run_injected(assay_model_t* m, assay_tensor_t* const* in, const char* fault,
                                   assay_format_t format, assay_plan_t** plan,
                                   assay_account_t** a) {
  const assay_precision_t p = {.format = format};
  *a = NULL;
  op_case_ok(assay_plan_create(m, &p, &(assay_plan_options_t){.inject = fault}, 0, plan));
  ASSAY_TRY(assay_account_create(*plan, &assay_backend_emu, &(assay_account_options_t){0}, a));
  return assay_account_run(*a, in);
}

static void only_the_injected_layer_is_a_defect(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&network, in);
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
    assay_plan_t* plan = NULL;
    assay_account_t* a = NULL;
    op_case_ok(run_injected(m, in, faults[i].fault, ASSAY_FORMAT_FP32, &plan, &a));
    for (size_t k = 0; k < assay_account_layer_count(a); k++) {
      const assay_layer_account_t* l = assay_account_layer(a, k);
      const bool here = strcmp(l->layer->name, faults[i].layer) == 0;
      assert_int_equal(l->injected.here, here);
      if ((l->verdict == ASSAY_VERDICT_DEFECT) != here)
        fail_msg("'%s': %s is %s", faults[i].fault, l->layer->name, assay_verdict_name(l->verdict));
      if (here) assert_true(l->injected.changed >= l->injected.past && l->injected.past > 0);
    }
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

// The faulty layer is a defect, though none of its nodes is computed by itself without the fault.
static void layers_on_integers_can_be_faulty(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&quantized, in);
  for (size_t i = 0; i < sizeof faults_on_integers / sizeof *faults_on_integers; i++) {
    const char* fault = faults_on_integers[i];
    const assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
    const assay_plan_options_t options = {.fused = true, .inject = fault};
    assay_plan_t* plan = NULL;
    assay_account_t* a = NULL;
    op_case_ok(assay_plan_create(m, &p, &options, 0, &plan));
    op_case_ok(assay_account_create(plan, &assay_backend_emu, &(assay_account_options_t){0}, &a));
    op_case_ok(assay_account_run(a, in));
    size_t faulty = 0;
    for (size_t k = 0; k < assay_account_layer_count(a); k++) {
      const assay_layer_account_t* l = assay_account_layer(a, k);
      if ((l->verdict == ASSAY_VERDICT_DEFECT) != l->injected.here)
        fail_msg("'%s': %s is %s", fault, l->layer->name, assay_verdict_name(l->verdict));
      if (l->injected.here && !l->layer->int8) fail_msg("'%s' is not on integers", l->layer->name);
      faulty += l->injected.here;
    }
    assert_int_equal(faulty, 1);
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

static void without_a_fault_there_is_none(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_BF16, ASSAY_FORMAT_FP16};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&network, in);
  for (size_t i = 0; i < 3; i++) {
    assay_plan_t* plan = NULL;
    assay_account_t* a = NULL;
    op_case_ok(run_injected(m, in, NULL, formats[i], &plan, &a));
    for (size_t k = 0; k < assay_account_layer_count(a); k++) {
      assert_false(assay_account_layer(a, k)->injected.here);
      assert_int_not_equal(assay_account_layer(a, k)->verdict, ASSAY_VERDICT_DEFECT);
    }
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

static void what_is_no_fault_is_refused(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&network, in);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    assay_plan_t* plan = NULL;
    assay_account_t* a = NULL;
    assay_status_t st = run_injected(m, in, refused[i], ASSAY_FORMAT_FP32, &plan, &a);
    if (!st) fail_msg("'%s' is taken for a fault", refused[i]);
    assay_status_free(st);
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(only_the_injected_layer_is_a_defect),
      cmocka_unit_test(layers_on_integers_can_be_faulty),
      cmocka_unit_test(without_a_fault_there_is_none),
      cmocka_unit_test(what_is_no_fault_is_refused),
  };
  return cmocka_run_group_tests_name("injected faults", tests, NULL, NULL);
}
