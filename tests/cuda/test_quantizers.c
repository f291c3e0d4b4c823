// Quantizers as programs on the CUDA platform without a GPU: QuantizeLinear, DequantizeLinear and
// casts from and to floats of 8 bits have the emulated engine's bits, over all numbers of 16 bits,
// all codes, and scales of every kind.
#include "layer_case.h"

#define LIST(...) \
  { __VA_ARGS__ }
#define CASE(name, opset, inputs, constants, node, specials) \
  { {name, opset, inputs, constants, {node}, "y"}, "chain", specials }
#define ROW(name, opset, inputs, constants, node) \
  CASE(name, opset, LIST inputs, LIST constants, node, true)

// ---- all numbers --------------------------------------------------------------------------------

enum { NUMBERS = 65536, CODES = 256 };

#define TO(type, more) \
  { "x float[65536]", "Cast n x -> y | to=" #type more }
static const struct {
  const char *input, *node;
} casts[] = {
    TO(17, ""),
    TO(18, ""),
    TO(19, ""),
    TO(20, ""),
    TO(17, " saturate=0"),
    TO(18, " saturate=0"),
    TO(19, " saturate=0"),
    TO(20, " saturate=0"),
};

// Numbers of fp16 and bf16; of float32 what lies at and beside each number of 8 bits, and halfway.
static void fill_numbers(assay_tensor_t* t, int format) {
  for (int64_t i = 0; i < t->size; i++) {
    const uint16_t half = (uint16_t)i;
    const uint32_t low[] = {0, 1, 0x7ffff, 0x80000};
    const uint32_t bits =
        format == 2 ? (uint32_t)half << 16
                    : (uint32_t)(half & 0xfff0) << 16 | low[i & 3] | (uint32_t)(half & 12) << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    if (format == 1)
      assay_unpack(ASSAY_TYPE_FLOAT16, &half, 0, 1, &assay_f64(t)[i]);
    else
      assay_f64(t)[i] = (double)x;
  }
}

static void casts_to_float8(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof casts / sizeof *casts; k++)
    for (int f = 0; f < LAYER_FORMATS; f++) {
      const layer_case_t c = {
          {casts[k].node, 19, {casts[k].input}, {0}, {casts[k].node}, "y"}, "chain", false};
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&c.graph, in);
      assert_int_equal(in[0]->size, NUMBERS);
      fill_numbers(in[0], f);
      layer_case_compare(&c, m, f, in, "emu");
      graph_case_release(in);
      assay_model_release(m);
    }
}

static const char* const float8s[] = {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
                                      "float8e5m2fnuz"};
static const char* const readers[] = {
    "Cast n x -> y | to=1",        "Cast n x -> y | to=10",
    "Cast n x -> y | to=16",       "Cast n x -> y | to=9",
    "Cast n x -> y | to=6",        "Cast n x -> y | to=3",
    "DequantizeLinear n x s -> y", "DequantizeLinear n x s -> y | output_dtype=10"};

static void codes_are_read(void** state) {
  (void)state;
  for (size_t t = 0; t < sizeof float8s / sizeof *float8s; t++)
    for (size_t k = 0; k < sizeof readers / sizeof *readers; k++) {
      char input[64], name[160];
      snprintf(input, sizeof input, "x %s[256]", float8s[t]);
      snprintf(name, sizeof name, "%s of %s", readers[k], float8s[t]);
      const bool dequantizes = readers[k][0] == 'D';
      const layer_case_t c = {
          {name, 23, {input}, {dequantizes ? "s float[] 0.7" : NULL}, {readers[k]}, "y"},
          "chain",
          false};
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&c.graph, in);
      assert_int_equal(in[0]->size, CODES);
      for (int i = 0; i < CODES; i++) {
        const uint8_t code = (uint8_t)i;
        assay_unpack(in[0]->type, &code, 0, 1, &assay_f64(in[0])[i]);
      }
      layer_case_compare(&c, m, 0, in, "emu");
      graph_case_release(in);
      assay_model_release(m);
    }
}

// ---- scales -------------------------------------------------------------------------------------

