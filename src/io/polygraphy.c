// Sources: Polygraphy 0.53, polygraphy/json/serde.py, polygraphy/comparator/struct.py and
// polygraphy/comparator/data_loader.py; 0.26 for the older keys.
#include "io/polygraphy.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "io/base64.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/torch.h"

// ---- classes ----------------------------------------------------------------------------------

static const char old_key[] = "__polygraphy_encoded_";

static bool is_old_key(const char* key) { return strncmp(key, old_key, sizeof old_key - 1) == 0; }

// Whether an object is of a class, as one or the other of the two ways says.
static bool is_class(const json_t* j, const char* name) {
  const char* c = json_string_value(json_object_get(j, "polygraphy_class"));
  char key[64];
  if (c) return strcmp(c, name) == 0;
  const int n = snprintf(key, sizeof key, "%s%s", old_key, name);
  return n > 0 && (size_t)n < sizeof key && json_object_get(j, key);
}

// ---- arrays -----------------------------------------------------------------------------------

// Bytes of Latin-1 text: every character is one. False: one is not.
static bool from_latin(const char* text, size_t n, uint8_t* out, size_t* out_n) {
  const uint8_t* p = (const uint8_t*)text;
  *out_n = 0;
  for (size_t i = 0; i < n; i++) {
    uint8_t byte = p[i];
    if (byte >= 0x80) {  // U+0080 to U+00FF begin with C2 or C3
      if ((byte & 0xfe) != 0xc2 || i + 1 == n) return false;
      byte = (uint8_t)(byte << 6 | (p[++i] & 0x3f));
    }
    out[(*out_n)++] = byte;
  }
  return true;
}

// The first array of an archive.
static assay_status_t first_of(const uint8_t* bytes, size_t n, assay_tensor_t** out) {
  assay_set_t set = {0};
  ASSAY_TRY(assay_npz_parse(bytes, n, &set));
  if (set.n) *out = assay_tensor_retain(set.tensors[0]);
  const bool any = set.n != 0;
  assay_set_deinit(&set);
  return any ? NULL : ASSAY_ERROR(ASSAY_CORRUPT, "its npz archive is empty");
}

// Takes the bytes.
static assay_status_t read_bytes(uint8_t* take_bytes, size_t n, assay_tensor_t** out) {
  if (n < 4 || memcmp(take_bytes, "PK\x03\x04", 4) != 0)
    return assay_npy_parse(take_bytes, n, assay_free, take_bytes, out);
  assay_status_t st = first_of(take_bytes, n, out);
  assay_free(take_bytes);
  return st;
}

static assay_status_t read_ndarray(const json_t* text, assay_tensor_t** out) {
  const char* s = json_string_value(text);
  const size_t len = json_string_length(text);
  uint8_t* bytes = NULL;
  size_t n = 0;
  const bool npy = len > 7 && memcmp(s, "\xc2\x93NUMPY", 7) == 0;
  const bool npz = len > 4 && memcmp(s, "PK\x03\x04", 4) == 0;
  if (!npy && !npz) {
    ASSAY_TRY(assay_base64_decode(s, len, &bytes, &n));
    return read_bytes(bytes, n, out);
  }
  if (!(bytes = assay_malloc(len))) return assay_status_no_memory();
  if (from_latin(s, len, bytes, &n)) return read_bytes(bytes, n, out);
  assay_free(bytes);
  return ASSAY_ERROR(ASSAY_CORRUPT, "its text holds a character that is not a byte");
}

static assay_status_t read_torch(const json_t* text, assay_tensor_t** out) {
  uint8_t* bytes = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_base64_decode(json_string_value(text), json_string_length(text), &bytes, &n));
  assay_status_t st = assay_torch_parse(bytes, n, out);
  assay_free(bytes);
  return st;
}

static assay_status_t read_array(const json_t* j, assay_tensor_t** out) {
  const json_t *array = json_object_get(j, "array"), *tensor = json_object_get(j, "tensor");
  if (is_class(j, "ndarray") && json_is_string(array)) return read_ndarray(array, out);
  if (is_class(j, "Tensor") && json_is_string(tensor)) return read_torch(tensor, out);
  return ASSAY_ERROR(ASSAY_CORRUPT,
                     "not Polygraphy JSON: expected a class 'ndarray' or 'Tensor' with its data");
}

