// A product on 8-bit integers and the quantizer of its float32 output in one launch, which stores
// both: a residual sum that the next convolution reads as integers and the next sum as it is. The
// kernel is that of the product, whose end does what both layers do.
#include <stdio.h>
#include <string.h>

#include "backends/cuda/int8/product.h"

// ---- the quantizer ------------------------------------------------------------------------------

// Whether the second layer quantizes what the first one makes, with one scale; then *joined is what
// both do.
static bool join(const assay_layer_pair_t* pair, assay_int8_t* joined) {
  const assay_sized_layer_t *first = pair->layers[0], *second = pair->layers[1];
  const assay_int8_t* q = first->layer->int8;
  const assay_node_t* n = second->layer->nodes[0];
  double scale, zero;
  if (!q || !q->anchor || q->quantizes || second->layer->n_nodes != 1 ||
      second->layer->format != ASSAY_FORMAT_FP32 || !assay_int8_is_quantizer(n) ||
      n->inputs[0] != first->out[0].value || !int8_quantizer_read(second, n, &scale, &zero))
    return false;
  *joined = *q;
  joined->quantizes = true;
  joined->type = second->out[0].type;
  joined->scale = (float)scale;
  joined->zero = (float)zero;
  return true;
}

// ---- the product --------------------------------------------------------------------------------

typedef struct way {
  const char* tactic;
  assay_status_t (*make)(const assay_sized_layer_t* l, const assay_variant_t* v,
                         const assay_int8_t* joined, assay_kernel_t** out);
} way_t;

static const way_t ways[] = {{"int8_bulk", cuda_int8_make_bulk},
                             {"int8_mma", cuda_int8_make_mma},
                             {"int8_direct", cuda_int8_make_direct},
                             {"int8_narrow", cuda_int8_make_narrow}};
enum { N_WAYS = sizeof ways / sizeof *ways };

// The way in which a kernel was made, and its variant.
static const way_t* way_of(const assay_kernel_t* k, assay_variant_t* v) {
  const char* end = strchr(k->name, '/');
  const size_t n = end ? (size_t)(end - k->name) : strlen(k->name);
  *v = (assay_variant_t){.numerics = k->numerics};
  if (end) snprintf(v->name, sizeof v->name, "%s", end + 1);
  for (int i = 0; i < N_WAYS; i++)
    if (strlen(ways[i].tactic) == n && strncmp(ways[i].tactic, k->name, n) == 0) return &ways[i];
  return NULL;
}

static assay_status_t make_pair(const assay_layer_pair_t* pair, assay_kernel_t** out) {
  assay_variant_t v;
  assay_int8_t joined;
  const way_t* way = way_of(pair->kernels[0], &v);
  return way && join(pair, &joined) ? way->make(pair->layers[0], &v, &joined, out) : NULL;
}

const assay_tactic_t cuda_tactic_int8_pair = {
    .name = "int8_pair",
    .source = "assay",
    .numerics = "integers",
    .make_pair = make_pair,
    .rounding = CUDA_INT8_ROUNDING,
};
