// Rounded weights of a model.
#include "diagnose/kinds/rounded.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/kinds/rounded_codes.h"
#include "diagnose/kinds/rounded_left.h"
#include "diagnose/kinds/rounded_made.h"
#include "diagnose/kinds/rounded_steps.h"

// LEAST: fewer numbers are no weights. PLAIN: fewer numbers that are not rounded say nothing.
enum { DEPTH = 6, LEAST = 16, PLAIN = 48, MIN_WEIGHTS = 2 };
// Elements that are looked at in all.
static const int64_t MAX_ELEMENTS = INT64_C(64) << 20;

static bool is_op(const assay_node_t* n, const char* op_type) {
  return n && !*n->domain && strcmp(n->op_type, op_type) == 0;
}

// ---- which constants are weights ---------------------------------------------------------------

// Products, by what tools quantize together: matrices, convolutions, recurrent layers, tables.
enum { KINDS = 4 };
static const struct {
  const char* op_type;
  int kind;
  unsigned inputs;
} PRODUCTS[] = {{"MatMul", 0, 3}, {"Gemm", 0, 3},          {"Einsum", 0, 3},
                {"Conv", 1, 2},   {"ConvTranspose", 1, 2}, {"LSTM", 2, 6},
                {"GRU", 2, 6},    {"RNN", 2, 6},           {"Gather", 3, 1}};

typedef struct weight {
  const assay_value_t* value;
  assay_tensor_t* tensor;  // canonical
  bool computed, decoded;  // by the graph, of constants; of codes, by whatever operators
  bool coded;              // of codes that are cast to floats
  int kind;
  bool rounded, designed;
  assay_rounded_way_t way;
  assay_tensor_t* reach;
  double largest, step;  // step: twice the largest reach
  const assay_node_t* product;
} weight_t;

typedef struct lister {
  assay_rounded_made_t made;
  weight_t* at;
  size_t n, capacity;
  int64_t elements;
} lister_t;

// What a weight passes through before it is multiplied by.
static bool passes_on(const assay_node_t* n) {
  static const char* const names[] = {"Mul",  "Div",     "Transpose", "Reshape", "Squeeze",
                                      "Cast", "Flatten", "Unsqueeze", "Identity"};
  bool is = false;
  for (size_t k = 0; n && k < sizeof names / sizeof *names; k++) is |= is_op(n, names[k]);
  return is;
}

// Takes the tensor.
static assay_status_t take_weight(lister_t* l, const assay_value_t* v, int kind,
                                  const assay_node_t* product, assay_tensor_t* t) {
  const bool computed = !assay_rounded_constant(v);
  const bool coded = assay_rounded_has_codes(&l->made, v, t->size);
  bool is = t->rank >= 2 && (coded || t->size >= LEAST);
  is &= t->type == ASSAY_TYPE_FLOAT || (computed && assay_type_is_float(t->type));
  for (size_t i = 0; i < l->n; i++) is &= l->at[i].value != v;
  assay_status_t st = is ? assay_grow(&l->at, &l->capacity, l->n + 1, sizeof *l->at) : NULL;
  if (st || !is) return assay_tensor_release(t), st;
  l->at[l->n++] = (weight_t){.value = v,
                             .tensor = t,
                             .computed = computed,
                             .coded = coded,
                             .decoded = coded || assay_rounded_is_decoded(&l->made, v, t->size),
                             .kind = kind,
                             .product = product};
  l->elements += t->size;
  return NULL;
}

// What a graph decodes of constants is a weight as a whole, whatever decodes it.
static assay_status_t add_weight(lister_t* l, const assay_value_t* v, int kind,
                                 const assay_node_t* product, int depth) {
  if (!v) return NULL;
  if (assay_rounded_is_made(&l->made, v)) {
    assay_tensor_t* t = NULL;
    ASSAY_TRY(assay_rounded_made_get(&l->made, v, &t));
    return t ? take_weight(l, v, kind, product, t) : NULL;
  }
  if (!depth || !passes_on(v->producer)) return NULL;
  for (size_t i = 0; i < v->producer->n_inputs; i++)
    ASSAY_TRY(add_weight(l, v->producer->inputs[i], kind, product, depth - 1));
  return NULL;
}

static assay_status_t add_weights(lister_t* l, const assay_node_t* n) {
  for (size_t k = 0; k < sizeof PRODUCTS / sizeof *PRODUCTS; k++) {
    if (!is_op(n, PRODUCTS[k].op_type)) continue;
    for (size_t i = 0; i < n->n_inputs && i < 3; i++)
      if (PRODUCTS[k].inputs >> i & 1)
        ASSAY_TRY(add_weight(l, n->inputs[i], PRODUCTS[k].kind, n, DEPTH));
  }
  return NULL;
}

