// Is the export to blame? Truth of a model against golden tensors of the network that it was made
// from.
#include "diagnose/export.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "diagnose/near_ties.h"
#include "diagnose/outputs/others.h"
#include "diagnose/search.h"
#include "diagnose/solve/solve.h"
#include "eval/evaluator.h"
#include "formats/format.h"
#include "ops/math/pointwise.h"

// Truth and a run with everything rounded move through the model side by side.
typedef struct walk {
  const assay_model_t* model;
  const assay_export_options_t* options;
  assay_golden_t golden;  // as it was given, and as it is held against the model's values
  assay_golden_tensor_t** golden_of;  // by value id
  assay_evaluator_t *truth, *noisy;
  assay_tensor_t** noisy_out;     // by value id: of the noisy run, until truth has been there
  assay_tensor_t** missed;        // by value id: truth where golden took its place
  assay_difference_t* explained;  // by value id: of the noisy run from truth
  assay_export_t* out;
  bool* faulty;  // by node id; NULL: only outputs are known
  bool walking;
} walk_t;

// A difference is a fault from so many times what rounding explains on.
static const double FACTOR = 8;

// ---- what rounding explains --------------------------------------------------------------------

// Whether a number has so few significant bits, less than half of what its type holds, that nobody
// rounded it: 2, 0.5, -1e3. Such constants mean what they say (an exponent of 2 must stay 2: other
// powers of negative numbers are NaN).
static bool is_exact(double x, assay_format_t format) {
  const int held = assay_format_info(format)->precision - 1, few = held < 23 ? held / 2 - 1 : 11;
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return (bits & (UINT64_MAX >> (64 - 52 + few))) == 0;
}

// Moves each element that may have been rounded by one unit roundoff of its type, up or down by
// chance: what an exporter that rounds a constant may have done to it.
static assay_status_t move_constant(assay_tensor_t** t) {
  const assay_type_t type = (*t)->type;
  if ((*t)->kind != ASSAY_KIND_TENSOR || !assay_type_is_float(type) || assay_type_bits(type) < 16)
    return NULL;
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(type, wide->rank, wide->dims, &moved);
  const assay_format_t format = assay_type_format(type);
  const double u = assay_format_info(format)->unit_roundoff;
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const uint64_t hash = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15U;
    const double x = assay_f64(wide)[i];
    assay_f64(moved)[i] = is_exact(x, format) ? x : x * (1 + (hash >> 40 & 1 ? u : -u));
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// Quantized constants are rounded to steps, and golden is of the network before: each is moved by
// up to half a step. Truth 'unquantized' knows them as real numbers (ops/quant/quant.h).
static assay_status_t move_steps(assay_tensor_t** t) {
  assay_tensor_t *wide = NULL, *moved = NULL;
  ASSAY_TRY(assay_tensor_widen(*t, &wide));
  assay_status_t st = assay_tensor_create(ASSAY_TYPE_FLOAT, wide->rank, wide->dims, &moved);
  for (int64_t i = 0; !st && i < wide->size; i++) {
    const uint64_t hash = ((uint64_t)i + 1) * 0x9e3779b97f4a7c15U;
    assay_f64(moved)[i] =
        assay_i64_to_f64(wide->type, assay_i64(wide)[i]) + (double)(hash >> 11) * 0x1p-53 - 0.5;
  }
  assay_tensor_release(wide);
  if (st) return st;
  assay_tensor_release(*t);
  *t = moved;
  return NULL;
}

// Whether a constant input holds quantized numbers: what is dequantized, or weights. Zero points
// have less dimensions than those.
static bool is_quantized(const assay_node_t* n, size_t i, const assay_tensor_t* t) {
  if (!n->op || !(n->op->flags & ASSAY_OP_QUANTIZES) || t->kind != ASSAY_KIND_TENSOR ||
      !assay_type_is_integer(t->type))
    return false;
  return strcmp(n->op_type, "DequantizeLinear") == 0 ? i == 0 : t->rank >= 2;
}

static assay_status_t before_noisy(void* user, const assay_node_t* n, size_t n_in,
                                   assay_tensor_t** in) {
  const walk_t* w = user;
  for (size_t i = 0; i < n_in; i++) {
    if (!in[i] || !n->inputs[i] || !n->inputs[i]->constant) continue;
    const bool steps = w->options->unquantized && is_quantized(n, i, in[i]);
    ASSAY_TRY(steps ? move_steps(&in[i]) : move_constant(&in[i]));
  }
  return NULL;
}

// What the noisy run stores a value in. A float16 value keeps its digits and loses its range (tf32
// has as many): truth and golden know no overflow, and NaN would explain nothing.
static assay_format_t noisy_storage(const assay_tensor_t* t) {
  const assay_format_t format = assay_type_format(t->type);
  return format == ASSAY_FORMAT_FP16 ? ASSAY_FORMAT_TF32 : format;
}

static assay_status_t after_noisy(void* user, const assay_node_t* n, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  walk_t* w = user;
  if (!w->options->unquantized && n_out && n_in && n->graph == w->model->graph)
    ASSAY_TRY(assay_near_ties_turn(w->truth, n, in[0], &out[0]));
  if (!*n->domain && strcmp(n->op_type, "Constant") == 0 && out[0])
    ASSAY_TRY(move_constant(&out[0]));
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (!v || !out[i]) continue;
    assay_tensor_t* rounded = NULL;
    ASSAY_TRY(assay_round_tensor(out[i], noisy_storage(out[i]), &rounded));
    assay_tensor_release(out[i]);
    out[i] = rounded;
    if (!w->golden_of[v->id]) continue;
    assay_tensor_release(w->noisy_out[v->id]);
    w->noisy_out[v->id] = assay_tensor_retain(rounded);
  }
  return NULL;
}

