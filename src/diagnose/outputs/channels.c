// A factor and a summand for each channel, and numbers of constants: Gauss-Newton on a sketch.
#include "diagnose/outputs/channels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/functions.h"
#include "diagnose/outputs/sides.h"
#include "diagnose/outputs/sketch.h"
#include "diagnose/search_predict.h"

enum {
  STEPS = 12,
  ROW = 1000  // after all rows of the table; fewer numbers before more
};

enum { FACTORS = ASSAY_SITE_FACTORS, SUMMANDS = ASSAY_SITE_SUMMANDS };
enum { SAMPLES = 4, SPARE = ASSAY_SITE_SPARE };  // that equations are taken from

// What each family that the equations are enough for leaves; the best one counts for the site.
static void judge(const assay_site_sketch_t* k, assay_site_t* site, double* a) {
  double x[ASSAY_SITE_NUMBERS];
  const size_t all = assay_site_equations(k, site), n = all - SPARE / 2;
  site->left = 1;
  for (int family = FACTORS; family <= (FACTORS | SUMMANDS); family++) {
    double* left = &site->lefts[family];
    *left = 1;
    if (site->kind != ASSAY_SITE_OUTPUT && family != FACTORS) continue;
    const size_t needed = assay_site_unknowns(site, family) + SPARE;
    if (needed > all || needed > k->elements) continue;
    if (!assay_site_solve(site, family, k->sides, n, a, x)) continue;
    *left = assay_site_left(site, family, k->sides, n, all, x);
    site->left = fmin(site->left, *left);
  }
}

static const double WORTH = 0.98;  // equations that took no part are met so far, at least

// ---- going on ----------------------------------------------------------------------------------

// The repair: output times factors, plus summands.
static assay_status_t make_chains(const assay_search_t* s, const assay_site_t* site,
                                  const double* factor, const double* summand,
                                  assay_repair_t* out) {
  static const char* const causes[] = {"", "scale of each channel", "bias of each channel",
                                       "scale and bias of each channel"};
  static const char* const operators[] = {"Mul", "Add"};
  const assay_tensor_t* y = assay_site_sketch_truth(s, s->nodes[site->position]->outputs[0]);
  int64_t dims[ASSAY_MAX_RANK];
  static const double SEEN = 1e-4;
  double low = HUGE_VAL, high = -HUGE_VAL, least = HUGE_VAL, most = -HUGE_VAL;
  *out = (assay_repair_t){.node = s->nodes[site->position], .cause = causes[site->family]};
  for (int i = 0; i < y->rank; i++) dims[i] = i == site->axis ? site->channels : 1;
  for (int k = 0; k < 2; k++) {
    if (!(site->family >> k & 1)) continue;
    assay_repair_edit_t* e = &out->edits[out->n_edits];
    *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CHAIN, .n_chain = 1, .type = y->type};
    e->chain[0] = (assay_chain_step_t){
        .op_type = operators[k],
        .of = {{ASSAY_OPERAND_START, 0, 0, NULL}, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}};
    assay_status_t st = assay_tensor_create(y->type, y->rank, dims, &e->tensor);
    if (st) return assay_repair_deinit(out), st;
    out->n_edits++;
    for (int64_t c = 0; c < site->channels; c++)
      assay_f64(e->tensor)[c] = (double)(float)(k ? summand[c] : factor[c]);
  }
  for (int64_t c = 0; c < site->channels; c++) {
    low = fmin(low, factor[c]), high = fmax(high, factor[c]);
    least = fmin(least, summand[c]), most = fmax(most, summand[c]);
  }
  size_t used = (size_t)snprintf(out->text, sizeof out->text, "what comes out");
  if (site->family & FACTORS && high - low + fabs(high - 1) > SEEN)
    used += (size_t)snprintf(out->text + used, sizeof out->text - used, " times %.4g to %.4g", low,
                             high);
  if (site->family & SUMMANDS)
    used += (size_t)snprintf(out->text + used, sizeof out->text - used, " plus %.4g to %.4g", least,
                             most);
  snprintf(out->text + used, sizeof out->text - used, ", by channel");
  return NULL;
}