// ---- which are rounded -------------------------------------------------------------------------

// Steps of 0.1 or 0.01 are those of a text that the numbers were printed in: nobody chose them.
static bool is_decimal(double step) {
  for (double unit = 0.1; unit > 1e-7; unit /= 10)
    if (fabs(step / unit - 1) < 1e-4) return true;
  return false;
}

// Codes say how far numbers were moved; where there are none, the numbers themselves may show it.
// Those of steps of steps lie on a grid that is far finer than either.
static assay_status_t judge_weight(lister_t* l, weight_t* w) {
  const assay_tensor_t* t = w->tensor;
  w->designed = w->coded ? assay_rounded_is_exact(t) : assay_rounded_is_designed(t);
  if (w->coded && !w->designed) {
    ASSAY_TRY(assay_rounded_codes_reach(&l->made, w->value, t, &w->reach));
    if (w->reach) w->way = ASSAY_ROUNDED_GRID;
  }
  if (!w->designed && !w->reach) ASSAY_TRY(assay_rounded_numbers(t, &w->way, &w->reach));
  for (int64_t i = 0; w->reach && i < t->size; i++) {
    w->largest = fmax(w->largest, fabs(assay_f64(t)[i]));
    w->step = fmax(w->step, 2 * assay_f64(w->reach)[i]);
  }
  // The digits that a type has are its own.
  const bool typed = t->type != ASSAY_TYPE_FLOAT && w->way == ASSAY_ROUNDED_SHORT;
  // Nobody computes a text's digits.
  const bool text = !w->computed && w->way == ASSAY_ROUNDED_GRID && is_decimal(w->step);
  w->rounded = w->reach && !typed && !text;
  return NULL;
}

// Tools leave some layers as they are, the first and the last one; of a kind of product most
// weights are rounded then. A rule's do not count. Few digits may be a stray Cast's, unless all
// weights have them. What is decoded was rounded, whatever others are.
static void drop_mixed(lister_t* l) {
  size_t rounded[KINDS] = {0}, plain[KINDS] = {0}, all_plain = 0;
  for (size_t i = 0; i < l->n; i++) {
    const bool small = l->at[i].tensor->size < PLAIN;
    if (l->at[i].designed || (small && !l->at[i].rounded)) continue;
    rounded[l->at[i].kind] += l->at[i].rounded;
    plain[l->at[i].kind] += !l->at[i].rounded;
    all_plain += !l->at[i].rounded;
  }
  for (size_t i = 0; i < l->n; i++) {
    const weight_t* w = &l->at[i];
    if (w->decoded) continue;
    if (rounded[w->kind] <= plain[w->kind] || (all_plain && w->way == ASSAY_ROUNDED_SHORT))
      l->at[i].rounded = false;
  }
}

// Whether b is what was left of a: the same shape and input, no larger than half a step of a.
static bool is_rest_of(const weight_t* b, const weight_t* a) {
  static const double SLACK = 1.02;
  const assay_tensor_t *x = a->tensor, *y = b->tensor;
  if (a == b || !a->rounded || !b->rounded || !assay_tensor_same_shape(x, y) ||
      strcmp(a->product->op_type, b->product->op_type) != 0 || !(b->step < a->step))
    return false;
  bool same = false;
  for (size_t i = 0; i < a->product->n_inputs && i < b->product->n_inputs; i++)
    same |= a->product->inputs[i] && a->product->inputs[i] == b->product->inputs[i];
  return same && b->largest <= SLACK * 0.5 * a->step;
}

// Of weights in parts, what the last one cannot say is lost.
static void free_wholes(lister_t* l) {
  for (size_t i = 0; i < l->n; i++)
    for (size_t k = 0; k < l->n; k++) {
      if (!l->at[i].reach || !is_rest_of(&l->at[k], &l->at[i])) continue;
      assay_tensor_release(l->at[i].reach);
      l->at[i].reach = NULL;
    }
}

