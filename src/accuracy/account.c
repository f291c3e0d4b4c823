#include "accuracy/account.h"

#include <math.h>
#include <string.h>

#include "accuracy/absorb.h"
#include "accuracy/foreign.h"
#include "accuracy/local.h"
#include "base/alloc.h"
#include "formats/extremes.h"
#include "formats/format.h"
#include "ops/cost.h"
#include "truth/machine.h"

// What the engine did in one run of a node, kept until truth comes to the same run.
typedef struct record {
  struct record* next;
  uint64_t iteration;
  size_t n_in;
  assay_tensor_t** in;  // of all nodes of the layer; n_in 0: not kept
  size_t n_out;
  assay_tensor_t** engine;  // outputs as stored
  assay_tensor_t**
      local;  // truth of the node on the engine's inputs; the engine's own for control nodes
} record_t;

// True inputs of a layer of several nodes while truth runs through it.
typedef struct entering {
  size_t n;
  assay_tensor_t** in;
} entering_t;

typedef struct queue {
  record_t *first, **last;
} queue_t;

struct assay_account {
  const assay_layers_t* layers;
  const assay_backend_t* backend;
  void* engine;
  assay_account_options_t options;
  assay_machine_t* truth;
  assay_locals_t* locals;
  assay_machine_t* plain;  // truth that follows no flip; made when the first one is seen
  int64_t flipped;         // in this sample
  bool has_plain;          // `plain` has this sample's outputs
  assay_tap_t tap;
  queue_t* queues;                  // by node id
  entering_t* entering;             // by the id of a layer's last node
  assay_layer_account_t* accounts;  // by node id
  const assay_node_t** order;       // nodes as they first ended
  size_t n_order, cap_order;
  assay_error_sum_t* outputs;  // by graph output
  double* value_error;         // by value id: RMS of engine's minus truth's over RMS of truth's
  double* value_max;           // by value id: largest magnitude when truth last read it
  assay_stored_t* stored;      // by value id, where foreseen
};

// A layer is ill-conditioned where an error leaves so many times larger, relative to the values,
// than it came in; told only where it then stands out from the storage format's rounding.
static const double CONDITION_LIMIT = 100, STANDS_OUT = 16;

const char* assay_verdict_name(assay_verdict_t v) {
  static const char* const names[] = {"exact",     "rounding", "truth uncertain", "unclassified",
                                      "amplified", "flipped",  "underflow",       "overflow",
                                      "invalid",   "defect"};
  return names[v];
}

static bool holds_floats(const assay_tensor_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_F64;
}

// Of floats, as canonical ones or as packed.
static assay_extremes_t extremes_of(const assay_tensor_t* t) {
  bool packed = t && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_PACKED &&
                assay_type_is_float(t->type);
  if (!packed && !holds_floats(t)) return (assay_extremes_t){0};
  return assay_extremes(packed ? t->type : ASSAY_TYPE_DOUBLE, t->data, t->size);
}

static double largest(const assay_tensor_t* t) { return extremes_of(t).largest; }

static bool has_unfinite(const assay_tensor_t* t) {
  if (!holds_floats(t)) return false;
  int64_t n = 0;
  for (int64_t i = 0; i < t->size; i++) n += !isfinite(assay_f64(t)[i]);
  return n > 0;
}

static bool same_shape(const assay_tensor_t* a, const assay_tensor_t* b) {
  return a->kind == b->kind && a->kind == ASSAY_KIND_TENSOR && a->rank == b->rank &&
         !memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims);
}

// ---- records ------------------------------------------------------------------------------------

static void record_free(record_t* r) {
  for (size_t i = 0; i < r->n_out; i++) {
    assay_tensor_release(r->engine[i]);
    assay_tensor_release(r->local[i]);
  }
  for (size_t i = 0; i < r->n_in; i++) assay_tensor_release(r->in[i]);
  assay_free(r->in);
  assay_free(r->engine);
  assay_free(r->local);
  assay_free(r);
}

static assay_status_t record_create(size_t n_out, assay_tensor_t* const* engine, record_t** out) {
  record_t* r = NULL;
  ASSAY_TRY(ASSAY_NEW(&r));
  assay_status_t st = assay_new_array(n_out, sizeof *r->engine, &r->engine);
  if (!st) st = assay_new_array(n_out, sizeof *r->local, &r->local);
  if (st) return record_free(r), st;
  r->n_out = n_out;
  for (size_t i = 0; i < n_out; i++) r->engine[i] = assay_tensor_retain(engine[i]);
  *out = r;
  return NULL;
}

// What entered the layer in this run, to see which of it an ill-conditioned layer amplifies.
static assay_status_t record_inputs(record_t* r, uint64_t iteration, size_t n_in,
                                    assay_tensor_t* const* in) {
  ASSAY_TRY(assay_new_array(n_in, sizeof *r->in, &r->in));
  r->iteration = iteration;
  r->n_in = n_in;
  for (size_t i = 0; i < n_in; i++) r->in[i] = assay_tensor_retain(in[i]);
  return NULL;
}

static void push(queue_t* q, record_t* r) {
  if (!q->first) q->last = &q->first;
  *q->last = r;
  q->last = &r->next;
}

