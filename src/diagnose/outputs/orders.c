// Axes of weights whose elements stand in another order.
//
// To first order a weight W with its rows in the order p moves the targets by sum over rows i of
// <J^T q, W[p(i)] - W[i]> along a probe q (search_predict.h). With these products for all pairs of
// rows and a few more probes than rows, what an order leaves is a sum, and two rows that change
// places change one term of each equation: orders are improved by exchanges, from several starts.
// The best is tried, and the equations are made anew where it helped. The method: exchanges of two
// for assignments, of B. W. Kernighan and S. Lin, 1970. Source of the fault: columns of a table
// sorted by their names, csinva/imodels issue 290.
#include "diagnose/outputs/orders.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/outputs/sides.h"
#include "diagnose/outputs/site_fit.h"

enum {
  LEAST = 3,
  MOST = 40,   // rows
  EXTRA = 16,  // equations besides one a row
  STARTS = 24,
  ROUNDS = 12,
  ROW = 950,      // after all rows of the table
  TRIED = 8,      // sites
  WORK = 1 << 22  // products of a pass
};

typedef struct site {
  size_t position, input, bias;  // bias: the input that goes with it; 0: none does
  int axis;
  int64_t n;
  double* products;  // [max, n, n]: of each equation, for row i what row j gives in its place
  size_t max;
  double left, reached;  // as predicted, and as tried
  int64_t order[MOST];
} site_t;

typedef struct sites {
  site_t* at;
  size_t n, capacity;
  double* sides;
  size_t equations, max;
} sites_t;

static void sites_deinit(sites_t* k) {
  for (size_t i = 0; i < k->n; i++) assay_free(k->at[i].products);
  assay_free(k->at);
  assay_free(k->sides);
}

static void order_text(const int64_t* order, int64_t n, char* text, size_t size) {
  enum { SHOWN = 16 };
  size_t used = 0;
  *text = 0;
  for (int64_t i = 0; i < n && i < SHOWN && used < size; i++)
    used += (size_t)snprintf(text + used, size - used, i ? ",%lld" : "%lld", (long long)order[i]);
  if (n > SHOWN && used < size) snprintf(text + used, size - used, ",...");
}

// ---- which --------------------------------------------------------------------------------------

static bool is_weight(const assay_search_t* s, const assay_value_t* v) {
  const assay_tensor_t* w = v && v->constant ? assay_evaluator_get(s->evaluator, v) : NULL;
  return w && w->kind == ASSAY_KIND_TENSOR && assay_type_is_float(w->type);
}

static assay_status_t add(sites_t* k, const assay_search_t* s, site_t site) {
  const assay_tensor_t* w =
      assay_evaluator_get(s->evaluator, s->nodes[site.position]->inputs[site.input]);
  site.n = w->dims[site.axis];
  if (site.n < LEAST || site.n > MOST || w->size * site.n * ASSAY_PROBES > WORK) return NULL;
  for (int64_t i = 0; i < site.n; i++) site.order[i] = i;
  ASSAY_TRY(assay_grow(&k->at, &k->capacity, k->n + 1, sizeof *k->at));
  k->at[k->n++] = site;
  return NULL;
}

// The axes of what a product of sums reads, and of what it makes, together with its own bias.
static assay_status_t list(sites_t* k, const assay_search_t* s) {
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_node_t* n = s->nodes[i];
    assay_sides_t sides;
    int read = 0, made = 0;
    if (!assay_sides_of(n, &sides) || !is_weight(s, n->inputs[sides.weight])) continue;
    const assay_tensor_t* w = assay_evaluator_get(s->evaluator, n->inputs[sides.weight]);
    if (!assay_sides_weight_axes(n, &sides, w, &read, &made)) continue;
    const bool has_bias = n->n_inputs > 2 && n->inputs[2];
    const assay_tensor_t* b = has_bias && is_weight(s, n->inputs[2])
                                  ? assay_evaluator_get(s->evaluator, n->inputs[2])
                                  : NULL;
    ASSAY_TRY(add(k, s, (site_t){.position = i, .input = sides.weight, .axis = read}));
    if (!has_bias || (b && b->rank == 1 && b->size == w->dims[made]))
      ASSAY_TRY(add(
          k, s,
          (site_t){.position = i, .input = sides.weight, .axis = made, .bias = has_bias ? 2 : 0}));
  }
  return NULL;
}

