// Elements that are taken from the other end, or put in another place: the last step for the first,
// classes that are counted from another one, what a border is filled with, a scale that was rounded
// to sizes.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

// ---- the other end -----------------------------------------------------------------------------

// One element of an axis: the first, the last, the one in the middle.
static assay_status_t offer_elements(const assay_suspect_t* s, const char* cause,
                                     const assay_tensor_t* at, int64_t length,
                                     const assay_trial_t* t, bool* stop) {
  const int64_t now = assay_i64(at)[0] < 0 ? assay_i64(at)[0] + length : assay_i64(at)[0];
  const int64_t others[] = {0, length - 1, length / 2, 1, length - 2};
  for (size_t i = 0; i < sizeof others / sizeof *others && !*stop; i++) {
    assay_tensor_t* y = NULL;
    char text[120];
    bool known = others[i] == now || others[i] < 0;
    for (size_t k = 0; k < i; k++) known |= others[k] == others[i];
    if (known) continue;
    ASSAY_TRY(assay_tensor_copy(at, &y));
    // From the end where it is there: lengths may differ.
    assay_i64(y)[0] = i == 1 ? -1 : i == 4 ? -2 : others[i];
    snprintf(text, sizeof text, "element %lld, not %lld", (long long)assay_i64(y)[0],
             (long long)assay_i64(at)[0]);
    ASSAY_TRY(assay_offer_constant(s, cause, 1, y, text, t, stop));
  }
  return NULL;
}

// A part of an axis: as much from its other end.
static assay_status_t offer_other_end(const assay_suspect_t* s, const char* cause,
                                      const assay_tensor_t* starts, const assay_tensor_t* ends,
                                      size_t k, int64_t length, const assay_trial_t* t,
                                      bool* stop) {
  int64_t from = assay_i64(starts)[k], to = assay_i64(ends)[k];
  from = from < 0 ? from + length : from;
  to = to < 0 ? to + length : to > length ? length : to;
  if (from < 0 || to <= from || from == length - to) return NULL;
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.n_edits = 2;
  r.edits[0].input = 1;
  r.edits[1] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 2};
  assay_status_t st = assay_tensor_copy(starts, &r.edits[0].tensor);
  if (!st) st = assay_tensor_copy(ends, &r.edits[1].tensor);
  if (st) return assay_repair_deinit(&r), st;
  assay_i64(r.edits[0].tensor)[k] = length - to;
  assay_i64(r.edits[1].tensor)[k] = length - from;
  snprintf(r.text, sizeof r.text, "the part from %lld to %lld, not from %lld to %lld",
           (long long)(length - to), (long long)(length - from), (long long)from, (long long)to);
  return assay_offer(t, &r, stop);
}

static assay_status_t offer_slices(const assay_suspect_t* s, const char* cause,
                                   const assay_tensor_t* starts, const assay_tensor_t* ends,
                                   const assay_tensor_t* axes, const assay_tensor_t* steps,
                                   const assay_trial_t* t, bool* stop) {
  for (int64_t k = 0; k < starts->size && !*stop; k++) {
    int64_t axis = axes ? assay_i64(axes)[k] : k;
    axis = axis < 0 ? axis + s->in[0]->rank : axis;
    if (axis < 0 || axis >= s->in[0]->rank || (steps && assay_i64(steps)[k] != 1)) continue;
    ASSAY_TRY(offer_other_end(s, cause, starts, ends, (size_t)k, s->in[0]->dims[axis], t, stop));
  }
  return NULL;
}

static assay_status_t propose_slice(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  enum { INPUTS = 5 };
  assay_tensor_t* c[INPUTS] = {NULL};
  assay_status_t st = NULL;
  for (size_t i = 1; i < INPUTS && !st; i++) st = assay_suspect_constant(s, i, &c[i]);
  bool fits = !st && c[1] && c[2];
  for (size_t i = 1; i < INPUTS && fits; i++)
    fits = !c[i] || (c[i]->store == ASSAY_STORE_I64 && c[i]->size == c[1]->size);
  if (fits) st = offer_slices(s, cause, c[1], c[2], c[3], c[4], t, stop);
  for (size_t i = 1; i < INPUTS; i++) assay_tensor_release(c[i]);
  return st;
}

// Tokens that are pooled, the last step of a direction. Sources: the last state of a reversed
// direction stands first, ONNX GRU 14; the token of BERT's pooler and that of GPT's, their papers.
assay_status_t assay_propose_other_end(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  const assay_tensor_t* x = s->n_in ? s->in[0] : NULL;
  if (!x || x->kind != ASSAY_KIND_TENSOR || !x->rank) return NULL;
  if (is_op(s->node, "Slice") && s->n_in > 2) return propose_slice(s, cause, t, stop);
  if (!is_op(s->node, "Gather") || s->n_in != 2) return NULL;
  assay_tensor_t* at = NULL;
  const int64_t axis = assay_attr_i64(s->node, "axis", 0);
  ASSAY_TRY(assay_suspect_constant(s, 1, &at));
  const int64_t place = axis < 0 ? axis + x->rank : axis;
  assay_status_t st = NULL;
  if (at && at->store == ASSAY_STORE_I64 && at->size == 1 && place >= 0 && place < x->rank &&
      !assay_around_is_constant(s->node->inputs[0]))
    st = offer_elements(s, cause, at, x->dims[place], t, stop);
  assay_tensor_release(at);
  return st;
}

