// What rounding explains: a run in which each constant is moved by one rounding, each quantized one
// by up to half a step.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/golden/near_ties.h"
#include "diagnose/golden/walk.h"
#include "formats/format.h"
#include "ops/math/pointwise.h"
#include "ops/quant/book.h"

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

// Constants in small floats: each is moved by up to half of its last bit.
static assay_status_t move_small(assay_tensor_t** t, uint64_t draw) {
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &moved);
  const double u = assay_format_info(assay_type_format((*t)->type))->unit_roundoff;
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const double by = 2 * (double)(chance(i, draw) >> 11) * 0x1p-53 - 1;
    assay_f64(moved)[i] = assay_f64(wide)[i] * (1 + u * by);
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// Weights that were rounded in a type that does not say so. What they do is known but for a factor
// of three (kinds/rounded_find.c), of which several times an explained difference makes eight.
static assay_status_t move_rounded(const assay_golden_walk_t* w, const assay_value_t* v,
                                   assay_tensor_t** t) {
  static const double PART = 3.0 / 8;
  return assay_rounded_move(w->options->rounded, v, w->draw, w->options->probe ? 1 : PART, t);
}

// What such a node makes is moved where it is made.
static bool is_constant_node(const assay_node_t* n) {
  return n && !*n->domain && strcmp(n->op_type, "Constant") == 0;
}

// Whether a constant input holds quantized numbers: what is dequantized, or weights. Zero points
// have less dimensions than those.
static bool is_quantized(const assay_node_t* n, size_t i, const assay_tensor_t* t) {
  if (!n->op || !(n->op->flags & ASSAY_OP_QUANTIZES) || t->kind != ASSAY_KIND_TENSOR ||
      !assay_type_is_integer(t->type))
    return false;
  return strcmp(n->op_type, "DequantizeLinear") == 0 ? i == 0 : t->rank >= 2;
}

// Whether a constant holds numbers in 8 bits or fewer that become floats: no scales, which have
// exponents alone.
static bool is_small_float(const assay_node_t* n, size_t i, const assay_tensor_t* t) {
  const bool becomes =
      i == 0 && (strcmp(n->op_type, "DequantizeLinear") == 0 || strcmp(n->op_type, "Cast") == 0);
  return becomes && t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->type) &&
         assay_type_bits(t->type) <= 8 && t->type != ASSAY_TYPE_FLOAT8E8M0;
}

// What golden was printed with is lost from it: moved by up to half a unit of the last digit, a
// value unlike another one, so that differences of two show it.
static assay_status_t move_digits(const assay_golden_walk_t* w, const assay_value_t* v,
                                  assay_tensor_t** t) {
  const assay_tensor_t* x = *t;
  const assay_printed_t* printed = &w->printed[v->id];
  const uint64_t draw = w->draw + ((uint64_t)v->id + 1) * 0x9fb21c651e98df25U;
  assay_tensor_t* moved = NULL;
  if (!assay_is_printed(printed) || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64)
    return NULL;
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &moved));
  for (int64_t i = 0; i < x->size; i++) {
    const double by = (double)(chance(i, draw) >> 11) * 0x1p-53 - 0.5;
    assay_f64(moved)[i] = assay_f64(x)[i] + by * assay_printed_unit(printed, assay_f64(x)[i]);
  }
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

static double rms_of(const assay_tensor_t* t) {
  double sum = 0;
  for (int64_t i = 0; i < t->size; i++)
    sum += isfinite(assay_f64(t)[i]) ? assay_f64(t)[i] * assay_f64(t)[i] : 0;
  return t->size ? sqrt(sum / (double)t->size) : 0;
}

// What golden has of a value is not always what was computed from it: kernels that do several nodes
// at once keep more digits than are stored, or compute it once more with its sums in another order,
// and so does another run. Moved by one rounding of what golden is stored in and by what rounding
// explains of the value itself, at most MOST roundings: golden's own sums are of float32 where the
// model has few bits, and the sum of n terms is off by about the square root of n roundings.
// Numbers that nobody rounded stay.
assay_status_t assay_golden_put_apart(assay_golden_walk_t* w, const assay_value_t* v,
                                      assay_tensor_t* golden) {
  static const double MOST = 16;
  const assay_type_t stored = w->golden_of[v->id]->tensor->type;
  const uint64_t draw = w->draw + ((uint64_t)v->id + 1) * 0x9fb21c651e98df25U;
  assay_tensor_t* moved = NULL;
  if (!w->apart || golden->kind != ASSAY_KIND_TENSOR || golden->store != ASSAY_STORE_F64 ||
      !assay_type_is_float(stored) || strcmp(v->producer->op_type, "Constant") == 0) {
    assay_evaluator_set(w->noisy, v, golden);
    return NULL;
  }
  const assay_format_t format = assay_type_format(stored);
  const assay_format_info_t* info = assay_format_info(format);
  ASSAY_TRY(assay_tensor_create(golden->type, golden->rank, golden->dims, &moved));
  const double u = info->unit_roundoff, own = fmin(w->apart[v->id], MOST * u * rms_of(golden));
  for (int64_t i = 0; i < golden->size; i++) {
    const double x = assay_f64(golden)[i], by = u * fabs(x) + own;
    const bool stays = is_exact(x, format) || !(fabs(x) < info->max / 2);
    assay_f64(moved)[i] = stays ? x : chance(i, draw) >> 40 & 1 ? x + by : x - by;
  }
  assay_evaluator_set(w->noisy, v, moved);
  assay_tensor_release(moved);
  return NULL;
}

