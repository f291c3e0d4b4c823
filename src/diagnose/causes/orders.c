// Elements that were counted in another order when dimensions were split or merged: heads, windows,
// pixels of a block; channels of several parts.
//
// A Reshape that merges or splits dimensions hides a Transpose that is missing before it: shapes
// fit either way.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { TEXT = ASSAY_FORMULA_TEXT, FACTORS = 4 };

static bool is_tensor(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store <= ASSAY_STORE_I64 && t->size > 1;
}

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

// Where elements change places: in front of an input, or, where the node is the only one that reads
// it, after what makes it, which as likely is where they should have.
typedef struct place {
  const assay_suspect_t* s;
  const char* cause;
  const assay_trial_t* t;
  bool* stop;
  size_t input;
} place_t;

static assay_status_t offer(const place_t* p, const char* program, const char* text) {
  const assay_formula_terms_t terms = {.program = program};
  const assay_value_t* in = p->s->node->inputs[p->input];
  assay_repair_t r = assay_repair_of(p->s, p->cause, ASSAY_EDIT_BEFORE);
  r.edits[0].input = p->input;
  for (const assay_node_t* n = in->producer; n && r.n_beside < ASSAY_REPAIR_BESIDE;) {
    r.beside[r.n_beside++] = n;
    n = is_op(n, "Add") && n->n_inputs == 2
            ? n->inputs[assay_around_is_constant(n->inputs[0]) ? 1 : 0]->producer
            : NULL;
  }
  snprintf(r.text, sizeof r.text, "'%.80s' %.140s", in->name, text);
  ASSAY_TRY(assay_formula_create(&terms, &r.edits[0].formula));
  return assay_offer(p->t, &r, p->stop);
}

// Dimensions as Reshape has them: the batch as it is, whatever it is in another run.
static void open_batch(const assay_tensor_t* x, int64_t* dims) {
  if (x->rank && dims[0] == x->dims[0]) dims[0] = 0;
}

// ---- before a Reshape --------------------------------------------------------------------------

// Whether an order moves elements, and not dimensions of 1 alone.
static bool moves(const assay_tensor_t* x, const int64_t* order) {
  int64_t last = -1;
  for (int i = 0; i < x->rank; i++) {
    if (x->dims[order[i]] == 1) continue;
    if (order[i] < last) return true;
    last = order[i];
  }
  return false;
}

// How many leading dimensions a Reshape hands on.
static int kept(const assay_tensor_t* x, const assay_tensor_t* y) {
  int k = 0;
  while (k < x->rank && k < y->rank && x->dims[k] == y->dims[k]) k++;
  return k;
}

static assay_status_t offer_transposed(const place_t* p, const assay_tensor_t* x, int from) {
  enum { MAX = 119 };
  int64_t order[ASSAY_MAX_RANK];
  char program[TEXT];
  for (int i = 0; i < x->rank; i++) order[i] = i;
  for (int n = 0; n < MAX && assay_next_permutation(order + from, x->rank - from) && !*p->stop;
       n++) {
    if (!moves(x, order)) continue;
    const size_t x_only = assay_formula_append(program, 0, "x", NULL, 0);
    if (assay_formula_append(program, x_only, "transpose", order, x->rank) < TEXT)
      ASSAY_TRY(offer(p, program, strstr(program, "transpose")));
  }
  return NULL;
}

// ---- a dimension that is split -----------------------------------------------------------------

// One dimension counted as `sizes` in another order: element by element what stands at [.., b, a]
// is to stand at [.., a, b].
static assay_status_t offer_counted(const place_t* p, const assay_tensor_t* x, int axis,
                                    const int64_t* sizes, const int64_t* order, int n) {
  int64_t view[ASSAY_MAX_RANK], perm[ASSAY_MAX_RANK], back[ASSAY_MAX_RANK];
  char program[TEXT], text[TEXT] = "";
  size_t used = 0;
  const int rank = x->rank + n - 1;
  if (rank > ASSAY_MAX_RANK) return NULL;
  for (int i = 0; i < rank; i++) {
    const bool inside = i >= axis && i < axis + n;
    view[i] = i < axis ? x->dims[i] : inside ? sizes[order[i - axis]] : x->dims[i - n + 1];
    perm[i] = i;
  }
  // Each dimension of the result is where it stands in the view.
  for (int i = 0; i < n; i++) perm[axis + order[i]] = axis + i;
  memcpy(back, x->dims, (size_t)x->rank * sizeof *back);
  open_batch(x, view);
  open_batch(x, back);
  used = assay_formula_append(program, used, "x", NULL, 0);
  used = assay_formula_append(program, used, "reshape", view, rank);
  used = assay_formula_append(program, used, "transpose", perm, rank);
  used = assay_formula_append(program, used, "reshape", back, x->rank);
  if (used >= TEXT) return NULL;
  int at = snprintf(text, sizeof text, "with dimension %d counted as ", axis);
  for (int i = 0; i < n; i++)
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%lld", i ? " times " : "",
                   (long long)view[axis + i]);
  return offer(p, program, text);
}

