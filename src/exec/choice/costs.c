// Predicted times of kernels, and the order of tactics that follows from them.
#include "exec/choice/costs.h"

#include <math.h>
#include <string.h>

// A tactic overtakes another one where it takes less than this part of its time: small differences
// are not worth other bits, and predictions are off by about as much.
static const double FASTER = 0.85;

// ---- what a layer is ----------------------------------------------------------------------------

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

// The node that makes the work: quantizers around it, and what is done to its result, come along.
static const assay_node_t* main_node(const assay_layer_t* l) {
  static const char* const ops[] = {
      "Conv", "MatMul", "Gemm", "AveragePool", "GlobalMaxPool", "GlobalAveragePool", "MaxPool"};
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
      if (is_op(l->nodes[k], ops[i])) return l->nodes[k];
  return NULL;
}

static const char* type_of(assay_type_t type) {
  switch (type) {
    case ASSAY_TYPE_FLOAT:
      return "fp32";
    case ASSAY_TYPE_BFLOAT16:
      return "bf16";
    case ASSAY_TYPE_FLOAT16:
      return "fp16";
    case ASSAY_TYPE_INT8:
    case ASSAY_TYPE_UINT8:
      return "int8";
    default:
      return NULL;
  }
}

// Of the constants that the layer reads the largest one with two dimensions and more: its weights.
static const assay_operand_t* weights_of(const assay_sized_layer_t* l) {
  const assay_operand_t* w = NULL;
  for (size_t i = 0; i < l->n_in; i++)
    if (l->in[i].constant && l->in[i].rank >= 2 && (!w || l->in[i].size > w->size)) w = &l->in[i];
  return w;
}

static const assay_operand_t* activations_of(const assay_sized_layer_t* l) {
  const assay_operand_t* x = NULL;
  for (size_t i = 0; i < l->n_in; i++)
    if (!l->in[i].constant && l->in[i].size > 1 && (!x || l->in[i].rank > x->rank)) x = &l->in[i];
  return x;
}

static bool conv_kind(const assay_operand_t* w, const assay_operand_t* x,
                      assay_layer_sizes_t* out) {
  int64_t kernel = 1;
  for (int i = 2; i < w->rank; i++) kernel *= w->dims[i];
  const bool groups = w->rank != x->rank || w->dims[1] != x->dims[1];
  if (groups && w->dims[1] != 1) return false;
  out->kind = groups ? "depthwise" : kernel == 1 ? "conv_1x1" : "conv";
  return true;
}

static void add_bytes(const assay_sized_layer_t* l, double samples, const assay_operand_t* w,
                      assay_layer_sizes_t* out) {
  for (size_t i = 0; i < l->n_in; i++)
    if (!l->in[i].constant && l->in[i].size > 1)
      out->read += (double)assay_operand_bytes(&l->in[i], l->in[i].type) / samples;
  out->write = (double)assay_operand_bytes(&l->out[0], l->out[0].type) / samples;
  if (w)
    out->weights = (double)w->size * (strcmp(out->type, "fp32") == 0   ? 4
                                      : strcmp(out->type, "int8") == 0 ? 1
                                                                       : 2);
}

bool assay_layer_sizes(const assay_sized_layer_t* l, assay_layer_sizes_t* out) {
  const assay_node_t* node = main_node(l->layer);
  const assay_operand_t *x = activations_of(l), *y = &l->out[0];
  *out = (assay_layer_sizes_t){0};
  if (!node || !x || !l->n_out || !y->value || y->rank < 1 || y->size < 1 || x->rank < 1)
    return false;
  out->type = type_of(x->type);
  const bool product = is_op(node, "MatMul") || is_op(node, "Gemm");
  const assay_operand_t* w = product || is_op(node, "Conv") ? weights_of(l) : NULL;
  double samples = 1;
  if (!out->type) return false;
  if (product) {
    const int64_t columns = y->dims[y->rank - 1];
    if (columns < 1) return false;
    out->kind = w ? "matmul" : "matmul_pair";
    out->macs =
        (double)y->size * (w ? (double)w->size / (double)columns : (double)x->dims[x->rank - 1]);
  } else {
    if (x->rank < 3 || y->rank != x->rank || y->dims[0] != x->dims[0]) return false;
    out->by_sample = true;
    samples = (double)y->dims[0];
    out->kind = node->op_type;
    out->macs = (double)x->size / samples;
  }
  if (is_op(node, "Conv")) {
    if (!w || w->dims[0] < 1 || !conv_kind(w, x, out)) return false;
    out->macs = (double)y->size / samples * (double)(w->size / w->dims[0]);
  }
  add_bytes(l, samples, w, out);
  return true;
}

// ---- prediction ---------------------------------------------------------------------------------

double assay_costs_predict(const assay_costs_t* costs, const assay_layer_sizes_t* s,
                           const char* tactic) {
  for (size_t i = 0; i < costs->n; i++) {
    const assay_cost_row_t* r = &costs->rows[i];
    if (strcmp(r->tactic, tactic) == 0 && strcmp(r->kind, s->kind) == 0 &&
        strcmp(r->type, s->type) == 0)
      return r->fixed + 1e-3 * (s->macs * r->mac + s->read * r->read + s->write * r->write +
                                s->weights * r->weights);
  }
  return (double)NAN;
}

static bool may_swap(const assay_tactic_t* a, const assay_tactic_t* b, bool any) {
  return any || (a->numerics && b->numerics && strcmp(a->numerics, b->numerics) == 0);
}

void assay_costs_rank(const assay_costs_t* costs, const assay_sized_layer_t* l, bool any_bits,
                      const assay_tactic_t* const* tactics, size_t n, size_t* order) {
  assay_layer_sizes_t sizes;
  for (size_t i = 0; i < n; i++) order[i] = i;
  if (!costs || !costs->n || !assay_layer_sizes(l, &sizes)) return;
  const bool any = any_bits || sizes.by_sample;
  // Place by place: the first that is left, or what is predicted to be that much faster.
  for (size_t i = 0; i < n; i++) {
    size_t best = i;
    double min = FASTER * assay_costs_predict(costs, &sizes, tactics[order[i]]->name);
    for (size_t k = i + 1; k < n; k++) {
      if (!may_swap(tactics[order[i]], tactics[order[k]], any)) continue;
      const double us = assay_costs_predict(costs, &sizes, tactics[order[k]]->name);
      if (!(us < min)) continue;
      min = us;
      best = k;
    }
    const size_t moved = order[best];
    memmove(order + i + 1, order + i, (best - i) * sizeof *order);
    order[i] = moved;
  }
}
