// What rounding explains: a run in which each constant is moved by one rounding, each quantized one
// by up to half a step.
#include <string.h>

#include "base/alloc.h"
#include "diagnose/golden/near_ties.h"
#include "diagnose/golden/walk.h"
#include "formats/format.h"
#include "ops/math/pointwise.h"

// Whether a number has so few significant bits, less than half of what its type holds, that nobody
// rounded it: 2, 0.5, -1e3. Such constants mean what they say (an exponent of 2 must stay 2: other
// powers of negative numbers are NaN).
static bool is_exact(double x, assay_format_t format) {
  const int held = assay_format_info(format)->precision - 1, few = held < 23 ? held / 2 - 1 : 11;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits & (UINT64_MAX >> (64 - 52 + few))) == 0;
}

static uint64_t chance(int64_t i, uint64_t draw) {
  return ((uint64_t)i + 1 + draw * 0xd1342543de82ef95U) * 0x9e3779b97f4a7c15U;
}

// Moves each element that may have been rounded by one unit roundoff of its type, up or down by
// chance: what an exporter that rounds a constant may have done to it.
static assay_status_t move_constant(assay_tensor_t** t, uint64_t draw) {
  const assay_type_t type = (*t)->type;
  if ((*t)->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(type) || assay_type_bits(type) < 16)
    return NULL;
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(type, wide->rank, wide->dims, &moved);
  const assay_format_t format = assay_type_format(type);
  const double u = assay_format_info(format)->unit_roundoff;
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const uint64_t hash = chance(i, draw);
    const double x = assay_f64(wide)[i];
    assay_f64(moved)[i] = is_exact(x, format) ? x : x * (1 + (hash >> 40 & 1 ? u : -u));
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// Quantized constants are rounded to steps, and golden is of the network before: each is moved by
// up to half a step. Truth 'unquantized' knows them as real numbers (ops/quant/quant.h).
static assay_status_t move_steps(assay_tensor_t** t, uint64_t draw) {
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &moved);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const uint64_t hash = chance(i, draw);
    assay_f64(moved)[i] =
        assay_i64_to_f64(wide->type, assay_i64(wide)[i]) + (double)(hash >> 11) * 0x1p-53 - 0.5;
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// Whether a constant input holds quantized numbers: what is dequantized, or weights. Zero points
// have less dimensions than those.
static bool is_quantized(const assay_node_t* n, size_t i, const assay_tensor_t* t) {
  if (!n->op || !(n->op->flags & ASSAY_OP_QUANTIZES) || t->kind != ASSAY_KIND_TENSOR ||
      !assay_type_is_integer(t->type))
    return false;
  return strcmp(n->op_type, "DequantizeLinear") == 0 ? i == 0 : t->rank >= 2;
}

// What golden was printed with is lost from it: moved by up to half a unit of the last digit.
static assay_status_t move_digits(const assay_printed_t* printed, uint64_t draw,
                                  assay_tensor_t** t) {
  const assay_tensor_t* x = *t;
  assay_tensor_t* moved = NULL;
  if ((!printed->digits && !printed->places) || x->kind != ASSAY_KIND_TENSOR ||
      x->store != ASSAY_STORE_F64)
    return NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &moved));
  for (int64_t i = 0; i < x->size; i++) {
    const double by = (double)(chance(i, draw + 1) >> 11) * 0x1p-53 - 0.5;
    assay_f64(moved)[i] = assay_f64(x)[i] + by * assay_printed_unit(printed, assay_f64(x)[i]);
  }
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

assay_status_t assay_golden_before_noisy(void* user, const assay_node_t* n, size_t n_in,
                                         assay_tensor_t** in) {
  const assay_golden_walk_t* w = user;
  const assay_golden_arithmetic_t* arithmetic = &w->options->arithmetic;
  if (w->options->probe) return assay_golden_arithmetic_round_inputs(arithmetic, n, n_in, in);
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i] || !n->inputs[i]) continue;
    // Golden has taken the place of what came before.
    ASSAY_TRY(move_digits(&w->printed[n->inputs[i]->id], w->draw, &in[i]));
    if (!n->inputs[i]->constant) continue;
    const bool steps = w->options->unquantized && is_quantized(n, i, in[i]);
    ASSAY_TRY(steps ? move_steps(&in[i], w->draw) : move_constant(&in[i], w->draw));
  }
  return assay_golden_arithmetic_round_inputs(arithmetic, n, n_in, in);
}

// Engines approximate the logistic function with an error that is small beside 1, not beside a
// small result: ONNX Runtime gives 1.5e-8 for everything below, which is much where a square root
// or a logarithm follows. Moved by up to a roundoff of 1, towards the middle, so that it stays
// between 0 and 1.
static assay_status_t move_tails(assay_tensor_t** t, uint64_t draw) {
  if (!*t || (*t)->kind != ASSAY_KIND_TENSOR || (*t)->type != ASSAY_TYPE_FLOAT) return NULL;
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &moved);
  const double u = assay_format_info(ASSAY_FORMAT_FP32)->unit_roundoff;
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const double x = assay_f64(wide)[i], by = u * (double)(chance(i, draw) >> 11) * 0x1p-53;
    assay_f64(moved)[i] = x < 0.5 ? x + by : x > 0.5 ? x - by : x;
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// What the noisy run stores a value in. A float16 value keeps its digits and loses its range (tf32
// has as many): truth and golden know no overflow, and NaN would explain nothing.
static assay_format_t noisy_storage(const assay_tensor_t* t) {
  const assay_format_t format = assay_type_format(t->type);
  return format == ASSAY_FORMAT_FP16 ? ASSAY_FORMAT_TF32 : format;
}

assay_status_t assay_golden_after_noisy(void* user, const assay_node_t* n, size_t n_in,
                                        assay_tensor_t* const* in, size_t n_out,
                                        assay_tensor_t** out) {
  assay_golden_walk_t* w = user;
  ASSAY_TRY(assay_golden_arithmetic_round_outputs(&w->options->arithmetic, n, n_out, out));
  if (!w->options->unquantized && n_out && n_in && n->graph == w->model->graph)
    ASSAY_TRY(assay_near_ties_turn(w->truth, n, in[0], &out[0]));
  if (!*n->domain && strcmp(n->op_type, "Constant") == 0 && out[0])
    ASSAY_TRY(move_constant(&out[0], w->draw));
  if (!*n->domain && strcmp(n->op_type, "Sigmoid") == 0) ASSAY_TRY(move_tails(&out[0], w->draw));
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v || !out[i]) continue;
    assay_tensor_t* rounded = NULL;
    ASSAY_TRY(assay_round_tensor(out[i], noisy_storage(out[i]), &rounded));
    assay_tensor_release(out[i]);
    out[i] = rounded;
    ASSAY_TRY(move_digits(&w->printed[v->id], w->draw, &out[i]));
    if (!w->golden_of[v->id]) continue;
    assay_tensor_release(w->noisy_out[v->id]);
    w->noisy_out[v->id] = assay_tensor_retain(out[i]);
  }
  return NULL;
}
