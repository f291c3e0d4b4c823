// Scales and zero points of quantizers, from numbers and steps that golden knows.
//
// q = round(x / scale) + zero point is a line: its slope and its offset by least squares over the
// elements that are not at an end of the type's range. The scale is then any of an interval that
// all elements leave open; where golden also knows what is dequantized from q, that gives the
// number itself.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/solve.h"
#include "formats/format.h"

typedef struct quantizer {
  assay_evaluator_t* m;
  const assay_node_t* node;
  assay_tensor_t *real, *steps;  // x and q, or y and q
  assay_tensor_t *scale, *zero;  // as they are; zero NULL: none
  assay_tensor_t* dequantized;   // what golden has after q; NULL: not known
  assay_tensor_t *new_scale, *new_zero;
  int64_t groups, inner;  // scales; elements of one before the next
  bool rounds;            // QuantizeLinear
  double low, high;       // the ends of q's type
} quantizer_t;

static bool is_op(const assay_node_t* n, const char* op_type) {
  return strcmp(n->op_type, op_type) == 0;
}

static int64_t group_of(const quantizer_t* z, int64_t i) { return i / z->inner % z->groups; }

// ---- one group ---------------------------------------------------------------------------------

// steps = slope * real + offset, by least squares.
typedef struct line {
  double n, x, q, xx, xq, slope, offset;
} line_t;

static bool is_inside(const quantizer_t* z, double q) { return q > z->low && q < z->high; }

static line_t fit(const quantizer_t* z, int64_t group) {
  line_t l = {0};
  for (int64_t i = 0; i < z->real->size; i++) {
    const double x = assay_f64(z->real)[i], q = (double)assay_i64(z->steps)[i];
    if (group_of(z, i) != group || (z->rounds && !is_inside(z, q))) continue;
    l.n++;
    l.x += x;
    l.q += q;
    l.xx += x * x;
    l.xq += x * q;
  }
  const double var = l.xx - l.x * l.x / l.n;
  l.slope = l.n > 1 && var > 0 ? (l.xq - l.x * l.q / l.n) / var : 0;
  l.offset = l.n > 0 ? (l.q - l.slope * l.x) / l.n : 0;
  return l;
}

// A scale of the interval in which every element is rounded to its step: golden's own if it is
// known, else what is there, else the middle. 0: there is none.
static double scale_within(const quantizer_t* z, int64_t group, double zero, double now) {
  double low = 0, high = INFINITY, gq = 0, qq = 0;
  for (int64_t i = 0; i < z->real->size; i++) {
    const double x = fabs(assay_f64(z->real)[i]), q = (double)assay_i64(z->steps)[i];
    if (group_of(z, i) != group || !is_inside(z, q)) continue;
    const double k = fabs(q - zero);
    low = fmax(low, x / (k + 0.5));
    if (k > 0.5) high = fmin(high, x / (k - 0.5));
    if (z->dequantized) {
      gq += assay_f64(z->dequantized)[i] * (q - zero);
      qq += (q - zero) * (q - zero);
    }
  }
  static const double TIES = 1e-5;  // of float32, whose quotients are rounded
  low *= 1 - TIES;
  high *= 1 + TIES;
  const double known = qq > 0 ? gq / qq : 0;
  if (!(low <= high) || !isfinite(high)) return 0;
  return known >= low && known <= high ? known : now >= low && now <= high ? now : (low + high) / 2;
}

static bool solve_group(quantizer_t* z, int64_t group) {
  const double before = assay_f64(z->scale)[group];
  const double zero_before = z->zero ? (double)assay_i64(z->zero)[group] : 0;
  const line_t l = fit(z, group);
  double scale = 0, zero = 0;
  if (!(l.slope > 0)) return l.n == 0 || !z->rounds;  // nothing tells
  // The zero point that is there is kept where it will do.
  zero = fabs(l.offset - zero_before) < 0.75 ? zero_before : round(l.offset);
  scale = z->rounds ? scale_within(z, group, zero, before) : 1 / l.slope;
  if (!(scale > 0) || (zero != zero_before && !z->zero)) return false;
  if (z->zero && zero != (double)assay_type_saturate(z->zero->type, zero)) return false;
  if (fabs(scale / before - 1) > 1e-6)
    assay_f64(z->new_scale)[group] =
        assay_format_round(assay_type_format(z->scale->type), scale, ASSAY_OVERFLOW_IEEE);
  if (z->zero) assay_i64(z->new_zero)[group] = (int64_t)zero;
  return true;
}

