// What an audit found, one by one and as reports, for include/assay/audit.h.
#include <assay/audit.h>
#include <math.h>
#include <stdio.h>

#include "formats/format.h"
#include "report/audit/audit_report.h"
#include "report/report_public.h"

// ---- topics -------------------------------------------------------------------------------------

typedef struct topic {
  size_t (*count)(const assay_audit_t* a);
  const assay_node_t* (*node)(const assay_audit_t* a, size_t i);
  const char* (*kind)(const assay_audit_t* a, size_t i);
  void (*describe)(const assay_audit_t* a, size_t i, assay_str_t* out);
} topic_t;

static size_t n_hazards(const assay_audit_t* a) { return a->ranges.n_hazards; }
static const assay_node_t* hazard_node(const assay_audit_t* a, size_t i) {
  return a->ranges.hazards[i].node;
}
static const char* hazard_kind(const assay_audit_t* a, size_t i) {
  return assay_hazard_name(a->ranges.hazards[i].kind);
}
static void describe_hazard(const assay_audit_t* a, size_t i, assay_str_t* out) {
  assay_report_hazard(&a->ranges.hazards[i], out);
}

static size_t n_broadcasts(const assay_audit_t* a) { return a->broadcasts.n; }
static const assay_node_t* broadcast_node(const assay_audit_t* a, size_t i) {
  return a->broadcasts.at[i].node;
}
static const char* broadcast_kind(const assay_audit_t* a, size_t i) {
  return a->broadcasts.at[i].number ? "number" : "implicit";
}
static void describe_broadcast(const assay_audit_t* a, size_t i, assay_str_t* out) {
  assay_report_broadcast(&a->broadcasts.at[i], out);
}

static size_t n_baked(const assay_audit_t* a) { return a->broadcasts.n_baked; }
static const assay_node_t* baked_node(const assay_audit_t* a, size_t i) {
  return a->broadcasts.baked[i].node;
}
static const char* baked_kind(const assay_audit_t* a, size_t i) {
  return assay_baked_name(a->broadcasts.baked[i].kind);
}
static void describe_baked(const assay_audit_t* a, size_t i, assay_str_t* out) {
  assay_str_append(out, a->broadcasts.baked[i].why);
}

static size_t n_constants(const assay_audit_t* a) { return a->constants.n; }
static const assay_node_t* constant_node(const assay_audit_t* a, size_t i) {
  return a->constants.at[i].node;
}
static const char* constant_kind(const assay_audit_t* a, size_t i) {
  const double x = a->constants.at[i].becomes;
  return !isfinite(x) ? "infinity" : x == 0 ? "zero" : fabs(x) == 1 ? "one" : "subnormal";
}
static void describe_constant(const assay_audit_t* a, size_t i, assay_str_t* out) {
  assay_report_constant(&a->constants.at[i], out);
}

static size_t n_operators(const assay_audit_t* a) { return a->support.n; }
static const assay_node_t* operator_node(const assay_audit_t* a, size_t i) {
  return a->support.nodes[i].node;
}
static const char* operator_kind(const assay_audit_t* a, size_t i) {
  const assay_support_level_t level = a->support.nodes[i].cpu;
  return level == ASSAY_SUPPORT_YES ? "kernel" : level == ASSAY_SUPPORT_SLOW ? "emulated" : "none";
}
static void describe_operator(const assay_audit_t* a, size_t i, assay_str_t* out) {
  const assay_node_support_t* x = &a->support.nodes[i];
  if (*x->cpu_why) assay_str_printf(out, "cpu: %s", x->cpu_why);
  if (*x->trt_why) assay_str_printf(out, "%sTensorRT: %s", out->len ? "; " : "", x->trt_why);
}

