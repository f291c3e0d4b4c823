#include "accuracy/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accuracy/search_trial.h"
#include "base/alloc.h"

enum { STAGES = 3 };

double assay_seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// A repair that may be tried: a row of the table makes it again when its turn comes.
typedef struct candidate {
  size_t position;  // of the node
  size_t row;
  size_t ordinal;  // among those that the row offers for the node
  double score;    // smaller ones first
  bool reshapes, done;
} candidate_t;

typedef struct candidates {
  candidate_t* at;
  size_t n, capacity;
  size_t unlisted;  // the first nodes, which there was no time for
  bool begun;
} candidates_t;

typedef struct hunt {
  assay_trials_t trials;
  candidates_t lists[STAGES];
  double start, end;  // of the search
  double until;       // of what is being done
  // What is done with offers of the row at work.
  candidates_t* listing;
  const candidate_t* trying;
  size_t row, offered;
} hunt_t;

// ---- asking rows of the table -------------------------------------------------------------------

static assay_status_t widen_all(const assay_machine_t* m, size_t n, assay_value_t* const* values,
                                assay_tensor_t** out) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_t* x = values[i] ? assay_machine_get(m, values[i]) : NULL;
    if (x) ASSAY_TRY(assay_tensor_widen(x, &out[i]));
  }
  return NULL;
}

// Calls the rows [first, end) of a stage for a node; their offers go to `offer`.
static assay_status_t ask(hunt_t* h, size_t position, size_t first, size_t end, int stage,
                          const assay_trial_t* trial) {
  const assay_search_t* s = h->trials.s;
  const assay_node_t* n = s->nodes[position];
  assay_tensor_t **in = NULL, **out = NULL;
  bool stop = false;
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *out, &out);
  if (!st) st = widen_all(s->machine, n->n_inputs, n->inputs, in);
  if (!st) st = widen_all(s->machine, n->n_outputs, n->outputs, out);
  h->trials.position = position;
  const assay_suspect_t suspect = {s->model, n, n->n_inputs, n->n_outputs, in, out};
  for (size_t i = first; !st && !stop && i < end; i++) {
    const assay_proposal_t* p = assay_proposal_get(i);
    if (p->stage != stage) continue;
    h->row = i;
    h->offered = 0;
    h->trials.rank = (int)i;
    st = p->propose(&suspect, p->cause, trial, &stop);
  }
  for (size_t i = 0; in && i < n->n_inputs; i++) assay_tensor_release(in[i]);
  for (size_t i = 0; out && i < n->n_outputs; i++) assay_tensor_release(out[i]);
  assay_free(in);
  assay_free(out);
  return st;
}

// ---- suspicion ----------------------------------------------------------------------------------

// Errors neither grow nor fade much from layer to layer, relative to the values: a repair that moves
// its node by about as much as the targets are off is the likeliest. Behind that: late nodes are
// cheap to try, and earlier rows are likelier causes.
static double score_of(const hunt_t* h, const assay_trial_effect_t* e) {
  const double needed = fmin(1, sqrt(h->trials.before)), n = (double)h->trials.s->n_nodes;
  const double behind = (n - (double)h->trials.position) / n;
  const double gain = e->change > 0 ? fmin(4, fabs(log10(needed / e->change))) : 4;
  return gain + 0.8 * behind + 0.02 * (double)h->row;
}

// What is not looked at counts as neither likely nor unlikely; so do parameters that can be fitted
// to anything.
static const double UNKNOWN_GAIN = 5, FITTED_GAIN = 2;

static assay_status_t list_offer(void* user, const assay_repair_t* r, bool* stop) {
  hunt_t* h = user;
  candidates_t* list = h->listing;
  const double now = assay_seconds_now();
  assay_trial_effect_t e = {.fits = true};
  const double needed = fmin(1, sqrt(h->trials.before));
  const size_t ordinal = h->offered++;
  *stop = false;
  if (r->fits)
    e.change = needed / FITTED_GAIN;
  else if (now < h->until)
    ASSAY_TRY(assay_trials_look(&h->trials, r, &e));
  else
    e.change = needed / UNKNOWN_GAIN;
  if (!e.fits) return NULL;
  ASSAY_TRY(assay_grow(&list->at, &list->capacity, list->n + 1, sizeof *list->at));
  list->at[list->n++] = (candidate_t){.position = h->trials.position,
                                      .row = h->row,
                                      .ordinal = ordinal,
                                      .score = score_of(h, &e),
                                      .reshapes = e.reshapes};
  return NULL;
}

