// The inputs of a run: from files, from a script, or made up as Polygraphy makes them.
#include "frontends/polygraphy/data/feed.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/shell.h"
#include "base/shown.h"
#include "data/samples.h"
#include "data/tensor_files.h"
#include "frontends/polygraphy/model.h"
#include "io/numpy_random.h"
#include "io/polygraphy.h"

static const assay_valtype_t* type_of(const assay_value_t* v) {
  return v->type ? v->type : v->declared;
}

// ---- shapes of what is made up ------------------------------------------------------------------

static bool is_integer(const assay_valtype_t* t) {
  return !assay_type_is_float(t->elem) && assay_type_store(t->elem) == ASSAY_STORE_I64 &&
         t->elem != ASSAY_TYPE_BOOL;
}

// Whether sizes can be what the model says of the input.
static bool allows(const assay_valtype_t* t, int rank, const int64_t* dims) {
  int64_t n;
  if (!t->has_shape) return true;
  if (t->rank != rank) return false;
  for (int d = 0; d < rank; d++)
    if (dims[d] < 0 || (t->dims && assay_dim_value(t->dims[d], &n) && n != dims[d])) return false;
  return true;
}

// An input that takes a shape: a row of integers, for which as many values are given.
static bool takes_values(const assay_valtype_t* t, int rank, const int64_t* dims) {
  int64_t n;
  if (!is_integer(t) || !t->has_shape || t->rank != 1) return false;
  const bool fixed = t->dims && assay_dim_value(t->dims[0], &n);
  if (fixed) return n == rank && !(rank == 1 && dims[0] == n);
  return rank > 1;
}

// What the shapes of inputs are called on this line.
static pg_flag_id_t shapes_flag(const pg_job_t* j) {
  switch (j->args->command) {
    case PG_CMD_surgeon_extract:
    case PG_CMD_debug_reduce:
      return PG_FLAG_model_input_shapes;
    case PG_CMD_surgeon_sanitize:
      return PG_FLAG_override_input_shapes;
    default:
      return PG_FLAG_input_shapes;
  }
}

// "BoundedShape(['N', 3], min=None, max=None)".
static void put_bounded(assay_str_t* out, const assay_valtype_t* t) {
  int64_t n;
  assay_str_append(out, "BoundedShape([");
  for (int d = 0; d < t->rank; d++) {
    const assay_dim_t* dim = t->dims ? t->dims[d] : NULL;
    if (d) assay_str_append(out, ", ");
    if (assay_dim_value(dim, &n))
      assay_str_printf(out, "%lld", (long long)n);
    else if (dim)
      assay_str_printf(out, "'%s'", assay_dim_text(dim, (char[256]){0}, 256));
    else
      assay_str_append(out, "-1");
  }
  assay_str_append(out, "], min=None, max=None)");
}

static assay_status_t no_rank(const assay_value_t* v) {
  assay_str_t shape = {0}, word = {0};
  assay_str_printf(&shape, "%s:[..]", v->name);
  assay_shell_word(&word, assay_str_get(&shape));
  assay_status_t st = assay_status_join(assay_str_status(&shape), assay_str_status(&word));
  if (!st)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "input '%s' has no rank in the model: give --input-shapes %s", v->name,
                     assay_str_get(&word));
  assay_str_deinit(&shape);
  assay_str_deinit(&word);
  return st;
}

static assay_status_t default_shape(const assay_value_t* v, bool warn, int* rank, int64_t* dims) {
  const assay_valtype_t* t = type_of(v);
  bool open = false;
  char text[512];
  assay_str_t info = {0};
  if (!t->has_shape) return no_rank(v);
  *rank = t->rank;
  for (int d = 0; d < t->rank; d++)
    if (!t->dims || !assay_dim_value(t->dims[d], &dims[d])) dims[d] = 1, open = true;
  if (!open || !warn) return NULL;
  put_bounded(&info, t);
  const char* bounded = assay_str_get(&info);
  pg_log(PG_WARNING,
         "Input tensor: %s [shape=%s] | Provided input shape: %s is dynamic.\n"
         "Dynamic shapes cannot be used to generate inference data. Will use default shape "
         "instead.\nTo avoid this, please provide a fixed shape to the data loader. ",
         v->name, bounded, bounded);
  pg_log(PG_WARNING,
         "Input tensor: %s [shape=%s] | Will generate data of shape: %s.\n"
         "If this is incorrect, please provide a custom data loader.",
         v->name, bounded, assay_dims_text(*rank, dims, text, sizeof text));
  assay_str_deinit(&info);
  return NULL;
}

