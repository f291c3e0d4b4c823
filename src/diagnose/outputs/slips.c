// First the same change of all nodes that have the same attributes, and of all in which it changes
// the same, a run each, by what is forecast of them: pads of [0, 0, 2, 2] are wrong whatever the
// strides. Then each repair is followed to the targets once. To first order their effects add:
// pairs whose sum is nearest to what golden differs by are what sets begin with. A set is run as a
// whole; then what is left tells which repair of another node comes next.
#include "diagnose/outputs/slips.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/causes/surroundings.h"
#include "diagnose/search_trial.h"

// SPARE: elements of golden that there have to be: fewer are met by chance.
enum { MAX = ASSAY_SEARCH_FAULTS, CANDIDATES = 256, BEGINNINGS = 16, SPARE = 6 };

// Numbers kept for effects: of more the targets are thinned out.
static const int64_t KEPT = 1 << 21;

// A repair that is not expected to leave less than this of the rest (of its squares) is no part.
static const double USELESS = 0.95;

// ---- candidates ---------------------------------------------------------------------------------

assay_status_t assay_slips_add(assay_slips_t* a, const assay_repair_t* r,
                               const assay_forecast_t* forecast) {
  if (r->fits || !r->n_edits) return NULL;
  for (size_t i = 0; i < r->n_edits; i++)
    if (r->edits[i].kind != ASSAY_EDIT_ATTR) return NULL;
  ASSAY_TRY(assay_grow(&a->at, &a->capacity, a->n + 1, sizeof *a->at));
  ASSAY_TRY(assay_grow(&a->forecasts, &a->cap_forecasts, a->n + 1, sizeof *a->forecasts));
  ASSAY_TRY(assay_repair_copy(r, &a->at[a->n]));
  a->forecasts[a->n++] = forecast ? *forecast : (assay_forecast_t){0};
  return NULL;
}

void assay_slips_deinit(assay_slips_t* a) {
  for (size_t i = 0; i < a->n; i++) assay_repair_deinit(&a->at[i]);
  assay_free(a->at);
  assay_free(a->forecasts);
  *a = (assay_slips_t){0};
}

// ---- one operator -------------------------------------------------------------------------------

typedef struct slip_effect {
  const assay_repair_t* repair;
  double* effect;  // on the targets, [n]
} slip_effect_t;

// Repairs of nodes that are made together.
typedef struct slip_set {
  size_t at[MAX];  // candidates
  size_t n;
  double left;  // squares, as they are expected to be
} slip_set_t;

typedef struct slip_search {
  assay_search_t s;
  assay_trials_t trials;
  double end;
  slip_effect_t at[CANDIDATES];
  size_t n_candidates;
  int64_t stride, n;  // every stride-th element of the targets; so many of them
  double* effects;    // [CANDIDATES, n]
  double* rest;       // [n]: what golden is away
  bool restored;
} slip_search_t;

static void adopt(slip_search_t* a, const slip_set_t* set) {
  a->s.n_adopted = 0;
  for (size_t i = 0; i < set->n; i++) a->s.adopted[a->s.n_adopted++] = a->at[set->at[i]].repair;
}

// Golden less the targets with a set, over golden's size. *out_fits false: they have other shapes
// or are not finite.
static assay_status_t run(slip_search_t* a, const slip_set_t* set, double* out, bool* out_fits) {
  int64_t at = 0;
  adopt(a, set);
  ASSAY_TRY(assay_trials_evaluate_adopted(&a->trials, &a->restored, out_fits));
  for (size_t t = 0; *out_fits && t < a->s.n_targets; t++) {
    const assay_search_target_t* g = &a->s.targets[t];
    const assay_tensor_t* now = a->trials.got[t] ? a->trials.got[t] : g->truth;
    const assay_difference_t d = assay_difference(now, g->golden);
    const double scale = 1 / fmax(d.ref_rms * sqrt((double)(d.n + 1)), 1e-300);
    *out_fits = d.comparable && now->store == ASSAY_STORE_F64 && !d.mismatched;
    for (int64_t i = 0; *out_fits && i < g->golden->size; i += a->stride) {
      out[at] = scale * (assay_f64(g->golden)[i] - assay_f64(now)[i]);
      *out_fits = isfinite(out[at++]);
    }
  }
  return NULL;
}

