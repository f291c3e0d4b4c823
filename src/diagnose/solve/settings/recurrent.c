// What recurrent layers clip their sums at: frameworks keep it beside the layer (Kaldi,
// TensorFlow's cell_clip), and exporters lose it, or write one that the framework does not have.
#include <stdio.h>
#include <string.h>

#include "diagnose/solve/settings.h"

static assay_repair_t clip_repair(assay_missing_search_t* s, assay_edit_kind_t kind, double clip) {
  assay_repair_t r = {.node = s->node, .cause = "attribute", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){
      .kind = kind,
      .attr = {.name = "clip", .type = ASSAY_ATTR_FLOAT, .n = 1, .doc = "", .ref = ""}};
  r.edits[0].attr.u.f = (float)clip;
  return r;
}

static assay_status_t clips(assay_missing_search_t* s) {
  static const double USUAL[] = {1, 2, 3,   5,   10,   15,  20,  30,  50,  100, 0.5, 0.25, 0.1, 4,
                                 6, 8, 1.5, 2.5, 0.75, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9,  1.2, 40};
  const double now = assay_attr_f64(s->node, "clip", 0);
  if (now > 0) {
    assay_repair_t r = clip_repair(s, ASSAY_EDIT_DROP, 0);
    snprintf(r.text, sizeof r.text, "no clip instead of %.6g", now);
    ASSAY_TRY(assay_missing_offer(s, &r));
  }
  for (size_t i = 0; i < sizeof USUAL / sizeof *USUAL && !assay_missing_is_over(s); i++) {
    assay_repair_t r = clip_repair(s, ASSAY_EDIT_ATTR, USUAL[i]);
    if (now > 0)
      snprintf(r.text, sizeof r.text, "clip = %.6g instead of %.6g", USUAL[i], now);
    else
      snprintf(r.text, sizeof r.text, "clip = %.6g is missing", USUAL[i]);
    ASSAY_TRY(assay_missing_offer(s, &r));
  }
  return NULL;
}

// Three blocks of each direction in another order.
static assay_status_t offer_order(assay_missing_search_t* s, size_t input, const int* order) {
  const assay_tensor_t* was = s->in[input];
  const int64_t row = was->dims[was->rank - 1], block = row / 3;
  assay_repair_t r = {.node = s->node, .cause = "gate order", .n_edits = 1};
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input};
  ASSAY_TRY(assay_tensor_copy(was, &r.edits[0].tensor));
  for (int64_t i = 0; i < was->size; i++) {
    const int64_t gate = i % row / block;
    assay_f64(r.edits[0].tensor)[i] = assay_f64(was)[i - i % row + order[gate] * block + i % block];
  }
  snprintf(r.text, sizeof r.text, "gates %d, %d, %d of '%.100s'", order[0], order[1], order[2],
           s->node->inputs[input]->name);
  assay_status_t st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

static assay_status_t peepholes(assay_missing_search_t* s) {
  enum { PEEPHOLES = 7 };
  static const int ORDERS[][3] = {{0, 2, 1}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
  const assay_tensor_t* p = s->n_in > PEEPHOLES ? s->in[PEEPHOLES] : NULL;
  if (!p || p->store != ASSAY_STORE_F64 || !p->rank || p->dims[p->rank - 1] % 3 != 0 ||
      !s->node->inputs[PEEPHOLES]->constant)
    return NULL;
  for (size_t i = 0; i < sizeof ORDERS / sizeof *ORDERS && !assay_missing_is_over(s); i++)
    ASSAY_TRY(offer_order(s, PEEPHOLES, ORDERS[i]));
  return NULL;
}

assay_status_t assay_settings_recurrent(assay_missing_search_t* s, const assay_tensor_t* want) {
  (void)want;
  ASSAY_TRY(clips(s));
  return assay_missing_is_over(s) ? NULL : peepholes(s);
}
