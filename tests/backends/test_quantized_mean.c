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

static void layers_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) tactic_case_check_bytes(&layers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_agree)};
  return cmocka_run_group_tests_name("quantized_mean", tests, NULL, NULL);
}
