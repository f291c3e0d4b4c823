// The check as JSON: "assay.check/1". Fields are added, none renamed.
#include "io/json.h"

#include <math.h>

#include "base/shown.h"
#include "formats/format.h"
#include "report/report.h"

// The nodes of the model that a layer stands for.
static json_t* layer_nodes(const assay_plan_t* plan, const assay_layer_account_t* a) {
  json_t* list = json_array();
  const assay_node_t* const* nodes = a->layer ? a->layer->nodes : &a->node;
  for (size_t k = 0; k < (a->layer ? a->layer->n_nodes : 1); k++) {
    assay_origins_t o = assay_plan_origins(plan, &nodes[k]);
    for (size_t i = 0; i < o.n; i++)
      list = assay_json_push(list, assay_json_text(o.nodes[i]->label));
  }
  return list;
}

// "Conv", or "Conv+Add+Relu".
static json_t* layer_op(const assay_layer_account_t* a) {
  if (!a->layer || a->layer->n_nodes == 1) return assay_json_text(a->node->op_type);
  assay_str_t s = {0};
  for (size_t k = 0; k < a->layer->n_nodes; k++)
    assay_str_printf_raw(&s, "%s%s", k ? "+" : "", a->layer->nodes[k]->op_type);
  json_t* j = assay_json_str(&s);
  assay_str_deinit(&s);
  return j;
}

static json_t* at_risk(const assay_layer_account_t* a) {
  if (!a->at_risk.value) return json_null();
  return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)a->at_risk.count, "max",
                   assay_json_number(a->at_risk.max), "value",
                   assay_json_text(a->at_risk.value->name));
}

static json_t* culprit(const assay_plan_t* plan, const assay_culprit_t* u) {
  double value =
      u->account->truth_max > u->account->local_max ? u->account->truth_max : u->account->local_max;
  json_t* j =
      json_pack("{s:o, s:o, s:o, s:s, s:o, s:o, s:b}", "nodes", layer_nodes(plan, u->account), "op",
                layer_op(u->account), "value", assay_json_number(value), "verdict",
                assay_verdict_name(u->verdict), "why", assay_json_text(u->why), "share",
                u->share > 0 ? assay_json_number(u->share) : json_null(), "born", u->seen);
  return assay_json_put(j, "constant", assay_report_constant_json(u->constant));
}

// The part of the graph that a fault is in, where no single node explains it.
static json_t* region(const assay_region_t* r) {
  const size_t shown = r->n_nodes < ASSAY_REGION_NODES ? r->n_nodes : ASSAY_REGION_NODES;
  json_t *nodes = json_array(), *from = json_array(), *to = json_array();
  if (!r->n_nodes) return json_decref(nodes), json_decref(from), json_decref(to), json_null();
  for (size_t i = 0; i < shown; i++)
    nodes = assay_json_push(nodes, assay_json_text(r->nodes[i]->label));
  for (size_t i = 0; i < r->n_from; i++)
    from = assay_json_push(from, assay_json_text(r->from[i]->name));
  for (size_t i = 0; i < r->n_to; i++) to = assay_json_push(to, assay_json_text(r->to[i]->name));
  return json_pack("{s:o, s:I, s:o, s:o, s:I, s:o}", "nodes", nodes, "count",
                   (json_int_t)r->n_nodes, "from", from, "to", to, "outputs_that_agree",
                   (json_int_t)r->agreeing, "probability", assay_json_number(r->probability));
}

// A node that the exporter got wrong.
static json_t* fault(const assay_fault_t* f) {
  const assay_repair_t* r = f->has_repair ? &f->repair : NULL;
  json_t* rivals = json_array();
  for (size_t i = 0; i < f->n_rivals; i++)
    rivals = assay_json_push(rivals, assay_json_text(f->rivals[i]->label));
  json_t* j =
      json_pack("{s:[o], s:o, s:o, s:s, s:o, s:n, s:b}", "nodes", assay_json_text(f->node->label),
                "op", assay_json_text(f->node->op_type), "value",
                r && r->fits ? assay_json_number(r->value) : json_null(), "verdict", "export",
                "why", assay_json_text(r ? r->text : "it differs from golden"), "share", "born", 1);
  j = assay_json_put(j, "tensor", assay_json_text(f->value->name));
  j = assay_json_put(j, "cause", r ? json_string(r->cause) : json_null());
  j = assay_json_put(j, "restored", json_boolean(f->restored));
  j = assay_json_put(j, "probability",
                     f->probability > 0 ? assay_json_number(f->probability) : json_null());
  j = assay_json_put(j, "difference_rms", assay_json_number(f->difference.rms));
  j = assay_json_put(j, "explained_rms", assay_json_number(f->explained));
  j = assay_json_put(j, "rivals", rivals);
  if (f->damaged)
    j = assay_json_put(
        j, "damaged",
        json_pack("{s:o, s:s}", "constant", assay_json_text(f->damaged->name), "how", f->damage));
  return assay_json_put(j, "region", region(&f->region));
}