static record_t* pop(queue_t* q) {
  record_t* r = q->first;
  if (r) q->first = r->next;
  return r;
}

// ---- own error: in the engine's tap ------------------------------------------------------------

// Finite elements of a hidden value that the layer's format could not hold, with what rounding may
// add.
static void note_risk(void* user, const assay_layer_t* layer, const assay_value_t* v,
                      const assay_tensor_t* t, const assay_limits_t* limits) {
  assay_layer_account_t* acc = user;
  if (!holds_floats(t) || t->type != ASSAY_TYPE_FLOAT) return;
  double range = assay_format_info(layer->format)->max, max = 0;
  const double *x = assay_f64(t), *e = limits->guaranteed ? assay_f64(limits->guaranteed) : NULL;
  int64_t n = 0;
#pragma omp parallel for schedule(static) reduction(+ : n) reduction(max : max) if (t->size > 100000)
  for (int64_t i = 0; i < t->size; i++) {
    double m = fabs(x[i]) + (e && isfinite(e[i]) ? e[i] : 0);
    bool past = m > range && m <= 0x1.fffffffffffffp1023;
    n += past;
    if (past && m > max) max = m;
  }
  acc->at_risk += n;
  if (max <= acc->at_risk_max) return;
  acc->at_risk_max = max;
  acc->at_risk_value = v;
}

static bool is_control(const assay_node_t* node) {
  return node->op && node->op->flags & ASSAY_OP_CONTROL;
}

// Whether the accumulator is narrower than fp32: limits on sums then allow nearly anything.
static bool is_narrow(const assay_rounding_t* r) {
  return assay_bound_unit(r->accumulator) > assay_bound_unit(ASSAY_FORMAT_FP32);
}

// The RMS of error over probable limit from which on a run of n elements is worth asking about.
static double worth_asking(const assay_rounding_t* r, double n) {
  const double usual = fmin(1, 1.0 / 16 + 1 / sqrt(n));
  return is_narrow(r) ? usual / 8 : usual;
}

// Whether an error lies along truth, by more standard deviations than chance gives. Engines whose
// order of operations is not known may have functions of their own, which are off one way.
static bool lies_along(const assay_judgement_t* j) {
  enum { SIGMAS = 8 };
  return assay_judgement_slope_sigmas(j) > SIGMAS;
}

// Whether a run's error is larger than errors of independent sign use to be, or lies along truth:
// then reruns decide.
static bool is_suspect(const assay_judgement_t* j, const assay_rounding_t* r) {
  if (j->beyond) return false;  // no need to ask
  if (j->between) return true;
  const double u = assay_bound_unit(r->compute), n = (double)j->n_ratio;
  if (n == 0) return false;
  if (r->documented && lies_along(j) && fabs(assay_judgement_slope(j)) > 8 * u) return true;
  if (j->sum_error2 <= 16 * u * u * j->sum_truth2) return false;
  return assay_judgement_ratio(j) > worth_asking(r, n);
}

// Runs the layer again in several orders and with stochastic rounding. The engine's error is
// outlying if it is several times what these show: an error along truth (a wrong factor), its RMS,
// or the number of elements past the probable limit.
static assay_status_t ask_reruns(assay_account_t* a, assay_layer_account_t* acc,
                                 const assay_layer_t* layer, const assay_node_t* node, size_t n_in,
                                 assay_tensor_t* const* in, const assay_local_t* local,
                                 const assay_rounding_t* rounding,
                                 const assay_judgement_t* engine) {
  enum { RERUNS = 5 };
  double ratio = 0, slope = 0;
  int64_t between = 0;
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(local->n_out, sizeof *out, &out));
  assay_status_t st = NULL;
  for (int variant = 0; !st && variant < RERUNS; variant++) {
    assay_judgement_t j = {0};
    st = assay_locals_rerun(a->locals, layer, node, n_in, in, variant, local->n_out, out);
    if (!st) st = assay_local_judge(local, local->converted, out, layer, rounding, false, &j);
    ratio = fmax(ratio, assay_judgement_ratio(&j));
    slope = fmax(slope, fabs(assay_judgement_slope(&j)));
    if (j.between + j.beyond > between) between = j.between + j.beyond;
    for (size_t i = 0; i < local->n_out; i++) {
      assay_tensor_release(out[i]);
      out[i] = NULL;
    }
  }
  assay_free(out);
  if (st) return st;
  const double factor = rounding->documented ? 4 : 16;
  const double floor = worth_asking(rounding, (double)engine->n_ratio + 1);
  // Reruns round no operands of inner products: where the engine does, they show too little.
  const double operands = assay_bound_operands(rounding);
  const double u = fmax(assay_bound_unit(rounding->compute), operands);
  const double shown = operands > 0 ? 1 / factor : floor / factor;
  const double by = assay_judgement_ratio(engine) / fmax(ratio, shown);
  const bool often =
      (double)engine->between > factor * (double)between + 3 + 1e-4 * (double)engine->elements;
  const bool along =
      fabs(assay_judgement_slope(engine)) > factor * fmax(slope, 2 * u) &&
      (assay_judgement_ratio(engine) > floor || (rounding->documented && lies_along(engine)));
  acc->suspected++;
  if (by > factor || often || along) {
    acc->outlying++;
    acc->outlying_by = fmax(acc->outlying_by, by);
  }
  return NULL;
}