static double dot(const double* x, const double* y, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += x[i] * y[i];
  return sum;
}

// What is left of `rest` with another effect on top.
static double left_with(const double* rest, const double* effect, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (rest[i] - effect[i]) * (rest[i] - effect[i]);
  return sum;
}

// Runs a repair by itself; it is kept if it does something.
static assay_status_t add_candidate(slip_search_t* a, const assay_repair_t* r) {
  slip_effect_t* c = &a->at[a->n_candidates];
  const slip_set_t alone = {.at = {a->n_candidates}, .n = 1};
  bool fits = false;
  *c = (slip_effect_t){r, a->effects + (int64_t)a->n_candidates * a->n};
  ASSAY_TRY(run(a, &alone, c->effect, &fits));
  if (!fits) return NULL;
  for (int64_t i = 0; i < a->n; i++) c->effect[i] = a->rest[i] - c->effect[i];
  // Other words for what an earlier one does are no other repair.
  bool is_new = dot(c->effect, c->effect, a->n) > 0;
  for (size_t i = 0; i < a->n_candidates && is_new; i++)
    is_new = a->at[i].repair->node != r->node ||
             memcmp(a->at[i].effect, c->effect, (size_t)a->n * sizeof *c->effect) != 0;
  a->n_candidates += is_new;
  return NULL;
}

static void keep_beginning(slip_set_t* all, size_t* n, size_t i, size_t j, double left) {
  size_t at = *n < BEGINNINGS ? (*n)++ : BEGINNINGS - 1;
  if (at == BEGINNINGS - 1 && *n == BEGINNINGS && all[at].n && all[at].left <= left) return;
  for (; at > 0 && all[at - 1].left > left; at--) all[at] = all[at - 1];
  all[at] = (slip_set_t){.at = {i, j}, .n = 2, .left = left};
}

// The pairs whose effects are expected to leave least.
static size_t find_beginnings(const slip_search_t* a, slip_set_t* out) {
  const double whole = dot(a->rest, a->rest, a->n);
  size_t n = 0;
  double single[CANDIDATES];
  for (size_t i = 0; i < a->n_candidates; i++)
    single[i] = left_with(a->rest, a->at[i].effect, a->n);
  for (size_t i = 0; i < a->n_candidates; i++)
    for (size_t j = 0; j < i; j++) {
      if (a->at[i].repair->node == a->at[j].repair->node) continue;
      const double both = dot(a->at[i].effect, a->at[j].effect, a->n);
      const double left = single[i] + single[j] - whole + 2 * both;
      if (left < USELESS * whole) keep_beginning(out, &n, i, j, left);
    }
  return n;
}

static bool has_node(const slip_search_t* a, const slip_set_t* set, const assay_node_t* node) {
  for (size_t i = 0; i < set->n; i++)
    if (a->at[set->at[i]].repair->node == node) return true;
  return false;
}

// Adds the repair of another node that is expected to leave least of the rest. False: none does.
static bool grow(const slip_search_t* a, const double* rest, slip_set_t* set) {
  double min = USELESS * dot(rest, rest, a->n);
  size_t best = a->n_candidates;
  for (size_t i = 0; i < a->n_candidates; i++) {
    if (has_node(a, set, a->at[i].repair->node)) continue;
    const double left = left_with(rest, a->at[i].effect, a->n);
    if (left < min) min = left, best = i;
  }
  if (best == a->n_candidates || set->n == MAX) return false;
  set->at[set->n++] = best;
  return true;
}

static assay_status_t try_set(slip_search_t* a, slip_set_t* set, double* rest, bool* out_restored) {
  bool fits = true;
  double before = INFINITY;
  do {
    ASSAY_TRY(run(a, set, rest, &fits));
    *out_restored = fits && a->restored;
    const double left = fits ? dot(rest, rest, a->n) : (double)INFINITY;
    if (*out_restored || !fits || left >= before || assay_clock_seconds() > a->end) return NULL;
    before = left;
  } while (grow(a, rest, set));
  return NULL;
}

