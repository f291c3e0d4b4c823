// The terminal's lines.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "account/external.h"
#include "formats/format.h"
#include "plan/plan.h"
#include "report/report.h"

static void headline(const assay_check_t* c, const assay_report_names_t* n, assay_str_t* out) {
  assay_str_printf(out, "%s  %s", c->faithful ? "FAITHFUL" : "UNFAITHFUL", n->model);
  if (strcmp(n->precision, "as declared") == 0)
    assay_str_printf(out, " as declared on %s", n->target);
  else
    assay_str_printf(out, " in %s on %s", n->precision, n->target);
  const char* separator = ": ";
  bool any = false;  // is at fault by itself
  for (size_t i = 0; i < c->n_outputs; i++) any |= !c->outputs[i].faithful;
  for (size_t i = 0; i < c->n_outputs && i < 4; i++) {
    if (any && c->blame != ASSAY_BLAME_EXPORT && c->outputs[i].faithful) continue;
    assay_str_append(out, separator);
    assay_report_output(&c->outputs[i], out);
    separator = "; ";
  }
  if (c->n_samples > 1) assay_str_printf(out, "  (%zu samples)", c->n_samples);
  assay_str_append(out, "\n");
}

// What truth cannot answer for, before what was found by it.
static void unfinite_lines(const assay_check_t* c, assay_str_t* out) {
  if (c->unfinite_inputs.len)
    assay_str_printf(out, "  inputs  not finite: %s\n", assay_str_get(&c->unfinite_inputs));
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_error_sum_t* e = &c->outputs[i].error;
    if (e->ref_nan || e->ref_inf)
      assay_str_printf(
          out, "  truth   not finite: '%s' holds %s in %s places\n", c->outputs[i].value->name,
          assay_unfinite_text(e->ref_nan, e->ref_inf, (char[96]){0}, 96), ASSAY_GROUPED(e->n));
  }
}

// Golden against the hardware that the engine is like.
static void bits_line(const assay_check_t* c, const assay_output_check_t* o, assay_str_t* out) {
  const char* of = strrchr(c->options.backend->name, ':');
  if (!o->bits_of || !of) return;
  assay_str_printf(out, "  %-7s '%s': golden ", of + 1, o->value->name);
  if (!o->bits_differ)
    assay_str_printf(out, "is equal to what %s computes, bit for bit, in all %s elements\n", of + 1,
                     ASSAY_GROUPED(o->bits_of));
  else if (o->bits_ulps == INT64_MAX)
    assay_str_printf(out,
                     "differs from what %s computes in %s of %s elements, NaN and infinities among "
                     "them\n",
                     of + 1, ASSAY_GROUPED(o->bits_differ), ASSAY_GROUPED(o->bits_of));
  else
    assay_str_printf(
        out, "differs from what %s computes in %s of %s elements, by at most %s ulp%s of %s\n",
        of + 1, ASSAY_GROUPED(o->bits_differ), ASSAY_GROUPED(o->bits_of),
        ASSAY_GROUPED(o->bits_ulps), o->bits_ulps == 1 ? "" : "s", assay_format_name(o->bits));
}

static void golden_lines(const assay_check_t* c, assay_str_t* out) {
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_output_check_t* o = &c->outputs[i];
    if (!o->has_golden) continue;
    assay_str_printf(out, "  golden  '%s': truth", o->value->name);
    assay_report_decibels(out, " SNR", assay_error_sum_snr_db(&o->golden));
    assay_str_printf(
        out, ", max abs %.3g of %.3g%s\n", o->golden.max_abs, o->golden.ref_max,
        c->blame == ASSAY_BLAME_EXPORT ? ": the export is to blame, not the precision" : "");
    bits_line(c, o, out);
  }
  if (c->golden_quantized)
    assay_str_append(out, "          golden fits the model with its quantizers, not without\n");
  assay_report_arithmetic_lines(&c->golden_arithmetic, out);
  assay_report_rounded_lines(c, out);
}

// What the engine's outputs are off by, where that is nobody's fault.
static void steps_line(const assay_check_t* c, assay_str_t* out) {
  if (!c->steps.elements) return;
  assay_str_printf(out,
                   "  note    near ties: %zu %s %s to the other integer than truth; with these "
                   "steps truth agrees\n",
                   c->steps.quantizers,
                   c->steps.quantizers == 1 ? "quantizer rounds" : "quantizers round",
                   c->steps.elements == 1 ? "an element" : "elements");
}

