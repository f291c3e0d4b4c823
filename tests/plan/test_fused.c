// Fused plans on emu: taps change no bit, hidden values are kept wider and reported where they are
// at risk, and layers are judged by what leaves them.
#include "account/account.h"
#include "passes/graph_case.h"

static const graph_case_t conv_case = {
    "conv",
    15,
    {"x float[1,3,9,9]"},
    {"w float[4,3,3,3]", "b float[4]", "s float[4]", "o float[4]", "m float[4]",
     "v float[4] positive", "w2 float[81,5]", "bias float[5]", "two float[] 2",
     "x1 float[1,4,1,1]"},
    {"Conv conv x w b -> c | pads=1,1,1,1", "BatchNormalization bn c s o m v -> d",
     "Sigmoid sig d -> e", "Mul silu d e -> f", "Mul k f two -> g", "Add sum g x1 -> h",
     "Flatten flat h -> i | axis=2", "Gemm fc i w2 bias -> l", "Tanh th l -> y"},
    "y"};

static assay_account_t* account_of(assay_model_t* m, assay_format_t format, bool fused,
                                   assay_tensor_t* const* in, assay_plan_t** out_plan) {
  assay_account_t* a = NULL;
  assay_precision_t p = {.format = format};
  op_case_ok(assay_plan_create(m, &p, &(assay_plan_options_t){.fused = fused}, 0, out_plan));
  op_case_ok(
      assay_account_create(*out_plan, &assay_backend_emu, &(assay_account_options_t){0}, &a));
  op_case_ok(assay_account_run(a, in));
  return a;
}

// ---- taps ---------------------------------------------------------------------------------------

typedef struct seen {
  const assay_layers_t* layers;
  size_t calls;
} seen_t;

static assay_status_t inspect(void* user, const assay_layer_t* layer, const assay_node_t* node,
                              uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                              size_t n_out, assay_tensor_t* const* out) {
  seen_t* s = user;
  assert_true(iteration == 0);
  s->calls++;
  size_t n = 0;
  for (size_t k = 0; k < layer->n_nodes; k++)
    for (size_t i = 0; i < layer->nodes[k]->n_inputs; i++, n++) {
      const assay_value_t* v = layer->nodes[k]->inputs[i];
      bool visible = v && !s->layers->hidden_value[v->id];
      assert_int_equal(visible, in[n] != NULL);
    }
  assert_int_equal(n, n_in);
  assert_ptr_equal(node, layer->nodes[layer->n_nodes - 1]);
  assert_int_equal(n_out, node->n_outputs);
  assert_non_null(out[0]);
  return NULL;
}

// Runs a plan and gives copies of its outputs.
static void run_plan(const assay_layers_t* layers, bool tapped, assay_tensor_t* const* in,
                     assay_tensor_t** out) {
  const assay_graph_t* g = layers->model->graph;
  seen_t seen = {.layers = layers};
  assay_tap_t tap = {.layer = inspect, .user = &seen};
  void* state = NULL;
  op_case_ok(assay_backend_emu.open(layers, NULL, tapped ? &tap : NULL, &state));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (in[i]) op_case_ok(assay_backend_emu.set(state, g->inputs[i], in[i]));
  for (size_t i = 0; i < layers->n_layers; i++) op_case_ok(assay_backend_emu.step(state, i));
  if (tapped) assert_int_equal(seen.calls, layers->n_layers);
  for (size_t i = 0; i < g->n_outputs; i++)
    out[i] = assay_tensor_retain(assay_backend_emu.get(state, g->outputs[i]));
  assay_backend_emu.close(state);
}

static void taps_change_no_bit_of(assay_model_t* m, assay_tensor_t* const* in) {
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16,
                                           ASSAY_FORMAT_TF32};
  for (size_t f = 0; f < 2 * sizeof formats / sizeof *formats; f++) {
    assay_plan_t* plan = NULL;
    assay_tensor_t *with[8], *without[8];
    assay_precision_t p = {.format = formats[f / 2]};
    op_case_ok(assay_plan_create(m, &p, &(assay_plan_options_t){.fused = f & 1}, 0, &plan));
    const assay_layers_t* layers = assay_plan_layers(plan);
    run_plan(layers, false, in, without);
    run_plan(layers, true, in, with);
    for (size_t i = 0; i < m->graph->n_outputs; i++) {
      assert_int_equal(with[i]->size, without[i]->size);
      assert_memory_equal(with[i]->data, without[i]->data, (size_t)with[i]->size * 8);
      assay_tensor_release(with[i]);
      assay_tensor_release(without[i]);
    }
    assay_plan_destroy(plan);
  }
}

