// Which quantizer is at fault, where no scales that are known mend golden.
//
// A quantizer that is wrong moves all samples the same way: what golden is off by is held against
// what the outputs do when it is changed, of stored integers by larger scales and by half a step
// away from zero, which rounding towards zero has taken from them; of others by going through
// without rounding. How far it has to go is told by the other samples, each in turn: what chance
// has moved, as ties in another engine's arithmetic, none of them can tell.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/quantizers/suspect.h"

typedef assay_quantizer_suspect_t suspect_t;
typedef assay_suspect_measured_t measured_t;

enum { MOST_SAMPLES = 8 };

// Of healthy networks whose ties another engine turned 0.15 was seen.
static const double ENOUGH = 0.25;

// One change of a site, sample by sample.
typedef struct move {
  double toward[MOST_SAMPLES], moved[MOST_SAMPLES], wrong[MOST_SAMPLES];
  size_t n;
} move_t;

// The part of the energy that the change takes away from each sample, gone as far as the others
// tell.
static double explained_by(const move_t* m) {
  double left = 0, all = 0;
  for (size_t k = 0; k < m->n; k++) {
    double toward = 0, moved = 0;
    for (size_t j = 0; j < m->n; j++)
      if (j != k) toward += m->toward[j], moved += m->moved[j];
    const double far = moved > 0 ? toward / moved : 0;
    left += m->wrong[k] - 2 * far * m->toward[k] + far * far * m->moved[k];
    all += m->wrong[k];
    // Towards golden, in each of them.
    if (!(far > 0) || !(m->toward[k] > 0)) return 0;
  }
  return all > 0 ? 1 - left / all : 0;
}

static assay_status_t measure(suspect_t* u, size_t site, assay_quantizer_alternative_t* a,
                              assay_quantizer_state_t state, move_t* out) {
  const size_t n = assay_states_samples(u->states);
  const assay_quantizer_state_t was = u->at[site];
  assay_status_t st = NULL;
  *out = (move_t){.n = n < MOST_SAMPLES ? n : MOST_SAMPLES};
  for (size_t k = 0; !st && k < out->n; k++) {
    measured_t m = {0};
    assay_states_only(u->states, k);
    if (a) {
      st = assay_suspect_run_with(u, site, a, &m);
    } else {
      u->at[site] = state;
      st = assay_suspect_measure(u, &m, NULL);
      u->at[site] = was;
    }
    // Each sample counts alike.
    const double scale = m.wrong > 0 ? 1 / m.wrong : 0;
    out->toward[k] = scale * m.toward;
    out->moved[k] = scale * m.moved;
    out->wrong[k] = scale * m.wrong;
  }
  assay_states_only(u->states, ASSAY_ALL_SAMPLES);
  return st;
}

static assay_status_t explained_at(suspect_t* u, size_t site, double* out) {
  static const double LARGER = 1.01;
  const assay_quantizer_site_t* s = &u->q->at[site];
  move_t m;
  if (!s->stored) {
    ASSAY_TRY(measure(u, site, NULL, ASSAY_STATE_THROUGH, &m));
    *out = explained_by(&m);
    return NULL;
  }
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
  ASSAY_TRY(assay_quantizer_scaled(&s->has, LARGER, "", &a.by));
  assay_status_t st = measure(u, site, &a, ASSAY_STATE_ON, &m);
  assay_quantizer_scales_deinit(&a.by);
  *out = explained_by(&m);
  if (!st) st = measure(u, site, NULL, ASSAY_STATE_AWAY, &m);
  *out = fmax(*out, explained_by(&m));
  return st;
}

static void blame(assay_quantizers_t* q, const double* explained) {
  enum { RIVALS = sizeof q->rivals / sizeof *q->rivals };
  // Where many explain as much, outputs are too few.
  static const double NEARLY = 0.6;
  const size_t crowd = 4 + q->n / 16;
  size_t best = 0, as_much = 0;
  for (size_t i = 0; i < q->n; i++)
    if (explained[i] > explained[best]) best = i;
  for (size_t i = 0; i < q->n; i++) as_much += explained[i] > NEARLY * explained[best];
  if (!(explained[best] > ENOUGH) || as_much > crowd) return;
  q->blamed = q->at[best].node;
  q->explained = explained[best];
  for (int r = 0; r < RIVALS; r++) {
    const assay_node_t* next = NULL;
    double most = NEARLY * explained[best];
    for (size_t i = 0; i < q->n; i++) {
      bool known = i == best;
      for (size_t k = 0; k < q->n_rivals; k++) known |= q->rivals[k] == q->at[i].node;
      if (!known && explained[i] > most) most = explained[i], next = q->at[i].node;
    }
    if (next) q->rivals[q->n_rivals++] = next;
  }
}

// What a limit has left are the largest integers in magnitude, of one sign or of both.
assay_status_t assay_quantizer_cut_off(const assay_quantizer_site_t* s,
                                       const assay_tensor_t* integers, bool** out) {
  static const double WIDE = 1024;  // limits below are of numbers that few integers tell apart
  double most = 0;
  int64_t n = 0;
  *out = NULL;
  if (!s->bias || integers->rank != 1) return NULL;
  for (int64_t i = 0; i < integers->size; i++) {
    const double q = fabs((double)assay_i64(integers)[i]);
    n = q > most ? 1 : n + (q == most);
    most = fmax(most, q);
  }
  if (most < WIDE || n == integers->size) return NULL;
  ASSAY_TRY(assay_new_array((size_t)integers->size, sizeof **out, out));
  for (int64_t i = 0; i < integers->size; i++)
    (*out)[i] = fabs((double)assay_i64(integers)[i]) == most;
  return NULL;
}

assay_status_t assay_suspect_attribute(suspect_t* u) {
  assay_quantizers_t* q = u->q;
  double* explained = NULL;
  if (assay_states_samples(u->states) < 2) return NULL;
  ASSAY_TRY(assay_new_array(q->n, sizeof *explained, &explained));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < q->n && !assay_suspect_is_late(u); i++)
    if (q->change[i] == ASSAY_QUANTIZER_KEPT) st = explained_at(u, i, &explained[i]);
  if (!st) blame(q, explained);
  assay_free(explained);
  return st;
}