static const layer_case_t quantizers[] = {
    ROW("one scale, e4m3", 19, ("x float[7,301]"), ("s float[] 0.003", "z float8e4m3fn[] 0"),
        "QuantizeLinear n x s z -> y"),
    ROW("one scale, e5m2, no zero point", 21, ("x float[7,301]"), ("s float[1] 0.003"),
        "QuantizeLinear n x s -> y | output_dtype=19"),
    ROW("a scale of the run, of a vector of one", 19, ("x float[5,8]", "s float[1] positive"),
        ("z float8e4m3fn[1] 0"), "QuantizeLinear n x s z -> y"),
    ROW("a scalar with a vector of one", 19, ("x float[]", "s float[1] positive"), (0),
        "QuantizeLinear n x s -> y"),
    ROW("infinities past the range", 19, ("x float[40]"), ("s float[] 1", "z float8e5m2[] 0"),
        "QuantizeLinear n x s z -> y | saturate=0"),
    ROW("a zero point of the run", 19, ("x float[5,64]", "z float8e4m3fn[] 1.125"),
        ("s float[] 0.01"), "QuantizeLinear n x s z -> y"),
    ROW("zero points by channel", 19, ("x float[3,16,5]"),
        ("s float[16] positive", "z float8e5m2[16]"), "QuantizeLinear n x s z -> y | axis=1"),
    ROW("by the last axis", 19, ("x float[5,24]"), ("s float[24] positive", "z float8e4m3fn[24]"),
        "QuantizeLinear n x s z -> y | axis=-1"),
    ROW("a vector, by its only axis", 19, ("x float[24]"),
        ("s float[24] positive", "z float8e4m3fn[24]"), "QuantizeLinear n x s z -> y"),
    ROW("blocks of rows", 21, ("x float[6,16]"), ("s float[3,16] positive"),
        "QuantizeLinear n x s -> y | axis=0 block_size=2 output_dtype=17"),
    ROW("blocks of columns", 21, ("x float[4,64]"), ("s float[4,4] positive"),
        "QuantizeLinear n x s -> y | axis=1 block_size=16 output_dtype=17"),
    ROW("blocks of columns that vectors cross", 21, ("x float[4,48]"), ("s float[4,16] positive"),
        "QuantizeLinear n x s -> y | axis=1 block_size=3 output_dtype=17"),
    ROW("a last block with fewer", 21, ("x float[2,22,3]"), ("s float[2,5,3] positive"),
        "QuantizeLinear n x s -> y | axis=1 block_size=5 output_dtype=19"),
    ROW("to int8 by channel", 17, ("x float[2,8,3,5]"),
        ("s float[8] positive", "z int8[8] 0 1 -128 127 3 -4 5 9"),
        "QuantizeLinear n x s z -> y | axis=1"),
    ROW("to uint8, the type that nobody names", 13, ("x float[5,8]"), ("s float[8] positive"),
        "QuantizeLinear n x s -> y"),
    ROW("to uint16", 21, ("x float[40]"), ("s float[] 0.00001", "z uint16[] 30000"),
        "QuantizeLinear n x s z -> y"),
    ROW("to int8 of integers", 13, ("x int32[6] -9 100000 7 2147483647 40000 -40000"),
        ("s float[] 1.5", "z int8[] 3"), "QuantizeLinear n x s z -> y"),
    ROW("quotients of fp16", 19, ("x float16[5,64]"), ("s float16[] 0.0113", "z float8e4m3fn[] 0"),
        "QuantizeLinear n x s z -> y"),
    ROW("quotients of bf16 of float32", 23, ("x float[5,64]"),
        ("s bfloat16[] 0.0113", "z uint8[] 128"), "QuantizeLinear n x s z -> y"),
    ROW("quotients of float32 where the scale is fp16", 23, ("x float16[5,64]"),
        ("s float16[] 0.0113", "z int8[] 5"), "QuantizeLinear n x s z -> y | precision=1"),
};

static void quantizers_have_the_emulated_engines_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof quantizers / sizeof *quantizers; i++)
    layer_case_check(&quantizers[i], "emu");
}

// Not of infinities: e4m3 has none.
#define OF(name, opset, inputs, constants, node) \
  CASE(name, opset, LIST inputs, LIST constants, node, false)
static const layer_case_t dequantizers[] = {
    OF("by channel", 19, ("x float8e4m3fn[3,16,5]"), ("s float[16] positive"),
       "DequantizeLinear n x s -> y | axis=1"),
    OF("zero points of the run", 19, ("x float8e5m2[3,16]", "z float8e5m2[16]"),
       ("s float[16] positive"), "DequantizeLinear n x s z -> y"),
    OF("to fp16 with zero points", 19, ("x float8e5m2[3,16]", "z float8e5m2[16]"),
       ("s float16[16] positive"), "DequantizeLinear n x s z -> y"),
    OF("blocks", 21, ("x float8e4m3fn[4,64]"), ("s float[4,4] positive"),
       "DequantizeLinear n x s -> y | axis=1 block_size=16"),
    OF("blocks with scales of bf16", 21, ("x float8e4m3fn[8,6]"), ("s bfloat16[2,6] positive"),
       "DequantizeLinear n x s -> y | axis=0 block_size=4"),
    OF("of int8", 17, ("x int8[2,8,3]"), ("s float[8] positive", "z int8[8] 0 1 -128 127 3 -4 5 9"),
       "DequantizeLinear n x s z -> y"),
    OF("of uint8 to fp16", 21, ("x uint8[2,24]"), ("s float16[] 0.013", "z uint8[] 7"),
       "DequantizeLinear n x s z -> y"),
    OF("of uint16 to fp16, which rounds twice otherwise", 21,
       ("x uint16[6] 65535 1 40001 40003 77 30001"), ("s float16[] 0.01312", "z uint16[] 12345"),
       "DequantizeLinear n x s z -> y"),
    OF("of int16 to fp16 with scales of float32", 23, ("x int16[6] -32768 1 4001 4003 77 30001"),
       ("s float[] 0.013123"), "DequantizeLinear n x s -> y | output_dtype=10"),
};

static void dequantizers_have_the_emulated_engines_bits(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof dequantizers / sizeof *dequantizers; i++)
    layer_case_check(&dequantizers[i], "emu");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(casts_to_float8),
      cmocka_unit_test(codes_are_read),
      cmocka_unit_test(quantizers_have_the_emulated_engines_bits),
      cmocka_unit_test(dequantizers_have_the_emulated_engines_bits),
  };
  layer_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