// ---- comparing ---------------------------------------------------------------------------------

// Unit roundoff of what golden was stored in.
static double golden_roundoff(const assay_tensor_t* g) {
  return assay_type_is_float(g->type) ? assay_format_info(assay_type_format(g->type))->unit_roundoff
                                      : 0;
}

static double allowed(double explained, const assay_tensor_t* golden, double size) {
  return FACTOR * (explained + golden_roundoff(golden) * size) + 1e-300;
}

static bool is_fault(const assay_difference_t* d, const assay_difference_t* explained,
                     const assay_tensor_t* golden) {
  if (!d->comparable) return true;
  // Integers that rounding flips in the noisy run are no fault.
  if (d->mismatched > 2 * explained->mismatched) return true;
  return d->rms > allowed(explained->rms, golden, d->ref_rms) ||
         d->max > allowed(explained->max, golden, d->ref_max);
}

// Golden as the graph would hold it; NULL if it cannot stand in for truth.
static assay_status_t stand_in(const assay_tensor_t* truth, assay_tensor_t* golden,
                               assay_tensor_t** out) {
  *out = NULL;
  if (truth->kind != ASSAY_KIND_TENSOR || truth->store != golden->store) return NULL;
  return assay_tensor_retype(golden, truth->type, out);
}

static double unit_of(const assay_tensor_t* t) {
  return t->kind == ASSAY_KIND_TENSOR && assay_type_is_float(t->type)
             ? assay_format_info(assay_type_format(t->type))->unit_roundoff
             : 0;
}

// One number has no shape: exporters write it as a scalar, or as a vector of one.
static assay_status_t as_shaped(const assay_tensor_t* truth, assay_golden_tensor_t* golden) {
  assay_tensor_t *g = golden->tensor, *view = NULL;
  if (truth->kind != ASSAY_KIND_TENSOR || g->kind != ASSAY_KIND_TENSOR || truth->size != 1 ||
      g->size != 1 || truth->rank == g->rank)
    return NULL;
  ASSAY_TRY(assay_tensor_view(g, truth->rank, truth->dims, &view));
  assay_tensor_release(g);
  golden->tensor = view;
  return NULL;
}

// Golden with truth's element where golden lies past the type's end and truth near it: what became
// of -3.4e38 in float16, also with a score added to it. *out NULL: there is no such element.
static assay_status_t as_clipped(const assay_tensor_t* truth, const assay_tensor_t* golden,
                                 assay_tensor_t** out) {
  *out = NULL;
  if (!assay_tensor_alike(truth, golden) || truth->store != ASSAY_STORE_F64 ||
      !assay_type_is_float(truth->type) || assay_type_bits(truth->type) > 16)
    return NULL;
  static const double NEAR = 0.9;  // scores that are added to a mask are small beside it
  const double max = assay_format_info(assay_type_format(truth->type))->max;
  for (int64_t i = 0; i < truth->size; i++) {
    const double x = assay_f64(truth)[i], g = assay_f64(golden)[i];
    if (!(fabs(g) > max) || !(fabs(x) > NEAR * max) || (x > 0) != (g > 0)) continue;
    if (!*out) ASSAY_TRY(assay_tensor_copy(golden, out));
    assay_f64(*out)[i] = x;
  }
  return NULL;
}

