#include "ops/activation_name.h"

#include <math.h>
#include <string.h>
#include <strings.h>

// Source: the list in ONNX RNN, GRU and LSTM. A NaN stays one.

#define FUNCTION(name) static double name(double x, double alpha, double beta)

FUNCTION(relu) { return (void)alpha, (void)beta, x < 0 ? 0 : x; }
FUNCTION(tanh_of) { return (void)alpha, (void)beta, tanh(x); }
// The form whose exponential cannot overflow.
FUNCTION(sigmoid) {
  (void)alpha, (void)beta;
  const double e = exp(-fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
FUNCTION(affine) { return alpha * x + beta; }
FUNCTION(leaky_relu) { return (void)beta, x >= 0 ? x : alpha * x; }
FUNCTION(thresholded_relu) { return (void)beta, x < alpha ? 0 : x; }
FUNCTION(scaled_tanh) { return alpha * tanh(beta * x); }
FUNCTION(hard_sigmoid) {
  const double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
FUNCTION(elu) { return (void)beta, x >= 0 ? x : alpha * expm1(x); }
FUNCTION(softsign) { return (void)alpha, (void)beta, x / (1 + fabs(x)); }
FUNCTION(softplus) { return (void)alpha, (void)beta, (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

static const struct {
  const char* name;
  assay_activation_t activation;
} activations[] = {
    {"Relu", {.function = relu}},
    {"Tanh", {.function = tanh_of}},
    {"Sigmoid", {.function = sigmoid}},
    {"Affine", {affine, 1, 0, true, true}},
    {"LeakyRelu", {leaky_relu, 0.01f, 0, true, false}},
    {"ThresholdedRelu", {thresholded_relu, 1, 0, true, false}},
    {"ScaledTanh", {scaled_tanh, 1, 1, true, true}},
    {"HardSigmoid", {hard_sigmoid, 0.2f, 0.5, true, true}},
    {"Elu", {elu, 1, 0, true, false}},
    {"Softsign", {.function = softsign}},
    {"Softplus", {.function = softplus}},
};

bool assay_activation_find(const char* name, size_t len, assay_activation_t* out) {
  for (size_t i = 0; i < sizeof activations / sizeof *activations; i++) {
    if (strlen(activations[i].name) == len && strncasecmp(activations[i].name, name, len) == 0) {
      *out = activations[i].activation;
      return true;
    }
  }
  return false;
}
