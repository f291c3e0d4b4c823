// What a node is told besides its weights, solved or searched where its output is known: the
// permutation of Transpose, the indices of Gather, paddings, the sizes of Resize, the integers that
// DequantizeLinear reads.
//
// A table of operators; each function offers what may be right, the likelier first.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/settings.h"

// ---- Transpose ---------------------------------------------------------------------------------

// Whether a permutation gives what is wanted, at places spread over it.
static bool turns_into(const assay_tensor_t* x, const int64_t* perm, const assay_tensor_t* want) {
  enum { PLACES = 200 };
  int64_t stride[ASSAY_MAX_RANK], step = 1;
  for (int i = x->rank; i-- > 0; step *= x->dims[i]) stride[i] = step;
  for (int i = 0; i < x->rank; i++)
    if (want->dims[i] != x->dims[perm[i]]) return false;
  for (int k = 0; k < PLACES; k++) {
    const int64_t place = (int64_t)((double)k * (double)want->size / PLACES);
    int64_t rest = place, from = 0;
    for (int i = x->rank; i-- > 0; rest /= want->dims[i])
      from += rest % want->dims[i] * stride[perm[i]];
    if (assay_f64(x)[from] != assay_f64(want)[place]) return false;
  }
  return true;
}

static assay_status_t offer_perm(assay_missing_search_t* s, const int64_t* perm, int rank) {
  assay_repair_t r = {.node = s->node, .cause = "permutation", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_ATTR,
      .attr = {.name = "perm", .type = ASSAY_ATTR_INTS, .n = (size_t)rank, .doc = "", .ref = ""}};
  memcpy(r.edits[0].numbers, perm, (size_t)rank * sizeof *perm);
  char text[64] = "";
  for (int i = 0; i < rank; i++) {
    const size_t at = strlen(text);
    snprintf(text + at, sizeof text - at, i ? ",%lld" : "%lld", (long long)perm[i]);
  }
  snprintf(r.text, sizeof r.text, "perm = [%s]", text);
  return assay_missing_offer(s, &r);
}

// Every permutation, place by place.
static assay_status_t permute(assay_missing_search_t* s, const assay_tensor_t* want, int64_t* perm,
                              int n) {
  const assay_tensor_t* x = s->in[0];
  if (n == x->rank) return turns_into(x, perm, want) ? offer_perm(s, perm, n) : NULL;
  for (int64_t d = 0; d < x->rank && !assay_missing_is_over(s); d++) {
    bool used = x->dims[d] != want->dims[n];
    for (int i = 0; i < n; i++) used |= perm[i] == d;
    perm[n] = d;
    if (!used) ASSAY_TRY(permute(s, want, perm, n + 1));
  }
  return NULL;
}

static assay_status_t transpose(assay_missing_search_t* s, const assay_tensor_t* want) {
  enum { MOST = 7 };  // 5040 permutations
  int64_t perm[ASSAY_MAX_RANK];
  if (s->in[0]->rank != want->rank || want->rank > MOST || s->in[0]->size != want->size)
    return NULL;
  return permute(s, want, perm, 0);
}

// ---- Gather ------------------------------------------------------------------------------------

