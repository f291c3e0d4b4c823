// Factors of the channels that a product of sums reads, and of those that it makes.
//
// A scale that is moved from a normalization into the weights after it has to reach all that read
// what it gives: where one was left out, its channels alone are off. Sources: kekzl/imp issue 1162;
// scales of activations and weights that belong together, as of SmoothQuant and AWQ. One that is
// folded into weights may have gone to the channels that they read, not to those that they make:
// transposed convolutions have them the other way round. Source: ultralytics issue 25364.
#include "diagnose/outputs/sides.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/outputs/sketch.h"
#include "diagnose/search_predict.h"

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

static bool is_constant(const assay_value_t* v) {
  return v && (v->constant || (v->producer && is_op(v->producer, "Constant")));
}

static bool is_convolution(const assay_node_t* n) {
  return is_op(n, "Conv") || is_op(n, "ConvTranspose");
}

bool assay_sides_of(const assay_node_t* n, assay_sides_t* out) {
  *out = (assay_sides_t){.data = 0, .weight = 1};
  if (n->n_inputs < 2 || !n->inputs[0] || !n->inputs[1] || !n->outputs[0]) return false;
  if (is_op(n, "MatMul") && is_constant(n->inputs[0]) && !is_constant(n->inputs[1]))
    *out = (assay_sides_t){.data = 1, .weight = 0};
  if (is_convolution(n)) return true;
  if (is_op(n, "Gemm") && assay_attr_i64(n, "transA", 0)) return false;
  return is_op(n, "MatMul") || is_op(n, "Gemm");
}

// The axis of the channels of what is read, and of what is made.
static int axis_of(const assay_node_t* n, const assay_sides_t* s, int rank) {
  if (is_convolution(n)) return rank > 1 ? 1 : -1;
  return s->data == 0 ? rank - 1 : rank - 2;
}

static assay_tensor_t* data_of(const assay_search_t* s, const assay_node_t* n,
                               const assay_sides_t* sides) {
  return assay_evaluator_get(s->evaluator, n->inputs[sides->data]);
}

// ---- which --------------------------------------------------------------------------------------

// Others read the value as well, or nothing about its channels is fitted where it is made.
static bool is_of_its_own(const assay_site_sketch_t* k, const assay_value_t* v) {
  size_t readers = 0;
  for (size_t i = 0; i < k->s->n_nodes; i++)
    for (size_t j = 0; j < k->s->nodes[i]->n_inputs; j++) readers += k->s->nodes[i]->inputs[j] == v;
  if (readers > 1 || !v->producer) return true;
  for (size_t i = 0; i < k->n; i++)
    if (k->sites[i].kind == ASSAY_SITE_OUTPUT && k->s->nodes[k->sites[i].position] == v->producer)
      return false;
  return true;
}

static assay_status_t list_input(assay_site_sketch_t* k, size_t position,
                                 const assay_sides_t* sides, int64_t elements) {
  const assay_node_t* n = k->s->nodes[position];
  const assay_tensor_t* x = data_of(k->s, n, sides);
  const int axis = x ? axis_of(n, sides, x->rank) : -1;
  if (!is_float(x) || axis < 0 || x->dims[axis] < 2 || x->dims[axis] > ASSAY_SITE_CHANNELS ||
      is_constant(n->inputs[sides->data]) || !is_of_its_own(k, n->inputs[sides->data]))
    return NULL;
  return assay_site_add(k,
                        (assay_site_t){.kind = ASSAY_SITE_INPUT,
                                       .position = position,
                                       .axis = axis,
                                       .channels = x->dims[axis],
                                       .input = sides->data,
                                       .columns = (size_t)x->dims[axis]},
                        elements);
}

// The weight's axes that hold the channels that it reads, and those that it makes.
bool assay_sides_weight_axes(const assay_node_t* n, const assay_sides_t* s, const assay_tensor_t* w,
                             int* out_read, int* out_made) {
  bool first = is_op(n, "ConvTranspose");
  if (is_convolution(n)) {
    if (w->rank < 3 || assay_attr_i64(n, "group", 1) != 1) return false;
  } else {
    if (w->rank != 2) return false;
    first = is_op(n, "Gemm") ? !assay_attr_i64(n, "transB", 0) : s->weight == 1;
  }
  *out_read = first ? 0 : 1;
  *out_made = 1 - *out_read;
  return true;
}

static assay_status_t list_moved(assay_site_sketch_t* k, size_t position,
                                 const assay_sides_t* sides, int64_t elements) {
  const assay_node_t* n = k->s->nodes[position];
  const assay_value_t* v = n->inputs[sides->weight];
  const assay_tensor_t* w = is_constant(v) ? assay_evaluator_get(k->s->evaluator, v) : NULL;
  int read = 0, made = 0;
  if (!w || !assay_type_is_float(w->type) || !is_float(data_of(k->s, n, sides)) ||
      !assay_sides_weight_axes(n, sides, w, &read, &made) || w->dims[0] != w->dims[1] ||
      w->dims[0] < 2 || w->dims[0] > ASSAY_SITE_CHANNELS)
    return NULL;
  return assay_site_add(k,
                        (assay_site_t){.kind = ASSAY_SITE_MOVED,
                                       .position = position,
                                       .axis = made,
                                       .channels = w->dims[0],
                                       .input = sides->weight,
                                       .columns = (size_t)w->dims[0]},
                        elements);
}

