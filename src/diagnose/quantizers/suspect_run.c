// A run with other scales of a quantizer, and how far golden is off then.
#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/quantizers/suspect.h"

typedef assay_quantizer_suspect_t suspect_t;
typedef assay_suspect_measured_t measured_t;

assay_status_t assay_suspect_measure(suspect_t* u, measured_t* out,
                                     assay_output_check_t** out_outputs) {
  assay_output_check_t* outputs = NULL;
  ASSAY_TRY(assay_output_checks_create(u->model->graph, NULL, &outputs));
  assay_status_t st = assay_states_run(u->states, u->at, out_outputs != NULL, outputs);
  *out = (measured_t){0};
  for (size_t i = 0; !st && i < u->q->n_outputs; i++) {
    const assay_error_sum_t *e = &outputs[i].engine_golden, *g = &outputs[i].golden,
                            *moved = &outputs[i].error;
    if (!outputs[i].has_golden || !outputs[i].is_float || !(e->sum_ref2 > 0)) continue;
    out->off = fmax(out->off, e->mismatched ? (double)INFINITY : e->sum_err2 / e->sum_ref2);
    out->off_base = fmax(out->off_base, moved->sum_err2 / e->sum_ref2);
    out->moved += moved->sum_err2 / e->sum_ref2;
    out->wrong += g->sum_err2 / e->sum_ref2;
    out->toward += (g->sum_err2 + moved->sum_err2 - e->sum_err2) / 2 / e->sum_ref2;
  }
  if (st || !out_outputs) return assay_free(outputs), st;
  assay_outputs_free(*out_outputs, u->q->n_outputs);
  *out_outputs = outputs;
  return NULL;
}

assay_quantizer_state_t assay_suspect_state(assay_quantizer_change_t change) {
  return change == ASSAY_QUANTIZER_PAIRED ? ASSAY_STATE_PAIRED
         : change == ASSAY_QUANTIZER_READ ? ASSAY_STATE_READ
                                          : ASSAY_STATE_FITS;
}

void assay_suspect_exchange(assay_quantizer_site_t* s, assay_quantizer_alternative_t* a) {
  const assay_quantizer_scales_t fits = s->fits;
  const bool other_sign = s->other_sign;
  s->fits = a->by;
  s->other_sign = a->other_sign;
  a->by = fits;
  a->other_sign = other_sign;
}

bool assay_suspect_is_late(const suspect_t* u) { return assay_clock_seconds() > u->deadline; }

// What golden is off by with an alternative.
assay_status_t assay_suspect_run_with(suspect_t* u, size_t site, assay_quantizer_alternative_t* a,
                                      measured_t* out) {
  const assay_quantizer_state_t was = u->at[site];
  const bool scales = a->change == ASSAY_QUANTIZER_SCALED;
  if (scales) assay_suspect_exchange(&u->q->at[site], a);
  u->at[site] = assay_suspect_state(a->change);
  assay_status_t st = assay_suspect_measure(u, out, NULL);
  u->at[site] = was;
  if (scales) assay_suspect_exchange(&u->q->at[site], a);
  return st;
}
