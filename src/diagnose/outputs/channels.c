// The method: Gauss-Newton on a sketch. Each probe p (search_predict.h) gives one equation,
// <p, r> + sum over channels of (<J^T p, y>_c a_c + <J^T p, 1>_c b_c) = 0, in the changes a of the
// factors and b of the summands; random signs keep sums of squares on average, so that a few more
// equations than unknowns are enough (D. P. Woodruff, Sketching as a Tool for Numerical Linear
// Algebra, 2014).
#include "diagnose/outputs/channels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/search_predict.h"

enum {
  MAX_CHANNELS = 128,
  SPARE = 16,  // equations besides one for each unknown, on which a fit is judged
  STEPS = 12,
  ROW = 1000  // after all rows of the table
};

// What is fitted: bit 0 factors, bit 1 summands.
enum { FACTORS = 1, SUMMANDS = 2 };

enum { SAMPLES = 4 };  // that equations are taken from

// A node's channels, and its equations.
typedef struct site {
  size_t position;
  int axis;
  int64_t channels;
  double* rows;  // [equations, 2 * channels]: by factors, by summands
  double left;   // of equations that took no part in the fit, over what they are without
  int family;
} site_t;

typedef struct sketch {
  const assay_search_t* s;
  site_t* sites;
  size_t n, capacity;
  double* sides;  // [max]: <p, r>
  size_t equations, max;
  double end;
} sketch_t;

static void sketch_deinit(sketch_t* k) {
  for (size_t i = 0; i < k->n; i++) assay_free(k->sites[i].rows);
  assay_free(k->sites);
  assay_free(k->sides);
}

// ---- sites -------------------------------------------------------------------------------------

static assay_tensor_t* truth_of(const assay_search_t* s, const assay_value_t* v) {
  for (size_t k = 0; k < s->n_targets; k++)
    if (s->targets[k].value == v) return s->targets[k].truth;
  return assay_evaluator_get(s->evaluator, v);
}

static bool is_one_of(const char* op, const char* const* names) {
  for (; *names; names++)
    if (strcmp(op, *names) == 0) return true;
  return false;
}

// The axis of a node's channels; -1: it has none that anything could be folded into.
static int axis_of(const assay_node_t* n, const assay_tensor_t* y) {
  static const char* const second[] = {
      "Conv", "ConvTranspose", "BatchNormalization", "InstanceNormalization", "GroupNormalization",
      NULL};
  static const char* const last[] = {"MatMul",           "Gemm",   "LayerNormalization",
                                     "RMSNormalization", "Gather", NULL};
  if (is_one_of(n->op_type, second)) return y->rank > 1 ? 1 : -1;
  if (is_one_of(n->op_type, last)) return y->rank - 1;
  // A product with or a sum of a constant: the axis along which it lies.
  if (strcmp(n->op_type, "Mul") != 0 && strcmp(n->op_type, "Add") != 0) return -1;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_tensor_t* c = n->inputs[i] ? n->inputs[i]->constant : NULL;
    for (int k = 0; c && c->rank <= y->rank && k < c->rank; k++)
      if (c->dims[k] == c->size && c->size > 1) return k + y->rank - c->rank;
  }
  return -1;
}

static assay_status_t list_sites(sketch_t* k, int64_t elements) {
  const assay_search_t* s = k->s;
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_value_t* v = s->nodes[i]->outputs[0];
    const assay_tensor_t* y = v ? truth_of(s, v) : NULL;
    if (!y || y->kind != ASSAY_KIND_TENSOR || y->store != ASSAY_STORE_F64 || !y->rank) continue;
    const int axis = axis_of(s->nodes[i], y);
    if (axis < 0 || y->dims[axis] < 2 || y->dims[axis] > MAX_CHANNELS) continue;
    // As many unknowns as there are elements of golden can always be met.
    if (y->dims[axis] + SPARE > elements) continue;
    ASSAY_TRY(assay_grow(&k->sites, &k->capacity, k->n + 1, sizeof *k->sites));
    k->sites[k->n++] = (site_t){.position = i, .axis = axis, .channels = y->dims[axis]};
  }
  return NULL;
}

// ---- equations ---------------------------------------------------------------------------------

static void add_row(const site_t* site, const assay_tensor_t* y, const double* g, double* row) {
  const int64_t c = site->channels, inner = assay_dims_product(y->dims, site->axis + 1, y->rank);
  memset(row, 0, 2 * (size_t)c * sizeof *row);
  for (int64_t i = 0; i < y->size / inner; i++) {
    double with = 0, without = 0;
    for (int64_t k = 0; k < inner; k++) {
      with += g[i * inner + k] * assay_f64(y)[i * inner + k];
      without += g[i * inner + k];
    }
    row[i % c] += with;
    row[c + i % c] += without;
  }
}

