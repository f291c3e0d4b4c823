// What the inputs of a run are: files, or random numbers.
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/random.h"
#include "formats/format.h"
#include "frontends/trtexec/bindings.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "frontends/trtexec/text.h"
#include "io/npy.h"
#include "io/npz.h"

void trt_inputs_deinit(trt_inputs_t* in) {
  for (size_t i = 0; i < in->n; i++) assay_tensor_release(in->tensors[i]);
  assay_free(in->tensors);
  *in = (trt_inputs_t){0};
}

// ---- random -------------------------------------------------------------------------------------

static bool draws_integers(assay_type_t type) {
  return type == ASSAY_TYPE_INT8 || type == ASSAY_TYPE_UINT8 || type == ASSAY_TYPE_INT32 ||
         type == ASSAY_TYPE_INT64;
}

// Uniform in [-128, 127], or in [0, 255].
static assay_status_t random_integers(const assay_io_t* io, int rank, const int64_t* dims,
                                      uint64_t seed, assay_tensor_t** out) {
  const assay_random_t r = assay_random_make(seed, assay_io_name(io), 0);
  const int64_t min = assay_io_elem(io) == ASSAY_TYPE_UINT8 ? 0 : -128;
  ASSAY_TRY(assay_tensor_create(assay_io_elem(io), rank, dims, out));
  for (int64_t i = 0; i < (*out)->size; i++)
    assay_i64(*out)[i] = min + (int64_t)(256 * assay_random_uniform(&r, (uint64_t)i));
  return NULL;
}

// Floats uniform in [-1, 1]; integers as trtexec draws them, or as far as what they index goes.
static assay_status_t random_tensor(const trt_job_t* j, const assay_io_t* io, int rank,
                                    const int64_t* dims, assay_tensor_t** out) {
  const assay_model_t* m = assay_plan_layers(assay_engine_plan(j->engine))->model;
  const uint64_t seed = (uint64_t)j->native.seed;
  const assay_input_shape_t shape = {assay_io_name(io), rank, dims};
  assay_tensor_t *wide = NULL, *drawn = NULL;
  assay_samples_t samples = {0};
  bool numbers = false;
  if (draws_integers(assay_io_elem(io))) ASSAY_TRY(trt_are_numbers(m, io, &numbers));
  if (numbers) {
    ASSAY_TRY(random_integers(io, rank, dims, seed, &wide));
  } else if (assay_type_is_float(assay_io_elem(io))) {
    const assay_random_t r = assay_random_make(seed, assay_io_name(io), 0);
    const assay_format_t f = assay_type_format(assay_io_elem(io));
    ASSAY_TRY(assay_tensor_create(assay_io_elem(io), rank, dims, &wide));
    for (int64_t i = 0; i < wide->size; i++)
      assay_f64(wide)[i] = assay_format_round(f, 2 * assay_random_uniform(&r, (uint64_t)i) - 1,
                                              ASSAY_OVERFLOW_SATURATE);
  } else {
    ASSAY_TRY(assay_samples_generate_shaped(m, 1, &shape, seed, &samples));
    for (size_t i = 0; i < m->graph->n_inputs; i++)
      if (m->graph->inputs[i] == io) drawn = assay_samples_get(&samples, 0)[i];
    wide = assay_tensor_retain(drawn);
    assay_samples_deinit(&samples);
  }
  if (!wide)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "no values can be made up for input '%s': give --loadInputs",
                       assay_io_name(io));
  const bool plain = wide->kind != ASSAY_KIND_TENSOR || wide->store == ASSAY_STORE_STR ||
                     wide->store == ASSAY_STORE_PACKED;
  assay_status_t st = NULL;
  if (plain)
    *out = assay_tensor_retain(wide);
  else
    st = assay_tensor_pack(wide, out);
  assay_tensor_release(wide);
  return st;
}

// The values of an input that holds a shape.
static assay_status_t shape_tensor(const assay_io_t* io, int n, const int64_t* values,
                                   assay_tensor_t** out) {
  const assay_profile_t p = {.input = assay_io_name(io), .values = true, .rank = n};
  assay_tensor_t* wide = NULL;
  assay_str_t text = {0};
  ASSAY_TRY(assay_profile_values(&p, io, values, &wide));
  trt_put_dims(&text, n, values);
  trt_info("Using the values %s of its shape for input %s", assay_str_get(&text),
           assay_io_name(io));
  assay_str_deinit(&text);
  assay_status_t st = assay_tensor_pack(wide, out);
  assay_tensor_release(wide);
  return st;
}

// ---- files --------------------------------------------------------------------------------------