static double bytes_of(size_t n, assay_tensor_t* const* t) {
  double bytes = 0;
  for (size_t i = 0; i < n; i++)
    if (t[i] && t[i]->kind == ASSAY_KIND_TENSOR) bytes += 4 * (double)t[i]->size;
  return bytes;
}

// What a run costs: for layers of several nodes by their elements only.
static assay_status_t note_cost(const assay_layer_t* layer, const assay_node_t* node, size_t n_in,
                                assay_tensor_t* const* in, size_t n_out, assay_tensor_t* const* out,
                                assay_cost_t* cost) {
  const bool single = !layer || layer->n_nodes == 1;
  *cost = (assay_cost_t){0};
  if (single) ASSAY_TRY(assay_cost_of_tensors(node, n_in, in, n_out, out, cost));
  if (cost->bytes <= 0) cost->bytes = bytes_of(n_in, in) + bytes_of(n_out, out);
  return NULL;
}

// Whether a tensor has a size that inference says its value cannot have.
static bool contradicts(const assay_value_t* v, const assay_tensor_t* e) {
  if (!v || !v->type || v->type->kind != ASSAY_KIND_TENSOR || !v->type->has_shape) return false;
  if (v->type->rank != e->rank) return true;
  int64_t size;
  for (int k = 0; k < e->rank; k++)
    if (assay_dim_value(v->type->dims[k], &size) && size != e->dims[k]) return true;
  return false;
}

// Only where the layer counts what floats chose (boxes kept, say) may rounding change a shape:
// sizes that inference does not know.
static int64_t misshapen(const assay_node_t* node, size_t i, const assay_tensor_t* e,
                         const assay_tensor_t* l) {
  if (!e || !l || e->kind != ASSAY_KIND_TENSOR || l->kind != ASSAY_KIND_TENSOR) return 0;
  if (same_shape(e, l) || !node->op) return 0;
  if (node->op->discrete >> i & 1 && !contradicts(node->outputs[i], e)) return 0;
  return e->size ? e->size : 1;
}

// A licensed tactic's condition, on what came in.
static assay_status_t test_licence(assay_account_t* a, assay_layer_account_t* acc,
                                   const assay_layer_t* layer, const assay_node_t* node,
                                   size_t n_in, assay_tensor_t* const* in, const record_t* r,
                                   const assay_local_t* local, const assay_rounding_t* rounding) {
  const ptrdiff_t i = layer ? layer - a->layers->layers : -1;
  const bool known = a->backend->licence && i >= 0 && (size_t)i < a->layers->n_layers;
  const assay_licence_t* licence = known ? a->backend->licence(a->engine, (size_t)i) : NULL;
  if (!licence) return NULL;
  acc->licensed.here = true;
  acc->licensed.licence = *licence;
  return assay_licensed_measure(a->locals, layer, node, n_in, in, rounding, local, r->engine,
                                &acc->licensed);
}

// Sums for the report, and the judgement of one run.
static assay_status_t add_run(assay_account_t* a, assay_layer_account_t* acc,
                              const assay_layer_t* layer, const assay_node_t* node, size_t n_in,
                              assay_tensor_t* const* in, const record_t* r,
                              const assay_local_t* local, const assay_rounding_t* rounding) {
  if (!acc->runs++) ASSAY_TRY(note_cost(layer, node, n_in, in, r->n_out, r->engine, &acc->cost));
  assay_error_sum_t run = ASSAY_ERROR_SUM_INIT;
  for (size_t i = 0; i < r->n_out; i++) {
    const assay_tensor_t *e = r->engine[i], *l = r->local[i];
    acc->misshapen += misshapen(node, i, e, l);
    if (!holds_floats(e) || !holds_floats(l) || e->size != l->size) continue;
    acc->stores_float |= e->type == ASSAY_TYPE_FLOAT;
    const assay_format_t stored = assay_layer_storage(layer, e->type);
    if (!acc->storage || assay_format_info(stored)->max < assay_format_info(acc->storage)->max)
      acc->storage = stored;
    acc->local_max = fmax(acc->local_max, largest(l));
    assay_error_sum_add(&run, assay_f64(e), assay_f64(l), (size_t)e->size);
  }
  acc->own_worst_rms = fmax(acc->own_worst_rms, assay_error_sum_rms(&run));
  assay_error_sum_join(&acc->own, &run);
  if (!local->truth) return NULL;
  assay_foreign_run_t run_of = {layer, node, n_in, in, r->engine, local, rounding, false};
  for (size_t i = 0; i < n_in; i++) run_of.unfinite_in |= has_unfinite(in[i]);
  assay_judgement_t j = {0};
  bool final = false;
  ASSAY_TRY(assay_local_judge(local, local->converted, r->engine, layer, rounding,
                              run_of.unfinite_in, &j));
  if (a->backend->foreign) ASSAY_TRY(assay_foreign_judge(a->locals, &run_of, &j, &final));
  acc->bounded = local->bounded && (acc->runs == 1 || acc->bounded);
  assay_judgement_join(&acc->judged, &j);
  if (!run_of.unfinite_in)
    ASSAY_TRY(test_licence(a, acc, layer, node, n_in, in, r, local, rounding));
  const bool unlimited = a->backend->foreign || !local->bounded;
  if (unlimited && !run_of.unfinite_in && assay_foreign_is_vague(&run_of)) {
    bool asked;
    double by;
    ASSAY_TRY(assay_foreign_compare(a->locals, &run_of, &asked, &by));
    acc->suspected += asked;
    acc->outlying += by > 0;
    acc->outlying_by = fmax(acc->outlying_by, by);
    return NULL;
  }
  if (final || !local->bounded || run_of.unfinite_in || !is_suspect(&j, rounding)) return NULL;
  return ask_reruns(a, acc, layer, node, n_in, in, local, rounding, &j);
}

