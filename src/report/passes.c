// What `debug passes` found, told.
#include <math.h>
#include <string.h>

#include "io/json.h"
#include "report/report.h"

static const char* name_of(const assay_pass_account_t* a) {
  return a->pass ? a->pass->name : "(no pass)";
}

static void guilty_lines(const assay_pass_blame_t* b, assay_str_t* out) {
  enum { SHOWN = 4 };
  const assay_pass_account_t* g = b->guilty;
  if (!g) return;
  if (b->value.len)
    assay_str_printf(out, "  first   '%s'   %s\n", assay_str_get(&b->value),
                     assay_str_get(&b->why));
  if (b->n_nodes) {
    assay_str_printf(out, "  did     %s", assay_pass_action_name(b->action));
    for (size_t i = 0; i < b->n_nodes && i < SHOWN; i++)
      assay_str_printf(out, "%s %s", i ? "," : "", b->nodes[i]->label);
    if (b->n_nodes > SHOWN) assay_str_printf(out, " and %zu more", b->n_nodes - SHOWN);
    assay_str_printf(out, "%s%s\n", b->did.len ? ": " : "", assay_str_get(&b->did));
  }
  assay_str_printf(out, "  without --no-pass %s\n", g->pass->name);
}

static void error_of(const assay_output_check_t* o, assay_str_t* out) {
  const assay_error_sum_t* e = &o->error;
  if (!o->is_float)
    assay_str_printf(out, "%lld differ", (long long)o->differing);
  else if (e->mismatched)
    assay_str_printf(out, "%lld not finite", (long long)e->mismatched);
  else if (isinf(assay_error_sum_snr_db(e)))
    assay_str_append(out, "exact");
  else
    assay_str_printf(out, "SNR %.1f dB", assay_error_sum_snr_db(e));
}

// The output that has moved most since no pass was on: the worst of those now.
static const assay_output_check_t* worst_output(const assay_pass_blame_t* b,
                                                const assay_pass_account_t* a) {
  const assay_output_check_t* worst = &a->outputs[0];
  for (size_t i = 1; i < b->n_outputs; i++) {
    const assay_output_check_t* o = &a->outputs[i];
    if (worst->faithful && (!o->faithful || (o->is_float && worst->is_float &&
                                             assay_error_sum_snr_db(&o->error) <
                                                 assay_error_sum_snr_db(&worst->error))))
      worst = o;
  }
  return worst;
}

static void row(const assay_pass_blame_t* b, const assay_pass_account_t* a, assay_str_t* out) {
  char moved[32] = "same bits";
  if (a->truth_mismatched)
    snprintf(moved, sizeof moved, "%lld differ", (long long)a->truth_mismatched);
  else if (a->truth_moved > 0)
    snprintf(moved, sizeof moved, "%.2g", a->truth_moved);
  assay_str_printf(out, "  %-24s %7zu  %7zu  %-12s ", name_of(a), a->n_entries, a->n_layers,
                   a->pass ? moved : "");
  if (b->n_outputs) error_of(worst_output(b, a), out);
  if (a->effect >= ASSAY_EFFECT_COARSER)
    assay_str_printf(out, "   %s", assay_pass_effect_name(a->effect));
  assay_str_append(out, "\n");
}

// The guilty pass is always shown, and what was before any pass and after all.
static bool is_shown(const assay_pass_blame_t* b, size_t i, assay_pass_effect_t min) {
  return !i || i + 1 == b->n || &b->at[i] == b->guilty || b->at[i].effect >= min;
}

// The smallest effect from which on there is room for all passes.
static assay_pass_effect_t min_shown(const assay_pass_blame_t* b, size_t capacity) {
  int min = ASSAY_EFFECT_NONE;
  for (; min < ASSAY_EFFECT_TRUTH; min++) {
    size_t n = 0;
    for (size_t i = 0; i < b->n; i++) n += is_shown(b, i, (assay_pass_effect_t)min);
    if (n <= capacity) break;
  }
  return (assay_pass_effect_t)min;
}

assay_status_t assay_report_passes_text(const assay_pass_blame_t* b, const assay_report_debug_t* n,
                                        assay_str_t* out) {
  enum { CAPACITY = 8 };
  const assay_pass_account_t* g = b->guilty;
  assay_str_printf(out, "%s  %s in %s on %s: ", g ? "FAULT" : "SOUND", n->model, n->precision,
                   n->target);
  if (!g && b->n && !b->at[0].faithful)
    assay_str_append(
        out, "no pass is to blame, though the outputs do not do: not without passes, either\n");
  else if (!g)
    assay_str_printf(out, "%zu passes did something, none more than rounding explains\n",
                     b->n ? b->n - 1 : 0);
  else if (g->effect == ASSAY_EFFECT_TRUTH)
    assay_str_printf(out, "pass '%s' changes what the model computes\n", g->pass->name);
  else
    assay_str_printf(out, "after pass '%s' the outputs do not do any more\n", g->pass->name);
  guilty_lines(b, out);
  assay_str_printf(out, "  %-24s %7s  %7s  %-12s %s\n", "pass", "changes", "layers", "truth moves",
                   "engine against truth");
  const assay_pass_effect_t min = n->all ? ASSAY_EFFECT_NONE : min_shown(b, CAPACITY);
  size_t shown = 0;
  for (size_t i = 0; i < b->n; i++) {
    if (!is_shown(b, i, min) || (shown >= CAPACITY && !n->all)) continue;
    row(b, &b->at[i], out);
    shown++;
  }
  if (shown < b->n)
    assay_str_printf(out, "  %zu passes that change less (--all shows them)\n", b->n - shown);
  return assay_str_status(out);
}

assay_status_t assay_report_passes_json(const assay_pass_blame_t* b, const assay_report_debug_t* n,
                                        json_t** out) {
  json_t* passes = json_array();
  for (size_t i = 0; i < b->n; i++) {
    const assay_pass_account_t* a = &b->at[i];
    passes = assay_json_push(
        passes, json_pack("{s:o, s:I, s:I, s:o, s:I, s:s, s:b, s:o}", "pass",
                          a->pass ? assay_json_text(a->pass->name) : json_null(), "changes",
                          (json_int_t)a->n_entries, "layers", (json_int_t)a->n_layers,
                          "truth_moved", assay_json_number(a->truth_moved), "truth_mismatched",
                          (json_int_t)a->truth_mismatched, "effect",
                          assay_pass_effect_name(a->effect), "faithful", (int)a->faithful,
                          "outputs", assay_report_outputs_json(a->outputs, b->n_outputs)));
  }
  json_t* guilty = json_null();
  if (b->guilty)
    guilty = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "pass", b->guilty->pass->name,
                       "effect", assay_pass_effect_name(b->guilty->effect), "action",
                       b->n_nodes ? json_string(assay_pass_action_name(b->action)) : json_null(),
                       "nodes", assay_report_labels_json(b->nodes, b->n_nodes), "did",
                       assay_json_text(assay_str_get(&b->did)), "value",
                       b->value.len ? assay_json_text(assay_str_get(&b->value)) : json_null(),
                       "why", assay_json_text(assay_str_get(&b->why)));
  json_t* j =
      json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "schema", "assay.debug.passes/1",
                "model", assay_json_text(n->model), "precision", assay_json_text(n->precision),
                "target", assay_json_text(n->target), "verdict", b->guilty ? "fault" : "sound",
                "seconds", assay_json_number(n->seconds), "guilty", guilty, "passes", passes);
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