static const topic_t topics[ASSAY_AUDIT_TOPIC_COUNT] = {
    [ASSAY_AUDIT_HAZARDS] = {n_hazards, hazard_node, hazard_kind, describe_hazard},
    [ASSAY_AUDIT_BROADCASTS] = {n_broadcasts, broadcast_node, broadcast_kind, describe_broadcast},
    [ASSAY_AUDIT_BAKED] = {n_baked, baked_node, baked_kind, describe_baked},
    [ASSAY_AUDIT_CONSTANTS] = {n_constants, constant_node, constant_kind, describe_constant},
    [ASSAY_AUDIT_OPERATORS] = {n_operators, operator_node, operator_kind, describe_operator},
};

// The topic, if it has a finding i; else NULL.
static const topic_t* find(const assay_audit_t* a, assay_audit_topic_t topic, size_t i) {
  return i < assay_audit_count(a, topic) ? &topics[topic] : NULL;
}

size_t assay_audit_count(const assay_audit_t* a, assay_audit_topic_t topic) {
  return (unsigned)topic < ASSAY_AUDIT_TOPIC_COUNT ? topics[topic].count(a) : 0;
}

const char* assay_audit_node(const assay_audit_t* a, assay_audit_topic_t topic, size_t i) {
  const topic_t* t = find(a, topic, i);
  if (!t) return NULL;
  return t->node(a, i) ? t->node(a, i)->label : "";
}

const char* assay_audit_operator(const assay_audit_t* a, assay_audit_topic_t topic, size_t i) {
  const topic_t* t = find(a, topic, i);
  if (!t) return NULL;
  return t->node(a, i) ? t->node(a, i)->op_type : "";
}

const char* assay_audit_kind(const assay_audit_t* a, assay_audit_topic_t topic, size_t i) {
  const topic_t* t = find(a, topic, i);
  return t ? t->kind(a, i) : NULL;
}

const char* assay_audit_describe(const assay_audit_t* a, assay_audit_topic_t topic, size_t i,
                                 char* out_text, size_t capacity) {
  const topic_t* t = find(a, topic, i);
  assay_str_t text = {0};
  if (t) t->describe(a, i, &text);
  snprintf(out_text, capacity, "%s", assay_str_get(&text));
  assay_str_deinit(&text);
  return out_text;
}

// ---- reports ------------------------------------------------------------------------------------

static assay_audit_names_t names_of(const assay_audit_t* a, unsigned in_full) {
  return (assay_audit_names_t){
      .model = assay_model_path(a->open),
      .precision = a->precision ? assay_format_name(a->precision) : "as declared",
      .witness = a->saved.len ? assay_str_get(&a->saved) : NULL,
      .hazards = in_full & 1u << ASSAY_AUDIT_HAZARDS,
      .broadcasts = in_full & (1u << ASSAY_AUDIT_BROADCASTS | 1u << ASSAY_AUDIT_BAKED),
      .constants = in_full & 1u << ASSAY_AUDIT_CONSTANTS,
      .operators = in_full & 1u << ASSAY_AUDIT_OPERATORS};
}

static assay_status_t make(const assay_audit_t* a, assay_report_kind_t kind,
                           const assay_audit_report_options_t* options, assay_str_t* out) {
  assay_audit_report_options_t o = ASSAY_AUDIT_REPORT_OPTIONS_INIT;
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "audits"));
  assay_report_options_read(options, options ? options->struct_size : 0, &o, sizeof o);
  const assay_audit_names_t names = names_of(a, o.topics);
  if (kind == ASSAY_REPORT_TEXT) return assay_report_audit_text(a, &names, out);
  assay_status_t st = assay_report_audit_json(a, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_audit_report(const assay_audit_t* a, assay_report_kind_t kind,
                                  const assay_audit_report_options_t* options,
                                  assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = make(a, kind, options, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_audit_write_report(const assay_audit_t* a, assay_report_kind_t kind,
                                        const assay_audit_report_options_t* options,
                                        const char* path) {
  return assay_audit_report(a, kind, options, assay_report_to_file, &path);
}