static assay_status_t note_first(assay_account_t* a, assay_layer_account_t* acc,
                                 const assay_layer_t* layer, const assay_node_t* node) {
  if (acc->node) return NULL;
  ASSAY_TRY(assay_grow(&a->order, &a->cap_order, a->n_order + 1, sizeof *a->order));
  a->order[a->n_order++] = node;
  acc->node = node;
  acc->layer = layer;
  acc->own = acc->inherited = acc->total = ASSAY_ERROR_SUM_INIT;
  return NULL;
}

static assay_status_t on_layer(void* user, const assay_layer_t* layer, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  assay_account_t* a = user;
  assay_layer_account_t* acc = &a->accounts[node->id];
  assay_rounding_t rounding = {0};
  assay_local_t local = {0};
  const assay_tap_t* tap = &a->options.tap;
  record_t* r = NULL;
  ASSAY_TRY(note_first(a, acc, layer, node));
  if (tap->layer)
    ASSAY_TRY(tap->layer(tap->user, layer, node, iteration, n_in, in, n_out, out));
  assay_locals_set_iteration(a->locals, iteration);
  ASSAY_TRY(record_create(n_out, out, &r));
  a->backend->rounding(a->engine, layer, n_in, in, &rounding);
  assay_status_t st = NULL;
  // What a body does is judged node by node, run by run, where there are taps in it.
  const bool taken = layer && layer->drawn ? true : is_control(node) && !a->backend->foreign;
  if (!taken) {
    const assay_hidden_tap_t hidden = {.value = note_risk, .user = acc};
    st = assay_locals_run(a->locals, layer, node, n_in, in, &rounding, &hidden, &local);
    if (!st) st = record_inputs(r, iteration, n_in, in);
  }
  for (size_t i = 0; !st && i < n_out; i++)
    r->local[i] = assay_tensor_retain(taken ? r->engine[i] : local.truth[i]);
  if (!st && a->backend->foreign) st = assay_foreign_check(node, n_out, r->engine, r->local);
  if (!st) st = add_run(a, acc, layer, node, n_in, in, r, &local, &rounding);
  acc->planted.here = assay_planted_is_in(a->layers, layer, node);
  if (!st && acc->planted.here && !is_control(node))
    st = assay_planted_measure(a->locals, layer, node, n_in, in, &local, rounding.compute, out,
                               &acc->planted);
  assay_local_deinit(&local);
  if (st || a->options.own_only) return record_free(r), st;
  push(&a->queues[node->id], r);
  return NULL;
}

// ---- inherited error and flips: in truth's hook ------------------------------------------------

// Whether two sequences or optionals hold as many items, of the same shapes.
static bool same_structure(const assay_tensor_t* a, const assay_tensor_t* b) {
  if (a->kind != b->kind || a->n_items != b->n_items) return false;
  if (a->kind == ASSAY_KIND_TENSOR) return same_shape(a, b);
  for (int64_t i = 0; i < a->n_items; i++)
    if (!same_structure(a->items[i], b->items[i])) return false;
  return true;
}

static void replace(assay_tensor_t** slot, assay_tensor_t* by) {
  assay_tensor_retain(by);
  assay_tensor_release(*slot);
  *slot = by;
}

// How many elements of two outputs of one shape differ; those of strings and containers are not
// looked into.
static int64_t differing(const assay_tensor_t* a, const assay_tensor_t* b) {
  int64_t n = 0;
  if (a->store == ASSAY_STORE_I64)
    for (int64_t i = 0; i < a->size; i++) n += assay_i64(a)[i] != assay_i64(b)[i];
  if (a->store == ASSAY_STORE_F64)
    for (int64_t i = 0; i < a->size; i++) {
      double x = assay_f64(a)[i], y = assay_f64(b)[i];
      n += x != y && !(x != x && y != y);
    }
  return n;
}

// Discrete floats (Floor, Round, ...): truth takes over the elements that came out differently.
static assay_status_t adopt_elements(assay_tensor_t** truth, const assay_tensor_t* local,
                                     const assay_tensor_t* engine) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_copy(*truth, &t));
  for (int64_t i = 0; i < t->size; i++)
    if (assay_f64(local)[i] != assay_f64(t)[i]) assay_f64(t)[i] = assay_f64(engine)[i];
  assay_tensor_release(*truth);
  *truth = t;
  return NULL;
}