static assay_status_t offer_index(assay_missing_search_t* s, assay_tensor_t* index,
                                  const char* says) {
  assay_repair_t r = {.node = s->node, .cause = "constant numbers", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CONSTANT, .input = 1, .tensor = assay_tensor_retain(index)};
  if (index->size == 1)
    snprintf(r.text, sizeof r.text, "'%.80s' = %lld instead of %lld%s", s->node->inputs[1]->name,
             (long long)assay_i64(index)[0], (long long)assay_i64(s->in[1])[0], says);
  else
    snprintf(r.text, sizeof r.text, "other indices in '%.120s'%s", s->node->inputs[1]->name, says);
  assay_status_t st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

// The last element is named from the end first, since there may be more of them.
static assay_status_t gather(assay_missing_search_t* s, const assay_tensor_t* want) {
  const assay_tensor_t* x = s->in[0];
  int64_t axis = assay_attr_i64(s->node, "axis", 0);
  if (axis < 0) axis += x->rank;
  if (s->n_in < 2 || !s->in[1] || s->in[1]->store != ASSAY_STORE_I64 || axis < 0 ||
      axis >= x->rank || want->size != x->size / x->dims[axis] * s->in[1]->size)
    return NULL;
  assay_tensor_t* index = NULL;
  bool known = true, last = false;
  ASSAY_TRY(assay_tensor_copy(s->in[1], &index));
  for (int64_t j = 0; known && j < index->size; j++) {
    const int64_t k = assay_missing_slice_of(x, want, (int)axis, index->size, j);
    known = k >= 0;
    last |= k == x->dims[axis] - 1;
    assay_i64(index)[j] = k;
  }
  assay_status_t st = NULL;
  if (known && last && index->size == 1) {
    assay_i64(index)[0] = -1;
    st = offer_index(s, index, ", the last");
    assay_i64(index)[0] = x->dims[axis] - 1;
  }
  if (!st && known) st = offer_index(s, index, "");
  assay_tensor_release(index);
  return st;
}

// ---- Pad ---------------------------------------------------------------------------------------

// What is read where Pad copies: whether the data lie in what is wanted, begun at these places.
static bool lies_at(const assay_tensor_t* x, const assay_tensor_t* want, const int64_t* begin) {
  enum { PLACES = 500 };
  for (int k = 0; k < PLACES; k++) {
    const int64_t place = (int64_t)((double)k * (double)x->size / PLACES);
    int64_t rest = place, to = 0, step = 1;
    for (int i = x->rank; i-- > 0; rest /= x->dims[i]) {
      to += (rest % x->dims[i] + begin[i]) * step;
      step *= want->dims[i];
    }
    if (assay_f64(want)[to] != assay_f64(x)[place]) return false;
  }
  return true;
}

// The value at the first place that the data do not fill.
static double filling(const assay_tensor_t* x, const assay_tensor_t* want, const int64_t* begin) {
  for (int64_t place = 0; place < want->size; place++) {
    int64_t rest = place;
    bool inside = true;
    for (int i = want->rank; i-- > 0; rest /= want->dims[i]) {
      const int64_t at = rest % want->dims[i] - begin[i];
      inside = inside && at >= 0 && at < x->dims[i];
    }
    if (!inside) return assay_f64(want)[place];
  }
  return 0;
}

static assay_status_t offer_pad(assay_missing_search_t* s, const assay_tensor_t* want,
                                const int64_t* begin) {
  const assay_tensor_t* x = s->in[0];
  assay_repair_t r = {.node = s->node, .cause = "padding", .n_edits = 2};
  int64_t pads[2 * ASSAY_MAX_RANK];
  for (int i = 0; i < x->rank; i++) {
    pads[i] = begin[i];
    pads[x->rank + i] = want->dims[i] - x->dims[i] - begin[i];
  }
  const double value = filling(x, want, begin);
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 1};
  r.edits[1] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 2};
  assay_status_t st =
      assay_tensor_vector_i64(ASSAY_TYPE_INT64, 2 * x->rank, pads, &r.edits[0].tensor);
  if (!st) st = assay_tensor_scalar_f64(x->type, value, &r.edits[1].tensor);
  snprintf(r.text, sizeof r.text, "padded by %.6g, on other sides", value);
  if (!st) st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

static assay_status_t place_data(assay_missing_search_t* s, const assay_tensor_t* want,
                                 int64_t* begin, int axis) {
  const assay_tensor_t* x = s->in[0];
  if (axis == x->rank) return lies_at(x, want, begin) ? offer_pad(s, want, begin) : NULL;
  for (begin[axis] = 0; begin[axis] <= want->dims[axis] - x->dims[axis]; begin[axis]++)
    if (!assay_missing_is_over(s)) ASSAY_TRY(place_data(s, want, begin, axis + 1));
  return NULL;
}

static assay_status_t pad(assay_missing_search_t* s, const assay_tensor_t* want) {
  const assay_tensor_t* x = s->in[0];
  int64_t begin[ASSAY_MAX_RANK], ways = 1;
  if (x->rank != want->rank || x->rank == 0 || s->n_in < 2 ||
      strcmp(assay_attr_str(s->node, "mode", "constant"), "constant") != 0)
    return NULL;
  for (int i = 0; i < x->rank; i++) {
    if (want->dims[i] < x->dims[i] || want->dims[i] - x->dims[i] > 64) return NULL;
    ways *= want->dims[i] - x->dims[i] + 1;
    if (ways > 10000) return NULL;
  }
  return place_data(s, want, begin, 0);
}

// ---- DequantizeLinear --------------------------------------------------------------------------

static assay_status_t offer_integers(assay_missing_search_t* s, assay_type_t type,
                                     const assay_tensor_t* steps, const char* says) {
  assay_repair_t r = {.node = s->node, .cause = "quantizer", .n_edits = 1};
  const bool has_zero = s->n_in > 2 && s->in[2];
  for (int64_t i = 0; i < steps->size; i++)
    if (assay_type_saturate(type, (double)assay_i64(steps)[i]) != assay_i64(steps)[i]) return NULL;
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 0};
  assay_status_t st = assay_tensor_retype((assay_tensor_t*)steps, type, &r.edits[0].tensor);
  if (!st && has_zero) {
    r.edits[r.n_edits++] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 2};
    st = assay_tensor_create_zero(type, s->in[2]->rank, s->in[2]->dims, &r.edits[1].tensor);
    for (int64_t i = 0; !st && i < s->in[2]->size; i++) {
      int64_t zero = assay_i64(s->in[2])[i];
      // The same bits.
      if (type == ASSAY_TYPE_INT8 && zero > INT8_MAX) zero -= 256;
      if (type == ASSAY_TYPE_UINT8 && zero < 0) zero += 256;
      assay_i64(r.edits[1].tensor)[i] = zero;
    }
  }
  snprintf(r.text, sizeof r.text, says, s->node->inputs[0]->name);
  if (!st) st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