static void taps_change_no_bit(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&conv_case, in);
  taps_change_no_bit_of(m, in);
  assay_model_release(m);
  graph_case_release(in);
}

// ---- hidden values ------------------------------------------------------------------------------

// 1.8e5 between two nodes: too large for fp16, small again behind them.
static const graph_case_t tall_case = {"tall",
                                       17,
                                       {"x float[4] 1 2 3 -3"},
                                       {"up0 float[] 6e4", "down0 float[] 1e-4"},
                                       {"Mul up x up0 -> p", "Mul down p down0 -> y"},
                                       "y"};

static void hidden_values_are_at_risk(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&tall_case, in);
  for (int fused = 0; fused < 2; fused++) {
    assay_plan_t* plan = NULL;
    assay_account_t* a = account_of(m, ASSAY_FORMAT_FP16, fused, in, &plan);
    const assay_layer_account_t* first = assay_account_layer(a, 0);
    assert_int_equal(assay_account_layer_count(a), fused ? 1 : 2);
    if (fused) {
      assert_int_equal(first->verdict < ASSAY_VERDICT_UNDERFLOW, 1);
      assert_int_equal(first->at_risk.count, 3);  // 1.2e5, 1.8e5, -1.8e5
      assert_true(fabs(first->at_risk.max - 1.8e5) < 100);
      assert_string_equal(first->at_risk.value->name, "p");
      assert_string_equal(first->layer->name, "up .. down");
    } else {
      assert_int_equal(first->verdict, ASSAY_VERDICT_OVERFLOW);
      assert_int_equal(first->judged.overflowed, 3);
      assert_int_equal(first->at_risk.count, 0);
      assert_null(first->at_risk.value);
    }
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

// ---- own and inherited error of layers ----------------------------------------------------------

// In fp32 own errors are roundings; in fp64 there is none to speak of, so that what is computed of
// a layer of several nodes is its nodes' work.
static void layers_are_judged_by_what_leaves_them(void** state) {
  (void)state;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&conv_case, in);
  static const struct {
    assay_format_t format;
    double limit;
  } rows[] = {{ASSAY_FORMAT_FP64, 1e-14}, {ASSAY_FORMAT_FP32, 1e-6}, {ASSAY_FORMAT_FP16, 5e-3}};
  for (size_t r = 0; r < 3; r++) {
    assay_plan_t* plan = NULL;
    assay_account_t* a = account_of(m, rows[r].format, true, in, &plan);
    const assay_layers_t* layers = assay_plan_layers(plan);
    assert_int_equal(assay_account_layer_count(a), layers->n_layers);
    for (size_t i = 0; i < layers->n_layers; i++) {
      const assay_layer_account_t* l = assay_account_layer(a, i);
      assert_ptr_equal(l->layer, &layers->layers[i]);
      assert_int_equal(l->runs, 1);
      assert_true(l->own.n > 0 && l->inherited.n == l->own.n);
      double own = sqrt(l->own.sum_err2 / l->own.sum_ref2);
      double inherited = sqrt(l->inherited.sum_err2 / l->inherited.sum_ref2);
      if (!(own <= rows[r].limit) || !(inherited <= 4 * rows[r].limit))
        fail_msg("%s in %s: own %g, inherited %g", l->layer->name,
                 assay_format_name(rows[r].format), own, inherited);
      if (rows[r].format == ASSAY_FORMAT_FP16)
        assert_true(own > 0 || l->verdict == ASSAY_VERDICT_EXACT);
    }
    assay_account_destroy(a);
    assay_plan_destroy(plan);
  }
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(taps_change_no_bit),
      cmocka_unit_test(hidden_values_are_at_risk),
      cmocka_unit_test(layers_are_judged_by_what_leaves_them),
  };
  return cmocka_run_group_tests_name("fused", tests, NULL, NULL);
}
