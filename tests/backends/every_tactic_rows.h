// Layers for the tests of every tactic: small ones, and ones that are large enough for tactics
// which take nothing small. Kinds of float operators with the sizes at which vector code, tiles and
// pairs have something left over.
#ifndef ASSAY_TESTS_BACKENDS_EVERY_TACTIC_ROWS_H_
#define ASSAY_TESTS_BACKENDS_EVERY_TACTIC_ROWS_H_

#include "passes/graph_case.h"

#define ROW(name, inputs, constants, ...) \
  { name, 0, inputs, constants, {__VA_ARGS__}, "y" }
#define ROW_OF(name, opset, inputs, constants, ...) \
  { name, opset, inputs, constants, {__VA_ARGS__}, "y" }
#define LIST(...) \
  { __VA_ARGS__ }
#define NONE \
  { NULL }

// In these C is each of the channel counts, and D twice that.
static const graph_case_t sized_rows[] = {
    ROW("Conv 3x3", LIST("x float[2,C,5,6]"), LIST("w float[8,C,3,3]"),
        "Conv n x w -> y | pads=1,1,1,1"),
    ROW("Conv 3x3, nothing padded, bias", LIST("x float[1,C,7,9]"),
        LIST("w float[5,C,3,3]", "b float[5]"), "Conv n x w b -> y"),
    ROW("Conv 5x5, strides", LIST("x float[1,C,11,13]"), LIST("w float[16,C,5,5]"),
        "Conv n x w -> y | pads=2,2,2,2 strides=2,2"),
    ROW("Conv 7x7", LIST("x float[1,C,15,17]"), LIST("w float[32,C,7,7]"),
        "Conv n x w -> y | pads=3,3,3,3 strides=2,2"),
    ROW("Conv 1x1", LIST("x float[2,C,5,6]"), LIST("w float[8,C,1,1]"), "Conv n x w -> y"),
    ROW("Conv 1x1, strides", LIST("x float[2,C,5,6]"), LIST("w float[33,C,1,1]"),
        "Conv n x w -> y | strides=2,2"),
    ROW("Conv dilated", LIST("x float[1,C,9,11]"), LIST("w float[8,C,3,3]"),
        "Conv n x w -> y | pads=2,2,2,2 dilations=2,2"),
    ROW("Conv by groups", LIST("x float[1,D,6,7]"), LIST("w float[12,C,3,3]"),
        "Conv n x w -> y | pads=1,1,1,1 group=2"),
    ROW("Conv depthwise", LIST("x float[2,C,5,6]"), LIST("w float[C,1,3,3]"),
        "Conv n x w -> h | group=C", "Relu r h -> y"),
    ROW("Conv depthwise 5x5", LIST("x float[1,C,12,19]"), LIST("w float[C,1,5,5]"),
        "Conv n x w -> y | pads=2,2,2,2 group=C"),
    ROW("Conv of one axis", LIST("x float[1,C,9]"), LIST("w float[3,C,3]"),
        "Conv n x w -> y | pads=1,1"),
    ROW("Conv of three axes", LIST("x float[1,C,4,5,6]"), LIST("w float[8,C,3,3,3]"),
        "Conv n x w -> y | pads=1,1,1,1,1,1"),
    ROW("ConvTranspose", LIST("x float[1,C,5,6]"), LIST("w float[C,8,2,2]"),
        "ConvTranspose n x w -> y | strides=2,2"),
    ROW("MatMul", LIST("x float[5,C]"), LIST("w float[C,8]"), "MatMul n x w -> y"),
    ROW("MatMul in batches", LIST("x float[2,3,C]"), LIST("w float[C,17]"), "MatMul n x w -> y"),
    ROW("MatMul of activations", LIST("x float[2,3,C]", "z float[2,C,4]"), NONE,
        "MatMul n x z -> y"),
    ROW("Gemm", LIST("x float[5,C]"), LIST("w float[C,3]", "b float[3]"),
        "Gemm n x w b -> y | alpha=1.0"),
    ROW("MaxPool 2x2", LIST("x float[2,C,5,6]"), NONE, "MaxPool n x -> y | kernel_shape=2,2"),
    ROW("MaxPool 3x3", LIST("x float[2,C,5,6]"), NONE,
        "MaxPool n x -> y | kernel_shape=3,3 pads=1,1,1,1 strides=2,2"),
    ROW("MaxPool of one axis", LIST("x float[1,C,9]"), NONE, "MaxPool n x -> y | kernel_shape=3"),
    ROW("MaxPool 7x7", LIST("x float[2,C,9,7]"), NONE,
        "MaxPool n x -> y | kernel_shape=7,7 pads=2,3,2,0 strides=2,2"),
    ROW("GlobalMaxPool", LIST("x float[2,C,5,6]"), NONE, "GlobalMaxPool n x -> y"),
    ROW("AveragePool", LIST("x float[2,C,5,6]"), NONE, "AveragePool n x -> y | kernel_shape=2,2"),
    ROW("AveragePool, padded", LIST("x float[2,C,5,6]"), NONE,
        "AveragePool n x -> y | kernel_shape=3,3 pads=1,1,1,1"),
    ROW("GlobalAveragePool", LIST("x float[2,C,5,6]"), NONE, "GlobalAveragePool n x -> y"),
    ROW("Softmax", LIST("x float[3,C]"), NONE, "Softmax n x -> y | axis=-1"),
    ROW("LayerNormalization", LIST("x float[3,C]"), LIST("s float[C] positive"),
        "LayerNormalization n x s -> y | axis=-1"),
    ROW("InstanceNormalization", LIST("x float[2,C,5]"), LIST("s float[C] positive", "b float[C]"),
        "InstanceNormalization n x s b -> y"),
    ROW("ReduceMean", LIST("x float[3,4,C]"), NONE, "ReduceMean n x -> y | axes=-1"),
    ROW("ReduceMax", LIST("x float[3,4,C]"), NONE, "ReduceMax n x -> y | axes=-1"),
    ROW("ReduceMin of the middle", LIST("x float[3,9,C]"), NONE, "ReduceMin n x -> y | axes=1"),
    ROW("functions", LIST("x float[3,C]", "z float[3,1]"), NONE, "Sigmoid n x -> h",
        "Mul m h x -> g", "Add a g z -> y"),
    ROW("Erf and kin", LIST("x float[3,C]"), NONE, "Erf n x -> h", "Tanh m h -> g", "Exp a g -> y"),
    ROW("Clip and kin", LIST("x float[3,C]"), NONE, "LeakyRelu n x -> h", "Elu m h -> g",
        "HardSwish a g -> y"),
    ROW("a view", LIST("x float[3,4,C]"), LIST("s int64[2] -1 12"), "Relu r x -> h",
        "Reshape n h s -> y"),
    ROW("Transpose", LIST("x float[3,4,C]"), NONE, "Transpose n x -> y | perm=2,0,1"),
    ROW("Pad", LIST("x float[3,C]"), LIST("p int64[4] 1 0 0 2"), "Pad n x p -> y"),
    ROW("Concat", LIST("x float[3,C]", "z float[3,5]"), NONE, "Concat n x z -> y | axis=1"),
    ROW("Gather", LIST("x float[9,C]"), LIST("i int64[3] 0 4 8"), "Gather n x i -> y"),
    ROW("Resize", LIST("x float[1,C,4,5]"), LIST("s float[4] 1 1 2 2"),
        "Resize n x _ s -> y | mode=linear"),
    ROW("LSTM", LIST("x float[4,3,C]"), LIST("w float[1,40,C]", "r float[1,40,10]"),
        "LSTM n x w r -> y | hidden_size=10"),
    ROW("GRU", LIST("x float[4,3,C]"), LIST("w float[1,30,C]", "r float[1,30,10]"),
        "GRU n x w r -> y | hidden_size=10"),
    ROW_OF("Attention", 23, LIST("q float[1,2,5,C]", "k float[1,2,9,C]", "v float[1,2,9,C]"), NONE,
           "Attention n q k v -> y"),
    ROW_OF("Resize of one axis", 18, LIST("x float[2,C,19]"), LIST("s float[3] 1 1 2"),
           "Resize n x _ s -> y"),
    ROW("4-bit weights", LIST("x float[3,83]"),
        LIST("w uint8[70,3,16]", "s float[210] positive", "z uint8[70,2]", "b float[70]"),
        "com.microsoft.MatMulNBits p x w s z _ b -> y | K=83 N=70 block_size=32 bits=4"),
    ROW("a gate", LIST("x float[2,D,5,7]"), NONE, "Split s x -> a b | axis=1", "Mul m a b -> y"),
};
static const int channel_counts[] = {1, 2, 3, 5, 6, 7, 16, 17, 31, 33, 64};

