// Source: TensorRT's trtexec, samples/common/sampleReporting.cpp (exportJSONOutput).
#include "io/trtexec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

// ---- reading ----------------------------------------------------------------------------------

// "1x5", "" for a scalar.
static bool parse_dims(const char* text, int* rank, int64_t* dims) {
  *rank = 0;
  for (const char* p = text; *p;) {
    char* end;
    const long long d = strtoll(p, &end, 10);
    if (end == p || d < 0 || *rank == ASSAY_MAX_RANK || (*end && *end != 'x')) return false;
    dims[(*rank)++] = d;
    p = *end ? end + 1 : end;
  }
  return true;
}

static assay_status_t read_values(const json_t* values, int rank, const int64_t* dims,
                                  assay_tensor_t** out) {
  const size_t n = json_array_size(values);
  int64_t size;
  bool whole = true;
  if (!assay_dims_size(rank, dims, &size) || (size_t)size != n)
    return ASSAY_ERROR(ASSAY_CORRUPT, "it has %zu values, which are not its dimensions' number", n);
  for (size_t i = 0; i < n && whole; i++) whole = json_is_integer(json_array_get(values, i));
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create(whole ? ASSAY_TYPE_INT64 : ASSAY_TYPE_DOUBLE, rank, dims, &t));
  for (size_t i = 0; i < n; i++) {
    const json_t* j = json_array_get(values, i);
    double x = 0;
    if (whole) {
      assay_i64(t)[i] = json_integer_value(j);
    } else if (assay_json_get_number(j, &x)) {
      assay_f64(t)[i] = x;
    } else {
      assay_tensor_release(t);
      return ASSAY_ERROR(ASSAY_CORRUPT, "its value %zu is not a number", i);
    }
  }
  *out = t;
  return NULL;
}

bool assay_trtexec_is(const json_t* root) {
  return json_is_string(json_object_get(json_array_get(root, 0), "dimensions"));
}

assay_status_t assay_trtexec_read(const json_t* list, assay_saved_t* out) {
  assay_set_t* set = NULL;
  ASSAY_TRY(assay_saved_add_run(out, &set));
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t* j = json_array_get(list, i);
    const char* name = json_string_value(json_object_get(j, "name"));
    const char* shape = json_string_value(json_object_get(j, "dimensions"));
    const json_t* values = json_object_get(j, "values");
    int64_t dims[ASSAY_MAX_RANK];
    int rank;
    if (!name || !shape || !json_is_array(values) || !parse_dims(shape, &rank, dims))
      return ASSAY_ERROR(ASSAY_CORRUPT,
                         "trtexec's JSON: output %zu lacks name, dimensions or values", i);
    assay_tensor_t* t = NULL;
    assay_status_t st = read_values(values, rank, dims, &t);
    if (!st) st = assay_set_add(set, name, t);
    if (st) return assay_status_note(st, "output '%s'", name);
  }
  return NULL;
}

// ---- writing ----------------------------------------------------------------------------------

static void put_double(double x, int digits, assay_str_t* out) {
  if (isnan(x))
    assay_str_append(out, "NaN");
  else if (isinf(x))
    assay_str_append(out, x > 0 ? "Infinity" : "-Infinity");
  else
    assay_str_printf(out, "%.*g", digits, x);
}

// Element i of a canonical tensor.
static void put_value(const assay_tensor_t* t, int64_t i, assay_str_t* out) {
  if (t->store == ASSAY_STORE_F64)
    put_double(assay_f64(t)[i], t->type == ASSAY_TYPE_DOUBLE ? 17 : 9, out);
  else if (t->type == ASSAY_TYPE_UINT64)
    assay_str_printf(out, "%" PRIu64, (uint64_t)assay_i64(t)[i]);
  else
    assay_str_printf(out, "%" PRId64, assay_i64(t)[i]);
}

static assay_status_t put_output(const char* name, assay_tensor_t* t, assay_str_t* out) {
  assay_tensor_t* wide = NULL;
  const assay_store_t store = assay_type_store(t->type);
  if (t->kind != ASSAY_KIND_TENSOR || (store != ASSAY_STORE_F64 && store != ASSAY_STORE_I64))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "trtexec's JSON holds tensors of real numbers only");
  ASSAY_TRY(assay_tensor_widen(t, &wide));
  assay_str_append(out, "{ \"name\" : ");
  assay_json_quote(name, out);
  assay_str_append(out, "\n  , \"dimensions\" : \"");
  for (int i = 0; i < t->rank; i++) assay_str_printf(out, i ? "x%" PRId64 : "%" PRId64, t->dims[i]);
  assay_str_append(out, "\"\n  , \"values\" : [ ");
  for (int64_t i = 0; i < t->size; i++) {
    if (i) assay_str_append(out, ", ");
    put_value(wide, i, out);
  }
  assay_str_append(out, " ]\n  }\n");
  assay_tensor_release(wide);
  return assay_str_status(out);
}

assay_status_t assay_trtexec_write(const char* path, const assay_set_t* set) {
  assay_writer_t* w = NULL;
  assay_str_t text = {0};
  ASSAY_TRY(assay_writer_open(path, &w));
  assay_status_t st = assay_writer_write(w, "[\n", 2);
  for (size_t i = 0; !st && i < set->n; i++) {
    text.len = 0;
    assay_str_append(&text, i ? ", " : "  ");
    st = assay_status_note(put_output(set->names[i], set->tensors[i], &text), "output '%s'",
                           set->names[i]);
    if (!st) st = assay_writer_write(w, text.text, text.len);
  }
  if (!st) st = assay_writer_write(w, "]\n", 2);
  assay_str_deinit(&text);
  if (st) return assay_writer_abandon(w), st;
  return assay_writer_commit(w);
}
