// Single places of a network that golden has in few bits: the shares that attention multiplies
// values with, scores, keys and values, layers' activations, tables' rows, inputs.
#include <string.h>

#include "diagnose/kinds/arithmetic.h"

// FlashAttention and its likes keep scores and sums in float32 and cast shares to the type of the
// values for the second product (T. Dao and others, FlashAttention, 2022, algorithm 1 in its
// implementation); caches of keys and values are kept in 16 or 8 bits beside a network of float32;
// dynamic inputs, embeddings and activations are stored so by whoever made golden.
const assay_golden_arithmetic_t assay_golden_arithmetic_places[] = {
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_SHARES},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_SHARES},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_INPUTS},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_INPUTS},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_ACTIVATIONS},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_ACTIVATIONS},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_CACHE},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_CACHE},
    {.format = ASSAY_FORMAT_FP8E4M3, .scope = ASSAY_ARITHMETIC_CACHE},
    {.format = ASSAY_FORMAT_FP8E5M2, .scope = ASSAY_ARITHMETIC_CACHE},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_SCORES},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_SCORES},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_NORMS},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_NORMS},
    {.format = ASSAY_FORMAT_BF16, .scope = ASSAY_ARITHMETIC_TABLES},
    {.format = ASSAY_FORMAT_FP16, .scope = ASSAY_ARITHMETIC_TABLES},
    {.format = ASSAY_FORMAT_NONE}};

enum { FARTHEST = 5 };  // nodes between a softmax and the product of what it gives

static bool is_one_of(const assay_node_t* n, const char* const* names) {
  for (; *names; names++)
    if (strcmp(n->op_type, *names) == 0) return true;
  return false;
}

static bool is_softmax(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Softmax") == 0;
}

static const assay_node_t* producer_of(const assay_node_t* n, size_t i) {
  return i < n->n_inputs && n->inputs[i] ? n->inputs[i]->producer : NULL;
}

// Whether a value is what a softmax gives, moved, masked or scaled on its way, or e^x divided by a
// sum.
static bool is_share(const assay_value_t* v, int steps) {
  static const char* const ON[] = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten",
                                   "Identity",  "Cast",    "Dropout", "Expand",    NULL};
  static const char* const MASKS[] = {"Where", "Mul", NULL};
  const assay_node_t* n = v ? v->producer : NULL;
  if (!n || !steps) return false;
  if (is_softmax(n)) return true;
  if (strcmp(n->op_type, "Div") == 0) {
    const assay_node_t* above = producer_of(n, 0);
    return above && (strcmp(above->op_type, "Exp") == 0 || is_one_of(above, MASKS));
  }
  const size_t from = is_one_of(n, ON) ? 1 : is_one_of(n, MASKS) ? n->n_inputs : 0;
  for (size_t i = 0; i < from && i < n->n_inputs; i++)
    if (is_share(n->inputs[i], steps - 1)) return true;
  return false;
}

// Whether a product is of two computed matrices.
static bool is_of_two(const assay_node_t* n) {
  return n->n_inputs > 1 && assay_golden_arithmetic_products(n) == ASSAY_PRODUCTS_COMPUTED &&
         !assay_golden_arithmetic_is_weight(n->inputs[0]) &&
         !assay_golden_arithmetic_is_weight(n->inputs[1]);
}

static bool is_activation(const assay_node_t* n, size_t i) {
  return assay_golden_arithmetic_products(n) & ASSAY_PRODUCTS_ANY &&
         i < assay_golden_arithmetic_operands(n) &&
         !assay_golden_arithmetic_is_weight(n->inputs[i]);
}

bool assay_golden_arithmetic_is_place(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                      size_t i) {
  const assay_value_t* v = n->inputs[i];
  if (!v) return false;
  switch (a->scope) {
    case ASSAY_ARITHMETIC_SHARES:
      return is_of_two(n) && is_share(v, FARTHEST);
    case ASSAY_ARITHMETIC_SCORES:
      return is_softmax(n) && i == 0;
    case ASSAY_ARITHMETIC_CACHE:
      return is_of_two(n) && i > 0;
    case ASSAY_ARITHMETIC_ACTIVATIONS:
      return is_activation(n, i);
    case ASSAY_ARITHMETIC_INPUTS:  // of the network, not of a body
      return v->is_input && !v->constant && !v->graph->outer;
    case ASSAY_ARITHMETIC_TABLES:
      return i == 0 && strcmp(n->op_type, "Gather") == 0 && assay_golden_arithmetic_is_weight(v);
    default:
      return false;
  }
}

bool assay_golden_arithmetic_is_norm(const assay_node_t* n) {
  static const char* const NORMS[] = {"LayerNormalization",
                                      "GroupNormalization",
                                      "InstanceNormalization",
                                      "SimplifiedLayerNormalization",
                                      "BatchNormalization",
                                      "RMSNormalization",
                                      "LpNormalization",
                                      "SkipLayerNormalization",
                                      NULL};
  return is_one_of(n, NORMS);
}

bool assay_golden_arithmetic_has_place(const assay_golden_arithmetic_t* a, const assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t k = 0; k < m->graphs[g]->n_nodes; k++) {
      const assay_node_t* n = m->graphs[g]->nodes[k];
      if (a->scope == ASSAY_ARITHMETIC_NORMS && assay_golden_arithmetic_is_norm(n)) return true;
      for (size_t i = 0; i < n->n_inputs; i++) {
        const assay_value_t* v = n->inputs[i];
        const assay_valtype_t* type = v ? v->type ? v->type : v->declared : NULL;
        if ((!type || type->elem == ASSAY_TYPE_FLOAT) && assay_golden_arithmetic_is_place(a, n, i))
          return true;
      }
    }
  return false;
}