// ---- equations ----------------------------------------------------------------------------------

// products[i, j] += <derivatives of row i, row j> of one probe.
static void add_products(const assay_tensor_t* w, int axis, const double* g, double* products) {
  const int64_t n = w->dims[axis], inner = assay_dims_product(w->dims, axis + 1, w->rank);
  for (int64_t o = 0; o < w->size / n / inner; o++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        const double *a = g + (o * n + i) * inner, *b = assay_f64(w) + (o * n + j) * inner;
        double sum = 0;
        for (int64_t k = 0; k < inner; k++) sum += a[k] * b[k];
        products[i * n + j] += sum;
      }
}

// Of one input of the site, for probes [from, ASSAY_PROBES).
static assay_status_t add_input(const sites_t* k, site_t* site, const assay_search_t* s,
                                const assay_predict_t* p, size_t input, int axis, int from) {
  const assay_value_t* v = s->nodes[site->position]->inputs[input];
  double* g = NULL;
  assay_tensor_t* w = NULL;
  ASSAY_TRY(assay_predict_constant(p, site->position, input, &g));
  if (!g) return NULL;
  assay_status_t st = assay_tensor_widen(assay_evaluator_get(s->evaluator, v), &w);
  for (int q = from; !st && q < ASSAY_PROBES; q++) {
    const size_t e = k->equations + (size_t)(q - from);
    if (e >= site->max) break;
    add_products(w, axis, g + q * w->size, site->products + e * (size_t)(site->n * site->n));
  }
  assay_tensor_release(w);
  assay_free(g);
  return st;
}

static assay_status_t add_site(const sites_t* k, site_t* site, const assay_search_t* s,
                               const assay_predict_t* p, int from) {
  if (k->equations >= site->max) return NULL;
  ASSAY_TRY(add_input(k, site, s, p, site->input, site->axis, from));
  return site->bias ? add_input(k, site, s, p, site->bias, 0, from) : NULL;
}

// One pass backwards over all sites, as far as node `first`.
static assay_status_t pass(sites_t* k, const assay_search_t* s, size_t first, double end) {
  assay_predict_t* p = NULL;
  ASSAY_TRY(assay_predict_create(s, &p));
  if (!p) return NULL;
  const int from = k->equations ? 1 : 0;
  size_t at = k->n;
  assay_status_t st = NULL;
  for (int q = from; q < ASSAY_PROBES; q++)
    if (k->equations + (size_t)(q - from) < k->max)
      k->sides[k->equations + (size_t)(q - from)] = assay_predict_overlap(p, q);
  for (size_t i = s->n_nodes; !st && i-- > first && assay_clock_seconds() < end;) {
    for (; !st && at > 0 && k->at[at - 1].position >= i; at--)
      st = add_site(k, &k->at[at - 1], s, p, from);
    if (!st && i > first) st = assay_predict_pass(p, i);
  }
  assay_predict_destroy(p);
  if (!st && assay_clock_seconds() < end) k->equations += (size_t)(ASSAY_PROBES - from);
  return st;
}

// Equations of all samples in turn. s: searches of n of them.
static assay_status_t equations(sites_t* k, const assay_search_t* s, size_t n, size_t first,
                                double end) {
  k->equations = 0;
  for (size_t i = 0; i < k->n; i++)
    memset(k->at[i].products, 0, k->at[i].max * (size_t)(k->at[i].n * k->at[i].n) * sizeof(double));
  for (size_t turn = 0; k->equations < k->max && turn < k->max; turn++) {
    const size_t before = k->equations;
    assay_search_t drawn = s[turn % n];
    drawn.draw += 1 + turn;
    ASSAY_TRY(pass(k, &drawn, first, end));
    if (k->equations == before) break;
  }
  if (k->equations > k->max) k->equations = k->max;
  return NULL;
}

