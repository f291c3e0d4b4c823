// Files of tensors, whatever their format: what --inputs and --golden take and --save-outputs
// writes.
#include "data/tensor_files.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/shown.h"
#include "data/tensor_folder.h"
#include "formats/format.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/polygraphy.h"
#include "io/safetensors.h"
#include "io/text.h"
#include "io/torch.h"
#include "io/trtexec.h"
#include "onnx/onnx.h"
#include "onnx/test_data.h"

// A file that is being read: its bytes, or that it is a folder.
typedef struct file {
  const assay_tensor_request_t* request;
  assay_mapping_t* mapping;  // NULL: a folder
  const uint8_t* data;
  size_t size;
} file_t;

// A format. NULL functions: cannot be told or read; is not written.
typedef struct format {
  const char* name;
  const char* ending;  // of names that it is written under
  bool keeps_runs;     // several runs in one file
  bool (*is)(const file_t* f);
  assay_status_t (*read)(const file_t* f, assay_saved_t* out);  // out is empty
  assay_status_t (*write)(const char* path, const assay_saved_t* s, const char* runner,
                          assay_str_t* notes);
} format_t;

static bool ends_with(const char* text, const char* end) {
  const size_t n = strlen(text), k = strlen(end);
  return n >= k && strcmp(text + n - k, end) == 0;
}

// ---- arrays without a name ----------------------------------------------------------------------

// The only value that needs an array. Without a model there is none, and that is fine.
static assay_status_t only_value(const assay_tensor_request_t* r, const assay_value_t** out) {
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
static assay_status_t add_single(const file_t* f, const assay_value_t* v,
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
static assay_status_t single(const assay_saved_t* s, const char* format, assay_tensor_t** out) {
  if (s->n != 1 || s->runs[0].n != 1)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "%s holds one array, and there are %zu; save them as npz or safetensors",
                       format, s->n ? s->runs[0].n : 0);
  *out = s->runs[0].tensors[0];
  return NULL;
}

// ---- npz, npy, torch.save, safetensors ----------------------------------------------------------

static bool is_npz(const file_t* f) {
  return f->size >= 4 && memcmp(f->data, "PK", 2) == 0 && (f->data[2] == 3 || f->data[2] == 5);
}

static assay_status_t read_npz(const file_t* f, assay_saved_t* out) {
  assay_set_t* run = NULL;
  ASSAY_TRY(assay_saved_add_run(out, &run));
  return assay_npz_read(f->request->path, run);
}

static assay_status_t write_npz(const char* path, const assay_saved_t* s, const char* runner,
                                assay_str_t* notes) {
  (void)runner, (void)notes;
  return assay_npz_write(path, &s->runs[0], s->compress);
}

static bool is_npy(const file_t* f) { return f->size >= 6 && memcmp(f->data, "\x93NUMPY", 6) == 0; }

static assay_status_t read_npy(const file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(only_value(f->request, &v));
  ASSAY_TRY(assay_npy_read(f->request->path, &t));
  return add_single(f, v, t, out);
}

static assay_status_t write_npy(const char* path, const assay_saved_t* s, const char* runner,
                                assay_str_t* notes) {
  assay_tensor_t* t = NULL;
  (void)runner, (void)notes;
  ASSAY_TRY(single(s, "npy", &t));
  return assay_npy_write(path, t);
}

// Zip archives, too: they are told before npz.
static bool is_torch(const file_t* f) { return assay_torch_is(f->data, f->size); }

static assay_status_t read_torch(const file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_set_t set = {0}, *run = NULL;
  bool named;
  ASSAY_TRY(assay_torch_read(f->data, f->size, &set, &named));
  assay_status_t st = named ? assay_saved_add_run(out, &run) : only_value(f->request, &v);
  if (!st && named) {
    *run = set;
    return NULL;
  }
  if (!st) st = add_single(f, v, assay_tensor_retain(set.tensors[0]), out);
  assay_set_deinit(&set);
  return st;
}

static bool is_safetensors(const file_t* f) { return assay_safetensors_is(f->data, f->size); }

static assay_status_t read_safetensors(const file_t* f, assay_saved_t* out) {
  assay_set_t* run = NULL;
  ASSAY_TRY(assay_saved_add_run(out, &run));
  return assay_safetensors_read(f->request->path, run, &out->about);
}

static assay_status_t write_safetensors(const char* path, const assay_saved_t* s,
                                        const char* runner, assay_str_t* notes) {
  (void)runner, (void)notes;
  return assay_safetensors_write(path, &s->runs[0], assay_str_get(&s->about));
}

// ---- ONNX ---------------------------------------------------------------------------------------

// Which message it is only the value's type tells, so the name has to say that it is one.
static bool is_message(const file_t* f) { return f->mapping && ends_with(f->request->path, ".pb"); }

static assay_status_t read_message(const file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(only_value(f->request, &v));
  ASSAY_TRY(assay_onnx_read_value(f->request->path, v ? v->declared : NULL, &t));
  return add_single(f, v, t, out);
}

static assay_status_t write_message(const char* path, const assay_saved_t* s, const char* runner,
                                    assay_str_t* notes) {
  assay_tensor_t* t = NULL;
  (void)runner, (void)notes;
  ASSAY_TRY(single(s, "a TensorProto", &t));
  return assay_onnx_write_value(path, t, s->runs[0].names[0]);
}

static const char* stem_of(const assay_tensor_request_t* r) {
  return r->outputs ? "output" : "input";
}

static bool is_test_data(const file_t* f) {
  return !f->mapping && assay_onnx_is_test_data(f->request->path, stem_of(f->request));
}

static assay_status_t read_test_data(const file_t* f, assay_saved_t* out) {
  const assay_tensor_request_t* r = f->request;
  assay_tensor_t** at = NULL;
  assay_set_t* run = NULL;
  if (!r->n_values)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "a folder of test data can be read with its model only");
  ASSAY_TRY(assay_saved_add_run(out, &run));
  ASSAY_TRY(assay_new_array(r->n_values, sizeof *at, &at));
  assay_status_t st = assay_onnx_read_test_data(r->path, stem_of(r), r->values, r->n_values, at);
  for (size_t i = 0; i < r->n_values; i++) {
    if (!st && at[i]) st = assay_set_add(run, r->values[i]->name, assay_tensor_retain(at[i]));
    assay_tensor_release(at[i]);
  }
  assay_free(at);
  return st;
}

