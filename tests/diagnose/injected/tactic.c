// A tactic that is wrong on purpose.
#include "backends/cpu/tactic.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/injected/injected.h"

injected_tactic_t injected_tactic = INJECTED_NO_TACTIC;

typedef struct injected {
  assay_kernel_t base;
  assay_kernel_t* right;  // does the work
  int64_t at;             // the element that it spoils
} injected_t;

static assay_status_t run(assay_kernel_t* kernel, const void* const* in, void* const* out,
                          void* scratch) {
  injected_t* k = (injected_t*)kernel;
  ASSAY_TRY(k->right->run(k->right, in, out, scratch));
  float* y = out[0];
  y[k->at] = injected_tactic == INJECTED_NAN ? NAN : y[k->at] * 1.01F + 0.01F;
  return NULL;
}

static void destroy(assay_kernel_t* kernel) {
  injected_t* k = (injected_t*)kernel;
  k->right->destroy(k->right);
  assay_free(k);
}

static bool is_product(const assay_layer_t* l) {
  for (size_t i = 0; i < l->n_nodes; i++)
    if (strcmp(l->nodes[i]->op_type, "MatMul") == 0) return true;
  return false;
}

extern const assay_tactic_t cpu_tactic_injected;

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  injected_t* k = NULL;
  assay_kernel_t* right = NULL;
  if (!injected_tactic || !is_product(l->layer)) return NULL;
  for (size_t t = 0; !right && t < cpu_n_tactics; t++)
    if (cpu_tactics[t] != &cpu_tactic_injected) ASSAY_TRY(cpu_tactics[t]->make(l, &right));
  if (!right) return NULL;
  assay_status_t st = right->run && right->out[0].type == ASSAY_TYPE_FLOAT ? ASSAY_NEW(&k) : NULL;
  if (!k) return right->destroy(right), st;
  k->base = *right;
  k->base.run = run;
  k->base.destroy = destroy;
  k->right = right;
  k->at = l->out[0].size / 2;
  *out = &k->base;
  return NULL;
}

const assay_tactic_t cpu_tactic_injected = {.name = "injected",
                                            .source = "test",
                                            .make = make,
                                            .rounding = {.compute = ASSAY_FORMAT_FP32,
                                                         .accumulator = ASSAY_FORMAT_FP32,
                                                         .fma = true,
                                                         .by_definition = true,
                                                         .flushes = true,
                                                         .function_ulps = 4}};