// A node that outputs alone do not show for sure, with those that are likely besides.
static void guess_line(const assay_fault_t* f, assay_str_t* out) {
  static const double SURE = 0.5;
  if (!(f->probability > 0) || f->probability >= SURE) return;
  assay_str_printf(out, "          a guess, of probability %.2g", f->probability);
  for (size_t i = 0; i < f->n_rivals; i++)
    assay_str_printf(out, "%s%s", i ? ", " : "; or ", f->rivals[i]->label);
  assay_str_append(out, "\n");
}

static void values(const assay_value_t* const* v, size_t n, const char* none, assay_str_t* out) {
  if (!n) assay_str_append(out, none);
  for (size_t i = 0; i < n; i++) assay_str_printf(out, "%s'%s'", i ? ", " : "", v[i]->name);
}

// The part of the graph that the fault is in, where no single node explains it.
static void region_line(const assay_region_t* r, assay_str_t* out) {
  if (r->n_nodes < 2) return;
  assay_str_printf(out, "          region: %zu nodes from ", r->n_nodes);
  values(r->from, r->n_from, "the inputs", out);
  assay_str_append(out, " to ");
  values(r->to, r->n_to, "the outputs", out);
  assay_str_printf(out, ", of probability %.2g%s\n", r->probability,
                   r->agreeing ? "; other outputs agree with golden" : "");
}

static void fault_line(const assay_fault_t* f, const char* word, assay_str_t* out) {
  assay_str_printf(out, "  %-6s  %s (%s)   ", word, f->node->label, f->node->op_type);
  if (f->shape)
    assay_str_printf(out, "'%s' has another shape than golden", f->value->name);
  else if (f->difference.mismatched)
    assay_str_printf(out, "'%s' differs from golden in %s of %s places", f->value->name,
                     ASSAY_GROUPED(f->difference.mismatched), ASSAY_GROUPED(f->difference.n));
  else
    assay_str_printf(out, "'%s' differs from golden by RMS %.3g, where rounding explains %.2g",
                     f->value->name, f->difference.rms, f->explained);
  assay_str_append(out, "\n");
  if (f->has_repair)
    assay_str_printf(out, "          %s: %s%s\n", f->repair.cause, f->repair.text,
                     f->restored ? "" : " (reduces the error but does not remove it)");
  if (f->damaged)
    assay_str_printf(out, "          '%s' looks damaged: %s\n", f->damaged->name, f->damage);
  guess_line(f, out);
  region_line(&f->region, out);
}

// How to get the files that nobody asked for yet.
static void write_line(const assay_report_names_t* n, assay_str_t* out) {
  if (n->to_write) assay_str_printf(out, "          as files: %s\n", n->to_write);
}

static void export_lines(const assay_check_t* c, const assay_report_names_t* n, assay_str_t* out) {
  enum { SHOWN = 5 };
  const assay_export_t* e = &c->export;
  for (size_t i = 0; i < e->n && i < SHOWN; i++)
    fault_line(&e->faults[i], i ? "also" : "export", out);
  if (e->n > SHOWN) assay_str_printf(out, "  also    %zu more values differ\n", e->n - SHOWN);
  if (n->repairs && !c->quantizers.n_changed) {
    assay_str_append(out, "  repair  ");
    if (n->n_files) assay_str_printf(out, "%s   ", n->files[0]);
    assay_str_printf(
        out, "%zu %s, %s\n", n->repairs, n->repairs == 1 ? "node changed" : "nodes changed",
        n->repairs_hold ? "verified: its truth agrees with golden" : "which leaves differences");
    write_line(n, out);
  }
  if (n->repair_error && !c->quantizers.n_changed)
    assay_str_printf(out, "  repair  none: the model with these changes cannot be run: %s\n",
                     n->repair_error);
  if (e->cut_short)
    assay_str_append(
        out, "  note    the search for causes ran out of time; --search-time gives it more\n");
}

static const char* layer_name(const assay_layer_account_t* a) {
  return a->layer ? a->layer->name : a->node->label;
}

static void risk_lines(const assay_check_t* c, const assay_report_names_t* names,
                       assay_str_t* out) {
  const assay_layer_account_t* worst = NULL;
  size_t n = 0;
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (!a->at_risk.value) continue;
    n++;
    if (!worst || a->at_risk.max > worst->at_risk.max) worst = a;
  }
  if (!worst) return;
  assay_str_printf(out,
                   "  risk    %zu fused %s values past the range of %s, up to %.3g ('%s' in %s);\n"
                   "          %s keeps them wider, another engine may not\n",
                   n, n == 1 ? "layer hides" : "layers hide",
                   assay_format_name(worst->layer->format), worst->at_risk.max,
                   worst->at_risk.value->name, layer_name(worst), names->target);
}