// Whether a Constant node has what golden becomes in its type: 1e-12 is 0 in float16.
static bool is_rounded_constant(const assay_node_t* n, const assay_tensor_t* truth,
                                const assay_tensor_t* golden) {
  if (*n->domain || strcmp(n->op_type, "Constant") != 0 || !assay_tensor_alike(truth, golden) ||
      truth->store != ASSAY_STORE_F64 || !assay_type_is_float(truth->type))
    return false;
  const assay_format_t format = assay_type_format(truth->type);
  const assay_format_info_t* info = assay_format_info(format);
  for (int64_t i = 0; i < truth->size; i++) {
    const double x = assay_f64(truth)[i], g = assay_f64(golden)[i];
    const double y = assay_format_round(format, g, ASSAY_OVERFLOW_SATURATE);
    if (!(fabs(x - y) <= 2 * info->unit_roundoff * fabs(y) + info->min_subnormal)) return false;
  }
  return true;
}

static assay_status_t compare(walk_t* w, const assay_node_t* n, const assay_value_t* v,
                              assay_tensor_t** out) {
  assay_golden_tensor_t* g = w->golden_of[v->id];
  ASSAY_TRY(as_shaped(*out, g));
  assay_tensor_t* clipped = NULL;
  ASSAY_TRY(as_clipped(*out, g->tensor, &clipped));
  if (clipped) {
    assay_tensor_release(g->tensor);
    g->tensor = clipped;
  }
  if (is_rounded_constant(n, *out, g->tensor)) return w->out->values_compared++, NULL;
  const assay_difference_t d = assay_difference(*out, g->tensor);
  assay_difference_t explained = {0};
  if (w->noisy_out[v->id]) explained = assay_difference(w->noisy_out[v->id], *out);
  // Where the noisy run says nothing, one rounding of the value itself and its usual growth.
  if (!w->noisy_out[v->id] || explained.mismatched > d.mismatched) {
    explained.rms = fmax(explained.rms, 2 * unit_of(*out) * d.ref_rms);
    explained.max = fmax(explained.max, 2 * unit_of(*out) * d.ref_max);
  }
  w->explained[v->id] = explained;
  w->out->values_compared++;
  if (is_fault(&d, &explained, g->tensor)) {
    assay_export_t* e = w->out;
    ASSAY_TRY(assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults));
    e->faults[e->n++] = (assay_fault_t){
        .value = v, .node = n, .difference = d, .explained = explained.rms, .shape = !d.comparable};
  }
  assay_tensor_t* by = NULL;
  ASSAY_TRY(stand_in(*out, g->tensor, &by));
  w->missed[v->id] = *out;  // taken over, or retained below
  if (!by) {
    assay_tensor_retain(*out);
    return NULL;
  }
  *out = by;
  assay_evaluator_set(w->noisy, v, by);
  return NULL;
}

static assay_status_t after_truth(void* user, const assay_node_t* n, size_t n_in,
                                  assay_tensor_t* const* in, size_t n_out, assay_tensor_t** out) {
  walk_t* w = user;
  (void)n_in;
  (void)in;
  if (!w->walking || n->graph != w->model->graph) return NULL;
  for (size_t i = 0; i < n_out; i++) {
    const assay_value_t* v = n->outputs[i];
    if (v && out[i] && w->golden_of[v->id] && !w->missed[v->id])
      ASSAY_TRY(compare(w, n, v, &out[i]));
  }
  return NULL;
}

// ---- walking -----------------------------------------------------------------------------------

static assay_status_t copy_golden(const assay_golden_t* from, assay_golden_t* out) {
  ASSAY_TRY(assay_new_array(from->n, sizeof *out->at, &out->at));
  for (out->n = 0; out->n < from->n; out->n++) {
    assay_golden_tensor_t* to = &out->at[out->n];
    *to = from->at[out->n];
    to->name = NULL;
    assay_tensor_retain(to->tensor);
  }
  return NULL;
}