// A constant with other elements, or with one for each channel in place of one.
static assay_status_t make_constant(const assay_search_t* s, const assay_site_t* site,
                                    const double* change, assay_repair_t* out) {
  const assay_node_t* n = s->nodes[site->position];
  assay_tensor_t *x = NULL, *y = NULL;
  ASSAY_TRY(assay_tensor_widen(assay_evaluator_get(s->evaluator, n->inputs[site->input]), &x));
  assay_status_t st = NULL;
  double most = 0;
  if (site->kind == ASSAY_SITE_SLOPES) {
    const assay_tensor_t* like = assay_site_sketch_truth(s, n->outputs[0]);
    int64_t dims[ASSAY_MAX_RANK] = {site->channels};
    for (int i = 1; i + 1 < like->rank; i++) dims[i] = 1;
    st = assay_tensor_create(x->type, like->rank - 1, dims, &y);
    for (int64_t c = 0; !st && c < site->channels; c++) assay_f64(y)[c] = assay_f64(x)[0];
  } else {
    st = assay_tensor_copy(x, &y);
  }
  assay_tensor_release(x);
  if (st) return st;
  for (size_t i = 0; i < site->columns; i++) {
    double* to = &assay_f64(y)[site->at ? site->at[i] : (int64_t)i];
    *to = (double)(float)(*to + change[i]);
    if (site->taken) to[-site->taken] = (double)(float)(to[-site->taken] - change[i]);
    most = fmax(most, fabs(change[i]));
  }
  const bool slopes = site->kind == ASSAY_SITE_SLOPES;
  *out = (assay_repair_t){.node = n,
                          .cause = slopes                           ? "slope of each channel"
                                   : site->kind == ASSAY_SITE_SCALE ? "scale of a normalization"
                                                                    : "numbers of a constant",
                          .n_edits = 1};
  out->edits[0] =
      (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = site->input, .tensor = y};
  snprintf(out->text, sizeof out->text, "'%.120s' with %zu other numbers, by up to %.3g%s",
           n->inputs[site->input]->name, site->columns, most,
           slopes ? ": one for each channel in place of one" : "");
  return NULL;
}

// What comes in times factors.
static assay_status_t make_input(const assay_search_t* s, const assay_site_t* site,
                                 const double* factor, assay_repair_t* out) {
  const assay_value_t* v = s->nodes[site->position]->inputs[site->input];
  const assay_tensor_t* x = assay_evaluator_get(s->evaluator, v);
  int64_t dims[ASSAY_MAX_RANK];
  double low = HUGE_VAL, high = -HUGE_VAL;
  *out = (assay_repair_t){
      .node = s->nodes[site->position], .cause = "scale of what is read", .n_edits = 1};
  for (int i = 0; i < x->rank; i++) dims[i] = i == site->axis ? site->channels : 1;
  assay_repair_edit_t* e = &out->edits[0];
  *e = (assay_repair_edit_t){.kind = ASSAY_EDIT_CHAIN,
                             .at_input = true,
                             .input = site->input,
                             .n_chain = 1,
                             .type = x->type};
  e->chain[0] = (assay_chain_step_t){
      .op_type = "Mul",
      .of = {{ASSAY_OPERAND_START, 0, 0, NULL}, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}};
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, dims, &e->tensor));
  for (int64_t c = 0; c < site->channels; c++) {
    assay_f64(e->tensor)[c] = (double)(float)factor[c];
    low = fmin(low, factor[c]), high = fmax(high, factor[c]);
  }
  snprintf(out->text, sizeof out->text, "'%.120s' times %.4g to %.4g where it is read, by channel",
           v->name, low, high);
  return NULL;
}