static assay_status_t write_test_data(const char* path, const assay_saved_t* s, const char* runner,
                                      assay_str_t* notes) {
  const assay_set_t* run = &s->runs[0];
  (void)notes;
  return assay_onnx_write_test_data(path, runner ? "output" : "input", run->n, run->tensors,
                                    (const char* const*)run->names);
}

// ---- a folder with inputs.npz and outputs.npz --------------------------------------------------

static assay_status_t npz_within(const assay_tensor_request_t* r, assay_str_t* out) {
  assay_str_printf_raw(out, "%s/%ss.npz", r->path, stem_of(r));
  return assay_str_status(out);
}

static bool is_npz_folder(const file_t* f) {
  const char* name = f->request->outputs ? "outputs.npz" : "inputs.npz";
  bool found = false;
  DIR* folder = f->mapping ? NULL : opendir(f->request->path);
  for (const struct dirent* e; !found && folder && (e = readdir(folder));)
    found = strcmp(e->d_name, name) == 0;
  if (folder) closedir(folder);
  return found;
}

static assay_status_t read_npz_folder(const file_t* f, assay_saved_t* out) {
  assay_set_t* run = NULL;
  assay_str_t path = {0};
  assay_status_t st = npz_within(f->request, &path);
  if (!st) st = assay_saved_add_run(out, &run);
  if (!st) st = assay_npz_read(assay_str_get(&path), run);
  assay_str_deinit(&path);
  return st;
}

// ---- JSON ---------------------------------------------------------------------------------------

static bool is_json(const file_t* f) {
  for (size_t i = 0; i < f->size; i++)
    if (!memchr(" \t\r\n", f->data[i], 4)) return f->data[i] == '{' || f->data[i] == '[';
  return false;
}

