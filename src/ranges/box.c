// The box of a model's inputs: between which numbers each of them lies.
#include "ranges/box.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

void assay_box_deinit(assay_box_t* b) {
  assay_free(b->inputs);
  *b = (assay_box_t){0};
}

assay_status_t assay_box_copy(const assay_box_t* b, assay_box_t* out) {
  assay_box_t copy = {.n = b->n};
  ASSAY_TRY(assay_new_array(b->n, sizeof *copy.inputs, &copy.inputs));
  if (b->n) memcpy(copy.inputs, b->inputs, b->n * sizeof *b->inputs);
  *out = copy;
  return NULL;
}

// ---- what is given ------------------------------------------------------------------------------

static bool parse_number(const char* text, char stop, const char** out_end, double* out) {
  char* end;
  errno = 0;
  *out = strtod(text, &end);
  *out_end = end;
  return end != text && *end == stop && !isnan(*out);
}

// "LO:HI" or "R".
static bool parse_range(const char* text, double* lo, double* hi) {
  const char* end;
  if (parse_number(text, ':', &end, lo)) return parse_number(end + 1, 0, &end, hi) && *lo <= *hi;
  if (!parse_number(text, 0, &end, hi)) return false;
  *hi = fabs(*hi);
  *lo = -*hi;
  return true;
}

static assay_status_t take_entry(assay_box_t* b, const char* entry) {
  const char* equals = strrchr(entry, '=');
  double lo, hi;
  bool any = false;
  if (!parse_range(equals ? equals + 1 : entry, &lo, &hi))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "box '%s' is not NAME=LO:HI, such as image=0:1",
                       entry);
  for (size_t i = 0; i < b->n; i++) {
    assay_box_input_t* in = &b->inputs[i];
    if (!in->value) continue;
    const size_t n = equals ? (size_t)(equals - entry) : 0;
    const bool named =
        equals && strlen(in->value->name) == n && !strncmp(in->value->name, entry, n);
    if (!named && (equals || !in->is_float)) continue;
    in->lo = lo;
    in->hi = hi;
    in->origin = ASSAY_BOX_GIVEN;
    any = true;
  }
  if (any) return NULL;
  char name[256] = "";
  if (equals) snprintf(name, sizeof name, "%.*s", (int)(equals - entry), entry);
  assay_nearest_t near = {.wanted = name};
  for (size_t i = 0; i < b->n; i++)
    if (b->inputs[i].value) assay_nearest_offer(&near, b->inputs[i].value->name);
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "box '%s': the model has no such input%s", entry,
                     ASSAY_NEAREST_TEXT(&near));
}

// ---- what is assumed ----------------------------------------------------------------------------

static void assume(const assay_model_t* model, assay_box_input_t* in) {
  const assay_valtype_t* t = in->value->type ? in->value->type : in->value->declared;
  in->is_float = t && t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->elem);
  in->lo = in->is_float ? -1 : 0;
  in->hi = in->is_float || (t && t->elem == ASSAY_TYPE_BOOL)
               ? 1
               : (double)(assay_samples_index_range(model, in->value) - 1);
}

static assay_status_t take_samples(const assay_samples_t* s, size_t i, assay_box_input_t* in) {
  double lo = (double)INFINITY, hi = -(double)INFINITY;
  for (size_t k = 0; k < s->n; k++) {
    assay_tensor_t *t = assay_samples_get(s, k)[i], *wide = NULL;
    if (!t || t->kind != ASSAY_KIND_TENSOR) continue;
    ASSAY_TRY(assay_tensor_widen(t, &wide));
    for (int64_t e = 0; e < wide->size; e++) {
      if (wide->store != ASSAY_STORE_F64 && wide->store != ASSAY_STORE_I64) break;
      const double x =
          wide->store == ASSAY_STORE_F64 ? assay_f64(wide)[e] : (double)assay_i64(wide)[e];
      lo = fmin(lo, x);
      hi = fmax(hi, x);
    }
    assay_tensor_release(wide);
  }
  if (lo > hi || !(lo > -(double)INFINITY && hi < (double)INFINITY)) return NULL;
  in->lo = lo;
  in->hi = hi;
  in->origin = ASSAY_BOX_SAMPLES;
  return NULL;
}

assay_status_t assay_box_create(const assay_model_t* model, const char* const* entries, size_t n,
                                const assay_samples_t* samples, assay_box_t* out) {
  const assay_graph_t* g = model->graph;
  assay_box_t b = {.n = g->n_inputs};
  ASSAY_TRY(assay_new_array(b.n, sizeof *b.inputs, &b.inputs));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < b.n; i++) {
    if (g->inputs[i]->constant) continue;
    b.inputs[i].value = g->inputs[i];
    assume(model, &b.inputs[i]);
    if (samples) st = take_samples(samples, i, &b.inputs[i]);
  }
  for (size_t i = 0; !st && i < n; i++) st = take_entry(&b, entries[i]);
  if (st) return assay_box_deinit(&b), st;
  *out = b;
  return NULL;
}

// ---- scaled -------------------------------------------------------------------------------------

void assay_box_scale(const assay_box_t* b, double scale, assay_box_t* into) {
  bool about_zero = true;
  for (size_t i = 0; i < b->n; i++)
    if (b->inputs[i].value && b->inputs[i].is_float)
      about_zero &= b->inputs[i].lo <= 0 && b->inputs[i].hi >= 0;
  for (size_t i = 0; i < b->n; i++) {
    const assay_box_input_t* in = &b->inputs[i];
    if (!in->value || !in->is_float) continue;
    const double middle = about_zero ? 0 : in->lo / 2 + in->hi / 2;
    into->inputs[i].lo = middle + scale * (in->lo - middle);
    into->inputs[i].hi = middle + scale * (in->hi - middle);
  }
}

bool assay_box_is_ball(const assay_box_t* b, double* out_r) {
  bool any = false;
  for (size_t i = 0; i < b->n; i++) {
    const assay_box_input_t* in = &b->inputs[i];
    if (!in->value || !in->is_float) continue;
    if (in->lo != -in->hi || (any && in->hi != *out_r)) return false;
    *out_r = in->hi;
    any = true;
  }
  return any;
}
