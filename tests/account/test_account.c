// The account adds up, sees a injected fault where it is and nowhere else, and changes nothing
// about what it watches.
#include "account/account_case.h"
#include "account/local.h"
#include "base/alloc.h"
#include "ops/op_case.h"
#include "passes/graph_case.h"

static const char* const models[] = {"classifier", "transformer", "loop",     "external",
                                     "quantized",  "detector",    "small/cnn"};
enum { N_MODELS = sizeof models / sizeof *models };

static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_TF32, ASSAY_FORMAT_BF16,
                                         ASSAY_FORMAT_FP16};
enum { N_FORMATS = sizeof formats / sizeof *formats };

static assay_plan_t* plan_of(assay_model_t* m, assay_format_t format, bool fused,
                             const char* inject) {
  const assay_precision_t p = {.format = format};
  const assay_plan_options_t o = {.fused = fused, .inject = inject};
  assay_plan_t* plan = NULL;
  op_case_ok(assay_plan_create(m, &p, &o, 0, &plan));
  return plan;
}

// ---- total = own + inherited --------------------------------------------------------------------

static void adds_up(const char* name, assay_format_t format, bool fused) {
  assay_samples_t inputs = {0};
  assay_model_t* m = NULL;
  op_case_ok(account_case_model(name, &m, &inputs));
  assay_plan_t* plan = plan_of(m, format, fused, NULL);
  account_case_t c = {0};
  assay_account_t* a = NULL;
  op_case_ok(account_case_run(plan, assay_samples_get(&inputs, 0), &c, &a));
  if (!(c.worst <= 1e-12) || c.other_engine || (c.other_truth && !c.flipped) || !c.same_checksum ||
      !c.same_outputs)
    fail_msg(
        "%s in %s%s: %.3g in '%s', %lld values not the engine's, %lld not truth's, checksum "
        "%d, outputs %d",
        name, assay_format_name(format), fused ? ", fused" : "", c.worst, c.worst_value,
        (long long)c.other_engine, (long long)c.other_truth, c.same_checksum, c.same_outputs);
  assert_true(c.values > 0 && c.finite > 0);
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (l->verdict == ASSAY_VERDICT_DEFECT) fail_msg("%s: '%s' is a defect", name, l->node->label);
    // Sums are of the same elements: the triangle holds.
    const double own = sqrt(l->own.sum_err2), inherited = sqrt(l->inherited.sum_err2);
    if (!l->own.mismatched && !l->inherited.mismatched && !l->total.mismatched &&
        l->own.n == l->total.n)
      assert_true(sqrt(l->total.sum_err2) <= (own + inherited) * (1 + 1e-9));
  }
  assay_account_destroy(a);
  account_case_deinit(&c);
  assay_plan_destroy(plan);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
}

static void errors_add_up(void** state) {
  (void)state;
  for (size_t i = 0; i < N_MODELS; i++)
    for (size_t f = 0; f < N_FORMATS; f++)
      for (int fused = 0; fused < 2; fused++) adds_up(models[i], formats[f], fused);
}

// ---- injected faults
// -----------------------------------------------------------------------------

static double ratio_of(const assay_layer_account_t* a) {
  return a->own.sum_ref2 > 0 ? sqrt(a->own.sum_err2 / a->own.sum_ref2) : 0;
}

// Moves the outputs of one node by one element. Whatever that does to those behind it, their own
// errors stay rounding.
static void inject_in(assay_model_t* m, const assay_samples_t* inputs, const assay_node_t* node,
                      assay_format_t format, int* n_seen) {
  char inject[512];
  snprintf(inject, sizeof inject, "%s:shift=1", node->label);
  assay_plan_t* plan = plan_of(m, format, false, inject);
  assay_account_t* a = NULL;
  op_case_ok(assay_account_create(plan, &assay_backend_emu, &(assay_account_options_t){0}, &a));
  op_case_ok(assay_account_run(a, assay_samples_get(inputs, 0)));
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_layer_account_t* l = assay_account_layer(a, i);
    if (l->node == node) {
      if (!l->injected.changed) continue;
      if (l->verdict != ASSAY_VERDICT_DEFECT)
        fail_msg("'%s' with a fault is %s", node->label, assay_verdict_name(l->verdict));
      ++*n_seen;
    } else if (l->verdict == ASSAY_VERDICT_DEFECT || l->judged.beyond || l->judged.born_nan ||
               (!l->judged.overflowed && ratio_of(l) > 16 * assay_bound_unit(format))) {
      fail_msg("a fault in '%s' makes '%s' %s, with an own error of %.3g", node->label,
               l->node->label, assay_verdict_name(l->verdict), ratio_of(l));
    }
  }
  assay_account_destroy(a);
  assay_plan_destroy(plan);
}