// What --input-shapes says of an input. *out_values: the sizes are its values.
static assay_status_t choose_shape(pg_job_t* j, const assay_value_t* v, bool warn, int* rank,
                                   int64_t* dims, bool* out_values) {
  const assay_valtype_t* t = type_of(v);
  const char* given = NULL;
  *out_values = false;
  ASSAY_TRY(pg_pair_find(j->arena, pg_words(j->args, shapes_flag(j)), v->name, &given));
  if (!given) return default_shape(v, warn, rank, dims);
  ASSAY_TRY(pg_shape(j->arena, "--input-shapes", given, rank, dims, NULL));
  if (takes_values(t, *rank, dims)) return *out_values = true, NULL;
  if (allows(t, *rank, dims)) return NULL;
  assay_str_t info = {0};
  pg_put_tensor_info(&info, v);
  pg_log(
      PG_WARNING,
      "Input tensor: %s | The model does not allow the shape %s. Will use default shape instead.",
      assay_str_get(&info), given);
  assay_str_deinit(&info);
  return default_shape(v, warn, rank, dims);
}

// ---- values that are made up --------------------------------------------------------------------

static assay_status_t choose_range(pg_job_t* j, const assay_value_t* v, assay_numpy_range_t* out) {
  const char* given = NULL;
  pg_words_t ends;
  *out = (assay_numpy_range_t){0, 1, 0, 1};
  ASSAY_TRY(pg_pair_find(j->arena, pg_words(j->args, PG_FLAG_val_range), v->name, &given));
  if (!given) return NULL;
  ASSAY_TRY(pg_list_split(j->arena, "--val-range", given, &ends));
  if (ends.n != 2)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--val-range: '%s' is no [min,max]", given);
  ASSAY_TRY(pg_number("--val-range", ends.items[0], &out->min));
  ASSAY_TRY(pg_number("--val-range", ends.items[1], &out->max));
  if (!(fabs(out->min) < 0x1p63 && fabs(out->max) < 0x1p63)) return NULL;
  out->int_min = (int64_t)out->min;
  out->int_max = (int64_t)out->max;
  return NULL;
}

// A row of integers with these values.
static assay_status_t make_values(assay_type_t type, int n, const int64_t* values,
                                  assay_tensor_t** out) {
  return assay_tensor_vector_i64(type, n, values, out);
}

// warn: of shapes that are not what was asked for, once.
static assay_status_t make_one(pg_job_t* j, const assay_value_t* v, bool warn,
                               assay_numpy_random_t* r, assay_tensor_t** out) {
  const assay_valtype_t* t = type_of(v);
  int64_t dims[ASSAY_MAX_RANK];
  int rank;
  bool values;
  assay_numpy_range_t range;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->elem)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "no values can be made up for input '%s': give --load-inputs", v->name);
  ASSAY_TRY(choose_shape(j, v, warn, &rank, dims, &values));
  if (values) return make_values(t->elem, rank, dims, out);
  ASSAY_TRY(choose_range(j, v, &range));
  pg_log(PG_VERBOSE, "Input tensor: %s | Generating input data in range: [%g, %g]", v->name,
         range.min, range.max);
  return assay_status_note(assay_numpy_random_tensor(r, t->elem, rank, dims, &range, out),
                           "input '%s'", v->name);
}

static assay_status_t generate(pg_job_t* j, assay_value_t* const* inputs, size_t n,
                               assay_saved_t* out) {
  const int64_t seed = pg_int(j->args, PG_FLAG_seed), count = pg_int(j->args, PG_FLAG_iterations);
  assay_numpy_random_t* r = NULL;
  if (count < 1) return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--iterations is 1 or more");
  if (seed < 0 || seed > UINT32_MAX - count)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--seed is 0 to 4294967295");
  ASSAY_TRY(assay_arena_new(j->arena, 1, sizeof *r, &r));
  for (int64_t i = 0; i < count; i++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &run));
    pg_log(PG_VERBOSE, "Generating data using numpy seed: %lld", (long long)(seed + i));
    assay_numpy_random_seed(r, (uint32_t)(seed + i));
    for (size_t k = 0; k < n; k++) {
      assay_tensor_t* t = NULL;
      if (inputs[k]->constant) continue;
      ASSAY_TRY(make_one(j, inputs[k], !i, r, &t));
      ASSAY_TRY(assay_set_add(run, inputs[k]->name, t));
    }
  }
  return NULL;
}

