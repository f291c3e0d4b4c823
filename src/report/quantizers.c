// What quantizers cost, as lines and as JSON.
#include <math.h>

#include "base/functions.h"
#include "io/json.h"
#include "report/report.h"

static double decibels(double loss) { return -10 * assay_log10(loss); }

// Whether something of it is to be told: a loss that is too large, or parts that were asked for.
static bool is_told(const assay_check_t* c) {
  return c->quantizers.n_outputs && (!c->quantizers.met || c->quantizers.measured);
}

bool assay_report_is_lossy(const assay_check_t* c) {
  return c->quantizers.n_outputs && !c->quantizers.met;
}

void assay_report_slices_line(const char* output, const assay_slices_found_t* f, assay_str_t* out) {
  if (f->dead)
    assay_str_printf(
        out,
        "  dead    '%s': %lld of %lld slices along axis %d are constant, such as %lld: "
        "%.4g, where it is from %.4g to %.4g\n",
        output, (long long)f->dead, (long long)f->slices, f->axis, (long long)f->first, f->got,
        f->ref_min, f->ref_max);
  else if (f->small && f->small_loss > 0.1)
    assay_str_printf(out,
                     "  slices  '%s': %lld of %lld along axis %d are below a hundredth of the "
                     "largest; of these",
                     output, (long long)f->small, (long long)f->slices, f->axis);
  if (!f->dead && f->small && f->small_loss > 0.1) {
    assay_report_decibels(out, " SNR", decibels(f->small_loss));
    assay_str_append(out, "\n");
  }
}

// Books have no scales that could be others.
static bool all_books(const assay_quantizers_t* q) {
  bool all = true;
  for (size_t i = 0; i < q->n; i++) all &= q->at[i].book;
  return all;
}

// Where nothing else is to be told: what golden and the model differ by, and why.
static void loss_lines(const assay_check_t* c, assay_str_t* out) {
  static const double NOTHING = 1e-4;  // 40 dB
  const bool books = all_books(&c->quantizers), told = is_told(c);
  for (size_t i = 0; i < c->quantizers.n_outputs; i++) {
    const assay_quantizer_output_t* o = &c->quantizers.outputs[i];
    if (!o->known || (!told && !(o->loss > NOTHING))) continue;
    assay_str_printf(out, "  loss    '%s': %s leave", o->value->name,
                     books ? "weights of a few numbers" : "quantizers");
    assay_report_decibels(out, " SNR", decibels(o->loss));
    if (books)
      assay_str_append(out, " of golden");
    else
      assay_report_decibels(out, " of golden, scales that fit", decibels(o->fitting));
    if (o->loss > o->allowed)
      assay_str_printf(out, "; at least %.1f dB are asked for", decibels(o->allowed));
    assay_str_append(out, "\n");
    assay_report_slices_line(o->value->name, &o->slices, out);
  }
}

static const char* part_of(const assay_quantizers_t* q, const assay_quantizer_site_t* s) {
  if (q->suspected && s->stored) return "golden";
  if (s->weight) return s->stored ? "rounding of weights, estimated" : "rounding of weights";
  return s->loss.clipping > s->loss.rounding ? "clipping" : "rounding";
}

void assay_report_quantizer_lines(const assay_check_t* c, assay_str_t* out) {
  enum { SHOWN = 4 };
  const assay_quantizers_t* q = &c->quantizers;
  size_t shown = 0, more = 0;
  loss_lines(c, out);
  if (!is_told(c)) return;
  if (q->suspected) {
    assay_str_append(out, "  loss    golden is");
    assay_report_decibels(out, " off by SNR", decibels(q->before));
    assay_report_decibels(out, ", with the change", decibels(q->after));
    assay_str_append(out, "\n");
  }
  for (size_t i = 0; i < q->n; i++) {
    const assay_quantizer_site_t* s = &q->at[i];
    if (!(s->loss.all > 0)) continue;
    if (shown == SHOWN || (shown && s->pattern == ASSAY_QUANTIZER_BITS && !q->met &&
                           q->at[0].pattern != ASSAY_QUANTIZER_BITS)) {
      more++;
      continue;
    }
    assay_str_printf(out, "  %-6s  %s   %s (%s: %.2g %% of an output)\n",
                     shown    ? "also"
                     : q->met ? "most"
                              : "origin",
                     s->node->label, s->why, part_of(q, s), 100 * sqrt(s->loss.all));
    shown++;
  }
  if (more)
    assay_str_printf(out, "  also    %zu more %s\n", more, more == 1 ? "quantizer" : "quantizers");
  if (q->cut_short)
    assay_str_append(out, "  note    not all quantizers were measured; --search-time gives more\n");
}