static assay_status_t make_room(sites_t* k) {
  for (size_t i = 0; i < k->n; i++) {
    site_t* site = &k->at[i];
    site->max = (size_t)site->n + EXTRA;
    if (site->max > k->max) k->max = site->max;
    ASSAY_TRY(
        assay_new_array(site->max * (size_t)(site->n * site->n), sizeof(double), &site->products));
  }
  return k->max ? assay_new_array(k->max, sizeof *k->sides, &k->sides) : NULL;
}

// ---- orders -------------------------------------------------------------------------------------

// What is left in each equation with an order in place of `now`; the sum of their squares.
static double leave(const sites_t* k, const site_t* site, const int64_t* now, const int64_t* order,
                    double* left) {
  const size_t square = (size_t)(site->n * site->n);
  const size_t equations = k->equations < site->max ? k->equations : site->max;
  double sum = 0;
  for (size_t e = 0; e < equations; e++) {
    const double* a = site->products + e * square;
    left[e] = k->sides[e];
    for (int64_t i = 0; i < site->n; i++)
      left[e] += a[i * site->n + order[i]] - a[i * site->n + now[i]];
    sum += left[e] * left[e];
  }
  return sum;
}

// Exchanges two rows at a time as long as less is left.
static double improve(const sites_t* k, const site_t* site, int64_t* order, double* left,
                      double sum) {
  const size_t square = (size_t)(site->n * site->n);
  const size_t equations = k->equations < site->max ? k->equations : site->max;
  for (bool any = true; any;) {
    any = false;
    for (int64_t i = 0; i < site->n; i++)
      for (int64_t j = i + 1; j < site->n; j++) {
        const int64_t a = order[i], b = order[j], at[] = {i * site->n, j * site->n};
        double next = 0;
        for (size_t e = 0; e < equations; e++) {
          const double* x = site->products + e * square;
          const double r = left[e] + x[at[0] + b] + x[at[1] + a] - x[at[0] + a] - x[at[1] + b];
          next += r * r;
        }
        if (!(next < sum * (1 - 1e-9))) continue;
        for (size_t e = 0; e < equations; e++) {
          const double* x = site->products + e * square;
          left[e] += x[at[0] + b] + x[at[1] + a] - x[at[0] + a] - x[at[1] + b];
        }
        order[i] = b, order[j] = a, sum = next, any = true;
      }
  }
  return sum;
}

static uint64_t draw(uint64_t* state, int64_t n) {
  *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (*state >> 33) % (uint64_t)n;
}

// The order that leaves least, from `now` and from random ones; what it leaves over what is there.
static double best_order(const sites_t* k, const site_t* site, const int64_t* now, double* left,
                         int64_t* out) {
  uint64_t state = 0x9E3779B97F4A7C15ULL;
  const double all = leave(k, site, now, now, left);
  double least = HUGE_VAL;
  for (int start = 0; start < STARTS; start++) {
    int64_t order[MOST];
    memcpy(order, now, sizeof order);
    for (int64_t i = site->n - 1; start && i > 0; i--) {
      const int64_t j = (int64_t)draw(&state, i + 1), x = order[i];
      order[i] = order[j], order[j] = x;
    }
    const double sum = improve(k, site, order, left, leave(k, site, now, order, left));
    if (!(sum < least)) continue;
    least = sum;
    memcpy(out, order, sizeof order);
  }
  return all > 0 ? sqrt(least / all) : 1;
}

// ---- trying -------------------------------------------------------------------------------------

