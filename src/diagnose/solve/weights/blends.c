// Weights that are a sum of known ones: what was read is the weight before something was done to
// it, or beside it.
//
// Each filter less its mean and over its deviation (S. Qiao et al., Weight Standardization, 2019),
// a branch that was to be merged and an identity that went past it (X. Ding et al., RepVGG, 2021),
// an adapter or an average of steps of training beside the weight, a scale of each input that a
// norm before it handed on: the weight is a sum of few known arrays times numbers, of the node or
// of each channel of its output. The node is linear in its weight: it is run with each array, and
// the numbers are least squares of its output. So few numbers are determined by one sample where
// the weight itself is not.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/solve.h"

enum { ARRAYS = 256, TWINS = 12, SPARE = 64 };

typedef struct blend {
  assay_missing_search_t* s;
  assay_solve_t z;
  assay_tensor_t* w;
  assay_tensor_t* nothing;    // the output by weights of 0
  int out_axis, weight_axis;  // of the channels; -1: they are not in the weight as they are
  assay_tensor_t *arrays[ARRAYS], *made[ARRAYS];
  int n;
} blend_t;

// ---- arrays ------------------------------------------------------------------------------------

static void clear(blend_t* b) {
  for (int i = 0; i < b->n; i++) {
    assay_tensor_release(b->arrays[i]);
    assay_tensor_release(b->made[i]);
  }
  b->n = 0;
}

// take: becomes the blend's. The output with the array alone in the place of the weight.
static assay_status_t add(blend_t* b, assay_tensor_t* take) {
  assay_tensor_t *made = NULL, *own = NULL;
  assay_status_t st = assay_solve_evaluate(&b->z, take, &made);
  if (!st && made) st = assay_tensor_copy(made, &own);
  for (int64_t i = 0; own && i < own->size; i++) assay_f64(own)[i] -= assay_f64(b->nothing)[i];
  assay_tensor_release(made);
  if (st || !own) return assay_tensor_release(take), st;
  b->arrays[b->n] = take;
  b->made[b->n++] = own;
  return NULL;
}

static assay_status_t add_weight(blend_t* b) { return add(b, assay_tensor_retain(b->w)); }

// The index along an axis of element i.
static int64_t index_of(const assay_tensor_t* w, int axis, int64_t i) {
  for (int k = w->rank - 1; k > axis; k--) i /= w->dims[k];
  return i % w->dims[axis];
}

// The weight's elements, or ones, at an index along an axis; axis -1: everywhere.
static assay_status_t add_part(blend_t* b, int axis, int64_t index, bool ones) {
  assay_tensor_t* part = NULL;
  ASSAY_TRY(assay_tensor_copy(b->w, &part));
  for (int64_t i = 0; i < part->size; i++) {
    const bool in = axis < 0 || index_of(b->w, axis, i) == index;
    assay_f64(part)[i] = !in ? 0 : ones ? 1 : assay_f64(b->w)[i];
  }
  return add(b, part);
}

// What hands its input on: ones where input and output are the same channel, in the middle of the
// window. turned: the weight with its two channels exchanged instead.
static assay_status_t add_square(blend_t* b, bool turned) {
  const assay_tensor_t* w = b->w;
  int64_t taps = 1;
  assay_tensor_t* y = NULL;
  for (int k = 2; k < w->rank; k++) taps *= w->dims[k];
  if (w->dims[0] != w->dims[1] || (!turned && taps % 2 == 0)) return NULL;
  const int64_t n = w->dims[0];
  ASSAY_TRY(assay_tensor_copy(w, &y));
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t row = i / taps / n, column = i / taps % n, tap = i % taps;
    assay_f64(y)[i] =
        turned ? assay_f64(w)[(column * n + row) * taps + tap] : row == column && tap == taps / 2;
  }
  return add(b, y);
}

// ---- the numbers -------------------------------------------------------------------------------

