// The inputs of a run: from files or generated, one or several samples.
#include "data/samples.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/nearest.h"
#include "base/random.h"
#include "base/shell.h"
#include "base/shown.h"
#include "data/array_shape.h"
#include "formats/extremes.h"
#include "formats/format.h"

void assay_samples_deinit(assay_samples_t* s) {
  for (size_t i = 0; s->at && i < s->n * s->n_values; i++) assay_tensor_release(s->at[i]);
  assay_free(s->at);
  assay_str_deinit(&s->notes);
  assay_samples_origin_destroy(s->origin);
  *s = (assay_samples_t){0};
}

static assay_status_t allocate(assay_samples_t* s, size_t n, size_t n_values) {
  size_t total;
  if (__builtin_mul_overflow(n, n_values, &total)) return assay_status_no_memory();
  ASSAY_TRY(assay_new_array(total, sizeof *s->at, &s->at));
  s->n = n;
  s->n_values = n_values;
  return NULL;
}

// ---- cutting arrays -----------------------------------------------------------------------------

// Sample k of an array: a view of its bytes, but of strings and of elements that share bytes.
static assay_status_t slice(assay_tensor_t* t, const assay_array_cut_t* cut, int64_t k,
                            assay_tensor_t** out) {
  if (cut->n == 1 && !cut->extra_dim) return *out = assay_tensor_retain(t), NULL;
  int64_t dims[ASSAY_MAX_RANK];
  int rank = t->rank - cut->extra_dim;
  memcpy(dims, t->dims + cut->extra_dim, (size_t)rank * sizeof *dims);
  if (!cut->extra_dim) dims[0] /= cut->n;
  int64_t size = assay_dims_product(dims, 0, rank);
  assay_status_t st = assay_tensor_part(t, k * size, rank, dims, out);
  if (assay_status_code(st) != ASSAY_UNSUPPORTED) return st;
  assay_status_free(st);
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_tensor_t* part = NULL;
  st = assay_tensor_create(t->type, rank, dims, &part);
  if (st) return assay_tensor_release(wide), st;
  size_t bytes = assay_store_elem_bytes(wide->store);
  const char* from = (const char*)wide->data + (size_t)(k * size) * bytes;
  if (wide->store == ASSAY_STORE_STR) {
    const assay_string_t* s = assay_strings(wide) + k * size;
    for (int64_t i = 0; !st && i < size; i++)
      st = assay_tensor_set_string(part, i, s[i].text, s[i].len);
  } else if (size) {
    memcpy(part->data, from, (size_t)size * bytes);
  }
  assay_tensor_release(wide);
  if (st) return assay_tensor_release(part), st;
  *out = part;
  return NULL;
}

static assay_status_t check_types(assay_type_t from, assay_type_t to, const char* name) {
  const bool floats = assay_type_is_float(from) && assay_type_is_float(to);
  const bool numbers = assay_type_store(from) == ASSAY_STORE_I64 && from != ASSAY_TYPE_STRING;
  return floats || numbers
             ? NULL
             : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "array '%s' holds %s; the model wants %s", name,
                           assay_type_name(from), assay_type_name(to));
}

// Converts between float types, or between integer types where every element fits.
static assay_status_t convert(assay_tensor_t* t, assay_type_t type, const char* name,
                              assay_tensor_t** out) {
  if (t->kind != ASSAY_KIND_TENSOR || t->type == type || !type)
    return *out = assay_tensor_retain(t), NULL;
  bool floats = assay_type_is_float(t->type) && assay_type_is_float(type);
  assay_tensor_t *wide = NULL, *made = NULL;
  ASSAY_TRY(check_types(t->type, type, name));
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_status_t st = assay_tensor_create(type, t->rank, t->dims, &made);
  if (st) return assay_tensor_release(wide), st;
  for (int64_t i = 0; !st && i < t->size; i++) {
    if (floats) {
      assay_f64(made)[i] =
          assay_format_round(assay_type_format(type), assay_f64(wide)[i], ASSAY_OVERFLOW_IEEE);
    } else if (assay_type_is_float(type)) {
      assay_f64(made)[i] = (double)assay_i64(wide)[i];
    } else {
      int64_t x = assay_i64(wide)[i];
      assay_i64(made)[i] = x;
      if (assay_type_wrap(type, x) != x)
        st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "array '%s' holds %lld, which is not a %s", name,
                         (long long)x, assay_type_name(type));
    }
  }
  assay_tensor_release(wide);
  if (st) return assay_tensor_release(made), st;
  *out = made;
  return NULL;
}