// The type of the request's value of that name.
static assay_type_t type_of_name(const void* user, const char* name) {
  const assay_tensor_request_t* r = user;
  for (size_t i = 0; i < r->n_values; i++)
    if (strcmp(r->values[i]->name, name) == 0) {
      const assay_valtype_t* t = r->values[i]->type ? r->values[i]->type : r->values[i]->declared;
      return t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED;
    }
  return ASSAY_TYPE_UNDEFINED;
}

static assay_status_t read_json(const file_t* f, assay_saved_t* out) {
  const assay_saved_types_t types = {type_of_name, f->request};
  return assay_saved_parse_json(f->data, f->size, &types, out);
}

static bool is_json_folder(const file_t* f) {
  return !f->mapping && assay_saved_is_folder(f->request->path);
}

static assay_status_t read_json_folder(const file_t* f, assay_saved_t* out) {
  const assay_saved_types_t types = {type_of_name, f->request};
  return assay_saved_read_folder(f->request->path, &types, out);
}

static assay_status_t write_trtexec(const char* path, const assay_saved_t* s, const char* runner,
                                    assay_str_t* notes) {
  (void)runner, (void)notes;
  return assay_trtexec_write(path, &s->runs[0]);
}

// ---- text and raw bytes ------------------------------------------------------------------------

// The type and shape that `n` elements have as a value's array; one open dimension follows from n.
static assay_status_t settle(const assay_value_t* v, int64_t n, int64_t* dims) {
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

static assay_type_t elem_of(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return t ? t->elem : ASSAY_TYPE_UNDEFINED;
}

static bool is_text(const file_t* f) { return f->mapping && assay_text_is(f->data, f->size); }

static assay_status_t read_text(const file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  int64_t dims[ASSAY_MAX_RANK] = {assay_text_count(f->data, f->size)};
  ASSAY_TRY(only_value(f->request, &v));
  if (v) ASSAY_TRY(settle(v, dims[0], dims));
  const int rank = v ? (v->type ? v->type : v->declared)->rank : 1;
  ASSAY_TRY(assay_text_parse(f->data, f->size, v ? elem_of(v) : ASSAY_TYPE_DOUBLE, rank, dims, &t));
  return add_single(f, v, t, out);
}

static assay_status_t write_text(const char* path, const assay_saved_t* s, const char* runner,
                                 assay_str_t* notes) {
  assay_tensor_t* t = NULL;
  (void)runner, (void)notes;
  ASSAY_TRY(single(s, "a text file", &t));
  return assay_text_write(path, t);
}

// Nothing tells raw bytes: whatever is nothing else, for a value that says what it is.
static bool is_raw(const file_t* f) { return f->mapping && f->request->n_values; }

static assay_status_t read_raw(const file_t* f, assay_saved_t* out) {
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  int64_t dims[ASSAY_MAX_RANK];
  ASSAY_TRY(only_value(f->request, &v));
  const int bits = assay_type_bits(elem_of(v));
  if (bits < 8 || f->size % (size_t)(bits / 8))
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "it is in no format that is known (npz, npy, safetensors, .pb, JSON, text), and as "
        "raw bytes its %zu do not make elements of %s",
        f->size, assay_type_name(elem_of(v)));
  ASSAY_TRY(
      assay_status_note(settle(v, (int64_t)(f->size / (size_t)(bits / 8)), dims), "as raw bytes"));
  const int rank = (v->type ? v->type : v->declared)->rank;
  assay_mapping_retain(f->mapping);
  ASSAY_TRY(assay_tensor_wrap_packed(elem_of(v), rank, dims, f->data, (int64_t)f->size,
                                     assay_mapping_release_owner, f->mapping, &t));
  return add_single(f, v, t, out);
}

