#include "accuracy/outputs.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

// How long one command of the user's may take to judge outputs.
static const double COMMAND_SECONDS = 600;

// ---- one sample ---------------------------------------------------------------------------------

static bool same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a && b && a->kind == ASSAY_KIND_TENSOR && b->kind == ASSAY_KIND_TENSOR &&
         a->store == b->store && a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

assay_status_t assay_output_add_golden(assay_output_check_t* o, const assay_tensor_t* engine,
                                       const assay_tensor_t* truth, assay_tensor_t* golden) {
  if (!truth || !golden || golden->kind != ASSAY_KIND_TENSOR || truth->kind != ASSAY_KIND_TENSOR ||
      truth->store != ASSAY_STORE_F64)
    return NULL;
  assay_tensor_t* wide = NULL;
  ASSAY_TRY(assay_tensor_widen(golden, &wide));
  assay_status_t st = NULL;
  // Another shape is the export's fault, and told there.
  if (same_shape(truth, wide)) {
    size_t n = (size_t)truth->size;
    o->has_golden = true;
    assay_error_sum_add(&o->golden, assay_f64(truth), assay_f64(wide), n);
    if (same_shape(engine, wide))
      assay_error_sum_add(&o->engine_golden, assay_f64(engine), assay_f64(wide), n);
  }
  assay_tensor_release(wide);
  return st;
}

static bool same_string(const assay_string_t* a, const assay_string_t* b) {
  return a->len == b->len && (!a->len || !memcmp(a->text, b->text, a->len));
}

// Positions of the k largest of n elements, the first of equals first; NaN counts as smallest.
static void largest_of(const double* x, int64_t n, int k, int64_t* at) {
  for (int i = 0; i < k; i++) {
    at[i] = -1;
    for (int64_t c = 0; c < n; c++) {
      bool taken = false;
      for (int p = 0; p < i; p++) taken |= at[p] == c;
      if (!taken && (at[i] < 0 || x[c] > x[at[i]])) at[i] = c;
    }
  }
}

// Whether rows have the same largest elements. Rows are those of scores: outputs of one or two
// dimensions.
static void count_top(assay_output_check_t* o, const assay_tensor_t* e, const assay_tensor_t* t) {
  enum { TOP = 5 };
  if (t->store != ASSAY_STORE_F64 || t->rank < 1 || t->rank > 2) return;
  const int64_t n = t->dims[t->rank - 1];
  if (n < 2) return;
  const int k = n < TOP ? (int)n : TOP;
  for (int64_t row = 0; row < t->size / n; row++) {
    int64_t a[TOP], b[TOP];
    largest_of(assay_f64(e) + row * n, n, k, a);
    largest_of(assay_f64(t) + row * n, n, k, b);
    int same = 0;
    for (int i = 0; i < k; i++)
      for (int c = 0; c < k; c++) same += a[i] == b[c];
    o->rows++;
    o->top1 += a[0] == b[0];
    o->top5 += same == k;
  }
}

static void add_steps(assay_step_sum_t* sum, const assay_tensor_t* e, const assay_tensor_t* t) {
  sum->n += t->size;
  for (int64_t k = 0; k < t->size; k++) {
    const double x = (double)assay_i64(t)[k], d = (double)assay_i64(e)[k] - x;
    if (fabs(d) > (double)sum->largest) sum->largest = (int64_t)fmin(fabs(d), 0x1p62);
    sum->difference2 += d * d;
    sum->sum += x;
    sum->sum2 += x * x;
  }
}

// Whether integers stand for numbers: made by an operator that quantizes, and at most moved since.
static bool stands_for_numbers(const assay_value_t* v) {
  if (!v->type || v->type->kind != ASSAY_KIND_TENSOR || !assay_type_is_integer(v->type->elem))
    return false;
  const assay_node_t* node = v->producer;
  while (node && node->op && node->op->flags & ASSAY_OP_MOVES && node->n_inputs && node->inputs[0])
    node = node->inputs[0]->producer;
  return node && node->op && node->op->flags & ASSAY_OP_QUANTIZES;
}

