// Activation functions by name, as the recurrent operators and fused products have them.
#include "ops/math/activation_name.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/functions.h"

// Source: the list in ONNX RNN, GRU and LSTM. A NaN stays one.

#define FUNCTION(name) static double name(double x, double alpha, double beta)

FUNCTION(relu) { return (void)alpha, (void)beta, x < 0 ? 0 : x; }
FUNCTION(tanh_of) { return (void)alpha, (void)beta, assay_tanh(x); }
// The form whose exponential cannot overflow.
FUNCTION(sigmoid) {
  (void)alpha, (void)beta;
  const double e = assay_exp(-fabs(x));
  return x >= 0 ? 1 / (1 + e) : e / (1 + e);
}
FUNCTION(affine) { return alpha * x + beta; }
FUNCTION(leaky_relu) { return (void)beta, x >= 0 ? x : alpha * x; }
FUNCTION(thresholded_relu) { return (void)beta, x < alpha ? 0 : x; }
FUNCTION(scaled_tanh) { return alpha * assay_tanh(beta * x); }
FUNCTION(hard_sigmoid) {
  const double y = alpha * x + beta;
  return y < 0 ? 0 : y > 1 ? 1 : y;
}
FUNCTION(elu) { return (void)beta, x >= 0 ? x : alpha * assay_expm1(x); }
FUNCTION(softsign) { return (void)alpha, (void)beta, x / (1 + fabs(x)); }
FUNCTION(softplus) {
  return (void)alpha, (void)beta, (x > 0 ? x : 0) + assay_log1p(assay_exp(-fabs(x)));
}

// ---- slopes ------------------------------------------------------------------------------------

#define SLOPE(name) static double name(double x, double reach, double alpha, double beta)
#define UNUSED (void)x, (void)reach, (void)alpha, (void)beta

// The point of the interval that is nearest to 0, by its size.
static double nearest(double x, double reach) { return fmax(fabs(x) - reach, 0); }

SLOPE(relu_slope) { return UNUSED, x + reach > 0 ? 1 : 0; }
SLOPE(tanh_slope) {
  UNUSED;
  const double t = assay_tanh(nearest(x, reach));
  return (1 - t) * (1 + t);
}
SLOPE(sigmoid_slope) {
  UNUSED;
  const double e = assay_exp(-nearest(x, reach));
  return e / ((1 + e) * (1 + e));
}
SLOPE(affine_slope) { return UNUSED, fabs(alpha); }
SLOPE(leaky_slope) {
  UNUSED;
  return fmax(x + reach >= 0 ? 1 : 0, x - reach < 0 ? fabs(alpha) : 0);
}
SLOPE(thresholded_slope) {
  UNUSED;
  const bool jumps = reach > 0 && fabs(x - alpha) <= reach;
  return (x + reach >= alpha ? 1 : 0) + (jumps ? fabs(alpha) / reach : 0);
}
SLOPE(scaled_tanh_slope) {
  return fabs(alpha * beta) * tanh_slope(beta * x, fabs(beta) * reach, 0, 0);
}
SLOPE(hard_sigmoid_slope) {
  const double y = alpha * x + beta, r = fabs(alpha) * reach;
  return y + r < 0 || y - r > 1 ? 0 : fabs(alpha);
}
SLOPE(elu_slope) {
  UNUSED;
  const double below = x - reach < 0 ? fabs(alpha) * assay_exp(fmin(x + reach, 0)) : 0;
  return fmax(x + reach >= 0 ? 1 : 0, below);
}
SLOPE(softsign_slope) {
  UNUSED;
  const double d = 1 + nearest(x, reach);
  return 1 / (d * d);
}
SLOPE(softplus_slope) {
  UNUSED;
  const double e = assay_exp(-fabs(x + reach));
  return x + reach >= 0 ? 1 / (1 + e) : e / (1 + e);
}

static void unit_range(double alpha, double* low, double* high) {
  (void)alpha;
  *low = 0, *high = 1;
}
static void sign_range(double alpha, double* low, double* high) {
  (void)alpha;
  *low = -1, *high = 1;
}
static void scaled_range(double alpha, double* low, double* high) {
  *low = -fabs(alpha), *high = fabs(alpha);
}

// ---- table -------------------------------------------------------------------------------------

static const struct {
  const char* name;
  assay_activation_t activation;
} activations[] = {
    {"Relu", {.function = relu, .slope = relu_slope}},
    {"Tanh", {.function = tanh_of, .slope = tanh_slope, .range = sign_range}},
    {"Sigmoid", {.function = sigmoid, .slope = sigmoid_slope, .range = unit_range}},
    {"Affine", {affine, 1, 0, true, true, affine_slope, NULL}},
    {"LeakyRelu", {leaky_relu, 0.01f, 0, true, false, leaky_slope, NULL}},
    {"ThresholdedRelu", {thresholded_relu, 1, 0, true, false, thresholded_slope, NULL}},
    {"ScaledTanh", {scaled_tanh, 1, 1, true, true, scaled_tanh_slope, scaled_range}},
    {"HardSigmoid", {hard_sigmoid, 0.2f, 0.5, true, true, hard_sigmoid_slope, unit_range}},
    {"Elu", {elu, 1, 0, true, false, elu_slope, NULL}},
    {"Softsign", {.function = softsign, .slope = softsign_slope, .range = sign_range}},
    {"Softplus", {.function = softplus, .slope = softplus_slope}},
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