// A value that has no more digits by itself lost none, nor did one whose type has no more.
static void keep_printed(const assay_tensor_t* computed, assay_printed_t* printed) {
  if (!assay_is_printed(printed)) return;
  const bool as_stored = printed->format != ASSAY_FORMAT_NONE &&
                         assay_type_is_float(computed->type) &&
                         assay_format_info(assay_type_format(computed->type))->precision <=
                             assay_format_info(printed->format)->precision;
  if (as_stored || assay_printed_is_natural(printed, computed))
    *printed = (assay_printed_t){0, 0, ASSAY_FORMAT_NONE};
}

assay_status_t assay_golden_before_noisy(void* user, const assay_node_t* n, size_t n_in,
                                         assay_tensor_t** in) {
  const assay_golden_walk_t* w = user;
  const assay_golden_arithmetic_t* arithmetic = &w->options->arithmetic;
  for (size_t i = 0; i < n_in; i++)
    if (in[i] && n->inputs[i] && !is_constant_node(n->inputs[i]->producer))
      ASSAY_TRY(move_rounded(w, n->inputs[i], &in[i]));
  if (w->options->probe) return assay_golden_arithmetic_round_inputs(arithmetic, n, n_in, in);
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i] || !n->inputs[i]) continue;
    // Golden has taken the place of what came before.
    ASSAY_TRY(move_digits(w, n->inputs[i], &in[i]));
    if (!n->inputs[i]->constant) continue;
    const bool steps = w->options->unquantized && is_quantized(n, i, in[i]);
    if (w->options->unquantized && is_small_float(n, i, in[i])) {
      ASSAY_TRY(move_small(&in[i], w->draw));
      continue;
    }
    ASSAY_TRY(steps ? move_steps(&in[i], w->draw) : move_constant(&in[i], w->draw));
  }
  return assay_golden_arithmetic_round_inputs(arithmetic, n, n_in, in);
}

// What the noisy run stores a value in. A float16 value keeps its digits and loses its range (tf32
// has as many): truth and golden know no overflow, and NaN would explain nothing.
// Small floats that truth does not round are real numbers.
static assay_format_t noisy_storage(const assay_golden_walk_t* w, const assay_tensor_t* t) {
  const assay_format_t format = assay_type_format(t->type);
  if (w->options->unquantized && assay_type_is_float(t->type) && assay_type_bits(t->type) <= 8)
    return ASSAY_FORMAT_FP32;
  return format == ASSAY_FORMAT_FP16 ? ASSAY_FORMAT_TF32 : format;
}

assay_status_t assay_golden_after_noisy(void* user, const assay_node_t* n, size_t n_in,
                                        assay_tensor_t* const* in, size_t n_out,
                                        assay_tensor_t** out) {
  assay_golden_walk_t* w = user;
  ASSAY_TRY(
      assay_golden_arithmetic_round_outputs(&w->options->arithmetic, n, n_in, in, n_out, out));
  if (!w->options->unquantized && n_out && n_in && n->graph == w->model->graph)
    ASSAY_TRY(assay_near_ties_turn(w->truth, n, in[0], &out[0]));
  // Golden is of the network before its weights were looked up in a book.
  if (w->options->unquantized && n_out && out[0] && assay_is_book(n))
    ASSAY_TRY(assay_book_move(n, w->draw, &out[0]));
  if (is_constant_node(n) && out[0]) {
    ASSAY_TRY(move_rounded(w, n->outputs[0], &out[0]));
    ASSAY_TRY(move_constant(&out[0], w->draw));
  }
  if (n_out && out[0]) ASSAY_TRY(assay_golden_move_as_engines(n, n_in, in, w->draw, &out[0]));
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v || !out[i]) continue;
    assay_tensor_t* rounded = NULL;
    ASSAY_TRY(assay_round_tensor(out[i], noisy_storage(w, out[i]), &rounded));
    assay_tensor_release(out[i]);
    out[i] = rounded;
    keep_printed(out[i], &w->printed[v->id]);
    ASSAY_TRY(move_digits(w, v, &out[i]));
    if (!w->golden_of[v->id]) continue;
    assay_tensor_release(w->noisy_out[v->id]);
    w->noisy_out[v->id] = assay_tensor_retain(out[i]);
  }
  return NULL;
}