// Whether a float output is a discrete choice. An operator whose output type the model names (Cast)
// rounds like any store to a float of 16 bits or more; to fewer bits it quantizes.
static bool is_discrete(const assay_node_t* node, size_t i, const assay_tensor_t* t) {
  if (!node->op || !(node->op->discrete >> i & 1)) return false;
  return !(node->op->flags & ASSAY_OP_KEEPS_TYPE) || assay_type_bits(t->type) < 16;
}

static double relative(const assay_error_sum_t* e) {
  return e->sum_ref2 > 0 && !e->mismatched ? sqrt(e->sum_err2 / e->sum_ref2) : 0;
}

// How the layer's condition shows in one output: what came in over what it became.
static void note_condition(assay_account_t* a, assay_layer_account_t* acc, const assay_value_t* v,
                           const assay_error_sum_t* inherited, const assay_tensor_t* engine,
                           const assay_tensor_t* truth) {
  assay_error_sum_t total = ASSAY_ERROR_SUM_INIT;
  if (same_shape(engine, truth))
    assay_error_sum_add(&total, assay_f64(engine), assay_f64(truth), (size_t)truth->size);
  assay_error_sum_join(&acc->total, &total);
  a->value_error[v->id] = relative(&total);
  const double left = relative(inherited);
  const double u = assay_bound_unit(assay_layer_storage(acc->layer, truth->type));
  if (acc->perturbation <= 0 || left <= STANDS_OUT * u) return;
  acc->condition = fmax(acc->condition, left / acc->perturbation);
}

static void note_perturbation(assay_account_t* a, assay_layer_account_t* acc,
                              const assay_value_t* v) {
  acc->perturbation = fmax(acc->perturbation, a->value_error[v->id]);
}

// True inputs of a layer of several nodes, as they come by: the machine forgets them behind their
// last reader.
static assay_status_t keep_entering(assay_account_t* a, const assay_layer_t* layer,
                                    const assay_node_t* node, size_t n_in,
                                    assay_tensor_t* const* in) {
  size_t n = 0, first = SIZE_MAX;
  for (size_t k = 0; k < layer->n_nodes; k++) {
    if (layer->nodes[k] == node) first = n;
    n += layer->nodes[k]->n_inputs;
  }
  if (first == SIZE_MAX) return NULL;
  entering_t* e = &a->entering[layer->nodes[layer->n_nodes - 1]->id];
  if (!e->in) ASSAY_TRY(assay_new_array(n, sizeof *e->in, &e->in));
  e->n = n;
  for (size_t i = 0; i < n_in; i++) {
    const assay_value_t* v = node->inputs[i];
    if (!v || a->layers->hidden_value[v->id]) continue;
    assay_tensor_release(e->in[first + i]);
    e->in[first + i] = assay_tensor_retain(in[i]);
  }
  return NULL;
}

static void entering_deinit(entering_t* e) {
  for (size_t i = 0; i < e->n; i++) assay_tensor_release(e->in[i]);
  assay_free(e->in);
  *e = (entering_t){0};
}

// Inputs that truth did not come by (of a node that an engine's dump computes twice) cannot be
// told.
static bool all_entered(const record_t* r, size_t n, assay_tensor_t* const* truth) {
  for (size_t i = 0; i < n; i++)
    if (r->in[i] && !truth[i]) return false;
  return true;
}

// Whether the layer minds true inputs past its format's range. `out` is truth of it.
static assay_status_t note_range(assay_account_t* a, assay_layer_account_t* acc, uint64_t iteration,
                                 size_t n_in, assay_tensor_t* const* in, size_t n_out,
                                 assay_tensor_t* const* out) {
  if (!acc->layer || acc->layer->format == ASSAY_FORMAT_FP32) return NULL;
  const double range = assay_format_info(acc->layer->format)->max;
  bool absorbs = false;
  if (!(acc->truth_max_in > range)) return NULL;
  if (acc->absorbed < acc->past_range) return acc->past_range++, NULL;
  assay_locals_set_iteration(a->locals, iteration);
  ASSAY_TRY(assay_absorbs(a->locals, acc->layer, acc->node, n_in, in, n_out, out, &absorbs));
  acc->past_range++;
  acc->absorbed += absorbs;
  return NULL;
}

// Which input's error an ill-conditioned layer makes so large; asked for in its worst run.
static assay_status_t perturb(assay_account_t* a, assay_layer_account_t* acc, const record_t* r,
                              size_t n_in, assay_tensor_t* const* in) {
  if (acc->condition <= CONDITION_LIMIT || acc->condition <= acc->perturbed_at) return NULL;
  if (!r->n_in || r->n_in != n_in || !all_entered(r, n_in, in)) return NULL;
  acc->perturbed_at = acc->condition;
  assay_locals_set_iteration(a->locals, r->iteration);
  return assay_perturb(a->locals, acc->layer, acc->node, n_in, r->in, in, &acc->perturbations);
}

// What came into a layer by a node of it. Nodes that several layers compute were run by truth once.
static void note_inputs(assay_account_t* a, assay_layer_account_t* acc, const assay_node_t* node) {
  for (size_t i = 0; i < node->n_inputs; i++) {
    const assay_value_t* v = node->inputs[i];
    if (!v || a->layers->hidden_value[v->id]) continue;
    note_perturbation(a, acc, v);
    acc->truth_max_in = fmax(acc->truth_max_in, a->value_max[v->id]);
  }
}