static void a_fault_stays_in_its_layer(void** state) {
  (void)state;
  static const char* const names[] = {"classifier", "transformer", "small/cnn"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    assay_samples_t inputs = {0};
    assay_model_t* m = NULL;
    op_case_ok(account_case_model(names[k], &m, &inputs));
    int seen = 0;
    for (size_t i = 0; i < m->graph->n_nodes; i++)
      inject_in(m, &inputs, m->graph->nodes[i], i & 1 ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_FP32,
                &seen);
    if (seen * 2 < (int)m->graph->n_nodes) fail_msg("%s: only %d faults showed", names[k], seen);
    assay_samples_deinit(&inputs);
    assay_model_release(m);
  }
}

// ---- hidden values of fused layers --------------------------------------------------------------

enum { MAX_HIDDEN = 64 };

// The hidden values of one layer, as they were derived again.
typedef struct hidden {
  const assay_layers_t* layers;
  assay_locals_t* locals;
  assay_evaluator_t* truth;
  const assay_value_t* value[MAX_HIDDEN];
  assay_tensor_t* tensor[MAX_HIDDEN];
  size_t n;
  int compared;
} hidden_t;

static void note_hidden(void* user, const assay_layer_t* layer, const assay_value_t* value,
                        const assay_tensor_t* t, const assay_limits_t* limits) {
  hidden_t* h = user;
  (void)layer, (void)limits;
  assert_true(h->n < MAX_HIDDEN);
  h->value[h->n] = value;
  op_case_ok(assay_tensor_copy(t, &h->tensor[h->n++]));
}

static assay_tensor_t* find_hidden(const hidden_t* h, const assay_value_t* v) {
  for (size_t i = 0; i < h->n; i++)
    if (h->value[i] == v) return h->tensor[i];
  return NULL;
}

// A node of a fused layer in float64, from what the layer was given and from its hidden values.
static void derive_node(hidden_t* h, const assay_layer_t* layer, const assay_node_t* node,
                        assay_tensor_t* const* entered) {
  assay_tensor_t *in[16] = {NULL}, *out[8] = {NULL};
  assert_true(node->n_inputs <= 16 && node->n_outputs <= 8);
  for (size_t i = 0; i < node->n_inputs; i++) {
    if (!node->inputs[i]) continue;
    assay_tensor_t* wide = NULL;
    assay_tensor_t* t = entered[i] ? entered[i] : find_hidden(h, node->inputs[i]);
    assert_non_null(t);
    const assay_format_t format =
        entered[i] ? assay_layer_operand(h->layers, layer, node, i, t) : ASSAY_FORMAT_NONE;
    op_case_ok(assay_tensor_widen(t, &wide));
    if (format != ASSAY_FORMAT_NONE)
      op_case_ok(assay_round_tensor(wide, format, &in[i]));
    else
      in[i] = assay_tensor_retain(wide);
    assay_tensor_release(wide);
  }
  op_case_ok(assay_evaluator_node(h->truth, node, node->n_inputs, in, node->n_outputs, out));
  for (size_t o = 0; o < node->n_outputs; o++) {
    const assay_tensor_t* said = node->outputs[o] ? find_hidden(h, node->outputs[o]) : NULL;
    if (said && out[o]) {
      assert_int_equal(account_case_hash(said), account_case_hash(out[o]));
      h->compared++;
    }
    assay_tensor_release(out[o]);
  }
  for (size_t i = 0; i < node->n_inputs; i++) assay_tensor_release(in[i]);
}

static assay_status_t derive_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                                   uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                                   size_t n_out, assay_tensor_t* const* out) {
  hidden_t* h = user;
  (void)iteration, (void)n_out, (void)out;
  if (!layer || layer->n_nodes < 2) return NULL;
  const assay_hidden_tap_t tap = {.value = note_hidden, .user = h};
  assay_local_t local = {0};
  assay_rounding_t rounding = {.accumulator = layer->accumulator,
                               .compute = ASSAY_FORMAT_FP32,
                               .documented = true,
                               .fma = true,
                               .function_ulps = 1};
  ASSAY_TRY(assay_locals_run(h->locals, layer, node, n_in, in, &rounding, &tap, &local));
  for (size_t k = 0; k + 1 < layer->n_nodes; k++) {
    derive_node(h, layer, layer->nodes[k], in);
    in += layer->nodes[k]->n_inputs;
  }
  assay_local_deinit(&local);
  for (size_t i = 0; i < h->n; i++) assay_tensor_release(h->tensor[i]);
  h->n = 0;
  return NULL;
}

