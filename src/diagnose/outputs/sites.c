// What all kinds of sites are listed by.
#include <string.h>

#include "base/alloc.h"
#include "diagnose/outputs/sketch.h"

static bool is_one_of(const char* op, const char* const* names) {
  for (; *names; names++)
    if (strcmp(op, *names) == 0) return true;
  return false;
}

int assay_site_axis(const assay_node_t* n, const assay_tensor_t* y) {
  static const char* const second[] = {
      "Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
      NULL};
  static const char* const last[] = {"MatMul",           "Gemm",   "LayerNormalization",
                                     "RMSNormalization", "Gather", NULL};
  static const char* const bent[] = {"Tanh", "Sigmoid", "HardSigmoid", "Softplus", "Softsign",
                                     "Exp",  "Log",     "Sqrt",        "Clip",     "Erf",
                                     "Sin",  "Cos",     "Abs",         NULL};
  if (is_one_of(n->op_type, second)) return y->rank > 1 ? 1 : -1;
  // A matrix from the left: bands of a spectrum, tokens that are mixed.
  if (strcmp(n->op_type, "MatMul") == 0 && n->inputs[0]->constant && !n->inputs[1]->constant)
    return y->rank - 2;
  if (is_one_of(n->op_type, last)) return y->rank - 1;
  // What comes out of a function that is bounded, or bends, is often put into units afterwards: its
  // channels are those of what it reads.
  if (is_one_of(n->op_type, bent) && n->n_inputs && n->inputs[0]) {
    const assay_node_t* from = n->inputs[0]->producer;
    return from && !is_one_of(from->op_type, bent) ? assay_site_axis(from, y) : -1;
  }
  // A product with or a sum of a constant: the axis along which it lies.
  if (strcmp(n->op_type, "Mul") != 0 && strcmp(n->op_type, "Add") != 0) return -1;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_tensor_t* c = n->inputs[i] ? n->inputs[i]->constant : NULL;
    for (int k = 0; c && c->rank <= y->rank && k < c->rank; k++)
      if (c->dims[k] == c->size && c->size > 1) return k + y->rank - c->rank;
  }
  return -1;
}

assay_tensor_t* assay_site_sketch_truth(const assay_search_t* s, const assay_value_t* v) {
  for (size_t k = 0; k < s->n_targets; k++)
    if (s->targets[k].value == v) return s->targets[k].truth;
  return assay_evaluator_get(s->evaluator, v);
}

// Few numbers are told by few elements: what they restore is asked of a sample that took no part.
size_t assay_site_spare(size_t unknowns) {
  return unknowns < ASSAY_SITE_SPARE ? unknowns + 1 : ASSAY_SITE_SPARE;
}

// As many unknowns as there are elements of golden can always be met.
assay_status_t assay_site_add(assay_site_sketch_t* k, assay_site_t site, int64_t elements) {
  const size_t least = site.kind == ASSAY_SITE_OUTPUT ? site.columns / 2 : site.columns;
  if ((int64_t)(least + assay_site_spare(least)) > elements) return assay_free(site.at), NULL;
  assay_status_t st = assay_grow(&k->sites, &k->capacity, k->n + 1, sizeof *k->sites);
  if (st) return assay_free(site.at), st;
  k->sites[k->n++] = site;
  return NULL;
}
