// A factor and a summand for each channel, and numbers of constants: Gauss-Newton on a sketch.
#include "diagnose/outputs/channels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/functions.h"
#include "diagnose/outputs/site_fit.h"
#include "diagnose/search_predict.h"

enum { FACTORS = ASSAY_SITE_FACTORS, SUMMANDS = ASSAY_SITE_SUMMANDS };
enum { SAMPLES = ASSAY_SITE_SAMPLES, SPARE = ASSAY_SITE_SPARE };

// What each family that the equations are enough for leaves; the best one counts for the site.
static void judge(const assay_site_sketch_t* k, assay_site_t* site, double* a) {
  static const double RIDGE = 1e-10;
  double x[ASSAY_SITE_NUMBERS];
  const size_t all = assay_site_equations(k, site), n = all - SPARE / 2;
  site->left = 1;
  for (int family = FACTORS; family <= (FACTORS | SUMMANDS); family++) {
    double* left = &site->lefts[family];
    *left = 1;
    if (site->kind != ASSAY_SITE_OUTPUT && family != FACTORS) continue;
    const size_t unknowns = assay_site_unknowns(site, family);
    const size_t needed = unknowns + assay_site_spare(unknowns);
    if (needed > all || needed > k->elements) continue;
    if (!assay_site_solve(site, family, k->sides, n, RIDGE, a, x)) continue;
    *left = assay_site_left(site, family, k->sides, n, all, x);
    site->left = fmin(site->left, *left);
  }
}

static const double WORTH = 0.98;  // equations that took no part are met so far, at least

// ---- turns --------------------------------------------------------------------------------------

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

// A step that leaves more than this part of what was left is the last at first.
static const double ENOUGH = 0.9;

// ---- fits that went on slowly -------------------------------------------------------------------

enum { HOPES = 6 };

typedef struct hopes {
  struct {
    assay_site_t* site;
    int family;
    double merit;
    assay_site_fit_t fit;
  } at[HOPES];
  size_t n;
} hopes_t;

// Keeps a fit if it is among those that leave least for how many numbers they have.
static void note_hope(hopes_t* h, assay_site_t* site, const assay_site_fit_t* fit) {
  static const double NUMBERS = 0.25;
  const double numbers = (double)assay_site_unknowns(site, site->family);
  const double merit = fit->left * assay_pow(numbers, NUMBERS);
  size_t at = h->n;
  if (!(fit->left < 1)) return;
  if (h->n < HOPES) h->n++;
  for (; at > 0 && h->at[at - 1].merit > merit; at--)
    if (at < HOPES) h->at[at] = h->at[at - 1];
  if (at == HOPES) return;
  h->at[at].site = site;
  h->at[at].family = site->family;
  h->at[at].merit = merit;
  h->at[at].fit = *fit;
}

// Where an activation bends, or a border is far off, steps are many.
static assay_status_t try_hopes(assay_trials_t* t, assay_site_sketch_t* k, double* a, hopes_t* h) {
  static const double PATIENT = 0.99;
  const double end = k->end;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < h->n && !t->found; i++) {
    const double now = assay_clock_seconds();
    k->end = now + (end - now) / 2;
    h->at[i].site->family = h->at[i].family;
    st = assay_site_fit_go_on(t, k, h->at[i].site, a, PATIENT, &h->at[i].fit);
  }
  k->end = end;
  return st;
}

// ---- one after the other ------------------------------------------------------------------------

// A family's turn; both numbers of each channel have another, after the sites that leave as little
// with fewer numbers. The site's equations are of the model as it is only until a step is taken:
// those of the other families are the same as before.
static assay_status_t try_site(assay_trials_t* t, assay_site_sketch_t* k, assay_site_t* site,
                               double* a, hopes_t* hopes) {
  const size_t rows = site->max * site->columns;
  double* kept = NULL;
  ASSAY_TRY(assay_new_array(rows, sizeof *kept, &kept));
  memcpy(kept, site->rows, rows * sizeof *kept);
  assay_site_fit_t fit;
  assay_site_fit_begin(site, &fit);
  assay_status_t st = assay_site_fit_go_on(t, k, site, a, ENOUGH, &fit);
  if (!st && !t->found && site->columns == 1) {
    const double before = fit.left;
    st = assay_site_fit_scan(t, k->end, site, &fit);
    if (!st && fit.left < before) st = assay_site_fit_go_on(t, k, site, a, ENOUGH, &fit);
  }
  memcpy(site->rows, kept, rows * sizeof *kept);
  assay_free(kept);
  if (!st && !t->found) note_hope(hopes, site, &fit);
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
static int smallest_family(const assay_site_t* site) {
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
    if (site != found) site->family = smallest_family(site);
    if (site == found || !(site->left < NEARLY) ||
        !are_beside(t->s, site->position, found->position))
      continue;
    if (assay_site_unknowns(site, site->family) >= numbers) continue;
    t->found = false;
    assay_site_fit_t fit;
    assay_site_fit_begin(site, &fit);
    st = assay_site_fit_go_on(t, k, site, a, ENOUGH, &fit);
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
  for (; n <= assay_site_fitted_others(k->s); n++) all[n] = k->s->others[n - 1];
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
  for (size_t o = 0; o < assay_site_fitted_others(t->s); o++)
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
  hopes_t hopes = {.n = 0};
  k.end = end;
  while (!st && !t->found) {
    assay_site_t* best = next_site(&k);
    if (!best || assay_clock_seconds() > end) break;
    st = try_site(t, &k, best, a, &hopes);
    if (!st && t->found) st = try_beside(t, &k, best, a);
  }
  if (!st && !t->found) st = try_hopes(t, &k, a, &hopes);
  assay_free(a);
  assay_site_sketch_deinit(&k);
  // Without memory for it the search goes on.
  if (assay_status_code(st) == ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
