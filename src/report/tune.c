// What `tune` found, told.
#include <math.h>
#include <string.h>

#include "formats/format.h"
#include "io/json.h"
#include "report/report.h"

enum { POINTS = 5 };

static const char* name_of(const assay_tuned_t* t, size_t f) {
  return assay_format_name(t->options.formats[f]);
}

static size_t highest(const assay_tuned_t* t) { return t->options.n_formats - 1; }

// ---- options ------------------------------------------------------------------------------------

assay_format_t assay_report_tune_base(const assay_tuned_t* t) {
  return t->options.formats[t->base];
}

void assay_report_tune_rules(const assay_tuned_t* t, const char* rules, assay_str_t* out) {
  if (rules) assay_str_append(out, rules);
  for (size_t f = 0; t->fixes && f < t->options.n_formats; f++) {
    if (f == t->base || !t->fixes[f].n_nodes) continue;
    if (out->len) assay_str_append(out, ",");
    assay_report_layer_precision(&t->fixes[f], out);
  }
  if (!t->redeclared.n_nodes) return;
  if (out->len) assay_str_append(out, ",");
  assay_report_layer_precision(&t->redeclared, out);
}

void assay_report_tune_options(const assay_tuned_t* t, const char* rules, assay_str_t* out) {
  assay_str_t all = {0};
  assay_report_tune_rules(t, rules, &all);
  out->failed |= all.failed;
  assay_str_printf(out, "--precision %s", assay_format_name(assay_report_tune_base(t)));
  if (all.len) {
    assay_str_append(out, " ");
    assay_report_rules_option(assay_str_get(&all), out);
  }
  assay_str_deinit(&all);
}

void assay_report_tune_trtexec(const assay_tuned_t* t, assay_str_t* out) {
  assay_str_t list = {0};
  for (size_t f = 0; t->fixes && f < highest(t); f++)
    if (t->fixes[f].n_nodes) assay_str_printf(out, "%s--%s", out->len ? " " : "", name_of(t, f));
  for (size_t f = 0; t->fixes && f < t->options.n_formats; f++)
    for (size_t i = 0; f != t->base && i < t->fixes[f].n_nodes; i++)
      assay_report_trtexec_layer(t->fixes[f].nodes[i], name_of(t, f), &list);
  out->failed |= list.failed;
  if (list.len) {
    assay_str_append(out, " --precisionConstraints=prefer ");
    assay_report_trtexec_list(assay_str_get(&list), out);
  }
  assay_str_deinit(&list);
}

// ---- text ---------------------------------------------------------------------------------------

static double rms(const assay_output_check_t* o) { return sqrt(assay_tune_mean_square(o)); }

static void counts(const assay_tuned_t* t, const assay_tune_trial_t* trial, assay_str_t* out) {
  bool any = false;
  for (size_t f = t->options.n_formats; f-- > 0;) {
    if (!trial->count[f]) continue;
    if (!any)
      assay_str_printf(out, "%zu of %zu layers in %s", trial->count[f], t->n_floats, name_of(t, f));
    if (any) assay_str_printf(out, ", %zu in %s", trial->count[f], name_of(t, f));
    any = true;
  }
}

static const char* by(const assay_tuned_t* t) {
  return t->options.device ? "estimated" : "by the times of its layers";
}

static void headline(const assay_tuned_t* t, const assay_report_tune_t* n, assay_str_t* out) {
  assay_str_printf(out, "%s  %s on %s", t->met ? "TUNED" : "NOT POSSIBLE", n->model, n->target);
  if (t->options.device) assay_str_printf(out, ", for %s", t->options.device->what);
  if (!t->met) {
    assay_str_printf(out, ": all layers in %s do not meet what is required\n",
                     name_of(t, highest(t)));
    return;
  }
  assay_str_append(out, ": ");
  counts(t, &t->trials[t->chosen], out);
  assay_str_append(out, "\n");
}

static void time_line(const assay_tuned_t* t, assay_str_t* out) {
  const assay_tune_trial_t *c = &t->trials[t->chosen], *high = &t->trials[0];
  assay_str_printf(out, "  time    %.4g ms %s; all in %s: %.4g ms, %.2f times as much",
                   1e3 * c->seconds, by(t), name_of(t, highest(t)), 1e3 * high->seconds,
                   high->seconds / fmax(c->seconds, 1e-300));
  if (t->n_trials > 1)
    assay_str_printf(out, "; in %s: %.4g ms", name_of(t, 0), 1e3 * t->trials[1].seconds);
  assay_str_append(out, "\n");
}