// Arrays by name. In results each is wrapped in an object of class LazyArray, or LazyNumpyArray.
static assay_status_t read_arrays(json_t* arrays, assay_set_t* out) {
  const char* name;
  json_t* j;
  if (!json_is_object(arrays))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: arrays by name are missing");
  json_object_foreach(arrays, name, j) {
    if (strcmp(name, "polygraphy_class") == 0 || is_old_key(name)) continue;
    const json_t* wrapped = json_object_get(j, "values");
    assay_tensor_t* t = NULL;
    assay_status_t st = read_array(wrapped ? wrapped : j, &t);
    if (!st) st = assay_set_add(out, name, t);
    if (st) return assay_status_note(st, "array '%s'", name);
  }
  return NULL;
}

// ---- reading ----------------------------------------------------------------------------------

bool assay_polygraphy_is_results(const json_t* root) {
  return is_class(root, "RunResults") || json_object_get(root, "lst");
}

static assay_status_t read_iteration(const json_t* iteration, size_t i, assay_set_t* out) {
  return assay_status_note(read_arrays(json_object_get(iteration, "outputs"), out), "iteration %zu",
                           i);
}

// {"lst": [[RUNNER, [{"outputs": {...}}, ...]], ...]}: of the first runner
static assay_status_t read_first(const json_t* root, assay_saved_t* out) {
  const json_t* runners = json_object_get(root, "lst");
  const json_t* first = json_array_get(runners, 0);
  const json_t* iterations = json_array_get(first, 1);
  out->results = true;
  if (!json_array_size(iterations))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: it holds no iteration of any runner");
  for (size_t i = 0; i < json_array_size(iterations); i++) {
    assay_set_t* set = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &set));
    ASSAY_TRY(read_iteration(json_array_get(iterations, i), i, set));
  }
  return NULL;
}

static assay_status_t read_runner(const json_t* entry, assay_run_results_t* out) {
  const char* name = json_string_value(json_array_get(entry, 0));
  const json_t* iterations = json_array_get(entry, 1);
  assay_runner_results_t* runner = NULL;
  if (!name || !json_is_array(iterations))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: a runner with its iterations is missing");
  ASSAY_TRY(assay_run_results_add(out, name, &runner));
  for (size_t i = 0; i < json_array_size(iterations); i++) {
    const json_t* iteration = json_array_get(iterations, i);
    double seconds = (double)NAN;
    assay_set_t* set = NULL;
    if (!assay_json_get_number(json_object_get(iteration, "runtime"), &seconds))
      seconds = (double)NAN;
    ASSAY_TRY(assay_runner_results_add(runner, seconds, &set));
    ASSAY_TRY(assay_status_note(read_iteration(iteration, i, set), "runner '%s'", name));
  }
  return NULL;
}

assay_status_t assay_polygraphy_read_results(const json_t* root, assay_run_results_t* out) {
  const json_t* runners = json_object_get(root, "lst");
  const char* class = json_string_value(json_object_get(root, "polygraphy_class"));
  assay_run_results_t r = {0};
  assay_status_t st = NULL;
  if (class && strcmp(class, "RunResults") != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT, "it holds %s, not inputs or outputs", class);
  if (!json_is_array(runners))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: the list of runners is missing");
  for (size_t i = 0; !st && i < json_array_size(runners); i++)
    st = read_runner(json_array_get(runners, i), &r);
  if (st) return assay_run_results_deinit(&r), st;
  *out = r;
  return NULL;
}

static assay_status_t read_inputs(json_t* list, assay_saved_t* out) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    assay_set_t* set = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &set));
    assay_status_t st = read_arrays(json_array_get(list, i), set);
    if (st) return assay_status_note(st, "iteration %zu", i);
  }
  return NULL;
}

bool assay_polygraphy_is(const json_t* root) {
  return json_is_object(root) || json_is_object(json_array_get(root, 0));
}

assay_status_t assay_polygraphy_read(json_t* root, assay_saved_t* out) {
  if (assay_polygraphy_is_results(root)) return read_first(root, out);
  if (json_is_array(root)) return read_inputs(root, out);
  assay_set_t* set = NULL;  // one iteration
  ASSAY_TRY(assay_saved_add_run(out, &set));
  return read_arrays(root, set);
}
