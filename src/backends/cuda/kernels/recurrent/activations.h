// Activations of recurrent layers: activate_NAME(x, p) with p[0] alpha and p[1] beta, in float32.
// Source: the list in ONNX RNN, GRU and LSTM. NaN stays NaN.
#ifndef ASSAY_BACKENDS_CUDA_KERNELS_ACTIVATIONS_H_
#define ASSAY_BACKENDS_CUDA_KERNELS_ACTIVATIONS_H_

#include "elements.h"
#include "vmath.h"

#define ACTIVATION(name, expression)                      \
  DEVICE float activate_##name(float x, const float* p) { \
    (void)p;                                              \
    return expression;                                    \
  }
ACTIVATION(RELU, x < 0 ? 0 : x)
ACTIVATION(TANH, float_TANH(x, x, p))
ACTIVATION(SIGMOID, float_SIGMOID(x, x, p))
ACTIVATION(AFFINE, p[0] * x + p[1])
ACTIVATION(LEAKY_RELU, x < 0 ? p[0] * x : x)
ACTIVATION(THRESHOLDED_RELU, x < p[0] ? 0 : x)
ACTIVATION(SCALED_TANH, p[0] * float_TANH(p[1] * x, x, p))
ACTIVATION(HARD_SIGMOID, float_HARD_SIGMOID(x, x, p))
ACTIVATION(ELU, float_ELU(x, x, p))
ACTIVATION(SOFTSIGN, float_SOFTSIGN(x, x, p))
ACTIVATION(SOFTPLUS, float_SOFTPLUS(x, x, p))
#undef ACTIVATION

#endif  // ASSAY_BACKENDS_CUDA_KERNELS_ACTIVATIONS_H_