// What was assumed of the device, or measured here: times mean nothing without.
static void device_line(const assay_tuned_t* t, assay_str_t* out) {
  const assay_device_roofline_t* d = t->options.device;
  if (!d) {
    assay_str_append(out, "  device  this machine's CPU, timed layer by layer; whole runs:");
    for (size_t f = t->options.n_formats; f-- > 0;)
      assay_str_printf(out, " %.4g ms in %s%s", 1e3 * t->total[f], name_of(t, f), f ? "," : "");
    assay_str_append(out, "\n");
    return;
  }
  assay_str_printf(out, "  device  %s (--device %s):", d->what, d->name);
  for (size_t f = t->options.n_formats; f-- > 0;)
    assay_str_printf(out, " %.4g TFLOP/s in %s,",
                     assay_device_roofline_rate(d, t->options.formats[f]), name_of(t, f));
  assay_str_printf(out, " %.4g GB/s", d->gigabytes);
  if (d->microseconds > 0) assay_str_printf(out, ", %.2g us a kernel", d->microseconds);
  assay_str_append(out, "\n");
}

static void output_lines(const assay_tuned_t* t, const assay_tune_trial_t* c, assay_str_t* out) {
  for (size_t o = 0; o < t->n_outputs && o < 2; o++) {
    assay_str_append(out, o ? "          " : "  output  ");
    assay_report_output(&c->outputs[o], out);
    const double has = rms(&c->outputs[o]);
    if (c->predicted && has > 0)
      assay_str_printf(out, "; predicted: %.2f times this error", rms(&c->predicted[o]) / has);
    assay_str_append(out, "\n");
  }
}

static void requirement_lines(const assay_tuned_t* t, const assay_tune_trial_t* c,
                              assay_str_t* out) {
  const assay_requirements_t* r = t->setting.require;
  assay_str_t why = {0};
  if (t->met || !r) return;
  for (size_t o = 0; o < t->n_outputs; o++) {
    if (o && why.len) assay_str_append(&why, "; ");
    assay_require_holds(r, &c->outputs[o], &why);
  }
  if (why.len) assay_str_printf(out, "  unmet   %s\n", assay_str_get(&why));
  if (c->unmet.len) assay_str_printf(out, "  unmet   %s\n", assay_str_get(&c->unmet));
  assay_str_deinit(&why);
}

// What was required, and what it came to: the first two.
static void met_line(const assay_tuned_t* t, const assay_tune_trial_t* c, assay_str_t* out) {
  const assay_requirements_t* r = t->setting.require;
  size_t shown = 0;
  for (size_t q = 0; r && q < r->n; q++)
    for (size_t o = 0; o < t->n_outputs && shown < 2; o++) {
      const char* name = NULL;
      double value = 0;
      const bool known = assay_require_value(&r->at[q], &c->outputs[o], &name, &value);
      if (!known && !(r->at[q].command && !o)) continue;
      assay_str_append(out, shown++ ? "; " : "  met     ");
      if (known)
        assay_str_printf(out, "%s %.8g of '%s' (%s)", name, value, c->outputs[o].value->name,
                         r->at[q].text);
      else
        assay_str_printf(out, "%s", r->at[q].text);
    }
  if (shown) assay_str_append(out, "\n");
}

static void front_lines(const assay_tuned_t* t, assay_str_t* out) {
  const size_t step = t->n_front > POINTS ? (t->n_front + POINTS - 1) / POINTS : 1;
  for (size_t i = 0; i < t->n_front; i += step) {
    const assay_tune_trial_t* p = &t->front[i];
    const assay_output_check_t* o = p->outputs ? &p->outputs[0] : &p->predicted[0];
    assay_str_printf(out, "%s%9.4g ms  %4zu in %s  error %.2e %s\n",
                     i ? "          " : "  front   ", 1e3 * p->seconds, p->count[highest(t)],
                     name_of(t, highest(t)), rms(o), p->outputs ? "measured" : "predicted");
  }
}