void assay_report_quantizer_fix(const assay_check_t* c, const assay_report_names_t* n,
                                assay_str_t* out) {
  const assay_quantizers_t* q = &c->quantizers;
  size_t shown = 0;
  if (!assay_report_is_lossy(c) || c->options.no_fix) return;
  if (!q->n_changed) {
    assay_str_append(out, "  fix     none found; quantize the float model anew\n");
    return;
  }
  for (size_t i = 0; i < q->n; i++) {
    char text[ASSAY_QUANTIZER_WHY];
    if (q->change[i] == ASSAY_QUANTIZER_KEPT) continue;
    assay_quantizer_describe(&q->at[i], q->change[i], text, sizeof text);
    assay_str_printf(out, "  %s  %s: %s\n", shown++ ? "      " : "fix   ", q->at[i].node->label,
                     text);
  }
  assay_str_printf(out, "          %s: ",
                   q->verified && (!n->repairs || n->repairs_hold) ? "verified" : "NOT verified");
  const char* separator = "";
  for (size_t i = 0; q->fixed && i < q->n_outputs; i++) {
    if (!q->outputs[i].known && !q->fixed[i].has_golden) continue;
    assay_str_printf(out, "%s'%s'", separator, q->outputs[i].value->name);
    assay_report_decibels(out, " SNR", assay_error_sum_snr_db(&q->fixed[i].engine_golden));
    assay_str_append(out, " of golden");
    separator = "; ";
  }
  assay_str_append(out, "\n");
  if (n->n_files)
    assay_str_printf(out, "          %s\n", n->files[0]);
  else if (n->to_write)
    assay_str_printf(out, "          as files: %s\n", n->to_write);
  if (n->repair_error)
    assay_str_printf(out, "          the changed model cannot be run: %s\n", n->repair_error);
}

// ---- JSON --------------------------------------------------------------------------------------

static const char* change_name(assay_quantizer_change_t c) {
  static const char* const names[] = {"kept", "scale", "channel_scales", "float", "pair", "pair"};
  return names[c];
}

static json_t* numbers(const double* x, int64_t n) {
  json_t* list = json_array();
  for (int64_t i = 0; i < n; i++) list = assay_json_push(list, assay_json_number(x[i]));
  return list;
}

static json_t* scales(const assay_quantizer_scales_t* s) {
  if (!s->n) return json_null();
  return json_pack("{s:i, s:o, s:o, s:s?}", "axis", s->axis, "scale", numbers(s->scale, s->n),
                   "zero_point", numbers(s->zero, s->n), "chosen_by", s->how);
}

static json_t* site(const assay_quantizers_t* q, size_t i) {
  const assay_quantizer_site_t* s = &q->at[i];
  const assay_quantizer_change_t change = q->change ? q->change[i] : ASSAY_QUANTIZER_KEPT;
  char text[ASSAY_QUANTIZER_WHY] = "";
  if (change != ASSAY_QUANTIZER_KEPT) assay_quantizer_describe(s, change, text, sizeof text);
  json_t* loss = json_pack("{s:o, s:o, s:o, s:o, s:o}", "all", assay_json_number(s->loss.all),
                           "weight_rounding", assay_json_number(s->loss.weight), "clipping",
                           assay_json_number(s->loss.clipping), "rounding",
                           assay_json_number(s->loss.rounding), "by_scales_that_fit",
                           assay_json_number(s->loss.fitting));
  json_t* j = json_pack(
      "{s:o, s:o, s:o, s:s, s:s, s:s, s:o}", "node", assay_json_text(s->node->label), "dequantize",
      assay_json_text(s->dequantize->label), "value", assay_json_text(s->value->name), "of",
      s->weight ? "weight" : "activation", "type", assay_type_name(s->type), "pattern",
      assay_quantizer_pattern_name(s->pattern), "why", assay_json_text(s->why));
  j = assay_json_put(j, "estimated", json_boolean(s->stored));
  j = assay_json_put(j, "loss", loss);
  j = assay_json_put(j, "min", assay_json_number(s->min));
  j = assay_json_put(j, "max", assay_json_number(s->max));
  j = assay_json_put(j, "outside", json_integer((json_int_t)s->outside));
  j = assay_json_put(j, "elements", json_integer((json_int_t)s->elements));
  j = assay_json_put(j, "has", scales(&s->has));
  j = assay_json_put(j, "fits", scales(&s->fits));
  j = assay_json_put(j, "change", json_string(change_name(change)));
  return assay_json_put(j, "repair", *text ? assay_json_text(text) : json_null());
}

