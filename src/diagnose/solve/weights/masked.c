// Weights each of whose elements is one of two numbers: what is there, or 0, or its negative.
//
// What was cut out of a weight is back in the model, or signs are lost: a mask of an autoregressive
// layer (M. Germain et al., MADE, 2015; A. van den Oord et al., PixelCNN, 2016), a pruned layer
// saved before its mask was put on. Where one sample has too few rows for the weight, it has enough
// for a mask: of the terms the rows determine as many as their rank; the others are tried both
// ways, and the right way is the one by which all that is determined is one of the two numbers.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/solve/missing.h"
#include "diagnose/solve/products.h"

enum { MAX_TERMS = 160, MAX_FREE = 14 };
// Steps of the trials of all columns of a group.
static const double MAX_STEPS = 2e8;

// Rows that say as much as all of them: [rank][terms] with the identity in the columns `pivot`.
typedef struct reduced {
  int64_t terms, rows, rank;
  double* x;       // [rows][terms], then the reduced rows; every row of the product
  double* wanted;  // [rows][columns]: what the products with the weight have to be
  int64_t pivot[MAX_TERMS], open[MAX_TERMS], n_open;
} reduced_t;

// ---- rows --------------------------------------------------------------------------------------

// Gauss and Jordan, the largest element next. Columns of zeros tell nothing: they are neither
// determined nor open.
static void reduce(reduced_t* k, int64_t columns) {
  static const double NOTHING = 1e-6;  // of the largest: what float32 leaves of it
  bool done[MAX_TERMS] = {false}, silent[MAX_TERMS];
  double first = 0;
  for (int64_t t = 0; t < k->terms; t++) {
    silent[t] = true;
    for (int64_t i = 0; i < k->rows; i++) silent[t] &= k->x[i * k->terms + t] == 0;
  }
  for (k->rank = 0; k->rank < k->rows && k->rank < k->terms; k->rank++) {
    int64_t row = -1, term = -1;
    double most = 0;
    for (int64_t i = k->rank; i < k->rows; i++)
      for (int64_t t = 0; t < k->terms; t++)
        if (!done[t] && fabs(k->x[i * k->terms + t]) > most)
          most = fabs(k->x[i * k->terms + t]), row = i, term = t;
    if (k->rank == 0) first = most;
    if (row < 0 || !(most > NOTHING * first)) break;
    double *p = k->x + k->rank * k->terms, *q = k->x + row * k->terms;
    double *pw = k->wanted + k->rank * columns, *qw = k->wanted + row * columns;
    for (int64_t t = 0; t < k->terms; t++) {
      const double x = p[t];
      p[t] = q[t], q[t] = x;
    }
    for (int64_t c = 0; c < columns; c++) {
      const double x = pw[c];
      pw[c] = qw[c], qw[c] = x;
    }
    const double by = 1 / p[term];
    for (int64_t t = 0; t < k->terms; t++) p[t] *= by;
    for (int64_t c = 0; c < columns; c++) pw[c] *= by;
    for (int64_t i = 0; i < k->rows; i++) {
      double *r = k->x + i * k->terms, *rw = k->wanted + i * columns;
      const double f = r[term];
      if (i == k->rank || f == 0) continue;
      for (int64_t t = 0; t < k->terms; t++) r[t] -= f * p[t];
      for (int64_t c = 0; c < columns; c++) rw[c] -= f * pw[c];
    }
    done[term] = true;
    k->pivot[k->rank] = term;
  }
  k->n_open = 0;
  for (int64_t t = 0; t < k->terms; t++)
    if (!done[t] && !silent[t]) k->open[k->n_open++] = t;
}

// Rows of a group, and what their products have to be.
static void read_rows(const assay_solve_t* s, const assay_product_t* p, int64_t group,
                      reduced_t* k) {
  const double* w = assay_f64(s->in[s->input]);
  const int64_t most = 4 * p->terms, step = p->rows > most ? p->rows / most : 1;
  k->terms = p->terms;
  k->rows = 0;
  for (int64_t row = 0; row < p->rows; row += step) {
    double *x = k->x + k->rows * p->terms, *to = k->wanted + k->rows * p->columns;
    assay_product_row(s, p, row, group, x);
    for (int64_t c = 0; c < p->columns; c++) {
      const int64_t at = assay_product_place(p, row, group, c);
      to[c] = (assay_f64(s->want)[at] - assay_f64(s->have)[at]) / p->alpha;
      for (int64_t t = 0; t < p->terms; t++)
        to[c] += x[t] * w[assay_product_weight(p, group, t, c)];
    }
    k->rows++;
  }
}

// ---- a column ----------------------------------------------------------------------------------

// How far a number is from the nearer of two, over their distance.
static double off(double x, double one, double other) {
  const double d = fabs(other - one);
  const double near = fmin(fabs(x - one), fabs(x - other));
  return d > 0 ? near / d : near;
}