static assay_status_t write_raw(const char* path, const assay_saved_t* s, const char* runner,
                                assay_str_t* notes) {
  assay_tensor_t *t = NULL, *packed = NULL;
  int64_t bytes = 0;
  (void)runner, (void)notes;
  ASSAY_TRY(single(s, "a raw file", &t));
  if (t->kind != ASSAY_KIND_TENSOR || t->type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "raw files hold tensors of numbers only");
  ASSAY_TRY(assay_tensor_pack(t, &packed));
  assay_status_t st =
      assay_type_packed_bytes(packed->type, packed->size, &bytes) ? NULL : assay_status_no_memory();
  if (!st) st = assay_file_write(path, packed->data, (size_t)bytes);
  assay_tensor_release(packed);
  return st;
}

// ---- images -------------------------------------------------------------------------------------

// The file itself or, in a folder, one of several: those are decoded again when they are needed.
static assay_status_t add_image(const file_t* f, const char* path, assay_saved_t* out) {
  assay_tensor_reading_t* r = f->request->reading;
  const assay_value_t* v;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(only_value(f->request, &v));
  const bool prepared = r && !f->request->outputs;
  const assay_image_request_t* request = prepared ? &r->images : NULL;
  assay_str_t* notes = r ? &r->notes : NULL;
  ASSAY_TRY(f->mapping ? assay_image_tensor(f->data, f->size, path, v, request, notes, &t)
                       : assay_image_tensor_late(path, v, request, notes, &t));
  if (prepared) r->n_images++;
  return add_single(f, v, t, out);
}

static bool is_image(const file_t* f) { return f->mapping && assay_image_is(f->data, f->size); }

static assay_status_t read_image(const file_t* f, assay_saved_t* out) {
  return add_image(f, f->request->path, out);
}

static int not_hidden(const struct dirent* e) { return e->d_name[0] != '.'; }

// The files of a folder by their names; *out_n 0: there is none.
static struct dirent** list_files(const char* path, size_t* out_n) {
  struct dirent** list = NULL;
  const int n = scandir(path, &list, not_hidden, alphasort);
  *out_n = n > 0 ? (size_t)n : 0;
  if (n == 0) free(list);
  return n > 0 ? list : NULL;
}

static void free_list(struct dirent** list, size_t n) {
  for (size_t i = 0; i < n; i++) free(list[i]);
  free(list);
}

static assay_status_t open_within(const char* folder, const char* name, assay_str_t* path,
                                  assay_mapping_t** out) {
  assay_str_printf_raw(path, "%s/%s", folder, name);
  ASSAY_TRY(assay_str_status(path));
  return assay_mapping_open(assay_str_get(path), out);
}

// Whether the first file is an image: then all have to be.
static bool is_image_folder(const file_t* f) {
  size_t n;
  struct dirent** list = f->mapping ? NULL : list_files(f->request->path, &n);
  assay_str_t path = {0};
  assay_mapping_t* m = NULL;
  if (!list) return false;
  assay_status_t st = open_within(f->request->path, list[0]->d_name, &path, &m);
  const bool is = !st && assay_image_is(assay_mapping_data(m), assay_mapping_size(m));
  assay_status_free(st);
  assay_mapping_release(m);
  assay_str_deinit(&path);
  free_list(list, n);
  return is;
}

// A run an image, in the order of their names.
static assay_status_t read_image_folder(const file_t* f, assay_saved_t* out) {
  size_t n = 0;
  struct dirent** list = list_files(f->request->path, &n);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n; i++) {
    assay_str_t path = {0};
    assay_str_printf_raw(&path, "%s/%s", f->request->path, list[i]->d_name);
    st = assay_str_status(&path);
    if (!st) st = add_image(f, assay_str_get(&path), out);
    st = assay_status_note(st, "'%s'", list[i]->d_name);
    assay_str_deinit(&path);
  }
  if (list) free_list(list, n);
  return st;
}

// ---- folders of samples -------------------------------------------------------------------------

static bool is_sample_folder(const file_t* f) {
  return !f->mapping && assay_tensor_folder_is(f->request);
}

static assay_status_t read_sample_folder(const file_t* f, assay_saved_t* out) {
  return assay_tensor_folder_read(f->request, out);
}

// ---- the table ----------------------------------------------------------------------------------

