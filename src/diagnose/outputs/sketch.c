// Equations of numbers that a node might have otherwise.
#include "diagnose/outputs/sketch.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/outputs/folded.h"
#include "diagnose/outputs/sides.h"
#include "diagnose/search_predict.h"

void assay_site_sketch_deinit(assay_site_sketch_t* k) {
  for (size_t i = 0; i < k->n; i++) {
    assay_free(k->sites[i].rows);
    assay_free(k->sites[i].at);
  }
  assay_free(k->sites);
  assay_free(k->sides);
}

// ---- sites -------------------------------------------------------------------------------------

static bool is_one_of(const char* op, const char* const* names) {
  for (; *names; names++)
    if (strcmp(op, *names) == 0) return true;
  return false;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static assay_status_t list_output(assay_site_sketch_t* k, size_t position, const assay_tensor_t* y,
                                  int64_t elements) {
  const int axis = assay_site_axis(k->s->nodes[position], y);
  if (axis < 0 || y->dims[axis] < 2 || y->dims[axis] > ASSAY_SITE_CHANNELS) return NULL;
  const assay_site_t site = {.kind = ASSAY_SITE_OUTPUT,
                             .position = position,
                             .axis = axis,
                             .channels = y->dims[axis],
                             .columns = 2 * (size_t)y->dims[axis]};
  return assay_site_add(k, site, elements);
}

// Source: one slope for all in place of one for each, as PRelu has by default in PyTorch.
static assay_status_t list_slopes(assay_site_sketch_t* k, size_t position, const assay_tensor_t* y,
                                  int64_t elements) {
  const assay_node_t* n = k->s->nodes[position];
  if (strcmp(n->op_type, "PRelu") != 0 || n->n_inputs != 2 || y->rank < 2) return NULL;
  const assay_tensor_t* slope = assay_evaluator_get(k->s->evaluator, n->inputs[1]);
  if (!slope || slope->size != 1 || y->dims[1] < 2 || y->dims[1] > ASSAY_SITE_CHANNELS) return NULL;
  const assay_site_t site = {.kind = ASSAY_SITE_SLOPES,
                             .position = position,
                             .axis = 1,
                             .channels = y->dims[1],
                             .input = 1,
                             .columns = (size_t)y->dims[1]};
  return assay_site_add(k, site, elements);
}

static assay_status_t add_elements(assay_site_sketch_t* k, size_t position, size_t input, size_t n,
                                   const int64_t* at, int64_t elements) {
  int64_t* own = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *own, &own));
  memcpy(own, at, n * sizeof *own);
  const assay_site_t site = {
      .kind = ASSAY_SITE_CONSTANT, .position = position, .input = input, .at = own, .columns = n};
  return assay_site_add(k, site, elements);
}

// A scale that was fixed at 1, or lost: what comes out moves about the bias. Sources: fix_gamma of
// MXNet, apache/mxnet issue 9624; scale=False of Keras.
static assay_status_t list_scale(assay_site_sketch_t* k, size_t position, const assay_tensor_t* y,
                                 int64_t elements) {
  static const char* const operators[] = {"BatchNormalization", "InstanceNormalization",
                                          "LayerNormalization", NULL};
  const assay_node_t* n = k->s->nodes[position];
  const int axis = assay_site_axis(n, y);
  if (axis < 0 || !is_one_of(n->op_type, operators) || n->n_inputs < 3) return NULL;
  for (size_t i = 1; i <= 2; i++) {
    const assay_tensor_t* c = n->inputs[i] ? n->inputs[i]->constant : NULL;
    if (!c || c->rank != 1 || c->size != y->dims[axis] || c->size > ASSAY_SITE_CHANNELS)
      return NULL;
  }
  const assay_site_t site = {.kind = ASSAY_SITE_SCALE,
                             .position = position,
                             .axis = axis,
                             .channels = y->dims[axis],
                             .input = 1,
                             .columns = (size_t)y->dims[axis]};
  return assay_site_add(k, site, elements);
}

