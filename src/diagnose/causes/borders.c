// Borders that go on in another way: as a ring, as a mirror, as the edge, or as nothing; and rings
// along the wrong axis.
//
// Exporters put a border together from pieces (Slice, Concat, Pad), or leave it to the convolution
// behind, which knows zeros only. So what is looked at is not how a border was made but its size:
// from the last value without it to the node that gives the whole. Sources: pytorch/pytorch issues
// 86690 (circular padding becomes zeros) and 37844 (its axes exchanged); Pad of ONNX 19 (wrap).
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

enum { TEXT = ASSAY_FORMULA_TEXT, BACK = 3, AXES = 2 };

typedef enum mode { ZERO, RING, EDGE, MIRROR, MIRROR_WITH_EDGE, MODES } mode_t;

static const char* const names[MODES] = {"nothing", "a ring", "the edge", "a mirror",
                                         "a mirror with the edge"};

static bool is_op(const assay_node_t* n, const char* op) {
  return n && !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_data(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64 && t->size > 0;
}

// A border: of so many elements before and behind along each of the axes that have one.
typedef struct border {
  const assay_value_t* source;  // without it
  const assay_tensor_t* x;
  int axes[AXES], n;
  int64_t before[ASSAY_MAX_RANK], behind[ASSAY_MAX_RANK];
} border_t;

static bool find_axes(border_t* b) {
  b->n = 0;
  for (int k = 0; k < b->x->rank; k++) {
    if (b->before[k] < 0 || b->behind[k] < 0) return false;
    if (!b->before[k] && !b->behind[k]) continue;
    if (b->n == AXES) return false;
    b->axes[b->n++] = k;
  }
  return b->n > 0;
}

// Which element of n stands at place i, which may be beyond; -1: there is none.
static int64_t element_at(mode_t mode, int64_t i, int64_t n) {
  if (mode == RING) return (i % n + n) % n;
  if (mode == EDGE) return i < 0 ? 0 : i < n ? i : n - 1;
  const int64_t turn = mode == MIRROR ? 0 : 1;
  i = i < 0 ? -i - turn : i >= n ? 2 * (n - 1) - i + turn : i;
  return i < n ? i : -1;
}

static assay_status_t indices(const border_t* b, int axis, mode_t mode, assay_tensor_t** out) {
  const int64_t n = b->x->dims[axis], all = b->before[axis] + n + b->behind[axis];
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT64, 1, &all, out));
  for (int64_t i = 0; i < all; i++) {
    const int64_t at = element_at(mode, i - b->before[axis], n);
    if (at < 0) return assay_tensor_release(*out), *out = NULL, NULL;
    assay_i64(*out)[i] = at;
  }
  return NULL;
}

typedef struct made {
  assay_tensor_t* lists[AXES];
  int64_t axes[AXES];
  int n;
} made_t;

static void drop(made_t* m) {
  for (int k = 0; k < m->n; k++) assay_tensor_release(m->lists[k]);
}

// The border by these modes; *out NULL: it cannot be made so.
static assay_status_t formula_of(const border_t* b, const assay_value_t* source,
                                 const mode_t* modes, assay_formula_t** out) {
  static const char* const gathers[AXES] = {"gather", "gather2"};
  int64_t pads[2 * ASSAY_MAX_RANK] = {0};
  char program[TEXT];
  made_t m = {0};
  bool zeros = false;
  assay_status_t st = NULL;
  size_t used = assay_formula_append(program, 0, "x", NULL, 0);
  *out = NULL;
  for (int k = 0; k < b->n && !st; k++) {
    const int axis = b->axes[k];
    if (modes[k] == ZERO) {
      zeros = true;
      pads[axis] = b->before[axis], pads[axis + b->x->rank] = b->behind[axis];
      continue;
    }
    st = indices(b, axis, modes[k], &m.lists[m.n]);
    if (!m.lists[m.n]) return drop(&m), st;
    used = assay_formula_append(program, used, gathers[m.n], NULL, 0);
    m.axes[m.n++] = axis;
  }
  if (zeros && 2 * b->x->rank > ASSAY_MAX_RANK) return drop(&m), st;
  if (zeros) used = assay_formula_append(program, used, "pad", pads, 2 * b->x->rank);
  const assay_formula_terms_t terms = {.program = program,
                                       .source = source,
                                       .c = m.lists[0],
                                       .d = m.lists[1],
                                       .axes = {m.axes[0], m.axes[1]},
                                       .n_axes = m.n};
  if (!st && used < TEXT) st = assay_formula_create(&terms, out);
  drop(&m);
  return st;
}

static void describe(const border_t* b, const mode_t* modes, assay_repair_t* r) {
  size_t used = (size_t)snprintf(r->text, sizeof r->text, "'%.100s' goes on as", b->source->name);
  for (int k = 0; k < b->n; k++)
    used += (size_t)snprintf(r->text + used, sizeof r->text - used, "%s %s along axis %d",
                             k ? " and" : "", names[modes[k]], b->axes[k]);
}

// ---- a node that gives the border --------------------------------------------------------------