// One pass backwards: the equations of its probes for all sites. The first pass has that of r, too.
static assay_status_t add_equations(sketch_t* k, const assay_search_t* s, size_t first) {
  assay_predict_t* p = NULL;
  ASSAY_TRY(assay_predict_create(s, &p));
  if (!p) return NULL;
  const int from = k->equations ? 1 : 0;
  const size_t all = k->equations + ASSAY_PROBES - (size_t)from;
  assay_status_t st = NULL;
  size_t at = k->n;
  for (int q = from; q < ASSAY_PROBES; q++)
    k->sides[k->equations + (size_t)(q - from)] = assay_predict_overlap(p, q);
  for (size_t i = s->n_nodes; !st && i-- > first;) {
    while (at > 0 && k->sites[at - 1].position > i) at--;
    site_t* site = at > 0 && k->sites[at - 1].position == i ? &k->sites[at - 1] : NULL;
    const assay_value_t* v = s->nodes[i]->outputs[0];
    const double* g = site && site->rows ? assay_predict_derivatives(p, v) : NULL;
    const assay_tensor_t* y = g ? truth_of(s, v) : NULL;
    for (int q = from; g && q < ASSAY_PROBES; q++)
      add_row(site, y, g + q * y->size,
              site->rows + 2 * site->channels * (int64_t)(k->equations + (size_t)(q - from)));
    if (i > first) st = assay_predict_pass(p, i);
    if (assay_clock_seconds() > k->end) break;
  }
  assay_predict_destroy(p);
  if (!st && assay_clock_seconds() <= k->end) k->equations = all;
  return st;
}

// Equations of all samples in turn; s: searches of n of them.
static assay_status_t make_equations(sketch_t* k, const assay_search_t* s, size_t n, size_t first) {
  k->equations = 0;
  size_t turn = 0, fruitless = 0;
  for (; k->equations + ASSAY_PROBES <= k->max && fruitless < n; turn++) {
    const size_t before = k->equations;
    assay_search_t drawn = s[turn % n];
    drawn.draw += 1 + turn;
    if (assay_clock_seconds() > k->end) break;
    ASSAY_TRY(add_equations(k, &drawn, first));
    fruitless = k->equations == before ? fruitless + 1 : 0;
  }
  return NULL;
}

// ---- least squares -----------------------------------------------------------------------------

// Solves for x[m] in the first n equations, columns scaled to length 1, by Cholesky. The unknowns
// are columns [from, from + m) of rows. False: it is singular.
static bool solve(const site_t* site, const double* sides, size_t n, size_t from, size_t m,
                  double* a, double* x) {
  static const double RIDGE = 1e-10;
  const size_t stride = 2 * (size_t)site->channels;
  double length[2 * MAX_CHANNELS];
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j <= i; j++) {
      double sum = 0;
      for (size_t e = 0; e < n; e++)
        sum += site->rows[e * stride + from + i] * site->rows[e * stride + from + j];
      a[i * m + j] = sum;
    }
    length[i] = a[i * m + i] > 0 ? sqrt(a[i * m + i]) : 1;
    x[i] = 0;
    for (size_t e = 0; e < n; e++) x[i] -= site->rows[e * stride + from + i] * sides[e];
    x[i] /= length[i];
  }
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j <= i; j++) {
      double sum = a[i * m + j] / (length[i] * length[j]) + (i == j ? RIDGE : 0);
      if (i == j && !(a[i * m + i] > 0)) sum = 1;  // it does nothing, and stays
      for (size_t k = 0; k < j; k++) sum -= a[i * m + k] * a[j * m + k];
      if (i == j && !(sum > 0)) return false;
      a[i * m + j] = i == j ? sqrt(sum) : sum / a[j * m + j];
    }
    for (size_t k = 0; k < i; k++) x[i] -= a[i * m + k] * x[k];
    x[i] /= a[i * m + i];
  }
  for (size_t i = m; i-- > 0;) {
    for (size_t k = i + 1; k < m; k++) x[i] -= a[k * m + i] * x[k];
    x[i] /= a[i * m + i];
  }
  for (size_t i = 0; i < m; i++) x[i] /= length[i];
  return true;
}