static assay_status_t check_array(const trt_source_t* from, const assay_io_t* io, int rank,
                                  const int64_t* dims, const assay_tensor_t* t) {
  bool same = t->type == assay_io_elem(io) && t->rank == rank;
  for (int d = 0; same && d < rank; d++) same = t->dims[d] == dims[d];
  char want[512];
  return same ? NULL
              : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                            "%s: '%s' holds %s%s; %s '%s' is %s%s: other shapes are "
                            "given with --shapes",
                            from->flag, from->path, assay_type_name(t->type), ASSAY_DIMS_TEXT(t),
                            from->what, assay_io_name(io), assay_type_name(assay_io_elem(io)),
                            assay_dims_text(rank, dims, want, sizeof want));
}

// An archive has the array under the input's name, or one array only.
static assay_status_t read_npz(const trt_source_t* from, const char* input, assay_tensor_t** out) {
  assay_set_t set = {0};
  ASSAY_TRY(assay_npz_read(from->path, &set));
  assay_tensor_t* t = assay_set_find(&set, input);
  if (!t && set.n == 1) t = set.tensors[0];
  *out = assay_tensor_retain(t);
  const assay_nearest_t near = assay_set_near(&set, input);
  assay_status_t st = t ? NULL
                        : ASSAY_ERROR(ASSAY_NOT_FOUND, "%s: '%s' has no array '%s'%s", from->flag,
                                      from->path, input, ASSAY_NEAREST_TEXT(&near));
  assay_set_deinit(&set);
  return st;
}

// int64 values for an int32 input.
static assay_status_t narrow(const trt_source_t* from, const assay_io_t* io, int rank,
                             const int64_t* dims, const uint8_t* data, int64_t n,
                             assay_tensor_t** out) {
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_INT32, rank, dims, &wide));
  for (int64_t i = 0; i < n; i++) {
    int64_t x;
    memcpy(&x, data + 8 * i, sizeof x);
    if (x < INT32_MIN || x > INT32_MAX) {
      assay_tensor_release(wide);
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' as int64: %lld does not fit the int32 of %s '%s'", from->flag,
                         from->path, (long long)x, from->what, assay_io_name(io));
    }
    assay_i64(wide)[i] = x;
  }
  trt_info("%s holds int64 values, which are converted to the int32 of %s %s", from->path,
           from->what, assay_io_name(io));
  assay_status_t st = assay_tensor_pack(wide, out);
  assay_tensor_release(wide);
  return st;
}

static assay_status_t refuse_size(const trt_source_t* from, const assay_io_t* io, size_t bytes,
                                  int64_t want, int64_t rows) {
  char layout[80] = "";
  if (from->layout->spatial)
    snprintf(layout, sizeof layout, " in layout %s (rows would take %lld)", from->layout->word,
             (long long)rows);
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "%s: '%s' has %zu bytes; %s '%s' takes %lld: values of %s%s, little-endian, "
                     "without a header",
                     from->flag, from->path, bytes, from->what, assay_io_name(io), (long long)want,
                     trt_type_word(assay_io_elem(io)), layout);
}

static assay_status_t read_raw(const trt_source_t* from, const assay_io_t* io, int rank,
                               const int64_t* dims, const uint8_t* data, size_t bytes,
                               assay_tensor_t** out) {
  const trt_layout_t* l = from->layout;
  const assay_type_t type = assay_io_elem(io);
  int64_t n = 0, n_padded = 0, plain = 0, want = 0;
  uint8_t* rows = NULL;
  if (!trt_layout_elems(l, rank, dims, &n_padded))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: %s '%s' cannot be in layout %s with this shape",
                       from->flag, from->what, assay_io_name(io), l->word);
  if (!assay_dims_size(rank, dims, &n) || !assay_type_packed_bytes(type, n, &plain) ||
      !assay_type_packed_bytes(type, n_padded, &want))
    return assay_status_no_memory();
  const bool wide = type == ASSAY_TYPE_INT32 && want && bytes == 2 * (size_t)want;
  if (bytes != (size_t)want && !wide) return refuse_size(from, io, bytes, want, plain);
  if (l->spatial) {
    const size_t width = wide ? sizeof(int64_t) : (size_t)assay_type_bits(type) / 8;
    ASSAY_TRY(assay_new_array((size_t)n, width, &rows));
    trt_layout_take(l, rank, dims, width, data, rows);
    data = rows;
    bytes = (size_t)n * width;
  }
  assay_status_t st = wide ? narrow(from, io, rank, dims, data, n, out)
                           : assay_tensor_make(type, rank, dims, data, bytes, out);
  assay_free(rows);
  return st;
}

