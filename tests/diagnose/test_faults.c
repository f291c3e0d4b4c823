// Passes and tactics that are wrong are named; healthy ones are not.
#include "backends/cpu_level.h"
#include "debug/pass_debug.h"
#include "debug/tactic_debug.h"
#include "diagnose/injected/injected.h"
#include "passes/graph_case.h"

#define NET                                                                           \
  {"x float[1,3,8,8]"}, {"w float[4,3,3,3]", "s float[4] positive", "b float[4]",     \
                         "m float[4]",       "v float[4] positive", "k float[] 0.7"}, \
      {"Conv conv x w -> c | pads=1,1,1,1", "BatchNormalization norm c s b m v -> n", \
       "Relu cut n -> r", "Mul scale r k -> e", "Sub less e n -> y"},                 \
      "y"

#define PRODUCTS                                          \
  {"x float[4,32]"}, {"w float[32,16]", "v float[16,8]"}, \
      {"MatMul one x w -> a", "Relu cut a -> b", "MatMul two b v -> y"}, "y"

typedef struct pass_row {
  graph_case_t graph;
  injected_pass_t injected;
  assay_format_t format;
  const assay_backend_t* backend;
  assay_pass_effect_t effect;  // of the guilty pass; NONE: there is none
  const char *pass, *node;     // the guilty one, and a node that it is to name
} pass_row_t;

static const pass_row_t pass_rows[] = {
    {{"healthy", 0, NET},
     INJECTED_NO_PASS,
     ASSAY_FORMAT_FP32,
     &assay_backend_cpu,
     ASSAY_EFFECT_NONE,
     NULL,
     NULL},
    {{"healthy", 0, NET},
     INJECTED_NO_PASS,
     ASSAY_FORMAT_BF16,
     &assay_backend_emu,
     ASSAY_EFFECT_NONE,
     NULL,
     NULL},
    {{"swapped", 0, NET},
     INJECTED_SWAP,
     ASSAY_FORMAT_FP32,
     &assay_backend_cpu,
     ASSAY_EFFECT_TRUTH,
     "injected",
     "less"},
    {{"swapped", 0, NET},
     INJECTED_SWAP,
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     ASSAY_EFFECT_TRUTH,
     "injected",
     "less"},
    // Truth stays what it is.
    {{"scaled", 0, PRODUCTS},
     INJECTED_SCALE,
     ASSAY_FORMAT_FP32,
     &assay_backend_cpu,
     ASSAY_EFFECT_NONE,
     NULL,
     NULL},
    {{"scaled", 0, PRODUCTS},
     INJECTED_SCALE,
     ASSAY_FORMAT_FP16,
     &assay_backend_emu,
     ASSAY_EFFECT_ENGINE,
     "injected",
     "two"},
};

static bool names(const assay_pass_blame_t* b, const char* label) {
  for (size_t i = 0; i < b->n_nodes; i++)
    if (strcmp(b->nodes[i]->label, label) == 0) return true;
  return false;
}