// What is left in equations [n, end) with x, over what they are.
static double left_in(const site_t* site, const double* sides, size_t n, size_t end, size_t from,
                      size_t m, const double* x) {
  const size_t stride = 2 * (size_t)site->channels;
  double left = 0, all = 0;
  for (size_t e = n; e < end; e++) {
    double r = sides[e];
    for (size_t i = 0; i < m; i++) r += site->rows[e * stride + from + i] * x[i];
    left += r * r;
    all += sides[e] * sides[e];
  }
  return all > 0 ? sqrt(left / all) : 1;
}

static size_t unknowns(const site_t* site, int family) {
  return (size_t)site->channels * (family == (FACTORS | SUMMANDS) ? 2 : 1);
}

static size_t first_of(const site_t* site, int family) {
  return family == SUMMANDS ? (size_t)site->channels : 0;
}

// The families that the equations are enough for, the one that leaves least kept in the site.
static void judge(const sketch_t* k, site_t* site, double* a) {
  static const double EACH = 2;  // two numbers a channel have to leave so much less than one
  double x[2 * MAX_CHANNELS];
  site->left = 1;
  for (int family = FACTORS; family <= (FACTORS | SUMMANDS); family++) {
    const size_t m = unknowns(site, family), from = first_of(site, family);
    if (m + SPARE > k->equations) continue;
    const size_t n = k->equations - SPARE / 2;
    if (!solve(site, k->sides, n, from, m, a, x)) continue;
    const double left = left_in(site, k->sides, n, k->equations, from, m, x);
    if (left * (family == (FACTORS | SUMMANDS) ? EACH : 1) >= site->left) continue;
    site->left = left;
    site->family = family;
  }
}

// ---- going on ----------------------------------------------------------------------------------

