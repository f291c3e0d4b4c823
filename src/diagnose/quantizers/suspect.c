// Quantizers whose scales golden tells to be wrong: others are tried with all quantizers running.
//
// First those that something else in the model speaks for (told.c), one after the other as long as
// golden comes nearer. Then, of stored integers, what exporters are known to do (known.c), for the
// few whose scales would explain the most of the difference: all scales of one are made a little
// larger, and how the outputs move is held against what golden is off by.
#include "diagnose/quantizers/suspect.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

// Outputs that are off by less than NEAR (60 dB) show no wrong scale. Changes are kept that leave
// this part of the error's energy at most; one of several has to take its part.
static const double NEAR = 1e-6, LEFT = 0.25, PART_OF_SEVERAL = 0.9;
// What golden of another kind would not come as near to by chance (50 dB).
static const double RESTORED = 1e-5;
// With the change truth as written is so many times nearer to golden, as energy, than truth without
// quantizers: golden is of a network that quantizes.
static const double NEARER = 1.7;
// Nothing is told of one quantizer unless it is so by a little more: of golden of the float network
// healthy ones explain half.
static const double QUANTIZES = 2;
// Ties of float32 move outputs, too; what is no more than so many times that shows nothing.
static const double TIES = 4, GONE = 0.03;

typedef assay_quantizer_suspect_t suspect_t;
typedef assay_suspect_measured_t measured_t;

enum { ROUNDS = 6, LIKELY = 6 };
// The last of the steps by which scales are fitted, and what has to be exact.
static const double FINEST = 1.002, EXACT = 1.00001;

// ---- trying ------------------------------------------------------------------------------------

static bool is_left(const suspect_t* u) { return u->now > NEAR && u->now > TIES * u->q->ties; }

static assay_status_t try_alternative(void* user, size_t site, assay_quantizer_alternative_t* a) {
  suspect_t* u = user;
  measured_t m = {0};
  if (assay_suspect_is_late(u) || u->q->change[site] != ASSAY_QUANTIZER_KEPT) return NULL;
  ASSAY_TRY(assay_suspect_run_with(u, site, a, &m));
  // A guess has to do by itself; what ties may do as well has to be gone.
  const double part = !is_left(u) ? GONE : a->exact ? PART_OF_SEVERAL : LEFT;
  if (!(m.off < fmin(u->best_off, part * u->now)) || (!a->exact && !is_left(u))) return NULL;
  assay_quantizer_scales_deinit(&u->best.by);
  u->best = *a;
  a->by = (assay_quantizer_scales_t){0};
  u->best_off = m.off;
  u->best_site = site;
  return NULL;
}

// What ties that float32 may have moved do to the outputs, as things are.
static assay_status_t find_ties(suspect_t* u) {
  measured_t m = {0};
  assay_quantizer_state_t *at = u->at, *ties = NULL;
  ASSAY_TRY(assay_new_array(u->q->n, sizeof *ties, &ties));
  for (size_t i = 0; i < u->q->n; i++)
    ties[i] = at[i] == ASSAY_STATE_ON && !u->q->at[i].stored ? ASSAY_STATE_TIES : at[i];
  u->at = ties;
  assay_status_t st = assay_suspect_measure(u, &m, NULL);
  u->at = at;
  assay_free(ties);
  u->q->ties = m.off_base;
  return st;
}

static void begin_round(suspect_t* u) {
  assay_quantizer_scales_deinit(&u->best.by);
  u->best = (assay_quantizer_alternative_t){0};
  u->best_off = (double)INFINITY;
}

static bool found_any(const suspect_t* u) { return u->best.change != ASSAY_QUANTIZER_KEPT; }

static assay_status_t take_best(suspect_t* u) {
  assay_quantizers_t* q = u->q;
  assay_quantizer_site_t* s = &q->at[u->best_site];
  const bool pair = u->best.change != ASSAY_QUANTIZER_SCALED;
  q->pair |= pair;
  q->exact = (q->n_changed == 0 || q->exact) && u->best.exact;
  q->change[u->best_site] = u->best.change;
  q->n_changed++;
  s->loss.all = u->now;
  s->loss.fitting = u->best_off;
  s->pattern = u->best.pattern;
  if (!pair) {
    assay_suspect_exchange(s, &u->best);
    if (!s->stored) s->loss.clipping = s->fits.scale[0] > s->has.scale[0] ? u->now : 0;
  }
  u->at[u->best_site] = assay_suspect_state(u->best.change);
  u->now = u->best_off;
  begin_round(u);
  assay_states_rest(u->states, u->at);
  return find_ties(u);
}

// ---- told --------------------------------------------------------------------------------------

