// The repair search: which change of which node brings golden back?
#include "diagnose/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/functions.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/outputs/alike.h"
#include "diagnose/outputs/bias_sets.h"
#include "diagnose/outputs/channels.h"
#include "diagnose/outputs/columns.h"
#include "diagnose/outputs/dead_ends.h"
#include "diagnose/outputs/likelihood.h"
#include "diagnose/outputs/likely.h"
#include "diagnose/outputs/numbers/limits.h"
#include "diagnose/outputs/numbers/numbers.h"
#include "diagnose/outputs/numbers/tied.h"
#include "diagnose/outputs/orders.h"
#include "diagnose/outputs/permuted.h"
#include "diagnose/outputs/pulled.h"
#include "diagnose/outputs/slips.h"
#include "diagnose/search_joint.h"
#include "diagnose/search_predict.h"
#include "diagnose/search_reach.h"
#include "diagnose/search_screening.h"
#include "diagnose/search_trial.h"

enum { STAGES = 3, ANYWHERE = 4 };  // stages that all nodes are asked for; the likeliest only

// A repair that may be tried: a row of the table makes it again when its turn comes.
typedef struct candidate {
  size_t position;  // of the node
  size_t row;
  size_t ordinal;   // among those that the row offers for the node
  double expected;  // decades of what is to arrive, as guessed; NAN: not known
  double base;      // what does not depend on that
  double score;     // smaller ones first
  assay_forecast_t forecast;
  double promise;  // what it is forecast to leave
  double turn;     // when it is tried by that; smaller ones first
  int pair[2];     // ids of constants that are exchanged; -1: none
  uint64_t key;    // of the slip (outputs/alike.h)
  size_t input;    // of its first edit
  bool fits;
  bool done;
} candidate_t;

// What arrived of a change, in decades over what was expected.
typedef struct measure {
  size_t position;
  double decades;
} measure_t;

// Offers of a node that wait for a look: several are looked at at once.
enum { PENDING = 64, WEIGHTS = 8 };
static const double PENDING_BYTES = 0x1p26;

typedef struct pending {
  candidate_t candidate;
  assay_repair_t repair;
  assay_effect_t effect;
  const double* derivatives;  // by the constant that the repair changes; NULL: it is evaluated
  size_t input;
  assay_status_t status;
} pending_t;

typedef struct weight {
  size_t input, offers;
  bool asked;
  double* derivatives;  // NULL: not known
} weight_t;

// Candidates, in three orders, and what measures say of positions.
typedef struct listed {
  candidate_t* list;
  size_t n, capacity;
  candidate_t **by_suspicion, **by_forecast;
  double* corrections;
} listed_t;

typedef struct search_state {
  assay_trials_t trials;
  listed_t away;  // small expressions at every place, while the others are at work; and the reverse
  assay_surroundings_t around;
  bool* hidden;   // by value id: targets
  double* reach;  // by value id
  candidate_t* list;
  size_t n, capacity;
  candidate_t **by_suspicion, **by_forecast;  // the list in two orders
  measure_t* measures;
  size_t n_measures, cap_measures;
  double* corrections;  // by position: what the measures say of it
  double start, end;    // of the search
  double screen_until;
  assay_screening_t screening;
  pending_t pending[PENDING];
  size_t n_pending;
  double pending_bytes;
  // Of small expressions at every place: which nodes are asked, by position, and how many are left.
  bool* likely;  // NULL: all are, for the other stages
  size_t n_likely;
  weight_t weights[WEIGHTS];  // derivatives by constants of the node that is looked at
  // What is done with offers of the row at work.
  const candidate_t* trying;
  size_t row, offered;
  assay_repair_t* made;  // where try_offer copies what is asked for again
} search_state_t;

// ---- asking rows of the table -------------------------------------------------------------------

static assay_status_t widen_all(const assay_evaluator_t* m, size_t n, assay_value_t* const* values,
                                assay_tensor_t** out) {
  for (size_t i = 0; i < n; i++) {
    assay_tensor_t* x = values[i] ? assay_evaluator_get(m, values[i]) : NULL;
    if (x) ASSAY_TRY(assay_tensor_widen(x, &out[i]));
  }
  return NULL;
}

