// What several verbs take: input files.
#include "cli/inputs.h"

#include <stdio.h>
#include <string.h>

#include "base/shown.h"
#include "data/sample_files.h"
#include "data/tensor_files.h"

assay_status_t cli_join_golden(assay_saved_t* runs, assay_set_t* out) {
  assay_set_t set = {0};
  assay_status_t st = assay_saved_join(runs, &set);
  if (assay_status_code(st) == ASSAY_INVALID_ARGUMENT) {
    assay_status_free(st);
    st = assay_set_add_all(&set, &runs->runs[0]);
  }
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}

assay_status_t cli_read_golden(const char* path, const assay_model_t* model,
                               assay_tensor_reading_t* reading, assay_saved_t* out_runs,
                               assay_set_t* out_set) {
  const assay_graph_t* g = model->graph;
  const assay_tensor_request_t request = {path, g->outputs, g->n_outputs, true, reading};
  assay_saved_t runs = {0};
  assay_set_t set = {0};
  ASSAY_TRY(assay_tensor_file_read(&request, &runs));
  assay_status_t st = reading ? assay_tensor_files_retype(reading, &runs) : NULL;
  if (st) return assay_saved_deinit(&runs), assay_status_note(st, "'%s'", path);
  st = cli_join_golden(&runs, &set);
  if (st) return assay_saved_deinit(&runs), assay_status_note(st, "'%s'", path);
  *out_runs = runs;
  *out_set = set;
  return NULL;
}

assay_status_t cli_golden_samples(const assay_saved_t* runs, const assay_set_t* set,
                                  const assay_graph_t* g, size_t n_inputs, assay_samples_t* out) {
  return runs->n > 1 && runs->n == n_inputs
             ? assay_samples_from_runs(runs, g->outputs, g->n_outputs, false, out)
             : assay_samples_from_set(set, g->outputs, g->n_outputs, false, out);
}

// Said before anything else: what a model makes of such numbers may be anything.
static void warn_of_unfinite(const assay_samples_t* s, const assay_graph_t* g) {
  assay_str_t text = {0};
  assay_samples_describe_unfinite(s, g->inputs, g->n_inputs, &text);
  if (text.len)
    assay_print(
        stderr,
        "assay: the inputs are not finite: %s; outputs that follow from them show no accuracy\n",
        assay_str_get(&text));
  assay_str_deinit(&text);
}

assay_status_t cli_samples_given(const opt_list_t* files, const assay_model_t* model,
                                 assay_tensor_reading_t* reading, bool required,
                                 assay_samples_t* out) {
  const assay_graph_t* g = model->graph;
  assay_saved_t runs = {0};
  if (!files->n) return NULL;
  const assay_sample_files_t from = {
      .names = (const char* const*)files->items, .n = files->n, .reading = reading};
  assay_status_t st = assay_sample_files_read(&from, model, &runs);
  if (!st) st = assay_samples_from_runs(&runs, g->inputs, g->n_inputs, required, out);
  if (!st && out->notes.len) fputs(assay_str_get(&out->notes), stderr);
  if (!st) warn_of_unfinite(out, g);
  assay_saved_deinit(&runs);
  return st;
}

// Random inputs are announced, unless none are needed.
static assay_status_t warn_of_random(const assay_model_t* model) {
  const assay_graph_t* g = model->graph;
  bool any = false;
  for (size_t i = 0; i < g->n_inputs; i++) any |= !g->inputs[i]->constant;
  return any ? cli_shapes_report_ones(
                   model,
                   "assay: no inputs given: random ones are used, which show no accuracy on real "
                   "data (ranges, masks and indices differ)")
             : NULL;
}

assay_status_t cli_samples(const opt_list_t* files, const assay_model_t* model,
                           assay_tensor_reading_t* reading, uint64_t seed, assay_samples_t* out) {
  if (files->n) return cli_samples_given(files, model, reading, true, out);
  ASSAY_TRY(warn_of_random(model));
  return assay_samples_generate(model, seed, out);
}

assay_samples_options_t cli_samples_options(const assay_tensor_reading_t* r) {
  const assay_image_request_t* w = &r->images;
  return (assay_samples_options_t){.struct_size = sizeof(assay_samples_options_t),
                                   .dtypes = r->dtypes,
                                   .n_dtypes = r->n_dtypes,
                                   .image_height = w->height,
                                   .image_width = w->width,
                                   .image_shorter = w->shorter,
                                   .crop_height = w->crop_height,
                                   .crop_width = w->crop_width,
                                   .image_scale = w->scale,
                                   .image_mean = w->mean,
                                   .image_std = w->std,
                                   .n_image_mean = w->n_mean,
                                   .n_image_std = w->n_std,
                                   .image_layout = w->layout};
}