// Adds what differs between one output of the engine and of truth; containers item by item.
static void compare(assay_output_check_t* o, const assay_tensor_t* e, const assay_tensor_t* t) {
  if (t->kind != ASSAY_KIND_TENSOR) {
    bool alike = e->kind == t->kind && e->n_items == t->n_items;
    o->differing += !alike;
    for (int64_t i = 0; alike && i < t->n_items; i++) compare(o, e->items[i], t->items[i]);
    return;
  }
  o->is_float |= t->store == ASSAY_STORE_F64 || t->store == ASSAY_STORE_C128;
  if (!same_shape(e, t)) {
    o->differing += t->size ? t->size : 1;
    return;
  }
  switch (t->store) {
    case ASSAY_STORE_F64:
    case ASSAY_STORE_C128: {  // a complex number is two
      size_t n = (size_t)t->size * (t->store == ASSAY_STORE_C128 ? 2 : 1);
      assay_error_sum_add(&o->error, t->store == ASSAY_STORE_F64 ? assay_f64(e) : assay_c128(e),
                          t->store == ASSAY_STORE_F64 ? assay_f64(t) : assay_c128(t), n);
      count_top(o, e, t);
      return;
    }
    case ASSAY_STORE_I64:
      for (int64_t k = 0; k < t->size; k++) o->differing += assay_i64(e)[k] != assay_i64(t)[k];
      if (o->quantized) add_steps(&o->steps, e, t);
      return;
    case ASSAY_STORE_STR:
      for (int64_t k = 0; k < t->size; k++)
        o->differing += !same_string(&assay_strings(e)[k], &assay_strings(t)[k]);
      return;
    case ASSAY_STORE_PACKED:  // outputs are canonical
      return;
  }
}

void assay_output_add(assay_output_check_t* o, const assay_tensor_t* engine,
                      const assay_tensor_t* truth) {
  if (engine && truth) compare(o, engine, truth);
}

// ---- truth that golden is held against ----------------------------------------------------------

bool assay_model_quantizes(const assay_model_t* m) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_op_t* op = m->graphs[g]->nodes[i]->op;
      if (op && op->flags & ASSAY_OP_QUANTIZES) return true;
    }
  return false;
}

assay_status_t assay_truth_unquantized(const assay_model_t* m, assay_tensor_t* const* inputs,
                                       assay_machine_t** out) {
  const assay_graph_t* g = m->graph;
  assay_machine_config_t config = {.mode = ASSAY_MODE_TRUTH, .unquantized = true};
  ASSAY_TRY(assay_machine_create(m, &config, out));
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i]) assay_machine_set(*out, g->inputs[i], inputs[i]);
  return assay_machine_run(*out);
}

// ---- all samples --------------------------------------------------------------------------------

assay_status_t assay_outputs_create(const assay_graph_t* g, assay_output_check_t** out) {
  ASSAY_TRY(assay_new_array(g->n_outputs, sizeof **out, out));
  for (size_t i = 0; i < g->n_outputs; i++) {
    (*out)[i].value = g->outputs[i];
    (*out)[i].quantized = stands_for_numbers(g->outputs[i]);
    (*out)[i].error = (*out)[i].golden = (*out)[i].engine_golden = ASSAY_ERROR_SUM_INIT;
  }
  return NULL;
}

// Quantized integers: a number next to a tie may fall on either side of it, so one step is nothing;
// more of them must be as small beside the spread of truth as a cosine of 0.999 allows: |d|^2 <= 2
// (1 - 0.999) |t - mean|^2.
static bool steps_hold(const assay_step_sum_t* s) {
  if (s->largest <= 1) return true;
  return s->difference2 <= 0.002 * (s->sum2 - s->sum * s->sum / (double)s->n);
}

// NaN and infinities that truth lacks are never faithful. Outputs that are all zero in truth have
// no direction: any difference counts.
static bool holds(const assay_output_check_t* o, const assay_requirements_t* require) {
  if (o->is_float && (o->differing || o->error.mismatched)) return false;
  if (require && require->n) return assay_require_holds(require, o, NULL);
  if (o->is_float) return assay_error_sum_cosine(&o->error) >= 0.999;
  return o->differing == 0 || (o->quantized && steps_hold(&o->steps));
}

bool assay_outputs_hold(assay_output_check_t* outputs, size_t n,
                        const assay_requirements_t* require) {
  bool all = true;
  for (size_t i = 0; i < n; i++) {
    outputs[i].faithful = holds(&outputs[i], require);
    all &= outputs[i].faithful;
  }
  return all;
}

assay_status_t assay_outputs_ask(const assay_requirements_t* require,
                                 const assay_script_data_t* data, bool* out_yes,
                                 assay_str_t* unmet) {
  for (size_t i = 0; require && i < require->n; i++) {
    bool yes = true;
    if (!require->at[i].command) continue;
    ASSAY_TRY(assay_script_ask(require->at[i].text, COMMAND_SECONDS, data, &yes, unmet));
    *out_yes &= yes;
  }
  return NULL;
}