// Calls the rows [first, end) of a stage for a node; their offers go to `offer`.
static assay_status_t ask(search_state_t* h, size_t position, size_t first, size_t end, int stage,
                          const assay_trial_t* trial) {
  const assay_search_t* s = h->trials.s;
  const assay_node_t* n = s->nodes[position];
  assay_tensor_t **in = NULL, **out = NULL;
  bool stop = false;
  assay_status_t st = assay_new_array(n->n_inputs, sizeof *in, &in);
  if (!st) st = assay_new_array(n->n_outputs, sizeof *out, &out);
  if (!st) st = widen_all(s->evaluator, n->n_inputs, n->inputs, in);
  if (!st) st = widen_all(s->evaluator, n->n_outputs, n->outputs, out);
  h->trials.position = position;
  const assay_suspect_t suspect = {s->model, n, n->n_inputs, n->n_outputs, in, out, &h->around};
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

// Orders of magnitude by which other things make a repair less likely, or its trial dearer.
static const double LATER_STAGE = 0.2;  // each
static const double RESHAPING = 0.7;    // where truth has golden's shapes
static const double MANY_OFFERS = 0.8;  // times the decades of how many a row offers
static const double COST = 0.7;         // times the decades of what a trial costs

// What is not looked at counts as neither likely nor unlikely; so do parameters that can be fitted
// to anything.
static const double UNKNOWN_GAIN = 5, FITTED_GAIN = 2;

static double needed(const search_state_t* h) { return fmin(1, sqrt(h->trials.before)); }

// How much of a change of the node arrives.
static double reach_of(const search_state_t* h) {
  const assay_node_t* n = h->trials.s->nodes[h->trials.position];
  double max = 0;
  for (size_t k = 0; k < n->n_outputs; k++)
    if (n->outputs[k]) max = fmax(max, h->reach[n->outputs[k]->id]);
  return max;
}

// What the measures say of a position: the near ones count more, none of them for much if all are
// far.
static double correction(const search_state_t* h, size_t position) {
  const double n = (double)h->trials.s->n_nodes, far = 1 + n / 16;
  double sum = 0, weights = 1 / (far * far);
  for (size_t i = 0; i < h->n_measures; i++) {
    const double d = 1 + fabs((double)h->measures[i].position - (double)position);
    sum += h->measures[i].decades / (d * d);
    weights += 1 / (d * d);
  }
  return sum / weights;
}

static const double UNLIKELY = 4;  // decades from what is needed, at most

// A repair whose change arrives as about what the targets are off by is the likeliest.
static double gain_of(const search_state_t* h, const candidate_t* c) {
  const double now = assay_log10(fmax(needed(h), 1e-300));
  if (c->expected != c->expected) return assay_log10(UNKNOWN_GAIN);
  return fmin(UNLIKELY, fabs(now - c->expected - h->corrections[c->position]));
}

// After that: late nodes are cheap to try, and earlier rows are likelier causes.
static double base_of(const search_state_t* h, size_t row, const assay_effect_t* e) {
  const double n = (double)h->trials.s->n_nodes;
  const double behind = (n - (double)h->trials.position) / n;
  const int stage = assay_proposal_get(row)->stage;
  return COST * assay_log10(0.02 + behind) + LATER_STAGE * stage +
         (e->reshapes && h->screening.shapes_fit ? RESHAPING : 0);
}

// Lists what was looked at.
static assay_status_t list_pending(search_state_t* h, pending_t* p) {
  candidate_t* c = &p->candidate;
  const assay_effect_t* e = &p->effect;
  // Another shape that what comes after does not take may be right together with others.
  if (!e->fits && !e->reshapes) return NULL;
  c->done = !e->fits;
  if (!c->fits && e->change > 0) c->expected = assay_log10(fmax(e->change * reach_of(h), 1e-300));
  c->forecast = e->forecast;
  c->base = base_of(h, c->row, e) - (c->fits ? assay_log10(UNKNOWN_GAIN / FITTED_GAIN) : 0);
  ASSAY_TRY(assay_grow(&h->list, &h->capacity, h->n + 1, sizeof *h->list));
  h->list[h->n++] = *c;
  return NULL;
}

static void screen_at(const search_state_t* h, pending_t* p) {
  p->effect = (assay_effect_t){.fits = true};
  if (assay_clock_seconds() > h->screen_until) return;
  if (p->derivatives)
    assay_screen_linear(&h->screening, &p->repair, p->input, p->derivatives, &p->effect);
  else
    p->status = assay_screen(&h->screening, p->candidate.position, &p->repair, &p->effect);
}

// Looks at all offers that wait, several at a time, and lists them. A node with a body is evaluated
// in the machine's slots: one at a time.
static assay_status_t screen_pending(search_state_t* h) {
  const assay_node_t* n = h->trials.s->nodes[h->trials.position];
  const bool control = n->op && n->op->flags & ASSAY_OP_CONTROL;
  assay_status_t st = NULL;
#pragma omp parallel for schedule(dynamic) if (!control && h->n_pending > 1)
  for (size_t i = 0; i < h->n_pending; i++) screen_at(h, &h->pending[i]);
  for (size_t i = 0; i < h->n_pending; i++) {
    pending_t* p = &h->pending[i];
    if (p->status)
      st = st ? assay_status_join(st, p->status) : p->status;
    else if (!st)
      st = list_pending(h, p);
    assay_repair_deinit(&p->repair);
  }
  h->n_pending = 0;
  h->pending_bytes = 0;
  return st;
}

// The derivatives by a constant, once so many repairs change it that they are the cheaper way.
static assay_status_t weight_of(search_state_t* h, size_t input, const double** out) {
  enum { CHEAPER_FROM = 3 };
  *out = NULL;
  if (input >= WEIGHTS || !h->screening.predict) return NULL;
  weight_t* w = &h->weights[input];
  if (w->offers++ < CHEAPER_FROM) return NULL;
  if (!w->asked)
    ASSAY_TRY(
        assay_predict_constant(h->screening.predict, h->trials.position, input, &w->derivatives));
  w->asked = true;
  *out = w->derivatives;
  return NULL;
}

static void forget_weights(search_state_t* h) {
  for (size_t i = 0; i < WEIGHTS; i++) {
    assay_free(h->weights[i].derivatives);
    h->weights[i] = (weight_t){0};
  }
}

// Where next to nothing is left behind a node, a trial is as cheap as a look, and tells more.
static const double NOTHING_BEHIND = 0.04;

static bool is_cheap_to_try(const search_state_t* h, const assay_repair_t* r) {
  const double all = h->screening.work[h->trials.s->n_nodes - 1];
  return r->edits[0].kind != ASSAY_EDIT_EXCHANGE && r->edits[0].kind != ASSAY_EDIT_CROSS &&
         all - h->screening.work[h->trials.position] < NOTHING_BEHIND * all;
}

// Of what is tried at once the same slip in other nodes may be tried as well.
static assay_status_t list_tried(search_state_t* h, const assay_repair_t* r) {
  ASSAY_TRY(assay_grow(&h->list, &h->capacity, h->n + 1, sizeof *h->list));
  h->list[h->n++] = (candidate_t){.position = h->trials.position,
                                  .row = h->row,
                                  .ordinal = h->offered++,
                                  .expected = (double)NAN,
                                  .pair = {-1, -1},
                                  .key = assay_alike_key(r, h->row),
                                  .input = r->edits[0].input,
                                  .fits = r->fits,
                                  .done = true};
  return NULL;
}

static assay_status_t list_offer(void* user, const assay_repair_t* r, bool* stop) {
  search_state_t* h = user;
  if (is_cheap_to_try(h, r) && assay_clock_seconds() < h->screen_until) {
    *stop = false;
    ASSAY_TRY(list_tried(h, r));
    return assay_trials_try(&h->trials, r);
  }
  pending_t* p = &h->pending[h->n_pending];
  *p = (pending_t){.candidate = {.position = h->trials.position,
                                 .row = h->row,
                                 .ordinal = h->offered++,
                                 .expected = (double)NAN,
                                 .pair = {-1, -1},
                                 .key = assay_alike_key(r, h->row),
                                 .input = r->edits[0].input,
                                 .fits = r->fits},
                   .effect = {.fits = true}};
  *stop = false;
  if (r->edits[0].kind == ASSAY_EDIT_EXCHANGE) {
    const int a = r->edits[0].value->id, b = r->edits[0].other_value->id;
    p->candidate.pair[0] = a < b ? a : b;
    p->candidate.pair[1] = a < b ? b : a;
  }
  if ((r->fits && !h->screening.predict) || assay_clock_seconds() > h->screen_until)
    return list_pending(h, p);
  if (assay_screen_is_linear(r, &p->input)) {
    assay_status_t st = weight_of(h, p->input, &p->derivatives);
    if (assay_status_code(st) != ASSAY_NO_MEMORY) ASSAY_TRY(st);
    assay_status_free(assay_status_code(st) == ASSAY_NO_MEMORY ? st : NULL);
  }
  ASSAY_TRY(assay_repair_copy(r, &p->repair));
  for (size_t i = 0; i < r->n_edits; i++)
    if (r->edits[i].tensor) h->pending_bytes += 8 * (double)r->edits[i].tensor->size;
  if (++h->n_pending < PENDING && h->pending_bytes < PENDING_BYTES) return NULL;
  return screen_pending(h);
}

// Forecasts that leave no more than this are believed before anything else is tried; those that
// leave nearly everything are not looked at.
static const double SURE = 0.5, USELESS = 0.98;

static int by_place(const candidate_t* x, const candidate_t* y) {
  if (x->position != y->position) return x->position > y->position ? -1 : 1;
  if (x->row != y->row) return x->row < y->row ? -1 : 1;
  return x->ordinal < y->ordinal ? -1 : x->ordinal > y->ordinal;
}

static int by_score(const void* a, const void* b) {
  const candidate_t *x = *(candidate_t*const*)a, *y = *(candidate_t*const*)b;
  return x->score != y->score ? (x->score < y->score ? -1 : 1) : by_place(x, y);
}

// A forecast that nothing is gained makes a repair less likely than one without forecast: the more
// so, the smaller the difference is, and so the more linear the model.
static double doubt(const search_state_t* h, const candidate_t* c) {
  return c->forecast.known && c->promise > USELESS ? 1 - needed(h) : 0;
}

static void sort(search_state_t* h) {
  for (size_t i = 0; i < h->trials.s->n_nodes; i++) h->corrections[i] = correction(h, i);
  for (size_t i = 0; i < h->n; i++) {
    candidate_t* c = &h->list[i];
    c->score = c->base + gain_of(h, c) + doubt(h, c);
  }
  if (h->n) qsort(h->by_suspicion, h->n, sizeof *h->by_suspicion, by_score);
}

// ---- forecasts ----------------------------------------------------------------------------------

// What is left of the difference, as forecast: 1 and more promise nothing. A change that points the
// right way and goes too far, or not far enough, may be right: after it the model is not linear.
static double promise_of(const candidate_t* c) {
  const double best = assay_forecast_best(&c->forecast);
  if (!c->forecast.known) return HUGE_VAL;
  return c->fits ? best : fmin(assay_forecast_remains(&c->forecast), (1 + best) / 2);
}

// Of small expressions there are so many that some are forecast to leave little anywhere: those of
// the nodes whose repairs took most away before come earlier, and those of rows that offer few.
static double turn_of(const search_state_t* h, const candidate_t* c, double most, size_t offers) {
  static const double SUSPECTED = 0.5, EACH_DECADE = 0.1, LAST = 10;
  if (!h->likely || c->promise >= USELESS) return c->promise + (c->promise >= USELESS ? LAST : 0);
  const double merit = most > 0 ? h->trials.merit[c->position] / most : 0;
  return c->promise * (1 - SUSPECTED * merit) * (1 + EACH_DECADE * assay_log10((double)offers));
}

// Each row is about as likely to have the right one: what it offers in all nodes shares that.
static assay_status_t share_out(search_state_t* h) {
  size_t* offers = NULL;
  ASSAY_TRY(assay_new_array(assay_proposal_count(), sizeof *offers, &offers));
  for (size_t i = 0; i < h->n; i++)
    if (!h->list[i].done) offers[h->list[i].row]++;
  double most = 0;
  for (size_t i = 0; i < h->trials.s->n_nodes; i++) most = fmax(most, h->trials.merit[i]);
  for (size_t i = 0; i < h->n; i++) {
    candidate_t* c = &h->list[i];
    const size_t count = offers[c->row] ? offers[c->row] : 1;
    c->base += MANY_OFFERS * assay_log10((double)count);
    c->turn = turn_of(h, c, most, count);
  }
  assay_free(offers);
  return NULL;
}

static int by_promise(const void* a, const void* b) {
  const candidate_t *x = *(candidate_t*const*)a, *y = *(candidate_t*const*)b;
  if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
  return by_score(a, b);
}

static int by_pair(const void* a, const void* b) {
  const candidate_t *x = *(candidate_t*const*)a, *y = *(candidate_t*const*)b;
  for (int i = 0; i < 2; i++)
    if (x->pair[i] != y->pair[i]) return x->pair[i] < y->pair[i] ? -1 : 1;
  return by_place(x, y);
}

static bool same_pair(const candidate_t* a, const candidate_t* b) {
  return a->pair[0] >= 0 && a->pair[0] == b->pair[0] && a->pair[1] == b->pair[1];
}

// Two constants that are exchanged change all nodes that read them: what each of these offers looks
// at its own node only, and to first order the changes add up.
static void join_pair(candidate_t** pair, size_t n) {
  assay_forecast_t sum = {.known = true};
  for (size_t i = 0; i < n; i++) {
    const assay_forecast_t* f = &pair[i]->forecast;
    if (i > 0 && pair[i]->position == pair[i - 1]->position) continue;
    sum.known = sum.known && f->known;
    sum.along += f->along;
    for (int q = 0; q < ASSAY_PROBES - 1; q++) sum.across[q] += f->across[q];
  }
  for (size_t i = 0; i < n; i++) pair[i]->forecast = sum;
}

// What a forecast says of a node counts less than what a trial does.
static const double FORECAST_SHARE = 0.4;

static assay_status_t join_exchanges(search_state_t* h) {
  candidate_t** pairs = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_new_array(h->n, sizeof *pairs, &pairs));
  for (size_t i = 0; i < h->n; i++)
    if (h->list[i].pair[0] >= 0) pairs[n++] = &h->list[i];
  if (n) qsort(pairs, n, sizeof *pairs, by_pair);
  for (size_t i = 0, end; i < n; i = end) {
    for (end = i + 1; end < n && same_pair(pairs[i], pairs[end]); end++) continue;
    join_pair(pairs + i, end - i);
  }
  assay_free(pairs);
  for (size_t i = 0; i < h->n; i++) {
    candidate_t* c = &h->list[i];
    c->promise = promise_of(c);
    if (c->promise < 1) assay_trials_note(&h->trials, c->position, c->promise, FORECAST_SHARE);
  }
  return NULL;
}

