// Nested lists become tensors: the shape is that of the first elements, and all have to have it.
#include "io/json_arrays.h"

#include <math.h>
#include <string.h>

#include "formats/format.h"
#include "io/polygraphy.h"
#include "io/trtexec.h"

// An array that is being read, and where in it.
typedef struct reader {
  const char* name;
  assay_type_t type;
  int rank;
  int64_t dims[ASSAY_MAX_RANK], at[ASSAY_MAX_RANK];
  assay_tensor_t* tensor;
  int64_t n;  // elements so far
} reader_t;

// ---- telling it apart ---------------------------------------------------------------------------

static bool is_scalar(const json_t* j) {
  return json_is_number(j) || json_is_string(j) || json_is_boolean(j);
}

// The first element of the innermost first list, which other tools have objects in.
static bool is_array(const json_t* j) {
  while (json_is_array(j) && json_array_size(j)) j = json_array_get(j, 0);
  return json_is_array(j) || is_scalar(j);
}

static bool is_sample(const json_t* j) {
  const char* key;
  json_t* value;
  if (!json_is_object(j) || !json_object_size(j)) return false;
  json_object_foreach((json_t*)(uintptr_t)j, key, value) {
    if (strncmp(key, "polygraphy_", 11) == 0 || strncmp(key, "__polygraphy_", 13) == 0)
      return false;
    if (!is_array(value)) return false;
  }
  return true;
}

bool assay_json_arrays_is(const json_t* root) {
  if (assay_trtexec_is(root) || assay_polygraphy_is_results(root)) return false;
  return is_sample(json_is_array(root) ? json_array_get(root, 0) : root);
}

// ---- elements -----------------------------------------------------------------------------------

// "x[2][0]".
static void put_place(const reader_t* r, int depth, assay_str_t* out) {
  assay_str_printf(out, "%s", r->name);
  for (int i = 0; i < depth; i++) assay_str_printf(out, "[%lld]", (long long)r->at[i]);
}

static assay_status_t fault(const reader_t* r, int depth, const char* what) {
  assay_str_t place = {0};
  put_place(r, depth, &place);
  assay_status_t st = assay_str_status(&place);
  if (!st) st = ASSAY_ERROR(ASSAY_CORRUPT, "%s %s", assay_str_get(&place), what);
  assay_str_deinit(&place);
  return st;
}

static bool get_number(const json_t* j, double* out) {
  static const struct {
    const char* word;
    double x;
  } words[] = {{"NaN", (double)NAN},
               {"Infinity", (double)INFINITY},
               {"+Infinity", (double)INFINITY},
               {"-Infinity", -(double)INFINITY}};
  if (assay_json_get_number(j, out)) return true;
  for (size_t i = 0; json_is_string(j) && i < sizeof words / sizeof *words; i++)
    if (strcmp(json_string_value(j), words[i].word) == 0) return *out = words[i].x, true;
  return false;
}

// An integer of the type; floats that are whole count.
static bool get_integer(const json_t* j, assay_type_t type, int64_t* out) {
  if (json_is_boolean(j) && type == ASSAY_TYPE_BOOL) return *out = json_is_true(j), true;
  if (json_is_integer(j)) {
    *out = json_integer_value(j);
  } else {
    const double x = json_is_real(j) ? json_real_value(j) : (double)NAN;
    if (!(fabs(x) < 0x1p63) || x != trunc(x)) return false;
    *out = (int64_t)x;
  }
  if (type == ASSAY_TYPE_UINT64) return *out >= 0;
  return assay_type_wrap(type, *out) == *out;
}

static assay_status_t put_element(reader_t* r, const json_t* j) {
  const int64_t i = r->n++;
  char what[96];
  double x;
  snprintf(what, sizeof what, "is not of type %s", assay_type_name(r->type));
  switch (r->tensor->store) {
    case ASSAY_STORE_F64:
      if (!get_number(j, &x)) return fault(r, r->rank, what);
      assay_f64(r->tensor)[i] =
          assay_format_round(assay_type_format(r->type), x, ASSAY_OVERFLOW_IEEE);
      return NULL;
    case ASSAY_STORE_I64:
      return get_integer(j, r->type, &assay_i64(r->tensor)[i]) ? NULL : fault(r, r->rank, what);
    case ASSAY_STORE_STR:
      if (!json_is_string(j)) return fault(r, r->rank, what);
      return assay_tensor_set_string(r->tensor, i, json_string_value(j), json_string_length(j));
    default:
      return fault(r, 0, "is of a type that plain JSON has no numbers for; use npz");
  }
}