// The first whose `is` holds reads a file; what can be mistaken for something else comes later. The
// first whose ending fits writes one.
static const format_t formats[] = {
    {.name = "tensors of torch.save", .is = is_torch, .read = read_torch},
    {.name = "npz", .ending = ".npz", .is = is_npz, .read = read_npz, .write = write_npz},
    {.name = "npy", .ending = ".npy", .is = is_npy, .read = read_npy, .write = write_npy},
    {.name = "TensorProto",
     .ending = ".pb",
     .is = is_message,
     .read = read_message,
     .write = write_message},
    {.name = "safetensors",
     .ending = ".safetensors",
     .is = is_safetensors,
     .read = read_safetensors,
     .write = write_safetensors},
    {.name = "trtexec's JSON", .ending = ".trtexec.json", .write = write_trtexec},
    {.name = "JSON of Polygraphy or trtexec, or plain arrays",
     .ending = ".json",
     .keeps_runs = true,
     .is = is_json,
     .read = read_json,
     .write = assay_polygraphy_write},
    {.name = "ONNX test data",
     .ending = "/",
     .is = is_test_data,
     .read = read_test_data,
     .write = write_test_data},
    {.name = "folder of npz", .is = is_npz_folder, .read = read_npz_folder},
    {.name = "folder of JSON", .is = is_json_folder, .read = read_json_folder},
    {.name = "image", .is = is_image, .read = read_image},
    {.name = "folder of images", .is = is_image_folder, .read = read_image_folder},
    {.name = "folder of samples", .is = is_sample_folder, .read = read_sample_folder},
    {.name = "text", .ending = ".txt", .is = is_text, .read = read_text, .write = write_text},
    {.name = "raw", .ending = ".raw", .is = is_raw, .read = read_raw, .write = write_raw},
    {.name = "raw", .ending = ".bin", .write = write_raw},
    {.name = "raw", .ending = ".dat", .write = write_raw},
};
enum { N_FORMATS = sizeof formats / sizeof *formats };

// ---- reading ------------------------------------------------------------------------------------

static assay_status_t unknown(const file_t* f) {
  const char* stem = stem_of(f->request);
  if (!f->mapping)
    return ASSAY_ERROR(
        ASSAY_UNSUPPORTED,
        "the folder holds neither %s_0.pb nor %ss.npz, and its files are neither test_data_set_0 "
        "... nor Polygraphy's JSON nor images nor npz, npy or safetensors",
        stem, stem);
  return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "it is in no format that can be read; save it as npz, npy, safetensors, .pt, "
                     "TensorProto (.pb), JSON of Polygraphy or trtexec, text, PNG, JPEG or PPM");
}

static assay_status_t read_file(const file_t* f, assay_saved_t* out) {
  size_t i = 0;
  while (i < N_FORMATS && !(formats[i].is && formats[i].is(f))) i++;
  if (i == N_FORMATS) return unknown(f);
  ASSAY_TRY(formats[i].read(f, out));
  if (out->results && !f->request->outputs)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "it holds the results of a run, not inputs; 'polygraphy data merge' (or 'data "
        "to-input') makes inputs of them");
  return NULL;
}

assay_status_t assay_tensor_file_read(const assay_tensor_request_t* request, assay_saved_t* out) {
  file_t f = {.request = request};
  assay_saved_t saved = {0};
  DIR* folder = opendir(request->path);
  if (folder)
    closedir(folder);
  else
    ASSAY_TRY(assay_mapping_open(request->path, &f.mapping));
  if (f.mapping) {
    f.data = assay_mapping_data(f.mapping);
    f.size = assay_mapping_size(f.mapping);
  }
  assay_status_t st = read_file(&f, &saved);
  assay_mapping_release(f.mapping);
  // Readers that open the file themselves have named it.
  if (st && !strstr(assay_status_message(st), request->path))
    st = assay_status_note(st, "'%s'", request->path);
  if (st) return assay_saved_deinit(&saved), st;
  *out = saved;
  return NULL;
}

// ---- reading all runners ------------------------------------------------------------------------

