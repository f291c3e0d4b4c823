// Summands that were folded over an activation, or under a border.
//
// With f an activation, f(u - v) + v is what a normalization behind it gives that was folded into
// the layer in front of it (its scale goes through f where f is of two slopes), and with -v what a
// bias gives that was added behind f and not in front. A convolution reads zeros around what there
// is: where an offset c of its input was folded into its bias, the border lacks c. Both are linear
// in one number for each channel, to first order. Sources: pytorch/glow issue 5892,
// junyuseu/ResNet-on-Cifar10 issue 4.
#include "diagnose/outputs/folded.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

static bool is_op(const assay_node_t* n, const char* op) {
  return !*n->domain && strcmp(n->op_type, op) == 0;
}

static bool is_float(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// ---- which --------------------------------------------------------------------------------------

// Functions of one number that are not linear.
static bool is_activation(const assay_node_t* n) {
  static const char* const names[] = {
      "Relu", "LeakyRelu",   "PRelu",     "Elu",      "Selu",           "Celu", "Clip", "Sigmoid",
      "Tanh", "HardSigmoid", "HardSwish", "Softplus", "Softsign",       "Gelu", "Mish", "Swish",
      "Exp",  "Log",         "Sqrt",      "Erf",      "ThresholdedRelu"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (is_op(n, names[i])) return true;
  return false;
}

// One number for all channels.
static assay_status_t add_one(assay_site_sketch_t* k, assay_site_t site, int64_t elements) {
  site.columns = 1;
  return assay_site_add(k, site, elements);
}

// The same, and one for each.
static assay_status_t add_both(assay_site_sketch_t* k, assay_site_t site, int64_t elements) {
  site.columns = (size_t)site.channels;
  if (site.channels > 1 && site.channels <= ASSAY_SITE_CHANNELS)
    ASSAY_TRY(assay_site_add(k, site, elements));
  return add_one(k, site, elements);
}

static assay_status_t list_around(assay_site_sketch_t* k, size_t position, const assay_tensor_t* y,
                                  int64_t elements) {
  const assay_node_t* n = k->s->nodes[position];
  const assay_node_t* maker = n->n_inputs && n->inputs[0] ? n->inputs[0]->producer : NULL;
  if (!is_activation(n) || !n->n_inputs || !n->inputs[0] || !y->rank) return NULL;
  const int axis = maker ? assay_site_axis(maker, y) : -1;
  assay_site_t site = {
      .kind = ASSAY_SITE_AROUND, .position = position, .axis = axis < 0 ? y->rank - 1 : axis};
  site.channels = y->dims[site.axis];
  if (axis >= 0) ASSAY_TRY(add_both(k, site, elements));
  return axis >= 0 ? NULL : add_one(k, site, elements);
}

static bool has_border(const assay_node_t* n) {
  size_t count = 0;
  const char* mode = assay_attr_str(n, "auto_pad", "NOTSET");
  if (strcmp(mode, "NOTSET") != 0) return strcmp(mode, "VALID") != 0;
  const int64_t* pads = assay_attr_ints(n, "pads", &count);
  bool any = false;
  for (size_t i = 0; pads && i < count; i++) any |= pads[i] != 0;
  return any;
}

// The weight of a convolution that reads all channels.
static const assay_tensor_t* weight_of(const assay_search_t* s, const assay_node_t* n) {
  const assay_tensor_t* w =
      n->n_inputs > 1 && n->inputs[1] ? assay_evaluator_get(s->evaluator, n->inputs[1]) : NULL;
  return is_op(n, "Conv") && w && w->kind == ASSAY_KIND_TENSOR && w->rank > 2 ? w : NULL;
}

static assay_status_t list_border(assay_site_sketch_t* k, size_t position, int64_t elements) {
  const assay_node_t* n = k->s->nodes[position];
  const assay_tensor_t* w = weight_of(k->s, n);
  if (!w || !has_border(n) || assay_attr_i64(n, "group", 1) != 1) return NULL;
  const assay_site_t site = {
      .kind = ASSAY_SITE_BORDER, .position = position, .axis = 1, .channels = w->dims[1]};
  return add_both(k, site, elements);
}

assay_status_t assay_folded_list(assay_site_sketch_t* k, size_t position, const assay_tensor_t* y,
                                 int64_t elements) {
  ASSAY_TRY(list_around(k, position, y, elements));
  return list_border(k, position, elements);
}

// ---- equations ----------------------------------------------------------------------------------

// Which of a site's numbers is that of a channel.
static size_t number_of(const assay_site_t* site, int64_t channel) {
  return site->columns == 1 ? 0 : (size_t)channel;
}

static void add_channels(const assay_site_t* site, const assay_tensor_t* x, int axis,
                         const double* g, double* row) {
  const int64_t c = x->dims[axis], inner = assay_dims_product(x->dims, axis + 1, x->rank);
  for (int64_t i = 0; i < x->size; i++) row[number_of(site, i / inner % c)] += g[i];
}

// The numbers of a step that was taken, which the node reads more; NULL: none was.
static const assay_tensor_t* taken(const assay_search_t* s, const assay_node_t* n) {
  const assay_repair_t* r = assay_search_adopted(s, n);
  return r && r->n_edits && r->edits[0].kind == ASSAY_EDIT_CHAIN && r->edits[0].at_input
             ? r->edits[0].tensor
             : NULL;
}

// An activation of what it reads, moved by `by`.
static assay_status_t value_at(const assay_search_t* s, const assay_site_t* site,
                               const assay_tensor_t* x, double by, assay_tensor_t** out) {
  const assay_node_t* n = s->nodes[site->position];
  const assay_tensor_t* moved = taken(s, n);
  const int64_t inner = assay_dims_product(x->dims, site->axis + 1, x->rank);
  assay_tensor_t **in = NULL, *first = NULL, *given = NULL;
  ASSAY_TRY(assay_new_array(n->n_inputs, sizeof *in, &in));
  assay_status_t st = assay_tensor_copy(x, &first);
  for (int64_t i = 0; !st && i < x->size; i++)
    assay_f64(first)[i] += by + (moved ? assay_f64(moved)[i / inner % site->channels] : 0);
  for (size_t i = 0; i < n->n_inputs; i++)
    in[i] = i == 0 ? first : n->inputs[i] ? assay_evaluator_get(s->evaluator, n->inputs[i]) : NULL;
  if (!st) st = assay_evaluator_node(s->evaluator, n, n->n_inputs, in, 1, &given);
  if (!st) st = assay_tensor_widen(given, out);
  assay_tensor_release(first);
  assay_tensor_release(given);
  assay_free(in);
  return st;
}

// 1 - f'(u - v) of each element, by differences.
static assay_status_t around_slopes(const assay_search_t* s, const assay_site_t* site,
                                    double** out) {
  static const double STEP = 1e-6;
  const assay_node_t* n = s->nodes[site->position];
  assay_tensor_t *x = NULL, *low = NULL, *high = NULL;
  ASSAY_TRY(assay_tensor_widen(assay_evaluator_get(s->evaluator, n->inputs[0]), &x));
  const bool fits = is_float(x) && x->rank > site->axis && x->dims[site->axis] == site->channels;
  assay_status_t st = fits ? value_at(s, site, x, -STEP, &low) : NULL;
  if (fits && !st) st = value_at(s, site, x, STEP, &high);
  if (fits && !st && is_float(low) && is_float(high) && low->size == x->size)
    st = assay_new_array((size_t)x->size, sizeof **out, out);
  for (int64_t i = 0; *out && i < x->size; i++)
    (*out)[i] = 1 - (assay_f64(high)[i] - assay_f64(low)[i]) / (2 * STEP);
  assay_tensor_release(x);
  assay_tensor_release(low);
  assay_tensor_release(high);
  return st;
}

static assay_status_t around_equations(assay_site_sketch_t* k, assay_site_t* site,
                                       const assay_search_t* s, const assay_predict_t* p,
                                       int from) {
  const assay_node_t* n = s->nodes[site->position];
  const double* g = assay_predict_derivatives(p, n->outputs[0]);
  const assay_tensor_t* y = assay_site_sketch_truth(s, n->outputs[0]);
  double *slopes = NULL, *moves = NULL;
  if (!g || !is_float(y)) return NULL;
  ASSAY_TRY(around_slopes(s, site, &slopes));
  assay_status_t st = slopes ? assay_new_array((size_t)y->size, sizeof *moves, &moves) : NULL;
  for (int q = from; moves && q < ASSAY_PROBES; q++) {
    const size_t e = k->equations + (size_t)(q - from);
    if (e >= site->max) break;
    double* row = site->rows + e * site->columns;
    memset(row, 0, site->columns * sizeof *row);
    for (int64_t i = 0; i < y->size; i++) moves[i] = g[q * y->size + i] * slopes[i];
    add_channels(site, y, site->axis, moves, row);
  }
  assay_free(slopes);
  assay_free(moves);
  return st;
}

// What all places of a kernel give of each channel: out [made, read].
static void kernel_sums(const assay_tensor_t* w, double* out) {
  const int64_t inner = assay_dims_product(w->dims, 2, w->rank);
  memset(out, 0, (size_t)(w->size / inner) * sizeof *out);
  for (int64_t i = 0; i < w->size; i++) out[i / inner] += assay_f64(w)[i];
}

static void border_row(const assay_site_t* site, const assay_tensor_t* x, const assay_tensor_t* y,
                       const double* sums, const double* g_x, const double* g, double* row) {
  const int64_t inner = assay_dims_product(y->dims, 2, y->rank), made = y->dims[1];
  memset(row, 0, site->columns * sizeof *row);
  add_channels(site, x, 1, g_x, row);
  for (int64_t i = 0; i < y->size / inner; i++) {
    double sum = 0;
    for (int64_t j = 0; j < inner; j++) sum += g[i * inner + j];
    for (int64_t c = 0; c < site->channels; c++)
      row[number_of(site, c)] -= sums[i % made * site->channels + c] * sum;
  }
}

static assay_status_t border_equations(assay_site_sketch_t* k, assay_site_t* site,
                                       const assay_search_t* s, const assay_predict_t* p,
                                       int from) {
  const assay_node_t* n = s->nodes[site->position];
  const double* g = assay_predict_derivatives(p, n->outputs[0]);
  const assay_tensor_t* y = assay_site_sketch_truth(s, n->outputs[0]);
  const assay_tensor_t* x = assay_evaluator_get(s->evaluator, n->inputs[0]);
  assay_tensor_t* w = NULL;
  double *g_x = NULL, *sums = NULL;
  if (!g || !is_float(y) || !x || k->equations >= site->max) return NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)weight_of(s, n), &w));
  assay_status_t st = assay_new_array((size_t)(w->dims[0] * w->dims[1]), sizeof *sums, &sums);
  if (!st) st = assay_predict_constant(p, site->position, 0, &g_x);
  if (!st) kernel_sums(w, sums);
  for (int q = from; !st && g_x && q < ASSAY_PROBES; q++) {
    const size_t e = k->equations + (size_t)(q - from);
    if (e >= site->max) break;
    border_row(site, x, y, sums, g_x + q * x->size, g + q * y->size,
               site->rows + e * site->columns);
  }
  assay_tensor_release(w);
  assay_free(sums);
  assay_free(g_x);
  return st;
}