static json_t* output(const assay_quantizer_output_t* o) {
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "output", assay_json_text(o->value->name),
                   "snr_db", assay_json_number(decibels(o->loss)), "weights_snr_db",
                   assay_json_number(decibels(o->weight)), "fitting_snr_db",
                   assay_json_number(decibels(o->fitting)), "asked_snr_db",
                   assay_json_number(decibels(o->allowed)), "slices",
                   assay_report_slices_json(&o->slices));
}

json_t* assay_report_quantizers_json(const assay_check_t* c) {
  const assay_quantizers_t* q = &c->quantizers;
  if (!q->n_outputs) return json_null();
  json_t *outputs = json_array(), *sites = json_array();
  for (size_t i = 0; i < q->n_outputs; i++)
    if (q->outputs[i].known) outputs = assay_json_push(outputs, output(&q->outputs[i]));
  for (size_t i = 0; q->measured && i < q->n; i++) sites = assay_json_push(sites, site(q, i));
  return json_pack("{s:b, s:o, s:o, s:b, s:i, s:b, s:i}", "met", q->met, "outputs", outputs,
                   "quantizers", sites, "cut_short", q->cut_short, "changed", (int)q->n_changed,
                   "verified", q->verified, "runs", q->runs);
}

// Quantizers that a better scale or none would mend, in the form of culprits.
json_t* assay_report_quantizer_culprits(const assay_check_t* c, json_t* culprits) {
  const assay_quantizers_t* q = &c->quantizers;
  for (size_t i = 0; assay_report_is_lossy(c) && q->measured && i < q->n; i++) {
    const assay_quantizer_site_t* s = &q->at[i];
    json_t* nodes = json_array();
    if (!(s->loss.all > 0)) {
      json_decref(nodes);
      continue;
    }
    nodes = assay_json_push(nodes, assay_json_text(s->node->label));
    if (s->dequantize != s->node)
      nodes = assay_json_push(nodes, assay_json_text(s->dequantize->label));
    culprits = assay_json_push(
        culprits,
        json_pack("{s:o, s:s, s:o, s:s, s:o, s:o, s:b, s:s}", "nodes", nodes, "op",
                  s->node->op_type, "value", assay_json_number(s->max), "verdict", "quantizer",
                  "why", assay_json_text(s->why), "share", assay_json_number(s->loss.all), "born",
                  1, "cause", assay_quantizer_pattern_name(s->pattern)));
  }
  return culprits;
}

json_t* assay_report_quantizer_fix_json(const assay_check_t* c, const assay_report_names_t* n) {
  const assay_quantizers_t* q = &c->quantizers;
  json_t *nodes = json_array(), *files = json_array();
  const bool holds = q->verified && (!n->repairs || n->repairs_hold);
  for (size_t i = 0; i < q->n; i++)
    if (q->change[i] != ASSAY_QUANTIZER_KEPT)
      nodes = assay_json_push(nodes, assay_json_text(q->at[i].node->label));
  for (size_t i = 0; i < n->n_files; i++)
    files = assay_json_push(files, assay_json_text(n->files[i]));
  return json_pack(
      "{s:s, s:o, s:n, s:n, s:{s:s, s:o}, s:o, s:o}", "kind", "quantizers", "nodes", nodes,
      "layer_precision", "trtexec", "verified", "verdict", holds ? "faithful" : "unfaithful",
      "outputs", q->fixed ? assay_report_outputs_json(q->fixed, c->n_outputs) : json_null(),
      "files", files, "command", n->to_write ? assay_json_text(n->to_write) : json_null());
}