// Lists what the rows offer for a node, and looks at it there. No node takes much more than its
// share of the time for looking.
static assay_status_t list_node(search_state_t* h, size_t position, double until) {
  enum { SHARES = 4 };
  const assay_trial_t trial = {list_offer, h};
  const assay_search_t* s = h->trials.s;
  if (assay_search_adopted(s, s->nodes[position])) return NULL;
  const double now = assay_clock_seconds(), before = position ? h->screening.work[position - 1] : 0;
  double share = (h->screening.work[position] - before) / h->screening.work[position];
  if (h->likely) share = 1 / (double)h->n_likely--;
  h->screen_until = now + fmin(1, SHARES * share) * fmax(0, until - now);
  assay_status_t st = NULL;
  h->trials.position = position;
  for (int stage = h->likely ? ANYWHERE : 1; !st && stage <= (h->likely ? ANYWHERE : STAGES);
       stage++)
    st = ask(h, position, 0, assay_proposal_count(), stage, &trial);
  if (!st) st = screen_pending(h);
  forget_weights(h);
  return st;
}

// Where there is no memory for adjoints, or no time, the search goes on without forecasts.
static assay_status_t pass_on(search_state_t* h, assay_predict_t* predict, size_t position,
                              double until) {
  if (!h->screening.predict) return NULL;
  assay_status_t st = assay_predict_pass(predict, position);
  const bool is_full = assay_status_code(st) == ASSAY_NO_MEMORY;
  if (is_full || assay_clock_seconds() > until) h->screening.predict = NULL;
  if (is_full) assay_status_free(st), st = NULL;
  return st;
}