static int by_score(const void* a, const void* b) {
  const candidate_t *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? -1 : 1;
  if (x->position != y->position) return x->position > y->position ? -1 : 1;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

// Lists the repairs of a stage, the most suspicious first. Looking at each in its own node may take
// a part of the stage's time.
static assay_status_t list_stage(hunt_t* h, int stage, double until) {
  candidates_t* list = &h->lists[stage];
  const assay_trial_t trial = {list_offer, h};
  const double now = assay_seconds_now();
  if (!list->begun) list->unlisted = h->trials.s->n_nodes;
  list->begun = true;
  if (!list->unlisted) return NULL;
  h->listing = list;
  h->until = now + 0.4 * (until - now);
  while (list->unlisted > 0 && assay_seconds_now() < until)
    ASSAY_TRY(ask(h, --list->unlisted, 0, assay_proposal_count(), stage + 1, &trial));
  if (list->n) qsort(list->at, list->n, sizeof *list->at, by_score);
  return NULL;
}

// ---- trying -------------------------------------------------------------------------------------

static assay_status_t try_offer(void* user, const assay_repair_t* r, bool* stop) {
  hunt_t* h = user;
  if (h->offered++ != h->trying->ordinal) return NULL;
  *stop = true;
  return assay_trials_try(&h->trials, r);
}

static assay_status_t try_candidate(hunt_t* h, int stage, candidate_t* c) {
  const assay_trial_t trial = {try_offer, h};
  c->done = true;
  h->trying = c;
  return ask(h, c->position, c->row, c->row + 1, stage + 1, &trial);
}

// The rows above the one that restored golden, for its own node: the same may be told better.
static assay_status_t try_better_rows(hunt_t* h, int stage, const candidate_t* found) {
  candidates_t* list = &h->lists[stage];
  for (size_t i = 0; i < list->n && assay_seconds_now() < h->end; i++) {
    candidate_t* c = &list->at[i];
    if (c->done || c->position != found->position || c->row >= found->row) continue;
    ASSAY_TRY(try_candidate(h, stage, c));
  }
  return NULL;
}

// Tries a stage's candidates, those that reshape or the others. Once golden is restored it goes on
// for half as long again: what else restores it is a rival.
static assay_status_t try_stage(hunt_t* h, int stage, bool reshaping, double until) {
  candidates_t* list = &h->lists[stage];
  ASSAY_TRY(list_stage(h, stage, until));
  h->until = until;
  for (size_t i = 0; i < list->n; i++) {
    candidate_t* c = &list->at[i];
    if (c->done || c->reshapes != reshaping) continue;
    const double now = assay_seconds_now();
    if (now > h->until) {
      h->trials.s->cut_short |= !h->trials.found;
      break;
    }
    const bool before = h->trials.found;
    ASSAY_TRY(try_candidate(h, stage, c));
    if (before || !h->trials.found) continue;
    h->until = fmin(h->end, assay_seconds_now() + 0.5 * (now - h->start) + 0.1);
    ASSAY_TRY(try_better_rows(h, stage, c));
  }
  return NULL;
}

// Whether truth has the shapes that golden has.
static bool shapes_fit(const assay_search_t* s) {
  for (size_t k = 0; k < s->n_targets; k++)
    if (!assay_difference(s->targets[k].truth, s->targets[k].golden).comparable) return false;
  return true;
}

// Stage by stage over all suspects. Where truth has golden's shapes, a repair that changes a shape
// on the way is the less likely one: it comes behind. What a stage leaves of its time goes to the
// next ones, and in the end to what was cut short.
static assay_status_t run(hunt_t* h) {
  static const double shares[] = {0.35, 0.65, 0.75, 0.85, 0.9, 0.95};
  const bool fit = shapes_fit(h->trials.s);
  for (int k = 0; k < 4 * STAGES && !h->trials.found; k++) {
    const bool again = k >= 2 * STAGES;
    const bool reshaping = (k / STAGES % 2 == 1) == fit;
    const double share = again ? 1 : shares[k];
    if (again && assay_seconds_now() > h->end) break;
    ASSAY_TRY(try_stage(h, k % STAGES, reshaping, h->start + share * (h->end - h->start)));
  }
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

static void report(assay_trials_t* t, assay_fault_t* fault) {
  if (!t->n_best) return;
  const assay_kept_t* best = &t->best[0];
  fault->has_repair = true;
  fault->restored = best->restored;
  fault->repair = best->repair;
  fault->remains = best->remains;
  fault->node = best->repair.node;
  for (size_t i = 1; i < t->n_best; i++) {
    if (fault->n_rivals < 3) fault->rivals[fault->n_rivals++] = t->best[i].repair.node;
    assay_repair_deinit(&t->best[i].repair);
  }
  t->n_best = 0;
}

assay_status_t assay_search_run(assay_search_t* s, assay_fault_t* fault) {
  hunt_t h = {.start = assay_seconds_now(), .end = s->deadline};
  ASSAY_TRY(assay_trials_init(s, &h.trials));
  assay_status_t st = run(&h);
  if (!st) report(&h.trials, fault);
  for (int k = 0; k < STAGES; k++) assay_free(h.lists[k].at);
  assay_trials_deinit(&h.trials);
  return st;
}