static assay_status_t try_told(suspect_t* u) {
  const assay_quantizer_taker_t to = {try_alternative, u};
  for (int round = 0; round < ROUNDS && u->now > NEAR && !assay_suspect_is_late(u); round++) {
    begin_round(u);
    for (size_t i = 0; i < u->q->n; i++) ASSAY_TRY(assay_quantizer_told(u->q, i, &to));
    if (!found_any(u)) return NULL;
    ASSAY_TRY(take_best(u));
  }
  return NULL;
}

// ---- known -------------------------------------------------------------------------------------

typedef struct likely {
  size_t site;
  double explains;  // the part of what golden is off by
  double times;     // how many times as large its scales should be
} likely_t;

static int by_part(const void* a, const void* b) {
  const likely_t *x = a, *y = b;
  if (x->explains != y->explains) return x->explains < y->explains ? 1 : -1;
  return (x->site > y->site) - (x->site < y->site);
}

// What all scales of a site, a little larger, do to the outputs.
static assay_status_t probe(suspect_t* u, likely_t* l) {
  static const double LARGER = 1.03;
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
  measured_t m = {0};
  ASSAY_TRY(assay_quantizer_scaled(&u->q->at[l->site].has, LARGER, "", &a.by));
  assay_status_t st = assay_suspect_run_with(u, l->site, &a, &m);
  assay_quantizer_scales_deinit(&a.by);
  if (st || !(m.moved > 0) || !(m.wrong > 0)) return st;
  l->explains = m.toward * m.toward / (m.moved * m.wrong);
  l->times = 1 + (LARGER - 1) * m.toward / m.moved;
  return NULL;
}

static bool is_done(const suspect_t* u) { return found_any(u) && u->best_off < RESTORED; }

// Whether the best alternative moves scales by so little that a network's own quantization error
// may shrink by it by chance: a gain of its weights by a hundredth.
static bool is_slight(const suspect_t* u) {
  static const double SLIGHT = 0.02;
  const assay_quantizer_scales_t* has = &u->q->at[u->best_site].has;
  if (u->best.change != ASSAY_QUANTIZER_SCALED || u->best.by.n != has->n) return false;
  for (int64_t i = 0; i < has->n; i++)
    if (!(fabs(u->best.by.scale[i] / has->scale[i] - 1) < SLIGHT) ||
        u->best.by.zero[i] != has->zero[i])
      return false;
  return true;
}

// One that is slight has to bring golden back; where ties may have done it, which any slight change
// may turn back, golden has to point at it as well.
static bool found_enough(const suspect_t* u) {
  if (is_slight(u))
    return is_done(u) && (is_left(u) || u->q->blamed == u->q->at[u->best_site].node);
  return found_any(u) && u->best_off <= LEFT * u->now;
}

// One scale for all channels that should have their own: what they were, golden may tell.
static assay_status_t fit_channels(suspect_t* u, size_t site, double explains) {
  static const double SOME = 0.02;
  enum { MOST = 64 };
  const assay_quantizer_scales_t* has = &u->q->at[site].has;
  bool same = has->n > 2 && has->n <= MOST;
  for (int64_t i = 1; same && i < has->n; i++) same = has->scale[i] == has->scale[0];
  if (!same || explains < SOME || !is_left(u)) return NULL;
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
  double off = u->now;
  ASSAY_TRY(assay_quantizer_scaled(has, 1, "fitted to golden", &a.by));
  assay_status_t st = assay_suspect_fit_channels(u, site, &a, NULL, FINEST, &off);
  if (!st && off < u->best_off)
    st = assay_quantizer_offer(&(assay_quantizer_taker_t){try_alternative, u}, site, &a);
  assay_quantizer_scales_deinit(&a.by);
  return st;
}

// Integers of 32 bits are hardly ever the same: where two are of the largest magnitude, a limit has
// left them.
static bool is_cut_off(const suspect_t* u, const assay_quantizer_site_t* s, const bool* cut,
                       int64_t n) {
  int64_t same = 0;
  for (int64_t i = 0; cut && i < n; i++) same += cut[i];
  return same > 1 || (cut && u->q->blamed == s->node);
}