// The repair that left least, or the one that is forecast to.
static assay_search_suspect_t best_so_far(const search_state_t* h) {
  const assay_trials_t* t = &h->trials;
  if (t->n_best) return (assay_search_suspect_t){t->best[0].repair.node, t->best[0].remains};
  const candidate_t* best = h->n ? &h->list[0] : NULL;
  for (size_t i = 1; i < h->n; i++)
    if (h->list[i].promise < best->promise) best = &h->list[i];
  return (assay_search_suspect_t){best ? t->s->nodes[best->position] : NULL, (double)NAN};
}

static void tell(const search_state_t* h, const char* doing, const char* cause,
                 const assay_node_t* at) {
  if (!assay_search_watch_is_due(h->trials.s->watch)) return;
  const assay_search_suspect_t best = best_so_far(h);
  assay_search_watch_tell(h->trials.s->watch, &best, doing, cause, at);
}

static assay_status_t list_nodes(search_state_t* h, assay_predict_t* predict) {
  const assay_search_t* s = h->trials.s;
  const double screen_end = h->start + 0.4 * (h->end - h->start);
  const double until = h->start + 0.5 * (h->end - h->start);
  h->screening.predict = predict;
  enum { BEFORE = 16 };  // nodes before one that was found which may be at fault as well
  size_t end = 0;
  for (size_t i = s->n_nodes; i-- > end && assay_clock_seconds() < until;) {
    const bool before = h->trials.found;
    tell(h, "listing", "", s->nodes[i]);
    if (!h->likely || h->likely[i]) ASSAY_TRY(list_node(h, i, screen_end));
    if (h->trials.found && !before) end = i < BEFORE ? 0 : i - BEFORE;
    ASSAY_TRY(pass_on(h, predict, i, screen_end));
  }
  return NULL;
}