static assay_status_t reordered(const assay_search_t* s, const assay_value_t* v, int axis,
                                const int64_t* order, assay_repair_t* r, size_t input) {
  assay_tensor_t *x = NULL, *y = NULL;
  ASSAY_TRY(assay_tensor_widen(assay_evaluator_get(s->evaluator, v), &x));
  assay_status_t st = assay_tensor_copy(x, &y);
  const int64_t n = x->dims[axis], inner = assay_dims_product(x->dims, axis + 1, x->rank);
  for (int64_t i = 0; !st && i < x->size; i++) {
    const int64_t row = i / inner % n;
    assay_f64(y)[i] = assay_f64(x)[i + (order[row] - row) * inner];
  }
  assay_tensor_release(x);
  if (st) return st;
  r->edits[r->n_edits++] =
      (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = input, .tensor = y};
  return NULL;
}

static assay_status_t make_repair(const assay_search_t* s, const site_t* site, assay_repair_t* r) {
  const assay_node_t* n = s->nodes[site->position];
  char shown[100];
  *r = (assay_repair_t){.node = n, .cause = "order of a weight's channels"};
  assay_status_t st = reordered(s, n->inputs[site->input], site->axis, site->order, r, site->input);
  if (!st && site->bias) st = reordered(s, n->inputs[site->bias], 0, site->order, r, site->bias);
  if (st) return assay_repair_deinit(r), st;
  order_text(site->order, site->n, shown, sizeof shown);
  snprintf(r->text, sizeof r->text, "'%.90s'%s with axis %d in the order %s",
           n->inputs[site->input]->name, site->bias ? " and the bias" : "", site->axis, shown);
  return NULL;
}

static assay_status_t try_order(assay_trials_t* t, const site_t* site, double* out) {
  assay_repair_t r;
  ASSAY_TRY(make_repair(t->s, site, &r));
  t->rank = ROW;
  t->position = site->position;
  t->fitted = true;
  assay_status_t st = assay_trials_try(t, &r);
  t->fitted = false;
  *out = t->remains;
  if (!st && !t->found && assay_site_fitted_others(t->s))
    st = assay_trials_leave(t, &r, assay_site_fitted_others(t->s), out);
  assay_repair_deinit(&r);
  return st;
}

static void exchange(site_t* site, int64_t i, int64_t j) {
  const int64_t x = site->order[i];
  site->order[i] = site->order[j];
  site->order[j] = x;
}

// Exchanges of two rows, each tried as it is: where the first order is far off, they tell more.
static assay_status_t exchange_tried(assay_trials_t* t, site_t* site, double end, double* left) {
  for (int64_t i = 0; i < site->n && !t->found; i++)
    for (int64_t j = i + 1; j < site->n && !t->found && assay_clock_seconds() < end; j++) {
      double next = 0;
      exchange(site, i, j);
      ASSAY_TRY(try_order(t, site, &next));
      if (next < *left)
        *left = next;
      else if (!t->found)
        exchange(site, i, j);
    }
  return NULL;
}

// From the best order with a few rows exchanged at random, again and again (H. R. Lourenco et al.,
// Iterated Local Search, 2003).
static assay_status_t shake(assay_trials_t* t, site_t* site, double end, double* left) {
  enum { EXCHANGED = 3 };
  uint64_t state = 0x9E3779B97F4A7C15ULL;
  while (!t->found && assay_clock_seconds() < end) {
    int64_t best[MOST];
    double next = 0;
    memcpy(best, site->order, sizeof best);
    for (int k = 0; k < EXCHANGED; k++) {
      const int64_t i = (int64_t)draw(&state, site->n), j = (int64_t)draw(&state, site->n);
      exchange(site, i, j);
    }
    ASSAY_TRY(try_order(t, site, &next));
    for (double before = HUGE_VAL; next < before && !t->found && assay_clock_seconds() < end;) {
      before = next;
      ASSAY_TRY(exchange_tried(t, site, end, &next));
    }
    if (next < *left)
      *left = next;
    else if (!t->found)
      memcpy(site->order, best, sizeof best);
  }
  return NULL;
}