static void derive_of(const char* name, assay_format_t format) {
  assay_samples_t inputs = {0};
  assay_model_t* m = NULL;
  op_case_ok(account_case_model(name, &m, &inputs));
  assay_plan_t* plan = plan_of(m, format, true, NULL);
  hidden_t h = {.layers = assay_plan_layers(plan)};
  const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH};
  const assay_tap_t tap = {.layer = derive_layer, .user = &h};
  void* state = NULL;
  op_case_ok(assay_evaluator_create(h.layers->model, &config, &h.truth));
  op_case_ok(assay_locals_create(h.layers, false, &h.locals));
  op_case_ok(assay_backend_emu.open(h.layers, NULL, &tap, &state));
  op_case_ok(assay_backend_set_inputs(&assay_backend_emu, state, h.layers->model->graph,
                                      assay_samples_get(&inputs, 0)));
  for (size_t i = 0; i < h.layers->n_layers; i++) op_case_ok(assay_backend_emu.step(state, i));
  assert_true(h.compared > 0);
  assay_backend_emu.close(state);
  assay_locals_destroy(h.locals);
  assay_evaluator_destroy(h.truth);
  assay_plan_destroy(plan);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
}

static void hidden_values_are_derived_again(void** state) {
  (void)state;
  static const char* const names[] = {"classifier", "transformer", "small/cnn"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    for (size_t f = 0; f < N_FORMATS; f++) derive_of(names[k], formats[f]);
}

// ---- checksums ----------------------------------------------------------------------------------

static void checksums_tell_plans_apart(void** state) {
  (void)state;
  assay_samples_t inputs = {0};
  assay_model_t* m = NULL;
  op_case_ok(account_case_model("classifier", &m, &inputs));
  assay_plan_t* plans[] = {
      plan_of(m, ASSAY_FORMAT_FP16, false, NULL), plan_of(m, ASSAY_FORMAT_FP16, false, NULL),
      plan_of(m, ASSAY_FORMAT_BF16, false, NULL), plan_of(m, ASSAY_FORMAT_FP16, true, NULL)};
  assert_true(assay_plan_checksum(plans[0]) == assay_plan_checksum(plans[1]));
  assert_true(assay_plan_checksum(plans[0]) != assay_plan_checksum(plans[2]));
  assert_true(assay_plan_checksum(plans[0]) != assay_plan_checksum(plans[3]));
  for (size_t i = 0; i < 4; i++) assay_plan_destroy(plans[i]);
  assay_samples_deinit(&inputs);
  assay_model_release(m);
}

// What is compared of output i, the engine's and truth's; not there: of another number.
static uint64_t compared(const assay_account_t* a, size_t i) {
  const uint64_t both[] = {account_case_hash(assay_account_engine_output(a, i)),
                           account_case_hash(assay_account_truth_output(a, i))};
  return assay_hash(both, sizeof both, 0);
}

// Where memory runs out, that is said: outputs that were not compared would be taken for exact, and
// what was made of less must not be compared.
static void no_output_is_left_out(void** state) {
  (void)state;
  static const graph_case_t two = {"two outputs",
                                   17,
                                   {"x float[4,8]"},
                                   {"w float[8,8]", "v float[8,4]"},
                                   {"MatMul one x w -> y", "MatMul two y v -> z"},
                                   "y z"};
  const assay_precision_t precision = {.format = ASSAY_FORMAT_BF16};
  const assay_plan_options_t fused = {.fused = true};
  const assay_account_options_t options = {.outputs_only = true};
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&two, in);
  assay_plan_t* plan = NULL;
  op_case_ok(assay_plan_create(m, &precision, &fused, 0, &plan));
  assay_account_t* whole = NULL;
  op_case_ok(assay_account_create(plan, &assay_backend_cpu, &options, &whole));
  op_case_ok(assay_account_run(whole, in));
  for (size_t i = 0; i < m->graph->n_outputs; i++) {
    const assay_tensor_t *engine = assay_account_engine_output(whole, i),
                         *truth = assay_account_truth_output(whole, i);
    assert_true(engine->size > 0 && truth->size == engine->size);
    assert_true(account_case_hash(engine) != account_case_hash(truth));  // bf16 rounds
  }
  bool reached = true;
  for (uint64_t n = 1; reached; n++) {
    assay_account_t* a = NULL;
    op_case_ok(assay_account_create(plan, &assay_backend_cpu, &options, &a));
    assay_alloc_fail_after(n, false);
    assay_status_t st = assay_account_run(a, in);
    reached = assay_alloc_fail_after(0, false) >= n;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    for (size_t i = 0; !st && i < m->graph->n_outputs; i++)
      if (compared(a, i) != compared(whole, i))
        fail_msg("allocation %d fails, and other numbers of output %zu are compared", (int)n, i);
    assay_status_free(st);
    assay_account_destroy(a);
  }
  assay_account_destroy(whole);
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(in);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_add_up), cmocka_unit_test(a_fault_stays_in_its_layer),
      cmocka_unit_test(hidden_values_are_derived_again),
      cmocka_unit_test(checksums_tell_plans_apart), cmocka_unit_test(no_output_is_left_out)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
