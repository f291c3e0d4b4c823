// Models of one node for bound_cases.c: operators that have no test among ONNX's, and sizes that
// those tests do not have (long sums). Contents of float inputs are made there; what stands here
// shows the shapes. Inputs that must stay as they are (sizes, scales of quantization) come as
// integers, or are refused with other contents.
#ifndef ASSAY_TESTS_ACCURACY_BOUND_MODELS_H_
#define ASSAY_TESTS_ACCURACY_BOUND_MODELS_H_

#include "ops/op_case.h"

static const op_case_t bound_models[] = {
    // long sums
    {"MatMul", 13, NULL, {"float[4,700] iota", "float[700,8] iota"}, {"?"}, NULL},
    {"MatMul", 13, NULL, {"float[2,5000] iota", "float[5000,3] iota"}, {"?"}, NULL},
    {"Gemm",
     13,
     "transB=1",
     {"float[3,900] iota", "float[5,900] iota", "float[5] iota"},
     {"?"},
     NULL},
    {"Conv",
     22,
     NULL,
     {"float[1,96,7,7] iota", "float[8,96,3,3] iota", "float[8] iota"},
     {"?"},
     NULL},
    {"ReduceSum", 13, NULL, {"float[3,3000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"ReduceMean", 18, NULL, {"float[3,3000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"ReduceL2", 18, NULL, {"float[3,3000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"ReduceLogSumExp", 18, NULL, {"float[3,2000] iota", "int64[1] 1"}, {"?"}, NULL},
    {"CumSum", 14, NULL, {"float[2,1500] iota", "int64[] 1"}, {"?"}, NULL},
    {"Softmax", 13, NULL, {"float[3,2000] iota"}, {"?"}, NULL},
    {"LogSoftmax", 13, NULL, {"float[3,2000] iota"}, {"?"}, NULL},
    {"LayerNormalization",
     17,
     NULL,
     {"float[3,768] iota", "float[768] iota", "float[768] iota"},
     {"?"},
     NULL},
    {"RMSNormalization", 23, NULL, {"float[3,768] iota", "float[768] iota"}, {"?"}, NULL},
    {"InstanceNormalization",
     6,
     NULL,
     {"float[2,3,20,20] iota", "float[3] iota", "float[3] iota"},
     {"?"},
     NULL},
    {"AveragePool", 22, "kernel_shape=7,7", {"float[1,4,14,14] iota"}, {"?"}, NULL},
    {"GlobalAveragePool", 22, NULL, {"float[1,4,30,30] iota"}, {"?"}, NULL},
    // transforms
    {"DFT", 20, NULL, {"float[2,7,1] iota"}, {"?"}, NULL},
    {"DFT", 20, NULL, {"float[2,64,1] iota"}, {"?"}, NULL},
    {"DFT", 20, NULL, {"float[2,100,1] iota"}, {"?"}, NULL},
    {"DFT", 20, NULL, {"float[2,127,1] iota"}, {"?"}, NULL},
    {"DFT", 20, NULL, {"float[2,513,1] iota"}, {"?"}, NULL},
    {"DFT", 20, "inverse=1", {"float[2,48,2] iota"}, {"?"}, NULL},
    {"DFT", 20, "onesided=1", {"float[2,60,1] iota"}, {"?"}, NULL},
    {"DFT", 20, "onesided=1 inverse=1", {"float[2,33,2] iota"}, {"?"}, NULL},
    {"STFT", 17, NULL, {"float[1,300,1] iota", "int64[] 50", "float[100] iota"}, {"?"}, NULL},
    {"com.microsoft.Rfft",
     1,
     "signal_ndim=1 onesided=1 normalized=0",
     {"float[3,40] iota"},
     {"?"},
     NULL},
    {"com.microsoft.Irfft",
     1,
     "signal_ndim=1 onesided=1 normalized=0",
     {"float[3,21,2] iota"},
     {"?"},
     NULL},
    {"com.microsoft.ComplexMul", 1, NULL, {"float[5,16,2] iota", "float[16,2] iota"}, {"?"}, NULL},
    {"com.microsoft.ComplexMulConj",
     1,
     NULL,
     {"float[5,16,2] iota", "float[16,2] iota"},
     {"?"},
     NULL},
    // linear algebra
    {"Det", 22, NULL, {"float[3,1,1] iota"}, {"?"}, NULL},
    {"Det", 22, NULL, {"float[3,2,2] iota"}, {"?"}, NULL},
    {"Det", 22, NULL, {"float[3,5,5] iota"}, {"?"}, NULL},
    {"Det", 22, NULL, {"float[3,12,12] iota"}, {"?"}, NULL},
    {"com.microsoft.Inverse", 1, NULL, {"float[3,1,1] iota"}, {"?"}, NULL},
    {"com.microsoft.Inverse", 1, NULL, {"float[3,3,3] iota"}, {"?"}, NULL},
    {"com.microsoft.Inverse", 1, NULL, {"float[3,8,8] iota"}, {"?"}, NULL},
    {"com.microsoft.CDist",
     1,
     "metric=sqeuclidean",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=euclidean",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=cityblock",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=chebyshev",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=canberra",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=braycurtis",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=cosine",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    {"com.microsoft.CDist",
     1,
     "metric=hamming",
     {"float[4,20] iota", "float[5,20] iota"},
     {"?"},
     NULL},
    // losses, optimizers, draws
    {"NegativeLogLikelihoodLoss",
     22,
     "reduction=mean",
     {"float[50,9] iota",
      "int64[50] 0 7 5 3 1 8 6 4 2 0 7 5 3 1 8 6 4 2 0 7 5 3 1 8 6 4 2 0 7 5 3 1 8 6 4 2 0 7 5 3 1 "
      "8 6 4 2 0 7 5 3 1",
      "float[9] iota"},
     {"?"},
     NULL},
    {"SoftmaxCrossEntropyLoss",
     13,
     "reduction=mean",
     {"float[50,9] iota",
      "int64[50] 0 7 5 3 1 8 6 4 2 0 7 5 3 1 8 6 4 2 0 7 5 3 1 8 6 4 2 0 7 5 3 1 8 6 4 2 0 7 5 3 1 "
      "8 6 4 2 0 7 5 3 1",
      "float[9] iota"},
     {"?", "?"},
     NULL},
    {"SoftmaxCrossEntropyLoss",
     13,
     "reduction=none",
     {"float[6,300] iota", "int64[6] 1 5 299 0 7 7"},
     {"?", "?"},
     NULL},
    {"ai.onnx.preview.training.Adagrad",
     1,
     "decay_factor=0.01 epsilon=1e-5 norm_coefficient=0.01",
     {"float[] 0.1", "int64[] 3", "float[40] iota", "float[40] iota", "float[40] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.preview.training.Adam",
     1,
     "norm_coefficient=0.01 norm_coefficient_post=0.01",
     {"float[] 0.1", "int64[] 3", "float[40] iota", "float[40] iota", "float[40] iota",
      "float[40] iota"},
     {"?", "?", "?"},
     NULL},
    {"ai.onnx.preview.training.Momentum",
     1,
     "alpha=0.9 beta=0.8 norm_coefficient=0.01 mode=nesterov",
     {"float[] 0.1", "int64[] 3", "float[40] iota", "float[40] iota", "float[40] iota"},
     {"?", "?"},
     NULL},
    {"RandomNormalLike", 22, "mean=3 scale=2", {"float[50] iota"}, {"?"}, NULL},
    {"RandomUniformLike", 22, "low=-3 high=2", {"float[50] iota"}, {"?"}, NULL},
    {"RandomNormal", 22, "mean=3 scale=2 shape=50", {NULL}, {"?"}, NULL},
    {"RandomUniform", 22, "low=1 high=2 shape=50", {NULL}, {"?"}, NULL},
    {"Dropout", 22, NULL, {"float[60] iota", "float[] 0.3", "bool[] 1"}, {"?", "?"}, NULL},
    {"com.microsoft.BitmaskDropout",
     1,
     NULL,
     {"float[60] iota", "float[] 0.3", "bool[] 1"},
     {"?", "?"},
     NULL},
    {"Range", 11, NULL, {"float[] 0.1", "float[] 40", "float[] 0.3"}, {"?"}, NULL},
    {"com.microsoft.Range", 1, NULL, {"float[] -0.1", "float[] -40", "float[] -0.3"}, {"?"}, NULL},
    {"HannWindow", 17, "periodic=0", {"int64[] 200"}, {"?"}, NULL},
    {"HannWindow", 17, NULL, {"int64[] 333"}, {"?"}, NULL},
    {"HammingWindow", 17, "periodic=0", {"int64[] 200"}, {"?"}, NULL},
    {"HammingWindow", 17, NULL, {"int64[] 333"}, {"?"}, NULL},
    {"BlackmanWindow", 17, "periodic=0", {"int64[] 200"}, {"?"}, NULL},
    {"BlackmanWindow", 17, NULL, {"int64[] 333"}, {"?"}, NULL},
    {"MelWeightMatrix",
     17,
     NULL,
     {"int64[] 20", "int64[] 256", "int64[] 16000", "float[] 20", "float[] 8000"},
     {"?"},
     NULL},
    // moved and scattered
    {"ScatterElements",
     18,
     "reduction=add",
     {"float[9] iota",
      "int64[200] 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 "
      "7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 "
      "7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 "
      "0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 "
      "4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1",
      "float[200] iota"},
     {"?"},
     NULL},
    {"ScatterElements",
     18,
     "reduction=mul",
     {"float[9] iota",
      "int64[40] 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0 7 7 0 4 1 0 1 4 0",
      "float[40] iota"},
     {"?"},
     NULL},
    {"ScatterND",
     18,
     "reduction=add",
     {"float[4,5] iota",
      "int64[60,1] 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 "
      "0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1 0 1",
      "float[60,5] iota"},
     {"?"},
     NULL},
    {"ScatterND",
     18,
     "reduction=max",
     {"float[4,5] iota", "int64[9,1] 0 1 0 1 0 1 0 1 0", "float[9,5] iota"},
     {"?"},
     NULL},
    {"TopK", 11, NULL, {"float[4,50] iota", "int64[1] 7"}, {"?", "?"}, NULL},
    // places
    {"GridSample",
     22,
     "mode=linear padding_mode=zeros align_corners=0",
     {"float[2,3,9,11] iota", "float[2,6,7,2] iota"},
     {"?"},
     NULL},
    {"GridSample",
     22,
     "mode=linear padding_mode=border align_corners=1",
     {"float[2,3,9,11] iota", "float[2,6,7,2] iota"},
     {"?"},
     NULL},
    {"GridSample",
     22,
     "mode=linear padding_mode=reflection align_corners=0",
     {"float[2,3,9,11] iota", "float[2,6,7,2] iota"},
     {"?"},
     NULL},
    {"GridSample",
     22,
     "mode=cubic padding_mode=zeros align_corners=0",
     {"float[2,3,9,11] iota", "float[2,6,7,2] iota"},
     {"?"},
     NULL},
    {"GridSample",
     22,
     "mode=cubic padding_mode=border align_corners=1",
     {"float[2,3,9,11] iota", "float[2,6,7,2] iota"},
     {"?"},
     NULL},
    {"GridSample",
     22,
     "mode=nearest padding_mode=zeros align_corners=0",
     {"float[2,3,9,11] iota", "float[2,6,7,2] iota"},
     {"?"},
     NULL},
    {"GridSample",
     22,
     "mode=linear",
     {"float[1,2,5,6,7] iota", "float[1,3,4,5,3] iota"},
     {"?"},
     NULL},
    {"com.microsoft.GridSample",
     1,
     "mode=bilinear",
     {"float[1,2,9,11] iota", "float[1,6,7,2] iota"},
     {"?"},
     NULL},
    {"AffineGrid", 20, NULL, {"float[2,2,3] iota", "int64[4] 2 3 9 11"}, {"?"}, NULL},
    {"AffineGrid", 20, "align_corners=1", {"float[2,3,4] iota", "int64[5] 2 3 5 6 7"}, {"?"}, NULL},
    {"RoiAlign",
     22,
     "output_height=3 output_width=4 sampling_ratio=2 spatial_scale=0.5",
     {"float[2,3,16,20] iota", "float[3,4] 1 2 20 22 5 5 17 30 0 0 39 31", "int64[3] 0 1 1"},
     {"?"},
     NULL},
    {"RoiAlign",
     22,
     "output_height=3 output_width=4 mode=max",
     {"float[2,3,16,20] iota", "float[3,4] 1.2 2.1 11.4 13 5 5 9.3 15 0.5 0.25 19 14.5",
      "int64[3] 0 1 1"},
     {"?"},
     NULL},
    {"MaxRoiPool",
     22,
     "pooled_shape=3,4 spatial_scale=0.3",
     {"float[2,3,16,20] iota", "float[3,5] 0 3 4 30 40 1 7 8 55 44 1 0 0 60 47"},
     {"?"},
     NULL},
    {"com.microsoft.CropAndResize",
     1,
     NULL,
     {"float[2,3,16,20] iota", "float[3,4] 0.1 0.2 0.9 0.7 0 0 1 1 0.3 0.1 0.4 1.2",
      "int32[3] 0 1 1", "int32[2] 5 6"},
     {"?"},
     NULL},
    {"NonMaxSuppression",
     11,
     NULL,
     {"float[2,30,4] iota", "float[2,3,30] iota", "int64[] 5", "float[] 0.5"},
     {"?"},
     NULL},
    {"EfficientNMS_TRT",
     1,
     "max_output_boxes=10 score_threshold=0.1 score_activation=1",
     {"float[2,30,4] iota", "float[2,30,3] iota"},
     {"?", "?", "?", "?"},
     NULL},
    {"EfficientNMS_TRT",
     1,
     "max_output_boxes=10 score_threshold=0.1 box_coding=1",
     {"float[2,30,4] iota", "float[2,30,3] iota", "float[1,30,4] iota"},
     {"?", "?", "?", "?"},
     NULL},
    // classical models
    {"ai.onnx.ml.Scaler", 1, "offset=1,2,3,0.5 scale=0.3,7,-1,2", {"float[9,4] iota"}, {"?"}, NULL},
    {"ai.onnx.ml.Normalizer", 1, "norm=MAX", {"float[9,40] iota"}, {"?"}, NULL},
    {"ai.onnx.ml.Normalizer", 1, "norm=L1", {"float[9,40] iota"}, {"?"}, NULL},
    {"ai.onnx.ml.Normalizer", 1, "norm=L2", {"float[9,40] iota"}, {"?"}, NULL},
    {"ai.onnx.ml.Imputer",
     1,
     "imputed_value_floats=1,2,3,0.5 replaced_value_float=2",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.FeatureVectorizer", 1, NULL, {"float[9,4] iota", "float[9,3] iota"}, {"?"}, NULL},
    {"ai.onnx.ml.LinearRegressor",
     1,
     "targets=3 "
     "coefficients=0.0409,0.465,-0.461,0.353,0.926,0.411,1.56,-0.885,0.0674,-0.705,-0.784,-0.184 "
     "intercepts=0.1,0.2,-1 post_transform=NONE",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.LinearClassifier",
     1,
     "classlabels_ints=5,6,7 "
     "coefficients=0.221,0.419,0.508,2.23,0.863,-1.59,0.204,-0.623,-0.516,1.31,-0.223,-1.95 "
     "intercepts=0.1,0.2,-1 post_transform=NONE",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.LinearRegressor",
     1,
     "targets=3 "
     "coefficients=0.311,-0.291,-1.17,-0.921,-0.625,-0.0234,-0.427,0.0715,1.84,-0.8,-0.807,-0.249 "
     "intercepts=0.1,0.2,-1 post_transform=SOFTMAX",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.LinearClassifier",
     1,
     "classlabels_ints=5,6,7 "
     "coefficients=1.1,-0.706,1.43,-1.31,-1.03,-0.0544,-0.863,-0.618,0.451,0.724,0.114,-0.275 "
     "intercepts=0.1,0.2,-1 post_transform=SOFTMAX",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.LinearRegressor",
     1,
     "targets=3 "
     "coefficients=1.34,0.403,-0.235,1.21,-0.901,0.165,0.66,-0.0113,-0.575,0.351,-0.541,-0.595 "
     "intercepts=0.1,0.2,-1 post_transform=LOGISTIC",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.LinearClassifier",
     1,
     "classlabels_ints=5,6,7 "
     "coefficients=-1.02,1.3,-0.549,1.15,0.381,-0.261,0.668,0.272,0.132,-1.38,0.0708,0.894 "
     "intercepts=0.1,0.2,-1 post_transform=LOGISTIC",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.LinearRegressor",
     1,
     "targets=3 "
     "coefficients=0.487,0.996,1.49,0.411,1.97,-1.51,-0.241,-2.52,0.821,0.0942,1.69,-0.366 "
     "intercepts=0.1,0.2,-1 post_transform=SOFTMAX_ZERO",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.LinearClassifier",
     1,
     "classlabels_ints=5,6,7 "
     "coefficients=-2.03,1.28,-1.34,-1.27,-0.176,0.628,-0.509,0.186,-1.88,1.73,-0.0672,0.12 "
     "intercepts=0.1,0.2,-1 post_transform=SOFTMAX_ZERO",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.LinearRegressor",
     1,
     "targets=3 "
     "coefficients=0.586,0.169,0.2,-0.928,-0.113,0.438,1.04,-0.12,0.0914,0.338,0.572,0.207 "
     "intercepts=0.1,0.2,-1 post_transform=PROBIT",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.LinearClassifier",
     1,
     "classlabels_ints=5,6,7 "
     "coefficients=-0.253,-0.51,1.12,0.295,0.0206,3.48,0.883,0.853,0.153,-1.01,1.14,-0.0883 "
     "intercepts=0.1,0.2,-1 post_transform=PROBIT",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.LinearClassifier",
     1,
     "classlabels_ints=5,6 coefficients=0.0526,1.03,1.02,0.24 intercepts=0.1 "
     "post_transform=LOGISTIC",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.SVMRegressor",
     1,
     "n_supports=3 coefficients=0.0186,2.1,0.573 "
     "support_vectors=-1.03,0.751,0.151,0.0327,0.682,0.235,2.01,0.204,0.252,1.16,-0.564,1.01 "
     "rho=0.3 kernel_type=LINEAR kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.SVMClassifier",
     1,
     "classlabels_ints=5,6,7 vectors_per_class=1,1,1 "
     "coefficients=-0.0601,1.18,-0.849,0.42,-1.6,-0.441 "
     "support_vectors=0.0158,0.495,1.97,1.84,-1.34,-0.757,1.25,0.439,-1.37,0.485,-1.13,-0.858 "
     "rho=0.3,0.1,-0.2 kernel_type=LINEAR kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.SVMRegressor",
     1,
     "n_supports=3 coefficients=-1.26,-0.26,2.25 "
     "support_vectors=0.378,-0.107,2.51,-0.462,-0.148,-0.263,0.421,-0.31,1.45,-0.291,0.562,0.224 "
     "rho=0.3 kernel_type=POLY kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.SVMClassifier",
     1,
     "classlabels_ints=5,6,7 vectors_per_class=1,1,1 "
     "coefficients=-0.857,-0.975,-0.0505,-2.29,0.0159,0.0794 "
     "support_vectors=0.144,-0.0761,0.354,-0.348,0.642,-1.63,0.91,-0.878,0.486,-0.463,-0.424,-0."
     "789 rho=0.3,0.1,-0.2 kernel_type=POLY kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.SVMRegressor",
     1,
     "n_supports=3 coefficients=1.34,-1.08,-1.2 "
     "support_vectors=0.218,0.26,0.0435,-0.96,-0.648,0.903,-1.03,0.611,0.726,0.134,-1.21,1.9 "
     "rho=0.3 kernel_type=RBF kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.SVMClassifier",
     1,
     "classlabels_ints=5,6,7 vectors_per_class=1,1,1 "
     "coefficients=0.126,0.198,-0.373,-0.944,-0.264,0.201 "
     "support_vectors=-0.84,0.118,1.15,0.437,-0.094,1.05,0.918,0.901,-0.791,-1.81,0.796,0.0619 "
     "rho=0.3,0.1,-0.2 kernel_type=RBF kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.SVMRegressor",
     1,
     "n_supports=3 coefficients=-0.367,0.485,-0.448 "
     "support_vectors=-0.614,1.8,-1.58,0.838,1.01,1.77,0.254,0.509,-0.909,0.0328,-2.09,-0.563 "
     "rho=0.3 kernel_type=SIGMOID kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.SVMClassifier",
     1,
     "classlabels_ints=5,6,7 vectors_per_class=1,1,1 "
     "coefficients=-0.0259,-0.102,-0.475,1.16,-1.58,0.134 "
     "support_vectors=-0.395,0.0392,0.0556,1.94,-1.06,1.34,1.4,-0.125,-0.609,-1.23,-0.855,2.04 "
     "rho=0.3,0.1,-0.2 kernel_type=SIGMOID kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.SVMClassifier",
     1,
     "classlabels_ints=5,6,7 vectors_per_class=1,1,1 "
     "coefficients=-2.15,0.453,-0.689,1.89,0.316,-1.34 "
     "support_vectors=-0.515,0.196,0.125,-0.94,-0.281,-0.455,0.484,0.276,0.227,-0.583,0.787,-0.558 "
     "rho=0.3,0.1,-0.2 prob_a=-1,-2,-1.5 prob_b=0.1,0.2,0 kernel_type=RBF kernel_params=0.2,0.1,3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.SVMClassifier",
     1,
     "classlabels_ints=5,6 coefficients=-0.825,-0.427,-0.321,-0.305,-1.92,1.35,0.623,1.32 rho=0.3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     3,
     "n_targets=2 aggregate_function=SUM post_transform=NONE base_values=0.1,0.3 "
     "nodes_treeids=0,0,0,1,1,1 nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 "
     "nodes_values=0.5,0,0,-0.2,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF "
     "nodes_truenodeids=1,0,0,1,0,0 nodes_falsenodeids=2,0,0,2,0,0 target_treeids=0,0,0,1,1 "
     "target_nodeids=1,2,2,1,2 target_ids=0,1,0,0,1 target_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     3,
     "n_targets=2 aggregate_function=SUM post_transform=LOGISTIC base_values=0.1,0.3 "
     "nodes_treeids=0,0,0,1,1,1 nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 "
     "nodes_values=0.5,0,0,-0.2,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF "
     "nodes_truenodeids=1,0,0,1,0,0 nodes_falsenodeids=2,0,0,2,0,0 target_treeids=0,0,0,1,1 "
     "target_nodeids=1,2,2,1,2 target_ids=0,1,0,0,1 target_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     3,
     "n_targets=2 aggregate_function=AVERAGE post_transform=NONE base_values=0.1,0.3 "
     "nodes_treeids=0,0,0,1,1,1 nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 "
     "nodes_values=0.5,0,0,-0.2,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF "
     "nodes_truenodeids=1,0,0,1,0,0 nodes_falsenodeids=2,0,0,2,0,0 target_treeids=0,0,0,1,1 "
     "target_nodeids=1,2,2,1,2 target_ids=0,1,0,0,1 target_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     3,
     "n_targets=2 aggregate_function=AVERAGE post_transform=LOGISTIC base_values=0.1,0.3 "
     "nodes_treeids=0,0,0,1,1,1 nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 "
     "nodes_values=0.5,0,0,-0.2,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF "
     "nodes_truenodeids=1,0,0,1,0,0 nodes_falsenodeids=2,0,0,2,0,0 target_treeids=0,0,0,1,1 "
     "target_nodeids=1,2,2,1,2 target_ids=0,1,0,0,1 target_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     3,
     "n_targets=2 aggregate_function=MIN post_transform=NONE base_values=0.1,0.3 "
     "nodes_treeids=0,0,0,1,1,1 nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 "
     "nodes_values=0.5,0,0,-0.2,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF "
     "nodes_truenodeids=1,0,0,1,0,0 nodes_falsenodeids=2,0,0,2,0,0 target_treeids=0,0,0,1,1 "
     "target_nodeids=1,2,2,1,2 target_ids=0,1,0,0,1 target_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleRegressor",
     3,
     "n_targets=2 aggregate_function=MIN post_transform=LOGISTIC base_values=0.1,0.3 "
     "nodes_treeids=0,0,0,1,1,1 nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 "
     "nodes_values=0.5,0,0,-0.2,0,0 nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF "
     "nodes_truenodeids=1,0,0,1,0,0 nodes_falsenodeids=2,0,0,2,0,0 target_treeids=0,0,0,1,1 "
     "target_nodeids=1,2,2,1,2 target_ids=0,1,0,0,1 target_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?"},
     NULL},
    {"ai.onnx.ml.TreeEnsembleClassifier",
     3,
     "classlabels_int64s=3,4 post_transform=SOFTMAX nodes_treeids=0,0,0,1,1,1 "
     "nodes_nodeids=0,1,2,0,1,2 nodes_featureids=0,0,0,2,0,0 nodes_values=0.5,0,0,-0.2,0,0 "
     "nodes_modes=BRANCH_LEQ,LEAF,LEAF,BRANCH_LEQ,LEAF,LEAF nodes_truenodeids=1,0,0,1,0,0 "
     "nodes_falsenodeids=2,0,0,2,0,0 class_treeids=0,0,0,1,1 class_nodeids=1,2,2,1,2 "
     "class_ids=0,1,0,0,1 class_weights=0.7,-0.3,0.11,0.9,1.3",
     {"float[9,4] iota"},
     {"?", "?"},
     NULL},
    // text
    {"com.microsoft.WordConvEmbedding",
     1,
     NULL,
     {"int32[3,6] 1 2 3 0 0 0 4 1 2 3 3 1 2 0 0 0 0 0", "float[5,1,2,4] iota", "float[5] iota",
      "float[7,4] iota"},
     {"?"},
     NULL},
    {"TfIdfVectorizer",
     9,
     "max_gram_length=2 min_gram_length=2 max_skip_count=5 mode=TFIDF ngram_counts=0,4 "
     "ngram_indexes=0,1,2,3,4,5,6 pool_int64s=2,3,5,4,5,6,7,8,6,7 weights=0.1,0.3,2,7,1.7,1.1,3.3",
     {"int32[12] 1 1 3 3 3 7 8 6 7 5 6 8"},
     {"?"},
     NULL},
};

// The name of model i; NULL: there are no more.
static inline const char* bound_model_name(size_t i) {
  static char names[sizeof bound_models / sizeof *bound_models][96];
  if (i >= sizeof bound_models / sizeof *bound_models) return NULL;
  snprintf(names[i], sizeof names[i], "model %zu: %s", i, bound_models[i].op);
  return names[i];
}

// Makes the model of a name, and its inputs by graph input.
static inline assay_status_t bound_model_create(const char* name, assay_model_t** out,
                                                assay_tensor_t*** out_in) {
  const op_case_t* row = &bound_models[strtoull(name + strlen("model "), NULL, 10)];
  assay_tensor_t *in[OP_CASE_VALUES] = {NULL}, **by_input = NULL;
  assay_value_t* values[OP_CASE_VALUES] = {NULL};
  const size_t n = op_case_count(row->in);
  for (size_t i = 0; i < n; i++)
    if (strcmp(row->in[i], "-") != 0) in[i] = op_case_tensor(row->in[i]);
  assay_model_t* m = op_case_model(row, OP_CASE_STATIC, in, values);
  assay_status_t st = assay_infer_model(m);
  if (!st) st = assay_new_array(m->graph->n_inputs, sizeof *by_input, &by_input);
  for (size_t i = 0, k = 0; i < n; i++) {
    if (!st && values[i])
      by_input[k++] = in[i];
    else
      assay_tensor_release(in[i]);
  }
  if (st) return assay_model_release(m), st;
  *out = m;
  *out_in = by_input;
  return NULL;
}

#endif  // ASSAY_TESTS_ACCURACY_BOUND_MODELS_H_
