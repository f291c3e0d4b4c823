// Which nodes are products, and of what.
#include <string.h>

#include "diagnose/kinds/arithmetic.h"
#include "ops/op.h"

typedef struct product {
  const char* op_type;
  unsigned kind;
  size_t n_operands;  // the first inputs; a bias after them is added in float32
} product_t;

static const product_t PRODUCTS[] = {{"Conv", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"FusedConv", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"ConvTranspose", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"DeformConv", ASSAY_PRODUCTS_CONVOLUTION, 2},
                                     {"LSTM", ASSAY_PRODUCTS_RECURRENT, 3},
                                     {"GRU", ASSAY_PRODUCTS_RECURRENT, 3},
                                     {"RNN", ASSAY_PRODUCTS_RECURRENT, 3},
                                     {"MatMul", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"FusedMatMul", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"Gemm", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"FusedGemm", ASSAY_PRODUCTS_MATRIX, 2},
                                     {"Einsum", ASSAY_PRODUCTS_MATRIX, SIZE_MAX},
                                     {"Attention", ASSAY_PRODUCTS_COMPUTED, 3},
                                     {"MultiHeadAttention", ASSAY_PRODUCTS_COMPUTED, 3}};

static const product_t* product_of(const assay_node_t* n) {
  const product_t* end = PRODUCTS + sizeof PRODUCTS / sizeof *PRODUCTS;
  for (const product_t* p = PRODUCTS; p < end; p++)
    if (strcmp(n->op_type, p->op_type) == 0) return p;
  return NULL;
}

const assay_node_t* assay_golden_arithmetic_reader(const assay_value_t* v) {
  const assay_node_t* found = NULL;
  if (v->is_output) return NULL;
  for (size_t i = 0; i < v->graph->n_nodes; i++) {
    const assay_node_t* n = v->graph->nodes[i];
    for (size_t k = 0; k < n->n_inputs; k++) {
      if (n->inputs[k] != v) continue;
      if (found) return NULL;
      found = n;
    }
  }
  return found;
}

// Exporters turn and cut weights by nodes of their own, a few at most.
static bool is_made_of_constants(const assay_value_t* v, int depth) {
  if (!v) return true;
  if (assay_value_constant(v)) return true;
  if (!v->producer || !v->producer->n_inputs || !depth) return false;
  for (size_t i = 0; i < v->producer->n_inputs; i++)
    if (!is_made_of_constants(v->producer->inputs[i], depth - 1)) return false;
  return true;
}

bool assay_golden_arithmetic_is_weight(const assay_value_t* v) {
  enum { DEEPEST = 6 };
  return v && is_made_of_constants(v, DEEPEST);
}

static bool is_mul(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "Mul") == 0 && n->n_outputs == 1 && n->outputs[0];
}

static bool is_sum(const assay_node_t* n) {
  return !*n->domain && strcmp(n->op_type, "ReduceSum") == 0 && n->n_inputs && n->inputs[0];
}

static bool is_written(const assay_node_t* n) {
  if (!is_mul(n)) return false;
  const assay_node_t* next = assay_golden_arithmetic_reader(n->outputs[0]);
  return next && is_sum(next) && next->inputs[0] == n->outputs[0];
}

bool assay_golden_arithmetic_sums_written(const assay_node_t* n) {
  return is_sum(n) && n->inputs[0]->producer && is_written(n->inputs[0]->producer);
}

// Whether a matrix product is a layer's: of what is computed by a weight on its right. What has a
// constant on its left is a transform that a network begins with, a bank of filters.
static bool is_layer(const assay_node_t* n) {
  return n->n_inputs > 1 && assay_golden_arithmetic_is_weight(n->inputs[1]);
}

unsigned assay_golden_arithmetic_products(const assay_node_t* n) {
  const product_t* p = product_of(n);
  if (!p) return is_written(n) ? ASSAY_PRODUCTS_WRITTEN : 0;
  return p->kind == ASSAY_PRODUCTS_MATRIX && !is_layer(n) ? ASSAY_PRODUCTS_COMPUTED : p->kind;
}

size_t assay_golden_arithmetic_operands(const assay_node_t* n) {
  const product_t* p = product_of(n);
  return p ? p->n_operands : SIZE_MAX;
}

static bool is_turned(const assay_node_t* n, const char* attribute) {
  return strcmp(n->op_type, "Gemm") == 0 && assay_attr_i64(n, attribute, 0) != 0;
}

bool assay_golden_arithmetic_is_by_vector(const assay_node_t* n, size_t n_in,
                                          assay_tensor_t* const* in) {
  const bool gemm = strcmp(n->op_type, "Gemm") == 0;
  if ((!gemm && strcmp(n->op_type, "MatMul") != 0) || n_in < 2 || !in[0] || !in[1]) return false;
  const assay_tensor_t *a = in[0], *b = in[1];
  if (a->kind != ASSAY_KIND_TENSOR || b->kind != ASSAY_KIND_TENSOR || a->rank < 1 || b->rank < 1)
    return false;
  const int64_t inner = a->dims[is_turned(n, "transA") ? 0 : a->rank - 1];
  const int64_t columns = b->rank < 2 ? 1 : b->dims[is_turned(n, "transB") ? 0 : b->rank - 1];
  const int64_t rows = a->rank < 2   ? 1
                       : b->rank > 2 ? a->dims[a->rank - 2]
                       : inner       ? a->size / inner
                                     : 0;
  return rows == 1 || columns == 1;
}
