// The emulated engine that is like a GPU: steps of tensor cores by hand, what no kernel of a GPU
// takes, and allocations that fail. Whole models beside the kernels for GPUs: cli/test_like.py.
#include <math.h>

#include "backends/emu/like/exp2.h"
#include "base/alloc.h"
#include "exec/targets.h"
#include "passes/graph_case.h"
#include "plan/plan.h"

static void ok(assay_status_t st) { op_case_ok(st); }

static assay_plan_t* plan_of(assay_model_t* m, assay_format_t format) {
  const assay_precision_t precision = {.format = format};
  const assay_plan_options_t options = {.fused = true};
  assay_plan_t* plan = NULL;
  ok(assay_plan_create(m, &precision, &options, 1, &plan));
  return plan;
}

// Runs a plan on a target; the first output, and how its first layer was run.
static assay_status_t run_plan(const assay_plan_t* plan, const char* target, assay_tensor_t** in,
                               assay_tensor_t** out, const char** way) {
  const assay_backend_t* b = assay_backend_find(target);
  const assay_layers_t* layers = assay_plan_layers(plan);
  const assay_graph_t* g = layers->model->graph;
  void* state = NULL;
  *out = NULL;
  assert_non_null(b);
  ASSAY_TRY(assay_backend_open(b, layers, NULL, NULL, &state));
  assay_status_t st = assay_backend_set_inputs(b, state, g, in);
  for (size_t i = 0; !st && i < layers->n_layers; i++) st = b->step(state, i);
  if (!st) st = assay_backend_output(b, state, g->outputs[0], out);
  if (!st && way) *way = b->tactic(state, 0);
  if (!st) assay_tensor_retain(*out);
  b->close(state);
  return st;
}

// ---- steps --------------------------------------------------------------------------------------

// A sum of 16 products x[i] * w[i] in tf32, which is stored as float32: the first product, and then
// all others alike.
static double sum_on(const char* target, const double first[2], const double others[2]) {
  static const graph_case_t text = {
      .inputs = {"x float[1,16]", "w float[16,1]"}, .nodes = {"MatMul a x w -> y"}, .outputs = "y"};
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *y = NULL;
  assay_model_t* m = graph_case_model(&text, in);
  assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_TF32);
  for (int k = 0; k < 2; k++)
    for (int i = 0; i < 16; i++) assay_f64(in[k])[i] = i ? others[k] : first[k];
  ok(run_plan(plan, target, in, &y, NULL));
  const double sum = assay_f64(y)[0];
  assay_tensor_release(y);
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(in);
  return sum;
}

static void steps_cut_what_does_not_fit(void** state) {
  static const struct {
    double first[2], others[2], on_90, on_80;
  } rows[] = {
      // 2^-25 is the last place of a step with 25 bits, and past it with 24. Eight terms make a
      // step: 1 + 7/4 ulp is cut to 1 + 1 ulp, and 8/4 more are all kept.
      {{1, 1}, {0x1p-12, 0x1p-13}, 1 + 3 * 0x1p-23, 1},
      {{1, 1}, {0x1p-13, 0x1p-13}, 1, 1},
      // Four terms to a step there: 3/2, cut, and then 4/2 three times.
      {{1, 1}, {0x1p-12, 0x1p-12}, 1 + 7 * 0x1p-23, 1 + 7 * 0x1p-23},
      // Towards zero on both sides.
      {{-1, 1}, {0x1p-12, -0x1p-13}, -1 - 3 * 0x1p-23, -1},
      // 1.75 * 2^-1 times itself is more than 2^-1, but its exponent counts as -2: seven terms of
      // 1.5 * 2^-26 are kept, 21/8 ulps; in the second step, of eight, the accumulator's is -1.
      {{0x1.cp-1, 0x1.cp-1}, {0x1.8p-13, 0x1p-13}, 0x1.88p-1 + 4 * 0x1p-24, 0x1.88p-1},
      {{0x1p100, 0x1p27}, {1, 1}, 0x1p127, 0x1p127},
      {{0x1p100, 0x1p27}, {0x1p100, 0x1p27}, HUGE_VAL, HUGE_VAL},
      {{0x1p-100, 0x1p-40},
       {0x1p-100, 0x1p-49},
       0x1p-140 + 15 * 0x1p-149,
       0x1p-140 + 15 * 0x1p-149},
      {{HUGE_VAL, 1}, {1, 1}, HUGE_VAL, HUGE_VAL},
  };
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const double got[2] = {sum_on("emu:sm_90", rows[i].first, rows[i].others),
                           sum_on("emu:sm_80", rows[i].first, rows[i].others)};
    if (got[0] != rows[i].on_90 || got[1] != rows[i].on_80)
      fail_msg("row %zu: %a and %a instead of %a and %a", i, got[0], got[1], rows[i].on_90,
               rows[i].on_80);
  }
  const double nan[2] = {(double)NAN, 1}, ones[2] = {1, 1};
  assert_true(isnan(sum_on("emu:sm_90", nan, ones)));
}

// ---- ways ---------------------------------------------------------------------------------------

