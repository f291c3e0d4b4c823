// Finds which elements NaN and infinities reach, and which of the engine's the emulated layer
// shows.
#include "account/special.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/extremes.h"

static bool is_float(const assay_tensor_t* t) {
  if (!t || t->kind != ASSAY_KIND_TENSOR) return false;
  return t->store == ASSAY_STORE_F64 ||
         (t->store == ASSAY_STORE_PACKED && assay_type_is_float(t->type));
}

static bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static bool same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->rank == b->rank && !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// The same number, or both finite, or the same special value.
static bool same_class(double a, double b) {
  if (isfinite(a) || isfinite(b)) return isfinite(a) && isfinite(b);
  return a == b || (isnan(a) && isnan(b));
}

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

bool assay_holds_unfinite(const assay_tensor_t* t) {
  if (t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_LATE) {
    assay_tensor_t* made = NULL;
    assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)t, &made);
    const bool holds = !st && assay_holds_unfinite(made);
    assay_status_free(st);  // whoever runs it meets the same, and can tell
    assay_tensor_release(made);
    return holds;
  }
  if (!is_float(t)) return false;
  if (t->store == ASSAY_STORE_F64) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->size; i++) n += !isfinite(assay_f64(t)[i]);
    return n > 0;
  }
  const assay_extremes_t e = assay_extremes(t->type, t->data, t->size);
  return e.n_nan + e.n_inf > 0;
}

void assay_special_deinit(assay_special_t* s) {
  for (size_t i = 0; s->at && i < s->n_out; i++) assay_free(s->at[i]);
  assay_free(s->at);
  *s = (assay_special_t){0};
}

// ---- whether there is anything to explain -------------------------------------------------------

static bool classes_differ(const assay_tensor_t* a, const assay_tensor_t* b) {
  int64_t n = 0;
  if (!holds_floats(a) || !holds_floats(b) || !same_shape(a, b)) return false;
  for (int64_t i = 0; i < a->size; i++) n += !same_class(assay_f64(a)[i], assay_f64(b)[i]);
  return n > 0;
}

static bool has_to_be_explained(const assay_layer_rerun_t* run, const assay_local_t* local) {
  bool differ = false;
  for (size_t i = 0; !differ && i < local->n_out; i++)
    differ = classes_differ(run->engine[i], local->converted[i]) ||
             classes_differ(run->engine[i], local->truth[i]);
  return differ;
}

// ---- reach --------------------------------------------------------------------------------------

typedef enum instead { BY_ITSELF, BY_NAN, BY_LARGE, BY_SMALL, N_INSTEAD } instead_t;

// The largest finite magnitude among the inputs.
static double largest_of(const assay_layer_rerun_t* run) {
  double largest = 0;
  for (size_t i = 0; i < run->n_in; i++) {
    if (!is_float(run->in[i])) continue;
    const bool packed = run->in[i]->store == ASSAY_STORE_PACKED;
    const assay_extremes_t e = assay_extremes(packed ? run->in[i]->type : ASSAY_TYPE_DOUBLE,
                                              run->in[i]->data, run->in[i]->size);
    largest = fmax(largest, e.largest);
  }
  return largest;
}

// An input with numbers in place of what is not finite: different ones, lest they cancel.
static assay_status_t replace(assay_tensor_t* t, instead_t how, double largest,
                              assay_tensor_t** out) {
  assay_tensor_t* wide = NULL;
  if (how == BY_ITSELF || !assay_holds_unfinite(t)) return *out = assay_tensor_retain(t), NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_copy(wide, out);
  assay_tensor_release(wide);
  if (st) return st;
  const double base = fmin(2 * largest + 1, 0x1p500);
  for (int64_t i = 0; i < (*out)->size; i++) {
    double* x = &assay_f64(*out)[i];
    if (isfinite(*x)) continue;
    const double size = base * (1 + (double)(i % 4093) / 8192);
    *x = how == BY_NAN ? (double)NAN : how == BY_LARGE ? size : -size;
  }
  return NULL;
}

static assay_status_t evaluate(assay_locals_t* l, const assay_layer_rerun_t* run, instead_t how,
                               double largest, assay_local_t* out) {
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array(run->n_in, sizeof *in, &in));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < run->n_in; i++)
    if (run->in[i]) st = replace(run->in[i], how, largest, &in[i]);
  if (!st) st = assay_locals_run(l, run->layer, run->node, run->n_in, in, NULL, NULL, out);
  for (size_t i = 0; i < run->n_in; i++) assay_tensor_release(in[i]);
  assay_free(in);
  return st;
}