// Polygraphy's JSON, whoever's results it holds. False: it is something else.
static assay_status_t read_runners(const char* path, bool folder, assay_run_results_t* out,
                                   bool* is) {
  file_t f = {0};
  assay_mapping_t* m = NULL;
  if (folder) {
    *is = assay_saved_is_folder(path);
    return *is ? assay_run_results_read_folder(path, out) : NULL;
  }
  ASSAY_TRY(assay_mapping_open(path, &m));
  f.data = assay_mapping_data(m);
  f.size = assay_mapping_size(m);
  *is = is_json(&f);
  assay_status_t st = *is ? assay_run_results_parse_json(f.data, f.size, out) : NULL;
  assay_mapping_release(m);
  return assay_status_note(st, "'%s'", path);
}

static assay_status_t as_runner(const assay_tensor_request_t* r, const assay_saved_t* saved,
                                assay_run_results_t* out) {
  const char* slash = strrchr(r->path, '/');
  assay_runner_results_t* runner = NULL;
  out->inputs = !r->outputs;
  ASSAY_TRY(assay_run_results_add(out,
                                  !r->outputs         ? ""
                                  : slash && slash[1] ? slash + 1
                                                      : r->path,
                                  &runner));
  for (size_t i = 0; i < saved->n; i++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_runner_results_add(runner, (double)NAN, &run));
    for (size_t k = 0; k < saved->runs[i].n; k++)
      ASSAY_TRY(assay_set_add(run, saved->runs[i].names[k],
                              assay_tensor_retain(saved->runs[i].tensors[k])));
  }
  return NULL;
}

assay_status_t assay_tensor_file_read_all(const assay_tensor_request_t* request,
                                          assay_run_results_t* out) {
  DIR* folder = opendir(request->path);
  assay_run_results_t r = {0};
  assay_saved_t saved = {0};
  bool is = false;
  assay_status_t st = read_runners(request->path, folder != NULL, &r, &is);
  if (folder) closedir(folder);
  // Outputs without a runner's name, as trtexec's JSON has them.
  const bool nameless = !st && is && request->outputs && r.inputs;
  if (!st && (!is || nameless)) {
    if (nameless) assay_run_results_deinit(&r);
    st = assay_tensor_file_read(request, &saved);
    if (!st) st = as_runner(request, &saved, &r);
  }
  assay_saved_deinit(&saved);
  if (st) return assay_run_results_deinit(&r), st;
  *out = r;
  return NULL;
}

// ---- writing ------------------------------------------------------------------------------------

// Names without any ending are npz.
static const format_t* writer_of(const char* path) {
  const char* slash = strrchr(path, '/');
  const char* name = slash ? slash + 1 : path;
  if (*name && !strchr(name, '.')) path = ".npz";
  for (size_t i = 0; i < N_FORMATS; i++)
    if (formats[i].write && ends_with(path, formats[i].ending)) return &formats[i];
  return NULL;
}

assay_status_t assay_tensor_file_check_name(const char* path) {
  assay_str_t endings = {0};
  if (writer_of(path)) return NULL;
  for (size_t i = 0; i < N_FORMATS; i++)
    if (formats[i].write)
      assay_str_printf(&endings, "%s%s", endings.len ? ", " : "", formats[i].ending);
  assay_status_t st = assay_str_status(&endings);
  if (!st)
    st = ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "'%s': the end of a name says the format; it is one of %s (a folder), or there is "
        "none: npz",
        path, assay_str_get(&endings));
  assay_str_deinit(&endings);
  return st;
}

assay_status_t assay_tensor_file_write(const char* path, assay_saved_t* s, const char* runner,
                                       assay_str_t* notes) {
  const format_t* format = writer_of(path);
  ASSAY_TRY(assay_tensor_file_check_name(path));
  if (format->keeps_runs) return format->write(path, s, runner, notes);
  assay_saved_t one = {0};
  assay_set_t* run = NULL;
  one.compress = s->compress;
  one.about = s->about;
  s->about = (assay_str_t){0};
  assay_status_t st = assay_saved_add_run(&one, &run);
  if (!st && s->n) st = assay_saved_join(s, run);
  if (!st) st = format->write(path, &one, runner, notes);
  assay_saved_deinit(&one);
  return assay_status_note(st, "'%s'", path);
}
