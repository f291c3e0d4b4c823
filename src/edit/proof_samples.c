// Inputs for a proof, made up.
#include <string.h>

#include "base/alloc.h"
#include "edit/proof.h"

// The shapes of all inputs with open sizes closed: the leading ones, and the others. False: none is
// open.
static bool close_with(const assay_model_t* m, int64_t leading, int64_t others, size_t n_given,
                       const assay_input_shape_t* given, assay_input_shape_t* shapes,
                       int64_t (*dims)[ASSAY_MAX_RANK], size_t* n) {
  bool open = false;
  *n = 0;
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    const assay_value_t* v = m->graph->inputs[i];
    const assay_input_shape_t* own = NULL;
    for (size_t k = 0; k < n_given; k++)
      if (strcmp(given[k].name, v->name) == 0) own = &given[k];
    const assay_valtype_t* t = v->type;
    if (own) shapes[(*n)++] = *own;
    if (own || v->constant || !t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) continue;
    for (int d = 0; d < t->rank; d++) {
      if (t->dims[d] && assay_dim_value(t->dims[d], &dims[i][d])) continue;
      dims[i][d] = d ? others : leading;
      open = true;
    }
    shapes[(*n)++] = (assay_input_shape_t){v->name, t->rank, dims[i]};
  }
  return open;
}

// Takes the one sample of `from` over.
static assay_status_t append(assay_samples_t* to, assay_samples_t* from) {
  const size_t n = to->n, values = from->n_values;
  assay_tensor_t** at = NULL;
  ASSAY_TRY(assay_new_array((n + 1) * values, sizeof(assay_tensor_t*), &at));
  if (n) memcpy(at, to->at, n * values * sizeof(assay_tensor_t*));
  if (values) memcpy(at + n * values, from->at, values * sizeof(assay_tensor_t*));
  assay_free(to->at);
  assay_free(from->at);
  from->at = NULL;
  from->n = from->n_values = 0;
  to->at = at;
  to->n = n + 1;
  to->n_values = values;
  return NULL;
}

assay_status_t assay_proof_samples(const assay_model_t* m, size_t n_given,
                                   const assay_input_shape_t* given, int n, uint64_t seed,
                                   assay_samples_t* out) {
  // Batches of one hide what is stretched; some models take nothing else, others want more room.
  static const int64_t sizes[][2] = {{2, 8}, {1, 1}, {2, 64}, {1, 64}, {2, 1}, {2, 224}, {1, 224}};
  const size_t n_inputs = m->graph->n_inputs;
  assay_input_shape_t* shapes = NULL;
  int64_t(*dims)[ASSAY_MAX_RANK] = NULL;
  bool open = true;
  assay_status_t st = assay_new_array(n_inputs, sizeof *shapes, &shapes);
  if (!st) st = assay_new_array(n_inputs, sizeof *dims, &dims);
  for (size_t k = 0; !st && open && k < sizeof sizes / sizeof *sizes; k++)
    for (int i = 0; !st && i < (n > 1 ? n : 1); i++) {
      size_t n_shapes = 0;
      assay_samples_t one = {0};
      open = close_with(m, sizes[k][0], sizes[k][1], n_given, given, shapes, dims, &n_shapes);
      st = assay_samples_generate_shaped(m, n_shapes, shapes, seed + (uint64_t)i, &one);
      if (!st) st = append(out, &one);
      assay_samples_deinit(&one);
    }
  // Marks samples of which some may be too much for the model.
  if (!st && open) assay_str_append(&out->notes, "sizes are tried");
  if (!st) st = assay_str_status(&out->notes);
  assay_free(shapes);
  assay_free(dims);
  if (st) assay_samples_deinit(out);
  return st;
}