// Normal equations of the places of one channel, or of all. Returns how many places there are.
static int64_t gather(const blend_t* b, int64_t channel, double* a, double* r) {
  const assay_tensor_t* want = b->z.want;
  const int64_t n = b->n, most = 8 * (n + SPARE);
  int64_t inner = 1, places = 0;
  for (int k = b->out_axis + 1; channel >= 0 && k < want->rank; k++) inner *= want->dims[k];
  const int64_t step = channel < 0 && want->size > most ? want->size / most : 1;
  memset(a, 0, (size_t)(n * n) * sizeof *a);
  memset(r, 0, (size_t)n * sizeof *r);
  for (int64_t at = 0; at < want->size; at += step) {
    if (channel >= 0 && at / inner % want->dims[b->out_axis] != channel) continue;
    const double d = assay_f64(want)[at] - assay_f64(b->nothing)[at];
    places++;
    for (int64_t i = 0; i < n; i++) {
      const double x = assay_f64(b->made[i])[at];
      if (x == 0) continue;
      r[i] += x * d;
      for (int64_t j = 0; j <= i; j++) a[i * n + j] += x * assay_f64(b->made[j])[at];
    }
  }
  return places;
}

static void put(const blend_t* b, int64_t channel, const double* numbers, assay_tensor_t* to) {
  for (int64_t i = 0; i < to->size; i++) {
    if (channel >= 0 && index_of(b->w, b->weight_axis, i) != channel) continue;
    double sum = 0;
    for (int k = 0; k < b->n; k++) sum += numbers[k] * assay_f64(b->arrays[k])[i];
    assay_f64(to)[i] = sum;
  }
}

// *out_solved false: too few places.
static assay_status_t solve(const blend_t* b, bool by_channel, assay_tensor_t* to,
                            bool* out_solved) {
  static const double RIDGE = 1e-13;
  const int64_t n = b->n, channels = by_channel ? b->w->dims[b->weight_axis] : 1;
  double *a = NULL, *r = NULL;
  *out_solved = true;
  ASSAY_TRY(assay_new_array((size_t)(n * n), sizeof *a, &a));
  assay_status_t st = assay_new_array((size_t)n, sizeof *r, &r);
  for (int64_t c = 0; !st && *out_solved && c < channels; c++) {
    const int64_t channel = by_channel ? c : -1;
    double trace = 0;
    *out_solved = gather(b, channel, a, r) >= 2 * n;
    for (int64_t i = 0; i < n; i++) trace += a[i * n + i];
    if (!*out_solved || !isfinite(trace)) break;
    // A channel that no place tells anything of stays as it is.
    if (trace == 0)
      r[0] = 1;
    else
      *out_solved = assay_solve_cholesky(n, 1, RIDGE * trace / (double)n, a, r);
    if (*out_solved) put(b, channel, r, to);
  }
  assay_free(a);
  assay_free(r);
  return st;
}

static assay_status_t offer(blend_t* b, bool by_channel, const char* says) {
  assay_repair_t r = {.node = b->s->node, .cause = "solved constant", .n_edits = 1};
  bool solved = false;
  if (b->n < 1 || assay_missing_is_over(b->s) || (by_channel && b->weight_axis < 0)) return NULL;
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = b->z.input};
  assay_status_t st = assay_tensor_copy(b->w, &r.edits[0].tensor);
  if (!st) st = solve(b, by_channel, r.edits[0].tensor, &solved);
  snprintf(r.text, sizeof r.text, "'%.80s' is %s%s", b->s->node->inputs[b->z.input]->name,
           by_channel ? "in each channel " : "", says);
  if (!st && solved) st = assay_missing_offer(b->s, &r);
  assay_repair_deinit(&r);
  return st;
}

// ---- families ----------------------------------------------------------------------------------

static assay_status_t with_ones(blend_t* b) {
  ASSAY_TRY(add_weight(b));
  ASSAY_TRY(add_part(b, -1, 0, true));
  ASSAY_TRY(offer(b, true, "itself times a number, and another number"));
  if (b->w->rank < 2 || assay_missing_is_over(b->s)) return NULL;
  ASSAY_TRY(add_square(b, false));
  ASSAY_TRY(add_square(b, true));
  return offer(b, false, "a sum of itself, itself transposed, ones and an identity");
}

static assay_status_t with_twins(blend_t* b) {
  char says[100];
  int tried = 0;
  for (size_t i = 0; i < b->s->n_others && tried < TWINS && !assay_missing_is_over(b->s); i++) {
    const assay_missing_other_t* o = &b->s->others[i];
    if (o->varies || o->value == b->s->node->inputs[b->z.input] ||
        !assay_tensor_alike(o->tensor, b->w))
      continue;
    tried++;
    clear(b);
    ASSAY_TRY(add_weight(b));
    ASSAY_TRY(add(b, assay_tensor_retain(o->tensor)));
    snprintf(says, sizeof says, "a sum of itself and '%.60s'", o->value->name);
    ASSAY_TRY(offer(b, false, says));
    ASSAY_TRY(offer(b, true, says));
  }
  return NULL;
}