// A part of an array that is to be of another type.
typedef struct late {
  assay_tensor_t* part;
  assay_type_t type;
} late_t;

static void late_free(void* owner) {
  late_t* l = owner;
  assay_tensor_release(l->part);
  assay_free(l);
}

static assay_status_t late_make(void* owner, assay_tensor_t** out) {
  const late_t* l = owner;
  return convert(l->part, l->type, "", out);
}

// Lets go of what was read of the array that a sample was cut from.
static void forget(const assay_tensor_t* t) {
  if (!t || t->kind != ASSAY_KIND_TENSOR) return;
  const bool late = t->store == ASSAY_STORE_LATE && t->make == late_make;
  assay_tensor_forget_whole(late ? ((const late_t*)t->owner)->part : t);
}

// Samples are gone over in order, and what is in a file can be read again: of many there are never
// more than some in memory.
assay_tensor_t* const* assay_samples_get(const assay_samples_t* s, size_t sample) {
  enum { SOME = 16 };
  for (size_t i = 0; sample && sample % SOME == 0 && i < s->n_values; i++)
    for (size_t k = sample - SOME; k < sample; k++) forget(s->at[k * s->n_values + i]);
  return s->at + sample * s->n_values;
}

// What becomes floats always can, so it need not before it is used; whole numbers are tried now.
static assay_status_t convert_late(assay_tensor_t* part, assay_type_t type, const char* name,
                                   assay_tensor_t** out) {
  late_t* l = NULL;
  ASSAY_TRY(check_types(part->type, type, name));
  if (!assay_type_is_float(type)) return convert(part, type, name, out);
  ASSAY_TRY(ASSAY_NEW(&l));
  *l = (late_t){assay_tensor_retain(part), type};
  return assay_tensor_create_late(type, part->rank, part->dims, late_make, late_free, l, out);
}

// What a user should know of a conversion. Unsigned integers of 16 bits are rarely numbers.
static void note_converted(assay_str_t* notes, const char* name, assay_type_t from,
                           assay_type_t to) {
  assay_str_printf(notes, "note: array '%s' holds %s and was converted to %s", name,
                   assay_type_name(from), assay_type_name(to));
  if (from == ASSAY_TYPE_UINT16 && assay_type_is_float(to)) {
    assay_str_t word = {0};
    assay_str_printf_raw(&word, "%s:bf16", name);
    notes->failed |= word.failed;
    assay_str_append(notes, " (if it is bits of bf16: --dtype ");
    assay_shell_word(notes, assay_str_get(&word));
    assay_str_append(notes, ")");
    assay_str_deinit(&word);
  }
  assay_str_append(notes, "\n");
}

// Samples are cut first and converted one by one: of many there is never a whole copy. many: this
// is one of several runs.
static assay_status_t one_array(assay_samples_t* s, size_t value, const assay_value_t* v,
                                assay_tensor_t* t, const assay_array_cut_t* cut, bool many) {
  const assay_valtype_t* want = v->type ? v->type : v->declared;
  const bool tensor = want && want->kind == ASSAY_KIND_TENSOR && t->kind == ASSAY_KIND_TENSOR;
  const assay_type_t type = tensor && want->elem ? want->elem : t->type;
  const bool converts = tensor && type != t->type, late = converts && (many || cut->n > 1);
  assay_tensor_t* whole = NULL;
  if (converts && !late)
    ASSAY_TRY(convert(t, type, v->name, &whole));
  else
    whole = assay_tensor_retain(t);
  if (converts) note_converted(&s->notes, v->name, t->type, type);
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < s->n; k++) {
    assay_tensor_t** at = &s->at[k * s->n_values + value];
    assay_tensor_t* part = NULL;
    st = slice(whole, cut, cut->n == 1 ? 0 : (int64_t)k, &part);
    if (!st && late)
      st = convert_late(part, type, v->name, at);
    else if (!st)
      *at = assay_tensor_retain(part);
    assay_tensor_release(part);
  }
  assay_tensor_release(whole);
  return st;
}

static bool has_name(assay_value_t* const* values, size_t n_values, const char* name) {
  for (size_t i = 0; i < n_values; i++)
    if (strcmp(values[i]->name, name) == 0) return true;
  return false;
}

