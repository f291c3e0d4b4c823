// Sources: Polygraphy 0.53, polygraphy/json/serde.py, polygraphy/comparator/struct.py and
// polygraphy/comparator/data_loader.py; 0.26 for the older keys.
#include "io/polygraphy.h"

#include <dirent.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
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
  return ASSAY_ERROR(ASSAY_CORRUPT, "its text holds a character that is no byte");
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
  return ASSAY_ERROR(ASSAY_CORRUPT, "it is no array of Polygraphy's");
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

// {"lst": [[RUNNER, [{"outputs": {...}}, ...]], ...]}
static assay_status_t read_results(const json_t* root, assay_saved_t* out) {
  const json_t* runners = json_object_get(root, "lst");
  const json_t* first = json_array_get(runners, 0);
  const json_t* iterations = json_array_get(first, 1);
  out->results = true;
  if (!json_array_size(iterations))
    return ASSAY_ERROR(ASSAY_CORRUPT, "Polygraphy's JSON: it holds no iteration of any runner");
  for (size_t i = 0; i < json_array_size(iterations); i++) {
    assay_set_t* set = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &set));
    assay_status_t st = read_arrays(json_object_get(json_array_get(iterations, i), "outputs"), set);
    if (st) return assay_status_note(st, "iteration %zu", i);
  }
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
  if (is_class(root, "RunResults") || json_object_get(root, "lst")) return read_results(root, out);
  if (json_is_array(root)) return read_inputs(root, out);
  assay_set_t* set = NULL;  // one iteration
  ASSAY_TRY(assay_saved_add_run(out, &set));
  return read_arrays(root, set);
}

// ---- writing ----------------------------------------------------------------------------------

// A file that is being written: text that goes out from time to time.
typedef struct out {
  assay_writer_t* writer;
  assay_str_t text;
  assay_str_t* notes;
} out_t;

// A new line of an object or a list, `depth` levels deep.
static void new_line(out_t* o, int depth) { assay_str_printf(&o->text, "\n%*s", 4 * depth, ""); }

static assay_status_t flush(out_t* o) {
  ASSAY_TRY(assay_str_status(&o->text));
  assay_status_t st = assay_writer_write(o->writer, assay_str_get(&o->text), o->text.len);
  o->text.len = 0;
  return st;
}

static void close_class(out_t* o, int depth, const char* name) {
  assay_str_append(&o->text, ",");
  new_line(o, depth + 1);
  assay_str_printf(&o->text, "\"polygraphy_class\": \"%s\"", name);
  new_line(o, depth);
  assay_str_append(&o->text, "}");
}

// The bytes of an npy file in base64: head and body are one text, so groups of three go across.
static assay_status_t put_base64(out_t* o, const assay_npy_image_t* image) {
  enum { CHUNK = 3 << 14 };
  const uint8_t* body = image->body;
  size_t left = image->body_len;
  // The head has a multiple of 64 bytes: what is left of it after groups of three begins the
  // body's.
  uint8_t seam[3];
  const size_t rest = image->head.len % 3, head = image->head.len - rest;
  assay_base64_encode(image->head.text, head, &o->text);
  if (rest) {
    const size_t more = left < 3 - rest ? left : 3 - rest;
    memcpy(seam, image->head.text + head, rest);
    if (more) memcpy(seam + rest, body, more);
    assay_base64_encode(seam, rest + more, &o->text);
    body += more;
    left -= more;
  }
  while (left) {
    const size_t n = left < CHUNK ? left : CHUNK;
    assay_base64_encode(body, n, &o->text);
    body += n;
    left -= n;
    ASSAY_TRY(flush(o));
  }
  return NULL;
}

static assay_status_t put_array(out_t* o, int depth, assay_tensor_t* t) {
  assay_npy_image_t image;
  ASSAY_TRY(assay_npy_image_make(t, &image));
  assay_str_append(&o->text, "{");
  new_line(o, depth + 1);
  assay_str_append(&o->text, "\"array\": \"");
  assay_status_t st = put_base64(o, &image);
  assay_npy_image_deinit(&image);
  assay_str_append(&o->text, "\"");
  close_class(o, depth, "ndarray");
  return st;
}

// Types that are not there in the file are named once for each array.
static void note_type(const out_t* o, const char* name, const assay_tensor_t* t, bool first) {
  const bool kept = assay_type_store(t->type) != ASSAY_STORE_F64 || t->type == ASSAY_TYPE_FLOAT ||
                    t->type == ASSAY_TYPE_DOUBLE || t->type == ASSAY_TYPE_FLOAT16;
  if (o->notes && first && !kept)
    assay_str_printf(o->notes, "note: array '%s' holds %s and is written as float32\n", name,
                     assay_type_name(t->type));
}