// Large enough for tactics that leave small layers to others.
static const graph_case_t large_rows[] = {
    ROW("Winograd", LIST("x float[1,32,22,21]"), LIST("w float[32,32,3,3]", "b float[32]"),
        "Conv n x w b -> h | pads=1,1,1,1", "Relu r h -> y"),
    ROW("Winograd of 33 channels", LIST("x float[1,33,19,22]"), LIST("w float[48,33,3,3]"),
        "Conv n x w -> y | pads=1,0,1,2"),
    ROW("products of 128", LIST("x float[64,128]"), LIST("w float[128,96]", "b float[96]"),
        "Gemm n x w b -> h", "Relu r h -> y"),
    ROW("products of 400", LIST("x float[40,400]"), LIST("w float[400,130]"), "MatMul n x w -> y"),
    ROW("Conv 1x1 of 320", LIST("x float[1,320,14,14]"), LIST("w float[96,320,1,1]"),
        "Conv n x w -> h", "Relu r h -> y"),
    ROW("Conv 3x3 of 96", LIST("x float[1,96,9,10]"), LIST("w float[64,96,3,3]"),
        "Conv n x w -> y | pads=1,1,1,1"),
    ROW_OF("Attention of 64", 23,
           LIST("q float[1,2,40,64]", "k float[1,2,50,64]", "v float[1,2,50,64]"), NONE,
           "Attention n q k v -> y"),
    ROW("LSTM of 128", LIST("x float[5,2,64]"), LIST("w float[1,512,64]", "r float[1,512,128]"),
        "LSTM n x w r -> y | hidden_size=128"),
    ROW("ConvTranspose of 64", LIST("x float[1,64,9,11]"), LIST("w float[64,32,4,4]"),
        "ConvTranspose n x w -> y | strides=2,2 pads=1,1,1,1"),
};