// Names that are no input's.
static assay_status_t warn_of_names(pg_job_t* j, pg_flag_id_t flag, assay_value_t* const* inputs,
                                    size_t n) {
  const pg_words_t* words = pg_words(j->args, flag);
  for (size_t i = 0; i < words->n; i++) {
    pg_pair_t pair;
    bool known = false;
    ASSAY_TRY(pg_pair_split(j->arena, words->items[i], &pair));
    for (size_t k = 0; k < n; k++)
      known |= strcmp(pair.name, inputs[k]->name) == 0 || pg_fits(pair.name, inputs[k]->name);
    if (*pair.name && !known)
      pg_log(PG_WARNING, "%.*s: '%s' is not an input of the model; the first one is '%s'",
             (int)strcspn(pg_flags[flag].names, " "), pg_flags[flag].names, pair.name,
             n ? inputs[0]->name : "");
  }
  return NULL;
}

// ---- files --------------------------------------------------------------------------------------

// The iterations of one file after those before: cut and converted as the model says.
static assay_status_t add_runs(assay_saved_t* from, assay_value_t* const* inputs, size_t n,
                               assay_saved_t* out) {
  assay_samples_t s = {0};
  assay_status_t st = assay_samples_from_runs(from, inputs, n, true, &s);
  if (!st && s.notes.len) pg_log(PG_WARNING, ASSAY_LINES, assay_str_get(&s.notes));
  for (size_t i = 0; !st && i < s.n; i++) {
    assay_set_t* run = NULL;
    st = assay_saved_add_run(out, &run);
    for (size_t k = 0; !st && k < n; k++) {
      assay_tensor_t* t = assay_samples_get(&s, i)[k];
      if (t) st = assay_set_add(run, inputs[k]->name, assay_tensor_retain(t));
    }
  }
  assay_samples_deinit(&s);
  return st;
}

static assay_status_t load_file(const char* path, assay_value_t* const* inputs, size_t n,
                                assay_saved_t* out) {
  const assay_tensor_request_t request = {path, inputs, n, false, NULL};
  assay_saved_t one = {0};
  struct stat info;
  pg_log(PG_INFO, "Loading input data from %s", path);
  if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && !info.st_size)
    return ASSAY_ERROR(ASSAY_CORRUPT, "--load-inputs: '%s' is empty", path);
  ASSAY_TRY(assay_status_note(assay_tensor_file_read(&request, &one), "--load-inputs"));
  assay_status_t st =
      one.results
          ? ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                        "'%s' holds results of a run, not inputs: 'polygraphy data merge %s -o "
                        "inputs.json' makes inputs of them",
                        path, path)
          : add_runs(&one, inputs, n, out);
  assay_saved_deinit(&one);
  return assay_status_note(st, "--load-inputs %s", path);
}

assay_status_t pg_feed_make(pg_job_t* j, assay_value_t* const* inputs, size_t n,
                            assay_saved_t* out) {
  const pg_words_t* files = pg_words(j->args, PG_FLAG_load_inputs);
  const char* script = pg_text(j->args, PG_FLAG_data_loader_script);
  assay_saved_t made = {0}, read = {0};
  assay_status_t st = NULL;
  if (script) {
    st = pg_feed_script(j, script, &read);
    if (!st) st = assay_status_note(add_runs(&read, inputs, n, &made), "--data-loader-script");
    assay_saved_deinit(&read);
  } else if (files->n) {
    for (size_t i = 0; !st && i < files->n; i++) st = load_file(files->items[i], inputs, n, &made);
  } else {
    st = warn_of_names(j, shapes_flag(j), inputs, n);
    if (!st) st = warn_of_names(j, PG_FLAG_val_range, inputs, n);
    if (!st) st = generate(j, inputs, n, &made);
  }
  if (!st && !made.n) st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "There are no inputs to run with");
  if (st) return assay_saved_deinit(&made), st;
  *out = made;
  return NULL;
}