static void mark_all(assay_special_t* s, const assay_local_t* local) {
  for (size_t i = 0; i < s->n_out; i++)
    for (int64_t k = 0; s->at[i] && k < local->converted[i]->size; k++)
      s->at[i][k] |= ASSAY_REACHED;
}

// Elements that differ between two evaluations; outputs of another shape differ everywhere.
static void mark_differing(assay_special_t* s, const assay_local_t* a, const assay_local_t* b) {
  for (size_t i = 0; i < s->n_out; i++) {
    const assay_tensor_t *x = a->truth[i], *y = b->truth[i];
    if (!s->at[i] || !holds_floats(x)) continue;
    const bool comparable = holds_floats(y) && same_shape(x, y);
    for (int64_t k = 0; k < x->size; k++)
      if (!comparable || !same_number(assay_f64(x)[k], assay_f64(y)[k]))
        s->at[i][k] |= ASSAY_REACHED;
  }
}

// Where the layer does not run with other numbers (an index made of them, say), all is reached.
static assay_status_t find_reached(assay_locals_t* l, const assay_layer_rerun_t* run,
                                   const assay_local_t* local, assay_special_t* s) {
  const double largest = largest_of(run);
  assay_local_t itself = {0};
  assay_status_t st = evaluate(l, run, BY_ITSELF, largest, &itself);
  for (instead_t how = BY_NAN; !st && how < N_INSTEAD; how++) {
    assay_local_t other = {0};
    st = evaluate(l, run, how, largest, &other);
    if (!st) mark_differing(s, &itself, &other);
    assay_local_deinit(&other);
  }
  assay_local_deinit(&itself);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);
  mark_all(s, local);
  return NULL;
}

// ---- what the emulated layer shows --------------------------------------------------------------

static void mark_shown(assay_special_t* s, const assay_layer_rerun_t* run,
                       assay_tensor_t* const* again) {
  for (size_t i = 0; i < s->n_out; i++) {
    const assay_tensor_t *e = run->engine[i], *a = again[i];
    if (!s->at[i] || !holds_floats(a) || !same_shape(e, a)) continue;
    for (int64_t k = 0; k < e->size; k++)
      if (same_class(assay_f64(e)[k], assay_f64(a)[k])) s->at[i][k] |= ASSAY_SHOWN;
  }
}

static assay_status_t find_shown(assay_locals_t* l, const assay_layer_rerun_t* run,
                                 assay_special_t* s) {
  enum { RERUNS = 4 };
  assay_tensor_t** again = NULL;
  ASSAY_TRY(assay_new_array(s->n_out, sizeof *again, &again));
  assay_status_t st = NULL;
  for (int variant = 0; !st && variant < RERUNS; variant++) {
    st = assay_locals_rerun(l, run->layer, run->node, run->n_in, run->in, variant, s->n_out, again);
    if (!st) mark_shown(s, run, again);
    for (size_t i = 0; i < s->n_out; i++) {
      assay_tensor_release(again[i]);
      again[i] = NULL;
    }
  }
  assay_free(again);
  s->rerun = !st;
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t make(const assay_layer_rerun_t* run, const assay_local_t* local,
                           assay_special_t* s) {
  s->n_out = local->n_out;
  ASSAY_TRY(assay_new_array(s->n_out, sizeof *s->at, &s->at));
  for (size_t i = 0; i < s->n_out; i++) {
    const assay_tensor_t *e = run->engine[i], *t = local->converted[i];
    if (!holds_floats(e) || !holds_floats(t) || !same_shape(e, t)) continue;
    ASSAY_TRY(assay_new_array((size_t)t->size, 1, &s->at[i]));
  }
  return NULL;
}

assay_status_t assay_special_find(assay_locals_t* l, const assay_layer_rerun_t* run,
                                  const assay_local_t* local, const assay_rounding_t* rounding,
                                  bool emulated, assay_special_t* out) {
  bool came_in = false;
  *out = (assay_special_t){0};
  if (!has_to_be_explained(run, local)) return NULL;
  for (size_t i = 0; !came_in && i < run->n_in; i++) came_in = assay_holds_unfinite(run->in[i]);
  assay_status_t st = make(run, local, out);
  if (!st && came_in) st = find_reached(l, run, local, out);
  // A unit that flushes makes other infinities: of 1/x, and NaN of infinity times what it flushed.
  if (!st && emulated && !rounding->flushes) st = find_shown(l, run, out);
  if (st) assay_special_deinit(out);
  return st;
}