// Bytes read with the other sign; else the integers that golden asks for.
static assay_status_t dequantize(assay_missing_search_t* s, const assay_tensor_t* want) {
  const assay_tensor_t *q = s->in[0], *scale = s->n_in > 1 ? s->in[1] : NULL;
  const bool is_byte = q->type == ASSAY_TYPE_INT8 || q->type == ASSAY_TYPE_UINT8;
  const bool to_signed = q->type == ASSAY_TYPE_UINT8;
  assay_tensor_t* steps = NULL;
  if (!scale || scale->store != ASSAY_STORE_F64 || !s->node->inputs[0]->constant ||
      (s->n_in > 2 && s->in[2] && (!s->node->inputs[2] || !s->node->inputs[2]->constant)))
    return NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, q->rank, q->dims, &steps));
  for (int64_t i = 0; i < q->size; i++) {
    const int64_t x = assay_i64(q)[i];
    assay_i64(steps)[i] = to_signed && x > INT8_MAX ? x - 256 : !to_signed && x < 0 ? x + 256 : x;
  }
  assay_status_t st = is_byte ? offer_integers(s, to_signed ? ASSAY_TYPE_INT8 : ASSAY_TYPE_UINT8,
                                               steps, "the bytes of '%.100s' have the other sign")
                              : NULL;
  if (!st && !assay_missing_is_over(s) && scale->size == 1 && assay_f64(scale)[0] > 0) {
    const double zero = s->n_in > 2 && s->in[2] ? (double)assay_i64(s->in[2])[0] : 0;
    for (int64_t i = 0; i < q->size; i++) {
      const double x = assay_f64(want)[i] / assay_f64(scale)[0] + zero;
      assay_i64(steps)[i] = fabs(x) < 1e9 ? (int64_t)floor(x + 0.5) : 0;
    }
    st = offer_integers(s, q->type, steps, "other integers in '%.100s'");
  }
  assay_tensor_release(steps);
  return st;
}

// ---- the table ---------------------------------------------------------------------------------

static const struct {
  const char* op_type;
  assay_store_t store;  // of input 0
  assay_status_t (*offer)(assay_missing_search_t* s, const assay_tensor_t* want);
} ROWS[] = {
    {"Transpose", ASSAY_STORE_F64, transpose},
    {"Gather", ASSAY_STORE_F64, gather},
    {"Pad", ASSAY_STORE_F64, pad},
    {"DequantizeLinear", ASSAY_STORE_I64, dequantize},
    {"Conv", ASSAY_STORE_F64, assay_settings_window},
    {"ConvTranspose", ASSAY_STORE_F64, assay_settings_window},
    {"MaxPool", ASSAY_STORE_F64, assay_settings_window},
    {"AveragePool", ASSAY_STORE_F64, assay_settings_window},
    {"LpPool", ASSAY_STORE_F64, assay_settings_window},
    {"Resize", ASSAY_STORE_F64, assay_settings_resize},
    {"LSTM", ASSAY_STORE_F64, assay_settings_activations},
    {"GRU", ASSAY_STORE_F64, assay_settings_activations},
    {"RNN", ASSAY_STORE_F64, assay_settings_activations},
    {"LSTM", ASSAY_STORE_F64, assay_settings_recurrent},
    {"GRU", ASSAY_STORE_F64, assay_settings_recurrent},
    {"RNN", ASSAY_STORE_F64, assay_settings_recurrent},
    {"LSTM", ASSAY_STORE_F64, assay_settings_gates},
    {"GRU", ASSAY_STORE_F64, assay_settings_gates},
    {"RNN", ASSAY_STORE_F64, assay_settings_gates},
    {"Unsqueeze", ASSAY_STORE_F64, assay_settings_shape},
    {"Squeeze", ASSAY_STORE_F64, assay_settings_shape},
    {"Reshape", ASSAY_STORE_F64, assay_settings_shape},
    {"Flatten", ASSAY_STORE_F64, assay_settings_shape},
};

assay_status_t assay_missing_settings(assay_missing_search_t* s, const assay_tensor_t* want) {
  const assay_tensor_t* x = s->n_in ? s->in[0] : NULL;
  const bool several = s->output != 0;  // only recurrent layers are asked by another output
  if (*s->node->domain || !x || x->kind != ASSAY_KIND_TENSOR || !x->size ||
      want->store != ASSAY_STORE_F64 || !want->size)
    return NULL;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS && !assay_missing_is_over(s); i++)
    if (strcmp(ROWS[i].op_type, s->node->op_type) == 0 && x->store == ROWS[i].store &&
        (!several || ROWS[i].offer == assay_settings_activations ||
         ROWS[i].offer == assay_settings_recurrent || ROWS[i].offer == assay_settings_gates))
      ASSAY_TRY(ROWS[i].offer(s, want));
  return NULL;
}
