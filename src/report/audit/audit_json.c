// An audit as JSON, "assay.audit/1".
#include <math.h>
#include <string.h>

#include "formats/format.h"
#include "io/json.h"
#include "report/audit/audit_report.h"

static json_t* real(double x) { return isfinite(x) ? json_real(x) : json_null(); }

static json_t* node_of(const assay_node_t* n) {
  return n ? assay_json_text(n->label) : json_null();
}

static json_t* value_of(const assay_value_t* v) {
  return v ? assay_json_text(v->name) : json_null();
}

static json_t* hazard(const assay_hazard_t* h) {
  assay_str_t text = {0};
  assay_report_hazard(h, &text);
  if (text.failed) return assay_str_deinit(&text), NULL;
  json_t* j = json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:o, s:s, s:I, s:s}", "kind",
                        assay_hazard_name(h->kind), "node", node_of(h->node), "operator",
                        h->node ? h->node->op_type : "", "value", value_of(h->value), "figure",
                        real(h->figure), "other", real(h->other), "limit", real(h->limit), "format",
                        assay_format_name(h->format), "element", (json_int_t)h->element, "text",
                        assay_str_get(&text));
  assay_str_deinit(&text);
  return j;
}

static json_t* box(const assay_box_t* b) {
  static const char* const origins[] = {[ASSAY_BOX_ASSUMED] = "assumed",
                                        [ASSAY_BOX_GIVEN] = "given",
                                        [ASSAY_BOX_SAMPLES] = "samples"};
  json_t* list = json_array();
  for (size_t i = 0; i < b->n; i++) {
    const assay_box_input_t* in = &b->inputs[i];
    if (in->value)
      list = assay_json_push(
          list, json_pack("{s:o, s:o, s:o, s:s}", "input", value_of(in->value), "low", real(in->lo),
                          "high", real(in->hi), "origin", origins[in->origin]));
  }
  return list;
}

static json_t* witness(const assay_audit_t* a, const assay_audit_names_t* n) {
  const assay_witness_t* w = &a->witness;
  if (!w->found) return json_null();
  return json_pack("{s:o, s:s, s:o, s:s, s:o, s:b, s:i, s:s?}", "node", node_of(w->node),
                   "operator", w->node->op_type, "value", value_of(w->value), "kind",
                   assay_hazard_name(w->kind), "figure", real(w->figure), "reaches_output",
                   (int)w->at_output, "runs", w->runs, "file", n->witness);
}

static json_t* radius(const assay_audit_t* a) {
  double r = 1;
  if (!a->has_radius) return json_null();
  const bool ball = assay_box_is_ball(&a->box, &r);
  return json_pack("{s:o, s:o, s:b, s:o}", "scale", real(a->radius.scale), "radius",
                   ball ? real(a->radius.scale * r) : json_null(), "everything",
                   (int)(a->radius.scale >= a->radius.max), "next",
                   a->radius.next.node ? hazard(&a->radius.next) : json_null());
}

static json_t* values(const assay_audit_t* a) {
  json_t* list = json_object();
  const assay_graph_t* g = assay_plan_layers(a->plan)->model->graph;
  for (size_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->nodes[i]->n_outputs; k++) {
      const assay_value_t* v = g->nodes[i]->outputs[k];
      if (!v || !a->ranges.values[v->id].known) continue;
      const assay_value_range_t* r = &a->ranges.values[v->id];
      json_t* name = assay_json_text(v->name);  // as a key it has to be UTF-8, too
      json_t* ends = json_pack("[o, o]", real(r->lo), real(r->hi));
      list = assay_json_put(list, json_string_value(name), ends);
      json_decref(name);
    }
  return list;
}

static json_t* broadcasts(const assay_broadcasts_t* b) {
  json_t* list = json_array();
  for (size_t i = 0; i < b->n; i++) {
    const assay_broadcast_t* x = &b->at[i];
    list = assay_json_push(
        list,
        json_pack("{s:o, s:s, s:I, s:s, s:s, s:b, s:b, s:b}", "node", node_of(x->node), "operator",
                  x->node->op_type, "input", (json_int_t)x->input, "from", x->from, "to", x->to,
                  "number", (int)x->number, "both", (int)x->both, "unsure", (int)x->unsure));
  }
  return list;
}

