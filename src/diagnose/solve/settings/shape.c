// The axes of Unsqueeze and Squeeze, the shape of Reshape, the axis of Flatten: where golden has
// the same elements in the same order, its shape tells which.
#include <stdio.h>
#include <string.h>

#include "diagnose/solve/settings.h"

typedef struct shapes {
  assay_missing_search_t* s;
  const assay_tensor_t *x, *want;
} shapes_t;

static void list_text(const int64_t* at, int n, char* out, size_t size) {
  *out = 0;
  for (int i = 0; i < n; i++) {
    const size_t length = strlen(out);
    snprintf(out + length, size - length, i ? ",%lld" : "%lld", (long long)at[i]);
  }
}

// Numbers that a node has as an attribute or, in later versions, as input 1.
static assay_status_t offer(const shapes_t* k, const char* name, const int64_t* at, int n) {
  assay_repair_t r = {.node = k->s->node, .cause = "attribute", .n_edits = 1};
  char text[120];
  if (k->s->node->n_inputs > 1) {
    r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 1};
    ASSAY_TRY(assay_tensor_vector_i64(ASSAY_TYPE_INT64, n, at, &r.edits[0].tensor));
  } else {
    r.edits[0] = (assay_repair_edit_t){
        .kind = ASSAY_EDIT_ATTR,
        .attr = {.name = name, .type = ASSAY_ATTR_INTS, .n = (size_t)n, .doc = "", .ref = ""}};
    memcpy(r.edits[0].numbers, at, (size_t)n * sizeof *at);
  }
  list_text(at, n, text, sizeof text);
  snprintf(r.text, sizeof r.text, "%s = [%s]", name, text);
  assay_status_t st = assay_missing_offer(k->s, &r);
  assay_repair_deinit(&r);
  return st;
}

// Which dimensions of `longer` are 1 and leave `shorter` when they go, from dimension `d` on.
static assay_status_t choose_axes(const shapes_t* k, const assay_tensor_t* longer,
                                  const assay_tensor_t* shorter, int d, int64_t* axes, int n) {
  const int left = shorter->rank - (d - n);
  if (assay_missing_is_over(k->s)) return NULL;
  if (d == longer->rank) return left == 0 ? offer(k, "axes", axes, n) : NULL;
  if (longer->dims[d] == 1 && n < longer->rank - shorter->rank) {
    axes[n] = d;
    ASSAY_TRY(choose_axes(k, longer, shorter, d + 1, axes, n + 1));
  }
  if (left > 0 && longer->dims[d] == shorter->dims[d - n])
    ASSAY_TRY(choose_axes(k, longer, shorter, d + 1, axes, n));
  return NULL;
}

static assay_status_t unsqueeze(const shapes_t* k) {
  int64_t axes[ASSAY_MAX_RANK];
  return k->want->rank > k->x->rank ? choose_axes(k, k->want, k->x, 0, axes, 0) : NULL;
}

static assay_status_t squeeze(const shapes_t* k) {
  int64_t axes[ASSAY_MAX_RANK];
  return k->want->rank < k->x->rank ? choose_axes(k, k->x, k->want, 0, axes, 0) : NULL;
}

// As the shape is written now where that fits; a leading dimension that stays is left open, or else
// one dimension is.
static assay_status_t reshape(const shapes_t* k) {
  int64_t dims[ASSAY_MAX_RANK];
  const int n = k->want->rank;
  if (n < 1 || k->s->n_in < 2 || !k->s->in[1]) return NULL;
  memcpy(dims, k->want->dims, (size_t)n * sizeof *dims);
  if (k->x->rank && k->x->dims[0] == dims[0]) {
    dims[0] = 0;
    return offer(k, "shape", dims, n);
  }
  for (int d = 0; d < n && !assay_missing_is_over(k->s); d++) {
    const int64_t was = dims[d];
    dims[d] = -1;
    ASSAY_TRY(offer(k, "shape", dims, n));
    dims[d] = was;
  }
  return NULL;
}

static assay_status_t flatten(const shapes_t* k) {
  assay_repair_t r = {.node = k->s->node, .cause = "axis", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_ATTR,
      .attr = {.name = "axis", .type = ASSAY_ATTR_INT, .n = 1, .doc = "", .ref = ""}};
  for (int axis = 0; axis <= k->x->rank && !assay_missing_is_over(k->s); axis++) {
    r.edits[0].attr.u.i = axis;
    snprintf(r.text, sizeof r.text, "axis = %d", axis);
    ASSAY_TRY(assay_missing_offer(k->s, &r));
  }
  return NULL;
}

static const struct {
  const char* op_type;
  assay_status_t (*offer)(const shapes_t* k);
} ROWS[] = {
    {"Unsqueeze", unsqueeze}, {"Squeeze", squeeze}, {"Reshape", reshape}, {"Flatten", flatten}};

assay_status_t assay_settings_shape(assay_missing_search_t* s, const assay_tensor_t* want) {
  const shapes_t k = {s, s->in[0], want};
  if (k.x->size != want->size || k.x->store != want->store ||
      memcmp(k.x->data, want->data, (size_t)want->size * assay_store_elem_bytes(want->store)) != 0)
    return NULL;
  for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++)
    if (strcmp(ROWS[i].op_type, s->node->op_type) == 0) ASSAY_TRY(ROWS[i].offer(&k));
  return NULL;
}
