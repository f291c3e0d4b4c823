// What the formats of files of tensors share, and their table.
#include "data/tensor_formats/tensor_format.h"

#include <inttypes.h>
#include <string.h>

#include "base/shown.h"

// ---- arrays without a name ----------------------------------------------------------------------

const char* assay_tensor_file_stem(const assay_tensor_request_t* r) {
  return r->outputs ? "output" : "input";
}

// The only value that needs an array. Without a model there is none, and that is fine.
assay_status_t assay_tensor_file_value(const assay_tensor_request_t* r, const assay_value_t** out) {
  *out = NULL;
  for (size_t i = 0; i < r->n_values; i++) {
    if (r->n_values > 1 && r->values[i]->constant) continue;
    if (*out)
      return ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "it holds one array without a name, and the model has several %s; say NAME=FILE",
          r->outputs ? "outputs: save them as npz or in a folder" : "inputs");
    *out = r->values[i];
  }
  if (r->n_values && !*out)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the model has no %s",
                       r->outputs ? "output" : "input");
  return NULL;
}

// One run of one array, named after the value or (without one) the file.
assay_status_t assay_tensor_file_add(const assay_tensor_file_t* f, const assay_value_t* v,
                                     assay_tensor_t* take_tensor, assay_saved_t* out) {
  assay_set_t* run = NULL;
  assay_str_t name = {0};
  const char* slash = strrchr(f->request->path, '/');
  const char* base = slash ? slash + 1 : f->request->path;
  const char* dot = strrchr(base, '.');
  if (v)
    assay_str_append(&name, v->name);
  else
    assay_str_append_n(&name, base, dot && dot != base ? (size_t)(dot - base) : strlen(base));
  assay_status_t st = assay_str_status(&name);
  if (!st) st = assay_saved_add_run(out, &run);
  if (st)
    assay_tensor_release(take_tensor);
  else
    st = assay_set_add(run, assay_str_get(&name), take_tensor);
  assay_str_deinit(&name);
  return st;
}

// The one array that a file for one array is to hold.
assay_status_t assay_tensor_file_single(const assay_saved_t* s, const char* format,
                                        assay_tensor_t** out) {
  if (s->n != 1 || s->runs[0].n != 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s holds one array, and there are %zu; save them as npz or safetensors",
                       format, s->n ? s->runs[0].n : 0);
  *out = s->runs[0].tensors[0];
  return NULL;
}

// The type and shape that `n` elements have as a value's array; one open dimension follows from n.
assay_status_t assay_tensor_file_settle(const assay_value_t* v, int64_t n, int64_t* dims) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  int64_t known = 1;
  int open = -1;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the model does not say what shape '%s' has; use npz", v->name);
  for (int i = 0; i < t->rank; i++) {
    if (!assay_dim_value(t->dims[i], &dims[i])) {
      if (open >= 0)
        return ASSAY_ERROR(
            ASSAY_INVALID_ARGUMENT,
            "the shape of '%s' is open (%s); say which it is with --shape, or use npz", v->name,
            ASSAY_VALTYPE_TEXT(t));
      open = i;
    } else if (!assay_mul_i64(known, dims[i], &known)) {
      return assay_status_no_memory();
    }
  }
  if (open >= 0) dims[open] = known ? n / known : 0;
  if (open >= 0 ? known && n % known : n != known)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "it holds %" PRId64 " elements; '%s' is %s", n,
                       v->name, ASSAY_VALTYPE_TEXT(t));
  return NULL;
}

assay_type_t assay_tensor_file_elem(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t ? t->elem : ASSAY_TYPE_UNDEFINED;
}

bool assay_tensor_file_is_json(const assay_tensor_file_t* f) {
  for (size_t i = 0; i < f->size; i++)
    if (!memchr(" \t\r\n", f->data[i], 4)) return f->data[i] == '{' || f->data[i] == '[';
  return false;
}

// ---- the table ----------------------------------------------------------------------------------

#define ASSAY_TENSOR_FORMAT(name) extern const assay_tensor_format_t assay_tensor_format_##name;
#include "data/tensor_formats/tensor_formats.inc"
#undef ASSAY_TENSOR_FORMAT

static const assay_tensor_format_t* const formats[] = {
#define ASSAY_TENSOR_FORMAT(name) &assay_tensor_format_##name,
#include "data/tensor_formats/tensor_formats.inc"
#undef ASSAY_TENSOR_FORMAT
};

size_t assay_tensor_format_count(void) { return sizeof formats / sizeof *formats; }

const assay_tensor_format_t* assay_tensor_format_at(size_t i) { return formats[i]; }

const assay_tensor_format_t* assay_tensor_format_of(const assay_tensor_file_t* f) {
  for (size_t i = 0; i < assay_tensor_format_count(); i++)
    if (formats[i]->is && formats[i]->is(f)) return formats[i];
  return NULL;
}
