// What `debug precision` found, told.
#include <string.h>

#include "formats/format.h"
#include "io/json.h"
#include "report/report.h"

static const char* plural(size_t n) { return n == 1 ? "" : "s"; }

static void headline(const assay_precision_found_t* f, const assay_report_precision_t* n,
                     assay_str_t* out) {
  const assay_fewest_found_t* c = &f->fewest;
  const bool found = c->has_fix && c->fix.verified;
  assay_str_printf(out, "%s  %s in %s on %s: ",
                   c->faithful ? "FAITHFUL"
                   : found     ? "FIXED"
                               : "NOT FIXED",
                   n->model, n->precision, n->target);
  if (c->faithful)
    assay_str_append(out, "it is enough as it is, no layer needs more");
  else if (found && c->n_prefix)
    assay_str_printf(out, "%zu of %zu layers in %s are enough (%zu that make floats)", c->n_prefix,
                     f->n_layers, assay_format_name(c->fix.format), c->fix.n_nodes);
  else if (found)
    assay_str_printf(out, "%zu of %zu layers in %s %s enough", c->fix.n_nodes, f->n_layers,
                     assay_format_name(c->fix.format), c->fix.n_nodes == 1 ? "is" : "are");
  else if (c->has_fix)
    assay_str_printf(out, "%zu layers in %s are not enough", c->fix.n_nodes,
                     assay_format_name(c->fix.format));
  else
    assay_str_append(out, "no set of layers in fp32 was found that is enough");
  assay_str_append(out, "\n");
}

static void output_lines(const char* word, const assay_output_check_t* o, size_t n,
                         assay_str_t* out) {
  for (size_t i = 0; o && i < n && i < 2; i++) {
    assay_str_printf(out, "  %-7s ", word);
    assay_report_output(&o[i], out);
    assay_str_append(out, "\n");
  }
}

static void cause_lines(const assay_culprits_t* c, assay_str_t* out) {
  enum { SHOWN = 3 };
  for (size_t i = 0; i < c->n && i < SHOWN; i++) {
    const assay_culprit_t* u = &c->at[i];
    assay_str_printf(out, "  %-7s %s   ", i ? "also" : "cause",
                     u->account->layer ? u->account->layer->name : u->account->node->label);
    if (u->share > 0)
      assay_str_printf(out, "%.0f %% of the output's error\n", 100 * u->share);
    else
      assay_str_printf(out, "%s\n", u->why);
  }
  if (c->n > SHOWN || c->n_behind)
    assay_str_printf(out, "  also    %zu more, and %zu layers after them\n",
                     c->n > SHOWN ? c->n - SHOWN : 0, c->n_behind);
}

static void fix_lines(const assay_precision_found_t* f, const assay_report_precision_t* n,
                      assay_str_t* out) {
  const assay_fix_t* fix = &f->fewest.fix;
  assay_str_t rules = {0}, option = {0}, trtexec = {0};
  if (!fix->n_nodes) return;
  assay_report_layer_precision(fix, &rules);
  out->failed |= rules.failed;
  assay_report_rules_option(assay_str_get(&rules), &option);
  assay_report_trtexec(fix, &trtexec);
  assay_report_option_line("rules", &option, fix->n_nodes, n->options, out);
  assay_report_option_line("trtexec", &trtexec, fix->n_nodes, n->options, out);
  if (n->save) assay_str_printf(out, "  model   %s\n", n->save);
  assay_str_deinit(&rules);
  assay_str_deinit(&option);
  assay_str_deinit(&trtexec);
}

// What the last run does not meet: statistics, and what commands said.
static void unmet_line(const assay_precision_found_t* f, assay_str_t* out) {
  const assay_fewest_found_t* c = &f->fewest;
  const assay_requirements_t* r = f->options.require;
  const assay_output_check_t* last = c->has_fix ? c->fix.outputs : c->outputs;
  assay_str_t why = {0};
  if (c->faithful || (c->has_fix && c->fix.verified)) return;
  for (size_t i = 0; r && last && i < f->n_outputs; i++) assay_require_holds(r, &last[i], &why);
  if (c->unmet.len) assay_str_printf(&why, "%s%s", why.len ? "; " : "", assay_str_get(&c->unmet));
  if (why.len) assay_str_printf(out, "  unmet   %s\n", assay_str_get(&why));
  assay_str_deinit(&why);
}