static assay_status_t offer_modes(const assay_suspect_t* s, const char* cause, const border_t* b,
                                  const assay_trial_t* t, bool* stop) {
  const int all = b->n == AXES ? MODES * MODES : MODES;
  for (int code = 0; code < all && !*stop; code++) {
    const mode_t modes[AXES] = {(mode_t)(code % MODES), (mode_t)(code / MODES)};
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_AFTER);
    ASSAY_TRY(formula_of(b, b->source, modes, &r.edits[0].formula));
    if (!r.edits[0].formula) continue;
    describe(b, modes, &r);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

// What the node gives is larger than a value before it by as much on both sides.
static assay_status_t offer_from(const assay_suspect_t* s, const char* cause,
                                 const assay_value_t* v, const assay_trial_t* t, bool* stop) {
  const assay_tensor_t* y = s->out[0];
  border_t b = {.source = v, .x = assay_around_tensor(s->around, v)};
  if (!is_data(b.x) || b.x->rank != y->rank || assay_around_is_constant(v)) return NULL;
  for (int k = 0; k < y->rank; k++) {
    b.before[k] = (y->dims[k] - b.x->dims[k]) / 2;
    b.behind[k] = y->dims[k] - b.x->dims[k] - b.before[k];
  }
  return find_axes(&b) ? offer_modes(s, cause, &b, t, stop) : NULL;
}

// The value without a border: the one that all pieces are of, some nodes back.
static const assay_value_t* before(const assay_value_t* v) {
  const assay_node_t* n = v ? v->producer : NULL;
  if (is_op(n, "Pad") || is_op(n, "Slice")) return n->inputs[0];
  if (!is_op(n, "Concat") || n->n_inputs < 2) return NULL;
  return n->inputs[n->n_inputs / 2];
}

static assay_status_t at_pad(const assay_suspect_t* s, const char* cause, const assay_trial_t* t,
                             bool* stop) {
  const assay_tensor_t *pads = s->n_in > 1 ? s->in[1] : NULL, *x = s->in[0];
  border_t b = {.source = s->node->inputs[0], .x = x};
  if (!pads || pads->store != ASSAY_STORE_I64 || pads->size != 2 * x->rank) return NULL;
  for (int k = 0; k < x->rank; k++) {
    b.before[k] = assay_i64(pads)[k];
    b.behind[k] = assay_i64(pads)[k + x->rank];
  }
  return find_axes(&b) ? offer_modes(s, cause, &b, t, stop) : NULL;
}

// ---- a convolution that has its own ------------------------------------------------------------

static assay_status_t at_window(const assay_suspect_t* s, const char* cause, const assay_trial_t* t,
                                bool* stop) {
  const assay_attr_spec_t* a = assay_schema_attr(s->node->schema, "pads");
  const assay_tensor_t* x = s->in[0];
  border_t b = {.source = s->node->inputs[0], .x = x};
  size_t n = 0;
  const int64_t* pads = assay_attr_ints(s->node, "pads", &n);
  if (!a || !pads || x->rank < 3 || n != 2 * (size_t)(x->rank - 2) || n > ASSAY_EDIT_NUMBERS)
    return NULL;
  for (int k = 2; k < x->rank; k++) {
    b.before[k] = pads[k - 2];
    b.behind[k] = pads[k - 2 + x->rank - 2];
  }
  if (!find_axes(&b)) return NULL;
  const int all = b.n == AXES ? MODES * MODES : MODES;
  for (int code = 1; code < all && !*stop; code++) {
    const mode_t modes[AXES] = {(mode_t)(code % MODES), (mode_t)(code / MODES)};
    assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_BEFORE);
    ASSAY_TRY(formula_of(&b, NULL, modes, &r.edits[0].formula));
    if (!r.edits[0].formula) continue;
    r.n_edits = 2;
    r.edits[1].kind = ASSAY_EDIT_ATTR;
    r.edits[1].attr =
        (assay_attr_t){.name = a->name, .type = a->type, .n = n, .doc = "", .ref = ""};
    describe(&b, modes, &r);
    ASSAY_TRY(assay_offer(t, &r, stop));
  }
  return NULL;
}

static bool has_data(const assay_suspect_t* s) {
  return s->around && s->n_in && s->n_out && is_data(s->in[0]) && is_data(s->out[0]) &&
         s->node->inputs[0];
}

assay_status_t assay_propose_borders(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  if (!has_data(s) || assay_around_is_constant(s->node->inputs[0])) return NULL;
  if (is_op(s->node, "Pad")) return at_pad(s, cause, t, stop);
  if (s->node->schema && (is_op(s->node, "Conv") || is_op(s->node, "AveragePool")))
    return at_window(s, cause, t, stop);
  return NULL;
}

// The border of several nodes at once.
assay_status_t assay_propose_border_axes(const assay_suspect_t* s, const char* cause,
                                         const assay_trial_t* t, bool* stop) {
  if (!has_data(s) || (!is_op(s->node, "Pad") && !is_op(s->node, "Concat"))) return NULL;
  const assay_value_t* v = before(s->node->outputs[0]);
  if (is_op(s->node, "Pad")) v = before(v);
  for (int k = 0; k < BACK && v && !*stop; k++, v = before(v))
    ASSAY_TRY(offer_from(s, cause, v, t, stop));
  return NULL;
}