// Lists all repairs. Looking at each in its own node may take a part of the time, and listing them
// a larger one.
static assay_status_t list_all(search_state_t* h) {
  assay_predict_t* predict = NULL;
  ASSAY_TRY(assay_screening_init(h->trials.s, &h->screening));
  ASSAY_TRY(assay_predict_create(h->trials.s, &predict));
  assay_status_t st = list_nodes(h, predict);
  h->screening.predict = NULL;
  assay_predict_destroy(predict);
  if (!st) st = join_exchanges(h);
  if (!st) st = share_out(h);
  if (!st) st = assay_new_array(h->trials.s->n_nodes, sizeof *h->corrections, &h->corrections);
  if (!st) st = assay_new_array(h->n, sizeof *h->by_forecast, &h->by_forecast);
  if (!st) st = assay_new_array(h->n, sizeof *h->by_suspicion, &h->by_suspicion);
  for (size_t i = 0; !st && i < h->n; i++) h->by_forecast[i] = h->by_suspicion[i] = &h->list[i];
  if (!st) sort(h);
  if (!st && h->n) qsort(h->by_forecast, h->n, sizeof *h->by_forecast, by_promise);
  return st;
}

// ---- trying -------------------------------------------------------------------------------------

static assay_status_t try_offer(void* user, const assay_repair_t* r, bool* stop) {
  search_state_t* h = user;
  if (h->offered++ != h->trying->ordinal) return NULL;
  *stop = true;
  if (h->made) return assay_repair_copy(r, h->made);
  return assay_trials_try(&h->trials, r);
}

static assay_status_t try_candidate(search_state_t* h, candidate_t* c) {
  const assay_trial_t trial = {try_offer, h};
  c->done = true;
  for (size_t i = 0; c->pair[0] >= 0 && i < h->n; i++)
    if (same_pair(c, &h->list[i])) h->list[i].done = true;
  h->trying = c;
  h->trials.arrived = (double)NAN;
  tell(h, "trying", assay_proposal_get(c->row)->cause, h->trials.s->nodes[c->position]);
  const int stage = assay_proposal_get(c->row)->stage;
  ASSAY_TRY(ask(h, c->position, c->row, c->row + 1, stage, &trial));
  if (!(h->trials.arrived > 0) || c->expected != c->expected) return NULL;
  ASSAY_TRY(assay_grow(&h->measures, &h->cap_measures, h->n_measures + 1, sizeof *h->measures));
  h->measures[h->n_measures++] =
      (measure_t){c->position, assay_log10(h->trials.arrived) - c->expected};
  return NULL;
}

// A first trial here and there, to see what arrives from where.
static assay_status_t probe(search_state_t* h) {
  enum { PROBES = 12 };
  const double until = h->start + 0.55 * (h->end - h->start);
  const size_t n = h->trials.s->n_nodes, step = n / PROBES + 1;
  for (size_t end = n; end > 0 && !h->trials.found && assay_clock_seconds() < until;
       end -= end < step ? end : step) {
    const size_t first = end < step ? 0 : end - step;
    for (size_t i = 0; i < h->n; i++) {
      candidate_t* c = h->by_suspicion[i];
      if (c->done || c->expected != c->expected || c->position < first || c->position >= end)
        continue;
      ASSAY_TRY(try_candidate(h, c));
      break;
    }
  }
  return NULL;
}

// The rows above the one that restored golden, for its own node: the same may be told better.
static assay_status_t try_better_rows(search_state_t* h, const candidate_t* found) {
  for (size_t i = 0; i < h->n && assay_clock_seconds() < h->end; i++) {
    candidate_t* c = h->by_suspicion[i];
    if (c->done || c->position != found->position || c->row >= found->row) continue;
    ASSAY_TRY(try_candidate(h, c));
  }
  return NULL;
}

static bool reads(const assay_node_t* a, const assay_node_t* b) {
  for (size_t i = 0; i < a->n_inputs; i++)
    for (size_t k = 0; k < b->n_outputs; k++)
      if (a->inputs[i] && a->inputs[i] == b->outputs[k]) return true;
  return false;
}

// What is wrong with a node can often be mended in the one before or after, too: a sign, a scale.
// All that may be at fault are to be named.
static assay_status_t try_neighbours(search_state_t* h, const candidate_t* found, double until) {
  const assay_node_t* const* nodes = h->trials.s->nodes;
  const assay_node_t* node = nodes[found->position];
  for (size_t i = 0; i < h->n && assay_clock_seconds() < until; i++) {
    candidate_t* c = h->by_forecast[i];
    const assay_node_t* other = nodes[c->position];
    if (c->done || (!reads(node, other) && !reads(other, node))) continue;
    ASSAY_TRY(try_candidate(h, c));
  }
  return NULL;
}

static candidate_t* first_left(candidate_t* const* order, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!order[i]->done) return order[i];
  return NULL;
}

// The next one to try: two by forecast for each by suspicion. A forecast is to first order only,
// and there is none after an operator without a rule.
static candidate_t* next_candidate(const search_state_t* h, size_t turn) {
  candidate_t* forecast = first_left(h->by_forecast, h->n);
  if (forecast && forecast->promise < (turn % 3 == 2 ? SURE : USELESS)) return forecast;
  return first_left(h->by_suspicion, h->n);
}

// Tries one after the other. Once golden is restored it goes on for half as long again, and through
// what is forecast to restore it as well: what else does is a rival.
static assay_status_t try_all(search_state_t* h) {
  enum { AGAIN = 16 };  // trials after which what was measured sorts the others anew
  enum { RIVALS = 32 };
  // Where something leaves what can be seen, golden may still be restored better.
  static const double AGAIN_PLAUSIBLE = 1.5;
  const double begun = assay_clock_seconds();
  double until = h->trials.found ? begun + 0.5 * (begun - h->start) : h->end;
  size_t rivals = h->trials.found ? RIVALS : 0;
  candidate_t* c = NULL;
  for (size_t tried = 0; (c = next_candidate(h, tried)) != NULL; tried++) {
    const double now = assay_clock_seconds();
    if (now > until) c = first_left(h->by_forecast, h->n);
    if (now > until && (!c || now > h->end || rivals == 0 || c->promise > SURE)) break;
    if (h->trials.found) rivals -= rivals > 0;
    const bool before = h->trials.found, plausible = h->trials.plausible;
    ASSAY_TRY(try_candidate(h, c));
    if (h->trials.plausible && !plausible && !h->trials.found)
      until = fmin(until, assay_clock_seconds() + AGAIN_PLAUSIBLE * (now - h->start) + 0.1);
    if (before || !h->trials.found) {
      if (tried % AGAIN == AGAIN - 1) sort(h);
      continue;
    }
    rivals = RIVALS;
    until = fmin(h->end, assay_clock_seconds() + 0.5 * (now - h->start) + 0.1);
    ASSAY_TRY(try_better_rows(h, c));
    ASSAY_TRY(try_neighbours(h, c, until));
  }
  return NULL;
}