assay_status_t trt_read_file(const trt_source_t* from, const assay_io_t* io, int rank,
                             const int64_t* dims, assay_tensor_t** out) {
  assay_mapping_t* m = NULL;
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_status_note(assay_mapping_open(from->path, &m), "%s", from->flag));
  const uint8_t* data = assay_mapping_data(m);
  const size_t bytes = assay_mapping_size(m);
  const bool npy = bytes > 6 && memcmp(data, "\x93NUMPY", 6) == 0;
  const bool npz = bytes > 4 && memcmp(data, "PK\3\4", 4) == 0;
  assay_status_t st = npy   ? assay_npy_read(from->path, &t)
                      : npz ? read_npz(from, assay_io_name(io), &t)
                            : read_raw(from, io, rank, dims, data, bytes, &t);
  assay_mapping_release(m);
  if (!st && (npy || npz)) st = check_array(from, io, rank, dims, t);
  if (st) return assay_tensor_release(t), st;
  *out = t;
  return NULL;
}

// ---- both ---------------------------------------------------------------------------------------

const trt_layout_t* trt_layout_of(const trt_job_t* j, const assay_io_t* io, bool output) {
  return trt_ends_find(&j->layouts, assay_io_name(io), output);
}

void trt_report_binding(const trt_job_t* j, const char* which, const assay_io_t* io, int rank,
                        const int64_t* dims) {
  const trt_layout_t* l = trt_layout_of(j, io, *which == 'O');
  assay_str_t text = {0};
  trt_put_dims(&text, rank, dims);
  trt_info("%s binding for %s with dimensions %s and type %s%s%s is created.", which,
           assay_io_name(io), assay_str_get(&text), trt_type_word(assay_io_elem(io)),
           l->spatial ? ":" : "", l->spatial ? l->word : "");
  assay_str_deinit(&text);
}

const trt_item_t* trt_file_of(const trt_item_t* items, size_t n, const char* input) {
  const trt_item_t* found = NULL;
  for (size_t i = 0; i < n; i++) {
    const bool exact = strcmp(items[i].name, input) == 0;
    if (exact ||
        (trt_name_matches(items[i].name, input) && !(found && !trt_has_wildcard(found->name))))
      found = &items[i];
  }
  return found;
}

static assay_status_t read_list(const trt_job_t* j, const char* text, trt_item_t** out,
                                size_t* out_n) {
  *out_n = 0;
  if (!text) return NULL;
  ASSAY_TRY(trt_items_parse(j->arena, "--loadInputs", text, out, out_n));
  for (size_t i = 0; i < *out_n; i++) {
    bool known = false;
    assay_nearest_t near = {.wanted = (*out)[i].name};
    ASSAY_TRY(trt_name_check("--loadInputs", (*out)[i].name));
    for (size_t k = 0; k < assay_engine_input_count(j->engine); k++) {
      const char* name = assay_io_name(assay_engine_input(j->engine, k));
      known |= trt_name_matches((*out)[i].name, name);
      assay_nearest_offer(&near, name);
    }
    if (!known)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "--loadInputs: the model has no input '%s'%s",
                         (*out)[i].name, ASSAY_NEAREST_TEXT(&near));
  }
  return NULL;
}

static assay_status_t make_input(const trt_job_t* j, const trt_item_t* items, size_t n_items,
                                 size_t i, bool* random, assay_tensor_t** out) {
  const assay_io_t* io = assay_engine_input(j->engine, i);
  const trt_item_t* item = trt_file_of(items, n_items, assay_io_name(io));
  int64_t dims[ASSAY_MAX_RANK], values[ASSAY_MAX_RANK];
  int rank = 0;
  bool shape = false;
  ASSAY_TRY(trt_run_shape(j, i, &shape, &rank, dims));
  if (shape) {
    memcpy(values, dims, sizeof values);
    dims[0] = rank;
    rank = assay_io_rank(io) ? 1 : 0;
  }
  if (item) {
    const trt_source_t from = {"--loadInputs", "input", item->value, trt_layout_of(j, io, false)};
    ASSAY_TRY(trt_read_file(&from, io, rank, dims, out));
    trt_info("Using values loaded from %s for input %s", item->value, assay_io_name(io));
  } else if (shape) {
    ASSAY_TRY(shape_tensor(io, rank ? (int)dims[0] : 1, values, out));
  } else {
    ASSAY_TRY(random_tensor(j, io, rank, dims, out));
    trt_info("Using random values for input %s", assay_io_name(io));
    *random = true;
  }
  trt_report_binding(j, "Input", io, rank, dims);
  return NULL;
}

assay_status_t trt_inputs_make(const trt_job_t* j, const char* list, trt_inputs_t* out) {
  const size_t n = assay_engine_input_count(j->engine);
  trt_item_t* items = NULL;
  size_t n_items;
  bool random = false;
  ASSAY_TRY(read_list(j, list, &items, &n_items));
  ASSAY_TRY(assay_new_array(n, sizeof *out->tensors, &out->tensors));
  for (; out->n < n; out->n++)
    ASSAY_TRY(make_input(j, items, n_items, out->n, &random, &out->tensors[out->n]));
  if (random)
    trt_warn("Random inputs (seed %lld) show how fast a model is, and nothing of its accuracy",
             (long long)j->native.seed);
  return NULL;
}