// Integers that were cut off: what they were, golden may tell.
static assay_status_t fit_cut_off(suspect_t* u, size_t site) {
  const assay_quantizer_site_t* s = &u->q->at[site];
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED};
  assay_tensor_t* integers = NULL;
  bool* cut = NULL;
  double off = u->now;
  if (!s->stored || !s->bias) return NULL;
  ASSAY_TRY(assay_quantizer_integers(s, &integers));
  assay_status_t st = assay_quantizer_cut_off(s, integers, &cut);
  if (!st && !is_cut_off(u, s, cut, integers->size)) assay_free(cut), cut = NULL;
  if (!st && cut) st = assay_quantizer_scales_create(0, integers->size, &a.by);
  for (int64_t i = 0; !st && cut && i < a.by.n; i++) {
    const int64_t k = assay_quantizer_scale_at(&s->has, integers, i);
    a.by.scale[i] = s->has.scale[k];
    a.by.zero[i] = s->has.zero[k];
  }
  if (!st && cut) st = assay_suspect_fit_channels(u, site, &a, cut, EXACT, &off);
  // They were integers.
  for (int64_t i = 0; !st && cut && i < a.by.n; i++) {
    const double scale = s->has.scale[assay_quantizer_scale_at(&s->has, integers, i)];
    const double q = (double)assay_i64(integers)[i];
    if (cut[i]) a.by.scale[i] = (double)(float)(scale * rint(q * a.by.scale[i] / scale) / q);
  }
  a.by.how = "its largest integers were cut off";
  a.exact = true;
  if (!st && cut && off < u->best_off)
    st = assay_quantizer_offer(&(assay_quantizer_taker_t){try_alternative, u}, site, &a);
  assay_quantizer_scales_deinit(&a.by);
  assay_tensor_release(integers);
  assay_free(cut);
  return st;
}

// The scales of the one that golden points at: it has to be brought back.
static assay_status_t fit_blamed(suspect_t* u, size_t site) {
  enum { MOST = 64 };
  const assay_quantizer_scales_t* has = &u->q->at[site].has;
  assay_quantizer_alternative_t a = {.change = ASSAY_QUANTIZER_SCALED, .exact = true};
  double off = u->now;
  if (has->n > MOST) return NULL;
  ASSAY_TRY(assay_quantizer_scaled(has, 1, "fitted to golden", &a.by));
  assay_status_t st = assay_suspect_fit_channels(u, site, &a, NULL, EXACT, &off);
  if (!st && off < fmin(u->best_off, GONE * u->now))
    st = assay_quantizer_offer(&(assay_quantizer_taker_t){try_alternative, u}, site, &a);
  assay_quantizer_scales_deinit(&a.by);
  return st;
}

// The zero points of stored weights: they have to bring golden back.
static assay_status_t fit_zeros(suspect_t* u, size_t site) {
  assay_quantizer_alternative_t a = {
      .change = ASSAY_QUANTIZER_SCALED, .exact = true, .pattern = ASSAY_QUANTIZER_ZERO};
  double off = u->now;
  if (!is_left(u)) return NULL;
  ASSAY_TRY(assay_quantizer_scaled(&u->q->at[site].has, 1, "fitted to golden", &a.by));
  assay_status_t st = assay_suspect_fit_zeros(u, site, &a, &off);
  if (!st && off < fmin(u->best_off, GONE * u->now))
    st = assay_quantizer_offer(&(assay_quantizer_taker_t){try_alternative, u}, site, &a);
  assay_quantizer_scales_deinit(&a.by);
  return st;
}

static assay_status_t try_known(suspect_t* u) {
  const assay_quantizer_taker_t to = {try_alternative, u};
  likely_t* of = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(u->q->n, sizeof *of, &of));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < u->q->n && !assay_suspect_is_late(u); i++) {
    if (!u->q->at[i].stored || u->q->change[i] != ASSAY_QUANTIZER_KEPT) continue;
    of[n].site = i;
    st = probe(u, &of[n++]);
  }
  qsort(of, n, sizeof *of, by_part);
  begin_round(u);
  for (size_t k = 0; !st && k < n; k++) st = fit_cut_off(u, of[k].site);
  for (size_t k = 0; !st && k < n && !is_done(u); k++) st = fit_zeros(u, of[k].site);
  for (size_t k = 0; !st && k < n && !is_done(u); k++)
    if (u->q->at[of[k].site].node == u->q->blamed) st = fit_blamed(u, of[k].site);
  for (size_t k = 0; !st && k < n && k < LIKELY; k++)
    st = assay_quantizer_known(u->q, of[k].site, of[k].times, &to);
  for (size_t i = 0; !st && !is_done(u) && i < u->q->n; i++)
    if (!u->q->at[i].stored) st = assay_quantizer_known(u->q, i, 0, &to);
  if (!st && found_any(u) && !u->best.exact) st = assay_suspect_refine(u);
  for (size_t k = 0; !st && !found_enough(u) && k < n; k++)
    st = fit_channels(u, of[k].site, of[k].explains);
  for (size_t k = 0; !st && !found_enough(u) && k < n; k++)
    st = assay_quantizer_known(u->q, of[k].site, 0, &to);
  assay_free(of);
  if (!st && found_enough(u)) st = take_best(u);
  return st;
}

