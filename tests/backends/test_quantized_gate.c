// Halves of quantized tensors, multiplied: run by the tactic, in both layouts, with the bits of the
// emulated engine, and within their limits.
#include "backends/tactic_case.h"

#define CONSTANTS                                                                                 \
  {                                                                                               \
    "s float[] 0.0117", "z uint8[] 119", "si float[] 0.013", "zi int8[] -5", "sn float[] 0.0027", \
        "zn uint8[] 135", "zni int8[] 7", "w float[6,3,1,1]", "big float[] 0.5"                   \
  }
#define GATE(axis, s, z, s2, sn, zn)                                             \
  "Split h xq -> aq bq | axis=" axis, "DequantizeLinear d1 aq " s " " z " -> a", \
      "DequantizeLinear d2 bq " s2 " " z " -> b", "Mul m a b -> m",              \
      "QuantizeLinear q1 m " sn " " zn " -> y"

static const tactic_case_t layers[] = {
    {{"channels, plain",
      13,
      {"x float[2,8,5,7]"},
      CONSTANTS,
      {"QuantizeLinear q0 x s z -> xq", GATE("1", "s", "z", "s", "sn", "zn")},
      "y"},
     "quantized_gate",
     0,
     false},
    {{"channels that lie last, odd ones",
      13,
      {"x float[2,3,37,41]"},
      CONSTANTS,
      {"Conv c x w -> c", "QuantizeLinear q0 c s z -> xq", GATE("1", "s", "z", "s", "sn", "zn")},
      "y"},
     "quantized_gate",
     0,
     false},
    {{"lines of an image whose channels lie last, signed, another scale",
      13,
      {"x float[2,3,38,41]"},
      CONSTANTS,
      {"Conv c x w -> c", "QuantizeLinear q0 c si zi -> xq",
       GATE("2", "si", "zi", "s", "sn", "zni")},
      "y"},
     "quantized_gate",
     0,
     false},
    {{"samples",
      13,
      {"x float[4,3,17,5]"},
      CONSTANTS,
      {"Conv c x w -> c", "QuantizeLinear q0 c si zi -> xq",
       GATE("0", "si", "zi", "si", "sn", "zn")},
      "y"},
     "quantized_gate",
     0,
     false},
    {{"the last dimension",
      13,
      {"x float[70,110]"},
      CONSTANTS,
      {"QuantizeLinear q0 x s z -> xq", GATE("-1", "s", "z", "si", "sn", "zni")},
      "y"},
     "quantized_gate",
     0,
     false},
    {{"halves: products at ties",
      13,
      {"x float[3,400]"},
      {"big float[] 0.5", "z uint8[] 2", "quarter float[] 0.25", "half float[] 0.5"},
      {"QuantizeLinear q0 x big z -> xq", GATE("1", "quarter", "z", "half", "big", "z")},
      "y"},
     "quantized_gate",
     0,
     true},
    {{"infinities and NaN come in: quantizers have ends",
      13,
      {"x float[2,8,15,7]"},
      CONSTANTS,
      {"QuantizeLinear q0 x s z -> xq", GATE("1", "s", "z", "s", "sn", "zn")},
      "y"},
     "quantized_gate",
     0,
     true},
};

static void layers_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) tactic_case_check_bytes(&layers[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(layers_agree)};
  return cmocka_run_group_tests_name("quantized_gate", tests, NULL, NULL);
}