// Layers of another engine that approximate.
static void less_accurate_lines(const assay_check_t* c, assay_str_t* out) {
  const assay_layer_account_t* worst = NULL;
  size_t n = 0;
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (a->verdict != ASSAY_VERDICT_LESS_ACCURATE) continue;
    n++;
    if (!worst || assay_external_units(a) > assay_external_units(worst)) worst = a;
  }
  if (worst)
    assay_str_printf(out,
                     "  note    %zu %s less accurate than IEEE arithmetic, harmless here: %s is "
                     "off by up to %.2g,\n          %.2g units of its full scale\n",
                     n, n == 1 ? "layer is" : "layers are", layer_name(worst), worst->own.max_abs,
                     assay_external_units(worst));
}

// Layers that make small errors large, and which input's.
static void amplified_lines(const assay_check_t* c, assay_str_t* out) {
  const assay_layer_account_t* worst = NULL;
  size_t n = 0;
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    if (!a->perturbations.n) continue;
    n++;
    if (!worst || a->perturbations.at[0].condition > worst->perturbations.at[0].condition)
      worst = a;
  }
  if (!worst) return;
  const assay_perturbation_t* p = &worst->perturbations.at[0];
  assay_str_printf(
      out,
      "  note    %zu %s ill-conditioned; most of all %s: an error of %.2g in '%s' leaves as "
      "%.2g,\n          %.0f times as much\n",
      n, n == 1 ? "layer is" : "layers are", layer_name(worst), p->in, p->value->name, p->out,
      p->condition);
}

// Tactics that needed an accuracy gate for fp32, and those that did not keep it on these inputs.
static void accuracy_gate_lines(const assay_check_t* c, assay_str_t* out) {
  const assay_layer_account_t* broken = NULL;
  size_t n = 0, n_broken = 0;
  double worst = 0, rms = 0;
  for (size_t i = 0; i < assay_account_layer_count(c->account); i++) {
    const assay_layer_account_t* a = assay_account_layer(c->account, i);
    const assay_gated_t* l = &a->gated;
    if (!l->here) continue;
    n++;
    if (l->plain2 > 0) worst = fmax(worst, l->own2 / l->plain2);
    if (l->plain2 > 0) rms += l->own2 / l->plain2;
    if (assay_gated_holds(l)) continue;
    n_broken++;
    if (!broken) broken = a;
  }
  if (!n) return;
  assay_str_printf(
      out,
      "  fp32    %s: %zu %s own error is %.2g of plain's, root mean square, at most "
      "%.2g\n",
      assay_fp32_name(assay_plan_layers(c->plan)->fp32), n,
      n == 1 ? "layer uses a faster kernel, whose" : "layers use faster kernels, whose",
      sqrt(rms / (double)n), sqrt(worst));
  if (broken)
    assay_str_printf(out,
                     "  note    on these inputs %zu of them %s not keep what %s asks, first %s: "
                     "build with --fp32 %s\n",
                     n_broken, n_broken == 1 ? "does" : "do",
                     assay_fp32_name(broken->gated.gate.asks), layer_name(broken),
                     broken->gated.gate.asks == ASSAY_FP32_BOUND ? "tight" : "plain");
}

// Another order of float64 sums moves truth, too, and says nothing of the passes.
static const double ROUNDING_OF_TRUTH = 1e-13;

static void rewriting_lines(const assay_check_t* c, assay_str_t* out) {
  const assay_risk_t* first = c->folded.at;
  if (c->folded.n)
    assay_str_printf(
        out, "  note    %zu %s made by folding %s past the range of %s, such as '%s' (pass %s)\n",
        c->folded.n, c->folded.n == 1 ? "constant" : "constants", c->folded.n == 1 ? "is" : "are",
        assay_format_name(first->format), first->value->name, first->pass);
  if (c->rewriting_mismatched)
    assay_str_printf(out, "  note    rewriting changed truth in %s places\n",
                     ASSAY_GROUPED(c->rewriting_mismatched));
  else if (c->rewriting > ROUNDING_OF_TRUTH)
    assay_str_printf(out, "  note    rewriting moved truth by %.2g of an output's largest value\n",
                     c->rewriting);
}

