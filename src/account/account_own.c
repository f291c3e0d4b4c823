// Own error: in the engine's tap.
#include <math.h>

#include "account/account_internal.h"
#include "account/external.h"
#include "account/special.h"
#include "base/alloc.h"
#include "formats/format.h"

static void note_risk(void* user, const assay_layer_t* layer, const assay_value_t* v,
                      const assay_tensor_t* t, const assay_limits_t* limits) {
  assay_risk_add_hidden(layer, v, t, limits, &((assay_layer_account_t*)user)->at_risk);
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
    if (!st) st = assay_local_judge(local, local->converted, out, layer, rounding, NULL, &j);
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
static int64_t shape_mismatches(const assay_node_t* node, size_t i, const assay_tensor_t* e,
                                const assay_tensor_t* l) {
  if (!e || !l || e->kind != ASSAY_KIND_TENSOR || l->kind != ASSAY_KIND_TENSOR) return 0;
  if (assay_tensor_same_shape(e, l) || !node->op) return 0;
  if (node->op->discrete >> i & 1 && !contradicts(node->outputs[i], e)) return 0;
  return e->size ? e->size : 1;
}

// A gated tactic's condition, on what came in.
static assay_status_t test_accuracy_gate(assay_account_t* a, assay_layer_account_t* acc,
                                         const assay_layer_t* layer, const assay_node_t* node,
                                         size_t n_in, assay_tensor_t* const* in,
                                         assay_tensor_t* const* engine, const assay_local_t* local,
                                         const assay_rounding_t* rounding) {
  const ptrdiff_t i = layer ? layer - a->layers->layers : -1;
  const bool known = a->backend->gate && i >= 0 && (size_t)i < a->layers->n_layers;
  const assay_accuracy_gate_t* gate = known ? a->backend->gate(a->engine, (size_t)i) : NULL;
  if (!gate) return NULL;
  assay_gated_t run = {0};
  assay_layer_sums_t* sums = assay_account_sums(a, acc);
  ASSAY_TRY(assay_gated_measure(a->locals, layer, node, n_in, in, rounding, local, engine, &run));
  acc->gated.here = true;
  acc->gated.gate = *gate;
  assay_exact_add_to(&sums->gated_own2, &acc->gated.own2, run.own2);
  assay_exact_add_to(&sums->gated_plain2, &acc->gated.plain2, run.plain2);
  assay_exact_add_to(&sums->gated_bound2, &acc->gated.bound2, run.bound2);
  return NULL;
}

// The judgement of one run; special: what explains its NaN and infinities.
static assay_status_t judge_run(assay_account_t* a, assay_layer_account_t* acc,
                                const assay_layer_rerun_t* run, const assay_local_t* local,
                                const assay_rounding_t* rounding, const assay_special_t* special) {
  const assay_external_run_t run_of = {run->layer,  run->node, run->n_in, run->in,
                                       run->engine, local,     rounding,  special};
  assay_judgement_t j = {0};
  bool final = false;
  ASSAY_TRY(
      assay_local_judge(local, local->converted, run->engine, run->layer, rounding, special, &j));
  if (a->backend->external) ASSAY_TRY(assay_external_judge(a->locals, &run_of, &j, &final));
  acc->bounded = local->bounded && (acc->runs == 1 || acc->bounded);
  assay_account_add_judgement(assay_account_sums(a, acc), &acc->judged, &j);
  ASSAY_TRY(test_accuracy_gate(a, acc, run->layer, run->node, run->n_in, run->in, run->engine,
                               local, rounding));
  const bool unlimited = a->backend->external || !local->bounded;
  if (unlimited && assay_external_is_vague(&run_of)) {
    bool asked;
    double by;
    ASSAY_TRY(assay_external_compare(a->locals, &run_of, &asked, &by));
    acc->suspected += asked;
    acc->outlying += by > 0;
    acc->outlying_by = fmax(acc->outlying_by, by);
    return NULL;
  }
  if (final || !local->bounded || !is_suspect(&j, rounding)) return NULL;
  return ask_reruns(a, acc, run->layer, run->node, run->n_in, run->in, local, rounding, &j);
}

// Sums for the report, and the judgement of one run.
static assay_status_t add_run(assay_account_t* a, assay_layer_account_t* acc,
                              const assay_layer_t* layer, const assay_node_t* node, size_t n_in,
                              assay_tensor_t* const* in, const assay_record_t* r,
                              const assay_local_t* local, const assay_rounding_t* rounding) {
  if (!acc->runs++)
    ASSAY_TRY(assay_account_note_cost(layer, node, n_in, in, r->n_out, r->engine, &acc->cost));
  assay_error_sum_t run = ASSAY_ERROR_SUM_INIT;
  for (size_t i = 0; i < r->n_out; i++) {
    const assay_tensor_t *e = r->engine[i], *l = r->local[i];
    acc->shape_mismatches += shape_mismatches(node, i, e, l);
    if (!assay_account_holds_floats(e) || !assay_account_holds_floats(l) || e->size != l->size)
      continue;
    acc->stores_float |= e->type == ASSAY_TYPE_FLOAT;
    const assay_format_t stored = assay_layer_storage(layer, e->type);
    if (!acc->storage || assay_format_info(stored)->max < assay_format_info(acc->storage)->max)
      acc->storage = stored;
    acc->local_max = fmax(acc->local_max, assay_account_largest(l));
    assay_error_sum_add(&run, assay_f64(e), assay_f64(l), (size_t)e->size);
  }
  acc->own_worst_rms = fmax(acc->own_worst_rms, assay_error_sum_rms(&run));
  assay_error_exact_add(&assay_account_sums(a, acc)->own, &acc->own, &run);
  if (!local->truth) return NULL;
  const assay_layer_rerun_t of = {layer, node, n_in, in, r->engine};
  assay_special_t special = {0};
  ASSAY_TRY(assay_special_find(a->locals, &of, local, rounding, !a->backend->external, &special));
  assay_status_t st = judge_run(a, acc, &of, local, rounding, &special);
  assay_special_deinit(&special);
  return st;
}

assay_status_t assay_account_on_layer(void* user, const assay_layer_t* layer,
                                      const assay_node_t* node, uint64_t iteration, size_t n_in,
                                      assay_tensor_t* const* in, size_t n_out,
                                      assay_tensor_t* const* out) {
  assay_account_t* a = user;
  assay_layer_account_t* acc = &a->accounts[node->id];
  assay_rounding_t rounding = {0};
  assay_local_t local = {0};
  const assay_tap_t* tap = &a->options.tap;
  assay_record_t* r = NULL;
  ASSAY_TRY(assay_account_note_first(a, acc, layer, node));
  if (tap->layer) ASSAY_TRY(tap->layer(tap->user, layer, node, iteration, n_in, in, n_out, out));
  assay_locals_set_iteration(a->locals, iteration);
  ASSAY_TRY(assay_record_create(n_out, out, &r));
  a->backend->rounding(a->engine, layer, n_in, in, &rounding);
  assay_status_t st = NULL;
  // What a body does is judged node by node, run by run, where there are taps in it.
  const bool taken =
      layer && layer->drawn ? true : assay_account_is_control(node) && !a->backend->external;
  if (!taken) {
    const assay_hidden_tap_t hidden = {.value = note_risk, .user = acc};
    st = assay_locals_run(a->locals, layer, node, n_in, in, &rounding, &hidden, &local);
    if (!st) st = assay_record_inputs(r, iteration, n_in, in);
  }
  for (size_t i = 0; !st && i < n_out; i++)
    r->local[i] = assay_tensor_retain(taken ? r->engine[i] : local.truth[i]);
  if (!st && a->backend->external) st = assay_external_check(node, n_out, r->engine, r->local);
  if (!st) st = add_run(a, acc, layer, node, n_in, in, r, &local, &rounding);
  acc->injected.here = assay_injected_is_in(a->layers, layer, node);
  if (!st && acc->injected.here && !assay_account_is_control(node))
    st = assay_injected_measure(a->locals, layer, node, n_in, in, &local, rounding.compute, out,
                                &acc->injected);
  assay_local_deinit(&local);
  if (st || a->options.own_only) return assay_record_free(r), st;
  assay_record_push(&a->queues[node->id], r);
  return NULL;
}