// A weight whose scale stands at the channels that it reads, moved to those that it makes.
static assay_status_t make_moved(const assay_search_t* s, const assay_site_t* site,
                                 const double* factor, assay_repair_t* out) {
  const assay_node_t* n = s->nodes[site->position];
  const assay_value_t* v = n->inputs[site->input];
  assay_tensor_t *w = NULL, *y = NULL;
  assay_sides_t sides;
  int read = 0, made = 0;
  double low = HUGE_VAL, high = -HUGE_VAL;
  ASSAY_TRY(assay_tensor_widen(assay_evaluator_get(s->evaluator, v), &w));
  assay_status_t st = assay_tensor_copy(w, &y);
  assay_tensor_release(w);
  if (st) return st;
  if (assay_sides_of(n, &sides)) assay_sides_weight_axes(n, &sides, y, &read, &made);
  const int64_t c = site->channels, inner = assay_dims_product(y->dims, 2, y->rank);
  for (int64_t i = 0; i < y->size; i++) {
    const int64_t at[2] = {i / inner / c, i / inner % c};
    double* x = &assay_f64(y)[i];
    *x = (double)(float)(*x * factor[at[made]] / factor[at[read]]);
  }
  for (int64_t i = 0; i < c; i++) low = fmin(low, factor[i]), high = fmax(high, factor[i]);
  *out = (assay_repair_t){.node = n, .cause = "scale at the other channels", .n_edits = 1};
  out->edits[0] =
      (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = site->input, .tensor = y};
  snprintf(out->text, sizeof out->text,
           "'%.100s' with factors from %.4g to %.4g at the channels that it makes, not at those "
           "that it reads",
           v->name, low, high);
  return NULL;
}

// The output times factors plus summands, or a constant plus summands, as fitted so far, and what
// that leaves.
typedef struct fit {
  double factor[ASSAY_SITE_CHANNELS], summand[ASSAY_SITE_NUMBERS];
  double left;
} fit_t;

static assay_status_t make_repair(const assay_search_t* s, const assay_site_t* site,
                                  const fit_t* fit, assay_repair_t* out) {
  switch (site->kind) {
    case ASSAY_SITE_OUTPUT:
      return make_chains(s, site, fit->factor, fit->summand, out);
    case ASSAY_SITE_INPUT:
      return make_input(s, site, fit->factor, out);
    case ASSAY_SITE_MOVED:
      return make_moved(s, site, fit->factor, out);
    default:
      return make_constant(s, site, fit->summand, out);
  }
}

static bool has_factors(const assay_site_t* site) {
  return site->kind == ASSAY_SITE_OUTPUT || site->kind == ASSAY_SITE_INPUT ||
         site->kind == ASSAY_SITE_MOVED;
}

// How a factor goes on: by its part more, or, where a logarithm or a division comes after it, by as
// much as its logarithm says, which never turns its sign.
static double times_of(double x, bool by_logarithm) {
  static const double MOST = 3;
  return by_logarithm ? assay_exp(fmax(fmin(x, MOST), -MOST)) : 1 + x;
}

// A step x from a fit, or a part of it.
static void move(const assay_site_t* site, const fit_t* from, const double* x, double part,
                 bool by_logarithm, fit_t* to) {
  for (size_t i = 0; !has_factors(site) && i < site->columns; i++)
    to->summand[i] = from->summand[i] + part * x[i];
  for (int64_t c = 0; has_factors(site) && c < site->channels; c++) {
    const double times = site->family & FACTORS ? times_of(part * x[c], by_logarithm) : 1;
    if (site->kind != ASSAY_SITE_OUTPUT) {
      to->factor[c] = from->factor[c] * times;
      continue;
    }
    const double plus =
        site->family & SUMMANDS ? x[site->family == SUMMANDS ? c : site->channels + c] : 0;
    to->factor[c] = from->factor[c] * times;
    to->summand[c] = from->summand[c] * times + part * plus;
  }
}