static assay_status_t walk_create(walk_t* w, const assay_golden_t* golden,
                                  assay_tensor_t* const* inputs) {
  const assay_model_t* m = w->model;
  const size_t values = (size_t)m->n_values;
  const assay_evaluator_config_t truth = {.mode = ASSAY_MODE_TRUTH,
                                          .unquantized = w->options->unquantized,
                                          .seed = w->options->seed,
                                          .keep_all = true,
                                          .hooks = {.after = after_truth, .user = w}};
  const assay_evaluator_config_t noisy = {
      .mode = ASSAY_MODE_PLAN,
      .arith = ASSAY_ARITH_F32,
      .unquantized = w->options->unquantized,
      .seed = w->options->seed,
      .hooks = {.before = before_noisy, .after = after_noisy, .user = w}};
  ASSAY_TRY(copy_golden(golden, &w->golden));
  ASSAY_TRY(assay_new_array(values, sizeof *w->golden_of, &w->golden_of));
  ASSAY_TRY(assay_new_array(values, sizeof *w->noisy_out, &w->noisy_out));
  ASSAY_TRY(assay_new_array(values, sizeof *w->missed, &w->missed));
  ASSAY_TRY(assay_new_array(values, sizeof *w->explained, &w->explained));
  ASSAY_TRY(assay_evaluator_create(m, &truth, &w->truth));
  ASSAY_TRY(assay_evaluator_create(m, &noisy, &w->noisy));
  for (size_t i = 0; i < w->golden.n; i++)
    if (w->golden.at[i].value) w->golden_of[w->golden.at[i].value->id] = &w->golden.at[i];
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    if (!inputs[i]) continue;
    assay_tensor_t* wide = NULL;
    ASSAY_TRY(assay_tensor_widen(inputs[i], &wide));
    assay_evaluator_set(w->truth, m->graph->inputs[i], wide);
    assay_evaluator_set(w->noisy, m->graph->inputs[i], wide);
    assay_tensor_release(wide);
  }
  return NULL;
}

static void walk_deinit(walk_t* w) {
  const size_t values = (size_t)w->model->n_values;
  for (size_t i = 0; w->noisy_out && i < values; i++) assay_tensor_release(w->noisy_out[i]);
  for (size_t i = 0; w->missed && i < values; i++) assay_tensor_release(w->missed[i]);
  assay_evaluator_destroy(w->truth);
  assay_evaluator_destroy(w->noisy);
  assay_free(w->golden_of);
  assay_golden_deinit(&w->golden);
  assay_free(w->noisy_out);
  assay_free(w->missed);
  assay_free(w->explained);
  assay_free(w->faulty);
}

// A node that cannot be run at all, though golden knows what it gives: a fault, after which golden
// goes on.
static assay_status_t pass_over(walk_t* w, const assay_node_t* n, assay_status_t why) {
  bool known = n->n_outputs > 0;
  for (size_t i = 0; i < n->n_outputs; i++)
    known = known && n->outputs[i] && w->golden_of[n->outputs[i]->id] && n->outputs[i]->type &&
            n->outputs[i]->type->kind == ASSAY_KIND_TENSOR;
  if (!known || assay_status_code(why) == ASSAY_NO_MEMORY) return why;
  assay_export_t* e = w->out;
  assay_status_t st = assay_grow(&e->faults, &e->capacity, e->n + 1, sizeof *e->faults);
  if (st) return assay_status_join(why, st);
  e->faults[e->n++] = (assay_fault_t){.value = n->outputs[0], .node = n, .shape = true};
  assay_status_free(why);
  for (size_t i = 0; i < n->n_outputs; i++) {
    const assay_value_t* v = n->outputs[i];
    assay_tensor_t* by = NULL;
    ASSAY_TRY(assay_tensor_retype(w->golden_of[v->id]->tensor, v->type->elem, &by));
    assay_evaluator_set(w->truth, v, by);
    assay_evaluator_set(w->noisy, v, by);
    assay_tensor_release(by);
  }
  return NULL;
}

