// Means over places of quantized images: run by the tactic, within their limits, and with the bytes
// of exact means wherever these are not at a tie.
#include "backends/tactic_case.h"

#define CONSTANTS                                                                                 \
  {                                                                                               \
    "s float[] 0.0117", "z uint8[] 119", "si float[] 0.013", "zi int8[] -5", "sn float[] 0.0007", \
        "zn uint8[] 135", "zni int8[] 7", "w float[19,3,1,1]", "tiny float[] 0.0001"              \
  }

static const tactic_case_t layers[] = {
    {{"odd channels that lie last",
      13,
      {"x float[2,3,23,21]"},
      CONSTANTS,
      {"Conv c x w -> c", "QuantizeLinear q0 c s z -> xq", "DequantizeLinear d0 xq s z -> xf",
       "ReduceMean m xf -> m | axes=2,3", "QuantizeLinear q1 m sn zn -> y"},
      "y"},
     "quantized_mean",
     0.01,
     false},
    {{"plain, signed, two dimensions are left",
      13,
      {"x float[3,37,60,9]"},
      CONSTANTS,
      {"QuantizeLinear q0 x si zi -> xq", "DequantizeLinear d0 xq si zi -> xf",
       "ReduceMean m xf -> m | axes=2,3 keepdims=0", "QuantizeLinear q1 m sn zni -> y"},
      "y"},
     "quantized_mean",
     0.01,
     false},
    {{"many channels, few places",
      13,
      {"x float[1,600,2,2]"},
      CONSTANTS,
      {"QuantizeLinear q0 x s z -> xq", "DequantizeLinear d0 xq s z -> xf",
       "GlobalAveragePool m xf -> m", "QuantizeLinear q1 m sn zni -> y"},
      "y"},
     "quantized_mean",
     0.01,
     false},
    {{"a line, and means beyond the range",
      13,
      {"x float[2,5,1000]"},
      CONSTANTS,
      {"QuantizeLinear q0 x s z -> xq", "DequantizeLinear d0 xq s z -> xf",
       "GlobalAveragePool m xf -> m", "QuantizeLinear q1 m tiny zn -> y"},
      "y"},
     "quantized_mean",
     0.1,
     false},
    {{"infinities and NaN come in: quantizers have ends",
      13,
      {"x float[2,8,15,7]"},
      CONSTANTS,
      {"QuantizeLinear q0 x s z -> xq", "DequantizeLinear d0 xq s z -> xf",
       "ReduceMean m xf -> m | axes=2,3", "QuantizeLinear q1 m sn zn -> y"},
      "y"},
     "quantized_mean",
     0.01,
     true},
};

// The tolerance is a share of elements, which may be one step off: the emulated engine adds floats.
static void check_layer(const tactic_case_t* c) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(&c->graph, in);
  tactic_run_t want, got, again;
  if (c->specials) tactic_case_specials(in[0]);
  tactic_case_run(m, "emu", ASSAY_FORMAT_FP32, in, &want);
  tactic_case_run(m, "cpu", ASSAY_FORMAT_FP32, in, &got);
  if (!tactic_case_is_by(got.tactic, c->tactic))
    fail_msg("%s: by %s, not by %s", c->graph.name, got.tactic, c->tactic);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(threads == 1 ? 3 : 1);
  tactic_case_run(m, "cpu", ASSAY_FORMAT_FP32, in, &again);
  omp_set_num_threads(threads);
  assert_true(tactic_case_same_shape(want.out[0], got.out[0]));
  assert_true(tactic_case_identical(got.out[0], again.out[0]));
  int64_t n = 0;
  for (int64_t i = 0; i < got.out[0]->size; i++) {
    const int64_t d = assay_i64(want.out[0])[i] - assay_i64(got.out[0])[i];
    if (d < -1 || d > 1) fail_msg("%s: element %lld", c->graph.name, (long long)i);
    n += d != 0;
  }
  if ((double)n > c->tolerance * (double)got.out[0]->size)
    fail_msg("%s: %lld elements differ", c->graph.name, (long long)n);
  tactic_case_judge(c, m, ASSAY_FORMAT_FP32, in);
  tactic_case_release(&want);
  tactic_case_release(&got);
  tactic_case_release(&again);
  graph_case_release(in);
  assay_model_release(m);
}

static void layers_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) check_layer(&layers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_agree)};
  return cmocka_run_group_tests_name("quantized_mean", tests, NULL, NULL);
}
