// Constants that look damaged by themselves: rows that are all the same, a tail of zeros, few
// digits, the numbers of another constant.
//
// Sources: files that end early, texts of weights with few digits, tables of which one row was
// copied to all, checkpoints in which one layer was loaded twice (bench/strangers/faults*.py).
#include "diagnose/outputs/odd.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// The oddest first.
typedef enum oddity {
  SAME_ROWS = 0,
  ZERO_TAIL,
  FEW_DIGITS,
  COPY,
  ODDITIES,
} oddity_t;

enum { FEWEST = 12, COPIES_FROM = 4 };

static bool is_same(const double* x, int64_t n) {
  for (int64_t i = 1; i < n; i++)
    if (x[i] != x[0]) return false;
  return true;
}

// A table all of whose rows are the first: what picks or adds them makes no difference.
static bool has_same_rows(const assay_tensor_t* x) {
  const int64_t width = x->rank > 1 ? x->dims[x->rank - 1] : 0;
  const double* data = assay_f64(x);
  if (width < 4 || x->size < 2 * width || is_same(data, width)) return false;
  for (int64_t i = width; i < x->size; i++)
    if (data[i] != data[i - width]) return false;
  return true;
}

// Nothing but zeros from some place on, and hardly any before it.
static bool has_zero_tail(const assay_tensor_t* x) {
  static const double PART = 0.08, BEFORE = 0.05;
  const double* data = assay_f64(x);
  int64_t end = x->size, zeros = 0;
  while (end > 0 && data[end - 1] == 0) end--;
  for (int64_t i = 0; i < end; i++) zeros += data[i] == 0;
  return end > 0 && (double)(x->size - end) > fmax(3, PART * (double)x->size) &&
         (double)zeros <= BEFORE * (double)end;
}

// All are multiples of a tenth or a hundredth, but neither whole numbers nor a few of them.
static bool has_few_digits(const assay_tensor_t* x) {
  static const double NEAR = 1e-3, UNIT = 100;
  enum { DISTINCT = 6 };
  double seen[DISTINCT];
  size_t n = 0;
  bool whole = true;
  for (int64_t i = 0; i < x->size; i++) {
    const double v = assay_f64(x)[i] * UNIT;
    if (!(fabs(v) < 1e6) || fabs(v - round(v)) > NEAR) return false;
    whole &= fabs(v / UNIT - round(v / UNIT)) < NEAR / UNIT;
    bool known = n == DISTINCT;
    for (size_t k = 0; k < n && !known; k++) known = seen[k] == round(v);
    if (!known) seen[n++] = round(v);
  }
  return n == DISTINCT && !whole;
}

static bool is_constant(const assay_value_t* v) {
  return v && (v->constant || (v->producer && strcmp(v->producer->op_type, "Constant") == 0));
}

typedef struct reader {
  const assay_node_t* node;
  const assay_value_t* value;
  assay_tensor_t* wide;  // retained
  bool odd[ODDITIES];
} reader_t;

typedef struct readers {
  reader_t* at;
  size_t n, capacity;
} readers_t;

static void readers_deinit(readers_t* r) {
  for (size_t i = 0; i < r->n; i++) assay_tensor_release(r->at[i].wide);
  assay_free(r->at);
}

// Which nodes a target that differs by more than rounding is made from.
static void mark_makers(const assay_search_t* s, bool* makes) {
  for (size_t k = 0; k < s->n_targets; k++) {
    const assay_search_target_t* t = &s->targets[k];
    const assay_difference_t d = assay_difference(t->truth, t->golden);
    if (d.comparable && !d.mismatched && d.rms <= t->explained_rms && d.max <= t->explained_max)
      continue;
    makes[t->value->id] = true;
  }
  for (size_t i = s->n_nodes; i-- > 0;) {
    const assay_node_t* n = s->nodes[i];
    bool any = false;
    for (size_t k = 0; k < n->n_outputs; k++) any |= n->outputs[k] && makes[n->outputs[k]->id];
    for (size_t k = 0; any && k < n->n_inputs; k++)
      if (n->inputs[k]) makes[n->inputs[k]->id] = true;
  }
}