// Layers on bytes. What comes in passes a quantizer, so that it takes its ends and no more.
#define SCALES                                                                                  \
  "s float[] 0.0117", "z uint8[] 119", "si float[] 0.013", "zi int8[] -5", "sn float[] 0.0027", \
      "zn uint8[] 135", "zni int8[] 7", "sw float[] 0.004", "zw int8[] 0"
#define BYTES "QuantizeLinear q0 x s z -> xq", "DequantizeLinear d0 xq s z -> xf"
#define SIGNED_BYTES "QuantizeLinear q0 x si zi -> xq", "DequantizeLinear d0 xq si zi -> xf"
#define WEIGHTS "DequantizeLinear dw w sw zw -> wf"
#define TO_BYTES "QuantizeLinear q1 h sn zn -> yq", "DequantizeLinear d1 yq sn zn -> y"

static const graph_case_t byte_rows[] = {
    ROW("DynamicQuantizeLinear", LIST("x float[3,C]"), NONE, "DynamicQuantizeLinear n x -> y s z"),
    ROW("int8 normalization", LIST("x float[2,C,5,7]"),
        LIST("s float[] 0.0078125", "z uint8[] 120", "sv float[] 0.002", "zv uint8[] 0",
             "sn float[] 0.03", "zn int8[] -3", "two float[] 2", "eps float[] 1e-5"),
        BYTES, "ReduceMean m xf -> m | axes=1", "Sub a xf m -> d", "Pow p d two -> p",
        "ReduceMean v p -> v | axes=1", "QuantizeLinear q1 v sv zv -> vq",
        "DequantizeLinear d1 vq sv zv -> vf", "Add e vf eps -> e",
        "QuantizeLinear q2 e sv zv -> eq", "DequantizeLinear d2 eq sv zv -> ef", "Sqrt r ef -> r",
        "Div n d r -> n", "QuantizeLinear q3 n sn zn -> y"),
    ROW("int8 Conv 3x3", LIST("x float[2,C,9,10]"), LIST(SCALES, "w int8[24,C,3,3]"), BYTES,
        WEIGHTS, "Conv n xf wf -> h | pads=1,1,1,1", TO_BYTES),
    ROW("int8 Conv 1x1, signed", LIST("x float[2,C,9,10]"), LIST(SCALES, "w int8[40,C,1,1]"),
        SIGNED_BYTES, WEIGHTS, "Conv n xf wf -> c", "Relu r c -> h", TO_BYTES),
    ROW("int8 depthwise", LIST("x float[2,C,9,10]"), LIST(SCALES, "w int8[C,1,3,3]"), BYTES,
        WEIGHTS, "Conv n xf wf -> h | pads=1,1,1,1 group=C", TO_BYTES),
    ROW("int8 Conv by groups", LIST("x float[1,D,6,7]"), LIST(SCALES, "w int8[12,C,3,3]"), BYTES,
        WEIGHTS, "Conv n xf wf -> h | group=2", TO_BYTES),
    ROW("int8 ConvTranspose", LIST("x float[1,C,5,6]"), LIST(SCALES, "w int8[C,8,2,2]"), BYTES,
        WEIGHTS, "ConvTranspose n xf wf -> h | strides=2,2", TO_BYTES),
    ROW("int8 MatMul", LIST("x float[5,C]"), LIST(SCALES, "w int8[C,40]"), BYTES, WEIGHTS,
        "MatMul n xf wf -> h", TO_BYTES),
    ROW("sums of bytes whose zero point the run gives, scaled", LIST("x float[5,C]"),
        LIST("w int8[C,40]", "sw float[] 0.004", "b float[40]"),
        "DynamicQuantizeLinear q x -> xq xs xz", "MatMulInteger n xq w xz -> i",
        "Cast c i -> f | to=1", "Mul k xs sw -> t", "Mul m f t -> g", "Add a g b -> y"),
    ROW("int8 MatMul of activations", LIST("x float[2,3,C]", "u float[2,C,4]"), LIST(SCALES), BYTES,
        "QuantizeLinear q2 u si zi -> uq", "DequantizeLinear d2 uq si zi -> uf",
        "MatMul n xf uf -> h", TO_BYTES),
    ROW("int8 pointwise", LIST("x float[2,C,3,5]", "u float[2,C,3,5]"), LIST(SCALES), BYTES,
        "QuantizeLinear q2 u si zi -> uq", "DequantizeLinear d2 uq si zi -> uf", "Add n xf uf -> h",
        TO_BYTES),
    ROW("int8 mean", LIST("x float[2,C,9,10]"), LIST(SCALES), BYTES, "GlobalAveragePool n xf -> h",
        TO_BYTES),
    ROW("int8 gate", LIST("x float[2,D,5,7]"), LIST(SCALES), "QuantizeLinear q0 x s z -> xq",
        "Split h xq -> aq bq | axis=1", "DequantizeLinear d2 aq s z -> a",
        "DequantizeLinear d3 bq s z -> b", "Mul m a b -> h", TO_BYTES),
};

#endif  // ASSAY_TESTS_BACKENDS_EVERY_TACTIC_ROWS_H_
