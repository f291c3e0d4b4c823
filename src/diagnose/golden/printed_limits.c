// How far printed golden leaves truth open, number by number.
#include "diagnose/golden/printed_limits.h"

#include <math.h>

#include "base/alloc.h"
#include "ops/bound.h"
#include "ops/math/pointwise.h"

typedef struct propagation {
  assay_golden_walk_t* w;
  assay_rounding_t rounding;  // next to none: what golden rounds is explained elsewhere
  assay_limits_t* made;       // by value id: of what nodes make of golden; empty: none
  bool* unknown;              // by value id: there is no bound on the way
  bool* wanted;               // by value id
} propagation_t;

// ---- numbers ------------------------------------------------------------------------------------

static bool holds_floats(const assay_tensor_t* t) {
  return t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// Half a unit of each number that golden has; *out NULL: it was not printed.
static assay_status_t half_units(const assay_golden_walk_t* w, const assay_value_t* v,
                                 const assay_tensor_t* t, assay_tensor_t** out) {
  const assay_printed_t* p = &w->printed[v->id];
  *out = NULL;
  if (!w->golden_of[v->id] || !assay_is_printed(p) || !holds_floats(t)) return NULL;
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_DOUBLE, t->rank, t->dims, out));
  for (int64_t i = 0; i < t->size; i++)
    assay_f64(*out)[i] = 0.5 * assay_printed_unit(p, assay_f64(t)[i]);
  return NULL;
}

// What a node read in truth, canonical, and how far it is open.
static assay_status_t enter(const propagation_t* p, const assay_value_t* v, assay_tensor_t** in,
                            assay_limits_t* error) {
  const assay_golden_walk_t* w = p->w;
  assay_tensor_t* t = assay_evaluator_get(w->truth, v);
  if (!t) t = v->constant;
  if (!t) return NULL;
  ASSAY_TRY(assay_tensor_widen(t, in));
  if (w->golden_of[v->id]) {
    ASSAY_TRY(half_units(w, v, *in, &error->guaranteed));
    error->probable = assay_tensor_retain(error->guaranteed);
    return NULL;
  }
  error->guaranteed = assay_tensor_retain(p->made[v->id].guaranteed);
  error->probable = assay_tensor_retain(p->made[v->id].probable);
  return NULL;
}

// ---- nodes --------------------------------------------------------------------------------------

static assay_status_t evaluate(assay_bound_t* b, bool coarse, assay_tensor_t* const* in,
                               assay_tensor_t** out) {
  const propagation_t* p = b->driver;
  (void)coarse;
  return assay_evaluator_node(p->w->truth, b->node, b->n_in, in, b->n_out, out);
}

typedef struct job {
  const assay_node_t* node;
  assay_tensor_t **in, **out;  // out: borrowed
  assay_limits_t *in_error, *out_error;
  bool open, unknown;  // that something reached it; that nothing is known of what did
} job_t;

static assay_status_t read_inputs(const propagation_t* p, job_t* j) {
  for (size_t i = 0; i < j->node->n_inputs; i++) {
    const assay_value_t* v = j->node->inputs[i];
    if (!v) continue;
    ASSAY_TRY(enter(p, v, &j->in[i], &j->in_error[i]));
    j->open |= j->in_error[i].guaranteed != NULL;
    j->unknown |= p->unknown[v->id] && !p->w->golden_of[v->id];
  }
  for (size_t i = 0; i < j->node->n_outputs; i++) {
    const assay_value_t* v = j->node->outputs[i];
    if (!v) continue;
    assay_tensor_t* missed = p->w->missed[v->id];
    j->out[i] = missed ? missed : assay_evaluator_get(p->w->truth, v);
  }
  return NULL;
}

