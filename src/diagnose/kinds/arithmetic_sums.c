// Products that are made otherwise than by rounding what they read: as sums of products of parts,
// and with sums that are rounded as they grow.
#include <string.h>

#include "diagnose/kinds/arithmetic.h"
#include "ops/op.h"

// Evaluates a product on its two operands alone, without a bias.
static assay_status_t product(const assay_node_t* n, assay_tensor_t* a, assay_tensor_t* b,
                              assay_tensor_t** out) {
  assay_tensor_t *in[2] = {NULL, NULL}, *made[1] = {NULL};
  assay_status_t st = assay_tensor_widen(a, &in[0]);
  if (!st) st = assay_tensor_widen(b, &in[1]);
  assay_eval_t e = {
      .node = n, .mode = ASSAY_MODE_TRUTH, .n_in = 2, .in = in, .n_out = 1, .out = made};
  if (!st) st = n->op->eval(&e);
  assay_tensor_release(in[0]);
  assay_tensor_release(in[1]);
  if (st) return assay_tensor_release(made[0]), st;
  *out = made[0];
  return NULL;
}

// Replaces *to by *to + sign * by, where both have the same shape.
static assay_status_t add(assay_tensor_t** to, assay_tensor_t* by, double sign) {
  assay_tensor_t *wide = NULL, *sum = NULL;
  ASSAY_TRY(assay_tensor_widen(*to, &wide));
  assay_status_t st = assay_tensor_copy(wide, &sum);
  if (!st && assay_tensor_alike(sum, by))
    for (int64_t i = 0; i < sum->size; i++) assay_f64(sum)[i] += sign * assay_f64(by)[i];
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*to);
  *to = sum;
  return NULL;
}

static bool is_one_of(const assay_node_t* n, const char* const* names) {
  for (; *names; names++)
    if (strcmp(n->op_type, *names) == 0) return true;
  return false;
}

static bool are_floats(const assay_node_t* n, size_t n_in, assay_tensor_t* const* in,
                       const assay_tensor_t* out) {
  if (*n->domain || !n->op || !n->op->eval || n_in < 2 || !in[0] || !in[1] || !out) return false;
  return in[0]->kind == ASSAY_KIND_TENSOR && in[0]->type == ASSAY_TYPE_FLOAT &&
         in[1]->kind == ASSAY_KIND_TENSOR && in[1]->type == ASSAY_TYPE_FLOAT &&
         out->kind == ASSAY_KIND_TENSOR && out->type == ASSAY_TYPE_FLOAT;
}

// ---- parts -------------------------------------------------------------------------------------

static assay_status_t small_part(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                 size_t i, assay_tensor_t* of, assay_tensor_t** out) {
  assay_tensor_t *large = assay_tensor_retain(of), *rest = assay_tensor_retain(of), *wide = NULL;
  assay_status_t st = assay_golden_arithmetic_large_part(a, n, i, &large);
  if (!st) st = assay_tensor_widen(large, &wide);
  if (!st) st = add(&rest, wide, -1);
  assay_tensor_release(wide);
  assay_tensor_release(large);
  if (st) return assay_tensor_release(rest), st;
  *out = rest;
  return NULL;
}

// (a + b)(c + d) without the product of the small parts b and d.
static assay_status_t leave_small_out(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                      assay_tensor_t* const* in, assay_tensor_t** out) {
  assay_tensor_t *small[2] = {NULL, NULL}, *lost = NULL;
  assay_status_t st = small_part(a, n, 0, in[0], &small[0]);
  if (!st) st = small_part(a, n, 1, in[1], &small[1]);
  if (!st) st = product(n, small[0], small[1], &lost);
  if (!st) st = add(out, lost, -1);
  assay_tensor_release(small[0]);
  assay_tensor_release(small[1]);
  assay_tensor_release(lost);
  return st;
}

// ---- sums --------------------------------------------------------------------------------------

// The axis of an operand of a matrix product that is summed over.
static int summed_axis(const assay_node_t* n, int operand, int rank) {
  if (strcmp(n->op_type, "Gemm") == 0)
    return (assay_attr_i64(n, operand ? "transB" : "transA", 0) != 0) == (operand != 0);
  return rank < 2 || !operand ? rank - 1 : rank - 2;
}

static assay_status_t slice(assay_tensor_t* t, int axis, int64_t first, int64_t n,
                            assay_tensor_t** out) {
  assay_tensor_t *wide = NULL, *cut = NULL;
  int64_t dims[ASSAY_MAX_RANK], outer = 1, inner = 1;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  for (int k = 0; k < wide->rank; k++) {
    dims[k] = k == axis ? n : wide->dims[k];
    if (k < axis) outer *= wide->dims[k];
    if (k > axis) inner *= wide->dims[k];
  }
  const int64_t all = wide->dims[axis];
  assay_status_t st = assay_tensor_create(wide->type, wide->rank, dims, &cut);
  for (int64_t i = 0; !st && i < outer; i++)
    memcpy(assay_f64(cut) + i * n * inner, assay_f64(wide) + (i * all + first) * inner,
           (size_t)(n * inner) * sizeof(double));
  assay_tensor_release(wide);
  if (st) return st;
  *out = cut;
  return NULL;
}

