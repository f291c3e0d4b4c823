// The terminal's lines of an audit.
#include <math.h>
#include <string.h>

#include "formats/format.h"
#include "report/audit/audit_report.h"

static const char* place(const assay_hazard_t* h) {
  return h->node ? h->node->label : h->value ? h->value->name : "";
}

void assay_report_hazard(const assay_hazard_t* h, assay_str_t* out) {
  const char* format = assay_format_name(h->format);
  switch (h->kind) {
    case ASSAY_HAZARD_OVERFLOW:
      assay_str_printf(out, "overflow: up to %.4g, %s ends at %.6g", h->figure, format, h->limit);
      break;
    case ASSAY_HAZARD_ACCUMULATOR:
      if (h->limit == 2147483647.0)
        assay_str_printf(out, "overflow: its sums may be %.10g, int32 ends at 2147483647",
                         h->figure);
      else
        assay_str_printf(out, "overflow inside: sums up to %.4g, %s ends at %.6g", h->figure,
                         format, h->limit);
      break;
    case ASSAY_HAZARD_DIVISION:
      assay_str_printf(out, "division by zero: the divisor is in [%.4g, %.4g]",
                       fmin(h->figure, h->other), fmax(h->figure, h->other));
      break;
    case ASSAY_HAZARD_DOMAIN:
      assay_str_printf(out, "outside the domain: what it takes is in [%.4g, %.4g]",
                       fmin(h->figure, h->other), fmax(h->figure, h->other));
      break;
    case ASSAY_HAZARD_INVALID:
      assay_str_append(out, "NaN: infinities may meet there");
      break;
    case ASSAY_HAZARD_CAST:
      assay_str_printf(out, "cast out of range: %.10g, the type ends at %.10g", h->figure,
                       h->limit);
      break;
    case ASSAY_HAZARD_WRAP:
      assay_str_printf(out, "integer overflow: %.10g, the type ends at %.10g", h->figure, h->limit);
      break;
    case ASSAY_HAZARD_UNKNOWN:
      assay_str_append(out, "no range is known for this operator");
      break;
  }
}

// The first hazard that is one.
static const assay_hazard_t* first_hazard(const assay_ranges_t* r) {
  for (size_t i = 0; i < r->n_hazards; i++)
    if (r->hazards[i].kind != ASSAY_HAZARD_UNKNOWN) return &r->hazards[i];
  return r->n_hazards ? &r->hazards[0] : NULL;
}

static void headline(const assay_audit_t* a, const assay_audit_names_t* n, assay_str_t* out) {
  const char* in = strcmp(n->precision, "as declared") ? "in " : "";
  switch (assay_audit_verdict(a)) {
    case ASSAY_AUDIT_SAFE:
      assay_str_printf(out, "SAFE  %s %s%s: no NaN and no Inf for any input in the box\n", n->model,
                       in, n->precision);
      break;
    case ASSAY_AUDIT_UNSAFE:
      assay_str_printf(out, "UNSAFE  %s %s%s: an input in the box breaks '%s'\n", n->model, in,
                       n->precision, a->witness.node->label);
      break;
    case ASSAY_AUDIT_MAY_OVERFLOW:
      assay_str_printf(out, "MAY OVERFLOW  %s %s%s: not confirmed: '%s'\n", n->model, in,
                       n->precision, place(first_hazard(&a->ranges)));
      break;
    case ASSAY_AUDIT_NOT_KNOWN:
      assay_str_printf(out, "NOT KNOWN  %s %s%s: range analysis lacks %zu nodes\n", n->model, in,
                       n->precision, a->ranges.n_unknown);
      break;
  }
}

static void box_line(const assay_audit_t* a, assay_str_t* out) {
  static const char* const origins[] = {
      [ASSAY_BOX_ASSUMED] = "assumed: --box or --inputs say otherwise",
      [ASSAY_BOX_GIVEN] = "",
      [ASSAY_BOX_SAMPLES] = "the samples' range"};
  enum { MAX = 3 };
  size_t reported = 0, n = 0;
  for (size_t i = 0; i < a->box.n; i++) n += a->box.inputs[i].value != NULL;
  for (size_t i = 0; i < a->box.n && reported < MAX; i++) {
    const assay_box_input_t* in = &a->box.inputs[i];
    if (!in->value) continue;
    assay_str_printf(out, "  %-11s '%s' in [%.6g, %.6g]", reported++ ? "" : "box", in->value->name,
                     in->lo, in->hi);
    if (*origins[in->origin]) assay_str_printf(out, "   (%s)", origins[in->origin]);
    assay_str_append(out, "\n");
  }
  if (n > reported) assay_str_printf(out, "  %-11s and %zu more inputs\n", "", n - reported);
}

