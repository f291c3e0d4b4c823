// Constants in another layout: moved by one place, flattened in another order; tables with a row
// that has to be zero.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { MANY = 1 << 24 };  // elements; larger constants are left alone

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input,
                            assay_tensor_t* take, const char* text, const assay_trial_t* t,
                            bool* stop) {
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_CONSTANT);
  r.edits[0].input = input;
  r.edits[0].tensor = take;
  snprintf(r.text, sizeof r.text, "'%.100s' %s", s->node->inputs[input]->name, text);
  return assay_offer(t, &r, stop);
}

// ---- by one place ------------------------------------------------------------------------------

// Element i along an axis is what stood at i - step; what leaves at one end comes in at the other.
static assay_status_t offer_rolled(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, int axis, int64_t step,
                                   const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  char text[80];
  const int64_t inner = assay_dims_product(x->dims, axis + 1, x->rank), d = x->dims[axis];
  const size_t bytes = (size_t)inner * assay_store_elem_bytes(x->store);
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  for (int64_t k = 0; k < x->size / inner; k++) {
    const int64_t from = (k / d) * d + (k % d - step + d) % d;
    memcpy((char*)y->data + (size_t)k * bytes, (const char*)x->data + (size_t)from * bytes, bytes);
  }
  snprintf(text, sizeof text, "moved by %+lld along axis %d", (long long)step, axis);
  return offer(s, cause, input, y, text, t, stop);
}

static assay_status_t offer_added(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_tensor_t* x, int64_t step, const assay_trial_t* t,
                                  bool* stop) {
  assay_tensor_t* y = NULL;
  char text[40];
  ASSAY_TRY(assay_tensor_copy(x, &y));
  for (int64_t i = 0; i < y->size; i++) assay_i64(y)[i] += step;
  snprintf(text, sizeof text, "with %+lld in each element", (long long)step);
  return offer(s, cause, input, y, text, t, stop);
}

// Positions, masks and tables that begin one place too early or too late. Source: positions of
// RoBERTa and others count from padding_idx + 1: facebookresearch/fairseq issue 1187,
// huggingface/transformers issue 19265.
assay_status_t assay_propose_moved(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  static const int64_t steps[] = {1, -1, 2, -2};
  for (size_t i = 0; i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    if (!x || x->store > ASSAY_STORE_I64 || x->size > MANY || x->size < 2) {
      assay_tensor_release(x);
      continue;
    }
    for (int axis = 0; axis < x->rank && !st; axis++)
      for (int k = 0; k < 2 && x->dims[axis] > 2 && !st && !*stop; k++)
        st = offer_rolled(s, cause, i, x, axis, steps[k], t, stop);
    for (int k = 0; k < 4 && x->store == ASSAY_STORE_I64 && !st && !*stop; k++)
      st = offer_added(s, cause, i, x, steps[k], t, stop);
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}

// ---- flattened ---------------------------------------------------------------------------------

// The picture that a matrix's rows are of: the input of a Flatten or Reshape before the node.
static const assay_tensor_t* picture_before(const assay_suspect_t* s) {
  const assay_value_t* v = s->node->inputs[0];
  const assay_node_t* n = v ? v->producer : NULL;
  if (!n || (strcmp(n->op_type, "Flatten") != 0 && strcmp(n->op_type, "Reshape") != 0)) return NULL;
  const assay_tensor_t* x = assay_around_tensor(s->around, n->inputs[0]);
  return x && x->rank >= 3 && x->rank <= 5 ? x : NULL;
}

// Rows for channels first put in the place of rows for channels last, or the other way.
static void reorder(const assay_tensor_t* w, int axis, int64_t channels, bool last,
                    assay_tensor_t* out) {
  const int64_t rows = w->dims[axis], places = rows / channels;
  const int64_t inner = assay_dims_product(w->dims, axis + 1, w->rank);
  const int64_t outer = w->size / (rows * inner);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t r = 0; r < rows; r++) {
      const int64_t from =
          last ? (r % places) * channels + r / places : (r % channels) * places + r / channels;
      memcpy(assay_f64(out) + (o * rows + r) * inner, assay_f64(w) + (o * rows + from) * inner,
             (size_t)inner * sizeof(double));
    }
}

