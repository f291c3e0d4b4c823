// The fewest changes of quantizers with which outputs are what golden demands: scales that fit,
// scales for each channel, or no quantizer at all.
#include <math.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/quantizers/states.h"

// A change that leaves more than this part of what was there is none.
static const double WORTH = 0.98;

typedef struct mend {
  assay_quantizers_t* q;
  assay_states_t* states;
  const assay_quantizers_options_t* options;
  const assay_graph_t* graph;
  assay_quantizer_state_t* at;
  double deadline;
  double worst;  // output's loss over what is allowed, with the changes that there are
  bool holds;
} mend_t;

static assay_quantizer_state_t state_of(assay_quantizer_change_t c) {
  switch (c) {
    case ASSAY_QUANTIZER_SCALED:
      return ASSAY_STATE_FITS;
    case ASSAY_QUANTIZER_APART:
      return ASSAY_STATE_APART;
    case ASSAY_QUANTIZER_FLOAT:
      return ASSAY_STATE_OFF;
    case ASSAY_QUANTIZER_PAIRED:
      return ASSAY_STATE_PAIRED;
    case ASSAY_QUANTIZER_READ:
      return ASSAY_STATE_READ;
    case ASSAY_QUANTIZER_KEPT:
      break;
  }
  return ASSAY_STATE_ON;
}

// Runs with the changes as they are; out may be NULL.
static assay_status_t run(mend_t* m, double* out_worst, bool* out_holds,
                          assay_output_check_t** out) {
  assay_output_check_t* outputs = NULL;
  for (size_t i = 0; i < m->q->n; i++) m->at[i] = state_of(m->q->change[i]);
  ASSAY_TRY(assay_output_checks_create(m->graph, m->options->require, &outputs));
  assay_status_t st = assay_outputs_want_slices(outputs, m->q->n_outputs, false);
  if (!st) st = assay_states_run(m->states, m->at, true, outputs);
  if (!st) {
    *out_worst = assay_quantizers_worst(m->q, outputs);
    *out_holds = assay_quantizers_hold(m->q, outputs, m->options->require);
  }
  if (st || !out) return assay_outputs_free(outputs, m->q->n_outputs), st;
  *out = outputs;
  return NULL;
}

// Takes a change over if it brings the outputs nearer to what is demanded.
static assay_status_t try_change(mend_t* m, size_t site, assay_quantizer_change_t change) {
  const assay_quantizer_change_t was = m->q->change[site];
  double worst = 0;
  bool holds = false;
  m->q->change[site] = change;
  ASSAY_TRY(run(m, &worst, &holds, NULL));
  if (!holds && !(worst < WORTH * m->worst)) return m->q->change[site] = was, NULL;
  if (holds == m->holds && worst > m->worst) return m->q->change[site] = was, NULL;
  m->worst = worst;
  m->holds = holds;
  return NULL;
}

static bool goes_on(const mend_t* m) { return !m->holds && assay_clock_seconds() < m->deadline; }

// Where no change helps without another: all that cost too much, those of unlike channels in float
// if these cannot have scales of their own.
static assay_status_t try_all(mend_t* m) {
  assay_quantizers_t* q = m->q;
  assay_quantizer_change_t* was = NULL;
  double worst = 0;
  bool holds = false;
  ASSAY_TRY(assay_new_array(q->n, sizeof *was, &was));
  for (size_t i = 0; i < q->n; i++) {
    const assay_quantizer_site_t* s = &q->at[i];
    const bool unlike = s->pattern == ASSAY_QUANTIZER_CHANNELS || assay_quantizer_is_for_mask(s);
    was[i] = q->change[i];
    if (s->stored || (!unlike && !(s->loss.all > s->loss.fitting))) continue;
    q->change[i] = s->apart.n  ? ASSAY_QUANTIZER_APART
                   : unlike    ? ASSAY_QUANTIZER_FLOAT
                   : s->fits.n ? ASSAY_QUANTIZER_SCALED
                               : was[i];
  }
  assay_status_t st = run(m, &worst, &holds, NULL);
  const bool better = !st && (holds || worst < WORTH * m->worst);
  for (size_t i = 0; i < q->n && !better; i++) q->change[i] = was[i];
  if (better) {
    m->worst = worst;
    m->holds = holds;
  }
  assay_free(was);
  return st;
}