// ---- shapes -------------------------------------------------------------------------------------

static assay_status_t find_shape(reader_t* r, const json_t* j) {
  for (r->rank = 0; json_is_array(j); j = json_array_get(j, 0)) {
    if (r->rank == ASSAY_MAX_RANK) return fault(r, 0, "has more dimensions than tensors have");
    r->dims[r->rank++] = (int64_t)json_array_size(j);
  }
  return NULL;
}

static assay_status_t ragged(const reader_t* r, int depth, const json_t* j) {
  char what[128];
  if (depth == r->rank)
    snprintf(what, sizeof what, "is a list, where the elements before it are none");
  else if (!json_is_array(j))
    snprintf(what, sizeof what, "is not a list, as those before it are, of %lld",
             (long long)r->dims[depth]);
  else
    snprintf(what, sizeof what, "has %zu elements, those before it have %lld", json_array_size(j),
             (long long)r->dims[depth]);
  return fault(r, depth, what);
}

// Puts all elements below a list into the tensor.
static assay_status_t walk(reader_t* r, int depth, const json_t* j) {
  if (depth == r->rank) {
    if (json_is_array(j)) return ragged(r, depth, j);
    return put_element(r, j);
  }
  if (!json_is_array(j) || (int64_t)json_array_size(j) != r->dims[depth])
    return ragged(r, depth, j);
  for (int64_t i = 0; i < r->dims[depth]; i++) {
    r->at[depth] = i;
    ASSAY_TRY(walk(r, depth + 1, json_array_get(j, (size_t)i)));
  }
  return NULL;
}

// ---- types --------------------------------------------------------------------------------------

typedef struct kinds {
  bool strings, words, bools, whole, real;
} kinds_t;

static void inspect(const json_t* j, kinds_t* k) {
  double x;
  for (size_t i = 0; i < json_array_size(j); i++) inspect(json_array_get(j, i), k);
  if (json_is_array(j)) return;
  k->bools |= json_is_boolean(j);
  k->whole |= json_is_integer(j);
  k->real |= json_is_real(j);
  if (json_is_string(j)) *(get_number(j, &x) ? &k->words : &k->strings) = true;
}

static assay_type_t type_of(const json_t* j) {
  kinds_t k = {0};
  inspect(j, &k);
  if (k.strings) return ASSAY_TYPE_STRING;
  if (k.bools) return ASSAY_TYPE_BOOL;
  return k.whole && !k.real && !k.words ? ASSAY_TYPE_INT64 : ASSAY_TYPE_DOUBLE;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t read_array(const char* name, const json_t* j,
                                 const assay_saved_types_t* types, assay_set_t* out) {
  reader_t r = {.name = name};
  if (types) r.type = types->of(types->user, name);
  ASSAY_TRY(find_shape(&r, j));
  if (r.type == ASSAY_TYPE_UNDEFINED) r.type = type_of(j);
  ASSAY_TRY(assay_tensor_create(r.type, r.rank, r.dims, &r.tensor));
  assay_status_t st = walk(&r, 0, j);
  if (st) return assay_tensor_release(r.tensor), st;
  return assay_set_add(out, name, r.tensor);
}

static assay_status_t read_sample(const json_t* j, const assay_saved_types_t* types,
                                  assay_saved_t* out) {
  const char* key;
  json_t* value;
  assay_set_t* run = NULL;
  if (!json_is_object(j))
    return ASSAY_ERROR(ASSAY_CORRUPT, "it is not an object of arrays, as the first one is");
  ASSAY_TRY(assay_saved_add_run(out, &run));
  json_object_foreach((json_t*)(uintptr_t)j, key, value) {
    ASSAY_TRY(read_array(key, value, types, run));
  }
  return NULL;
}

assay_status_t assay_json_arrays_read(const json_t* root, const assay_saved_types_t* types,
                                      assay_saved_t* out) {
  if (!json_is_array(root)) return read_sample(root, types, out);
  for (size_t i = 0; i < json_array_size(root); i++)
    ASSAY_TRY(assay_status_note(read_sample(json_array_get(root, i), types, out), "sample %zu", i));
  return NULL;
}