assay_status_t assay_folded_equations(assay_site_sketch_t* k, assay_site_t* site,
                                      const assay_search_t* s, const assay_predict_t* p, int from) {
  return site->kind == ASSAY_SITE_AROUND ? around_equations(k, site, s, p, from)
                                         : border_equations(k, site, s, p, from);
}

// ---- repairs ------------------------------------------------------------------------------------

// A sum with a number of each channel, in front of input 0 or behind output 0.
static assay_status_t add_sum(assay_repair_t* r, bool at_input, const assay_tensor_t* like,
                              int axis, const double* numbers, double sign) {
  const int64_t channels = like->dims[axis];
  int64_t dims[ASSAY_MAX_RANK];
  assay_repair_edit_t* e = &r->edits[r->n_edits];
  *e = (assay_repair_edit_t){
      .kind = ASSAY_EDIT_CHAIN, .at_input = at_input, .n_chain = 1, .type = like->type};
  e->chain[0] = (assay_chain_step_t){
      .op_type = "Add",
      .of = {{ASSAY_OPERAND_START, 0, 0, NULL}, {ASSAY_OPERAND_TENSOR, 0, 0, NULL}}};
  for (int i = 0; i < like->rank; i++) dims[i] = i == axis ? channels : 1;
  ASSAY_TRY(assay_tensor_create(like->type, like->rank, dims, &e->tensor));
  r->n_edits++;
  for (int64_t c = 0; c < channels; c++)
    assay_f64(e->tensor)[c] = (double)(float)(sign * numbers[c]);
  return NULL;
}