static assay_status_t bound(propagation_t* p, job_t* j) {
  const assay_op_t* op = j->node->op;
  const uint32_t none = ASSAY_OP_CONTROL | ASSAY_OP_RANDOM |
                        (p->w->options->unquantized ? (uint32_t)ASSAY_OP_QUANTIZES : 0);
  if (!j->open || j->unknown) return NULL;
  j->unknown = !op || op->flags & none;
  if (j->unknown) return NULL;
  assay_bound_t b = {.node = j->node,
                     .rounding = &p->rounding,
                     .n_in = j->node->n_inputs,
                     .n_out = j->node->n_outputs,
                     .in = j->in,
                     .in_error = j->in_error,
                     .out = j->out,
                     .out_error = j->out_error,
                     .flips = true,
                     .evaluate = evaluate,
                     .driver = p};
  assay_status_t st = assay_bound_node(&b);
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY) return st;
  assay_status_free(st);
  j->unknown = true;
  return NULL;
}

static void job_deinit(job_t* j) {
  for (size_t i = 0; j->in && i < j->node->n_inputs; i++) assay_tensor_release(j->in[i]);
  for (size_t i = 0; j->in_error && i < j->node->n_inputs; i++)
    assay_limits_deinit(&j->in_error[i]);
  for (size_t i = 0; j->out_error && i < j->node->n_outputs; i++)
    assay_limits_deinit(&j->out_error[i]);
  assay_free(j->in);
  assay_free(j->out);
  assay_free(j->in_error);
  assay_free(j->out_error);
}

static assay_status_t pass_node(propagation_t* p, const assay_node_t* node) {
  job_t j = {.node = node};
  assay_status_t st = assay_new_array(node->n_inputs, sizeof(assay_tensor_t*), &j.in);
  if (!st) st = assay_new_array(node->n_outputs, sizeof(assay_tensor_t*), &j.out);
  if (!st) st = assay_new_array(node->n_inputs, sizeof *j.in_error, &j.in_error);
  if (!st) st = assay_new_array(node->n_outputs, sizeof *j.out_error, &j.out_error);
  if (!st) st = read_inputs(p, &j);
  if (!st) st = bound(p, &j);
  for (size_t i = 0; !st && i < node->n_outputs; i++) {
    const assay_value_t* v = node->outputs[i];
    if (!v) continue;
    p->unknown[v->id] = j.unknown;
    if (j.unknown) continue;
    p->made[v->id] = j.out_error[i];
    j.out_error[i] = (assay_limits_t){0};
  }
  job_deinit(&j);
  return st;
}

// The nodes between the values of the faults and golden that goes in.
static void mark_wanted(const propagation_t* p) {
  const assay_golden_walk_t* w = p->w;
  const assay_graph_t* g = w->model->graph;
  for (size_t i = 0; i < w->out->n; i++)
    if (!w->out->faults[i].shape) p->wanted[w->out->faults[i].value->id] = true;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* n = g->nodes[i];
    bool needed = false;
    for (size_t k = 0; k < n->n_outputs; k++)
      needed |= n->outputs[k] && p->wanted[n->outputs[k]->id];
    for (size_t k = 0; needed && k < n->n_inputs; k++)
      if (n->inputs[k] && !w->golden_of[n->inputs[k]->id]) p->wanted[n->inputs[k]->id] = true;
  }
}

static assay_status_t propagate(propagation_t* p) {
  const assay_graph_t* g = p->w->model->graph;
  mark_wanted(p);
  for (size_t i = 0; i < g->n_nodes; i++) {
    bool needed = false;
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++)
      needed |= g->nodes[i]->outputs[k] && p->wanted[g->nodes[i]->outputs[k]->id];
    if (needed) ASSAY_TRY(pass_node(p, g->nodes[i]));
  }
  return NULL;
}

// ---- faults -------------------------------------------------------------------------------------