// Whether something mends so much that the rest is likely to be another fault.
static bool is_mended_in_part(const assay_trials_t* t) {
  return t->n_partials && t->partials[0].merit > 0.6;
}

// until: where the time for channels and for several faults would begin.
static assay_status_t search_run(search_state_t* h, double until) {
  const double end = h->end;
  ASSAY_TRY(assay_search_reach(h->trials.s, &h->reach));
  ASSAY_TRY(list_all(h));
  // Where listing took longer, what is forecast still has its time.
  h->end = fmin(end, fmax(until, assay_clock_seconds() + 0.1 * (end - h->start)));
  if (!h->n || h->by_forecast[0]->promise > SURE) ASSAY_TRY(probe(h));
  sort(h);
  ASSAY_TRY(try_all(h));
  h->end = end;
  return NULL;
}

// What is left of the list. Where something mends a part, half of the time that is left is kept for
// what else may be at fault.
static assay_status_t search_rest(search_state_t* h) {
  const double end = h->end, now = assay_clock_seconds();
  if (h->trials.plausible) return NULL;
  if (is_mended_in_part(&h->trials)) h->end = now + (end - now) / 2;
  ASSAY_TRY(try_all(h));
  h->end = end;
  h->trials.s->cut_short |= !h->trials.found && assay_clock_seconds() > h->end;
  return NULL;
}

// ---- several faults ----------------------------------------------------------------------------

// Targets' slots hold golden, not truth.
static assay_status_t look_around(search_state_t* h) {
  const assay_search_t* s = h->trials.s;
  ASSAY_TRY(assay_new_array((size_t)s->model->n_values, sizeof *h->hidden, &h->hidden));
  for (size_t k = 0; k < s->n_targets; k++) h->hidden[s->targets[k].value->id] = true;
  return assay_surroundings_init(s->model, s->evaluator, h->hidden, &h->around);
}

static void listed_deinit(listed_t* l) {
  assay_free(l->list);
  assay_free(l->by_forecast);
  assay_free(l->by_suspicion);
  assay_free(l->corrections);
  *l = (listed_t){0};
}

static void search_deinit(search_state_t* h) {
  listed_deinit(&h->away);
  assay_surroundings_deinit(&h->around);
  assay_free(h->hidden);
  assay_free(h->list);
  assay_free(h->by_forecast);
  assay_free(h->by_suspicion);
  for (size_t i = 0; i < h->n_pending; i++) assay_repair_deinit(&h->pending[i].repair);
  forget_weights(h);
  assay_screening_deinit(&h->screening);
  assay_free(h->measures);
  assay_free(h->corrections);
  assay_free(h->likely);
  assay_free(h->reach);
  assay_trials_deinit(&h->trials);
}

static assay_status_t search_level(assay_search_t* s, double end, bool deeper, assay_fault_t* out,
                                   size_t* out_n);

// Searches on with a repair that mends a part made. Found: out[0] is that repair, out[1..] what was
// missing.
static assay_status_t search_behind(search_state_t* h, const assay_partial_t* p, double end,
                                    assay_fault_t* out, size_t* out_n) {
  assay_search_t next = *h->trials.s;
  assay_search_target_t* targets = NULL;
  size_t n = 0;
  *out_n = 0;
  ASSAY_TRY(assay_trials_adopt(&h->trials, &p->repair, &targets));
  next.targets = targets;
  next.adopted[next.n_adopted++] = &p->repair;
  next.n_others = 0;
  assay_status_t st = targets ? search_level(&next, end, true, out + 1, &n) : NULL;
  h->trials.s->trials = next.trials;
  h->trials.s->cut_short |= next.cut_short;
  assay_trials_drop(&h->trials);
  assay_free(targets);
  if (st || !n || !out[n].restored) {
    for (size_t i = 1; i <= n; i++) assay_repair_deinit(&out[i].repair);
    return st;
  }
  out[0] = (assay_fault_t){
      .node = p->repair.node, .has_repair = true, .restored = true, .remains = out[n].remains};
  ASSAY_TRY(assay_repair_copy(&p->repair, &out[0].repair));
  *out_n = n + 1;
  return NULL;
}

// What takes a part of anything is seldom the first of several, and there are many.
static bool is_put_in(const assay_repair_t* r) {
  const assay_repair_edit_t* e = &r->edits[0];
  return e->kind == ASSAY_EDIT_BEFORE || e->kind == ASSAY_EDIT_AFTER ||
         (e->kind == ASSAY_EDIT_CHAIN && e->n_chain > 1);
}

// Tries to go on from each repair that mended a part, the best first; what is put in after all
// others.
static assay_status_t search_more(search_state_t* h, double end, assay_fault_t* out,
                                  size_t* out_n) {
  size_t left = h->trials.s->n_adopted ? 4 : ASSAY_TRIAL_PARTIALS;
  for (int put_in = 0; put_in < 2; put_in++)
    for (size_t i = 0; i < h->trials.n_partials && left && !*out_n; i++) {
      if (is_put_in(&h->trials.partials[i].repair) != put_in) continue;
      left--;
      const double now = assay_clock_seconds();
      if (now > end) return NULL;
      ASSAY_TRY(search_behind(h, &h->trials.partials[i], now + (end - now) / 2, out, out_n));
    }
  return NULL;
}

