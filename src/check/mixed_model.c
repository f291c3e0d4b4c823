// The model that a precision makes, as one to be written: 16-bit values, and Casts between types.
#include "check/mixed_model.h"

#include "base/alloc.h"
#include "passes/mixed.h"

static assay_status_t create(const assay_layers_t* l, assay_model_t** out) {
  const size_t n = (size_t)l->model->n_node_ids;
  assay_format_t* formats = NULL;
  bool* of_sizes = NULL;
  assay_status_t st = assay_new_array(n, sizeof *formats, &formats);
  if (!st) st = assay_new_array(n, sizeof *of_sizes, &of_sizes);
  for (size_t i = 0; !st && i < l->n_all_layers; i++)
    for (size_t k = 0; k < l->layers[i].n_nodes; k++)
      formats[l->layers[i].nodes[k]->id] = l->layers[i].format;
  if (!st) assay_mark_of_sizes(l->model, of_sizes);
  for (size_t i = 0; !st && i < n; i++)
    if (of_sizes[i]) formats[i] = ASSAY_FORMAT_FP32;
  if (!st) st = assay_mixed_create(l->model, formats, out);
  assay_free(formats);
  assay_free(of_sizes);
  return st;
}

// A model that declares types has float32 values in an unfused plan, and layers in their place.
assay_status_t assay_mixed_model(assay_model_t* model, const assay_precision_t* precision,
                                 uint64_t seed, assay_model_t** out) {
  assay_plan_t* plan = NULL;
  ASSAY_TRY(assay_plan_create(model, precision, NULL, seed, &plan));
  assay_status_t st = create(assay_plan_layers(plan), out);
  assay_plan_destroy(plan);
  return st;
}

assay_status_t assay_mixed_model_of_fix(assay_model_t* model, const assay_precision_t* asked,
                                        const assay_fix_t* fix, uint64_t seed,
                                        assay_model_t** out) {
  assay_precision_t precision = *asked;
  bool* pinned = NULL;
  ASSAY_TRY(assay_new_array((size_t)model->n_node_ids, sizeof *pinned, &pinned));
  for (size_t i = 0; i < fix->n_nodes; i++) pinned[fix->nodes[i]->id] = true;
  precision.pinned = pinned;
  precision.pinned_format = fix->format;
  assay_status_t st = assay_mixed_model(model, &precision, seed, out);
  assay_free(pinned);
  return st;
}