// Factors that go far on may do so by their logarithm; a scale that was moved always does.
static bool may_go(const assay_site_t* site, const double* x, bool by_logarithm) {
  static const double FAR = 0.2;
  const bool factors = has_factors(site) && site->family & FACTORS;
  if (site->kind == ASSAY_SITE_MOVED) return by_logarithm;
  if (!by_logarithm) return true;
  for (int64_t c = 0; factors && c < site->channels; c++)
    if (fabs(x[c]) > FAR) return true;
  return false;
}

// The whole step, or the part of it that leaves less than before. *out_ok false: there is none.
static assay_status_t take_step(assay_trials_t* t, const assay_site_sketch_t* all,
                                const assay_site_t* site, const double* x, fit_t* fit,
                                bool* out_ok) {
  *out_ok = false;
  for (double part = 1; part > 0.1 && !*out_ok; part /= 2) {
    fit_t best = *fit;
    for (int way = 0; way < 2 && assay_clock_seconds() < all->end; way++) {
      fit_t next = *fit;
      assay_repair_t r;
      if (!may_go(site, x, way == 1)) continue;
      move(site, fit, x, part, way == 1, &next);
      ASSAY_TRY(make_repair(t->s, site, &next, &r));
      t->rank = ROW + (int)assay_site_unknowns(site, site->family);
      t->position = site->position;
      t->fitted = true;
      assay_status_t st = assay_trials_try(t, &r);
      t->fitted = false;
      assay_repair_deinit(&r);
      if (st) return st;
      next.left = t->remains;
      if (!(next.left < best.left)) continue;
      best = next;
      *out_ok = true;
    }
    *fit = best;
  }
  return NULL;
}

// The other samples that equations are of: the last one takes no part, so that a fit has to hold
// where nothing was fitted.
static size_t fitted_others(const assay_search_t* s) {
  const size_t used = s->n_others ? s->n_others - 1 : 0;
  return used < SAMPLES - 1 ? used : SAMPLES - 1;
}

// The searches of these samples with a repair made, as far as it fits.
static assay_status_t adopt_all(assay_trials_t* t, const assay_repair_t* r, assay_search_t* next,
                                size_t* out_n) {
  const size_t others = fitted_others(t->s);
  *out_n = 0;
  for (size_t i = 0; i <= others; i++) {
    assay_trials_t* one = i ? &t->others[i - 1] : t;
    assay_search_target_t* targets = NULL;
    ASSAY_TRY(assay_trials_adopt(one, r, &targets));
    if (!targets) continue;
    next[*out_n] = *one->s;
    next[*out_n].targets = targets;
    next[*out_n].adopted[next[*out_n].n_adopted++] = r;
    ++*out_n;
  }
  return NULL;
}

static void drop_all(assay_trials_t* t, assay_search_t* next, size_t n) {
  for (size_t i = 0; i < n; i++) assay_free((assay_search_target_t*)next[i].targets);
  for (size_t i = 0; i < t->s->n_others; i++) assay_trials_drop(&t->others[i]);
  assay_trials_drop(t);
}

// The equations with the fit made, solved for the next step.
static assay_status_t find_step(assay_trials_t* t, const assay_site_sketch_t* all,
                                assay_site_t* site, const fit_t* fit, double* x, bool* out_ok) {
  assay_search_t next[SAMPLES];
  assay_repair_t r;
  const size_t m = assay_site_unknowns(site, site->family);
  assay_site_sketch_t k = {.sites = site, .n = 1, .max = site->max, .end = all->end};
  double* a = NULL;
  size_t n = 0;
  *out_ok = false;
  ASSAY_TRY(make_repair(t->s, site, fit, &r));
  assay_status_t st = adopt_all(t, &r, next, &n);
  k.s = next;
  if (!st && n) st = assay_new_array(k.max, sizeof *k.sides, &k.sides);
  if (!st && n) st = assay_new_array(m * m, sizeof *a, &a);
  if (!st && n) st = assay_site_sketch_equations(&k, next, n, site->position);
  if (!st && n && k.equations >= m + SPARE / 2)
    *out_ok = assay_site_solve(site, site->family, k.sides, assay_site_equations(&k, site), a, x);
  drop_all(t, next, n);
  assay_free(k.sides);
  assay_free(a);
  assay_repair_deinit(&r);
  return st;
}