// ---- the node ----------------------------------------------------------------------------------

static assay_status_t read(const quantizer_t* z, size_t input, assay_tensor_t** out) {
  const assay_value_t* v = input < z->node->n_inputs ? z->node->inputs[input] : NULL;
  assay_tensor_t* t = v ? assay_evaluator_get(z->m, v) : NULL;
  *out = NULL;
  return t && t->kind == ASSAY_KIND_TENSOR ? assay_tensor_widen(t, out) : NULL;
}

// What is made from the steps with the same zero point, if a value of golden's stands there.
static assay_status_t read_dequantized(quantizer_t* z, const assay_value_t* steps) {
  const assay_graph_t* g = z->node->graph;
  for (size_t i = 0; i < g->n_nodes && !z->dequantized; i++) {
    const assay_node_t* n = g->nodes[i];
    if (!is_op(n, "DequantizeLinear") || n->inputs[0] != steps || !n->outputs[0]) continue;
    assay_tensor_t* t = assay_evaluator_get(z->m, n->outputs[0]);
    if (t && t->kind == ASSAY_KIND_TENSOR) ASSAY_TRY(assay_tensor_widen(t, &z->dequantized));
    if (z->dequantized && (z->dequantized->store != ASSAY_STORE_F64 ||
                           !assay_tensor_same_shape(z->dequantized, z->steps)))
      assay_tensor_release(z->dequantized), z->dequantized = NULL;
  }
  return NULL;
}

static bool find_groups(quantizer_t* z) {
  const assay_tensor_t* t = z->steps;
  int64_t axis = 1;
  z->groups = z->scale->size;
  z->inner = t->size;
  if (z->groups == 1) return true;
  for (size_t i = 0; i < z->node->n_attrs; i++)
    if (strcmp(z->node->attrs[i].name, "axis") == 0) axis = z->node->attrs[i].u.i;
  if (axis < 0) axis += t->rank;
  if (z->scale->rank != 1 || axis < 0 || axis >= t->rank || t->dims[axis] != z->groups)
    return false;
  z->inner = 1;
  for (int i = (int)axis + 1; i < t->rank; i++) z->inner *= t->dims[i];
  return true;
}

static bool is_known(const quantizer_t* z) {
  return z->real && z->steps && z->scale && z->real->store == ASSAY_STORE_F64 &&
         z->steps->store == ASSAY_STORE_I64 && z->scale->store == ASSAY_STORE_F64 &&
         assay_tensor_same_shape(z->real, z->steps) && z->real->size &&
         (!z->zero || (z->zero->store == ASSAY_STORE_I64 && z->zero->size == z->scale->size));
}

// Whether the node then gives golden, but for ties of a rounding.
static assay_status_t holds(const quantizer_t* z, const assay_repair_t* r,
                            const assay_search_target_t* target, bool* out) {
  assay_tensor_t *in[3] = {NULL}, *made = NULL;
  const size_t n_in = z->node->n_inputs < 3 ? z->node->n_inputs : 3;
  for (size_t i = 0; i < n_in; i++)
    in[i] = z->node->inputs[i] ? assay_evaluator_get(z->m, z->node->inputs[i]) : NULL;
  ASSAY_TRY(assay_repair_evaluate(z->m, r, n_in, in, 1, &made));
  const assay_difference_t d = assay_difference(made, target->golden);
  *out = d.comparable && (z->rounds ? d.mismatched <= d.n / 256
                                    : !d.mismatched && d.rms <= target->explained_rms &&
                                          d.max <= target->explained_max);
  assay_tensor_release(made);
  return NULL;
}

