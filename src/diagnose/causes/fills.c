// What a result begins from: of a maximum the lowest number, of a sum nothing, of a product one.
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

// Inputs that a node begins from, or takes where there is nothing.
static const struct {
  const char* op;
  size_t input;
} rows[] = {{"ScatterElements", 0},
            {"ScatterND", 0},
            {"Scatter", 0},
            {"Where", 1},
            {"Where", 2},
            {"Clip", 1},
            {"Clip", 2},
            {"Max", 0},
            {"Max", 1},
            {"Min", 0},
            {"Min", 1}};

static const double fills[] = {0, 1, -FLT_MAX, FLT_MAX, -1e9, 1e9, -1e4, -1, -(double)INFINITY};

static bool is_uniform(const assay_tensor_t* x) {
  if (!x || x->kind != ASSAY_KIND_TENSOR || x->store != ASSAY_STORE_F64 || !x->size) return false;
  for (int64_t i = 1; i < x->size; i++)
    if (assay_f64(x)[i] != assay_f64(x)[0]) return false;
  return true;
}

static assay_status_t offer(const assay_suspect_t* s, const char* cause, size_t input, double fill,
                            const assay_trial_t* t, bool* stop) {
  const assay_tensor_t* x = s->in[input];
  const assay_value_t* v = s->node->inputs[input];
  char text[160];
  assay_tensor_t* y = NULL;
  if (assay_f64(x)[0] == fill || (fabs(fill) > 65504 && x->type == ASSAY_TYPE_FLOAT16)) return NULL;
  snprintf(text, sizeof text, "'%.80s' of %.4g, not of %.4g", v->name, fill, assay_f64(x)[0]);
  if (assay_around_is_constant(v)) {
    ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
    for (int64_t i = 0; i < y->size; i++) assay_f64(y)[i] = fill;
    return assay_offer_constant(s, cause, input, y, text, t, stop);
  }
  // Its shape may be another in another run.
  char program[64];
  snprintf(program, sizeof program, "x 0 * %.9g +", fill);
  const assay_formula_terms_t terms = {.program = program};
  assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_BEFORE);
  r.edits[0].input = input;
  snprintf(r.text, sizeof r.text, "%s", text);
  ASSAY_TRY(assay_formula_create(&terms, &r.edits[0].formula));
  return assay_offer(t, &r, stop);
}

// Source: pyg-team/pytorch_geometric issue 9587, a maximum of which the zeros that it begins from
// are part.
assay_status_t assay_propose_fill(const assay_suspect_t* s, const char* cause,
                                  const assay_trial_t* t, bool* stop) {
  if (!s->around || *s->node->domain) return NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const size_t input = rows[i].input;
    if (strcmp(rows[i].op, s->node->op_type) != 0 || input >= s->n_in || !s->node->inputs[input])
      continue;
    if (!is_uniform(s->in[input])) continue;
    for (size_t k = 0; k < sizeof fills / sizeof *fills && !*stop; k++)
      if (isfinite(fills[k]) || assay_around_is_constant(s->node->inputs[input]))
        ASSAY_TRY(offer(s, cause, input, fills[k], t, stop));
  }
  return NULL;
}