// What lies there under other names may be it: misspelt, or the only one that is nothing else.
static assay_status_t no_array(const assay_set_t* set, const assay_value_t* v,
                               const assay_valtype_t* want, assay_value_t* const* values,
                               size_t n_values) {
  assay_nearest_t near = {.wanted = v->name};
  const char* other = NULL;
  size_t n_others = 0;
  for (size_t k = 0; k < set->n; k++) {
    if (has_name(values, n_values, set->names[k])) continue;
    assay_nearest_offer(&near, set->names[k]);
    other = set->names[k];
    n_others++;
  }
  const char* best = assay_nearest_best(&near);
  if (!best && n_others == 1) best = other;
  if (!best)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no array for input '%s' (%s)", v->name,
                       ASSAY_VALTYPE_TEXT(want));
  return ASSAY_ERROR(ASSAY_NOT_FOUND,
                     "there is no array for input '%s' (%s), but one that is called '%s', as no "
                     "input is: did you mean '%s'? Rename the array",
                     v->name, ASSAY_VALTYPE_TEXT(want), best, v->name);
}

// A name that is near to that of a value without an array is said.
static void note_unused(const assay_set_t* set, assay_value_t* const* values, size_t n_values,
                        const char* name, assay_str_t* notes) {
  assay_nearest_t near = {.wanted = name};
  for (size_t i = 0; i < n_values; i++)
    if (!assay_set_find(set, values[i]->name)) assay_nearest_offer(&near, values[i]->name);
  assay_str_printf(notes, "note: array '%s' is not used%s\n", name, ASSAY_NEAREST_TEXT(&near));
}

static assay_status_t cut_set(const assay_set_t* set, assay_value_t* const* values, size_t n_values,
                              bool required, bool many, assay_samples_t* out) {
  assay_array_cut_t* cuts = NULL;
  int64_t n = 1;
  ASSAY_TRY(assay_new_array(n_values, sizeof *cuts, &cuts));
  assay_status_t st = NULL;
  const char* widest = "";
  for (size_t i = 0; !st && i < n_values; i++) {
    const assay_value_t* v = values[i];
    const assay_valtype_t* want = v->type ? v->type : v->declared;
    assay_tensor_t* t = assay_set_find(set, v->name);
    if (!t) {
      if (required && !v->constant) st = no_array(set, v, want, values, n_values);
      continue;
    }
    if (!assay_find_cut(want, t, &cuts[i]))
      st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "array '%s' has shape %s; the model wants %s",
                       v->name, ASSAY_DIMS_TEXT(t), ASSAY_VALTYPE_TEXT(want));
    else if (cuts[i].n != 1 && n != 1 && cuts[i].n != n)
      st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "array '%s' holds %lld samples, '%s' holds %lld",
                       v->name, (long long)cuts[i].n, widest, (long long)n);
    else if (cuts[i].n != 1) {
      n = cuts[i].n;
      widest = v->name;
    }
  }
  if (!st) st = allocate(out, (size_t)n, n_values);
  for (size_t i = 0; !st && i < n_values; i++) {
    assay_tensor_t* t = assay_set_find(set, values[i]->name);
    if (t) st = one_array(out, i, values[i], t, &cuts[i], many);
  }
  for (size_t k = 0; !st && k < set->n; k++)
    if (!has_name(values, n_values, set->names[k]))
      note_unused(set, values, n_values, set->names[k], &out->notes);
  assay_free(cuts);
  if (!st) st = assay_str_status(&out->notes);
  if (st) assay_samples_deinit(out);
  return st;
}

// Inputs may have been saved without axes of one. Whether golden was, its other arrays tell
// (account/golden).
static assay_status_t from_set(const assay_set_t* set, assay_value_t* const* values,
                               size_t n_values, bool required, bool many, assay_samples_t* out) {
  const assay_value_t** of = NULL;
  assay_set_t whole = {0};
  if (!required) return cut_set(set, values, n_values, required, many, out);
  ASSAY_TRY(assay_new_array(set->n, sizeof *of, &of));
  for (size_t k = 0; k < set->n; k++)
    for (size_t i = 0; i < n_values; i++)
      if (strcmp(values[i]->name, set->names[k]) == 0) of[k] = values[i];
  assay_str_t notes = {0};
  assay_status_t st = assay_put_axes_in(set, of, &notes, &whole);
  assay_free(of);
  if (!st) st = cut_set(&whole, values, n_values, required, many, out);
  assay_set_deinit(&whole);
  if (!st && notes.len) {
    assay_str_append(&out->notes, assay_str_get(&notes));
    st = assay_str_status(&out->notes);
    if (st) assay_samples_deinit(out);
  }
  assay_str_deinit(&notes);
  return st;
}

assay_status_t assay_samples_from_set(const assay_set_t* set, assay_value_t* const* values,
                                      size_t n_values, bool required, assay_samples_t* out) {
  return from_set(set, values, n_values, required, false, out);
}