// The sum of n products from number `first` on.
static assay_status_t part_of_sum(const assay_node_t* node, assay_tensor_t* const* in,
                                  int64_t first, int64_t n, assay_tensor_t** out) {
  assay_tensor_t* cut[2] = {NULL, NULL};
  assay_status_t st = NULL;
  for (int k = 0; k < 2 && !st; k++)
    st = slice(in[k], summed_axis(node, k, in[k]->rank), first, n, &cut[k]);
  if (!st) st = product(node, cut[0], cut[1], out);
  assay_tensor_release(cut[0]);
  assay_tensor_release(cut[1]);
  return st;
}

// What a product adds to the sum of its operands' products: its bias.
static assay_status_t bias_of(const assay_node_t* n, size_t n_in, assay_tensor_t* const* in,
                              assay_tensor_t* out, assay_tensor_t** bias) {
  assay_tensor_t* alone = NULL;
  if (n_in < 3 || !in[2]) return NULL;
  ASSAY_TRY(product(n, in[0], in[1], &alone));
  assay_tensor_t* rest = assay_tensor_retain(out);
  assay_status_t st = add(&rest, alone, -1);
  assay_tensor_release(alone);
  if (st) return assay_tensor_release(rest), st;
  *bias = rest;
  return NULL;
}

static assay_status_t add_up_rounded(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                     int64_t all, assay_tensor_t* const* in, assay_tensor_t** sum) {
  assay_status_t st = NULL;
  for (int64_t first = 0; first < all && !st; first += a->addends) {
    const int64_t left = all - first;
    const size_t place = n->n_inputs + n->n_outputs + 2 * (size_t)(first / a->addends);
    assay_tensor_t* part = NULL;
    st = part_of_sum(n, in, first, left < a->addends ? left : a->addends, &part);
    if (!st && a->sums_apart) st = assay_golden_arithmetic_round_output(a, n, place, &part);
    assay_tensor_t* wide = NULL;
    if (!st) st = assay_tensor_widen(part, &wide);
    assay_tensor_release(part);
    if (!st && *sum) st = add(sum, wide, 1);
    if (!st && !*sum) *sum = assay_tensor_retain(wide);
    assay_tensor_release(wide);
    if (!st) st = assay_golden_arithmetic_round_output(a, n, place + 1, sum);
  }
  return st;
}

static assay_status_t round_sums(const assay_golden_arithmetic_t* a, const assay_node_t* n,
                                 size_t n_in, assay_tensor_t* const* in, assay_tensor_t** out) {
  if (in[0]->rank < 1 || in[1]->rank < 1) return NULL;
  const int64_t all = in[0]->dims[summed_axis(n, 0, in[0]->rank)];
  if (all < 1 || in[1]->dims[summed_axis(n, 1, in[1]->rank)] != all) return NULL;
  assay_tensor_t *bias = NULL, *sum = NULL, *wide = NULL;
  assay_status_t st = bias_of(n, n_in, in, *out, &bias);
  if (!st) st = add_up_rounded(a, n, all, in, &sum);
  if (!st && bias) st = assay_tensor_widen(bias, &wide);
  if (!st && bias) st = add(&sum, wide, 1);
  assay_tensor_release(wide);
  assay_tensor_release(bias);
  if (st) return assay_tensor_release(sum), st;
  assay_tensor_release(*out);
  *out = sum;
  return NULL;
}

assay_status_t assay_golden_arithmetic_redo(const assay_golden_arithmetic_t* a,
                                            const assay_node_t* n, size_t n_in,
                                            assay_tensor_t* const* in, assay_tensor_t** out) {
  static const char* const BILINEAR[] = {"Conv", "ConvTranspose", "MatMul", "Gemm", "Mul", NULL};
  static const char* const MATRICES[] = {"MatMul", "Gemm", NULL};
  if (!(assay_golden_arithmetic_products(n) & a->products) || !are_floats(n, n_in, in, *out) ||
      (a->spares_vectors && assay_golden_arithmetic_is_by_vector(n, n_in, in)))
    return NULL;
  if (a->parts > 1 && is_one_of(n, BILINEAR)) ASSAY_TRY(leave_small_out(a, n, in, out));
  return a->addends && is_one_of(n, MATRICES) ? round_sums(a, n, n_in, in, out) : NULL;
}