static assay_status_t along(blend_t* b, int axis) {
  static const int64_t ROOM = 1 << 22;  // elements
  const int64_t n = b->w->dims[axis];
  char says[80];
  for (int ones = 0; ones < 2; ones++) {
    clear(b);
    if (n < 2 || n >= ARRAYS || n * b->z.want->size > ROOM) return NULL;
    if (ones) ASSAY_TRY(add_weight(b));
    for (int64_t i = 0; i < n && !assay_missing_is_over(b->s); i++)
      ASSAY_TRY(add_part(b, axis, i, ones));
    snprintf(says, sizeof says, "itself %s along axis %d", ones ? "plus numbers" : "times numbers",
             axis);
    ASSAY_TRY(offer(b, false, says));
  }
  return NULL;
}

static assay_status_t try_families(blend_t* b) {
  ASSAY_TRY(with_ones(b));
  if (!assay_missing_is_over(b->s)) ASSAY_TRY(with_twins(b));
  for (int k = 0; k < b->w->rank && !assay_missing_is_over(b->s); k++) ASSAY_TRY(along(b, k));
  return NULL;
}

// ---- the node ----------------------------------------------------------------------------------

static int64_t attr_i(const assay_node_t* n, const char* name, int64_t otherwise) {
  return assay_attr_i64(n, name, otherwise);
}

// Where the output's channels are. False: the node is no product with a constant.
static bool read_node(blend_t* b) {
  const assay_node_t* n = b->s->node;
  const int rank = b->z.want->rank;
  const bool left = strcmp(n->op_type, "MatMul") == 0 && n->n_inputs == 2 && n->inputs[0]->constant;
  b->out_axis = 1;
  b->weight_axis = 0;
  b->z.input = left ? 0 : 1;
  if (*n->domain || n->n_inputs < 2 || rank < 2) return false;
  if (strcmp(n->op_type, "ConvTranspose") == 0)
    b->weight_axis = attr_i(n, "group", 1) == 1 ? 1 : -1;
  else if (strcmp(n->op_type, "Gemm") == 0)
    b->weight_axis = attr_i(n, "transB", 0) ? 0 : 1;
  else if (strcmp(n->op_type, "MatMul") == 0)
    b->out_axis = left ? rank - 2 : rank - 1;
  else if (strcmp(n->op_type, "Conv") != 0)
    return false;
  const assay_value_t* v = n->inputs[b->z.input];
  b->w = b->s->in[b->z.input];
  if (!v || !v->constant || !b->w || b->w->store != ASSAY_STORE_F64 || b->w->rank < 2 ||
      b->w->size < 2)
    return false;
  if (strcmp(n->op_type, "MatMul") == 0) b->weight_axis = b->w->rank - (left ? 2 : 1);
  if (b->weight_axis >= 0 && b->w->dims[b->weight_axis] != b->z.want->dims[b->out_axis])
    b->weight_axis = -1;
  return true;
}

assay_status_t assay_missing_blends(assay_missing_search_t* s, const assay_missing_place_t* p) {
  blend_t* b = NULL;
  assay_tensor_t* zeros = NULL;
  if (!p->want || p->source || p->kind != ASSAY_EDIT_AFTER || s->output != 0 || s->collect ||
      !assay_tensor_alike(p->x, p->want) || p->want->store != ASSAY_STORE_F64)
    return NULL;
  ASSAY_TRY(assay_new_array(1, sizeof *b, &b));
  b->s = s;
  b->z = (assay_solve_t){.m = s->m, .node = s->node, .in = s->in, .want = p->want, .have = p->x};
  assay_status_t st = NULL;
  if (read_node(b)) {
    st = assay_tensor_create_zero(b->w->type, b->w->rank, b->w->dims, &zeros);
    if (!st) st = assay_solve_evaluate(&b->z, zeros, &b->nothing);
    if (!st && b->nothing) st = try_families(b);
  }
  clear(b);
  assay_tensor_release(zeros);
  assay_tensor_release(b->nothing);
  assay_free(b);
  return st;
}
