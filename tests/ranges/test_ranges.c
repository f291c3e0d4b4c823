// The rule of every operator: in random boxes within a row's, the emulated engine in three formats,
// and truth, give numbers that lie where the rule says, and none that is not finite unless a hazard
// was announced.
#include "ranges/range_case.h"

typedef struct rule_row {
  const char* node;
  const char* inputs[4];
  const char* constants[8];
  double lo, hi;        // the largest box; 0 and 0: [-3, 3]
  const char* outputs;  // NULL: "y"
  int opset;            // 0: 21
  bool unsafe;          // a hazard in every box
  bool rounds;          // to a format of its own, which truth does not
} rule_row_t;

// clang-format off
static const rule_row_t rows[] = {
    {.node = "Abs n x -> y", .inputs = {"x float[5]"}},
    {.node = "Neg n x -> y", .inputs = {"x float[5]"}},
    {.node = "Sign n x -> y", .inputs = {"x float[5]"}},
    {.node = "Ceil n x -> y", .inputs = {"x float[5]"}},
    {.node = "Floor n x -> y", .inputs = {"x float[5]"}},
    {.node = "Round n x -> y", .inputs = {"x float[5]"}},
    {.node = "Reciprocal n x -> y", .inputs = {"x float[5]"}, .lo = -1e3, .hi = 1e3},
    {.node = "Sqrt n x -> y", .inputs = {"x float[5]"}, .lo = 0, .hi = 6e4},
    {.node = "Sqrt n x -> y", .inputs = {"x float[5]"}, .lo = -2, .hi = 6e4},
    {.node = "Exp n x -> y", .inputs = {"x float[5]"}, .lo = -30, .hi = 30},
    {.node = "Log n x -> y", .inputs = {"x float[5]"}, .lo = 1e-4, .hi = 6e4},
    {.node = "Sin n x -> y", .inputs = {"x float[5]"}, .lo = -9, .hi = 9},
    {.node = "Cos n x -> y", .inputs = {"x float[5]"}, .lo = -9, .hi = 9},
    {.node = "Asin n x -> y", .inputs = {"x float[5]"}, .lo = -1, .hi = 1},
    {.node = "Acos n x -> y", .inputs = {"x float[5]"}, .lo = -1, .hi = 1},
    {.node = "Atan n x -> y", .inputs = {"x float[5]"}},
    {.node = "Sinh n x -> y", .inputs = {"x float[5]"}},
    {.node = "Cosh n x -> y", .inputs = {"x float[5]"}},
    {.node = "Tanh n x -> y", .inputs = {"x float[5]"}},
    {.node = "Asinh n x -> y", .inputs = {"x float[5]"}},
    {.node = "Acosh n x -> y", .inputs = {"x float[5]"}, .lo = 1, .hi = 100},
    {.node = "Atanh n x -> y", .inputs = {"x float[5]"}, .lo = -0.99, .hi = 0.99},
    {.node = "Erf n x -> y", .inputs = {"x float[5]"}},
    {.node = "Not n x -> y", .inputs = {"x bool[5] 1 0 1 0 1"}, .lo = 0, .hi = 1},
    {.node = "IsNaN n x -> y", .inputs = {"x float[5]"}},
    {.node = "IsInf n x -> y", .inputs = {"x float[5]"}},
    {.node = "Relu n x -> y", .inputs = {"x float[5]"}},
    {.node = "LeakyRelu n x -> y | alpha=0.1", .inputs = {"x float[5]"}},
    {.node = "LeakyRelu n x -> y | alpha=-0.4", .inputs = {"x float[5]"}},
    {.node = "ThresholdedRelu n x -> y | alpha=0.5", .inputs = {"x float[5]"}},
    {.node = "ThresholdedRelu n x -> y | alpha=-0.5", .inputs = {"x float[5]"}},
    {.node = "Elu n x -> y | alpha=1.5", .inputs = {"x float[5]"}},
    {.node = "Elu n x -> y | alpha=-0.5", .inputs = {"x float[5]"}},
    {.node = "Celu n x -> y | alpha=1.5", .inputs = {"x float[5]"}},
    {.node = "Selu n x -> y", .inputs = {"x float[5]"}},
    {.node = "Sigmoid n x -> y", .inputs = {"x float[5]"}, .lo = -20, .hi = 20},
    {.node = "HardSigmoid n x -> y", .inputs = {"x float[5]"}, .lo = -9, .hi = 9},
    {.node = "HardSigmoid n x -> y | alpha=-0.3", .inputs = {"x float[5]"}, .lo = -9, .hi = 9},
    {.node = "HardSwish n x -> y", .inputs = {"x float[5]"}, .lo = -6, .hi = 6},
    {.node = "Softplus n x -> y", .inputs = {"x float[5]"}, .lo = -20, .hi = 20},
    {.node = "Softsign n x -> y", .inputs = {"x float[5]"}},
    {.node = "Gelu n x -> y", .inputs = {"x float[5]"}},
    {.node = "Gelu n x -> y | approximate=tanh", .inputs = {"x float[5]"}},
    {.node = "Mish n x -> y", .inputs = {"x float[5]"}},
    {.node = "Swish n x -> y", .inputs = {"x float[5]"}, .opset = 24},
    {.node = "Swish n x -> y | alpha=1.7", .inputs = {"x float[5]"}, .opset = 24},
    {.node = "Swish n x -> y | alpha=-1.7", .inputs = {"x float[5]"}, .opset = 24},
    {.node = "com.microsoft.Gelu n x -> y", .inputs = {"x float[5]"}},
    {.node = "com.microsoft.QuickGelu n x -> y", .inputs = {"x float[5]"}},
    {.node = "Add n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}},
    {.node = "Add n a b -> y", .inputs = {"a int8[3] 0 0 0", "b int8[3] 0 0 0"}, .lo = -60, .hi = 60},
    {.node = "Sub n a b -> y", .inputs = {"a float[2,1,3]", "b float[4,1]"}},
    {.node = "Mul n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}, .lo = -250, .hi = 250},
    {.node = "Mul n a a -> y", .inputs = {"a float[2,3]"}},
    {.node = "Mul n a b -> y", .inputs = {"a int32[3] 0 0 0", "b int32[3] 0 0 0"}, .lo = -4e4, .hi = 4e4},
    {.node = "Div n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}},
    {.node = "Div n a b -> y", .inputs = {"a int32[3] 0 0 0", "b int32[3] 1 1 1"}, .lo = 1, .hi = 50},
    {.node = "Mod n a b -> y | fmod=1", .inputs = {"a float[3]", "b float[3]"}},
    {.node = "Mod n a b -> y", .inputs = {"a int32[3] 0 0 0"}, .constants = {"b int32[3] 7 -3 2"}, .lo = -50, .hi = 50},
    {.node = "Pow n x e -> y", .inputs = {"x float[4]"}, .constants = {"e float[] 2"}},
    {.node = "Pow n x e -> y", .inputs = {"x float[4]"}, .constants = {"e float[] 3"}},
    {.node = "Pow n x e -> y", .inputs = {"x float[4]"}, .constants = {"e float[] -2"}},
    {.node = "Pow n x e -> y", .inputs = {"x float[4]"}, .constants = {"e float[] 0.7"}, .lo = 0, .hi = 50},
    {.node = "Pow n x e -> y", .inputs = {"x float[4]", "e float[4]"}, .lo = 0.1, .hi = 4},
    {.node = "PRelu n x s -> y", .inputs = {"x float[2,3]", "s float[3]"}},
    {.node = "Clip n x l h -> y", .inputs = {"x float[5]"}, .constants = {"l float[] -0.4", "h float[] 0.5"}},
    {.node = "Max n a b c -> y", .inputs = {"a float[2,3]", "b float[3]", "c float[1]"}},
    {.node = "Min n a b -> y", .inputs = {"a float[2,3]", "b float[3]"}},
    {.node = "Sum n a b c -> y", .inputs = {"a float[2,3]", "b float[3]", "c float[2,1]"}},
    {.node = "Mean n a b c -> y", .inputs = {"a float[2,3]", "b float[3]", "c float[2,1]"}},
    {.node = "Where n c a b -> y", .inputs = {"c bool[3] 1 0 1", "a float[2,3]", "b float[3]"}, .lo = 0, .hi = 1},
    {.node = "And n a b -> y", .inputs = {"a bool[3] 1 0 1", "b bool[3] 1 0 1"}, .lo = 0, .hi = 1},
    {.node = "Or n a b -> y", .inputs = {"a bool[3] 1 0 1", "b bool[3] 1 0 1"}, .lo = 0, .hi = 1},
    {.node = "Xor n a b -> y", .inputs = {"a bool[3] 1 0 1", "b bool[3] 1 0 1"}, .lo = 0, .hi = 1},
    {.node = "Less n a b -> y", .inputs = {"a float[3]", "b float[3]"}},
    {.node = "LessOrEqual n a b -> y", .inputs = {"a float[3]", "b float[3]"}},
    {.node = "Greater n a b -> y", .inputs = {"a float[3]", "b float[3]"}},
    {.node = "GreaterOrEqual n a b -> y", .inputs = {"a float[3]", "b float[3]"}},
    {.node = "Equal n a b -> y", .inputs = {"a float[3]", "b float[3]"}},
    {.node = "Equal n a b -> y", .inputs = {"a int64[3] 0 0 0"}, .constants = {"b int64[3] 1 2 3"}},
    {.node = "Cast n x -> y | to=6", .inputs = {"x float[4]"}, .lo = -900, .hi = 900},
    {.node = "Cast n x -> y | to=3", .inputs = {"x float[4]"}, .lo = -200, .hi = 200},
    {.node = "Cast n x -> y | to=9", .inputs = {"x float[4]"}},
    {.node = "Cast n x -> y | to=10", .inputs = {"x float[4]"}, .lo = -1e5, .hi = 1e5, .rounds = true},
    {.node = "Cast n x -> y | to=1", .inputs = {"x int32[4] 0 0 0 0"}, .lo = -1e5, .hi = 1e5},
    {.node = "CastLike n x t -> y", .inputs = {"x float[4]"}, .constants = {"t int32[1] 0"}, .lo = -900, .hi = 900},
    {.node = "Dropout n x -> y", .inputs = {"x float[5]"}},
    // Sums of products.
    {.node = "Conv n x w b -> y | pads=1,0,2,1", .inputs = {"x float[2,3,6,5]"}, .constants = {"w float[4,3,3,2]", "b float[4]"}},
    {.node = "Conv n x w -> y | strides=2 dilations=2 group=2", .inputs = {"x float[1,4,9]", "w float[6,2,3]"}},
    {.node = "ConvTranspose n x w b -> y | pads=1,0,1,1 strides=2,1", .inputs = {"x float[2,3,4,3]"}, .constants = {"w float[3,2,3,3]", "b float[2]"}},
    {.node = "MatMul n a b -> y", .inputs = {"a float[3,9]", "b float[9,2]"}},
    {.node = "MatMul n a b -> y", .inputs = {"a float[2,3,40]"}, .constants = {"b float[40,2]"}, .lo = -2e3, .hi = 2e3},
    {.node = "MatMul n a b -> y", .inputs = {"a int32[2,3] 0 0 0 0 0 0", "b int32[3,1] 0 0 0"}, .lo = -40, .hi = 40},
    {.node = "Gemm n a b c -> y | alpha=-0.5 beta=2 transA=1", .inputs = {"a float[4,3]", "c float[2]"}, .constants = {"b float[4,2]"}},
    {.node = "Gemm n a b c -> y | alpha=0.5 beta=-2 transB=1", .inputs = {"a float[3,4]", "b float[2,4]", "c float[2]"}},
    {.node = "Einsum n a b -> y | equation=bij,bjk->bik", .inputs = {"a float[2,3,4]", "b float[2,4,2]"}},
    {.node = "com.microsoft.FusedMatMul n a b -> y | alpha=-2 transB=1", .inputs = {"a float[3,4]", "b float[2,4]"}},
    {.node = "com.microsoft.TransposeMatMul n a b -> y | alpha=0.5 transA=1", .inputs = {"a float[4,3]", "b float[4,2]"}},
    // Reductions and windows.
    {.node = "ReduceSum n x a -> y | keepdims=0", .inputs = {"x float[2,3,4]"}, .constants = {"a int64[2] 0 -1"}, .lo = -5e3, .hi = 5e3},
    {.node = "ReduceMean n x a -> y", .inputs = {"x float[2,3,4]"}, .constants = {"a int64[1] 1"}},
    {.node = "ReduceMax n x a -> y", .inputs = {"x float[2,3,4]"}, .constants = {"a int64[1] 1"}},
    {.node = "ReduceMin n x -> y", .inputs = {"x float[2,3]"}},
    {.node = "ReduceL1 n x a -> y", .inputs = {"x float[3,4]"}, .constants = {"a int64[1] 0"}},
    {.node = "ReduceL2 n x a -> y", .inputs = {"x float[3,4]"}, .constants = {"a int64[1] 1"}, .lo = -200, .hi = 200},
    {.node = "ReduceSumSquare n x a -> y", .inputs = {"x float[3,4]"}, .constants = {"a int64[1] 1"}, .lo = -200, .hi = 200},
    {.node = "ReduceLogSumExp n x a -> y", .inputs = {"x float[3,4]"}, .constants = {"a int64[1] 1"}, .lo = -20, .hi = 20},
    {.node = "GlobalAveragePool n x -> y", .inputs = {"x float[2,3,2,2]"}},
    {.node = "AveragePool n x -> y | kernel_shape=2,3 pads=1,1,0,1 strides=1,2", .inputs = {"x float[1,2,4,5]"}},
    {.node = "AveragePool n x -> y | kernel_shape=2,2 pads=1,1,1,1 count_include_pad=1", .inputs = {"x float[1,2,3,3]"}},
    {.node = "GlobalMaxPool n x -> y", .inputs = {"x float[2,3,2,2]"}},
    {.node = "MaxPool n x -> y i | kernel_shape=2,2 strides=1,2", .inputs = {"x float[1,2,4,5]"}, .outputs = "y i"},
    {.node = "CumSum n x a -> y | exclusive=1", .inputs = {"x float[2,9]"}, .constants = {"a int64[] 1"}, .lo = -9e3, .hi = 9e3},
    {.node = "CumSum n x a -> y | reverse=1", .inputs = {"x float[9,2]"}, .constants = {"a int64[] 0"}},
    {.node = "Resize n x _ s -> y | mode=linear", .inputs = {"x float[1,2,3,4]"}, .constants = {"s float[4] 1 1 2 1.5"}},
    {.node = "Resize n x _ s -> y | mode=cubic", .inputs = {"x float[1,2,3,4]"}, .constants = {"s float[4] 1 1 2 1.5"}},
    {.node = "Resize n x _ s -> y | mode=nearest", .inputs = {"x float[2,3,4]"}, .constants = {"s float[3] 2 1 0.5"}},
    {.node = "Upsample n x s -> y | mode=linear", .inputs = {"x float[1,2,3]"}, .constants = {"s float[3] 1 1 2"}, .opset = 9},
    {.node = "GridSample n x g -> y", .inputs = {"x float[1,2,4,4]", "g float[1,2,2,2]"}, .lo = -1, .hi = 1},
    {.node = "RoiAlign n x r b -> y | output_height=2 output_width=2", .inputs = {"x float[1,2,5,5]"}, .constants = {"r float[1,4] 0 0 3 3", "b int64[1] 0"}},
    // Normalizations and their like.
    {.node = "BatchNormalization n x s o m v -> y | epsilon=0.01", .inputs = {"x float[2,3,4]"},
     .constants = {"s float[3]", "o float[3]", "m float[3]", "v float[3] positive"}, .lo = -50, .hi = 50},
    {.node = "LayerNormalization n x s o -> y m i | epsilon=0.01", .inputs = {"x float[3,8]"}, .constants = {"s float[8]", "o float[8]"}, .outputs = "y m i"},
    {.node = "LayerNormalization n x s -> y | axis=-2", .inputs = {"x float[2,3,4]"}, .constants = {"s float[3,4]"}, .lo = -200, .hi = 200},
    {.node = "RMSNormalization n x s -> y", .inputs = {"x float[3,8]"}, .constants = {"s float[8]"}, .opset = 23},
    {.node = "InstanceNormalization n x s o -> y", .inputs = {"x float[2,3,4]"}, .constants = {"s float[3]", "o float[3]"}},
    {.node = "GroupNormalization n x s o -> y | num_groups=2", .inputs = {"x float[2,4,3]"}, .constants = {"s float[4]", "o float[4]"}},
    {.node = "LpNormalization n x -> y | p=2", .inputs = {"x float[2,5]"}, .lo = 0.5, .hi = 4},
    {.node = "LRN n x -> y | size=3 alpha=0.5", .inputs = {"x float[1,4,2,2]"}},
    {.node = "Softmax n x -> y | axis=1", .inputs = {"x float[2,5,2]"}, .lo = -40, .hi = 40},
    {.node = "Softmax n x -> y | axis=1", .inputs = {"x float[2,3,2]"}, .opset = 11},
    {.node = "LogSoftmax n x -> y", .inputs = {"x float[2,5]"}, .lo = -40, .hi = 40},
    {.node = "Hardmax n x -> y", .inputs = {"x float[2,5]"}},
    {.node = "LSTM n x w r b -> y yh yc | hidden_size=3 direction=bidirectional", .inputs = {"x float[4,2,3]"},
     .constants = {"w float[2,12,3]", "r float[2,12,3]", "b float[2,24]"}, .outputs = "y yh yc"},
    {.node = "GRU n x w r _ _ h -> y yh | hidden_size=2", .inputs = {"x float[5,2,3]", "h float[1,2,2]"}, .constants = {"w float[1,6,3]", "r float[1,6,2]"},
     .outputs = "y yh"},
    {.node = "RNN n x w r -> y yh | hidden_size=2", .inputs = {"x float[5,2,3]"}, .constants = {"w float[1,2,3]", "r float[1,2,2]"}, .outputs = "y yh"},
    {.node = "Attention n q k v -> y", .inputs = {"q float[1,2,3,4]", "k float[1,2,5,4]", "v float[1,2,5,4]"}, .opset = 23},
    // Picked and counted elements.
    {.node = "Gather n t i -> y", .inputs = {"t float[4,3]", "i int64[2] 0 0"}, .lo = 0, .hi = 3},
    {.node = "Gather n t i -> y | axis=1", .inputs = {"t float[2,4]"}, .constants = {"i int64[3] 3 0 3"}},
    {.node = "ArgMax n x -> y | axis=1", .inputs = {"x float[2,4]"}},
    {.node = "ArgMin n x -> y | axis=1", .inputs = {"x float[2,4]"}},
    {.node = "TopK n x k -> y i | axis=0", .inputs = {"x float[6]"}, .constants = {"k int64[1] 3"}, .outputs = "y i"},
    {.node = "OneHot n i d v -> y", .inputs = {"i int64[3] 0 0 0"}, .constants = {"d int64[] 4", "v float[2] -1.5 2"}, .lo = 0, .hi = 3},
    {.node = "ScatterElements n x i u -> y | reduction=add", .inputs = {"x float[4]", "u float[3]"}, .constants = {"i int64[3] 1 1 2"}},
    {.node = "ScatterElements n x i u -> y", .inputs = {"x float[4]", "u float[3]"}, .constants = {"i int64[3] 1 0 2"}},
    {.node = "ScatterElements n x i u -> y | reduction=mul", .inputs = {"x float[4]", "u float[3]"}, .constants = {"i int64[3] 1 1 2"}},
    {.node = "ScatterND n x i u -> y", .inputs = {"x float[4,2]", "u float[1,2]"}, .constants = {"i int64[1,1] 2"}},
    {.node = "Shape n x -> y", .inputs = {"x float[4,2]"}},
    {.node = "Size n x -> y", .inputs = {"x float[4,2]"}},
    {.node = "EyeLike n x -> y", .inputs = {"x float[3,3]"}},
    {.node = "RandomUniformLike n x -> y | low=-2 high=5", .inputs = {"x float[30]"}},
    {.node = "RandomNormalLike n x -> y | mean=1 scale=2", .inputs = {"x float[30]"}},
    {.node = "Bernoulli n x -> y", .inputs = {"x float[30]"}, .lo = 0, .hi = 1},
    // Quantized numbers.
    {.node = "QuantizeLinear n x s z -> y", .inputs = {"x float[6]"}, .constants = {"s float[] 0.02", "z uint8[] 100"}},
    {.node = "DequantizeLinear n x s z -> y | axis=0", .inputs = {"x int8[3] 0 0 0"}, .constants = {"s float[3] 0.02 0.5 2", "z int8[3] 1 -2 3"}, .lo = -128, .hi = 127},
    {.node = "com.microsoft.QuantizeLinear n x s z -> y", .inputs = {"x float[6]"}, .constants = {"s float[] 0.02", "z uint8[] 100"}},
    {.node = "com.microsoft.DequantizeLinear n x s z -> y", .inputs = {"x uint8[3] 0 0 0"}, .constants = {"s float[] 0.02", "z uint8[] 3"}, .lo = 0, .hi = 255},
    {.node = "DynamicQuantizeLinear n x -> y s z", .inputs = {"x float[6]"}, .outputs = "y s z"},
    {.node = "MatMulInteger n a b za -> y", .inputs = {"a uint8[2,3] 0 0 0 0 0 0"}, .constants = {"b int8[3,2] 1 -2 3 4 -5 6", "za uint8[] 7"}, .lo = 0, .hi = 255},
    {.node = "ConvInteger n x w z -> y | pads=1,1", .inputs = {"x uint8[1,2,4] 0 0 0 0 0 0 0 0"}, .constants = {"w int8[2,2,2] 1 -2 3 4 -5 6 7 -8", "z uint8[] 9"},
     .lo = 0, .hi = 255},
    {.node = "QLinearMatMul n a sa za b sb zb sy zy -> y", .inputs = {"a uint8[2,2] 0 0 0 0"},
     .constants = {"sa float[] 0.1", "za uint8[] 3", "b uint8[2,2] 1 200 3 40", "sb float[] 0.1", "zb uint8[] 9", "sy float[] 0.5", "zy uint8[] 8"},
     .lo = 0, .hi = 255},
    {.node = "QLinearConv n x sx zx w sw zw sy zy -> y", .inputs = {"x uint8[1,1,4] 0 0 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "w uint8[1,1,2] 1 200", "sw float[] 0.1", "zw uint8[] 9", "sy float[] 0.5", "zy uint8[] 8"},
     .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearConv n x sx zx w sw zw sy zy -> y", .inputs = {"x uint8[1,1,2,2] 0 0 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "w uint8[1,1,1,2] 1 200", "sw float[] 0.1", "zw uint8[] 9", "sy float[] 0.5", "zy uint8[] 8"},
     .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearAdd n a sa za b sb zb sy zy -> y", .inputs = {"a uint8[2] 0 0", "b uint8[2] 0 0"},
     .constants = {"sa float[] 0.1", "za uint8[] 3", "sb float[] 0.1", "zb uint8[] 9", "sy float[] 0.5", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearMul n a sa za b sb zb sy zy -> y", .inputs = {"a uint8[2] 0 0", "b uint8[2] 0 0"},
     .constants = {"sa float[] 0.1", "za uint8[] 3", "sb float[] 0.1", "zb uint8[] 9", "sy float[] 0.5", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearSigmoid n x sx zx sy zy -> y", .inputs = {"x uint8[2] 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "sy float[] 0.01", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearLeakyRelu n x sx zx sy zy -> y", .inputs = {"x uint8[2] 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "sy float[] 0.01", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearAveragePool n x sx zx sy zy -> y | kernel_shape=2,2", .inputs = {"x uint8[1,1,2,2] 0 0 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "sy float[] 0.01", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearGlobalAveragePool n x sx zx sy zy -> y", .inputs = {"x uint8[1,1,2,2] 0 0 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "sy float[] 0.01", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearConcat n sy zy x sx zx -> y | axis=0", .inputs = {"x uint8[2] 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "sy float[] 0.01", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    {.node = "com.microsoft.QLinearSoftmax n x sx zx sy zy -> y | opset=13", .inputs = {"x uint8[1,4] 0 0 0 0"},
     .constants = {"sx float[] 0.1", "zx uint8[] 3", "sy float[] 0.01", "zy uint8[] 8"}, .lo = 0, .hi = 255},
    // Rows that have none: what moves elements, and by rounding bounds.
    {.node = "Transpose n x -> y | perm=1,0", .inputs = {"x float[2,3]"}},
    {.node = "Concat n a b a -> y | axis=0", .inputs = {"a float[2,2]", "b float[1,2]"}},
    {.node = "Pad n x p v -> y", .inputs = {"x float[2,3]", "v float[]"}, .constants = {"p int64[4] 1 0 0 2"}},
    {.node = "Pad n x p -> y | mode=reflect", .inputs = {"x float[2,3]"}, .constants = {"p int64[4] 1 1 0 2"}},
    {.node = "GatherElements n x i -> y | axis=1", .inputs = {"x float[2,3]", "i int64[2,2] 0 0 0 0"}, .lo = 0, .hi = 2},
    {.node = "Tan n x -> y", .inputs = {"x float[4]"}, .lo = -0.5, .hi = 0.5},
    {.node = "DFT n x -> y", .inputs = {"x float[1,6,1]"}, .opset = 17},
};
// clang-format on

// ---- every row of the table has one here --------------------------------------------------------

typedef struct name {
  const char *domain, *op;
} name_t;

#define ASSAY_RANGE(domain, op, function, ...) {domain, op},
static const name_t names[] = {
#include "ranges/rows.inc"
};
#undef ASSAY_RANGE

// Without inputs that could be in a box, or with bodies (test_ranges_graphs.c).
static const char* const elsewhere[] = {
    "RandomUniform", "RandomNormal", "If", "Loop", "Scan", "SimplifiedLayerNormalization"};

static bool is_elsewhere(const char* op) {
  for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
    if (!strcmp(elsewhere[i], op)) return true;
  return false;
}

static void test_every_row_has_a_case(void** state) {
  (void)state;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    char start[96];
    bool found = is_elsewhere(names[k].op);
    snprintf(start, sizeof start, "%s%s%s ", names[k].domain, *names[k].domain ? "." : "",
             names[k].op);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
      found |= !strncmp(rows[i].node, start, strlen(start));
    if (!found) fail_msg("no case for the rule of %s", start);
  }
}

// ---- the rules ----------------------------------------------------------------------------------

enum { BOXES = 40, POINTS = 18 };

// A box within the row's: the whole, a point, or between two numbers of it.
static void draw_box(range_case_t* c, const rule_row_t* row, int k, uint64_t* state) {
  const bool usual = row->lo == 0 && row->hi == 0;
  const double min = usual ? -3 : row->lo, max = usual ? 3 : row->hi;
  for (size_t i = 0; i < c->box.n; i++) {
    assay_box_input_t* in = &c->box.inputs[i];
    double a = min + (max - min) * range_case_uniform(state),
           b = min + (max - min) * range_case_uniform(state);
    if (k == 0) a = min, b = max;
    if (k == 1) b = a;
    if (k == 2 && b != 0) b = a + fabs(a) * 1e-3;
    if (k == 3) a = 0 > min ? 0 : min;
    in->lo = fmin(fmax(fmin(a, b), min), max);
    in->hi = fmax(fmin(fmax(a, b), max), min);
    if (in->is_float) {
      in->lo = assay_format_round(ASSAY_FORMAT_FP32, in->lo, ASSAY_OVERFLOW_SATURATE);
      in->hi = assay_format_round(ASSAY_FORMAT_FP32, in->hi, ASSAY_OVERFLOW_SATURATE);
    } else {
      in->lo = floor(in->lo);
      in->hi = ceil(in->hi);
    }
  }
}

static int check_row(const rule_row_t* row, assay_format_t format) {
  graph_case_t graph = {.name = row->node,
                        .opset = row->opset ? row->opset : 21,
                        .nodes = {row->node},
                        .outputs = row->outputs ? row->outputs : "y"};
  for (size_t i = 0; i < 4; i++) graph.inputs[i] = row->inputs[i];
  for (size_t i = 0; i < 8; i++) graph.constants[i] = row->constants[i];
  range_case_t c;
  uint64_t state = 17;
  int safe = 0;
  range_case_init(&c, &graph, format);
  for (int k = 0; k < BOXES; k++) {
    assay_ranges_t r = {0};
    draw_box(&c, row, k, &state);
    range_case_find(&c, &r);
    safe += !r.n_hazards;
    // Of a point the range is what the engine makes of it, not what truth does.
    const bool truth = format == ASSAY_FORMAT_FP32 && !row->rounds && !range_case_is_point(&c);
    range_case_points(&c, &r, POINTS, truth, &state);
    assay_ranges_deinit(&r);
  }
  if (!safe != row->unsafe) {
    print_error("%s in %s: %s box was safe\n", row->node, assay_format_name(format),
                safe ? "a" : "no");
    c.faults++;
  }
  range_case_deinit(&c);
  return c.faults;
}

static void test_rules(void** state) {
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};
  int faults = 0;
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++)
      faults += check_row(&rows[i], formats[f]);
  assert_int_equal(faults, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_row_has_a_case),
                                     cmocka_unit_test(test_rules)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