static assay_status_t add(const assay_search_t* s, const assay_node_t* n, const assay_value_t* v,
                          readers_t* out) {
  assay_tensor_t* x = assay_evaluator_get(s->evaluator, v);
  if (!x || x->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(x->type) || x->size < COPIES_FROM)
    return NULL;
  ASSAY_TRY(assay_grow(&out->at, &out->capacity, out->n + 1, sizeof *out->at));
  reader_t* r = &out->at[out->n];
  *r = (reader_t){.node = n, .value = v};
  ASSAY_TRY(assay_tensor_widen(x, &r->wide));
  out->n++;
  // A recurrent layer may have one bias only, and others are stored with zeros as well.
  const bool recurrent = strcmp(n->op_type, "GRU") == 0 || strcmp(n->op_type, "LSTM") == 0 ||
                         strcmp(n->op_type, "RNN") == 0;
  if (r->wide->size < FEWEST) return NULL;
  r->odd[SAME_ROWS] = has_same_rows(r->wide);
  r->odd[ZERO_TAIL] = !recurrent && has_zero_tail(r->wide);
  r->odd[FEW_DIGITS] = has_few_digits(r->wide);
  return NULL;
}

static assay_status_t list(const assay_search_t* s, const bool* makes, readers_t* out) {
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    bool any = false;
    for (size_t k = 0; k < n->n_outputs; k++) any |= n->outputs[k] && makes[n->outputs[k]->id];
    for (size_t k = 0; any && k < n->n_inputs; k++)
      if (is_constant(n->inputs[k])) ASSAY_TRY(add(s, n, n->inputs[k], out));
  }
  return NULL;
}

// Two values with the same numbers, not all of them the same number.
static void mark_copies(readers_t* r) {
  for (size_t i = 0; i < r->n; i++)
    for (size_t k = i + 1; k < r->n; k++) {
      const assay_tensor_t *x = r->at[i].wide, *y = r->at[k].wide;
      if (r->at[i].value == r->at[k].value || !assay_tensor_same_shape(x, y)) continue;
      if (is_same(assay_f64(x), x->size)) break;
      if (memcmp(assay_f64(x), assay_f64(y), (size_t)x->size * sizeof(double)) != 0) continue;
      r->at[i].odd[COPY] = r->at[k].odd[COPY] = true;
    }
}

static bool has(const assay_odd_t* list, size_t n, const assay_node_t* node) {
  for (size_t i = 0; i < n; i++)
    if (list[i].node == node) return true;
  return false;
}

// Those of one kind, if they are few.
static size_t take(const readers_t* readers, oddity_t kind, assay_odd_t* out) {
  static const char* const texts[ODDITIES] = {"all its rows are the same",
                                              "its last numbers are zeros",
                                              "its numbers have two digits after the point at most",
                                              "it has the numbers of another constant"};
  size_t n = 0;
  for (size_t i = 0; i < readers->n; i++) {
    const reader_t* r = &readers->at[i];
    if (!r->odd[kind] || has(out, n, r->node)) continue;
    if (n == ASSAY_ODD_NODES) return 0;
    out[n++] = (assay_odd_t){r->node, r->value, texts[kind]};
  }
  return n;
}

assay_status_t assay_search_odd(const assay_search_t* s, assay_odd_t* out, size_t* out_n) {
  readers_t readers = {0};
  bool* makes = NULL;
  *out_n = 0;
  ASSAY_TRY(assay_new_array((size_t)s->model->n_values, sizeof *makes, &makes));
  mark_makers(s, makes);
  assay_status_t st = list(s, makes, &readers);
  if (!st) mark_copies(&readers);
  for (int kind = 0; !st && kind < ODDITIES; kind++) {
    assay_odd_t found[ASSAY_ODD_NODES];
    const size_t n = take(&readers, (oddity_t)kind, found);
    for (size_t i = 0; i < n && *out_n < ASSAY_ODD_NODES; i++)
      if (!has(out, *out_n, found[i].node)) out[(*out_n)++] = found[i];
  }
  readers_deinit(&readers);
  assay_free(makes);
  return st;
}