// What golden is restored without is not a fault.
static assay_status_t drop_needless(slip_search_t* a, slip_set_t* set, double* rest) {
  for (size_t i = set->n; i-- > 0 && set->n > 1;) {
    slip_set_t less = *set;
    bool fits = false;
    memmove(less.at + i, less.at + i + 1, (less.n - i - 1) * sizeof *less.at);
    less.n--;
    ASSAY_TRY(run(a, &less, rest, &fits));
    if (fits && a->restored) *set = less;
  }
  bool fits = false;
  return run(a, set, rest, &fits);
}

// Whether golden is restored in the other samples, too, which took no part.
static assay_status_t verify(const slip_search_t* a, const slip_set_t* set, bool* out) {
  for (size_t k = 0; *out && k < a->s.n_others; k++) {
    assay_search_t other = a->s.others[k];
    assay_trials_t trials;
    bool fits = false, restored = false;
    for (other.n_adopted = 0; other.n_adopted < set->n; other.n_adopted++)
      other.adopted[other.n_adopted] = a->at[set->at[other.n_adopted]].repair;
    other.n_others = 0;
    ASSAY_TRY(assay_trials_init(&other, &trials));
    assay_status_t st = assay_trials_evaluate_adopted(&trials, &restored, &fits);
    assay_trials_deinit(&trials);
    if (st) return st;
    *out = fits && restored;
  }
  return NULL;
}

static assay_status_t report(const slip_search_t* a, const slip_set_t* set, const double* rest,
                             assay_fault_t* out, size_t* out_n) {
  const double whole = fmax(dot(a->rest, a->rest, a->n), 1e-300);
  for (size_t i = 0; i < set->n; i++) {
    const assay_repair_t* r = a->at[set->at[i]].repair;
    out[*out_n] = (assay_fault_t){.node = r->node,
                                  .has_repair = true,
                                  .restored = true,
                                  .remains = sqrt(dot(rest, rest, a->n) / whole)};
    ASSAY_TRY(assay_repair_copy(r, &out[*out_n].repair));
    ++*out_n;
  }
  return NULL;
}

// Takes a set over if it restores golden, in all samples.
static assay_status_t take(slip_search_t* a, slip_set_t* set, double* rest, assay_fault_t* out,
                           size_t* out_n) {
  bool restored = true;
  ASSAY_TRY(drop_needless(a, set, rest));
  ASSAY_TRY(verify(a, set, &restored));
  return restored ? report(a, set, rest, out, out_n) : NULL;
}

// ---- the same change ----------------------------------------------------------------------------

// What an edit sets, as a node that has nothing else.
static bool sets_alike(const assay_repair_edit_t* x, const assay_repair_edit_t* y) {
  assay_attr_t a = x->attr, b = y->attr;
  if (strcmp(a.name, b.name) != 0 || a.type != b.type || a.n != b.n) return false;
  if (!a.type) return true;  // taken away
  if (a.type == ASSAY_ATTR_INTS) a.u.ints = x->numbers, b.u.ints = y->numbers;
  const assay_node_t one = {.attrs = &a, .n_attrs = 1}, other = {.attrs = &b, .n_attrs = 1};
  return assay_around_same_attrs(&one, &other);
}

// Whether both nodes have the same now where an edit sets something.
static bool have_alike(const assay_repair_t* x, const assay_repair_t* y) {
  for (size_t i = 0; i < x->n_edits; i++) {
    const assay_attr_t* a = assay_node_attr(x->node, x->edits[i].attr.name);
    const assay_attr_t* b = assay_node_attr(y->node, x->edits[i].attr.name);
    assay_attr_t was = a ? *a : (assay_attr_t){0}, other = b ? *b : (assay_attr_t){0};
    const assay_node_t one = {.attrs = &was, .n_attrs = a ? 1 : 0};
    const assay_node_t another = {.attrs = &other, .n_attrs = b ? 1 : 0};
    if (!assay_around_same_attrs(&one, &another)) return false;
  }
  return true;
}