static void hazard_line(const char* word, const assay_hazard_t* h, assay_str_t* out) {
  assay_str_printf(out, "  %-11s %s", word, place(h));
  if (h->node) assay_str_printf(out, " (%s)", h->node->op_type);
  assay_str_append(out, "   ");
  assay_report_hazard(h, out);
  assay_str_append(out, "\n");
}

static void hazard_lines(const assay_audit_t* a, const assay_audit_names_t* n, assay_str_t* out) {
  const assay_ranges_t* r = &a->ranges;
  const size_t max = n->hazards ? r->n_hazards : 3;
  for (size_t i = 0; i < r->n_hazards && i < max; i++)
    hazard_line(i                                            ? ""
                : r->hazards[i].kind == ASSAY_HAZARD_UNKNOWN ? "unknown"
                                                             : "first",
                &r->hazards[i], out);
  if (r->n_hazards > max)
    assay_str_printf(out, "  %-11s %zu more layers that may (--hazards)\n", "", r->n_hazards - max);
}

static void witness_line(const assay_audit_t* a, const assay_audit_names_t* n, assay_str_t* out) {
  const assay_witness_t* w = &a->witness;
  if (w->found) {
    assay_str_printf(out, "  %-11s confirmed by running: '%s' (%s) gives %s", "witness",
                     w->node->label, w->node->op_type,
                     w->kind == ASSAY_HAZARD_INVALID    ? "NaN"
                     : w->kind == ASSAY_HAZARD_OVERFLOW ? "Inf"
                                                        : "a wrong number");
    if (isfinite(w->figure)) assay_str_printf(out, ", truth %.10g", w->figure);
    assay_str_printf(out, "%s\n", w->at_output ? "; it reaches an output" : "");
    if (n->witness) assay_str_printf(out, "  %-11s %s\n", "", n->witness);
  } else if (a->searched) {
    assay_str_printf(out, "  %-11s none found in %d runs: may overflow: not confirmed\n", "witness",
                     w->runs);
  }
}

static void radius_line(const assay_audit_t* a, const assay_audit_names_t* n, assay_str_t* out) {
  double r = 1;
  if (!a->has_radius) return;
  const bool ball = assay_box_is_ball(&a->box, &r);
  assay_str_printf(out, "  %-11s ", "largest");
  if (!(a->radius.scale > 0)) {
    assay_str_append(out, "no box around it is safe");
  } else {
    const bool all = a->radius.scale >= a->radius.max;
    if (ball)
      assay_str_printf(out, "safe in %s for |x| <= %.4g", n->precision, a->radius.scale * r);
    else
      assay_str_printf(out, "safe in %s for the box times %.4g", n->precision, a->radius.scale);
    if (all) assay_str_append(out, ": all that the inputs can hold");
  }
  if (a->radius.next.node) {
    assay_str_printf(out, "; next '%s' (%s)", a->radius.next.node->label,
                     a->radius.next.node->op_type);
  }
  assay_str_append(out, "\n");
}

// ---- the other audits ---------------------------------------------------------------------------

void assay_report_broadcast(const assay_broadcast_t* x, assay_str_t* out) {
  assay_str_printf(out, "input %zu %s to %s%s%s%s", x->input, x->from, x->to,
                   x->number ? "   a number" : "",
                   x->both && !x->number ? "   as another operand is" : "",
                   x->unsure ? "   if its size is 1" : "");
}

