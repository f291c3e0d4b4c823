// Proposals for nodes that take a part of what they read: off by one.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

// Starts and ends of a Slice, wherever they stand.
typedef struct range {
  bool from_attributes;
  assay_type_t type;
  int64_t starts[ASSAY_EDIT_NUMBERS], ends[ASSAY_EDIT_NUMBERS];
  size_t n;
} range_t;

// An end past this is "to the end": exporters write INT64_MAX or INT32_MAX.
static const int64_t FAR = 1 << 30;

static bool read_attributes(const assay_node_t* node, range_t* r) {
  size_t n = 0, m = 0;
  const int64_t* starts = assay_attr_ints(node, "starts", &n);
  const int64_t* ends = assay_attr_ints(node, "ends", &m);
  if (!starts || !ends || n != m || n > ASSAY_EDIT_NUMBERS) return false;
  memcpy(r->starts, starts, n * sizeof *starts);
  memcpy(r->ends, ends, n * sizeof *ends);
  r->n = n;
  r->from_attributes = true;
  return true;
}

static assay_status_t read_inputs(const assay_suspect_t* s, range_t* r, bool* out) {
  assay_tensor_t *starts = NULL, *ends = NULL;
  *out = false;
  assay_status_t st = assay_suspect_constant(s, 1, &starts);
  if (!st) st = assay_suspect_constant(s, 2, &ends);
  if (!st && starts && ends && starts->store == ASSAY_STORE_I64 && ends->store == ASSAY_STORE_I64 &&
      starts->rank == 1 && starts->size == ends->size && starts->size <= ASSAY_EDIT_NUMBERS) {
    r->n = (size_t)starts->size;
    r->type = starts->type;
    memcpy(r->starts, starts->data, r->n * sizeof *r->starts);
    memcpy(r->ends, ends->data, r->n * sizeof *r->ends);
    *out = true;
  }
  assay_tensor_release(starts);
  assay_tensor_release(ends);
  return st;
}

static void attribute_edit(assay_repair_edit_t* e, const char* name, const int64_t* numbers,
                           size_t n) {
  *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_ATTR};
  e->attr = (assay_attr_t){.name = name, .type = ASSAY_ATTR_INTS, .n = n, .doc = "", .ref = ""};
  memcpy(e->numbers, numbers, n * sizeof *numbers);
}

static assay_status_t constant_edit(assay_repair_edit_t* e, size_t input, assay_type_t type,
                                    const int64_t* numbers, size_t n) {
  *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input};
  return assay_tensor_vector_i64(type, (int64_t)n, numbers, &e->tensor);
}

// The range along one axis, or along all (axis = n), moved by a step.
static assay_status_t offer_moved(const assay_suspect_t* s, const char* cause, const range_t* r,
                                  size_t axis, int step, const assay_trial_t* t, bool* stop) {
  range_t y = *r;
  assay_repair_t repair = {.node = s->node, .cause = cause};
  for (size_t i = 0; i < r->n; i++) {
    if (axis < r->n && i != axis) continue;
    // An end that is far away is none; what starts there moves nowhere.
    const bool open = r->ends[i] >= FAR || r->ends[i] <= -FAR;
    if (r->starts[i] >= FAR || r->starts[i] <= -FAR) return NULL;
    // What starts at 0 or at the end wraps around: not what was meant.
    if (r->starts[i] >= 0 && r->starts[i] + step < 0) return NULL;
    if (r->starts[i] < 0 && r->starts[i] + step >= 0) return NULL;
    y.starts[i] += step;
    if (!open && r->ends[i] < 0 && r->ends[i] + step >= 0)
      y.ends[i] = INT64_MAX;
    else if (!open)
      y.ends[i] += step;
  }
  assay_status_t st = NULL;
  if (r->from_attributes) {
    attribute_edit(&repair.edits[0], "starts", y.starts, y.n);
    attribute_edit(&repair.edits[1], "ends", y.ends, y.n);
    repair.n_edits = 2;
  } else {
    st = constant_edit(&repair.edits[repair.n_edits++], 1, r->type, y.starts, y.n);
    if (!st) st = constant_edit(&repair.edits[repair.n_edits++], 2, r->type, y.ends, y.n);
  }
  if (st) return assay_repair_deinit(&repair), st;
  const size_t shown = axis < r->n ? axis : 0;
  snprintf(repair.text, sizeof repair.text, "the part from %lld, not %lld (moved by %+d)",
           (long long)y.starts[shown], (long long)r->starts[shown], step);
  return assay_offer(t, &repair, stop);
}

assay_status_t assay_propose_slice(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  range_t r = {0};
  if (strcmp(s->node->op_type, "Slice") != 0) return NULL;
  bool known = read_attributes(s->node, &r);
  if (!known) ASSAY_TRY(read_inputs(s, &r, &known));
  if (!known || !r.n) return NULL;
  // By 2: positions behind a padding index of 1, huggingface/transformers issue 19265.
  static const int steps[] = {-1, 1, 2, -2};
  for (size_t axis = 0; axis <= r.n; axis++) {
    if (axis == r.n && r.n == 1) break;
    for (int k = 0; k < 4 && !*stop; k++)
      ASSAY_TRY(offer_moved(s, cause, &r, axis, steps[k], t, stop));
  }
  return NULL;
}