// Golden where truth may be it, else truth moved towards it as far as it is open. *out_rms,
// *out_max: of what it is open by.
static assay_status_t nearest(const assay_printed_t* printed, const assay_tensor_t* truth,
                              const assay_tensor_t* golden, const assay_tensor_t* made,
                              const assay_tensor_t* half, assay_tensor_t** out, double* out_rms,
                              double* out_max) {
  double sum = 0, max = 0;
  ASSAY_TRY(assay_tensor_copy(truth, out));
  for (int64_t i = 0; i < golden->size; i++) {
    const double by = (made ? assay_f64(made)[i] : 0) + (half ? assay_f64(half)[i] : 0);
    if (isfinite(by)) sum += by * by, max = fmax(max, by);
    if (truth->store == ASSAY_STORE_I64) {
      const double x = assay_i64_to_f64(truth->type, assay_i64(truth)[i]);
      const double y = assay_i64_to_f64(golden->type, assay_i64(golden)[i]);
      if (!(fabs(x - y) > by)) assay_i64(*out)[i] = assay_i64(golden)[i];
      continue;
    }
    const double x = assay_f64(truth)[i], y = assay_f64(golden)[i];
    if (isfinite(by) && !(fabs(x - y) <= by) && !assay_printed_is_past(printed, x, y))
      assay_f64(*out)[i] = x + copysign(by, y - x);
    else
      assay_f64(*out)[i] = y;
  }
  *out_rms = golden->size ? sqrt(sum / (double)golden->size) : 0;
  *out_max = max;
  return NULL;
}

// Whether a fault is more than what is open, and rounding.
static assay_status_t consider(const propagation_t* p, const assay_fault_t* f, bool* out) {
  assay_golden_walk_t* w = p->w;
  const assay_value_t* v = f->value;
  const assay_tensor_t *truth = w->missed[v->id], *golden = w->golden_of[v->id]->tensor;
  const assay_tensor_t* made = p->made[v->id].probable;
  assay_tensor_t *half = NULL, *moved = NULL;
  double rms = 0, max = 0;
  *out = true;
  if (f->shape || !truth || p->unknown[v->id] || golden->size > truth->size) return NULL;
  ASSAY_TRY(half_units(w, v, golden, &half));
  assay_status_t st =
      made || half ? nearest(&w->printed[v->id], truth, golden, made, half, &moved, &rms, &max)
                   : NULL;
  if (!st && moved) {
    assay_difference_t* e = &w->explained[v->id];
    const assay_difference_t d = assay_difference(moved, golden);
    *out = assay_golden_is_fault(&d, e, golden);
    e->rms = fmax(e->rms, rms / assay_golden_allowed(1, golden, 0));
    e->max = fmax(e->max, max / assay_golden_allowed(1, golden, 0));
  }
  assay_tensor_release(half);
  assay_tensor_release(moved);
  return st;
}

bool assay_golden_any_printed(const assay_golden_walk_t* w) {
  for (size_t i = 0; i < (size_t)w->model->n_values; i++)
    if (w->golden_of[i] && assay_is_printed(&w->printed[i])) return true;
  return false;
}

assay_status_t assay_golden_forgive_printed(assay_golden_walk_t* w) {
  const size_t values = (size_t)w->model->n_values;
  assay_export_t* e = w->out;
  propagation_t p = {.w = w,
                     .rounding = assay_rounding_unknown(ASSAY_FORMAT_FP64, ASSAY_FORMAT_FP64)};
  assay_status_t st = assay_new_array(values, sizeof *p.made, &p.made);
  if (!st) st = assay_new_array(values, sizeof *p.unknown, &p.unknown);
  if (!st) st = assay_new_array(values, sizeof *p.wanted, &p.wanted);
  if (!st) st = propagate(&p);
  size_t n = 0;
  for (size_t i = 0; i < e->n; i++) {
    bool is_fault = true;
    if (!st) st = consider(&p, &e->faults[i], &is_fault);
    if (is_fault) e->faults[n++] = e->faults[i];
  }
  e->n = n;
  for (size_t i = 0; p.made && i < values; i++) assay_limits_deinit(&p.made[i]);
  assay_free(p.made);
  assay_free(p.unknown);
  assay_free(p.wanted);
  return st;
}