// wide: whatever other attributes the nodes have.
static bool is_same_slip(const assay_repair_t* x, const assay_repair_t* y, bool wide) {
  if (x->n_edits != y->n_edits || strcmp(x->node->op_type, y->node->op_type) != 0 ||
      !(wide ? have_alike(x, y) : assay_around_same_attrs(x->node, y->node)))
    return false;
  for (size_t i = 0; i < x->n_edits; i++)
    if (!sets_alike(&x->edits[i], &y->edits[i])) return false;
  return true;
}

// Repairs like the first of them, of all nodes that have one; left empty if that was done before.
static void gather_slip(slip_search_t* a, const assay_slips_t* all, size_t first, bool wide,
                        slip_set_t* out) {
  *out = (slip_set_t){0};
  a->n_candidates = 0;
  for (size_t i = 0; i < all->n && a->n_candidates < CANDIDATES; i++) {
    if (!is_same_slip(&all->at[i], &all->at[first], wide)) continue;
    if (i < first) break;
    if (has_node(a, out, all->at[i].node)) continue;
    if (out->n == MAX) break;
    a->at[a->n_candidates].repair = &all->at[i];
    out->at[out->n++] = a->n_candidates++;
  }
}

// Repairs that are one slip.
typedef struct slip_group {
  size_t first;    // of the repairs
  bool wide;       // is_same_slip
  double promise;  // what is forecast to be left; NONE: nothing is
} slip_group_t;

static const double NONE = 2;

// To first order effects add. How large they are then is not told: the sizes of many do not add.
static double promise_of(const slip_search_t* a, const assay_slips_t* all, const slip_set_t* set) {
  assay_forecast_t sum = {0};
  for (size_t i = 0; i < set->n; i++) {
    const assay_forecast_t* f = &all->forecasts[a->at[set->at[i]].repair - all->at];
    if (!f->known) continue;  // it may not have been listed
    sum.known = true;
    sum.along += f->along;
    for (int q = 0; q < ASSAY_PROBES - 1; q++) sum.across[q] += f->across[q];
  }
  const double best = assay_forecast_best(&sum);
  return best <= 1 && sum.along < 0 ? best : NONE;
}

static int by_promise(const void* a, const void* b) {
  const slip_group_t *x = a, *y = b;
  if (x->promise != y->promise) return x->promise < y->promise ? -1 : 1;
  if (x->first != y->first) return x->first < y->first ? -1 : 1;
  return (x->wide > y->wide) - (x->wide < y->wide);
}

// Half of the time may go into it.
static size_t list_groups(slip_search_t* a, const assay_slips_t* all, slip_group_t* out) {
  const double now = assay_clock_seconds(), until = now + (a->end - now) / 2;
  size_t n = 0;
  for (size_t i = 0; i < all->n && assay_clock_seconds() < until; i++) {
    size_t narrow = 0;
    for (int wide = 0; wide < 2; wide++) {
      slip_set_t set;
      gather_slip(a, all, i, wide, &set);
      if (set.n < 2 || (wide && set.n == narrow)) continue;
      narrow = set.n;
      out[n++] = (slip_group_t){i, wide, promise_of(a, all, &set)};
    }
  }
  if (n) qsort(out, n, sizeof *out, by_promise);
  return n;
}

// The first few that are forecast to leave less are run while there is any time.
static bool has_time(const slip_search_t* a, const slip_group_t* g, size_t i) {
  enum { FEW = 6 };
  const double now = assay_clock_seconds();
  return now < a->end || (i < FEW && g->promise < NONE && now < a->s.deadline);
}

static assay_status_t find_slip(slip_search_t* a, const assay_slips_t* all, double* rest,
                                assay_fault_t* out, size_t* out_n) {
  slip_group_t* groups = NULL;
  ASSAY_TRY(assay_new_array(all->n, 2 * sizeof *groups, &groups));
  const size_t n = list_groups(a, all, groups);
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < n && !*out_n && has_time(a, &groups[i], i); i++) {
    slip_set_t set;
    bool fits = false;
    gather_slip(a, all, groups[i].first, groups[i].wide, &set);
    st = run(a, &set, rest, &fits);
    if (!st && fits && a->restored) st = take(a, &set, rest, out, out_n);
  }
  assay_free(groups);
  return st;
}

