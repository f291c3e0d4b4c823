// Activation functions of one element in float64, for every family that has them (fused operators,
// recurrent layers): within a few ulp everywhere, tails and subnormal results included, and with
// their limits at infinity instead of NaN.
#ifndef ASSAY_OPS_MATH_ACTIVATION_H_
#define ASSAY_OPS_MATH_ACTIVATION_H_

double assay_sigmoid(double x);              // 1 / (1 + e^-x)
double assay_softplus(double x);             // ln(1 + e^x)
double assay_softsign(double x);             // x / (1 + |x|)
double assay_gelu(double x);                 // x * Phi(x), with erf
double assay_gelu_tanh(double x);            // x/2 * (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
double assay_swish(double x, double alpha);  // x * sigmoid(alpha * x)
double assay_mish(double x);                 // x * tanh(softplus(x))
double assay_hard_sigmoid(double x, double alpha, double beta);  // max(0, min(1, alpha*x + beta))
double assay_hard_swish(double x);         // x * hard_sigmoid(x, 1/6 in float32, 1/2)
double assay_elu(double x, double alpha);  // x, or alpha * (e^x - 1) below 0
double assay_celu(double x, double alpha);
double assay_selu(double x, double alpha, double gamma);

#endif  // ASSAY_OPS_MATH_ACTIVATION_H_