// The repair: output times factors, plus summands.
static assay_status_t make_repair(const assay_search_t* s, const site_t* site, const double* factor,
                                  const double* summand, assay_repair_t* out) {
  static const char* const causes[] = {"", "scale of each channel", "bias of each channel",
                                       "scale and bias of each channel"};
  static const char* const operators[] = {"Mul", "Add"};
  const assay_tensor_t* y = truth_of(s, s->nodes[site->position]->outputs[0]);
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

// The output times factors plus summands, as fitted so far, and what that leaves.
typedef struct fit {
  double factor[MAX_CHANNELS], summand[MAX_CHANNELS];
  double left;
} fit_t;

// A step x from a fit, or a part of it.
static void move(const site_t* site, const fit_t* from, const double* x, double part, fit_t* to) {
  for (int64_t c = 0; c < site->channels; c++) {
    const double times = site->family & FACTORS ? 1 + part * x[c] : 1;
    const double plus =
        site->family & SUMMANDS ? x[site->family == SUMMANDS ? c : site->channels + c] : 0;
    to->factor[c] = from->factor[c] * times;
    to->summand[c] = from->summand[c] * times + part * plus;
  }
}

// The whole step, or the part of it that leaves less than before. *out_ok false: there is none.
static assay_status_t take_step(assay_trials_t* t, const sketch_t* all, const site_t* site,
                                const double* x, fit_t* fit, bool* out_ok) {
  *out_ok = false;
  for (double part = 1; part > 0.1 && assay_clock_seconds() < all->end; part /= 2) {
    fit_t next = *fit;
    assay_repair_t r;
    move(site, fit, x, part, &next);
    ASSAY_TRY(make_repair(t->s, site, next.factor, next.summand, &r));
    t->rank = ROW;
    t->position = site->position;
    assay_status_t st = assay_trials_try(t, &r);
    assay_repair_deinit(&r);
    if (st) return st;
    next.left = t->remains;
    if (!(next.left < fit->left)) continue;
    *fit = next;
    *out_ok = true;
    return NULL;
  }
  return NULL;
}

// The searches of all samples with a repair made, as far as it fits.
static assay_status_t adopt_all(assay_trials_t* t, const assay_repair_t* r, assay_search_t* next,
                                size_t* out_n) {
  const size_t others = t->s->n_others < SAMPLES - 1 ? t->s->n_others : SAMPLES - 1;
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
static assay_status_t find_step(assay_trials_t* t, const sketch_t* all, site_t* site,
                                const fit_t* fit, double* x, bool* out_ok) {
  assay_search_t next[SAMPLES];
  assay_repair_t r;
  const size_t m = unknowns(site, site->family), from = first_of(site, site->family);
  sketch_t k = {.sites = site, .n = 1, .max = all->max, .end = all->end};
  double* a = NULL;
  size_t n = 0;
  *out_ok = false;
  ASSAY_TRY(make_repair(t->s, site, fit->factor, fit->summand, &r));
  assay_status_t st = adopt_all(t, &r, next, &n);
  k.s = next;
  if (!st && n) st = assay_new_array(k.max, sizeof *k.sides, &k.sides);
  if (!st && n) st = assay_new_array(m * m, sizeof *a, &a);
  if (!st && n) st = make_equations(&k, next, n, site->position);
  if (!st && n && k.equations >= m + SPARE / 2)
    *out_ok = solve(site, k.sides, k.equations, from, m, a, x);
  drop_all(t, next, n);
  assay_free(k.sides);
  assay_free(a);
  assay_repair_deinit(&r);
  return st;
}

// Gauss-Newton steps at a site, as long as less is left. a: room for the equations.
static assay_status_t go_on(assay_trials_t* t, const sketch_t* all, site_t* site, double* a) {
  static const double ENOUGH = 0.9;  // a step that leaves more than this part is the last
  fit_t fit = {.left = 1};
  double x[2 * MAX_CHANNELS];
  const size_t m = unknowns(site, site->family), from = first_of(site, site->family);
  for (int64_t c = 0; c < site->channels; c++) fit.factor[c] = 1;
  bool ok = solve(site, all->sides, all->equations, from, m, a, x);
  for (int k = 0; k < STEPS && ok && !t->found && assay_clock_seconds() < all->end; k++) {
    const double before = fit.left;
    ASSAY_TRY(take_step(t, all, site, x, &fit, &ok));
    if (!ok || t->found || fit.left > ENOUGH * before) break;
    ASSAY_TRY(find_step(t, all, site, &fit, x, &ok));
  }
  return NULL;
}

// The family that fits best to first order, then both numbers of each channel. The site's equations
// are of the model as it is only until a step is taken: those of the other family are made anew.
static assay_status_t try_families(assay_trials_t* t, sketch_t* k, site_t* site, double* a) {
  const size_t rows = k->max * 2 * (size_t)site->channels;
  double* kept = NULL;
  ASSAY_TRY(assay_new_array(rows, sizeof *kept, &kept));
  memcpy(kept, site->rows, rows * sizeof *kept);
  assay_status_t st = go_on(t, k, site, a);
  const int both = FACTORS | SUMMANDS;
  if (!st && !t->found && site->family != both && unknowns(site, both) + SPARE <= k->equations) {
    memcpy(site->rows, kept, rows * sizeof *kept);
    site->family = both;
    st = go_on(t, k, site, a);
  }
  assay_free(kept);
  return st;
}

// ---- the whole ---------------------------------------------------------------------------------

static size_t max_unknowns(const sketch_t* k) {
  size_t max = 0;
  for (size_t i = 0; i < k->n; i++)
    if (2 * (size_t)k->sites[i].channels > max) max = 2 * (size_t)k->sites[i].channels;
  return max;
}

static assay_status_t first_equations(sketch_t* k) {
  assay_search_t all[SAMPLES] = {*k->s};
  size_t n = 1;
  for (; n < SAMPLES && n <= k->s->n_others; n++) all[n] = k->s->others[n - 1];
  k->max = (max_unknowns(k) + SPARE + ASSAY_PROBES) * (n > 1 ? 2 : 1);
  ASSAY_TRY(assay_new_array(k->max, sizeof *k->sides, &k->sides));
  for (size_t i = 0; i < k->n; i++)
    ASSAY_TRY(assay_new_array(k->max * 2 * (size_t)k->sites[i].channels, sizeof(double),
                              &k->sites[i].rows));
  return make_equations(k, all, n, 0);
}

assay_status_t assay_search_channels(assay_trials_t* t, double end) {
  static const double CHANNELS_SHARE = 0.6;
  static const double WORTH = 0.98;  // equations that took no part are met so far, at least
  const double now = assay_clock_seconds();
  sketch_t k = {.s = t->s, .end = now + (end - now) / 2};
  int64_t elements = 0;
  double* a = NULL;
  for (size_t i = 0; i < t->s->n_targets; i++) elements += t->s->targets[i].golden->size;
  elements *= 1 + (int64_t)t->s->n_others;
  assay_status_t st = list_sites(&k, elements);
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
    site_t* best = NULL;
    for (size_t i = 0; i < k.n; i++)
      if (k.sites[i].left < WORTH && (!best || k.sites[i].left < best->left)) best = &k.sites[i];
    if (!best || assay_clock_seconds() > end) break;
    st = try_families(t, &k, best, a);
    best->left = 1;
  }
  assay_free(a);
  sketch_deinit(&k);
  // Without memory for it the search goes on.
  if (assay_status_code(st) == ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