static void culprit_lines(const assay_check_t* c, assay_str_t* out) {
  enum { SHOWN = 4 };
  size_t shown = 0, later = 0;
  for (size_t i = 0; i < c->culprits.n; i++) {
    const assay_culprit_t* u = &c->culprits.at[i];
    if (shown == SHOWN || (i && !u->seen)) {
      later++;
      continue;
    }
    assay_str_printf(out, "  %-6s  %s   %s", i ? "also" : "origin", layer_name(u->account), u->why);
    if (u->share > 0) assay_str_printf(out, " (%.0f %% of the output's error)", 100 * u->share);
    assay_str_append(out, "\n");
    assay_report_shown(u->constant, out);
    shown++;
  }
  const bool overflows = c->culprits.n && c->culprits.at[0].verdict == ASSAY_VERDICT_OVERFLOW;
  if (!later && !c->culprits.n_behind) return;
  assay_str_append(out, "  also    ");
  if (later) assay_str_printf(out, "%zu more %s", later, later == 1 ? "layer" : "layers");
  if (later && c->culprits.n_behind) assay_str_append(out, " and ");
  if (c->culprits.n_behind)
    assay_str_printf(out, "%zu %s after them", c->culprits.n_behind,
                     c->culprits.n_behind == 1 ? "layer" : "layers");
  if (overflows || c->culprits.n_behind) {
    const assay_format_t stored = c->culprits.n ? c->culprits.at[0].account->storage : 0;
    const assay_format_info_t* f = assay_format_info(stored ? stored : c->options.precision.format);
    assay_str_printf(out, " %s %.6g, where %s ends",
                     later + c->culprits.n_behind == 1 ? "passes" : "pass", f->max, f->name);
  }
  assay_str_append(out, "\n");
}

// The longest common shape of the labels: "/a/*/x/*" if they share start and end; "" if they share
// too little.
static void common_pattern(const assay_fix_t* f, char* out, size_t capacity) {
  const char* first = f->nodes[0]->label;
  size_t head = strlen(first);
  for (size_t i = 1; i < f->n_nodes; i++) {
    const char* label = f->nodes[i]->label;
    size_t k = 0;
    while (k < head && label[k] == first[k]) k++;
    head = k;
  }
  while (head && first[head - 1] != '/' && f->n_nodes > 1) head--;
  snprintf(out, capacity, "%.*s%s", (int)head, first, f->n_nodes > 1 ? "*" : "");
}

// The layers from which most of an output's error comes, where the reader asked for them or has no
// other culprit.
static void share_lines(const assay_check_t* c, assay_str_t* out) {
  const assay_shares_t* s = &c->shares;
  if (!c->options.shares || !s->n) return;
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  for (size_t o = 0; o < s->n_outputs && o < 4; o++) {
    assay_str_printf(out, "  shares  '%s':", c->outputs[o].value->name);
    double limit = (double)INFINITY;
    for (int k = 0; k < 3; k++) {
      const assay_layer_range_t* maximum = NULL;
      for (size_t i = 0; i < s->n; i++)
        if (s->at[i].share[o] < limit && (!maximum || s->at[i].share[o] > maximum->share[o]))
          maximum = &s->at[i];
      if (!maximum || maximum->share[o] <= 0) break;
      limit = maximum->share[o];
      assay_str_printf(out, "%s %.0f %% %s", k ? "," : "", 100 * maximum->share[o],
                       layers->layers[maximum->first].name);
      if (maximum->end > maximum->first + 1)
        assay_str_printf(out, " to %s", layers->layers[maximum->end - 1].name);
    }
    assay_str_append(out, "\n");
  }
}