// ---- any of one operator ------------------------------------------------------------------------

static assay_status_t find_sum(slip_search_t* a, const assay_slips_t* all, const char* op_type,
                               double* rest, assay_fault_t* out, size_t* out_n) {
  slip_set_t sets[BEGINNINGS] = {0};
  bool restored = false;
  const double until = assay_clock_seconds() + 0.7 * (a->end - assay_clock_seconds());
  a->n_candidates = 0;
  for (size_t i = 0; i < all->n && a->n_candidates < CANDIDATES; i++) {
    if (strcmp(all->at[i].node->op_type, op_type) != 0) continue;
    if (assay_clock_seconds() > until) break;
    ASSAY_TRY(add_candidate(a, &all->at[i]));
  }
  const size_t n = find_beginnings(a, sets);
  for (size_t i = 0; i < n && !*out_n && assay_clock_seconds() < a->end; i++) {
    ASSAY_TRY(try_set(a, &sets[i], rest, &restored));
    if (restored) ASSAY_TRY(take(a, &sets[i], rest, out, out_n));
  }
  return NULL;
}

// Whether the repair is the first one of its operator, and another node has some, too.
static bool begins_operator(const assay_slips_t* all, size_t i) {
  const char* op_type = all->at[i].node->op_type;
  bool several = false;
  for (size_t k = 0; k < all->n; k++) {
    if (strcmp(all->at[k].node->op_type, op_type) != 0) continue;
    if (k < i) return false;
    several |= all->at[k].node != all->at[i].node;
  }
  return several;
}

static assay_status_t find(slip_search_t* a, const assay_slips_t* all, double end, double* rest,
                           assay_fault_t* out, size_t* out_n) {
  const slip_set_t none = {0};
  bool fits = false;
  size_t n = 0;
  ASSAY_TRY(run(a, &none, a->rest, &fits));
  if (!fits) return NULL;
  a->end = end;
  ASSAY_TRY(find_slip(a, all, rest, out, out_n));
  for (size_t i = 0; i < all->n; i++) n += begins_operator(all, i);
  for (size_t i = 0; i < all->n && !*out_n; i++) {
    if (!begins_operator(all, i)) continue;
    const double now = assay_clock_seconds();
    if (now > end) break;
    a->end = now + (end - now) / (double)n--;
    ASSAY_TRY(find_sum(a, all, all->at[i].node->op_type, rest, out, out_n));
  }
  return NULL;
}

// ---- the whole ----------------------------------------------------------------------------------

static assay_status_t allocate(slip_search_t* a, double** rest) {
  ASSAY_TRY(assay_new_array((size_t)a->n * CANDIDATES, sizeof *a->effects, &a->effects));
  ASSAY_TRY(assay_new_array((size_t)a->n, sizeof *a->rest, &a->rest));
  return assay_new_array((size_t)a->n, sizeof **rest, rest);
}

assay_status_t assay_search_slips(const assay_search_t* s, const assay_slips_t* all, double end,
                                  assay_fault_t* out, size_t* out_n, size_t* trials) {
  slip_search_t* a = NULL;
  double* rest = NULL;
  int64_t elems = 0;
  *out_n = *trials = 0;
  for (size_t k = 0; k < s->n_targets; k++) elems += s->targets[k].golden->size;
  ASSAY_TRY(ASSAY_NEW(&a));
  a->s = *s;
  a->stride = elems / (KEPT / CANDIDATES) + 1;
  for (size_t k = 0; k < s->n_targets; k++)
    a->n += (s->targets[k].golden->size + a->stride - 1) / a->stride;
  assay_status_t st = assay_trials_init(&a->s, &a->trials);
  if (st) return assay_free(a), st;
  if (a->n >= SPARE) st = allocate(a, &rest);
  if (!st && rest) st = find(a, all, end, rest, out, out_n);
  *trials += a->s.trials - s->trials;
  assay_trials_deinit(&a->trials);
  assay_free(a->effects);
  assay_free(a->rest);
  assay_free(rest);
  assay_free(a);
  for (size_t i = 0; st && i < *out_n; i++) assay_repair_deinit(&out[i].repair);
  if (st) *out_n = 0;
  return st;
}