static assay_status_t try_scales(mend_t* m, size_t site) {
  const assay_quantizer_site_t* s = &m->q->at[site];
  if (s->fits.n) ASSAY_TRY(try_change(m, site, ASSAY_QUANTIZER_SCALED));
  if (s->apart.n && goes_on(m)) ASSAY_TRY(try_change(m, site, ASSAY_QUANTIZER_APART));
  return NULL;
}

// Other scales where those cost less, the costliest first; then float, in the same way.
static assay_status_t add_changes(mend_t* m) {
  for (size_t i = 0; i < m->q->n && goes_on(m); i++)
    if (m->q->at[i].loss.all > m->q->at[i].loss.fitting) ASSAY_TRY(try_scales(m, i));
  if (goes_on(m)) ASSAY_TRY(try_all(m));
  for (size_t i = 0; i < m->q->n && goes_on(m); i++) {
    size_t costliest = m->q->n;
    double most = 0;
    for (size_t k = 0; k < m->q->n; k++) {
      const assay_quantizer_site_t* s = &m->q->at[k];
      const double left = m->q->change[k] == ASSAY_QUANTIZER_KEPT ? s->loss.all : s->loss.fitting;
      if (s->stored || m->q->change[k] == ASSAY_QUANTIZER_FLOAT || !(left > most)) continue;
      costliest = k;
      most = left;
    }
    if (costliest == m->q->n) break;
    ASSAY_TRY(try_change(m, costliest, ASSAY_QUANTIZER_FLOAT));
    if (m->q->change[costliest] != ASSAY_QUANTIZER_FLOAT) break;
  }
  return NULL;
}

// What holds without a change does not need it; without float, other scales may do.
static assay_status_t take_out(mend_t* m) {
  for (size_t i = m->q->n; i-- > 0 && assay_clock_seconds() < m->deadline;) {
    const assay_quantizer_change_t was = m->q->change[i];
    double worst = 0;
    bool holds = false;
    if (was == ASSAY_QUANTIZER_KEPT) continue;
    m->q->change[i] = ASSAY_QUANTIZER_KEPT;
    ASSAY_TRY(run(m, &worst, &holds, NULL));
    if (!holds && was == ASSAY_QUANTIZER_FLOAT && m->q->at[i].fits.n) {
      m->q->change[i] = ASSAY_QUANTIZER_SCALED;
      ASSAY_TRY(run(m, &worst, &holds, NULL));
    }
    if (!holds) m->q->change[i] = was;
  }
  return NULL;
}

static assay_status_t search(mend_t* m) {
  assay_quantizers_t* q = m->q;
  ASSAY_TRY(run(m, &m->worst, &m->holds, NULL));
  if (m->holds) return NULL;
  ASSAY_TRY(add_changes(m));
  if (m->holds) ASSAY_TRY(take_out(m));
  for (size_t i = 0; i < q->n; i++) q->n_changed += q->change[i] != ASSAY_QUANTIZER_KEPT;
  double worst = 0;
  return q->n_changed ? run(m, &worst, &q->verified, &q->fixed) : NULL;
}

assay_status_t assay_quantizers_mend(assay_quantizers_t* q, assay_states_t* states,
                                     const assay_quantizers_options_t* options, double deadline) {
  mend_t m = {.q = q,
              .states = states,
              .options = options,
              .graph = q->at[0].node->graph,
              .deadline = deadline};
  ASSAY_TRY(assay_new_array(q->n, sizeof *q->change, &q->change));
  ASSAY_TRY(assay_new_array(q->n, sizeof *m.at, &m.at));
  assay_status_t st = search(&m);
  assay_free(m.at);
  return st;
}