// Moves the samples of parts, which have been counted, into one.
static assay_status_t concatenate(assay_samples_t* parts, size_t n_parts, size_t n_values,
                                  assay_samples_t* out) {
  assay_samples_t all = {0};
  size_t n = 0;
  for (size_t k = 0; k < n_parts; k++) n += parts[k].n;
  ASSAY_TRY(allocate(&all, n, n_values));
  assay_tensor_t** to = all.at;
  for (size_t k = 0; k < n_parts; k++) {
    const size_t count = parts[k].n * n_values;
    if (count) memcpy(to, parts[k].at, count * sizeof *to);
    to += count;
    parts[k].n = 0;
    assay_free(parts[k].at);
    parts[k].at = NULL;
  }
  all.notes = parts[0].notes;  // the others say the same
  parts[0].notes = (assay_str_t){0};
  *out = all;
  return NULL;
}

assay_status_t assay_samples_from_runs(const assay_saved_t* runs, assay_value_t* const* values,
                                       size_t n_values, bool required, assay_samples_t* out) {
  assay_samples_t* parts = NULL;
  if (runs->n == 1) return assay_samples_from_set(&runs->runs[0], values, n_values, required, out);
  if (!runs->n) return ASSAY_ERROR(ASSAY_NOT_FOUND, "the files hold no runs");
  ASSAY_TRY(assay_new_array(runs->n, sizeof *parts, &parts));
  assay_status_t st = NULL;
  for (size_t k = 0; !st && k < runs->n; k++)
    st = assay_status_note(from_set(&runs->runs[k], values, n_values, required, true, &parts[k]),
                           "iteration %zu", k);
  if (!st) st = concatenate(parts, runs->n, n_values, out);
  for (size_t k = 0; k < runs->n; k++) assay_samples_deinit(&parts[k]);
  assay_free(parts);
  return st;
}

static bool open_batch(const assay_value_t* v, const assay_tensor_t* t) {
  const assay_valtype_t* want = v->type ? v->type : v->declared;
  int64_t fixed;
  return t && t->kind == ASSAY_KIND_TENSOR && t->rank && t->dims[0] > 1 && want &&
         want->has_shape && want->rank == t->rank && !assay_dim_value(want->dims[0], &fixed);
}

assay_status_t assay_samples_cut_batch(const assay_samples_t* batch, assay_value_t* const* values,
                                       assay_samples_t* out, bool* out_cut) {
  int64_t n = 1;
  *out_cut = false;
  if (batch->n != 1) return NULL;
  for (size_t i = 0; i < batch->n_values; i++) {
    if (!open_batch(values[i], batch->at[i])) continue;
    if (n != 1 && batch->at[i]->dims[0] != n) return NULL;
    n = batch->at[i]->dims[0];
  }
  if (n == 1) return NULL;
  assay_samples_t cut_up = {0};
  assay_status_t st = allocate(&cut_up, (size_t)n, batch->n_values);
  for (size_t i = 0; !st && i < batch->n_values; i++) {
    assay_tensor_t* t = batch->at[i];
    assay_array_cut_t cut = {open_batch(values[i], t) ? n : 1, false};
    for (int64_t k = 0; !st && t && k < n; k++)
      st = slice(t, &cut, k, &cut_up.at[(size_t)k * batch->n_values + i]);
  }
  if (st) return assay_samples_deinit(&cut_up), st;
  *out = cut_up;
  *out_cut = true;
  return NULL;
}

// ---- generating ---------------------------------------------------------------------------------

int64_t assay_samples_index_range(const assay_model_t* m, const assay_value_t* v) {
  int64_t range = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* n = m->graph->nodes[i];
    if (strcmp(n->op_type, "Gather") != 0 || n->n_inputs < 2 || n->inputs[1] != v) continue;
    const assay_valtype_t* data = n->inputs[0] ? n->inputs[0]->type : NULL;
    const assay_attr_t* axis = assay_node_attr(n, "axis");
    int64_t a = axis ? axis->u.i : 0, d;
    if (!data || !data->has_shape) continue;
    if (a < 0) a += data->rank;
    if (a >= 0 && a < data->rank && assay_dim_value(data->dims[a], &d) && (!range || d < range))
      range = d;
  }
  return range > 0 ? range : 2;
}