static void describe(const quantizer_t* z, char* out, size_t size) {
  const char* scale = z->node->inputs[1]->name;
  int64_t scales = 0, zeros = 0;
  for (int64_t i = 0; i < z->groups; i++) {
    scales += assay_f64(z->new_scale)[i] != assay_f64(z->scale)[i];
    zeros += z->zero && assay_i64(z->new_zero)[i] != assay_i64(z->zero)[i];
  }
  if (zeros && z->groups == 1)
    snprintf(out, size, "zero point %lld instead of %lld%s", (long long)assay_i64(z->new_zero)[0],
             (long long)assay_i64(z->zero)[0], scales ? ", and another scale" : "");
  else if (z->groups == 1)
    snprintf(out, size, "scale '%.80s' = %.7g instead of %.7g", scale, assay_f64(z->new_scale)[0],
             assay_f64(z->scale)[0]);
  else
    snprintf(out, size, "%lld of %lld scales of '%.80s' and %lld zero points", (long long)scales,
             (long long)z->groups, scale, (long long)zeros);
}

static assay_status_t solve(quantizer_t* z, const assay_search_target_t* target,
                            assay_repair_t* out, bool* out_found) {
  assay_repair_t r = {.node = z->node, .cause = "quantizer", .n_edits = 1};
  if (!is_known(z) || !find_groups(z)) return NULL;
  z->low = (double)assay_type_saturate(z->steps->type, -(double)INFINITY);
  z->high = (double)assay_type_saturate(z->steps->type, (double)INFINITY);
  ASSAY_TRY(assay_tensor_copy(z->scale, &z->new_scale));
  if (z->zero) ASSAY_TRY(assay_tensor_copy(z->zero, &z->new_zero));
  for (int64_t i = 0; i < z->groups; i++)
    if (!solve_group(z, i)) return NULL;
  r.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CONSTANT, .input = 1, .tensor = assay_tensor_retain(z->new_scale)};
  if (z->zero)
    r.edits[r.n_edits++] = (assay_repair_edit_t){
        .kind = ASSAY_EDIT_CONSTANT, .input = 2, .tensor = assay_tensor_retain(z->new_zero)};
  describe(z, r.text, sizeof r.text);
  assay_status_t st = holds(z, &r, target, out_found);
  if (st || !*out_found) return assay_repair_deinit(&r), st;
  *out = r;
  return NULL;
}

assay_status_t assay_solve_quantizer(assay_evaluator_t* m, const assay_node_t* node,
                                     const assay_search_target_t* target, assay_repair_t* out,
                                     bool* out_found) {
  quantizer_t z = {.m = m, .node = node, .rounds = is_op(node, "QuantizeLinear")};
  *out_found = false;
  if ((!z.rounds && !is_op(node, "DequantizeLinear")) || node->n_inputs < 2 || !node->inputs[1] ||
      !node->inputs[1]->constant || node->outputs[0] != target->value)
    return NULL;
  assay_tensor_t *first = NULL, *golden = NULL;
  assay_status_t st = read(&z, 0, &first);
  if (!st) st = read(&z, 1, &z.scale);
  if (!st) st = read(&z, 2, &z.zero);
  if (!st) st = assay_tensor_widen(target->golden, &golden);
  z.real = z.rounds ? first : golden;
  z.steps = z.rounds ? golden : first;
  if (!st && z.rounds && is_known(&z)) st = read_dequantized(&z, target->value);
  if (!st) st = solve(&z, target, out, out_found);
  assay_tensor_release(first);
  assay_tensor_release(golden);
  assay_tensor_release(z.scale);
  assay_tensor_release(z.zero);
  assay_tensor_release(z.dequantized);
  assay_tensor_release(z.new_scale);
  assay_tensor_release(z.new_zero);
  return st;
}