static void broadcast_lines(const assay_broadcasts_t* b, bool full, assay_str_t* out) {
  size_t both = 0;
  for (size_t i = 0; i < b->n; i++) both += b->at[i].both && !b->at[i].number;
  assay_str_printf(out, "  %-11s %zu implicit, %zu more of single numbers", "broadcasts",
                   b->n - b->n_plain, b->n_plain);
  if (both) assay_str_printf(out, "; in %zu both operands are stretched", both);
  assay_str_append(out, full || !b->n ? "\n" : " (--broadcasts)\n");
  for (size_t i = 0; full && i < b->n; i++) {
    const assay_broadcast_t* x = &b->at[i];
    assay_str_printf(out, "    %s (%s)   ", x->node->label, x->node->op_type);
    assay_report_broadcast(x, out);
    assay_str_append(out, "\n");
  }
  if (!b->n_baked) return;
  const size_t max = full ? b->n_baked : 2;
  for (size_t i = 0; i < b->n_baked && i < max; i++)
    assay_str_printf(out, "  %-11s %s (%s)   %s\n", i ? "" : "baked", b->baked[i].node->label,
                     b->baked[i].node->op_type, b->baked[i].why);
  if (b->n_baked > max)
    assay_str_printf(out, "  %-11s %zu more (--broadcasts)\n", "", b->n_baked - max);
}

void assay_report_constant(const assay_odd_constant_t* c, assay_str_t* out) {
  assay_str_printf(out, "%s '%s' of %s (%s): %.6g becomes %.6g",
                   c->value ? "constant" : "attribute", c->value ? c->value->name : c->attribute,
                   c->node->label, c->node->op_type, c->example, c->becomes);
  const int64_t n = c->past        ? c->past
                    : c->flushed   ? c->flushed
                    : c->subnormal ? c->subnormal
                                   : c->ones;
  if (c->n > 1) assay_str_printf(out, " (%lld of %lld elements)", (long long)n, (long long)c->n);
  assay_str_printf(out, "; %s", c->why);
}

static void constant_line(const assay_odd_constant_t* c, const char* word, assay_str_t* out) {
  assay_str_printf(out, "  %-11s ", word);
  assay_report_constant(c, out);
  assay_str_append(out, "\n");
}

static void constant_lines(const assay_odd_constants_t* c, bool full, assay_str_t* out) {
  if (!c->n) return;
  const size_t max = full ? c->n : c->n_matter < 2 ? c->n_matter : 2;
  for (size_t i = 0; i < max; i++) constant_line(&c->at[i], i ? "" : "constants", out);
  if (c->n > max)
    assay_str_printf(out, "  %-11s %zu %sthat %s cannot hold as %s (--constants)\n",
                     max ? "" : "constants", c->n - max, max ? "more " : "", "the format",
                     c->n - max == 1 ? "it is" : "they are");
}

static void support_lines(const assay_support_t* s, bool full, assay_str_t* out) {
  assay_str_printf(out, "  %-11s emu %zu of %zu nodes, cpu kernels %zu, TensorRT's list %zu",
                   "operators", s->n - s->emu_without, s->n, s->n - s->cpu_without,
                   s->n - s->trt_without);
  if (s->trt_restricted) assay_str_printf(out, " (%zu past a restriction)", s->trt_restricted);
  assay_str_append(out, full || (!s->cpu_without && !s->trt_without && !s->trt_restricted)
                            ? "\n"
                            : " (--operators)\n");
  for (size_t i = 0; full && i < s->n; i++) {
    const assay_node_support_t* x = &s->nodes[i];
    if (*x->cpu_why)
      assay_str_printf(out, "    %s (%s)   cpu: %s\n", x->node->label, x->node->op_type,
                       x->cpu_why);
    if (*x->trt_why)
      assay_str_printf(out, "    %s (%s)   TensorRT: %s\n", x->node->label, x->node->op_type,
                       x->trt_why);
  }
}

assay_status_t assay_report_audit_text(const assay_audit_t* a, const assay_audit_names_t* names,
                                       assay_str_t* out) {
  headline(a, names, out);
  box_line(a, out);
  hazard_lines(a, names, out);
  witness_line(a, names, out);
  radius_line(a, names, out);
  broadcast_lines(&a->broadcasts, names->broadcasts, out);
  constant_lines(&a->constants, names->constants, out);
  support_lines(&a->support, names->operators, out);
  return assay_str_status(out);
}