static assay_status_t follow(assay_account_t* a, assay_layer_account_t* acc,
                             const assay_node_t* node, size_t i, const record_t* r,
                             assay_tensor_t** truth) {
  assay_tensor_t *e = r->engine[i], *l = r->local[i], *t = *truth;
  if (!e || !l || !t) return NULL;
  if (acc->layer && acc->layer->drawn) return replace(truth, e), NULL;
  // Truth without quantization has real numbers where the engine has integers: no choice of the
  // engine's.
  if (t->kind == ASSAY_KIND_TENSOR && e->kind == t->kind && t->store != e->store &&
      same_shape(t, e))
    return NULL;
  bool floats = holds_floats(t) && holds_floats(e);
  // Truth keeps its own items; what differs in them shows in the layers that read them.
  if (t->kind != ASSAY_KIND_TENSOR && same_structure(t, e)) return NULL;
  if (!same_shape(t, e)) {
    // An empty or longer result: the choice was made by what came in. Truth goes on from here.
    acc->flipped += e->kind == ASSAY_KIND_TENSOR ? e->size : 1;
    replace(truth, e);
    return NULL;
  }
  if (!floats) {
    int64_t n = differing(t, e);
    acc->flipped += n;
    if (n && same_shape(l, e) && !differing(l, e)) replace(truth, e);
    return NULL;
  }
  if (same_shape(l, t)) {
    if (is_discrete(node, i, t)) {
      int64_t n = differing(l, t);
      acc->flipped += n;
      if (n) ASSAY_TRY(adopt_elements(truth, l, e));
      t = *truth;
    }
    assay_error_sum_t inherited = ASSAY_ERROR_SUM_INIT;
    assay_error_sum_add(&inherited, assay_f64(l), assay_f64(t), (size_t)t->size);
    assay_error_sum_join(&acc->inherited, &inherited);
    note_condition(a, acc, node->outputs[i], &inherited, e, t);
    if (a->options.watch.value && same_shape(e, t))
      a->options.watch.value(a->options.watch.user, acc, node->outputs[i], e, l, t);
  }
  acc->truth_max = fmax(acc->truth_max, largest(t));
  return NULL;
}

// ---- what truth tells by itself -----------------------------------------------------------------

static assay_status_t foresee_value(assay_account_t* a, const assay_layer_t* layer,
                                    const assay_value_t* v, assay_tensor_t* t) {
  if (!a->layers->hidden_value[v->id]) a->value_max[v->id] = largest(t);
  return layer ? assay_stored_of(t, layer->format, &a->stored[v->id]) : NULL;
}

static void foresee_output(assay_account_t* a, assay_layer_account_t* acc, const assay_value_t* v,
                           const assay_tensor_t* t) {
  if (!v || !holds_floats(t)) return;
  acc->stores_float |= t->type == ASSAY_TYPE_FLOAT;
  acc->truth_max = fmax(acc->truth_max, a->value_max[v->id]);
  const assay_format_t stored = assay_layer_storage(acc->layer, t->type);
  if (!acc->storage || assay_format_info(stored)->max < assay_format_info(acc->storage)->max)
    acc->storage = stored;
}

static assay_status_t foresee(void* user, const assay_node_t* node, size_t n_in,
                              assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_account_t* a = user;
  const int l = a->layers->layer_of_node[node->id];
  const assay_layer_t* layer = l < 0 ? NULL : &a->layers->layers[l];
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  assay_layer_account_t* acc = &a->accounts[last->id];
  // What a node makes is looked at as it is made, the rest as it is read.
  for (size_t i = 0; i < n_in; i++)
    if (in[i] && in[i]->kind == ASSAY_KIND_TENSOR && node->inputs[i] && !node->inputs[i]->producer)
      ASSAY_TRY(foresee_value(a, layer, node->inputs[i], in[i]));
  for (size_t i = 0; i < n_out; i++)
    if (node->outputs[i]) ASSAY_TRY(foresee_value(a, layer, node->outputs[i], out[i]));
  if (layer && layer->n_nodes > 1) ASSAY_TRY(keep_entering(a, layer, node, n_in, in));
  if (node != last) return NULL;
  ASSAY_TRY(note_first(a, acc, layer, node));
  if (!acc->runs++) ASSAY_TRY(note_cost(layer, node, n_in, in, n_out, out, &acc->cost));
  for (size_t k = 0; layer && k < layer->n_nodes; k++) note_inputs(a, acc, layer->nodes[k]);
  if (!layer) note_inputs(a, acc, node);
  for (size_t i = 0; i < n_out; i++) foresee_output(a, acc, node->outputs[i], out[i]);
  entering_t* e = &a->entering[last->id];
  assay_status_t st = NULL;
  if (!is_control(node))
    st = note_range(a, acc, assay_machine_iteration(a->truth), e->n ? e->n : n_in,
                    e->n ? e->in : in, n_out, out);
  entering_deinit(e);
  return st;
}

// ---- behind the engine --------------------------------------------------------------------------

