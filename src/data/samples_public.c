// The public face of samples: include/assay/samples.h.
#include <assay/samples.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/sample_files.h"
#include "data/samples.h"

// What callers ask about samples, besides the tensors.
typedef struct assay_samples_origin {
  assay_model_t* model;  // retained
  bool outputs;
  bool* dtype_used;
  size_t n_dtypes, n_images;
  assay_str_t metadata;  // of a safetensors file; "": none
} origin_t;

void assay_samples_origin_destroy(struct assay_samples_origin* o) {
  if (!o) return;
  assay_model_release(o->model);
  assay_free(o->dtype_used);
  assay_str_deinit(&o->metadata);
  assay_free(o);
}

static assay_value_t* const* values_of(const assay_model_t* m, bool outputs, size_t* out_n) {
  *out_n = outputs ? m->graph->n_outputs : m->graph->n_inputs;
  return outputs ? m->graph->outputs : m->graph->inputs;
}

// ---- options ------------------------------------------------------------------------------------

// The text outlives the options: images are read when they are needed.
static const char* layout_text(const char* layout) {
  static const char* const known[] = {"nchw", "nhwc"};
  for (size_t i = 0; layout && i < sizeof known / sizeof *known; i++)
    if (strcmp(layout, known[i]) == 0) return known[i];
  return layout;
}

static assay_status_t copy_numbers(const char* what, const double* from, int n, double* to,
                                   int* out_n) {
  if (n < 0 || n > ASSAY_IMAGE_CHANNELS || (n && !from))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples: %d values of %s; give 0, 1 or %d", n, what,
                       ASSAY_IMAGE_CHANNELS);
  if (n) memcpy(to, from, (size_t)n * sizeof *to);
  *out_n = n;
  return NULL;
}

static assay_status_t check_options(const assay_samples_options_t* o) {
  const int64_t sizes[] = {o->image_height, o->image_width, o->image_shorter, o->crop_height,
                           o->crop_width};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] < 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples: an image size of %lld; 0 leaves it open",
                         (long long)sizes[i]);
  if (!o->image_height != !o->image_width || !o->crop_height != !o->crop_width)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples: give images a height and a width");
  if (o->image_layout && strcmp(o->image_layout, "nchw") != 0 &&
      strcmp(o->image_layout, "nhwc") != 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples: a layout is nchw or nhwc, not '%s'",
                       o->image_layout);
  for (size_t i = 0; i < o->n_dtypes; i++) ASSAY_TRY(assay_tensor_dtype_check(o->dtypes[i]));
  return NULL;
}

