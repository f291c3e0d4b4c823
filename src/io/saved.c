// Sources: Polygraphy 0.53, polygraphy/json/serde.py and polygraphy/comparator/struct.py;
// TensorRT's trtexec, samples/common/sampleReporting.cpp (exportJSONOutput).
#include "io/saved.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "io/base64.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/npz.h"

void assay_saved_deinit(assay_saved_t* s) {
  for (size_t i = 0; i < s->n; i++) assay_set_deinit(&s->runs[i]);
  assay_free(s->runs);
  *s = (assay_saved_t){0};
}

// A new, empty set at the end.
static assay_status_t add_run(assay_saved_t* s, assay_set_t** out) {
  ASSAY_TRY(assay_grow(&s->runs, &s->cap, s->n + 1, sizeof *s->runs));
  s->runs[s->n] = (assay_set_t){0};
  *out = &s->runs[s->n++];
  return NULL;
}

// ---- Polygraphy -------------------------------------------------------------------------------

static bool is_class(const json_t* j, const char* name) {
  const char* c = json_string_value(json_object_get(j, "polygraphy_class"));
  return c && strcmp(c, name) == 0;
}

static assay_status_t decode_array(const json_t* j, assay_tensor_t** out) {
  const json_t* text = json_object_get(j, "array");
  uint8_t* bytes = NULL;
  size_t n = 0;
  if (is_class(j, "Tensor"))
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "it is kept as a PyTorch tensor (as Polygraphy does with bfloat16 and float8); "
        "save it as float32, or as npz");
  if (!is_class(j, "ndarray") || !json_is_string(text))
    return ASSAY_ERROR(ASSAY_CORRUPT, "it is no array of Polygraphy's");
  ASSAY_TRY(assay_base64_decode(json_string_value(text), json_string_length(text), &bytes, &n));
  return assay_npy_parse(bytes, n, assay_free, bytes, out);
}

// Arrays by name. In results each is wrapped: {"values": <array>, "polygraphy_class": "LazyArray"}.
static assay_status_t read_arrays(json_t* arrays, assay_set_t* out) {
  const char* name;
  json_t* j;
  if (!json_is_object(arrays))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: arrays by name are missing");
  json_object_foreach(arrays, name, j) {
    if (strcmp(name, "polygraphy_class") == 0) continue;
    const json_t* wrapped = json_object_get(j, "values");
    assay_tensor_t* t = NULL;
    assay_status_t st = decode_array(wrapped ? wrapped : j, &t);
    if (!st) st = assay_set_add(out, name, t);
    if (st) return assay_status_note(st, "array '%s'", name);
  }
  return NULL;
}

// {"lst": [[RUNNER, [{"outputs": {...}}, ...]], ...]}
static assay_status_t read_results(json_t* root, assay_saved_t* out) {
  const json_t* runners = json_object_get(root, "lst");
  const json_t* first = json_array_get(runners, 0);
  const json_t* iterations = json_array_get(first, 1);
  if (!json_array_size(iterations))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: it holds no iteration of any runner");
  for (size_t i = 0; i < json_array_size(iterations); i++) {
    assay_set_t* set = NULL;
    ASSAY_TRY(add_run(out, &set));
    assay_status_t st = read_arrays(json_object_get(json_array_get(iterations, i), "outputs"), set);
    if (st) return assay_status_note(st, "iteration %zu", i);
  }
  return NULL;
}

static assay_status_t read_inputs(json_t* list, assay_saved_t* out) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    assay_set_t* set = NULL;
    ASSAY_TRY(add_run(out, &set));
    ASSAY_TRY(read_arrays(json_array_get(list, i), set));
  }
  return NULL;
}

// ---- trtexec ----------------------------------------------------------------------------------

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
      return ASSAY_ERROR(ASSAY_CORRUPT, "its value %zu is no number", i);
    }
  }
  *out = t;
  return NULL;
}

static assay_status_t read_export(const json_t* list, assay_saved_t* out) {
  assay_set_t* set = NULL;
  ASSAY_TRY(add_run(out, &set));
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

// ---- JSON -------------------------------------------------------------------------------------

// The word at p if it is one of those that C++ and Python write for what JSON has no numbers for.
static size_t special(const char* p, const char* end, const char** out) {
  static const struct {
    const char *word, *means;
  } words[] = {{"nan", "\"nan\""},       {"-nan", "\"nan\""}, {"NaN", "\"nan\""},
               {"-inf", "\"-inf\""},     {"inf", "\"inf\""},  {"Infinity", "\"inf\""},
               {"-Infinity", "\"-inf\""}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const size_t n = strlen(words[i].word);
    if ((size_t)(end - p) < n || memcmp(p, words[i].word, n) != 0) continue;
    if (p + n < end && strchr(",] \t\r\n}", p[n]) == NULL) continue;
    *out = words[i].means;
    return n;
  }
  return 0;
}

// JSON proper of a text with bare nan and inf.
static assay_status_t make_proper(const char* p, size_t size, assay_str_t* out) {
  const char *end = p + size, *from = p;
  bool quoted = false;
  while (p < end) {
    const char* means;
    size_t n = 0;
    if (*p == '"') quoted = !quoted;
    if (quoted && *p == '\\' && p + 1 < end)
      p++;
    else if (!quoted && strchr("nNiI-", *p) && *p)
      n = special(p, end, &means);
    if (n) {
      assay_str_append_n(out, from, (size_t)(p - from));
      assay_str_append(out, means);
      from = p + n;
    }
    p += n ? n : 1;
  }
  assay_str_append_n(out, from, (size_t)(end - from));
  return assay_str_status(out);
}

static bool is_old(const json_t* j) {
  const char* key;
  json_t* value;
  json_object_foreach((json_t*)(uintptr_t)j, key, value) {
    if (strncmp(key, "__polygraphy_encoded_", 21) == 0) return true;
  }
  return false;
}

static assay_status_t read_root(json_t* root, assay_saved_t* out) {
  const json_t* first = json_array_get(root, 0);
  if (is_old(root) || is_old(first))
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "it is in the form of an old Polygraphy; save it with a newer one, or as npz");
  if (json_is_object(root) && (is_class(root, "RunResults") || json_object_get(root, "lst")))
    return read_results(root, out);
  if (json_object_get(first, "dimensions")) return read_export(root, out);
  if (json_is_array(root) && json_is_object(first)) return read_inputs(root, out);
  if (json_is_object(root)) {  // one iteration
    assay_set_t* set = NULL;
    ASSAY_TRY(add_run(out, &set));
    return read_arrays(root, set);
  }
  return ASSAY_ERROR(ASSAY_CORRUPT, "it is neither Polygraphy's nor trtexec's JSON");
}