static assay_status_t after_truth(void* user, const assay_node_t* node, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  assay_account_t* a = user;
  int l = a->layers->layer_of_node[node->id];
  const assay_layer_t* layer = l < 0 ? NULL : &a->layers->layers[l];
  const assay_node_t* last = layer ? layer->nodes[layer->n_nodes - 1] : node;
  assay_layer_account_t* acc = &a->accounts[last->id];
  if (!a->queues[last->id].first)
    return NULL;  // a body that the engine did not enter is not judged
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i] || in[i]->kind != ASSAY_KIND_TENSOR || !node->inputs[i]) continue;
    if (a->layers->hidden_value[node->inputs[i]->id]) continue;
    note_perturbation(a, acc, node->inputs[i]);
    a->value_max[node->inputs[i]->id] = largest(in[i]);
  }
  if (layer && layer->n_nodes > 1) ASSAY_TRY(keep_entering(a, layer, node, n_in, in));
  if (node != last) return NULL;
  if (layer)
    for (size_t k = 0; k < layer->n_nodes; k++) note_inputs(a, acc, layer->nodes[k]);
  else
    note_inputs(a, acc, node);
  record_t* r = pop(&a->queues[last->id]);
  assay_status_t st = NULL;
  int64_t before = acc->flipped;
  for (size_t i = 0; !st && i < n_out; i++)
    if (node->outputs[i]) st = follow(a, acc, node, i, r, &out[i]);
  a->flipped += acc->flipped - before;
  entering_t* e = &a->entering[last->id];
  assay_tensor_t* const* entered = e->n ? e->in : in;
  const size_t n_entered = e->n ? e->n : n_in;
  if (!st) st = perturb(a, acc, r, n_entered, entered);
  if (!st && r->n_in && r->n_in == n_entered && all_entered(r, n_entered, entered))
    st = note_range(a, acc, r->iteration, n_entered, entered, n_out, out);
  entering_deinit(e);
  record_free(r);
  return st;
}

// ---- running ------------------------------------------------------------------------------------

assay_status_t assay_account_create(const assay_plan_t* plan, const assay_backend_t* backend,
                                    const assay_account_options_t* options, assay_account_t** out) {
  assay_account_t* a = NULL;
  ASSAY_TRY(ASSAY_NEW(&a));
  a->layers = assay_plan_layers(plan);
  a->backend = backend;
  a->options = *options;
  const assay_model_t* m = a->layers->model;
  a->tap = (assay_tap_t){.layer = on_layer, .user = a};
  assay_machine_config_t truth = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = options->unquantized, .seed = a->layers->seed};
  if (!options->outputs_only)
    truth.hooks =
        (assay_machine_hooks_t){.after = options->foresee ? foresee : after_truth, .user = a};
  assay_status_t st = assay_machine_create(m, &truth, &a->truth);
  if (!st) st = assay_locals_create(a->layers, options->unquantized, &a->locals);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->queues, &a->queues);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->entering, &a->entering);
  if (!st) st = assay_new_array((size_t)m->n_node_ids, sizeof *a->accounts, &a->accounts);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *a->value_error, &a->value_error);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *a->value_max, &a->value_max);
  if (!st) st = assay_new_array((size_t)m->n_values, sizeof *a->stored, &a->stored);
  if (!st) st = assay_new_array(m->graph->n_outputs, sizeof *a->outputs, &a->outputs);
  for (size_t i = 0; !st && i < m->graph->n_outputs; i++) a->outputs[i] = ASSAY_ERROR_SUM_INIT;
  if (!st && !options->foresee)
    st = backend->open(a->layers, NULL, options->outputs_only ? NULL : &a->tap, &a->engine);
  if (!st && backend->foreign && a->engine) {
    const assay_outer_t outer = {.get = backend->get, .user = a->engine};
    assay_locals_set_outer(a->locals, &outer);
  }
  if (st) return assay_account_destroy(a), st;
  *out = a;
  return NULL;
}

static void empty_queues(assay_account_t* a) {
  if (!a->queues) return;
  for (int i = 0; i < a->layers->model->n_node_ids; i++)
    for (record_t* r; (r = pop(&a->queues[i]));) record_free(r);
  for (int i = 0; a->entering && i < a->layers->model->n_node_ids; i++)
    entering_deinit(&a->entering[i]);
}

void assay_account_destroy(assay_account_t* a) {
  if (!a) return;
  empty_queues(a);
  if (a->engine) a->backend->close(a->engine);
  assay_machine_destroy(a->truth);
  assay_locals_destroy(a->locals);
  assay_machine_destroy(a->plain);
  assay_free(a->queues);
  assay_free(a->entering);
  assay_free(a->accounts);
  assay_free(a->order);
  assay_free(a->outputs);
  assay_free(a->value_error);
  assay_free(a->value_max);
  assay_free(a->stored);
  assay_free(a);
}