// ---- together ----------------------------------------------------------------------------------

// What golden does not need is taken back.
static assay_status_t take_out(suspect_t* u) {
  static const double NEEDED = 1.1;
  assay_quantizers_t* q = u->q;
  for (size_t i = 0; i < q->n && q->n_changed > 1; i++) {
    if (q->change[i] == ASSAY_QUANTIZER_KEPT) continue;
    measured_t m = {0};
    const assay_quantizer_state_t was = u->at[i];
    u->at[i] = ASSAY_STATE_ON;
    ASSAY_TRY(assay_suspect_measure(u, &m, NULL));
    if (m.off > NEEDED * u->now) {
      u->at[i] = was;
      continue;
    }
    q->change[i] = ASSAY_QUANTIZER_KEPT;
    q->at[i].loss = (assay_quantizer_loss_t){0};
    q->at[i].pattern = ASSAY_QUANTIZER_FITS;
    q->n_changed--;
    u->now = m.off;
  }
  return NULL;
}

static assay_status_t conclude(suspect_t* u, double plain) {
  assay_quantizers_t* q = u->q;
  measured_t m = {0};
  ASSAY_TRY(take_out(u));
  q->suspected = q->measured = true;
  q->blamed = NULL;  // what mends golden is told
  q->certain = q->pair || u->now < RESTORED || NEARER * u->now < plain;
  q->before = u->before;
  q->after = u->now;
  for (size_t i = 0; i < q->n; i++)
    if (q->change[i] != ASSAY_QUANTIZER_KEPT) assay_quantizer_explain(&q->at[i]);
  return assay_suspect_measure(u, &m, &q->fixed);
}

static assay_status_t search(suspect_t* u) {
  assay_quantizers_t* q = u->q;
  measured_t plain = {0}, written = {0};
  ASSAY_TRY(assay_states_create(u->model, q, u->options, false, &u->states));
  ASSAY_TRY(assay_states_observe(u->states, u->q));
  for (size_t i = 0; i < q->n; i++) u->at[i] = q->at[i].stored ? ASSAY_STATE_ON : ASSAY_STATE_OFF;
  ASSAY_TRY(assay_suspect_measure(u, &plain, NULL));
  assay_states_destroy(u->states);
  u->states = NULL;
  ASSAY_TRY(assay_states_create(u->model, q, u->options, true, &u->states));
  for (size_t i = 0; i < q->n; i++) u->at[i] = ASSAY_STATE_ON;
  ASSAY_TRY(assay_suspect_measure(u, &written, NULL));
  u->before = u->now = written.off;
  if (!(u->before > NEAR) || !isfinite(u->before)) return NULL;
  ASSAY_TRY(find_ties(u));
  ASSAY_TRY(try_told(u));
  if (u->now > NEAR && QUANTIZES * u->before < plain.off) ASSAY_TRY(assay_suspect_attribute(u));
  if (u->now > NEAR) ASSAY_TRY(try_known(u));
  return q->n_changed && u->now <= LEFT * u->before ? conclude(u, plain.off) : NULL;
}

assay_status_t assay_quantizers_suspect(const assay_model_t* model,
                                        const assay_quantizers_options_t* options,
                                        assay_quantizers_t* out) {
  static const double PART = 0.5;
  const double seconds = options->seconds > 0 ? options->seconds : 40;
  suspect_t u = {.q = out,
                 .model = model,
                 .options = options,
                 .deadline = assay_clock_seconds() + PART * seconds};
  assay_status_t st = assay_quantizers_find(model, true, out);
  if (!st && out->n && options->inputs->n) {
    out->n_outputs = model->graph->n_outputs;
    st = assay_new_array(out->n_outputs, sizeof *out->outputs, &out->outputs);
    for (size_t i = 0; !st && i < out->n_outputs; i++)
      out->outputs[i].value = model->graph->outputs[i];
    if (!st) st = assay_new_array(out->n, sizeof *u.at, &u.at);
    if (!st) st = assay_new_array(out->n, sizeof *out->change, &out->change);
    if (!st) st = search(&u);
    assay_states_destroy(u.states);
    assay_quantizer_scales_deinit(&u.best.by);
    assay_free(u.at);
  }
  if (!st && out->suspected) return NULL;
  const assay_quantizers_t found = *out;
  assay_quantizers_deinit(out);
  if (st || !found.blamed) return st;
  out->blamed = found.blamed;
  out->n_rivals = found.n_rivals;
  memcpy(out->rivals, found.rivals, sizeof out->rivals);
  out->explained = found.explained;
  return NULL;
}