assay_status_t assay_samples_reading(const assay_samples_options_t* options,
                                     assay_tensor_reading_t* out) {
  assay_samples_options_t given = ASSAY_SAMPLES_OPTIONS_INIT;
  const assay_samples_options_t* o = &given;
  if (options)  // an older caller's struct may be shorter
    memcpy(&given, options,
           options->struct_size < sizeof given ? options->struct_size : sizeof given);
  assay_tensor_reading_t r = {.dtypes = o->dtypes, .n_dtypes = o->n_dtypes};
  ASSAY_TRY(check_options(o));
  r.images = (assay_image_request_t){.layout = layout_text(o->image_layout),
                                     .height = o->image_height,
                                     .width = o->image_width,
                                     .shorter = o->image_shorter,
                                     .crop_height = o->crop_height,
                                     .crop_width = o->crop_width,
                                     .scale = o->image_scale};
  ASSAY_TRY(
      copy_numbers("image_mean", o->image_mean, o->n_image_mean, r.images.mean, &r.images.n_mean));
  ASSAY_TRY(copy_numbers("image_std", o->image_std, o->n_image_std, r.images.std, &r.images.n_std));
  for (int i = 0; i < r.images.n_std; i++)
    if (r.images.std[i] == 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples: an image_std of 0 divides by 0");
  ASSAY_TRY(assay_new_array(o->n_dtypes, sizeof *r.met, &r.met));
  *out = r;
  return NULL;
}

// ---- making -------------------------------------------------------------------------------------

static assay_status_t create(assay_model_t* model, bool outputs, assay_samples_t** out) {
  assay_samples_t* s = NULL;
  ASSAY_TRY(ASSAY_NEW(&s));
  assay_status_t st = ASSAY_NEW(&s->origin);
  if (st) return assay_samples_destroy(s), st;
  s->origin->model = assay_model_retain(model);
  s->origin->outputs = outputs;
  *out = s;
  return NULL;
}

// Puts what was made by value in the place of an empty one's.
static void fill(assay_samples_t* s, assay_samples_t* take) {
  struct assay_samples_origin* origin = s->origin;
  *s = *take;
  s->origin = origin;
  *take = (assay_samples_t){0};
}

// Cuts runs into samples. What reading has noted comes before what cutting notes.
static assay_status_t from_runs(const assay_saved_t* runs, bool partial,
                                assay_tensor_reading_t* reading, assay_samples_t* s) {
  origin_t* o = s->origin;
  assay_samples_t made = {0};
  size_t n;
  assay_value_t* const* values = values_of(o->model, o->outputs, &n);
  ASSAY_TRY(assay_samples_from_runs(runs, values, n, !o->outputs && !partial, &made));
  assay_str_append(&reading->notes, assay_str_get(&made.notes));
  assay_str_deinit(&made.notes);
  fill(s, &made);
  s->notes = reading->notes;
  reading->notes = (assay_str_t){0};
  o->dtype_used = reading->met;
  o->n_dtypes = reading->n_dtypes;
  o->n_images = reading->n_images;
  reading->met = NULL;
  o->metadata = reading->about;
  reading->about = (assay_str_t){0};
  if (o->metadata.len && !o->metadata.failed)  // its line break
    o->metadata.text[--o->metadata.len] = 0;
  return assay_status_join(assay_str_status(&s->notes), assay_str_status(&o->metadata));
}

void assay_samples_reading_deinit(assay_tensor_reading_t* r) {
  assay_str_deinit(&r->notes);
  assay_str_deinit(&r->about);
  assay_free(r->met);
}

// Where runs come from: files or tensors of the caller's.
typedef struct source {
  assay_sample_files_t files;
  size_t n_runs, n_names;
  const char* const* names;
  assay_tensor_t* const* tensors;
} source_t;

static assay_status_t given_runs(const source_t* from, const assay_tensor_reading_t* reading,
                                 assay_saved_t* out) {
  for (size_t r = 0; r < from->n_runs; r++) {
    assay_set_t* run = NULL;
    ASSAY_TRY(assay_saved_add_run(out, &run));
    for (size_t k = 0; k < from->n_names; k++) {
      assay_tensor_t* t = from->tensors[r * from->n_names + k];
      if (!t)
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "samples: run %zu has no tensor for '%s'", r,
                           from->names[k]);
      ASSAY_TRY(assay_set_add(run, from->names[k], assay_tensor_retain(t)));
    }
  }
  return assay_tensor_files_retype(reading, out);
}

static assay_status_t make(assay_model_t* model, source_t* from,
                           const assay_samples_options_t* options, assay_samples_t** out) {
  const bool outputs = options && options->outputs, partial = options && options->partial;
  assay_tensor_reading_t reading;
  assay_samples_t* s = NULL;
  assay_saved_t runs = {0};
  ASSAY_TRY(assay_samples_reading(options, &reading));
  assay_status_t st = create(model, outputs, &s);
  from->files.outputs = outputs;
  from->files.reading = &reading;
  if (!st)
    st = from->files.n ? assay_sample_files_read(&from->files, model, &runs)
                       : given_runs(from, &reading, &runs);
  if (!st) st = from_runs(&runs, partial, &reading, s);
  assay_saved_deinit(&runs);
  assay_samples_reading_deinit(&reading);
  if (st) return assay_samples_destroy(s), st;
  *out = s;
  return NULL;
}

assay_status_t assay_samples_load(assay_model_t* model, size_t n_files, const char* const* files,
                                  const assay_samples_options_t* options, assay_samples_t** out) {
  if (!n_files)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "no files to load samples from; assay_samples_random() makes some");
  return make(model, &(source_t){.files = {.names = files, .n = n_files}}, options, out);
}