// Gauss-Newton steps at a site, as long as less is left. a: room for the equations.
static assay_status_t go_on(assay_trials_t* t, const assay_site_sketch_t* all, assay_site_t* site,
                            double* a) {
  static const double ENOUGH = 0.9;  // a step that leaves more than this part is the last
  fit_t fit = {.left = 1};
  double x[ASSAY_SITE_NUMBERS];
  for (int64_t c = 0; has_factors(site) && c < site->channels; c++) fit.factor[c] = 1;
  bool ok = assay_site_solve(site, site->family, all->sides, assay_site_equations(all, site), a, x);
  for (int k = 0; k < STEPS && ok && !t->found && assay_clock_seconds() < all->end; k++) {
    const double before = fit.left;
    ASSAY_TRY(take_step(t, all, site, x, &fit, &ok));
    if (!ok || t->found || fit.left > ENOUGH * before) break;
    ASSAY_TRY(find_step(t, all, site, &fit, x, &ok));
  }
  return NULL;
}

// What a family leaves, as it counts for a turn: many numbers, which take a part of anything away,
// later than few.
static double turn_of(const assay_site_t* site, int family) {
  static const double LATER = 0.75;
  return site->lefts[family] * assay_pow((double)assay_site_unknowns(site, family), LATER);
}

// The site whose turn it is, and its family; NULL: none is worth one.
static assay_site_t* next_site(const assay_site_sketch_t* k) {
  assay_site_t* best = NULL;
  for (size_t i = 0; i < k->n; i++)
    for (int family = FACTORS; family <= (FACTORS | SUMMANDS); family++) {
      assay_site_t* site = &k->sites[i];
      if (!(site->lefts[family] < WORTH)) continue;
      if (best && !(turn_of(site, family) < turn_of(best, best->family))) continue;
      best = site;
      best->family = family;
    }
  return best;
}

// Whether both numbers of each channel can be fitted.
static bool has_more(const assay_site_sketch_t* k, const assay_site_t* site) {
  const int both = FACTORS | SUMMANDS;
  return site->kind == ASSAY_SITE_OUTPUT && site->family != both &&
         assay_site_unknowns(site, both) + SPARE <= k->elements &&
         assay_site_unknowns(site, both) + SPARE <= assay_site_equations(k, site);
}

// A family's turn; both numbers of each channel have another, after the sites that leave as little
// with fewer numbers. The site's equations are of the model as it is only until a step is taken:
// those of the other families are the same as before.
static assay_status_t try_site(assay_trials_t* t, assay_site_sketch_t* k, assay_site_t* site,
                               double* a) {
  const size_t rows = site->max * site->columns;
  double* kept = NULL;
  ASSAY_TRY(assay_new_array(rows, sizeof *kept, &kept));
  memcpy(kept, site->rows, rows * sizeof *kept);
  assay_status_t st = go_on(t, k, site, a);
  memcpy(site->rows, kept, rows * sizeof *kept);
  assay_free(kept);
  double* both = &site->lefts[FACTORS | SUMMANDS];
  site->lefts[site->family] = 1;
  if (!t->found && has_more(k, site) && !site->both_done) *both = fmin(*both, WORTH * (1 - 1e-6));
  site->both_done |= site->family == (FACTORS | SUMMANDS);
  return st;
}

// ---- the whole ---------------------------------------------------------------------------------

// Whether one of the two nodes reads what the other gives, or they are one.
static bool are_beside(const assay_search_t* s, size_t a, size_t b) {
  const assay_node_t *x = s->nodes[a], *y = s->nodes[b];
  for (size_t i = 0; i < x->n_inputs; i++)
    if (x->inputs[i] && x->inputs[i]->producer == y) return true;
  for (size_t i = 0; i < y->n_inputs; i++)
    if (y->inputs[i] && y->inputs[i]->producer == x) return true;
  return a == b;
}