static assay_status_t take_all(lister_t* l, const assay_model_t* model,
                               assay_rounded_weights_t* out) {
  size_t n = 0;
  bool sure = false;
  assay_rounded_steps_t steps;
  assay_status_t st = assay_rounded_steps_list(model, &l->made, &steps);
  out->steps = steps.is;
  out->before = steps.before;
  out->n_steps = steps.n;
  out->n_before = steps.n_before;
  if (st) return st;
  for (size_t i = 0; i < l->n; i++) {
    n += l->at[i].rounded;
    sure |= l->at[i].rounded && l->at[i].decoded;
  }
  if (out->n_before) out->way = ASSAY_ROUNDED_STEPS;
  out->n_values = (size_t)model->n_values;
  ASSAY_TRY(assay_new_array(out->n_values, sizeof *out->reach, &out->reach));
  for (size_t i = 0; (sure || n >= MIN_WEIGHTS) && i < l->n; i++) {
    if (!l->at[i].rounded) continue;
    bool left = false;
    if (!out->n) out->way = l->at[i].way;
    out->n++;
    if (!l->at[i].reach) continue;
    out->reach[l->at[i].value->id] = assay_tensor_retain(l->at[i].reach);
    ASSAY_TRY(assay_rounded_is_left(model, l->at[i].tensor, l->at[i].reach, &left));
    out->n_left += left;
  }
  return NULL;
}

static assay_status_t list(const assay_model_t* model, lister_t* l, assay_rounded_weights_t* out) {
  ASSAY_TRY(assay_rounded_made_create(model, &l->made));
  for (size_t g = 0; g < model->n_graphs; g++)
    for (size_t i = 0; i < model->graphs[g]->n_nodes; i++)
      ASSAY_TRY(add_weights(l, model->graphs[g]->nodes[i]));
  if (l->elements > MAX_ELEMENTS) return NULL;
  for (size_t i = 0; i < l->n; i++) ASSAY_TRY(judge_weight(l, &l->at[i]));
  drop_mixed(l);
  free_wholes(l);
  return take_all(l, model, out);
}

assay_status_t assay_rounded_list(const assay_model_t* model, assay_rounded_weights_t* out) {
  lister_t l = {0};
  *out = (assay_rounded_weights_t){0};
  assay_status_t st = list(model, &l, out);
  for (size_t i = 0; i < l.n; i++) {
    assay_tensor_release(l.at[i].reach);
    assay_tensor_release(l.at[i].tensor);
  }
  assay_free(l.at);
  assay_rounded_made_deinit(&l.made);
  if (st) assay_rounded_deinit(out);
  return st;
}

void assay_rounded_deinit(assay_rounded_weights_t* r) {
  for (size_t i = 0; r->reach && i < r->n_values; i++) assay_tensor_release(r->reach[i]);
  assay_free(r->reach);
  assay_free(r->steps);
  assay_free(r->before);
  *r = (assay_rounded_weights_t){0};
}

// ---- what they may have been -------------------------------------------------------------------

assay_status_t assay_rounded_move(const assay_rounded_weights_t* r, const assay_value_t* v,
                                  uint64_t draw, double part, assay_tensor_t** t) {
  static const double HALF = 0.5;
  if (!r || !v || v->id < 0 || (size_t)v->id >= r->n_values || !*t) return NULL;
  const assay_tensor_t* reach = r->reach[v->id];
  assay_tensor_t *wide = NULL, *moved = NULL;
  if (reach ? !assay_tensor_same_shape(reach, *t) : !r->steps[v->id]) return NULL;
  if ((*t)->kind != ASSAY_KIND_TENSOR || !assay_type_is_float((*t)->type)) return NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_copy(wide, &moved);
  assay_tensor_release(wide);
  if (st) return st;
  const uint64_t of = draw * 0xd1342543de82ef95U + ((uint64_t)v->id + 1) * 0x9fb21c651e98df25U;
  for (int64_t i = 0; i < moved->size; i++) {
    uint64_t hash = ((uint64_t)i + 1 + of) * 0x9e3779b97f4a7c15U;
    hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93U;
    const double by = 2 * (double)(hash >> 11) * 0x1p-53 - 1;
    assay_f64(moved)[i] += part * by * (reach ? assay_f64(reach)[i] : HALF);
  }
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// ---- words -------------------------------------------------------------------------------------

static const struct {
  const char *text, *name;
} WAYS[] = {{"", "none"},
            {"weights on a grid", "grid"},
            {"weights of a few numbers", "palette"},
            {"weights of a few bits", "bits"},
            {"weights of a few bits times a scale", "scaled bits"},
            {"weights of which the smallest are 0", "zeros"},
            {"values in steps", "steps"}};

const char* assay_rounded_text(const assay_rounded_weights_t* r) { return WAYS[r->way].text; }

const char* assay_rounded_name(const assay_rounded_weights_t* r) { return WAYS[r->way].name; }