static void fix_lines(const assay_check_t* c, const assay_report_names_t* n, assay_str_t* out) {
  const assay_fix_t* f = &c->fix;
  if (assay_report_is_lossy(c)) {
    assay_report_quantizer_fix(c, n, out);
    return;
  }
  if (c->front.wide && !c->has_fix) {
    assay_report_unmended_lines(c->front.wide, c->n_outputs, "fix", out);
    return;
  }
  if (!c->has_fix || !f->n_nodes) {
    if (!c->faithful && c->blame == ASSAY_BLAME_PRECISION && !c->options.no_fix &&
        !c->options.backend->external)
      assay_str_append(
          out, strcmp(n->precision, "as declared") != 0
                   ? "  fix     none found; try bf16, or fp32\n"
                   : "  fix     none found; check the fp32 model that this one was made from\n");
    return;
  }
  char pattern[256];
  common_pattern(f, pattern, sizeof pattern);
  assay_str_printf(out, "  fix     %zu %s", f->n_nodes, f->n_nodes == 1 ? "node" : "nodes");
  if (f->n_nodes == 1)
    assay_str_printf(out, " '%s'", f->nodes[0]->label);
  else if (strlen(pattern) > 2)
    assay_str_printf(out, " below '%s'", pattern);
  assay_str_printf(out, " in %s   %s", assay_format_name(f->format),
                   f->verified ? "verified" : "NOT verified");
  for (size_t i = 0; f->outputs && i < c->n_outputs && i < 2; i++) {
    assay_str_append(out, i ? "; " : ": ");
    assay_report_output(&f->outputs[i], out);
  }
  assay_str_append(out, "\n");
  assay_report_unmended_lines(c->front.wide, c->n_outputs, "note", out);
  assay_report_front_lines(&c->front, f, out);
  for (size_t i = n->repairs ? 1 : 0; i < n->n_files; i++)
    assay_str_printf(
        out, "          %s%s\n", n->files[i],
        i + 1 == n->n_files ? "   (--fix-file, and --layerPrecisions for trtexec)" : "");
  if (!n->repairs) write_line(n, out);
}

static bool is_blamed(const assay_check_t* c, const assay_odd_constant_t* x) {
  for (size_t i = 0; i < c->mended.lost.n; i++)
    if (c->mended.lost.at[i].odd == x) return c->mended.lost.at[i].to_blame;
  return false;
}

// What the audits (`assay audit`) found that may show at other inputs or another batch.
static void audit_lines(const assay_check_t* c, assay_str_t* out) {
  size_t n = 0;
  const assay_odd_constant_t* first = NULL;
  for (size_t i = 0; i < c->odd_constants.n; i++) {
    const assay_odd_constant_t* x = &c->odd_constants.at[i];
    if (!x->matters || !x->flushed || is_blamed(c, x)) continue;
    if (!n++) first = x;
  }
  if (first)
    assay_str_printf(out, "  note    %zu %s to 0 in %s, such as %.3g of '%s': %s\n", n,
                     n == 1 ? "constant is rounded" : "constants are rounded",
                     assay_format_name(first->format), first->example, first->node->label,
                     first->why);
  n = 0;
  for (size_t i = c->broadcasts.n_baked; i-- > 0;) n += c->broadcasts.baked[i].silent;
  for (size_t i = 0; n && i < c->broadcasts.n_baked; i++) {
    const assay_baked_t* b = &c->broadcasts.baked[i];
    if (!b->silent) continue;
    assay_str_printf(out, "  note    '%s' (%s) %s\n", b->node->label, b->node->op_type, b->why);
    break;
  }
}

assay_status_t assay_report_text(const assay_check_t* c, const assay_report_names_t* n,
                                 assay_str_t* out) {
  headline(c, n, out);
  unfinite_lines(c, out);
  for (size_t i = 0; c->dead && i < c->n_outputs; i++) {
    const assay_slices_found_t f = assay_slices_judge(c->outputs[i].slices);
    if (f.dead) assay_report_slices_line(c->outputs[i].value->name, &f, out);
  }
  golden_lines(c, out);
  steps_line(c, out);
  export_lines(c, n, out);
  assay_report_undone_lines(&c->undone, out);
  if (c->unmet.len) assay_str_printf(out, "  unmet   %s\n", assay_str_get(&c->unmet));
  assay_report_quantizer_lines(c, out);
  share_lines(c, out);
  if (!c->faithful) {
    culprit_lines(c, out);
    assay_str_printf(out, "  blame   %s\n", assay_blame_name(c->blame));
  }
  if (c->n_absorbed)
    assay_str_printf(out,
                     "  note    %zu %s with overflow, underflow or flips that no output shows\n",
                     c->n_absorbed, c->n_absorbed == 1 ? "layer" : "layers");
  if (c->constants_out_of_range)
    assay_str_printf(
        out, "  note    %zu %s past the range of %s, such as '%s'\n", c->constants_out_of_range,
        c->constants_out_of_range == 1 ? "constant" : "constants",
        assay_format_name(c->options.precision.format), c->first_constant_out_of_range);
  audit_lines(c, out);
  less_accurate_lines(c, out);
  amplified_lines(c, out);
  risk_lines(c, n, out);
  accuracy_gate_lines(c, out);
  rewriting_lines(c, out);
  fix_lines(c, n, out);
  assay_report_mended(c, n->mended, out);
  return assay_str_status(out);
}
