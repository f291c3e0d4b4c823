// The scales of Resize: exporters write the ratio of sizes for the scale that was asked for, or the
// other way round. Both give the same sizes and read other places. With every mode beside it.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/settings.h"

enum { SCALES = 200 };

// What the scale of a dimension may have been: the ratio, then numbers of few digits and small
// fractions whose product with the size rounds down to the size that is made.
// Source: ONNX Resize 10: output size = floor(input size * scale).
static int list_scales(int64_t size, int64_t made, double* out) {
  static const int PARTS[] = {10, 20, 100, 3, 6, 7, 9, 12, 16, 1000};
  int n = 0;
  out[n++] = (double)made / (double)size;
  for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
    const double low = (double)made / (double)size * PARTS[k];
    const double high = (double)(made + 1) / (double)size * PARTS[k];
    for (double x = ceil(low); x < high && n < SCALES; x++) {
      bool is_new = true;
      for (int i = 0; i < n; i++) is_new &= out[i] != x / PARTS[k];
      if (is_new) out[n++] = x / PARTS[k];
    }
  }
  return n;
}

static assay_status_t offer_scales(assay_missing_search_t* s, const double* scales) {
  assay_repair_t r = {.node = s->node, .cause = "constant numbers", .n_edits = 1};
  char text[160] = "";
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = 2};
  ASSAY_TRY(assay_tensor_copy(s->in[2], &r.edits[0].tensor));
  for (int64_t i = 0; i < s->in[2]->size; i++) {
    const size_t at = strlen(text);
    assay_f64(r.edits[0].tensor)[i] = (double)(float)scales[i];
    snprintf(text + at, sizeof text - at, i ? ", %.7g" : "%.7g", scales[i]);
  }
  snprintf(r.text, sizeof r.text, "scales = [%s]", text);
  assay_status_t st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

// Scales of the dimensions that grow: alike first, then each by itself.
static assay_status_t search_scales(assay_missing_search_t* s, const assay_tensor_t* want) {
  const assay_tensor_t *x = s->in[0], *now = s->in[2];
  double scales[ASSAY_MAX_RANK], list[SCALES];
  int grows[ASSAY_MAX_RANK], n_grows = 0;
  for (int i = 0; i < x->rank; i++) {
    scales[i] = assay_f64(now)[i];
    if (want->dims[i] != x->dims[i]) grows[n_grows++] = i;
  }
  if (!n_grows) return NULL;
  const int first = grows[0], n = list_scales(x->dims[first], want->dims[first], list);
  for (int k = 0; k < n && !assay_missing_is_over(s); k++) {
    for (int i = 0; i < n_grows; i++) {
      // The same scale where the sizes allow it; else the ratio.
      const int d = grows[i];
      const bool fits = floor((double)x->dims[d] * list[k]) == (double)want->dims[d];
      scales[d] = fits ? list[k] : (double)want->dims[d] / (double)x->dims[d];
    }
    ASSAY_TRY(offer_scales(s, scales));
  }
  return NULL;
}

// ---- modes -------------------------------------------------------------------------------------

static assay_repair_edit_t text_edit(const char* name, const char* text) {
  return (assay_repair_edit_t){.kind = ASSAY_EDIT_ATTR,
                               .attr = {.name = name,
                                        .type = ASSAY_ATTR_STRING,
                                        .n = 1,
                                        .doc = "",
                                        .ref = "",
                                        .u.s = {text, strlen(text)}}};
}

static assay_status_t search_modes(assay_missing_search_t* s) {
  static const char* const PLACES[] = {"half_pixel", "align_corners", "asymmetric",
                                       "half_pixel_symmetric", "pytorch_half_pixel"};
  static const char* const MODES[] = {"nearest", "linear", "cubic"};
  static const char* const ROUNDS[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  enum { N_ROUNDS = sizeof ROUNDS / sizeof *ROUNDS, N_MODES = sizeof MODES / sizeof *MODES };
  for (size_t p = 0; p < sizeof PLACES / sizeof *PLACES; p++) {
    for (size_t k = 0; k < N_ROUNDS + N_MODES - 1 && !assay_missing_is_over(s); k++) {
      const char* mode = MODES[k < N_ROUNDS ? 0 : k - N_ROUNDS + 1];
      assay_repair_t r = {.node = s->node, .cause = "mode", .n_edits = 2};
      r.edits[0] = text_edit("coordinate_transformation_mode", PLACES[p]);
      r.edits[1] = text_edit("mode", mode);
      if (k < N_ROUNDS) r.edits[r.n_edits++] = text_edit("nearest_mode", ROUNDS[k]);
      snprintf(r.text, sizeof r.text, "mode = '%s'%s%s, coordinate_transformation_mode = '%s'",
               mode, k < N_ROUNDS ? " by " : "", k < N_ROUNDS ? ROUNDS[k] : "", PLACES[p]);
      ASSAY_TRY(assay_missing_offer(s, &r));
    }
  }
  return NULL;
}

assay_status_t assay_settings_resize(assay_missing_search_t* s, const assay_tensor_t* want) {
  const assay_tensor_t *x = s->in[0], *scales = s->n_in > 2 ? s->in[2] : NULL;
  if (x->rank != want->rank) return NULL;
  if (scales && scales->store == ASSAY_STORE_F64 && scales->size == x->rank &&
      s->node->inputs[2]->constant)
    ASSAY_TRY(search_scales(s, want));
  return assay_missing_is_over(s) ? NULL : search_modes(s);
}
