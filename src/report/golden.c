// What golden is: computed in another arithmetic than float32, or of a network whose layers the
// exporter folded.
#include "base/functions.h"
#include "check/rounded_golden.h"
#include "diagnose/kinds/arithmetic.h"
#include "diagnose/quantizers/states.h"
#include "report/report.h"

static const char* advice_of(const assay_golden_arithmetic_t* a) {
  if (a->format == ASSAY_FORMAT_TF32)
    return "torch.backends.cudnn.allow_tf32 = False, torch.backends.cuda.matmul.allow_tf32 = False";
  if (a->scope == ASSAY_ARITHMETIC_WEIGHTS || a->scope == ASSAY_ARITHMETIC_CONSTANTS)
    return "run the network with the weights that were exported";
  if (a->scope == ASSAY_ARITHMETIC_INPUTS) return "give the network the inputs that the model gets";
  if (a->scope == ASSAY_ARITHMETIC_OPERANDS && a->format == ASSAY_FORMAT_BF16)
    return "jax.config.update('jax_default_matmul_precision', 'highest') or the like";
  return "run the network in float32, without autocast";
}

void assay_report_arithmetic_lines(const assay_golden_arithmetic_t* a, assay_str_t* out) {
  if (a->format == ASSAY_FORMAT_NONE) return;
  assay_str_printf(out,
                   "          golden seems to have been computed %s: differences up to the error "
                   "of that\n          arithmetic say nothing against the export; for more exact "
                   "golden: %s\n",
                   assay_golden_arithmetic_text(a), advice_of(a));
}

// "weights", "values" or both, by what was rounded.
static const char* rounded_what(const assay_rounded_weights_t* r) {
  const bool weights = r->n || r->n_before > r->n_steps;
  return !r->n_steps ? "weights" : weights ? "weights and values" : "values";
}

static void before_rounding_lines(const assay_rounded_weights_t* r, assay_str_t* out) {
  assay_str_printf(
      out, "          golden seems to be of the network before quantization rounded its %s (",
      rounded_what(r));
  if (r->n)
    assay_str_printf(out, "%zu constant%s: %s", r->n, r->n == 1 ? "" : "s", assay_rounded_text(r));
  if (r->n_before)
    assay_str_printf(out, "%s%zu quantizer%s that nodes spell out", r->n ? "; " : "", r->n_before,
                     r->n_before == 1 ? "" : "s");
  assay_str_printf(out, "):\n          half a step of each explains such a difference\n");
}

void assay_report_rounded_lines(const assay_check_t* c, assay_str_t* out) {
  if (c->golden_rounded) before_rounding_lines(&c->rounded, out);
  for (size_t i = 0; i < c->n_outputs; i++) {
    const double loss = assay_check_rounding_loss(c, i);
    if (!(loss > 0)) continue;
    assay_str_printf(out, "  loss    '%s': ", c->outputs[i].value->name);
    if (c->golden_rounded)
      assay_str_printf(out, "the rounding of %s leaves", rounded_what(&c->rounded));
    else
      assay_str_append(out, "few bits leave");
    assay_report_decibels(out, " SNR", -10 * assay_log10(loss));
    assay_str_printf(out, " of golden%s\n",
                     loss > ASSAY_LOSS_MOST ? "; at least 10 dB are asked for" : "");
  }
}

static void undone_line(const assay_undone_value_t* u, assay_str_t* out) {
  const double factor = assay_undone_factor(u);
  assay_str_printf(out, "  note    '%s' of %s (%s) ", u->value->name, u->node->label,
                   u->node->op_type);
  if (factor != 0)
    assay_str_printf(out, "is golden's times %.7g", factor);
  else
    assay_str_printf(out, "differs from golden by RMS %.3g of %.3g", u->rms, u->ref_rms);
  assay_str_append(out, u->shown ? ": later layers undo it, all outputs agree with golden\n"
                                 : ": no output shows it on these inputs, others may\n");
}

void assay_report_undone_lines(const assay_undone_t* u, assay_str_t* out) {
  enum { SHOWN = 4 };
  for (size_t i = 0; i < u->n && i < SHOWN; i++) undone_line(&u->at[i], out);
  if (u->n > SHOWN) assay_str_printf(out, "  note    %zu more such values\n", u->n - SHOWN);
}

json_t* assay_report_undone_json(const assay_undone_t* u) {
  json_t* all = json_array();
  for (size_t i = 0; all && i < u->n; i++) {
    const assay_undone_value_t* v = &u->at[i];
    const double factor = assay_undone_factor(v);
    json_t* one = json_pack("{s:s, s:s, s:s, s:f, s:f, s:b}", "value", v->value->name, "node",
                            v->node->label, "op", v->node->op_type, "rms", v->rms, "golden_rms",
                            v->ref_rms, "undone", v->shown);
    if (one && factor != 0) json_object_set_new(one, "factor", json_real(factor));
    if (!one || json_array_append_new(all, one)) return json_decref(all), NULL;
  }
  return all;
}