static assay_status_t walk(walk_t* w) {
  const assay_graph_t* g = w->model->graph;
  w->walking = true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    // The noisy run only measures; where it fails nothing is explained by rounding.
    assay_status_t st = assay_evaluator_step(w->noisy, g->nodes[i]);
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
    if (!st) st = assay_evaluator_step(w->truth, g->nodes[i]);
    if (st) st = pass_over(w, g->nodes[i], st);
    if (st) return w->walking = false, st;
    if (w->options->progress)
      w->options->progress(w->options->user, "golden", (double)(i + 1) / (double)g->n_nodes);
  }
  w->walking = false;
  return NULL;
}

// ---- the search for each fault -----------------------------------------------------------------

// Lists the nodes that the targets are made by, back to golden values, constants and graph inputs.
static size_t list_nodes(const walk_t* w, bool* wanted, const assay_node_t** nodes) {
  const assay_graph_t* g = w->model->graph;
  size_t n = 0;
  for (size_t i = g->n_nodes; i-- > 0;) {
    const assay_node_t* node = g->nodes[i];
    bool needed = false;
    for (size_t k = 0; k < node->n_outputs; k++)
      needed |= node->outputs[k] && wanted[node->outputs[k]->id];
    if (!needed) continue;
    nodes[n++] = node;
    for (size_t k = 0; k < node->n_inputs; k++)
      if (node->inputs[k] && !w->golden_of[node->inputs[k]->id]) wanted[node->inputs[k]->id] = true;
  }
  for (size_t a = 0, b = n; a + 1 < b; a++) {
    const assay_node_t* x = nodes[a];
    nodes[a] = nodes[--b];
    nodes[b] = x;
  }
  return n;
}

// A model that a fault makes amplify rounding explains anything: no repair may leave more than this
// part of golden's size.
static const double MAX_LEFT = 1. / 64;

static double left_at_most(double explained, double size) {
  return size > 0 ? fmin(explained, MAX_LEFT * size) : explained;
}

static assay_search_target_t target_of(const walk_t* w, const assay_value_t* v) {
  assay_tensor_t* golden = w->golden_of[v->id]->tensor;
  const assay_difference_t d = assay_difference(golden, golden);  // for its size
  const assay_difference_t* e = &w->explained[v->id];
  return (assay_search_target_t){
      .value = v,
      .golden = golden,
      .truth = w->missed[v->id],
      .explained_rms = left_at_most(allowed(e->rms, golden, d.ref_rms), d.ref_rms),
      .explained_max = left_at_most(allowed(e->max, golden, d.ref_max), d.ref_max)};
}

// Takes what was found over: the first into the fault, the others after it.
static assay_status_t take_found(walk_t* w, size_t fault, assay_fault_t* found, size_t n) {
  assay_export_t* e = w->out;
  assay_status_t st =
      n > 1 ? assay_grow(&e->faults, &e->capacity, e->n + n - 1, sizeof *e->faults) : NULL;
  if (st) {
    for (size_t i = 0; i < n; i++) assay_repair_deinit(&found[i].repair);
    return st;
  }
  if (n > 1)
    memmove(&e->faults[fault + n], &e->faults[fault + 1], (e->n - fault - 1) * sizeof *e->faults);
  const assay_fault_t known = e->faults[fault];
  for (size_t i = 0; i < n; i++) {
    found[i].value = known.value;
    found[i].difference = known.difference;
    found[i].explained = known.explained;
    found[i].shape = known.shape;
    e->faults[fault + i] = found[i];
  }
  e->n += n ? n - 1 : 0;
  return NULL;
}

// Where golden knows what goes into the node, its constant can be solved for.
static assay_status_t solve(walk_t* w, const assay_search_target_t* target, assay_fault_t* found,
                            size_t* n_found) {
  assay_repair_t r = {0};
  double left = 0;
  bool is_solved = false;
  const assay_node_t* node = target->value->producer;
  if (!node || node->graph != w->model->graph || (*n_found && found[0].restored)) return NULL;
  ASSAY_TRY(assay_solve_constant(w->truth, node, target, &r, &left, &is_solved));
  if (!is_solved) return NULL;
  const assay_difference_t d = assay_difference(target->truth, target->golden);
  const bool restored = left * d.rms <= target->explained_rms;
  if (!restored && *n_found && found[0].remains <= left) return assay_repair_deinit(&r), NULL;
  for (size_t i = 0; i < *n_found; i++) assay_repair_deinit(&found[i].repair);
  found[0] = (assay_fault_t){
      .node = node, .has_repair = true, .restored = restored, .repair = r, .remains = left};
  *n_found = 1;
  return NULL;
}