// The bias that the new state of a GRU has of the state, where it was added to that of the inputs:
// the reset gate does not see it then. Source: nntrainer/nntrainer issue 1787.
static assay_status_t list_merged(assay_site_sketch_t* k, size_t position, int64_t elements) {
  enum { B = 3, GATES = 3, BOTH = 2 * GATES };
  const assay_node_t* n = k->s->nodes[position];
  int64_t at[ASSAY_SITE_NUMBERS];
  size_t count = 0;
  if (strcmp(n->op_type, "GRU") != 0 || n->n_inputs <= B || !n->inputs[B]) return NULL;
  const assay_tensor_t* x = assay_evaluator_get(k->s->evaluator, n->inputs[B]);
  if (!assay_attr_i64(n, "linear_before_reset", 0) || !x || !n->inputs[B]->constant ||
      x->rank != 2 || x->dims[1] % BOTH || x->size > ASSAY_SITE_NUMBERS)
    return NULL;
  const int64_t h = x->dims[1] / BOTH;
  for (int64_t d = 0; d < x->dims[0]; d++)
    for (int64_t i = 0; i < h; i++) at[count++] = d * x->dims[1] + (BOTH - 1) * h + i;
  const size_t before = k->n;
  ASSAY_TRY(add_elements(k, position, B, count, at, elements));
  if (k->n > before) k->sites[before].taken = GATES * h;
  return NULL;
}

// ---- elements of constants ---------------------------------------------------------------------

static bool all_zero(const assay_tensor_t* x, int64_t first, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (assay_f64(x)[first + i * step] != 0) return false;
  return true;
}

// The elements of rows, or of columns, that hold nothing but zeros where others do not.
static size_t zero_elements(const assay_tensor_t* x, bool columns, int64_t* out) {
  const int64_t rows = x->dims[0], d = x->size / rows;
  const int64_t lines = columns ? d : rows, length = columns ? rows : d;
  size_t n = 0;
  int64_t empty = 0;
  for (int64_t i = 0; i < lines; i++) {
    if (!all_zero(x, columns ? i : i * d, columns ? d : 1, length)) continue;
    if (++empty == lines || n + (size_t)length > ASSAY_SITE_NUMBERS) return 0;
    for (int64_t j = 0; j < length; j++) out[n++] = columns ? j * d + i : i * d + j;
  }
  return n;
}

static assay_status_t list_elements(assay_site_sketch_t* k, size_t position, size_t input,
                                    const assay_tensor_t* x, int64_t elements) {
  int64_t at[ASSAY_SITE_NUMBERS];
  if (x->size >= 2 && x->size <= ASSAY_SITE_NUMBERS) {
    for (int64_t i = 0; i < x->size; i++) at[i] = i;
    return add_elements(k, position, input, (size_t)x->size, at, elements);
  }
  for (int columns = 0; x->rank >= 2 && columns < 2; columns++) {
    const size_t n = zero_elements(x, columns, at);
    if (n) ASSAY_TRY(add_elements(k, position, input, n, at, elements));
  }
  return NULL;
}