// The command that writes the files; null: they were asked for.
static json_t* to_write(const assay_report_names_t* n) {
  return n->to_write ? assay_json_text(n->to_write) : json_null();
}

static json_t* export_fix(const assay_check_t* c, const assay_report_names_t* n) {
  json_t *nodes = json_array(), *files = json_array();
  for (size_t i = 0; i < c->export.n; i++)
    if (c->export.faults[i].restored)
      nodes = assay_json_push(nodes, assay_json_text(c->export.faults[i].node->label));
  if (n->n_files) files = assay_json_push(files, assay_json_text(n->files[0]));
  return json_pack("{s:s, s:o, s:n, s:n, s:{s:s, s:n}, s:o, s:o}", "kind", "export", "nodes", nodes,
                   "layer_precision", "trtexec", "verified", "verdict",
                   n->repairs_hold ? "faithful" : "unfaithful", "outputs", "files", files,
                   "command", to_write(n));
}

static json_t* text(const assay_str_t* s) {
  return s->failed ? NULL : assay_json_text(assay_str_get(s));
}

static json_t* fix(const assay_check_t* c, const assay_report_names_t* n) {
  const assay_fix_t* f = &c->fix;
  if (c->quantizers.n_changed) return assay_report_quantizer_fix_json(c, n);
  if (n->repairs) return export_fix(c, n);
  if (!c->has_fix || !f->n_nodes) return json_null();
  assay_str_t precision = {0}, trtexec = {0};
  assay_report_layer_precision(f, &precision);
  assay_report_trtexec(f, &trtexec);
  json_t* files = json_array();
  for (size_t i = 0; i < n->n_files; i++)
    files = assay_json_push(files, assay_json_text(n->files[i]));
  json_t* j = json_pack("{s:s, s:o, s:o, s:o, s:{s:s, s:o}, s:o, s:o, s:i}", "kind", "precision",
                        "nodes", assay_report_labels_json(f->nodes, f->n_nodes), "layer_precision",
                        text(&precision), "trtexec", text(&trtexec), "verified", "verdict",
                        f->verified ? "faithful" : "unfaithful", "outputs",
                        assay_report_outputs_json(f->outputs, c->n_outputs), "files", files,
                        "command", to_write(n), "runs", f->runs);
  if (c->front.chosen != ASSAY_FIX_ANY)
    j = assay_json_put(j, "front", assay_report_front_json(&c->front, f, c->n_outputs));
  assay_str_deinit(&precision);
  assay_str_deinit(&trtexec);
  return j;
}

// The layer's error against its bounds.
static json_t* judged(const assay_layer_account_t* a) {
  const assay_judgement_t* d = &a->judged;
  json_t* j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "elements", (json_int_t)d->elements,
                        "exact", (json_int_t)d->exact, "explained", (json_int_t)d->explained,
                        "between", (json_int_t)d->between, "beyond", (json_int_t)d->beyond,
                        "unbounded", (json_int_t)d->unbounded);
  j = assay_json_put(j, "flipped", json_integer((json_int_t)d->flipped));
  j = assay_json_put(j, "error_over_probable_rms", assay_json_number(assay_judgement_ratio(d)));
  j = assay_json_put(j, "suspected_runs", json_integer((json_int_t)a->suspected));
  j = assay_json_put(j, "outlying_runs", json_integer((json_int_t)a->outlying));
  return j;
}