// A dense layer after a picture that was flattened with its channels in another place. Sources:
// microsoft/MMdnn issue 250, tensorflow/tfjs issue 2205.
assay_status_t assay_propose_flattened(const assay_suspect_t* s, const char* cause,
                                       const assay_trial_t* t, bool* stop) {
  const bool gemm = strcmp(s->node->op_type, "Gemm") == 0;
  if (!s->around || s->n_in < 2 || (!gemm && strcmp(s->node->op_type, "MatMul") != 0)) return NULL;
  const assay_tensor_t* x = picture_before(s);
  assay_tensor_t* w = NULL;
  if (!x) return NULL;
  ASSAY_TRY(assay_suspect_constant(s, 1, &w));
  assay_status_t st = NULL;
  const int axis = gemm && assay_attr_i64(s->node, "transB", 0) ? 1 : 0;
  const int64_t sizes[] = {x->dims[1], x->dims[x->rank - 1]};
  const bool is_matrix = w && w->store == ASSAY_STORE_F64 && w->rank == 2 && w->size <= MANY;
  for (int k = 0; is_matrix && k < 4 && !st && !*stop; k++) {
    const int64_t channels = sizes[k / 2];
    assay_tensor_t* y = NULL;
    if (channels < 2 || w->dims[axis] % channels != 0 || w->dims[axis] == channels) continue;
    st = assay_tensor_create(w->type, w->rank, w->dims, &y);
    if (st) break;
    reorder(w, axis, channels, k % 2, y);
    st = offer(
        s, cause, 1, y,
        k % 2 ? "with rows for channels last put first" : "with rows for channels first put last",
        t, stop);
  }
  assay_tensor_release(w);
  return st;
}

// ---- rows of tables ----------------------------------------------------------------------------

static bool is_zero_row(const assay_tensor_t* x, int64_t row) {
  const int64_t d = x->size / x->dims[0];
  for (int64_t i = 0; i < d; i++)
    if (assay_f64(x)[row * d + i] != 0) return false;
  return true;
}

static assay_status_t offer_zero_row(const assay_suspect_t* s, const char* cause,
                                     const assay_tensor_t* x, int64_t row, const assay_trial_t* t,
                                     bool* stop) {
  assay_tensor_t* y = NULL;
  char text[80];
  if (is_zero_row(x, row)) return NULL;
  ASSAY_TRY(assay_tensor_copy(x, &y));
  const int64_t d = x->size / x->dims[0];
  memset(assay_f64(y) + row * d, 0, (size_t)d * sizeof(double));
  snprintf(text, sizeof text, "with row %lld of zeros, as padding has it", (long long)row);
  return offer(s, cause, 0, y, text, t, stop);
}

// The rows that the node looks up, as far as there are few.
static assay_status_t offer_zero_rows(const assay_suspect_t* s, const char* cause,
                                      const assay_tensor_t* x, const assay_trial_t* t, bool* stop) {
  enum { FEW = 48 };
  int64_t seen[FEW];
  size_t n = 0;
  assay_tensor_t* at = NULL;
  ASSAY_TRY(assay_tensor_widen(s->in[1], &at));
  for (int64_t i = 0; at->store == ASSAY_STORE_I64 && i < at->size && n < FEW; i++) {
    const int64_t row = assay_i64(at)[i] < 0 ? assay_i64(at)[i] + x->dims[0] : assay_i64(at)[i];
    bool known = row < 0 || row >= x->dims[0];
    for (size_t k = 0; k < n; k++) known |= seen[k] == row;
    if (!known) seen[n++] = row;
  }
  assay_tensor_release(at);
  for (size_t k = 0; k < n && !*stop; k++) ASSAY_TRY(offer_zero_row(s, cause, x, seen[k], t, stop));
  return NULL;
}

// The row of a table that stands for padding, which frameworks keep at zero or mask.
// Source: pytorch/pytorch issue 53053.
assay_status_t assay_propose_zero_row(const assay_suspect_t* s, const char* cause,
                                      const assay_trial_t* t, bool* stop) {
  assay_tensor_t* x = NULL;
  if (strcmp(s->node->op_type, "Gather") != 0 || s->n_in != 2 || !s->in[1]) return NULL;
  if (s->in[1]->kind != ASSAY_KIND_TENSOR || assay_attr_i64(s->node, "axis", 0) != 0) return NULL;
  ASSAY_TRY(assay_suspect_constant(s, 0, &x));
  assay_status_t st = NULL;
  if (x && x->store == ASSAY_STORE_F64 && x->rank == 2 && x->size && x->size <= 1 << 20)
    st = offer_zero_rows(s, cause, x, t, stop);
  assay_tensor_release(x);
  return st;
}