static assay_status_t make_again(void* user, size_t number, assay_repair_t* out) {
  search_state_t* h = user;
  const candidate_t* c = &h->list[number];
  const assay_trial_t trial = {try_offer, h};
  h->trying = c;
  h->made = out;
  assay_status_t st =
      ask(h, c->position, c->row, c->row + 1, assay_proposal_get(c->row)->stage, &trial);
  h->made = NULL;
  return st;
}

// One slip in several nodes: an eighth of the time that is left.
static assay_status_t search_alike(search_state_t* h, double end, assay_fault_t* out,
                                   size_t* out_n) {
  const double now = assay_clock_seconds();
  const assay_alike_source_t source = {make_again, h};
  tell(h, "trying slips at nodes that belong together", "", NULL);
  assay_alike_t* offers = NULL;
  ASSAY_TRY(assay_new_array(h->n, sizeof *offers, &offers));
  for (size_t i = 0; i < h->n; i++)
    offers[i] = (assay_alike_t){.key = h->list[i].key,
                                .position = h->list[i].position,
                                .input = h->list[i].input,
                                .number = i,
                                .row = h->list[i].row,
                                .forecast = &h->list[i].forecast};
  assay_status_t st = assay_search_alike(&h->trials, &h->around, offers, h->n, &source,
                                         now + (end - now) / 8, out, out_n);
  assay_free(offers);
  return st;
}

// Exchanges what is listed with what is put away.
static void swap_lists(search_state_t* h) {
  const listed_t now = {h->list,         h->n,           h->capacity,
                        h->by_suspicion, h->by_forecast, h->corrections};
  const listed_t* next = &h->away;
  h->list = next->list;
  h->n = next->n;
  h->capacity = next->capacity;
  h->by_suspicion = next->by_suspicion;
  h->by_forecast = next->by_forecast;
  h->corrections = next->corrections;
  h->away = now;
}

static assay_status_t try_anywhere(search_state_t* h) {
  enum { MOST = 40 };
  ASSAY_TRY(assay_new_array(h->trials.s->n_nodes, sizeof *h->likely, &h->likely));
  ASSAY_TRY(assay_search_likely(&h->trials, MOST, h->likely, &h->n_likely));
  assay_screening_deinit(&h->screening);
  ASSAY_TRY(list_all(h));
  return try_all(h);
}

// Small expressions at every place of the likeliest nodes: two fifths of the time that is left.
static assay_status_t search_anywhere(search_state_t* h, double end) {
  static const double SHARE = 0.4;
  const double start = h->start, until = h->end;
  tell(h, "trying small expressions", "", NULL);
  swap_lists(h);
  h->start = assay_clock_seconds();
  h->end = h->start + SHARE * (end - h->start);
  h->trials.anywhere = true;
  assay_status_t st = try_anywhere(h);
  h->trials.anywhere = false;
  swap_lists(h);
  assay_free(h->likely);
  h->likely = NULL;
  h->start = start;
  h->end = until;
  return st;
}

// The same of several nodes, as of other slips.
static assay_status_t search_anywhere_alike(search_state_t* h, double end, assay_fault_t* out,
                                            size_t* out_n) {
  swap_lists(h);
  assay_status_t st = h->n ? search_alike(h, end, out, out_n) : NULL;
  swap_lists(h);
  return st;
}

typedef struct slip_keeper {
  search_state_t* h;
  assay_slips_t all;
} slip_keeper_t;

// With the forecast of when it was listed.
static assay_status_t keep_slip(void* user, const assay_repair_t* r, bool* stop) {
  slip_keeper_t* k = user;
  const search_state_t* h = k->h;
  const size_t ordinal = k->h->offered++;
  const assay_forecast_t* forecast = NULL;
  *stop = false;
  for (size_t i = 0; i < h->n && !forecast; i++) {
    const candidate_t* c = &h->list[i];
    if (c->position == h->trials.position && c->row == h->row && c->ordinal == ordinal)
      forecast = &c->forecast;
  }
  return assay_slips_add(&k->all, r, forecast);
}

// The same attribute wrong at several nodes: an eighth of the time that is left.
static assay_status_t search_slips(search_state_t* h, double end, assay_fault_t* out,
                                   size_t* out_n) {
  slip_keeper_t kept = {.h = h};
  const assay_trial_t keep = {keep_slip, &kept};
  const double now = assay_clock_seconds(), until = now + (end - now) / 8;
  assay_status_t st = NULL;
  size_t trials = 0;
  for (size_t row = 0; !st && row < assay_proposal_count(); row++) {
    if (assay_proposal_get(row)->stage != 1) continue;
    for (size_t i = 0; !st && i < h->trials.s->n_nodes && assay_clock_seconds() < until; i++)
      st = ask(h, i, row, row + 1, 1, &keep);
    tell(h, "trying the same slip at several nodes:", assay_proposal_get(row)->cause, NULL);
  }
  if (!st) st = assay_search_slips(h->trials.s, &kept.all, until, out, out_n, &trials);
  h->trials.s->trials += trials;
  assay_slips_deinit(&kept.all);
  return st;
}

// Numbers that go together: an eighth of the time that is left.
static assay_status_t search_tied(search_state_t* h, double end, assay_fault_t* out,
                                  size_t* out_n) {
  const double now = assay_clock_seconds();
  tell(h, "trying numbers that go together", "", NULL);
  return assay_search_tied(&h->trials, &h->around, now + (end - now) / 8, out, out_n);
}

// What nobody reads: an eighth of the time that is left.
static assay_status_t search_dead_ends(search_state_t* h, double end, assay_fault_t* out,
                                       size_t* out_n) {
  const double now = assay_clock_seconds();
  tell(h, "trying what nobody reads", "", NULL);
  return assay_search_dead_ends(&h->trials, &h->around, now + (end - now) / 8, out, out_n);
}