static assay_status_t set_inputs(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = a->layers->model->graph;
  assay_machine_reset(a->truth);
  if (a->engine) a->backend->reset(a->engine);
  empty_queues(a);
  for (size_t i = 0; i < g->n_inputs; i++) {
    if (!inputs[i]) continue;
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_tensor_widen(inputs[i], &wide));
    assay_machine_set(a->truth, g->inputs[i], wide);
    assay_status_t st = a->engine ? a->backend->set(a->engine, g->inputs[i], wide) : NULL;
    assay_tensor_release(wide);
    if (st) return st;
  }
  return assay_machine_check_inputs(a->truth);
}

static void judge(assay_layer_account_t* acc) {
  const assay_judgement_t* j = &acc->judged;
  acc->verdict = j->beyond || acc->outlying || acc->misshapen ? ASSAY_VERDICT_DEFECT
                 : j->born_nan                                ? ASSAY_VERDICT_INVALID
                 : j->overflowed                              ? ASSAY_VERDICT_OVERFLOW
                 : j->underflowed                             ? ASSAY_VERDICT_UNDERFLOW
                 : acc->flipped || j->flipped                 ? ASSAY_VERDICT_FLIPPED
                 : acc->condition > CONDITION_LIMIT           ? ASSAY_VERDICT_AMPLIFIED
                 : j->exact + j->not_judged == j->elements    ? ASSAY_VERDICT_EXACT
                 : j->unbounded                               ? ASSAY_VERDICT_UNCLASSIFIED
                 : j->uncertain                               ? ASSAY_VERDICT_UNCERTAIN
                                                              : ASSAY_VERDICT_ROUNDING;
}

// Runs truth by itself, following nothing.
static assay_status_t run_plain(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_graph_t* g = a->layers->model->graph;
  assay_machine_config_t config = {
      .mode = ASSAY_MODE_TRUTH, .unquantized = a->options.unquantized, .seed = a->layers->seed};
  if (!a->plain) ASSAY_TRY(assay_machine_create(a->layers->model, &config, &a->plain));
  assay_machine_reset(a->plain);
  for (size_t i = 0; i < g->n_inputs; i++)
    if (inputs[i]) assay_machine_set(a->plain, g->inputs[i], inputs[i]);
  ASSAY_TRY(assay_machine_run(a->plain));
  a->has_plain = true;
  return NULL;
}

// Truth of the nodes up to the one that a layer ends in.
static assay_status_t catch_up(assay_account_t* a, const assay_layer_t* layer, size_t* next) {
  const assay_graph_t* g = a->layers->model->graph;
  const assay_node_t* last = layer->nodes[layer->n_nodes - 1];
  for (const assay_node_t* node = NULL; node != last && *next < g->n_nodes;) {
    node = g->nodes[(*next)++];
    ASSAY_TRY(assay_machine_step(a->truth, node));
  }
  return NULL;
}

assay_status_t assay_account_run(assay_account_t* a, assay_tensor_t* const* inputs) {
  const assay_layers_t* l = a->layers;
  const assay_graph_t* g = l->model->graph;
  ASSAY_TRY(set_inputs(a, inputs));
  a->flipped = 0;
  a->has_plain = false;
  bool drawn = false;
  for (size_t i = 0, next = 0; i < l->n_layers; i++) {
    if (a->engine) ASSAY_TRY(a->backend->step(a->engine, i));
    if (!a->options.own_only) ASSAY_TRY(catch_up(a, &l->layers[i], &next));
    drawn |= l->layers[i].drawn;
    if (a->options.progress)
      a->options.progress(a->options.user, (double)(i + 1) / (double)l->n_layers);
  }
  // Outputs are judged by truth itself, not by truth that went on with the engine's choices.
  if (a->flipped && !drawn) ASSAY_TRY(run_plain(a, inputs));
  for (size_t i = 0; a->engine && i < g->n_outputs; i++) {
    const assay_tensor_t* e = assay_account_engine_output(a, i);
    const assay_tensor_t* t = assay_account_truth_output(a, i);
    if (holds_floats(e) && holds_floats(t) && same_shape(e, t))
      assay_error_sum_add(&a->outputs[i], assay_f64(e), assay_f64(t), (size_t)e->size);
  }
  for (size_t i = 0; a->engine && i < a->n_order; i++) judge(&a->accounts[a->order[i]->id]);
  return NULL;
}

assay_tensor_t* assay_account_engine_output(const assay_account_t* a, size_t i) {
  return a->engine ? a->backend->get(a->engine, a->layers->model->graph->outputs[i]) : NULL;
}

assay_tensor_t* assay_account_truth_output(const assay_account_t* a, size_t i) {
  return assay_machine_get(a->has_plain ? a->plain : a->truth, a->layers->model->graph->outputs[i]);
}

size_t assay_account_layer_count(const assay_account_t* a) { return a->n_order; }
const assay_layer_account_t* assay_account_layer(const assay_account_t* a, size_t i) {
  return &a->accounts[a->order[i]->id];
}
const assay_layer_account_t* assay_account_of_node(const assay_account_t* a,
                                                   const assay_node_t* node) {
  const assay_layer_account_t* acc = &a->accounts[node->id];
  return acc->node ? acc : NULL;
}
assay_stored_t assay_account_stored(const assay_account_t* a, const assay_value_t* value) {
  return a->stored[value->id];
}
const assay_error_sum_t* assay_account_output(const assay_account_t* a, size_t i) {
  return &a->outputs[i];
}