// How many layers have a format that is not the base's.
static size_t count_others(const assay_tuned_t* t) {
  size_t n = 0;
  for (size_t f = 0; t->fixes && f < t->options.n_formats; f++)
    if (f != t->base) n += t->fixes[f].n_nodes;
  return n + t->redeclared.n_nodes;
}

static void hand_over(const assay_tuned_t* t, const assay_report_tune_t* n, assay_str_t* out) {
  assay_str_t options = {0}, trtexec = {0};
  assay_report_tune_options(t, n->rules, &options);
  assay_report_tune_trtexec(t, &trtexec);
  assay_report_option_line("rules", &options, count_others(t), n->options, out);
  if (trtexec.len) assay_report_option_line("trtexec", &trtexec, count_others(t), n->options, out);
  if (n->save) assay_str_printf(out, "  model   %s\n", n->save);
  if (n->plan) assay_str_printf(out, "  plan    %s\n", n->plan);
  assay_str_deinit(&options);
  assay_str_deinit(&trtexec);
}

assay_status_t assay_report_tune_text(const assay_tuned_t* t, const assay_report_tune_t* n,
                                      assay_str_t* out) {
  const assay_tune_trial_t* c = &t->trials[t->met ? t->chosen : 0];
  headline(t, n, out);
  device_line(t, out);
  if (t->met) time_line(t, out);
  if (t->met) met_line(t, c, out);
  output_lines(t, c, out);
  requirement_lines(t, c, out);
  if (t->met) {
    front_lines(t, out);
    hand_over(t, n, out);
  }
  assay_str_printf(out, "  took    %zu run%s, %.1f s\n", t->n_trials, t->n_trials == 1 ? "" : "s",
                   n->seconds);
  return assay_str_status(out);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t* text_of(const assay_str_t* s) {
  return s->failed ? NULL : assay_json_text(assay_str_get(s));
}

static json_t* counts_json(const assay_tuned_t* t, const assay_tune_trial_t* trial) {
  json_t* j = json_object();
  for (size_t f = 0; f < t->options.n_formats; f++)
    j = assay_json_put(j, name_of(t, f), json_integer((json_int_t)trial->count[f]));
  return j;
}

static json_t* errors_json(const assay_output_check_t* o, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++)
    list =
        assay_json_push(list, json_pack("{s:o, s:o}", "output", assay_json_text(o[i].value->name),
                                        "rms", assay_json_number(rms(&o[i]))));
  return list;
}

// Statistics that are required, predicted and measured.
static json_t* requirements_json(const assay_tuned_t* t, const assay_tune_trial_t* trial) {
  const assay_requirements_t* r = t->setting.require;
  json_t* list = json_array();
  for (size_t q = 0; r && q < r->n; q++)
    for (size_t o = 0; o < t->n_outputs; o++) {
      const char* name = NULL;
      double predicted = 0, measured = 0;
      if (!trial->outputs || !assay_require_value(&r->at[q], &trial->outputs[o], &name, &measured))
        continue;
      const bool known = trial->predicted &&
                         assay_require_value(&r->at[q], &trial->predicted[o], &name, &predicted);
      list = assay_json_push(
          list, json_pack("{s:o, s:o, s:s, s:o, s:o}", "demand", assay_json_text(r->at[q].text),
                          "output", assay_json_text(trial->outputs[o].value->name), "statistic",
                          name, "predicted", known ? assay_json_number(predicted) : json_null(),
                          "measured", assay_json_number(measured)));
    }
  return list;
}

static json_t* trial_json(const assay_tuned_t* t, const assay_tune_trial_t* trial) {
  json_t* j = json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o}", "layers", counts_json(t, trial), "milliseconds",
      assay_json_number(1e3 * trial->seconds), "predicted",
      trial->predicted ? errors_json(trial->predicted, t->n_outputs) : json_null(), "measured",
      trial->outputs ? errors_json(trial->outputs, t->n_outputs) : json_null(), "met",
      trial->outputs ? json_boolean(trial->met) : json_null(), "demands",
      requirements_json(t, trial));
  return j;
}

static json_t* trials_json(const assay_tuned_t* t, const assay_tune_trial_t* at, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, trial_json(t, &at[i]));
  return list;
}

