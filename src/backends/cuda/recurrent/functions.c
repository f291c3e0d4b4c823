// The functions of a recurrent layer.
#include <string.h>
#include <strings.h>

#include "backends/cuda/recurrent/recurrent.h"

typedef struct function {
  const char *name, *kernel;  // ONNX's, activations.h's
  float alpha, beta;          // defaults
  bool has_alpha, has_beta;
} function_t;

static const function_t functions[] = {
    {"Relu", "RELU", 0, 0, false, false},
    {"Tanh", "TANH", 0, 0, false, false},
    {"Sigmoid", "SIGMOID", 0, 0, false, false},
    {"Affine", "AFFINE", 1, 0, true, true},
    {"LeakyRelu", "LEAKY_RELU", 0.01F, 0, true, false},
    {"ThresholdedRelu", "THRESHOLDED_RELU", 1, 0, true, false},
    {"ScaledTanh", "SCALED_TANH", 1, 1, true, true},
    {"HardSigmoid", "HARD_SIGMOID", 0.2F, 0.5F, true, true},
    {"Elu", "ELU", 1, 0, true, false},
    {"Softsign", "SOFTSIGN", 0, 0, false, false},
    {"Softplus", "SOFTPLUS", 0, 0, false, false},
};

static const function_t* find(const char* name, size_t len) {
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
    if (strlen(functions[i].name) == len && strncasecmp(functions[i].name, name, len) == 0)
      return &functions[i];
  return NULL;
}

// Each takes the next alpha and beta of the lists if it uses one and there is one left; names that
// are too many are left alone (ops/recurrent/recurrent_read.c).
bool cuda_recurrent_read_functions(const assay_node_t* n, cuda_recurrent_t* k) {
  static const char* const defaults[3][3] = {
      {"Tanh"}, {"Sigmoid", "Tanh"}, {"Sigmoid", "Tanh", "Tanh"}};
  size_t n_names = 0, n_alpha = 0, n_beta = 0, alpha = 0, beta = 0;
  const assay_string_t* names = assay_attr_strings(n, "activations", &n_names);
  const float* alphas = assay_attr_floats(n, "activation_alpha", &n_alpha);
  const float* betas = assay_attr_floats(n, "activation_beta", &n_beta);
  const size_t each = (size_t)k->cell + 1, directions = (size_t)k->args.directions;
  if (n_names && n_names < each * directions) return false;
  for (size_t d = 0; d < directions; d++)
    for (size_t i = 0; i < each; i++) {
      const assay_string_t* given = n_names ? &names[d * each + i] : NULL;
      const char* name = defaults[k->cell][i];
      const function_t* f = given ? find(given->text, given->len) : find(name, strlen(name));
      if (!f || (d && strcmp(f->kernel, k->functions[i]) != 0)) return false;
      float* p = k->args.parameters[d][i];
      k->functions[i] = f->kernel;
      p[0] = f->has_alpha && alpha < n_alpha ? alphas[alpha++] : f->alpha;
      p[1] = f->has_beta && beta < n_beta ? betas[beta++] : f->beta;
    }
  return true;
}