assay_status_t assay_samples_create(assay_model_t* model, size_t n_runs, size_t n_names,
                                    const char* const* names, assay_tensor_t* const* tensors,
                                    const assay_samples_options_t* options, assay_samples_t** out) {
  size_t total;
  if (!n_runs || !n_names)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "no runs to make samples of: %zu runs, %zu names",
                       n_runs, n_names);
  if (__builtin_mul_overflow(n_runs, n_names, &total)) return assay_status_no_memory();
  return make(model,
              &(source_t){.n_runs = n_runs, .n_names = n_names, .names = names, .tensors = tensors},
              options, out);
}

assay_status_t assay_samples_random(assay_model_t* model, uint64_t seed, size_t n_shapes,
                                    const assay_engine_shape_t* shapes, assay_samples_t** out) {
  assay_samples_t *s = NULL, made = {0};
  assay_input_shape_t* given = NULL;
  ASSAY_TRY(assay_new_array(n_shapes, sizeof *given, &given));
  for (size_t i = 0; i < n_shapes; i++)
    given[i] = (assay_input_shape_t){shapes[i].input, shapes[i].rank, shapes[i].dims};
  assay_status_t st = create(model, false, &s);
  if (!st) st = assay_samples_generate_shaped(model, n_shapes, given, seed, &made);
  assay_free(given);
  if (st) return assay_samples_destroy(s), st;
  fill(s, &made);
  *out = s;
  return NULL;
}

void assay_samples_destroy(assay_samples_t* s) {
  if (!s) return;
  assay_samples_deinit(s);
  assay_free(s);
}

// ---- asking -------------------------------------------------------------------------------------

size_t assay_samples_count(const assay_samples_t* s) { return s->n; }
size_t assay_samples_value_count(const assay_samples_t* s) { return s->n_values; }

const char* assay_samples_value_name(const assay_samples_t* s, size_t i) {
  size_t n;
  assay_value_t* const* values = values_of(s->origin->model, s->origin->outputs, &n);
  return i < n ? values[i]->name : NULL;
}

assay_tensor_t* assay_samples_tensor(const assay_samples_t* s, size_t sample, size_t i) {
  return sample < s->n && i < s->n_values ? assay_samples_get(s, sample)[i] : NULL;
}

const char* assay_samples_notes(const assay_samples_t* s) { return assay_str_get(&s->notes); }

const char* assay_samples_metadata(const assay_samples_t* s) {
  return assay_str_get(&s->origin->metadata);
}

const char* assay_samples_unfinite(const assay_samples_t* s, char* out_text, size_t capacity) {
  assay_str_t text = {0};
  size_t n;
  assay_value_t* const* values = values_of(s->origin->model, s->origin->outputs, &n);
  assay_samples_describe_unfinite(s, values, n, &text);
  snprintf(out_text, capacity, "%s", assay_str_get(&text));
  assay_str_deinit(&text);
  return out_text;
}

bool assay_samples_dtype_used(const assay_samples_t* s, size_t i) {
  return i < s->origin->n_dtypes && s->origin->dtype_used[i];
}

size_t assay_samples_image_count(const assay_samples_t* s) { return s->origin->n_images; }

assay_status_t assay_samples_fit(const assay_samples_t* s, const assay_model_t* model,
                                 bool outputs) {
  const char* what = outputs ? "output" : "input";
  const origin_t* o = s->origin;
  size_t n, n_own = 0;
  assay_value_t* const* values = values_of(model, outputs, &n);
  if (s->n_values != n || (o && o->outputs != outputs))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "these are not samples of the model's %zu %ss; make them from this model", n,
                       what);
  assay_value_t* const* own = o ? values_of(o->model, outputs, &n_own) : NULL;
  for (size_t i = 0; i < n_own; i++)
    if (strcmp(own[i]->name, values[i]->name) != 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "the samples have '%s' where the model has the %s '%s'; make them from "
                         "this model",
                         own[i]->name, what, values[i]->name);
  return NULL;
}