// Two numbers a channel have to leave so much less than one.
static int least_family(const assay_site_t* site) {
  static const double EACH = 2;
  const double both = EACH * site->lefts[FACTORS | SUMMANDS];
  const int one = site->lefts[SUMMANDS] < site->lefts[FACTORS] ? SUMMANDS : FACTORS;
  return both < site->lefts[one] ? FACTORS | SUMMANDS : one;
}

// What restores golden with many numbers may be done by fewer in the node beside: that is likelier
// to be what was lost.
static assay_status_t try_beside(assay_trials_t* t, assay_site_sketch_t* k,
                                 const assay_site_t* found, double* a) {
  static const double NEARLY = 0.5;
  const size_t numbers = assay_site_unknowns(found, found->family);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < k->n && assay_clock_seconds() < k->end; i++) {
    assay_site_t* site = &k->sites[i];
    if (site != found) site->family = least_family(site);
    if (site == found || !(site->left < NEARLY) ||
        !are_beside(t->s, site->position, found->position))
      continue;
    if (assay_site_unknowns(site, site->family) >= numbers) continue;
    t->found = false;
    st = go_on(t, k, site, a);
    t->found = true;
  }
  return st;
}

static size_t max_unknowns(const assay_site_sketch_t* k) {
  size_t max = 0;
  for (size_t i = 0; i < k->n; i++)
    if (k->sites[i].columns > max) max = k->sites[i].columns;
  return max;
}

static assay_status_t first_equations(assay_site_sketch_t* k) {
  assay_search_t all[SAMPLES] = {*k->s};
  size_t n = 1;
  for (; n <= fitted_others(k->s); n++) all[n] = k->s->others[n - 1];
  k->max = (max_unknowns(k) + SPARE + ASSAY_PROBES) * (n > 1 ? 2 : 1);
  ASSAY_TRY(assay_new_array(k->max, sizeof *k->sides, &k->sides));
  for (size_t i = 0; i < k->n; i++) {
    assay_site_t* site = &k->sites[i];
    site->max = (site->columns + SPARE + ASSAY_PROBES) * (n > 1 ? 2 : 1);
    ASSAY_TRY(assay_new_array(site->max * site->columns, sizeof(double), &site->rows));
  }
  return assay_site_sketch_equations(k, all, n, 0);
}

assay_status_t assay_search_channels(assay_trials_t* t, double end) {
  static const double CHANNELS_SHARE = 0.6;
  const double now = assay_clock_seconds();
  assay_site_sketch_t k = {.s = t->s, .end = now + (end - now) / 2};
  double* a = NULL;
  for (size_t i = 0; i < t->s->n_targets; i++) k.elements += (size_t)t->s->targets[i].golden->size;
  for (size_t o = 0; o < fitted_others(t->s); o++)
    for (size_t i = 0; i < t->s->others[o].n_targets; i++)
      k.elements += (size_t)t->s->others[o].targets[i].golden->size;
  assay_status_t st = assay_site_sketch_list(&k);
  if (!st && k.n) st = first_equations(&k);
  if (!st && k.n) {
    const size_t m = max_unknowns(&k);
    st = assay_new_array(m * m, sizeof *a, &a);
    for (size_t i = 0; !st && i < k.n; i++) {
      judge(&k, &k.sites[i], a);
      assay_trials_note(t, k.sites[i].position, k.sites[i].left, CHANNELS_SHARE);
    }
  }
  k.end = end;
  while (!st && !t->found) {
    assay_site_t* best = next_site(&k);
    if (!best || assay_clock_seconds() > end) break;
    st = try_site(t, &k, best, a);
    if (!st && t->found) st = try_beside(t, &k, best, a);
  }
  assay_free(a);
  assay_site_sketch_deinit(&k);
  // Without memory for it the search goes on.
  if (assay_status_code(st) == ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