// Of an ill-conditioned layer: each input's error by itself.
static json_t* perturbations(const assay_layer_account_t* a) {
  json_t* list = json_array();
  for (size_t i = 0; i < a->perturbations.n; i++) {
    const assay_perturbation_t* p = &a->perturbations.at[i];
    list = assay_json_push(
        list, json_pack("{s:o, s:o, s:o, s:o}", "input", assay_json_text(p->value->name),
                        "error_in", assay_json_number(p->in), "error_out",
                        assay_json_number(p->out), "condition", assay_json_number(p->condition)));
  }
  return list;
}

// A tactic that needed an accuracy gate: its error beside plain's, by its model and as measured.
static json_t* gated(const assay_gated_t* l) {
  const assay_accuracy_gate_t* m = &l->gate;
  json_t* j = json_pack("{s:s, s:s, s:b}", "tactic", m->tactic, "asks", assay_fp32_name(m->asks),
                        "holds", assay_gated_holds(l));
  j = assay_json_put(j, "model_own_over_plain", assay_json_number(m->own / m->plain));
  j = assay_json_put(j, "model_six_sigma_over_bound", assay_json_number(m->six_sigma / m->bound));
  j = assay_json_put(j, "own_over_plain", assay_json_number(sqrt(l->own2 / l->plain2)));
  j = assay_json_put(j, "six_sigma_over_bound", assay_json_number(6 * sqrt(l->own2 / l->bound2)));
  return j;
}

static json_t* layer(const assay_plan_t* plan, const assay_layer_account_t* a) {
  const char* format = a->layer && a->stores_float ? assay_format_name(a->layer->format) : NULL;
  json_t* j = json_pack(
      "{s:o, s:o, s:s?, s:o, s:o, s:s}", "name",
      assay_json_text(a->layer ? a->layer->name : a->node->label), "nodes", layer_nodes(plan, a),
      "format", format, "own", assay_report_sums_json(&a->own, true), "inherited",
      assay_report_sums_json(&a->inherited, true), "verdict", assay_verdict_name(a->verdict));
  j = assay_json_put(j, "storage",
                     a->storage ? json_string(assay_format_name(a->storage)) : json_null());
  j = assay_json_put(j, "total", assay_report_sums_json(&a->total, true));
  j = assay_json_put(j, "op", layer_op(a));
  j = assay_json_put(j, "runs", json_integer((json_int_t)a->runs));
  j = assay_json_put(j, "truth_max", assay_json_number(a->truth_max));
  j = assay_json_put(j, "overflowed", json_integer((json_int_t)a->judged.overflowed));
  j = assay_json_put(j, "underflowed", json_integer((json_int_t)a->judged.underflowed));
  j = assay_json_put(j, "born_nan", json_integer((json_int_t)a->judged.born_nan));
  j = assay_json_put(j, "flipped", json_integer((json_int_t)a->flipped));
  j = assay_json_put(j, "judged", judged(a));
  j = assay_json_put(j, "condition",
                     a->condition > 0 ? assay_json_number(a->condition) : json_null());
  j = assay_json_put(
      j, "perturbed_by",
      a->perturbations.n ? assay_json_text(a->perturbations.at[0].value->name) : json_null());
  j = assay_json_put(j, "perturbations", perturbations(a));
  j = assay_json_put(j, "at_risk", at_risk(a));
  if (a->gated.here) j = assay_json_put(j, "licensed", gated(&a->gated));
  if (a->injected.here)
    j = assay_json_put(j, "planted",
                       json_pack("{s:I, s:I}", "changed", (json_int_t)a->injected.changed,
                                 "past_limit", (json_int_t)a->injected.past));
  return j;
}

// How each output's error splits over ranges of layers; null where nobody asked.
static json_t* shares(const assay_check_t* c) {
  const assay_shares_t* s = &c->shares;
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  if (!s->n) return json_null();
  json_t* list = json_array();
  for (size_t i = 0; i < s->n; i++) {
    json_t *names = json_array(), *parts = json_object();
    for (size_t l = s->at[i].first; l < s->at[i].end; l++)
      names = assay_json_push(names, assay_json_text(layers->layers[l].name));
    for (size_t o = 0; o < s->n_outputs; o++)
      parts =
          assay_json_put(parts, c->outputs[o].value->name, assay_json_number(s->at[i].share[o]));
    list = assay_json_push(list, json_pack("{s:o, s:o}", "layers", names, "share", parts));
  }
  return list;
}