static json_t* chosen_json(const assay_tuned_t* t, const assay_report_tune_t* n) {
  assay_str_t rules = {0}, trtexec = {0};
  if (!t->met) return json_null();
  const assay_tune_trial_t* c = &t->trials[t->chosen];
  assay_report_tune_rules(t, n->rules, &rules);
  assay_report_tune_trtexec(t, &trtexec);
  json_t *j = trial_json(t, c), *nodes = json_object();
  for (size_t f = 0; f < t->options.n_formats; f++)
    nodes = assay_json_put(nodes, name_of(t, f),
                           assay_report_labels_json(t->fixes[f].nodes, t->fixes[f].n_nodes));
  j = assay_json_put(j, "nodes", nodes);
  j = assay_json_put(j, "outputs", assay_report_outputs_json(c->outputs, t->n_outputs));
  j = assay_json_put(j, "precision", assay_json_text(assay_format_name(assay_report_tune_base(t))));
  j = assay_json_put(j, "layer_precision", text_of(&rules));
  j = assay_json_put(j, "trtexec", text_of(&trtexec));
  j = assay_json_put(j, "model", n->save ? assay_json_text(n->save) : json_null());
  j = assay_json_put(j, "plan", n->plan ? assay_json_text(n->plan) : json_null());
  assay_str_deinit(&rules);
  assay_str_deinit(&trtexec);
  return j;
}

static json_t* totals_json(const assay_tuned_t* t) {
  json_t* j = json_object();
  if (t->options.device) return json_decref(j), json_null();
  for (size_t f = 0; f < t->options.n_formats; f++)
    j = assay_json_put(j, name_of(t, f), assay_json_number(1e3 * t->total[f]));
  return j;
}

// null: this machine, whose times are measured.
static json_t* rates_json(const assay_tuned_t* t) {
  const assay_device_roofline_t* d = t->options.device;
  if (!d) return json_null();
  json_t* rates = json_pack("{s:o, s:o, s:o, s:o, s:o}", "fp32", assay_json_number(d->fp32), "tf32",
                            assay_json_number(d->tf32), "fp16", assay_json_number(d->fp16), "bf16",
                            assay_json_number(d->bf16), "fp8", assay_json_number(d->fp8));
  return json_pack("{s:o, s:o, s:o, s:o}", "name", assay_json_text(d->what), "tflops", rates,
                   "gigabytes_per_second", assay_json_number(d->gigabytes),
                   "microseconds_per_kernel", assay_json_number(d->microseconds));
}

assay_status_t assay_report_tune_json(const assay_tuned_t* t, const assay_report_tune_t* n,
                                      json_t** out) {
  const assay_tune_trial_t* last = &t->trials[t->met ? t->chosen : 0];
  json_t* requirements = NULL;
  ASSAY_TRY(assay_report_requirements_json(t->setting.require, last->outputs, t->n_outputs, NULL,
                                           &requirements));
  json_t* formats = json_array();
  for (size_t f = 0; f < t->options.n_formats; f++)
    formats = assay_json_push(formats, assay_json_text(name_of(t, f)));
  json_t* j = json_pack(
      "{s:s, s:o, s:s, s:o, s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}",
      "schema", "assay.tune/1", "model", assay_json_text(n->model), "target", n->target, "device",
      t->options.device ? assay_json_text(t->options.device->name) : json_null(), "formats",
      formats, "verdict", t->met ? "met" : "not possible", "goal",
      t->options.goal == ASSAY_TUNE_LAYERS ? "layers" : "time", "layers", (json_int_t)t->n_floats,
      "pinned", (json_int_t)t->n_pinned, "out_of_range", (json_int_t)t->n_out_of_range, "unknown",
      (json_int_t)t->unknown, "runs", (json_int_t)t->n_trials, "seconds",
      assay_json_number(n->seconds), "chosen", chosen_json(t, n), "trials",
      trials_json(t, t->trials, t->n_trials), "front", trials_json(t, t->front, t->n_front),
      "whole_runs", totals_json(t));
  j = assay_json_put(j, "requirements", requirements);
  j = assay_json_put(j, "golden_quantized", json_boolean(t->golden_quantized));
  j = assay_json_put(j, "device_rates", rates_json(t));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
