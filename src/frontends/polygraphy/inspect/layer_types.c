// TensorRT's kinds of layers, as --trt-outputs-by-type names them.
#include "frontends/polygraphy/inspect/layer_types.h"

#include <string.h>
#include <strings.h>

static const struct {
  const char *type, *ops;  // operators with '|' between
} rows[] = {
    {"CONVOLUTION", "|Conv|ConvInteger|QLinearConv|"},
    {"DECONVOLUTION", "|ConvTranspose|"},
    {"ACTIVATION",
     "|Relu|Sigmoid|Tanh|Elu|Selu|LeakyRelu|HardSigmoid|Softplus|Softsign|Clip|"
     "ThresholdedRelu|Gelu|"},
    {"POOLING", "|MaxPool|AveragePool|GlobalAveragePool|GlobalMaxPool|"},
    {"LRN", "|LRN|"},
    {"SCALE", "|BatchNormalization|"},
    {"NORMALIZATION", "|LayerNormalization|InstanceNormalization|GroupNormalization|"},
    {"SOFTMAX", "|Softmax|LogSoftmax|"},
    {"CONCATENATION", "|Concat|"},
    {"ELEMENTWISE", "|Add|Sub|Mul|Div|Pow|Min|Max|And|Or|Xor|Equal|Greater|Less|Mod|PRelu|"},
    {"UNARY",
     "|Exp|Log|Sqrt|Reciprocal|Abs|Neg|Sin|Cos|Tan|Sinh|Cosh|Asin|Acos|Atan|Asinh|Acosh|"
     "Atanh|Ceil|Floor|Round|Erf|Not|Sign|IsInf|IsNaN|"},
    {"PADDING", "|Pad|"},
    {"SHUFFLE", "|Reshape|Transpose|Squeeze|Unsqueeze|Flatten|DepthToSpace|SpaceToDepth|"},
    {"REDUCE",
     "|ReduceMean|ReduceSum|ReduceMax|ReduceMin|ReduceProd|ReduceL1|ReduceL2|"
     "ReduceSumSquare|ReduceLogSum|ReduceLogSumExp|"},
    {"TOPK", "|TopK|ArgMax|ArgMin|"},
    {"GATHER", "|Gather|GatherElements|GatherND|"},
    {"SCATTER", "|ScatterElements|ScatterND|Scatter|"},
    {"MATRIX_MULTIPLY", "|MatMul|Gemm|MatMulInteger|QLinearMatMul|"},
    {"CONSTANT", "|Constant|ConstantOfShape|"},
    {"IDENTITY", "|Identity|Dropout|"},
    {"CAST", "|Cast|CastLike|"},
    {"SLICE", "|Slice|Split|"},
    {"SHAPE", "|Shape|Size|"},
    {"RESIZE", "|Resize|Upsample|"},
    {"SELECT", "|Where|"},
    {"FILL", "|Range|RandomNormal|RandomUniform|EyeLike|Expand|"},
    {"QUANTIZE", "|QuantizeLinear|DynamicQuantizeLinear|"},
    {"DEQUANTIZE", "|DequantizeLinear|"},
    {"EINSUM", "|Einsum|"},
    {"NON_ZERO", "|NonZero|"},
    {"NMS", "|NonMaxSuppression|"},
    {"GRID_SAMPLE", "|GridSample|"},
    {"ONE_HOT", "|OneHot|"},
    {"CUMULATIVE", "|CumSum|"},
    {"RECURRENCE", "|LSTM|GRU|RNN|Scan|Loop|"},
    {"CONDITION", "|If|"},
};

bool pg_is_layer_type(const assay_node_t* n, const char* type) {
  if (strcmp(n->op_type, type) == 0) return true;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcasecmp(rows[i].type, type) != 0) continue;
    const char* at = strstr(rows[i].ops, n->op_type);
    const size_t len = strlen(n->op_type);
    for (; at; at = strstr(at + 1, n->op_type))
      if (at[-1] == '|' && at[len] == '|') return true;
  }
  return false;
}