// The choice of open terms by which all that is determined is one of two numbers. False: none is,
// or another one is nearly as good.
static bool choose(const reduced_t* k, int64_t columns, int64_t column, const double* one,
                   const double* other, double* out) {
  static const double NEAR = 1e-3, CLEAR = 30;
  const int64_t f = k->n_open;
  double best = INFINITY, second = INFINITY, now[MAX_TERMS];
  int64_t which = 0, at = 0;
  for (int64_t i = 0; i < k->rank; i++) {
    now[i] = k->wanted[i * columns + column];
    for (int64_t j = 0; j < f; j++) now[i] -= k->x[i * k->terms + k->open[j]] * one[k->open[j]];
  }
  for (int64_t n = 0; n < (int64_t)1 << f; n++) {
    // Gray's code: one open term changes at a time.
    const int64_t code = n ^ (n >> 1), flip = code ^ at;
    int64_t j = 0;
    while (flip && !(flip >> j & 1)) j++;
    if (flip) {
      const int64_t t = k->open[j];
      const double d = code >> j & 1 ? other[t] - one[t] : one[t] - other[t];
      for (int64_t i = 0; i < k->rank; i++) now[i] -= k->x[i * k->terms + t] * d;
    }
    at = code;
    double worst = 0;
    for (int64_t i = 0; i < k->rank && worst < second; i++)
      worst = fmax(worst, off(now[i], one[k->pivot[i]], other[k->pivot[i]]));
    if (worst < best) {
      second = best;
      best = worst;
      which = code;
      for (int64_t i = 0; i < k->rank; i++) {
        const int64_t t = k->pivot[i];
        out[t] = fabs(now[i] - one[t]) <= fabs(now[i] - other[t]) ? one[t] : other[t];
      }
    } else if (worst < second) {
      second = worst;
    }
  }
  for (int64_t j = 0; j < f; j++)
    out[k->open[j]] = which >> j & 1 ? other[k->open[j]] : one[k->open[j]];
  return best <= NEAR && second > CLEAR * best;
}

// ---- the weight --------------------------------------------------------------------------------

// sign: what an element may be instead: 0 times, or -1 times what is there.
static bool choose_all(const assay_solve_t* s, const assay_product_t* p, reduced_t* k, double sign,
                       assay_tensor_t* now) {
  double one[MAX_TERMS], other[MAX_TERMS], chosen[MAX_TERMS];
  bool found = true;
  for (int64_t g = 0; g < p->groups && found; g++) {
    read_rows(s, p, g, k);
    reduce(k, p->columns);
    found = k->rank > 0 && k->n_open <= MAX_FREE &&
            ldexp((double)(p->columns * k->rank), (int)k->n_open) * (double)p->groups <= MAX_STEPS;
    for (int64_t c = 0; c < p->columns && found; c++) {
      for (int64_t t = 0; t < p->terms; t++) {
        one[t] = assay_f64(now)[assay_product_weight(p, g, t, c)];
        other[t] = sign * one[t];
        chosen[t] = one[t];
      }
      found = choose(k, p->columns, c, one, other, chosen);
      for (int64_t t = 0; t < p->terms && found; t++)
        assay_f64(now)[assay_product_weight(p, g, t, c)] = chosen[t];
    }
  }
  return found;
}

static assay_status_t try_choice(assay_missing_search_t* s, const assay_solve_t* z,
                                 const assay_product_t* p, reduced_t* k, double sign) {
  assay_repair_t r = {.node = s->node, .cause = "solved constant", .n_edits = 1};
  const assay_tensor_t* was = s->in[z->input];
  bool found = false;
  long long changed = 0;
  r.edits[0] = (assay_repair_edit_t){.kind = ASSAY_EDIT_CONSTANT, .input = z->input};
  assay_status_t st = assay_tensor_copy(was, &r.edits[0].tensor);
  if (!st) found = choose_all(z, p, k, sign, r.edits[0].tensor);
  for (int64_t i = 0; !st && i < was->size; i++)
    changed += assay_f64(was)[i] != assay_f64(r.edits[0].tensor)[i];
  snprintf(r.text, sizeof r.text, "%lld of %lld elements of '%.100s' are %s", changed,
           (long long)was->size, s->node->inputs[z->input]->name,
           sign == 0 ? "0: a mask is lost" : "of the other sign");
  if (!st && found && changed) st = assay_missing_offer(s, &r);
  assay_repair_deinit(&r);
  return st;
}

static assay_status_t try_input(assay_missing_search_t* s, assay_solve_t* z) {
  const assay_value_t* v = s->node->inputs[z->input];
  const assay_tensor_t* w = s->in[z->input];
  assay_product_t p;
  reduced_t k = {0};
  if (!v || !v->constant || !w || w->kind != ASSAY_KIND_TENSOR || w->store != ASSAY_STORE_F64 ||
      !assay_product_read(z, &p) || p.terms > MAX_TERMS)
    return NULL;
  // One row in so many is read: twice as many as asked for at most.
  const size_t rows = (size_t)(p.rows < 8 * p.terms ? p.rows : 8 * p.terms) + 1;
  ASSAY_TRY(assay_new_array(rows * (size_t)p.terms, sizeof *k.x, &k.x));
  assay_status_t st = assay_new_array(rows * (size_t)p.columns, sizeof *k.wanted, &k.wanted);
  for (int sign = 0; !st && sign >= -1 && !assay_missing_is_over(s); sign--)
    st = try_choice(s, z, &p, &k, sign);
  assay_free(k.x);
  assay_free(k.wanted);
  return st;
}

assay_status_t assay_missing_masked(assay_missing_search_t* s, const assay_missing_place_t* p) {
  if (!p->want || p->source || p->kind != ASSAY_EDIT_AFTER || s->output != 0 || s->collect ||
      !assay_tensor_alike(p->x, p->want) || p->want->store != ASSAY_STORE_F64)
    return NULL;
  assay_solve_t z = {.m = s->m, .node = s->node, .in = s->in, .want = p->want, .have = p->x};
  for (z.input = 0; z.input < s->n_in && z.input < 2 && !assay_missing_is_over(s); z.input++)
    ASSAY_TRY(try_input(s, &z));
  return NULL;
}