static assay_status_t generate_one(const assay_model_t* m, const assay_value_t* v,
                                   const assay_input_shape_t* shape, uint64_t seed,
                                   assay_tensor_t** out) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  int64_t dims[ASSAY_MAX_RANK] = {0};
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape ||
      (!assay_type_is_float(t->elem) && assay_type_store(t->elem) != ASSAY_STORE_I64))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "cannot make up values for input '%s' (%s); give a file",
                       v->name, ASSAY_VALTYPE_TEXT(t));
  for (int i = 0; i < t->rank; i++)
    if (!assay_dim_value(t->dims[i], &dims[i])) dims[i] = 1;
  if (shape && shape->rank != t->rank)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s' is %s; the shape given has %d dimensions", v->name,
                       ASSAY_VALTYPE_TEXT(t), shape->rank);
  for (int i = 0; shape && i < t->rank; i++)
    if (shape->dims[i] >= 0) dims[i] = shape->dims[i];
  assay_status_t st = assay_tensor_create(t->elem, t->rank, dims, out);
  if (st) return assay_status_note(st, "input '%s'", v->name);
  assay_random_t r = assay_random_make(seed, v->name, 0);
  int64_t range = assay_samples_index_range(m, v);
  for (int64_t i = 0; i < (*out)->size; i++) {
    if (assay_type_is_float(t->elem))
      assay_f64(*out)[i] =
          assay_format_round(assay_type_format(t->elem), assay_random_normal(&r, (uint64_t)i),
                             ASSAY_OVERFLOW_SATURATE);
    else
      assay_i64(*out)[i] = assay_type_wrap(
          t->elem, (int64_t)(assay_random_uniform(&r, (uint64_t)i) * (double)range));
  }
  return NULL;
}

assay_status_t assay_samples_generate(const assay_model_t* model, uint64_t seed,
                                      assay_samples_t* out) {
  return assay_samples_generate_shaped(model, 0, NULL, seed, out);
}

assay_status_t assay_samples_generate_shaped(const assay_model_t* model, size_t n_shapes,
                                             const assay_input_shape_t* shapes, uint64_t seed,
                                             assay_samples_t* out) {
  const assay_graph_t* g = model->graph;
  assay_status_t st = allocate(out, 1, g->n_inputs);
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    const assay_input_shape_t* shape = NULL;
    for (size_t k = 0; k < n_shapes; k++)
      if (strcmp(shapes[k].name, g->inputs[i]->name) == 0) shape = &shapes[k];
    if (!g->inputs[i]->constant) st = generate_one(model, g->inputs[i], shape, seed, &out->at[i]);
  }
  if (st) assay_samples_deinit(out);
  return st;
}

// ---- NaN and infinities -------------------------------------------------------------------------

const char* assay_unfinite_text(int64_t n_nan, int64_t n_inf, char* out, size_t size) {
  const char* infinities = n_inf == 1 ? "infinity" : "infinities";
  if (n_nan && n_inf)
    snprintf(out, size, "%lld NaN and %lld %s", (long long)n_nan, (long long)n_inf, infinities);
  else if (n_nan)
    snprintf(out, size, "%lld NaN", (long long)n_nan);
  else
    snprintf(out, size, "%lld %s", (long long)n_inf, infinities);
  return out;
}

static void count_unfinite(assay_tensor_t* t, int64_t* n_nan, int64_t* n_inf) {
  if (!t) return;
  if (t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_LATE) {
    assay_tensor_t* made = NULL;
    assay_status_t st = assay_tensor_widen(t, &made);
    if (!st) count_unfinite(made, n_nan, n_inf);
    assay_status_free(st);  // the run meets the same, and tells
    assay_tensor_release(made);
    return;
  }
  for (int64_t i = 0; t->kind != ASSAY_KIND_TENSOR && i < t->n_items; i++)
    count_unfinite(t->items[i], n_nan, n_inf);
  if (t->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(t->type)) return;
  if (t->store != ASSAY_STORE_F64 && t->store != ASSAY_STORE_PACKED) return;
  const assay_extremes_t e = assay_extremes(
      t->store == ASSAY_STORE_PACKED ? t->type : ASSAY_TYPE_DOUBLE, t->data, t->size);
  *n_nan += e.n_nan;
  *n_inf += e.n_inf;
}

void assay_samples_describe_unfinite(const assay_samples_t* s, assay_value_t* const* values,
                                     size_t n_values, assay_str_t* out) {
  for (size_t i = 0; i < n_values; i++) {
    int64_t n_nan = 0, n_inf = 0;
    for (size_t k = 0; k < s->n; k++) count_unfinite(assay_samples_get(s, k)[i], &n_nan, &n_inf);
    if (!n_nan && !n_inf) continue;
    char text[96];
    assay_str_printf(out, "%s'%s' holds %s", out->len ? ", " : "", values[i]->name,
                     assay_unfinite_text(n_nan, n_inf, text, sizeof text));
  }
}