static json_t* baked(const assay_broadcasts_t* b) {
  json_t* list = json_array();
  for (size_t i = 0; i < b->n_baked; i++) {
    const assay_baked_t* x = &b->baked[i];
    list = assay_json_push(
        list, json_pack("{s:o, s:s, s:s, s:I, s:b, s:s}", "node", node_of(x->node), "operator",
                        x->node->op_type, "kind", assay_baked_name(x->kind), "size",
                        (json_int_t)x->size, "silent", (int)x->silent, "why", x->why));
  }
  return list;
}

static const char* becomes(const assay_odd_constant_t* x) {
  if (!isfinite(x->becomes)) return "infinity";
  return x->becomes == 0 ? "0" : fabs(x->becomes) == 1 ? "1" : "subnormal";
}

static json_t* constants(const assay_odd_constants_t* c) {
  json_t* list = json_array();
  for (size_t i = 0; i < c->n; i++) {
    const assay_odd_constant_t* x = &c->at[i];
    list = assay_json_push(
        list,
        json_pack("{s:o, s:s, s:o, s:s?, s:s, s:I, s:I, s:I, s:I, s:o, s:s, s:b, s:s}", "node",
                  node_of(x->node), "operator", x->node->op_type, "value", value_of(x->value),
                  "attribute", x->attribute, "format", assay_format_name(x->format), "elements",
                  (json_int_t)x->n, "past", (json_int_t)x->past, "flushed", (json_int_t)x->flushed,
                  "subnormal", (json_int_t)x->subnormal, "example", real(x->example), "becomes",
                  becomes(x), "matters", (int)x->matters, "why", x->why));
  }
  return list;
}

static json_t* support(const assay_support_t* s) {
  static const char* const levels[] = {[ASSAY_SUPPORT_YES] = "yes",
                                       [ASSAY_SUPPORT_SLOW] = "restricted",
                                       [ASSAY_SUPPORT_UNKNOWN] = "unknown",
                                       [ASSAY_SUPPORT_NO] = "no"};
  json_t* list = json_array();
  for (size_t i = 0; i < s->n; i++) {
    const assay_node_support_t* x = &s->nodes[i];
    list = assay_json_push(
        list, json_pack("{s:o, s:s, s:s, s:s, s:s, s:s?, s:s, s:s}", "node", node_of(x->node),
                        "operator", x->node->op_type, "emu", levels[x->emu], "cpu",
                        x->cpu == ASSAY_SUPPORT_SLOW ? "emulated" : levels[x->cpu], "tensorrt",
                        levels[x->trt], "kernel", x->cpu_tactic, "cpu_why", x->cpu_why,
                        "tensorrt_why", x->trt_why));
  }
  return list;
}

assay_status_t assay_report_audit_json(const assay_audit_t* a, const assay_audit_names_t* names,
                                       json_t** out) {
  json_t* hazards = json_array();
  for (size_t i = 0; i < a->ranges.n_hazards; i++)
    hazards = assay_json_push(hazards, hazard(&a->ranges.hazards[i]));
  json_t* j = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:b, s:o, s:o}", "schema",
                        "assay.audit/1", "model", assay_json_text(names->model), "precision",
                        assay_json_text(names->precision), "verdict",
                        assay_audit_verdict_name(assay_audit_verdict(a)), "box", box(&a->box),
                        "hazards", hazards, "witness", witness(a, names), "searched",
                        (int)a->searched, "safe", radius(a), "values", values(a));
  j = assay_json_put(j, "broadcasts", broadcasts(&a->broadcasts));
  j = assay_json_put(j, "baked", baked(&a->broadcasts));
  j = assay_json_put(j, "constants", constants(&a->constants));
  j = assay_json_put(j, "operators", support(&a->support));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