// What the passes did to truth, and what they made that the format cannot hold.
static json_t* rewriting(const assay_check_t* c) {
  return json_pack("{s:o, s:I, s:i, s:i, s:o}", "truth_moved", assay_json_number(c->rewriting),
                   "mismatched", (json_int_t)c->rewriting_mismatched, "constants_made",
                   (int)assay_plan_rewrite(c->plan)->n_made, "constants_out_of_range",
                   (int)c->folded.n, "first_out_of_range",
                   c->folded.n ? assay_json_text(c->folded.at[0].value->name) : json_null());
}

// NaN and infinities that came in, and those of truth.
static json_t* not_finite(const assay_check_t* c) {
  json_t* truth = json_array();
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_error_sum_t* e = &c->outputs[i].error;
    if (e->ref_nan || e->ref_inf)
      truth = assay_json_push(
          truth, json_pack("{s:o, s:I, s:I}", "output", assay_json_text(c->outputs[i].value->name),
                           "nan", (json_int_t)e->ref_nan, "inf", (json_int_t)e->ref_inf));
  }
  return json_pack(
      "{s:o, s:o}", "inputs",
      c->unfinite_inputs.len ? assay_json_text(assay_str_get(&c->unfinite_inputs)) : json_null(),
      "truth", truth);
}

assay_status_t assay_report_json(const assay_check_t* c, const assay_report_names_t* n,
                                 json_t** out) {
  json_t* requirements = NULL;
  ASSAY_TRY(assay_report_requirements_json(c->options.require, c->outputs, c->n_outputs, c->met,
                                           &requirements));
  json_t *culprits = json_array(), *layers = json_array();
  for (size_t i = 0; i < c->export.n; i++)
    culprits = assay_json_push(culprits, fault(&c->export.faults[i]));
  culprits = assay_report_quantizer_culprits(c, culprits);
  for (size_t i = 0; i < c->culprits.n; i++)
    culprits = assay_json_push(culprits, culprit(c->plan, &c->culprits.at[i]));
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++)
    layers = assay_json_push(layers, layer(c->plan, assay_account_layer(c->account, i)));
  json_t* j = json_pack(
      "{s:s, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:i}", "schema", "assay.check/1",
      "model", assay_json_text(n->model), "precision", assay_json_text(n->precision), "target",
      assay_json_text(n->target), "verdict", c->faithful ? "faithful" : "unfaithful", "blame",
      assay_blame_name(c->blame), "outputs", assay_report_outputs_json(c->outputs, c->n_outputs),
      "culprits", culprits, "fix", fix(c, n), "layers", layers, "samples", (int)c->n_samples,
      "absorbed", (int)c->n_absorbed);
  const bool fused = c->options.plan.fused;
  j = assay_json_put(j, "fused", json_boolean(fused));
  j = assay_json_put(j, "mended", assay_report_mended_json(c, n->mended));
  j = assay_json_put(j, "shares", shares(c));
  j = assay_json_put(j, "unmet",
                     c->unmet.len ? assay_json_text(assay_str_get(&c->unmet)) : json_null());
  j = assay_json_put(j, "requirements", requirements);
  j = assay_json_put(j, "not_finite", not_finite(c));
  j = assay_json_put(j, "ill_conditioned", assay_report_ill_json(c->front.wide, c->n_outputs));
  j = assay_json_put(j, "near_ties",
                     json_pack("{s:I, s:i}", "elements", (json_int_t)c->steps.elements,
                               "quantizers", (int)c->steps.quantizers));
  j = assay_json_put(j, "rewriting", fused ? rewriting(c) : json_null());
  j = assay_json_put(j, "quantization", assay_report_quantizers_json(c));
  if (c->has_golden)
    j = assay_json_put(
        j, "export",
        json_pack("{s:I, s:b, s:I, s:b, s:b, s:s, s:s, s:o}", "values_compared",
                  (json_int_t)c->export.values_compared, "outputs_only", c->export.outputs_only,
                  "trials", (json_int_t)c->export.trials, "cut_short", c->export.cut_short,
                  "golden_quantized", c->golden_quantized, "golden_arithmetic",
                  assay_golden_arithmetic_name(&c->golden_arithmetic), "golden_rounded",
                  assay_rounded_name(&c->rounded), "undone", assay_report_undone_json(&c->undone)));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
