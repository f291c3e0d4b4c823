// What `debug tactics` found, told.
#include <math.h>
#include <string.h>

#include "formats/format.h"
#include "io/json.h"
#include "report/report.h"

static double relative(const assay_error_sum_t* e) {
  return e->sum_ref2 > 0 ? sqrt(e->sum_err2 / e->sum_ref2) : sqrt(e->sum_err2);
}

// "SNR 140.1 dB", "exact", "3 not finite".
static void error_of(const assay_error_sum_t* e, char* out, size_t capacity) {
  if (!e->n)
    snprintf(out, capacity, "-");
  else if (e->mismatched)
    snprintf(out, capacity, "%lld not finite", (long long)e->mismatched);
  else if (e->sum_err2 <= 0)
    snprintf(out, capacity, "exact");
  else
    snprintf(out, capacity, "%.2e", relative(e));
}

static void why(const assay_tactic_account_t* a, assay_str_t* out) {
  const assay_judgement_t* j = &a->judged;
  if (a->fault == ASSAY_TACTIC_BEYOND && a->shape_mismatches)
    assay_str_append(out, "another shape than the operator gives");
  else if (a->fault == ASSAY_TACTIC_BEYOND)
    assay_str_printf(out,
                     "%lld of %lld elements off by more than rounding can do; %.6g where truth is "
                     "%.6g and rounding explains %.2g",
                     (long long)j->beyond, (long long)j->elements, j->worst_engine, j->worst_truth,
                     j->worst_limit);
  else if (a->fault == ASSAY_TACTIC_INVALID)
    assay_str_printf(out, "NaN arises in %lld elements", (long long)j->born_nan);
  else if (a->fault == ASSAY_TACTIC_OUTLYING)
    assay_str_printf(out, "its error is %.0f times what rounding in other orders shows",
                     a->outlying_by);
}

// Tactics by which no layer fails, for the layers that a faulty one takes.
static bool has_other(const assay_tactic_layer_t* l, const char* name) {
  for (size_t i = 0; i < l->n; i++)
    if (l->at[i].fault == ASSAY_TACTIC_SOUND && strcmp(l->at[i].name, name) != 0) return true;
  return false;
}

// The names of all faulty tactics, each once, as --tactic-sources leaves them out.
static void exclusions(const assay_tactic_blame_t* b, assay_str_t* out) {
  for (size_t i = 0; i < b->n_layers; i++)
    for (size_t k = 0; k < b->layers[i].n; k++) {
      const assay_tactic_account_t* a = &b->layers[i].at[k];
      bool first = a->fault != ASSAY_TACTIC_SOUND;
      for (size_t m = 0; first && m <= i; m++)
        for (size_t q = 0; q < b->layers[m].n && (m < i || q < k); q++)
          if (b->layers[m].at[q].fault && strcmp(b->layers[m].at[q].name, a->name) == 0)
            first = false;
      if (first) assay_str_printf(out, "%s-%s", out->len ? "," : "", a->name);
    }
}

static void fault_lines(const assay_tactic_blame_t* b, assay_str_t* out) {
  enum { SHOWN = 5 };
  size_t shown = 0;
  bool alone = false;
  for (size_t i = 0; i < b->n_layers; i++) {
    const assay_tactic_layer_t* l = &b->layers[i];
    for (size_t k = 0; k < l->n; k++) {
      if (l->at[k].fault == ASSAY_TACTIC_SOUND) continue;
      alone |= !has_other(l, l->at[k].name);
      if (shown++ >= SHOWN) continue;
      assay_str_printf(out, "  fault   %s   %s%s: ", l->layer->name, l->at[k].name,
                       l->at[k].chosen ? ", which the plan has chosen" : "");
      why(&l->at[k], out);
      assay_str_append(out, "\n");
    }
  }
  if (shown > SHOWN) assay_str_printf(out, "  also    %zu more (--json -)\n", shown - SHOWN);
  if (!shown) return;
  assay_str_t without = {0};
  exclusions(b, &without);
  assay_str_printf(out, "  avoid   --tactic-sources=%s%s\n", assay_str_get(&without),
                   alone ? "   (layers that no other tactic takes are emulated then)" : "");
  assay_str_deinit(&without);
}