// ---- indices -----------------------------------------------------------------------------------

static assay_status_t offer_turned(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, int64_t n, const assay_trial_t* t,
                                   bool* stop) {
  assay_tensor_t* y = NULL;
  char text[200];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++) assay_i64(y)[i * n + k] = assay_i64(x)[k * n + i];
  snprintf(text, sizeof text, "'%.100s', counted as %lld times %lld, transposed",
           s->node->inputs[input]->name, (long long)n, (long long)n);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

static assay_status_t offer_complement(const assay_suspect_t* s, const char* cause, size_t input,
                                       const assay_tensor_t* x, const assay_trial_t* t,
                                       bool* stop) {
  assay_tensor_t* y = NULL;
  char text[200];
  int64_t low = assay_i64(x)[0], high = low;
  for (int64_t i = 0; i < x->size; i++) {
    low = assay_i64(x)[i] < low ? assay_i64(x)[i] : low;
    high = assay_i64(x)[i] > high ? assay_i64(x)[i] : high;
  }
  if (low == high || high > INT32_MAX || low < INT32_MIN) return NULL;
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t i = 0; i < x->size; i++) assay_i64(y)[i] = low + high - assay_i64(x)[i];
  snprintf(text, sizeof text, "'%.100s' counted from the other end", s->node->inputs[input]->name);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

// Tables of distances, from keys to queries or the other way. Source: P. Shaw et al., 2018, 3.2.
assay_status_t assay_propose_indices(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  enum { FEW = 4, MANY = 1 << 22 };
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (x && x->store == ASSAY_STORE_I64 && x->size >= FEW && x->size <= MANY &&
        (is_op(s->node, "Gather") || is_op(s->node, "GatherElements") ||
         is_op(s->node, "GatherND") || x->size > ASSAY_EDIT_NUMBERS)) {
      const int64_t n = (int64_t)(sqrt((double)x->size) + 0.5);
      if (n > 2 && n * n == x->size) st = offer_turned(s, cause, i, x, n, t, stop);
      if (!st && !*stop) st = offer_complement(s, cause, i, x, t, stop);
    }
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}

// ---- classes and channels ----------------------------------------------------------------------

// Elements along an axis of what comes out, or of an input: moved by `step`, or reversed (0).
static assay_status_t offer_moved(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_tensor_t* x, int axis, int64_t step,
                                  const assay_trial_t* t, bool* stop) {
  const bool before = input < s->n_in;
  const int64_t n = x->dims[axis];
  assay_tensor_t* at = NULL;
  assay_repair_t r = assay_repair_of(s, cause, before ? ASSAY_EDIT_BEFORE : ASSAY_EDIT_AFTER);
  r.edits[0].input = before ? input : 0;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &n, &at));
  for (int64_t i = 0; i < n; i++) assay_i64(at)[i] = step ? (i - step + n) % n : n - 1 - i;
  const assay_formula_terms_t terms = {.program = "x gather", .c = at, .axes = {axis}, .n_axes = 1};
  assay_status_t st = assay_formula_create(&terms, &r.edits[0].formula);
  assay_tensor_release(at);
  if (st) return assay_repair_deinit(&r), st;
  const char* name = (before ? s->node->inputs[input] : s->node->outputs[0])->name;
  if (step)
    snprintf(r.text, sizeof r.text, "'%.120s' moved by %+lld along axis %d", name, (long long)step,
             axis);
  else
    snprintf(r.text, sizeof r.text, "'%.120s' reversed along axis %d", name, axis);
  return assay_offer(t, &r, stop);
}

// What a model gives or its last layers make, and what it is given. Sources: the background first
// or last, tensorflow/models' and PyTorch's detectors; channels in BGR order, OpenCV.
assay_status_t assay_propose_moved_output(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  enum { LAST = 6, COLOURS = 3 };
  const assay_graph_t* g = s->model->graph;
  if (!s->around || *s->node->domain || !s->n_out || !s->node->outputs[0]) return NULL;
  const assay_tensor_t* y = s->out[0];
  const size_t behind = g->n_nodes - s->around->order[s->node->id];
  if (is_float(y) && (s->node->outputs[0]->is_output || behind <= LAST))
    for (int axis = y->rank - 1; axis >= 1 && axis >= y->rank - 3; axis--)
      for (int64_t step = -1; step <= 1 && y->dims[axis] > 1 && !*stop; step++)
        if (step || y->dims[axis] > 2)
          ASSAY_TRY(offer_moved(s, cause, s->n_in, y, axis, step, t, stop));
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    const assay_value_t* v = s->node->inputs[i];
    const assay_tensor_t* x = s->in[i];
    if (!v || v->producer || v->constant || !is_float(x) || x->rank < 3) continue;
    const int axes[] = {1, x->rank - 1};
    for (int k = 0; k < 2 && !*stop; k++)
      if (x->dims[axes[k]] == COLOURS) ASSAY_TRY(offer_moved(s, cause, i, x, axes[k], 0, t, stop));
  }
  return NULL;
}