// Arrays by name; those of results are wrapped.
static assay_status_t put_set(out_t* o, int depth, const assay_set_t* set, bool wrap, bool first) {
  assay_str_append(&o->text, "{");
  for (size_t i = 0; i < set->n; i++) {
    if (i) assay_str_append(&o->text, ",");
    new_line(o, depth + 1);
    assay_json_quote(set->names[i], &o->text);
    assay_str_append(&o->text, ": ");
    if (wrap) {
      assay_str_append(&o->text, "{");
      new_line(o, depth + 2);
      assay_str_append(&o->text, "\"values\": ");
    }
    note_type(o, set->names[i], set->tensors[i], first);
    ASSAY_TRY(assay_status_note(put_array(o, depth + 1 + wrap, set->tensors[i]), "array '%s'",
                                set->names[i]));
    if (wrap) close_class(o, depth + 1, "LazyArray");
    ASSAY_TRY(flush(o));
  }
  if (set->n) new_line(o, depth);
  assay_str_append(&o->text, "}");
  return NULL;
}

static assay_status_t put_iteration(out_t* o, const assay_set_t* set, const char* runner,
                                    bool first) {
  enum { DEPTH = 4 };
  assay_str_append(&o->text, "{");
  new_line(o, DEPTH + 1);
  assay_str_append(&o->text, "\"outputs\": ");
  ASSAY_TRY(put_set(o, DEPTH + 1, set, true, first));
  assay_str_append(&o->text, ",");
  new_line(o, DEPTH + 1);
  assay_str_append(&o->text, "\"runtime\": null,");
  new_line(o, DEPTH + 1);
  assay_str_append(&o->text, "\"runner_name\": ");
  assay_json_quote(runner, &o->text);
  close_class(o, DEPTH, "IterationResult");
  return NULL;
}

static assay_status_t put_results(out_t* o, const assay_set_t* runs, size_t n, const char* runner,
                                  bool first) {
  assay_str_append(&o->text, "{");
  new_line(o, 1);
  assay_str_append(&o->text, "\"lst\": [");
  new_line(o, 2);
  assay_str_append(&o->text, "[");
  new_line(o, 3);
  assay_json_quote(runner, &o->text);
  assay_str_append(&o->text, ",");
  new_line(o, 3);
  assay_str_append(&o->text, "[");
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(&o->text, ",");
    new_line(o, 4);
    ASSAY_TRY(put_iteration(o, &runs[i], runner, first && !i));
  }
  new_line(o, 3);
  assay_str_append(&o->text, "]");
  new_line(o, 2);
  assay_str_append(&o->text, "]");
  new_line(o, 1);
  assay_str_append(&o->text, "]");
  close_class(o, 0, "RunResults");
  return NULL;
}

static assay_status_t put_inputs(out_t* o, const assay_set_t* runs, size_t n) {
  assay_str_append(&o->text, "[");
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(&o->text, ",");
    new_line(o, 1);
    ASSAY_TRY(put_set(o, 1, &runs[i], false, !i));
  }
  if (n) new_line(o, 0);
  assay_str_append(&o->text, "]");
  return NULL;
}

// alone: of inputs one object in place of a list, as in the files of a folder.
static assay_status_t write_runs(const char* path, const assay_set_t* runs, size_t n,
                                 const char* runner, bool alone, bool first, assay_str_t* notes) {
  out_t o = {.notes = notes};
  ASSAY_TRY(assay_writer_open(path, &o.writer));
  assay_status_t st = runner  ? put_results(&o, runs, n, runner, first)
                      : alone ? put_set(&o, 0, runs, false, first)
                              : put_inputs(&o, runs, n);
  if (!st) st = flush(&o);
  if (!st && notes) st = assay_str_status(notes);
  assay_str_deinit(&o.text);
  if (st) return assay_writer_abandon(o.writer), st;
  return assay_writer_commit(o.writer);
}

assay_status_t assay_polygraphy_write(const char* path, const assay_saved_t* s, const char* runner,
                                      assay_str_t* notes) {
  return write_runs(path, s->runs, s->n, runner, false, true, notes);
}

static bool is_empty(const char* path) {
  size_t n = 0;
  DIR* folder = opendir(path);
  while (folder && readdir(folder)) n++;
  if (folder) closedir(folder);
  return n <= 2;  // "." and ".."
}

assay_status_t assay_polygraphy_write_folder(const char* path, const assay_saved_t* s,
                                             const char* runner, assay_str_t* notes) {
  ASSAY_TRY(assay_folder_make(path));
  if (!is_empty(path))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "folder '%s' is not empty; name a new one, or a file that ends in .json",
                       path);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < s->n; i++) {
    assay_str_t file = {0};
    assay_str_printf(&file, "%s/%010zu.json", path, i);
    st = assay_str_status(&file);
    if (!st) st = write_runs(assay_str_get(&file), &s->runs[i], 1, runner, true, !i, notes);
    assay_str_deinit(&file);
  }
  return st;
}