static void the_wrong_pass_is_named(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof pass_rows / sizeof *pass_rows; i++) {
    const pass_row_t* r = &pass_rows[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&r->graph, in);
    const assay_samples_t inputs = {.n = 1, .n_values = m->graph->n_inputs, .at = in};
    const assay_check_setting_t o = {.precision = {.format = r->format},
                                     .plan = {.fused = true},
                                     .precision_name = "p",
                                     .backend = r->backend};
    assay_pass_blame_t b = {0};
    injected_pass = r->injected;
    op_case_ok(assay_pass_debug(m, &o, &inputs, NULL, &b));
    injected_pass = INJECTED_NO_PASS;
    if (!b.guilty != !r->pass)
      fail_msg("%s: %s is guilty", r->graph.name, b.guilty ? b.guilty->pass->name : "no pass");
    if (r->pass) {
      assert_string_equal(b.guilty->pass->name, r->pass);
      if (b.guilty->effect != r->effect)
        fail_msg("%s: effect '%s'", r->graph.name, assay_pass_effect_name(b.guilty->effect));
      if (!names(&b, r->node)) fail_msg("%s: '%s' is not named", r->graph.name, r->node);
      assert_true(b.why.len && b.value.len);
    } else if (!r->injected) {
      // BatchNorm went into the weights, which were rounded once: seen, and explained.
      bool rounded = false;
      for (size_t k = 0; k < b.n; k++)
        rounded |= b.at[k].truth_moved > 0 && b.at[k].effect >= ASSAY_EFFECT_ROUNDING;
      assert_true(rounded);
    }
    assay_pass_blame_deinit(&b);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// ---- tactics ------------------------------------------------------------------------------------

typedef struct tactic_row {
  graph_case_t graph;
  injected_tactic_t injected;
  assay_format_t format;
  const char* layer;           // asked for; NULL: all
  assay_tactic_fault_t fault;  // of the injected one; SOUND: it does not take the layers
  size_t tactics;              // of some layer, at least; one fewer where there is no AVX-512
} tactic_row_t;

static const tactic_row_t tactic_rows[] = {
    {{"healthy", 0, PRODUCTS}, INJECTED_NO_TACTIC, ASSAY_FORMAT_FP32, NULL, ASSAY_TACTIC_SOUND, 2},
    {{"healthy", 0, PRODUCTS}, INJECTED_NO_TACTIC, ASSAY_FORMAT_BF16, NULL, ASSAY_TACTIC_SOUND, 1},
    {{"convolutions", 0, NET}, INJECTED_NO_TACTIC, ASSAY_FORMAT_FP32, NULL, ASSAY_TACTIC_SOUND, 2},
    {{"an element", 0, PRODUCTS},
     INJECTED_ELEMENT,
     ASSAY_FORMAT_FP32,
     NULL,
     ASSAY_TACTIC_BEYOND,
     3},
    {{"an element", 0, PRODUCTS},
     INJECTED_ELEMENT,
     ASSAY_FORMAT_FP32,
     "two",
     ASSAY_TACTIC_BEYOND,
     3},
    {{"a NaN", 0, PRODUCTS}, INJECTED_NAN, ASSAY_FORMAT_FP32, NULL, ASSAY_TACTIC_INVALID, 3},
    {{"elsewhere", 0, NET}, INJECTED_ELEMENT, ASSAY_FORMAT_FP32, NULL, ASSAY_TACTIC_SOUND, 2},
};

static void judge_layers(const tactic_row_t* r, const assay_tactic_blame_t* b) {
  size_t max = 0, faults = 0;
  for (size_t i = 0; i < b->n_layers; i++) {
    const assay_tactic_layer_t* l = &b->layers[i];
    if (l->n > max) max = l->n;
    for (size_t k = 0; k < l->n; k++) {
      const assay_tactic_account_t* a = &l->at[k];
      const bool injected = strcmp(a->name, "injected") == 0;
      if (!injected && a->fault)
        fail_msg("%s: '%s' by %s is %s", r->graph.name, l->layer->name, a->name,
                 assay_tactic_fault_name(a->fault));
      // What the plan has chosen gives what it gave there.
      if (a->chosen && !a->same_bits && !(injected && r->injected == INJECTED_NAN))
        fail_msg("%s: '%s' by %s, which was chosen, gives other bits", r->graph.name,
                 l->layer->name, a->name);
      faults += a->fault != ASSAY_TACTIC_SOUND;
      if (injected && a->fault) assert_int_equal(a->fault, r->fault);
    }
  }
  assert_int_equal(faults, b->n_faults);
  if (!faults != !r->fault) fail_msg("%s: %zu faults", r->graph.name, faults);
  if (max < r->tactics - (r->tactics > 1 && cpu_level_held() < CPU_LEVEL_AVX512))
    fail_msg("%s: %zu tactics at most", r->graph.name, max);
  if (r->layer) assert_int_equal(b->n_layers, 1);
}

static void the_wrong_tactic_is_named(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof tactic_rows / sizeof *tactic_rows; i++) {
    const tactic_row_t* r = &tactic_rows[i];
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&r->graph, in);
    const assay_samples_t inputs = {.n = 1, .n_values = m->graph->n_inputs, .at = in};
    const assay_tactic_options_t options = {.layer = r->layer};
    const assay_check_setting_t o = {.precision = {.format = r->format},
                                     .plan = {.fused = true},
                                     .precision_name = "p",
                                     .backend = &assay_backend_cpu};
    assay_tactic_blame_t b = {0};
    injected_tactic = r->injected;
    op_case_ok(assay_tactic_debug(m, &o, &options, &inputs, &b));
    injected_tactic = INJECTED_NO_TACTIC;
    judge_layers(r, &b);
    assay_tactic_blame_deinit(&b);
    assay_model_release(m);
    graph_case_release(in);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_wrong_pass_is_named),
                                     cmocka_unit_test(the_wrong_tactic_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