static const struct {
  graph_case_t text;
  const char* way;
} ways[] = {
    {{.inputs = {"x float[3,8]"},
      .constants = {"w float[8,4]"},
      .nodes = {"MatMul a x w -> m", "Relu b m -> y"},
      .outputs = "y"},
     "emu_product"},
    {{.inputs = {"x float[2,8,5,5]"},
      .constants = {"w float[6,4,3,3]", "c float[6]"},
      .nodes = {"Conv a x w c -> y | group=2"},
      .outputs = "y"},
     "emu_product"},
    {{.opset = 23,
      .inputs = {"q float[1,2,5,8]", "k float[1,2,70,8]", "v float[1,2,70,6]"},
      .nodes = {"Attention a q k v -> y"},
      .outputs = "y"},
     "emu_attention"},
    {{.inputs = {"x float[3,8]"}, .nodes = {"Exp a x -> e", "Neg b e -> y"}, .outputs = "y"},
     "emu_pointwise"},
    {{.inputs = {"x float[3,8]", "c float[3,4]"},
      .constants = {"w float[8,4]"},
      .nodes = {"Gemm a x w c -> y | beta=f0.5"},
      .outputs = "y"},
     "emu_product"},
    {{.inputs = {"x float[8]"},
      .constants = {"w float[2,8,4]"},
      .nodes = {"MatMul a x w -> y"},
      .outputs = "y"},
     "emu_product"},
    {{.inputs = {"x float[3,8]"}, .nodes = {"Softmax a x -> y"}, .outputs = "y"}, "emu"},
};
enum { N_WAYS = sizeof ways / sizeof *ways };

static void layers_run_as_kernels_would(void** state) {
  (void)state;
  for (size_t i = 0; i < N_WAYS; i++) {
    assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *y = NULL;
    const char* way = NULL;
    assay_model_t* m = graph_case_model(&ways[i].text, in);
    assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_BF16);
    ok(run_plan(plan, "emu:sm_90", in, &y, &way));
    assert_string_equal(way, ways[i].way);
    assay_tensor_release(y);
    assay_plan_destroy(plan);
    assay_model_release(m);
    graph_case_release(in);
  }
}

static void what_has_no_model_is_refused(void** state) {
  assay_tensor_t *in[GRAPH_CASE_ROWS] = {NULL}, *y = NULL;
  (void)state;
  assay_model_t* m = graph_case_model(&ways[0].text, in);
  assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_FP8E4M3);
  assay_status_t st = run_plan(plan, "emu:sm_90", in, &y, NULL);
  assert_int_equal(assay_status_code(st), ASSAY_UNSUPPORTED);
  assert_non_null(strstr(assay_status_message(st), "how sm_90 sums that is not known to the bit"));
  assay_status_free(st);
  assert_null(assay_backend_find("emu:sm_70"));
  assert_null(assay_backend_find("emu:"));
  assert_null(assay_backend_find("emu:1"));
  assay_plan_destroy(plan);
  assay_model_release(m);
  graph_case_release(in);
}

static void failed_allocations_are_survived(void** state) {
  (void)state;
  for (size_t i = 0; i < N_WAYS; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    assay_model_t* m = graph_case_model(&ways[i].text, in);
    assay_plan_t* plan = plan_of(m, ASSAY_FORMAT_FP16);
    bool done = false;
    for (uint64_t n = 1; !done; n++) {
      assay_tensor_t* y = NULL;
      const int64_t before = assay_alloc_live();
      assay_alloc_fail_after(n, false);
      assay_status_t st = run_plan(plan, "emu:sm_90", in, &y, NULL);
      done = assay_alloc_fail_after(0, false) < n;
      if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
        fail_msg("allocation %llu: %s", (unsigned long long)n, assay_status_message(st));
      assay_status_free(st);
      assay_tensor_release(y);
      assert_int_equal(assay_alloc_live(), before);
    }
    assay_plan_destroy(plan);
    assay_model_release(m);
    graph_case_release(in);
  }
}

// Powers of 2 that were measured: near the true ones, of which whole numbers are exact, and
// growing.
static void powers_are_near(void** state) {
  (void)state;
  float last = 0;
  for (int i = -126 * EMU_EXP2_STEPS; i <= 16 * EMU_EXP2_STEPS; i++) {
    const float x = (float)i / EMU_EXP2_STEPS, y = emu_exp2(x);
    const double want = exp2((double)x), ulp = exp2(floor((double)x) - 23);
    if (!(fabs((double)y - want) <= 2.5 * ulp) || !(y > last))
      fail_msg("2^%a: %a, not %a; before it %a", (double)x, (double)y, want, (double)last);
    if (i % EMU_EXP2_STEPS == 0) assert_true((double)y == want);
    last = y;
  }
  assert_true(emu_exp2(-126 - 1.0F / EMU_EXP2_STEPS) == 0);
  assert_true(emu_exp2(-1e30F) == 0 && emu_exp2(-HUGE_VALF) == 0);
  assert_true(isnan(emu_exp2((float)NAN)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_cut_what_does_not_fit), cmocka_unit_test(layers_run_as_kernels_would),
      cmocka_unit_test(what_has_no_model_is_refused), cmocka_unit_test(powers_are_near),
      cmocka_unit_test(failed_allocations_are_survived)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