static assay_status_t around_edits(const assay_tensor_t* x, const assay_tensor_t* y,
                                   const assay_site_t* site, const double* v, assay_repair_t* r) {
  ASSAY_TRY(add_sum(r, true, x, site->axis, v, -1));
  return add_sum(r, false, y, site->axis, v, 1);
}

// c in front of it, and what c gives where there is no border taken away behind it.
static assay_status_t border_edits(const assay_search_t* s, const assay_tensor_t* x,
                                   const assay_tensor_t* y, const assay_site_t* site,
                                   const double* c, assay_repair_t* r) {
  assay_tensor_t* w = NULL;
  double *sums = NULL, *all = NULL;
  ASSAY_TRY(assay_tensor_widen((assay_tensor_t*)weight_of(s, r->node), &w));
  const int64_t made = w->dims[0];
  assay_status_t st = assay_new_array((size_t)(made * site->channels), sizeof *sums, &sums);
  if (!st) st = assay_new_array((size_t)made, sizeof *all, &all);
  if (!st) kernel_sums(w, sums);
  for (int64_t i = 0; !st && i < made * site->channels; i++)
    all[i / site->channels] += sums[i] * c[i % site->channels];
  if (!st) st = add_sum(r, true, x, 1, c, 1);
  if (!st) st = add_sum(r, false, y, 1, all, -1);
  assay_tensor_release(w);
  assay_free(sums);
  assay_free(all);
  return st;
}