assay_status_t assay_report_precision_text(const assay_precision_found_t* f,
                                           const assay_report_precision_t* n, assay_str_t* out) {
  const assay_fewest_found_t* c = &f->fewest;
  headline(f, n, out);
  if (c->ran_as_asked)
    output_lines(c->faithful ? "outputs" : "before", c->outputs, f->n_outputs, out);
  if (c->has_fix)
    output_lines(c->fix.verified ? "after" : "still", c->fix.outputs, f->n_outputs, out);
  cause_lines(&f->culprits, out);
  unmet_line(f, out);
  assay_report_unmended_lines(f->front.wide, f->n_outputs, "note", out);
  if (c->has_fix) assay_report_front_lines(&f->front, &c->fix, out);
  if (c->has_fix) fix_lines(f, n, out);
  const size_t found_in = c->runs - c->removals;
  assay_str_printf(out, "  took    %zu run%s, ", found_in, plural(found_in));
  if (f->builds)
    assay_str_printf(out, "%zu build%s, ", f->builds, plural(f->builds));
  else
    assay_str_append(out, "nothing built anew, ");
  assay_str_printf(out, "%.1f s", n->seconds);
  if (c->removals)
    assay_str_printf(out, "; %zu more run%s looked for fewer layers", c->removals,
                     plural(c->removals));
  assay_str_append(out, "\n");
  return assay_str_status(out);
}

static json_t* text_of(const assay_str_t* s) {
  return s->failed ? NULL : assay_json_text(assay_str_get(s));
}

static json_t* fix_json(const assay_precision_found_t* f, const assay_report_precision_t* n) {
  const assay_fewest_found_t* c = &f->fewest;
  const assay_fix_t* fix = &c->fix;
  assay_str_t rules = {0}, trtexec = {0};
  if (!c->has_fix) return json_null();
  assay_report_layer_precision(fix, &rules);
  assay_report_trtexec(fix, &trtexec);
  json_t* j = json_pack("{s:o, s:s, s:b, s:o, s:o, s:o}", "nodes",
                        assay_report_labels_json(fix->nodes, fix->n_nodes), "format",
                        assay_format_name(fix->format), "verified", (int)fix->verified, "outputs",
                        assay_report_outputs_json(fix->outputs, f->n_outputs), "layer_precision",
                        text_of(&rules), "trtexec", text_of(&trtexec));
  j = assay_json_put(j, "prefix",
                     c->n_prefix ? json_integer((json_int_t)c->n_prefix) : json_null());
  if (f->front.chosen != ASSAY_FIX_ANY)
    j = assay_json_put(j, "front", assay_report_front_json(&f->front, fix, f->n_outputs));
  j = assay_json_put(j, "model", n->save ? assay_json_text(n->save) : json_null());
  assay_str_deinit(&rules);
  assay_str_deinit(&trtexec);
  return j;
}

static json_t* causes(const assay_culprits_t* c) {
  json_t* list = json_array();
  for (size_t i = 0; i < c->n; i++) {
    const assay_culprit_t* u = &c->at[i];
    list = assay_json_push(
        list, json_pack("{s:o, s:o, s:o}", "layer",
                        assay_json_text(u->account->layer ? u->account->layer->name
                                                          : u->account->node->label),
                        "why", u->share > 0 ? json_null() : assay_json_text(u->why), "share",
                        u->share > 0 ? assay_json_number(u->share) : json_null()));
  }
  return list;
}

assay_status_t assay_report_precision_json(const assay_precision_found_t* f,
                                           const assay_report_precision_t* n, json_t** out) {
  const assay_fewest_found_t* c = &f->fewest;
  const assay_output_check_t* last = c->faithful || !c->has_fix ? c->outputs : c->fix.outputs;
  json_t* requirements = NULL;
  ASSAY_TRY(
      assay_report_requirements_json(f->options.require, last, f->n_outputs, NULL, &requirements));
  json_t* trials = json_array();
  for (size_t i = 0; i < c->n_trials; i++)
    trials =
        assay_json_push(trials, json_pack("{s:I, s:b}", "layers", (json_int_t)c->trials[i].n_layers,
                                          "faithful", (int)c->trials[i].faithful));
  json_t* j =
      json_pack("{s:s, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
                "schema", "assay.debug.precision/1", "model", assay_json_text(n->model),
                "precision", assay_json_text(n->precision), "target", assay_json_text(n->target),
                "mode", n->mode, "verdict",
                c->faithful                     ? "faithful"
                : c->has_fix && c->fix.verified ? "fixed"
                                                : "not fixed",
                "layers", (json_int_t)f->n_layers, "runs", (json_int_t)c->runs, "removals",
                (json_int_t)c->removals, "builds", (json_int_t)f->builds, "seconds",
                assay_json_number(n->seconds), "before",
                c->ran_as_asked ? assay_report_outputs_json(c->outputs, f->n_outputs) : json_null(),
                "fix", fix_json(f, n), "causes", causes(&f->culprits), "trials", trials);
  j = assay_json_put(j, "requirements", requirements);
  j = assay_json_put(j, "ill_conditioned", assay_report_ill_json(f->front.wide, f->n_outputs));
  j = assay_json_put(j, "golden_quantized", json_boolean(f->golden_quantized));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