assay_status_t assay_sides_list(assay_site_sketch_t* k, size_t position, int64_t elements) {
  assay_sides_t sides;
  if (!assay_sides_of(k->s->nodes[position], &sides)) return NULL;
  ASSAY_TRY(list_input(k, position, &sides, elements));
  return list_moved(k, position, &sides, elements);
}

// ---- equations ----------------------------------------------------------------------------------

// Adds `sign` times <g, x> of each channel.
static void add_channels(const assay_tensor_t* x, int axis, const double* g, double sign,
                         double* row) {
  const int64_t c = x->dims[axis], inner = assay_dims_product(x->dims, axis + 1, x->rank);
  for (int64_t i = 0; i < x->size / inner; i++) {
    double sum = 0;
    for (int64_t k = 0; k < inner; k++) sum += g[i * inner + k] * assay_f64(x)[i * inner + k];
    row[i % c] += sign * sum;
  }
}

// Of a bias the factors are not.
static void add_bias(const assay_tensor_t* y, int axis, const assay_tensor_t* bias, const double* g,
                     double* row) {
  const int64_t c = y->dims[axis], inner = assay_dims_product(y->dims, axis + 1, y->rank);
  if (!bias || (bias->size != c && bias->size != 1)) return;
  for (int64_t i = 0; i < y->size / inner; i++) {
    const double b = assay_f64(bias)[bias->size == 1 ? 0 : i % c];
    for (int64_t k = 0; k < inner; k++) row[i % c] -= b * g[i * inner + k];
  }
}

// What the node reads, with what a step that was taken put in front of it.
static assay_status_t data_with(const assay_search_t* s, const assay_node_t* n, size_t input,
                                assay_tensor_t** out) {
  const assay_repair_t* r = assay_search_adopted(s, n);
  const assay_tensor_t* factors = NULL;
  for (size_t i = 0; r && i < r->n_edits; i++)
    if (r->edits[i].kind == ASSAY_EDIT_CHAIN && r->edits[i].at_input) factors = r->edits[i].tensor;
  assay_tensor_t* x = assay_evaluator_get(s->evaluator, n->inputs[input]);
  if (!factors) return assay_tensor_widen(x, out);
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(x, &wide));
  assay_status_t st = assay_tensor_copy(wide, out);
  assay_tensor_release(wide);
  if (st) return st;
  int axis = 0;
  while (axis < factors->rank && factors->dims[axis] == 1) axis++;
  const int64_t inner = assay_dims_product((*out)->dims, axis + 1, (*out)->rank);
  for (int64_t i = 0; i < (*out)->size; i++)
    assay_f64(*out)[i] *= assay_f64(factors)[i / inner % factors->size];
  return NULL;
}

typedef struct around {
  assay_tensor_t *x, *y, *bias;
  double* g;
  const double* g_out;
  int axis_x, axis_y;
} around_t;

static assay_status_t look_around(const assay_site_t* site, const assay_search_t* s,
                                  const assay_predict_t* p, around_t* a) {
  const assay_node_t* n = s->nodes[site->position];
  assay_sides_t sides;
  if (!assay_sides_of(n, &sides)) return NULL;
  ASSAY_TRY(data_with(s, n, sides.data, &a->x));
  ASSAY_TRY(assay_predict_constant(p, site->position, sides.data, &a->g));
  if (!is_float(a->x)) return NULL;
  a->axis_x = axis_of(n, &sides, a->x->rank);
  if (site->kind != ASSAY_SITE_MOVED) return NULL;
  assay_tensor_t* y = assay_site_sketch_truth(s, n->outputs[0]);
  a->g_out = assay_predict_derivatives(p, n->outputs[0]);
  if (!is_float(y)) return NULL;
  a->y = assay_tensor_retain(y);
  a->axis_y = axis_of(n, &sides, y->rank);
  assay_tensor_t* bias = n->n_inputs > 2 && n->inputs[2] && is_constant(n->inputs[2])
                             ? assay_evaluator_get(s->evaluator, n->inputs[2])
                             : NULL;
  return bias ? assay_tensor_widen(bias, &a->bias) : NULL;
}

assay_status_t assay_sides_equations(assay_site_sketch_t* k, assay_site_t* site,
                                     const assay_search_t* s, const assay_predict_t* p, int from) {
  around_t a = {0};
  assay_status_t st = k->equations < site->max ? look_around(site, s, p, &a) : NULL;
  const bool known = is_float(a.x) && a.g && (site->kind == ASSAY_SITE_INPUT || (a.y && a.g_out));
  for (int q = from; !st && known && q < ASSAY_PROBES; q++) {
    const size_t e = k->equations + (size_t)(q - from);
    if (e >= site->max) break;
    double* row = site->rows + e * site->columns;
    memset(row, 0, site->columns * sizeof *row);
    add_channels(a.x, a.axis_x, a.g + q * a.x->size, site->kind == ASSAY_SITE_INPUT ? 1 : -1, row);
    if (site->kind == ASSAY_SITE_INPUT) continue;
    add_channels(a.y, a.axis_y, a.g_out + q * a.y->size, 1, row);
    add_bias(a.y, a.axis_y, a.bias, a.g_out + q * a.y->size, row);
  }
  assay_tensor_release(a.x);
  assay_tensor_release(a.y);
  assay_tensor_release(a.bias);
  assay_free(a.g);
  return st;
}