// The equations with the site's order made.
static assay_status_t renew(assay_trials_t* t, site_t* site, sites_t* k, double end) {
  assay_search_t next[ASSAY_SITE_SAMPLES];
  assay_repair_t r;
  size_t n = 0;
  k->at = site, k->n = 1;
  ASSAY_TRY(make_repair(t->s, site, &r));
  assay_status_t st = assay_site_adopt(t, &r, next, &n);
  if (!st && n) st = equations(k, next, n, site->position, end);
  assay_site_drop(t, next, n);
  assay_repair_deinit(&r);
  return st;
}

// A site's best order, made better as long as less is left.
static assay_status_t try_site(assay_trials_t* t, const sites_t* all, site_t* site, double end) {
  sites_t k = {.sides = all->sides, .max = site->max, .equations = all->equations};
  double reached = 1, left[MOST + EXTRA];
  int64_t now[MOST];
  memcpy(now, site->order, sizeof now);
  assay_status_t st = NULL;
  best_order(&k, site, now, left, site->order);
  st = try_order(t, site, &reached);
  for (int round = 0; !st && round < ROUNDS && !t->found && assay_clock_seconds() < end; round++) {
    const double before = reached;
    int64_t best[MOST];
    double next = 0;
    memcpy(now, site->order, sizeof now);
    st = renew(t, site, &k, end);
    if (st) break;
    best_order(&k, site, now, left, site->order);
    st = try_order(t, site, &next);
    memcpy(best, site->order, sizeof best);
    if (!st && !t->found && next < reached)
      reached = next;
    else if (!st && !t->found)
      memcpy(site->order, now, sizeof now);
    if (!st && !t->found) st = exchange_tried(t, site, end, &reached);
    if (!(reached < before)) break;
  }
  site->reached = reached;
  return st;
}

// The one whose order left least, from other orders, in the time that is left.
static assay_status_t shake_best(assay_trials_t* t, const sites_t* k, double end) {
  static const double PROMISING = 0.7;
  site_t* best = NULL;
  for (size_t i = 0; i < k->n; i++)
    if (k->at[i].reached > 0 && (!best || k->at[i].reached < best->reached)) best = &k->at[i];
  return best && best->reached < PROMISING ? shake(t, best, end, &best->reached) : NULL;
}

static site_t* next_site(const sites_t* k) {
  site_t* best = NULL;
  for (size_t i = 0; i < k->n; i++)
    if (k->at[i].left < 1 && (!best || k->at[i].left < best->left)) best = &k->at[i];
  return best;
}

assay_status_t assay_search_orders(assay_trials_t* t, double end) {
  static const double WORTH = 0.7;
  assay_search_t samples[ASSAY_SITE_SAMPLES] = {*t->s};
  const double now = assay_clock_seconds();
  double left[MOST + EXTRA];
  sites_t k = {.n = 0};
  size_t n = 1;
  for (; n <= assay_site_fitted_others(t->s); n++) samples[n] = t->s->others[n - 1];
  assay_status_t st = list(&k, t->s);
  if (!st) st = make_room(&k);
  if (!st && k.n) st = equations(&k, samples, n, 0, now + (end - now) / 3);
  for (size_t i = 0; !st && k.equations && i < k.n; i++) {
    int64_t order[MOST];
    k.at[i].left = best_order(&k, &k.at[i], k.at[i].order, left, order);
    if (assay_clock_seconds() > now + (end - now) / 2) k.at[i].left = 1;
  }
  for (int i = 0; !st && k.equations && i < TRIED && !t->found; i++) {
    site_t* site = next_site(&k);
    const double at = assay_clock_seconds();
    if (!site || !(site->left < WORTH) || at > end) break;
    st = try_site(t, &k, site, at + (end - at) / 2);
    site->left = 1;
  }
  if (!st && !t->found) st = shake_best(t, &k, end);
  sites_deinit(&k);
  if (assay_status_code(st) == ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
