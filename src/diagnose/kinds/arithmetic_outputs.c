// Which nodes give few bits: products, all, or, where a framework casts by itself, products and
// what goes on from them.
#include <string.h>

#include "diagnose/kinds/arithmetic.h"

// What stays in float32, and begins a part in float32. Means and sums stand for those of the norms
// that they are parts of. Source: PyTorch, Automatic Mixed Precision, ops that autocast to float32.
static const char* const WIDE[] = {"Pow",
                                   "Reciprocal",
                                   "Exp",
                                   "Log",
                                   "Softmax",
                                   "LogSoftmax",
                                   "Softplus",
                                   "CumSum",
                                   "Acos",
                                   "Asin",
                                   "Cosh",
                                   "Sinh",
                                   "Tan",
                                   "LayerNormalization",
                                   "GroupNormalization",
                                   "RMSNormalization",
                                   "ReduceSum",
                                   "ReduceMean",
                                   "ReduceL1",
                                   "ReduceL2",
                                   "ReduceProd",
                                   "ReduceLogSumExp",
                                   "ReduceSumSquare",
                                   "LpNormalization"};

static bool is_wide(const assay_node_t* n) {
  for (size_t i = 0; i < sizeof WIDE / sizeof *WIDE; i++)
    if (strcmp(n->op_type, WIDE[i]) == 0) return true;
  return false;
}

// Whether a node adds the bias of a product, which a library adds before it rounds.
static bool adds_bias(const assay_node_t* n, const assay_value_t* product) {
  if (*n->domain || strcmp(n->op_type, "Add") != 0 || n->n_inputs != 2) return false;
  const assay_value_t* other = n->inputs[n->inputs[0] == product];
  return other && assay_value_constant(other) != NULL;
}

static bool ends_product(const assay_golden_arithmetic_t* a, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    if (v && v->producer && assay_golden_arithmetic_products(v->producer) & a->products &&
        adds_bias(n, v) && assay_golden_arithmetic_reader(v) == n)
      return true;
  }
  return false;
}

static bool has_bias_to_come(const assay_node_t* n) {
  const assay_node_t* next =
      n->n_outputs && n->outputs[0] ? assay_golden_arithmetic_reader(n->outputs[0]) : NULL;
  return next && adds_bias(next, n->outputs[0]);
}

// Whether a node goes on in 16 bits: all that it computes with has them, but for constants.
static assay_status_t goes_on(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                              size_t n_in, assay_tensor_t* const* in, bool* out) {
  bool any = false, all = true;
  for (size_t i = 0; i < n_in && all; i++) {
    const assay_value_t* v = i < n->n_inputs ? n->inputs[i] : NULL;
    if (!in[i] || !v || in[i]->kind != ASSAY_KIND_TENSOR || in[i]->type != ASSAY_TYPE_FLOAT ||
        assay_value_constant(v))
      continue;
    any = true;
    all = v->producer != NULL;
    if (all) ASSAY_TRY(assay_golden_arithmetic_holds(a, in[i], &all));
  }
  *out = any && all;
  return NULL;
}

// Whether a node gives a product of these kinds.
static bool gives_product(const assay_golden_arithmetic_t* a, const assay_node_t* n) {
  const unsigned kind = assay_golden_arithmetic_products(n) & a->products;
  return (kind && kind != ASSAY_PRODUCTS_WRITTEN) ||
         (a->products & ASSAY_PRODUCTS_WRITTEN && assay_golden_arithmetic_sums_written(n));
}

static assay_status_t casts(const assay_golden_arithmetic_t* a, const assay_node_t* n, size_t n_in,
                            assay_tensor_t* const* in, bool* out) {
  *out = false;
  if (gives_product(a, n)) return *out = !has_bias_to_come(n), NULL;
  if (ends_product(a, n)) return *out = true, NULL;
  return is_wide(n) ? NULL : goes_on(a, n, n_in, in, out);
}

static bool is_of_outputs(const assay_golden_arithmetic_t* a) {
  return a->scope == ASSAY_ARITHMETIC_PRODUCTS || a->scope == ASSAY_ARITHMETIC_AUTOCAST ||
         a->scope == ASSAY_ARITHMETIC_ALL || a->scope == ASSAY_ARITHMETIC_NORMS;
}

assay_status_t assay_golden_arithmetic_round_outputs(const assay_golden_arithmetic_t* a,
                                                     const assay_node_t* n, size_t n_in,
                                                     assay_tensor_t* const* in, size_t n_out,
                                                     assay_tensor_t** out) {
  bool rounds = true;
  if (a->format == ASSAY_FORMAT_NONE) return NULL;
  if (a->parts > 1 || a->addends) ASSAY_TRY(assay_golden_arithmetic_redo(a, n, n_in, in, out));
  if (!is_of_outputs(a)) return NULL;
  if (a->scope == ASSAY_ARITHMETIC_PRODUCTS) rounds = gives_product(a, n);
  if (a->scope == ASSAY_ARITHMETIC_NORMS) rounds = assay_golden_arithmetic_is_norm(n);
  if (a->scope == ASSAY_ARITHMETIC_AUTOCAST) ASSAY_TRY(casts(a, n, n_in, in, &rounds));
  for (size_t i = 0; rounds && i < n_out; i++)
    ASSAY_TRY(assay_golden_arithmetic_round_output(a, n, i, &out[i]));
  return NULL;
}