assay_status_t assay_saved_parse_json(const void* data, size_t size, assay_saved_t* out) {
  assay_str_t proper = {0};
  assay_saved_t saved = {0};
  json_t* root = NULL;
  assay_status_t st = make_proper(data ? data : "", size, &proper);
  if (!st) st = assay_json_parse(assay_str_get(&proper), proper.len, &root);
  assay_str_deinit(&proper);
  if (!st) st = read_root(root, &saved);
  json_decref(root);
  if (st) return assay_saved_deinit(&saved), st;
  *out = saved;
  return NULL;
}

// ---- files ------------------------------------------------------------------------------------

static bool is_zip(const uint8_t* data, size_t size) {
  return size >= 4 && data[0] == 'P' && data[1] == 'K' && (data[2] == 3 || data[2] == 5);
}

static assay_status_t read_npz(const char* path, assay_saved_t* out) {
  assay_saved_t saved = {0};
  assay_set_t* set = NULL;
  assay_status_t st = add_run(&saved, &set);
  if (!st) st = assay_npz_read(path, set);
  if (st) return assay_saved_deinit(&saved), st;
  *out = saved;
  return NULL;
}

assay_status_t assay_saved_read(const char* path, assay_saved_t* out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  const uint8_t* data = assay_mapping_data(m);
  const size_t size = assay_mapping_size(m);
  const bool zip = is_zip(data, size);
  assay_status_t st = NULL;
  if (!zip) st = assay_status_note(assay_saved_parse_json(data, size, out), "'%s'", path);
  assay_mapping_release(m);
  return zip ? read_npz(path, out) : st;
}

// ---- runs one behind the other ------------------------------------------------------------------

static assay_status_t join_array(const assay_saved_t* s, const char* name, assay_tensor_t** out) {
  const assay_tensor_t* first = assay_set_find(&s->runs[0], name);
  int64_t dims[ASSAY_MAX_RANK] = {1};
  memcpy(dims, first->dims, (size_t)first->rank * sizeof *dims);
  int64_t rows = 0;
  const int rank = first->rank ? first->rank : 1;
  for (size_t i = 0; i < s->n; i++) {
    const assay_tensor_t* t = assay_set_find(&s->runs[i], name);
    if (!t || t->type != first->type || t->rank != first->rank ||
        (t->rank > 1 && memcmp(t->dims + 1, dims + 1, (size_t)(t->rank - 1) * sizeof *dims) != 0))
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "array '%s' of iteration %zu is missing, or unlike the first's", name, i);
    if (t->type == ASSAY_TYPE_STRING)
      return ASSAY_ERROR(ASSAY_UNSUPPORTED, "array '%s' holds strings", name);
    rows += t->rank ? t->dims[0] : 1;
  }
  dims[0] = rows;
  assay_tensor_t* all = NULL;
  ASSAY_TRY(assay_tensor_create(first->type, rank, dims, &all));
  const size_t elem = assay_store_elem_bytes(all->store);
  assay_status_t st = NULL;
  size_t at = 0;
  for (size_t i = 0; !st && i < s->n; i++) {
    assay_tensor_t* wide = NULL;
    st = assay_tensor_widen(assay_set_find(&s->runs[i], name), &wide);
    if (!st && wide->size) memcpy((char*)all->data + at, wide->data, (size_t)wide->size * elem);
    if (!st) at += (size_t)wide->size * elem;
    assay_tensor_release(wide);
  }
  if (st) return assay_tensor_release(all), st;
  *out = all;
  return NULL;
}

static assay_status_t join(assay_saved_t* s, assay_set_t* out) {
  if (s->n == 1) {
    *out = s->runs[0];
    s->runs[0] = (assay_set_t){0};
    return NULL;
  }
  for (size_t i = 0; s->n && i < s->runs[0].n; i++) {
    assay_tensor_t* t = NULL;
    ASSAY_TRY(join_array(s, s->runs[0].names[i], &t));
    ASSAY_TRY(assay_set_add(out, s->runs[0].names[i], t));
  }
  return NULL;
}

assay_status_t assay_saved_read_joined(const char* path, assay_set_t* out) {
  assay_saved_t saved = {0};
  assay_set_t set = {0};
  ASSAY_TRY(assay_saved_read(path, &saved));
  assay_status_t st = assay_status_note(join(&saved, &set), "'%s'", path);
  assay_saved_deinit(&saved);
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}