// ---- borders -----------------------------------------------------------------------------------

static assay_status_t offer_border(const assay_suspect_t* s, const char* cause, double value,
                                   bool fits, const assay_trial_t* t, bool* stop) {
  enum { VALUE = 2 };
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = VALUE;
  ASSAY_TRY(assay_tensor_scalar_f64(s->in[0]->type, value, &r.edits[0].tensor));
  r.fits = fits;
  r.value = r.start = value;
  snprintf(r.text, sizeof r.text, "filled with %.7g", value);
  return assay_offer(t, &r, stop);
}

// What a Pad fills its border with: a maximum after it must not see it. Source: that ONNX' Pad has
// 0 where no value is given, ONNX 11.
assay_status_t assay_propose_border(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  enum { PADS = 1 };
  static const double usual[] = {-FLT_MAX, 1, -1, 0.5, -0.5, 114, 114. / 255, 255, 0};
  static const double NEXT_TO_NOTHING = 1e-6;  // what the number begins at
  if (!is_op(s->node, "Pad") || s->n_in <= PADS || !s->in[0] || !is_float(s->in[0])) return NULL;
  if (strcmp(assay_attr_str(s->node, "mode", "constant"), "constant") != 0) return NULL;
  const assay_tensor_t* value = s->n_in > 2 ? s->in[2] : NULL;
  const double now = value && is_float(value) ? assay_f64(value)[0] : 0;
  for (size_t i = 0; i < sizeof usual / sizeof *usual && !*stop; i++)
    if (usual[i] != now) ASSAY_TRY(offer_border(s, cause, usual[i], false, t, stop));
  return *stop ? NULL : offer_border(s, cause, now != 0 ? now : NEXT_TO_NOTHING, true, t, stop);
}

// ---- scales ------------------------------------------------------------------------------------

static assay_status_t offer_scale(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_tensor_t* x, double now, double scale,
                                  const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  char text[80];
  if (fabs(scale - now) < 1e-9) return NULL;
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t i = 0; i < y->size; i++)
    if (assay_f64(x)[i] == now) assay_f64(y)[i] = (double)(float)scale;
  snprintf(text, sizeof text, "scales of %.7g instead of %.7g", scale, now);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

// Every scale that gives these sizes and can be written in few digits, or as a ratio of small
// numbers. Source: Resize of ONNX: the size is floor(size * scale).
static assay_status_t offer_scales(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, int axis, const assay_trial_t* t,
                                   bool* stop) {
  enum { DIGITS = 100, RATIO = 9 };
  const double now = assay_f64(x)[axis], size = (double)s->in[0]->dims[axis];
  const double low = (double)s->out[0]->dims[axis] / size;
  const double high = (double)(s->out[0]->dims[axis] + 1) / size;
  ASSAY_TRY(offer_scale(s, cause, input, x, now, low, t, stop));
  for (double k = ceil(low * DIGITS); k < high * DIGITS && !*stop; k++)
    ASSAY_TRY(offer_scale(s, cause, input, x, now, k / DIGITS, t, stop));
  for (int q = 3; q <= RATIO; q++)
    for (double p = ceil(low * q); p < high * q && !*stop; p++)
      ASSAY_TRY(offer_scale(s, cause, input, x, now, p / q, t, stop));
  return NULL;
}

assay_status_t assay_propose_scale(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  const bool resize = is_op(s->node, "Resize");
  const size_t input = resize && s->n_in > 2 ? 2 : 1;
  assay_tensor_t* x = NULL;
  if ((!resize && !is_op(s->node, "Upsample")) || s->n_in <= input || !s->n_out) return NULL;
  if (!is_float(s->in[0]) || !is_float(s->out[0])) return NULL;
  ASSAY_TRY(assay_suspect_constant(s, input, &x));
  assay_status_t st = NULL;
  const bool fits = x && is_float(x) && x->size == s->in[0]->rank && s->out[0]->rank == x->size;
  for (int k = 0; fits && k < s->in[0]->rank && !st && !*stop; k++) {
    bool known = assay_f64(x)[k] == 1;
    for (int i = 0; i < k; i++) known |= assay_f64(x)[i] == assay_f64(x)[k];
    if (!known) st = offer_scales(s, cause, input, x, k, t, stop);
  }
  assay_tensor_release(x);
  return st;
}