static assay_status_t offer_orders(const place_t* p, const assay_tensor_t* x, int axis,
                                   const int64_t* sizes, int n) {
  int64_t order[FACTORS] = {0, 1, 2, 3};
  while (assay_next_permutation(order, n) && !*p->stop) {
    bool moved = false;
    int64_t last = -1;
    for (int i = 0; i < n; i++) {
      if (sizes[order[i]] == 1) continue;
      moved |= order[i] < last;
      last = order[i];
    }
    if (moved) ASSAY_TRY(offer_counted(p, x, axis, sizes, order, n));
  }
  return NULL;
}

// The dimensions that a Reshape makes of one.
static assay_status_t offer_split(const place_t* p, const assay_tensor_t* x,
                                  const assay_tensor_t* y) {
  int j = 0;
  for (int axis = 0; axis < x->rank && !*p->stop; axis++) {
    int64_t sizes[FACTORS] = {0}, product = 1;
    int n = 0;
    if (j >= y->rank) return NULL;
    const int first = j;
    while (j < y->rank && product < x->dims[axis]) product *= y->dims[j++];
    if (j == first) j++;
    if (product != x->dims[axis]) return NULL;  // dimensions are merged, too
    for (int k = first; k < j; k++) {
      if (y->dims[k] == 1) continue;
      if (n == FACTORS) return NULL;
      sizes[n++] = y->dims[k];
    }
    if (axis > 0 && n > 1) ASSAY_TRY(offer_orders(p, x, axis, sizes, n));
    // Queries, keys and values that are parts of each head.
    for (int64_t parts = 3; parts >= 2 && axis > 0 && n >= 1 && n < FACTORS && !*p->stop; parts--)
      for (int k = 0; k < n; k++) {
        if (sizes[k] % parts || sizes[k] == parts) continue;
        int64_t more[FACTORS];
        memcpy(more, sizes, sizeof more);
        for (int q = n; q > k + 1; q--) more[q] = more[q - 1];
        more[k] = parts, more[k + 1] = sizes[k] / parts;
        ASSAY_TRY(offer_orders(p, x, axis, more, n + 1));
      }
  }
  return NULL;
}

// Parts of equal size that a Split or Slices take from one dimension, and the heads that each is
// split into later.
static assay_status_t offer_parts(const place_t* p, const assay_tensor_t* x, int axis,
                                  int64_t parts) {
  enum { MAX = 64 };
  const int64_t size = x->dims[axis];
  if (parts < 2 || size % parts || size == parts) return NULL;
  for (int64_t heads = 2; heads <= MAX && heads * parts <= size && !*p->stop; heads++) {
    if (size % (heads * parts)) continue;
    const int64_t sizes[] = {parts, heads, size / parts / heads}, order[] = {1, 0, 2};
    ASSAY_TRY(offer_counted(p, x, axis, sizes, order, 3));
    if (heads * parts == size) continue;
    const int64_t pairs[] = {parts, size / parts}, turned[] = {1, 0};
    if (heads == 2) ASSAY_TRY(offer_counted(p, x, axis, pairs, turned, 2));
  }
  return NULL;
}

// Sources: the two orders of DepthToSpace, ONNX 11 (DCR, CRD); heads, A. Vaswani et al., 2017,
// 3.2.2; queries, keys and values head by head, vllm-project/vllm pull request 53114.
assay_status_t assay_propose_order(const assay_suspect_t* s, const char* cause,
                                   const assay_trial_t* t, bool* stop) {
  const assay_tensor_t *x = s->n_in ? s->in[0] : NULL, *y = s->n_out ? s->out[0] : NULL;
  const place_t p = {s, cause, t, stop, 0};
  if (!s->around || !is_tensor(x) || !is_tensor(y) || !s->node->inputs[0]) return NULL;
  if (assay_around_is_constant(s->node->inputs[0])) return NULL;
  if (is_op(s->node, "Reshape") || is_op(s->node, "Flatten")) {
    const int from = kept(x, y);
    // What is split is counted in another order; what is merged was not transposed.
    if (x->rank - from >= 2 && x->rank - from <= 5) ASSAY_TRY(offer_transposed(&p, x, from));
    return *stop ? NULL : offer_split(&p, x, y);
  }
  if (is_op(s->node, "Split")) {
    const int64_t axis = assay_attr_i64(s->node, "axis", 0);
    const int at = (int)(axis < 0 ? axis + x->rank : axis);
    if (at > 0 && at < x->rank) return offer_parts(&p, x, at, (int64_t)s->n_out);
  }
  return NULL;
}