static assay_status_t report_inputs(const assay_graph_t* g) {
  assay_str_t text = {0};
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (g->inputs[i]->constant) continue;
    assay_str_append(&text, text.len ? ",\n " : "");
    pg_put_tensor_info(&text, g->inputs[i]);
  }
  assay_status_t st = assay_str_status(&text);
  if (!st)
    pg_log(PG_INFO,
           "Will generate inference input data according to provided TensorMetadata: {" ASSAY_LINES
           "}",
           assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

assay_status_t pg_feed_first(pg_job_t* j, const assay_graph_t* g, assay_saved_t* keep,
                             assay_tensor_t*** out) {
  assay_tensor_t** list = NULL;
  if (!pg_given(j->args, PG_FLAG_load_inputs) && !pg_given(j->args, PG_FLAG_data_loader_script))
    ASSAY_TRY(report_inputs(g));
  ASSAY_TRY(pg_feed_make(j, g->inputs, g->n_inputs, keep));
  if (keep->n > 1)
    pg_log(PG_WARNING, "only the first of the %zu iterations is used: the model is run once",
           keep->n);
  assay_status_t st = assay_new_array(g->n_inputs, sizeof(assay_tensor_t*), &list);
  if (st) return assay_saved_deinit(keep), st;
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant) list[i] = assay_set_find(&keep->runs[0], g->inputs[i]->name);
  *out = list;
  return NULL;
}

// ---- saving -------------------------------------------------------------------------------------

// Each input as it lies in memory: DIR/0000000000/NAME.bin.
static assay_status_t save_blob(const char* folder, size_t i, const char* name, assay_tensor_t* t) {
  assay_tensor_t *packed = NULL, *wide = NULL;
  assay_str_t path = {0};
  int64_t bytes = 0;
  assay_str_printf_raw(&path, "%s/%010zu", folder, i);
  assay_status_t st = assay_str_status(&path);
  if (!st) st = assay_folder_make(assay_str_get(&path));
  assay_str_append(&path, "/");
  for (const char* c = name; *c; c++) assay_str_printf_raw(&path, "%c", *c == '/' ? '_' : *c);
  assay_str_append(&path, ".bin");
  if (!st) st = assay_str_status(&path);
  if (!st) st = assay_tensor_widen(t, &wide);
  if (!st) st = assay_tensor_pack(wide, &packed);
  if (!st && !assay_type_packed_bytes(packed->type, packed->size, &bytes))
    st = assay_status_no_memory();
  if (!st) st = assay_file_write(assay_str_get(&path), packed->data, (size_t)bytes);
  assay_tensor_release(packed);
  assay_tensor_release(wide);
  assay_str_deinit(&path);
  return st;
}

static bool has_ending(const char* path) {
  const char* slash = strrchr(path, '/');
  return strchr(slash ? slash + 1 : path, '.') != NULL;
}

// A set for a writer that empties what it writes.
static assay_status_t share(const assay_saved_t* from, assay_saved_t* out) {
  for (size_t i = 0; i < from->n; i++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &run));
    for (size_t k = 0; k < from->runs[i].n; k++)
      ASSAY_TRY(assay_set_add(run, from->runs[i].names[k],
                              assay_tensor_retain(from->runs[i].tensors[k])));
  }
  return NULL;
}

assay_status_t pg_feed_save(pg_job_t* j, const assay_saved_t* inputs) {
  const char* path = pg_text(j->args, PG_FLAG_save_inputs);
  const pg_value_t* blob = &j->args->at[PG_FLAG_save_input_blob];
  assay_saved_t shared = {0};
  assay_str_t notes = {0};
  assay_status_t st = NULL;
  if (path) {
    pg_log(PG_INFO, "Saving input data to %s", path);
    st = share(inputs, &shared);
    if (!st)
      st = has_ending(path) ? assay_tensor_file_write(path, &shared, NULL, &notes)
                            : assay_polygraphy_write_folder(path, &shared, NULL, &notes);
    if (notes.len) pg_log(PG_WARNING, ASSAY_LINES, assay_str_get(&notes));
  }
  assay_str_deinit(&notes);
  assay_saved_deinit(&shared);
  for (size_t i = 0; !st && blob->given && i < inputs->n; i++)
    for (size_t k = 0; !st && k < inputs->runs[i].n; k++)
      st = save_blob(blob->text ? blob->text : "input_blobs", i, inputs->runs[i].names[k],
                     inputs->runs[i].tensors[k]);
  return st;
}