// Several numbers that are lost at once: an eighth of the time that is left for limits, and as much
// for others.
static assay_status_t search_numbers(search_state_t* h, double end, assay_fault_t* out,
                                     size_t* out_n) {
  double now = assay_clock_seconds();
  tell(h, "fitting several numbers", "", NULL);
  ASSAY_TRY(assay_search_limits(&h->trials, now + (end - now) / 8, out, out_n));
  if (*out_n) return NULL;
  now = assay_clock_seconds();
  return assay_search_numbers(&h->trials, &h->around, now + (end - now) / 8, out, out_n);
}

// What the solvers say of the last nodes: a quarter of the time that is left.
static assay_status_t search_pulled(search_state_t* h, double end, assay_fault_t* out,
                                    size_t* out_n) {
  const double now = assay_clock_seconds();
  tell(h, "solving from outputs backwards", "", NULL);
  return assay_search_pulled(&h->trials, now + (end - now) / 4, out, out_n);
}

// Another order of columns or channels: a quarter of the time that is left. A factor and
// summand for each channel: half of what is left then.
static assay_status_t search_channels(search_state_t* h, double end) {
  const double begun = assay_clock_seconds();
  tell(h, "ordering channels", "", NULL);
  ASSAY_TRY(assay_search_orders(&h->trials, begun + (end - begun) / 4));
  const double now = assay_clock_seconds();
  if (h->trials.found) return NULL;
  tell(h, "fitting channels", "", NULL);
  return assay_search_channels(&h->trials, now + (end - now) / 2);
}

// Columns in another order: an eighth of the time that is left.
static assay_status_t search_columns(search_state_t* h, double end) {
  const double now = assay_clock_seconds();
  tell(h, "trying orders of columns", "", NULL);
  return assay_search_columns(&h->trials, now + (end - now) / 8);
}

// Several faults of one kind: half of the time that is left.
static assay_status_t search_joint(search_state_t* h, double end, assay_fault_t* out,
                                   size_t* out_n) {
  const double now = assay_clock_seconds();
  size_t trials = 0;
  tell(h, "trying several repairs at once", "", NULL);
  ASSAY_TRY(assay_search_joint(h->trials.s, now + (end - now) / 2, out, out_n, &trials));
  h->trials.s->trials += trials;
  return NULL;
}

// out: room for ASSAY_SEARCH_FAULTS less those adopted. Only with `deeper` it looks for more than
// one.
static assay_status_t search_level(assay_search_t* s, double end, bool deeper, assay_fault_t* out,
                                   size_t* out_n) {
  search_state_t h = {.start = assay_clock_seconds()};
  const bool more = deeper && s->n_adopted + 1 < ASSAY_SEARCH_DEPTH;
  *out_n = 0;
  h.end = end;
  ASSAY_TRY(assay_trials_init(s, &h.trials));
  // With inner values the constants of the node are solved for; without, channels get their turn.
  const bool alone = !s->n_adopted && !s->faulty;
  assay_status_t st = look_around(&h);
  if (!st && alone) st = assay_search_bias_sets(s, &h.around, out, out_n);
  if (st || *out_n) return search_deinit(&h), st;
  if (alone) st = assay_search_permuted(&h.trials);
  if (st) return search_deinit(&h), st;
  st = search_run(&h, more ? h.start + (alone ? 0.25 : 0.7) * (end - h.start) : end);
  if (!st && more && alone && !h.trials.plausible) st = search_columns(&h, end);
  if (!st && more && alone && !h.trials.plausible) st = search_dead_ends(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n)
    st = search_slips(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n)
    st = search_alike(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n)
    st = search_pulled(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n)
    st = search_numbers(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n) st = search_anywhere(&h, end);
  if (!st && more && alone && !h.trials.plausible && !*out_n) st = search_tied(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n)
    st = search_anywhere_alike(&h, end, out, out_n);
  if (!st && more && alone && !h.trials.plausible && !*out_n) st = search_channels(&h, end);
  if (!st && !*out_n) st = search_rest(&h);
  if (!st && more && !h.trials.plausible && !s->n_adopted && !*out_n)
    st = search_joint(&h, end, out, out_n);
  if (!st && more && !h.trials.plausible && !*out_n) st = search_more(&h, end, out, out_n);
  bool any = false;
  // With inner values the node that makes the first wrong one is known.
  if (!st && !*out_n && (h.trials.n_best || (!s->n_adopted && !s->faulty)))
    st = assay_search_report(&h.trials, &out[0], &any);
  if (any) *out_n = 1;
  search_deinit(&h);
  return st;
}

// ---- the whole ----------------------------------------------------------------------------------

// A repair that makes something far larger than all that there is cannot be right, and would take
// all memory: a constant laid along the batch.
static int64_t max_elems(const assay_search_t* s) {
  enum { TIMES = 4 };
  int64_t max = 1 << 20;
  for (size_t k = 0; k < s->n_targets; k++)
    if (s->targets[k].golden->size > max) max = s->targets[k].golden->size;
  for (size_t i = 0; i < s->n_nodes; i++)
    for (size_t k = 0; k < s->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = s->nodes[i]->outputs[k];
      const assay_tensor_t* t = v ? assay_evaluator_get(s->evaluator, v) : NULL;
      if (t && t->kind == ASSAY_KIND_TENSOR && t->size > max) max = t->size;
    }
  return max < INT64_MAX / TIMES ? TIMES * max : max;
}

assay_status_t assay_search_run(assay_search_t* s, assay_fault_t* faults, size_t* out_n) {
  assay_evaluator_limit(s->evaluator, max_elems(s));
  for (size_t i = 0; i < s->n_others; i++)
    assay_evaluator_limit(s->others[i].evaluator, max_elems(s));
  assay_status_t st = search_level(s, s->deadline, s->several, faults, out_n);
  assay_evaluator_limit(s->evaluator, 0);
  return st;
}