// Constants whose elements are not what channels of the output are fitted by.
static assay_status_t list_constants(assay_site_sketch_t* k, size_t position, int64_t elements) {
  static const char* const others[] = {"BatchNormalization",
                                       "InstanceNormalization",
                                       "LayerNormalization",
                                       "GroupNormalization",
                                       "RMSNormalization",
                                       "Resize",
                                       "Upsample",
                                       "Clip",
                                       "Pad",
                                       NULL};
  const assay_node_t* n = k->s->nodes[position];
  const bool is_sum = is_one_of(n->op_type, (const char* const[]){"Conv", "Gemm", NULL});
  if (is_one_of(n->op_type, others)) return NULL;
  for (size_t i = 0; i < n->n_inputs; i++) {
    const assay_value_t* v = n->inputs[i];
    assay_tensor_t* x = NULL;
    if (!v || (is_sum && i == 2)) continue;
    if (!v->constant && !(v->producer && strcmp(v->producer->op_type, "Constant") == 0)) continue;
    assay_tensor_t* t = assay_evaluator_get(k->s->evaluator, v);
    if (!t || t->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(t->type)) continue;
    ASSAY_TRY(assay_tensor_widen(t, &x));
    assay_status_t st = NULL;
    if (is_float(x) && x->size) st = list_elements(k, position, i, x, elements);
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}

assay_status_t assay_site_sketch_list(assay_site_sketch_t* k) {
  const assay_search_t* s = k->s;
  const int64_t elements = (int64_t)k->elements;
  for (size_t i = 0; i < s->n_nodes; i++) {
    const assay_value_t* v = s->nodes[i]->outputs[0];
    const assay_tensor_t* y = v ? assay_site_sketch_truth(s, v) : NULL;
    if (!is_float(y) || !y->rank) continue;
    ASSAY_TRY(list_output(k, i, y, elements));
    ASSAY_TRY(list_slopes(k, i, y, elements));
    ASSAY_TRY(list_scale(k, i, y, elements));
    ASSAY_TRY(list_merged(k, i, elements));
    ASSAY_TRY(list_constants(k, i, elements));
    ASSAY_TRY(assay_sides_list(k, i, elements));
    ASSAY_TRY(assay_folded_list(k, i, y, elements));
  }
  return NULL;
}

// ---- equations ---------------------------------------------------------------------------------

static void add_row(const assay_site_t* site, const assay_tensor_t* y, const double* g,
                    double* row) {
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

// Of the scale of each channel: what comes out without the bias is in proportion to it.
static void add_scales(const assay_site_t* site, const assay_tensor_t* y, const double* scales,
                       const double* biases, const double* g, double* row) {
  const int64_t c = site->channels, inner = assay_dims_product(y->dims, site->axis + 1, y->rank);
  memset(row, 0, (size_t)c * sizeof *row);
  for (int64_t i = 0; i < y->size / inner; i++) {
    const double scale = scales[i % c], bias = biases[i % c];
    for (int64_t k = 0; scale != 0 && k < inner; k++)
      row[i % c] += g[i * inner + k] * (assay_f64(y)[i * inner + k] - bias) / scale;
  }
}

// Of the slope below zero of each channel.
static void add_slopes(const assay_site_t* site, const assay_tensor_t* x, const double* g,
                       double* row) {
  const int64_t c = site->channels, inner = assay_dims_product(x->dims, 2, x->rank);
  memset(row, 0, (size_t)c * sizeof *row);
  for (int64_t i = 0; i < x->size / inner; i++)
    for (int64_t k = 0; k < inner; k++)
      row[i % c] += g[i * inner + k] * fmin(0, assay_f64(x)[i * inner + k]);
}

// The scale of a normalization, as a step that was taken has made it.
static assay_status_t scale_of(const assay_search_t* s, const assay_node_t* n,
                               assay_tensor_t** out) {
  const assay_repair_t* r = assay_search_adopted(s, n);
  return assay_tensor_widen(r ? r->edits[0].tensor : n->inputs[1]->constant, out);
}

// The equations of probes [from, ASSAY_PROBES) by what the output's derivatives are.
static assay_status_t add_by_output(assay_site_sketch_t* k, assay_site_t* site,
                                    const assay_search_t* s, const assay_predict_t* p, int from) {
  const assay_node_t* n = s->nodes[site->position];
  const double* g = assay_predict_derivatives(p, n->outputs[0]);
  const assay_tensor_t* y = assay_site_sketch_truth(s, n->outputs[0]);
  const assay_tensor_t* x =
      site->kind == ASSAY_SITE_SLOPES ? assay_evaluator_get(s->evaluator, n->inputs[0]) : y;
  assay_tensor_t *scale = NULL, *bias = NULL;
  if (!g || !is_float(y) || !is_float(x)) return NULL;
  if (site->kind == ASSAY_SITE_SCALE) {
    ASSAY_TRY(scale_of(s, n, &scale));
    assay_status_t st = assay_tensor_widen(n->inputs[2]->constant, &bias);
    if (st) return assay_tensor_release(scale), st;
  }
  for (int q = from; q < ASSAY_PROBES; q++) {
    const size_t e = k->equations + (size_t)(q - from);
    if (e >= site->max) break;
    double* row = site->rows + e * site->columns;
    if (site->kind == ASSAY_SITE_SLOPES)
      add_slopes(site, x, g + q * y->size, row);
    else if (site->kind == ASSAY_SITE_SCALE)
      add_scales(site, y, assay_f64(scale), assay_f64(bias), g + q * y->size, row);
    else
      add_row(site, y, g + q * y->size, row);
  }
  assay_tensor_release(scale);
  assay_tensor_release(bias);
  return NULL;
}

static assay_status_t add_by_constant(assay_site_sketch_t* k, assay_site_t* site,
                                      const assay_search_t* s, const assay_predict_t* p, int from) {
  double* g = NULL;
  const assay_tensor_t* x =
      assay_evaluator_get(s->evaluator, s->nodes[site->position]->inputs[site->input]);
  if (k->equations >= site->max) return NULL;
  ASSAY_TRY(assay_predict_constant(p, site->position, site->input, &g));
  for (int q = from; g && x && q < ASSAY_PROBES; q++) {
    const size_t e = k->equations + (size_t)(q - from);
    if (e >= site->max) break;
    const double* of = g + q * x->size;
    for (size_t i = 0; i < site->columns; i++)
      site->rows[e * site->columns + i] =
          of[site->at[i]] - (site->taken ? of[site->at[i] - site->taken] : 0);
  }
  assay_free(g);
  return NULL;
}

// One pass backwards: the equations of its probes for all sites. The first pass has that of r, too.
static assay_status_t add_equations(assay_site_sketch_t* k, const assay_search_t* s, size_t first) {
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
    for (; !st && at > 0 && k->sites[at - 1].position == i; at--) {
      assay_site_t* site = &k->sites[at - 1];
      if (site->rows && site->kind == ASSAY_SITE_CONSTANT)
        st = add_by_constant(k, site, s, p, from);
      else if (site->rows && (site->kind == ASSAY_SITE_INPUT || site->kind == ASSAY_SITE_MOVED))
        st = assay_sides_equations(k, site, s, p, from);
      else if (site->rows && (site->kind == ASSAY_SITE_AROUND || site->kind == ASSAY_SITE_BORDER))
        st = assay_folded_equations(k, site, s, p, from);
      else if (site->rows)
        st = add_by_output(k, site, s, p, from);
    }
    if (!st && i > first) st = assay_predict_pass(p, i);
    if (assay_clock_seconds() > k->end) break;
  }
  assay_predict_destroy(p);
  if (!st && assay_clock_seconds() <= k->end) k->equations = all;
  return st;
}

assay_status_t assay_site_sketch_equations(assay_site_sketch_t* k, const assay_search_t* s,
                                           size_t n, size_t first) {
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

size_t assay_site_equations(const assay_site_sketch_t* k, const assay_site_t* site) {
  return k->equations < site->max ? k->equations : site->max;
}

// ---- least squares -----------------------------------------------------------------------------

size_t assay_site_unknowns(const assay_site_t* site, int family) {
  const bool both = family == (ASSAY_SITE_FACTORS | ASSAY_SITE_SUMMANDS);
  return site->kind == ASSAY_SITE_OUTPUT && !both ? site->columns / 2 : site->columns;
}

static size_t first_of(const assay_site_t* site, int family) {
  const bool summands = site->kind == ASSAY_SITE_OUTPUT && family == ASSAY_SITE_SUMMANDS;
  return summands ? (size_t)site->channels : 0;
}

bool assay_site_solve(const assay_site_t* site, int family, const double* sides, size_t n,
                      double damping, double* a, double* x) {
  const size_t m = assay_site_unknowns(site, family), from = first_of(site, family);
  const size_t stride = site->columns;
  double length[ASSAY_SITE_NUMBERS];
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
      double sum = a[i * m + j] / (length[i] * length[j]) + (i == j ? damping : 0);
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

double assay_site_left(const assay_site_t* site, int family, const double* sides, size_t n,
                       size_t end, const double* x) {
  const size_t m = assay_site_unknowns(site, family), from = first_of(site, family);
  const size_t stride = site->columns;
  double left = 0, all = 0;
  for (size_t e = n; e < end; e++) {
    double r = sides[e];
    for (size_t i = 0; i < m; i++) r += site->rows[e * stride + from + i] * x[i];
    left += r * r;
    all += sides[e] * sides[e];
  }
  return all > 0 ? sqrt(left / all) : 1;
}