assay_status_t assay_folded_repair(const assay_search_t* s, const assay_site_t* site,
                                   const double* numbers, assay_repair_t* out) {
  const assay_node_t* n = s->nodes[site->position];
  const assay_tensor_t* x = assay_evaluator_get(s->evaluator, n->inputs[0]);
  const assay_tensor_t* y = assay_site_sketch_truth(s, n->outputs[0]);
  const bool around = site->kind == ASSAY_SITE_AROUND;
  double low = HUGE_VAL, high = -HUGE_VAL, *each = NULL;
  ASSAY_TRY(assay_new_array((size_t)site->channels, sizeof *each, &each));
  for (int64_t c = 0; c < site->channels; c++) {
    each[c] = numbers[number_of(site, c)];
    low = fmin(low, each[c]), high = fmax(high, each[c]);
  }
  *out = (assay_repair_t){.node = n,
                          .cause = around ? "summand past an activation" : "offset under a border"};
  assay_status_t st =
      around ? around_edits(x, y, site, each, out) : border_edits(s, x, y, site, each, out);
  assay_free(each);
  if (st) return assay_repair_deinit(out), st;
  if (around)
    snprintf(out->text, sizeof out->text,
             "numbers of %.4g to %.4g, by channel, added behind it and not in front", low, high);
  else
    snprintf(out->text, sizeof out->text,
             "'%.100s' bordered by %.4g to %.4g, by channel, not by zeros", n->inputs[0]->name,
             -high, -low);
  return NULL;
}