static assay_status_t search(walk_t* w, const assay_value_t* const* values, size_t n,
                             double deadline, size_t fault) {
  const assay_graph_t* g = w->model->graph;
  bool* wanted = NULL;
  const assay_node_t** nodes = NULL;
  assay_search_target_t* targets = NULL;
  assay_fault_t found[ASSAY_SEARCH_FAULTS];
  size_t n_found = 0;
  assay_others_t others = {0};
  assay_search_t s = {.model = w->model,
                      .evaluator = w->truth,
                      .faulty = w->faulty,
                      .deadline = deadline,
                      .several = true};
  assay_status_t st = assay_new_array((size_t)w->model->n_values, sizeof *wanted, &wanted);
  if (!st) st = assay_new_array(g->n_nodes, sizeof *nodes, &nodes);
  if (!st) st = assay_new_array(n, sizeof *targets, &targets);
  for (size_t k = 0; !st && k < n; k++) {
    wanted[values[k]->id] = true;
    targets[s.n_targets++] = target_of(w, values[k]);
  }
  if (!st) s.n_nodes = list_nodes(w, wanted, nodes);
  s.nodes = nodes;
  s.targets = targets;
  if (!st && w->out->outputs_only) st = assay_others_init(w->options, &s, &others);
  if (!st) st = assay_search_run(&s, found, &n_found);
  assay_others_deinit(&others);
  if (!st && !w->out->outputs_only && n == 1) st = solve(w, &targets[0], found, &n_found);
  if (!st) st = take_found(w, fault, found, n_found);
  w->out->cut_short |= s.cut_short;
  w->out->trials += s.trials;
  assay_free(wanted);
  assay_free(nodes);
  assay_free(targets);
  return st;
}

// Without inner values all outputs that golden knows are looked at together: a fault may show in
// several.
static assay_status_t search_outputs(walk_t* w, double deadline) {
  const assay_value_t** values = NULL;
  size_t n = 0;
  assay_status_t st = assay_new_array(w->golden.n, sizeof *values, &values);
  for (size_t i = 0; !st && i < w->golden.n; i++) {
    const assay_value_t* v = w->golden.at[i].value;
    if (v && v->producer && w->golden_of[v->id]) values[n++] = v;
  }
  if (!st) st = search(w, values, n, deadline, 0);
  assay_free(values);
  return st;
}

static assay_status_t search_all(walk_t* w) {
  const double seconds = w->options->seconds > 0 ? w->options->seconds : 40;
  const double end = assay_clock_seconds() + seconds;
  if (w->out->outputs_only) return search_outputs(w, end);
  ASSAY_TRY(assay_new_array((size_t)w->model->n_node_ids, sizeof *w->faulty, &w->faulty));
  for (size_t i = 0; i < w->out->n; i++) w->faulty[w->out->faults[i].node->id] = true;
  for (size_t i = 0; i < w->out->n;) {
    // The time left, shared among the faults left.
    const double now = assay_clock_seconds();
    const size_t n = w->out->n;
    const double share = fmax(0, end - now) / (double)(n - i);
    ASSAY_TRY(search(w, &w->out->faults[i].value, 1, now + share, i));
    i += 1 + w->out->n - n;  // several may hide behind one value
  }
  return NULL;
}

assay_status_t assay_export_check(const assay_model_t* model, assay_tensor_t* const* inputs,
                                  const assay_golden_t* golden,
                                  const assay_export_options_t* options, assay_export_t* out) {
  walk_t w = {.model = model, .options = options, .out = out};
  out->outputs_only = true;
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value && !golden->at[i].value->is_output) out->outputs_only = false;
  assay_status_t st = walk_create(&w, golden, inputs);
  if (!st) st = walk(&w);
  if (!st && out->n && !options->no_search) st = search_all(&w);
  walk_deinit(&w);
  if (st) assay_export_deinit(out);
  return st;
}

void assay_export_deinit(assay_export_t* e) {
  for (size_t i = 0; i < e->n; i++) assay_repair_deinit(&e->faults[i].repair);
  assay_free(e->faults);
  *e = (assay_export_t){0};
}