static void layer_rows(const assay_tactic_layer_t* l, assay_str_t* out) {
  char error[32];
  error_of(&l->emulated, error, sizeof error);
  assay_str_printf(out, "  %s   (%s, by %s; emulated: own error %s)\n", l->layer->name,
                   assay_format_name(l->layer->format), l->ran ? l->ran : "?", error);
  for (size_t k = 0; k < l->n; k++) {
    const assay_tactic_account_t* a = &l->at[k];
    error_of(&a->own, error, sizeof error);
    assay_str_printf(out, "    %c %-18s %-8s own error %-12s %-15s", a->chosen ? '*' : ' ', a->name,
                     a->source, error, a->same_bits ? "the plan's bits" : "other bits");
    if (!isnan(a->microseconds)) assay_str_printf(out, "  %10.1f us", a->microseconds);
    if (a->fault) assay_str_printf(out, "   %s", assay_tactic_fault_name(a->fault));
    assay_str_append(out, "\n");
  }
  if (!l->n) assay_str_append(out, "      no tactic takes it\n");
}

assay_status_t assay_report_tactics_text(const assay_tactic_blame_t* b,
                                         const assay_report_debug_t* n, assay_str_t* out) {
  enum { CAPACITY = 8 };
  size_t several = 0, none = 0, lines = 0;
  for (size_t i = 0; i < b->n_layers; i++) {
    lines += 1 + (b->layers[i].n ? b->layers[i].n : 1);
    several += b->layers[i].n > 1;
    none += !b->layers[i].n;
  }
  assay_str_printf(out, "%s  %s in %s on %s: ", b->n_faults ? "FAULT" : "SOUND", n->model,
                   n->precision, n->target);
  if (b->n_faults)
    assay_str_printf(out, "%zu of %zu tries of a tactic on a layer are wrong\n", b->n_faults,
                     b->n_tried);
  else
    assay_str_append(out, "no tactic makes more error than rounding explains\n");
  assay_str_printf(out, "  tried   %zu layer%s: %zu by several tactics, %zu by none; %zu runs\n",
                   b->n_layers, b->n_layers == 1 ? "" : "s", several, none, b->n_tried);
  fault_lines(b, out);
  const bool rows = n->all || (lines <= CAPACITY && !b->n_faults);
  for (size_t i = 0; rows && i < b->n_layers; i++) layer_rows(&b->layers[i], out);
  if (!rows)
    assay_str_append(out, "  more    --layer NAME or --all shows the tactics side by side\n");
  return assay_str_status(out);
}

static json_t* tactic_json(const assay_tactic_account_t* a) {
  assay_str_t text = {0};
  why(a, &text);
  json_t* j = json_pack("{s:s, s:s, s:b, s:b, s:o, s:o, s:o, s:I, s:b, s:s, s:o}", "name", a->name,
                        "source", a->source, "chosen", (int)a->chosen, "same_bits",
                        (int)a->same_bits, "microseconds",
                        isnan(a->microseconds) ? json_null() : assay_json_number(a->microseconds),
                        "rms", assay_json_number(assay_error_sum_rms(&a->own)), "max_abs",
                        assay_json_number(a->own.max_abs), "beyond", (json_int_t)a->judged.beyond,
                        "bounded", (int)a->bounded, "verdict", assay_tactic_fault_name(a->fault),
                        "why", text.len || text.failed ? assay_json_str(&text) : json_null());
  assay_str_deinit(&text);
  return j;
}

assay_status_t assay_report_tactics_json(const assay_tactic_blame_t* b,
                                         const assay_report_debug_t* n, json_t** out) {
  json_t* layers = json_array();
  for (size_t i = 0; i < b->n_layers; i++) {
    const assay_tactic_layer_t* l = &b->layers[i];
    json_t* tactics = json_array();
    for (size_t k = 0; k < l->n; k++) tactics = assay_json_push(tactics, tactic_json(&l->at[k]));
    layers = assay_json_push(
        layers,
        json_pack("{s:o, s:s, s:o, s:o, s:o}", "name", assay_json_text(l->layer->name), "format",
                  assay_format_name(l->layer->format), "ran",
                  l->ran ? json_string(l->ran) : json_null(), "emulated_rms",
                  assay_json_number(assay_error_sum_rms(&l->emulated)), "tactics", tactics));
  }
  assay_str_t without = {0};
  exclusions(b, &without);
  json_t* j = json_pack(
      "{s:s, s:o, s:o, s:o, s:s, s:o, s:I, s:o, s:o}", "schema", "assay.debug.tactics/1", "model",
      assay_json_text(n->model), "precision", assay_json_text(n->precision), "target",
      assay_json_text(n->target), "verdict", b->n_faults ? "fault" : "sound", "seconds",
      assay_json_number(n->seconds), "tries", (json_int_t)b->n_tried, "tactic_sources",
      without.len || without.failed ? assay_json_str(&without) : json_null(), "layers", layers);
  assay_str_deinit(&without);
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
