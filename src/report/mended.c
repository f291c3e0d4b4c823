// Constants at fault, as words and as JSON: both ends of the chain, and the numbers that mend it.
#include <math.h>
#include <stdio.h>

#include "formats/format.h"
#include "io/json.h"
#include "report/report.h"

// ---- words --------------------------------------------------------------------------------------

void assay_report_shown(const assay_lost_constant_t* l, assay_str_t* out) {
  char shown[256];
  if (!l) return;
  assay_lost_constant_shown(l, shown, sizeof shown);
  assay_str_printf(out, "          shows in %s\n", shown);
}

// The same number for one constant that several nodes read counts once.
static bool is_told(const assay_mended_t* m, size_t i) {
  for (size_t k = 0; k < i; k++)
    if (m->of[k]->odd->value == m->of[i]->odd->value) return true;
  return false;
}

void assay_report_mended(const assay_check_t* c, const char* file, assay_str_t* out) {
  enum { SHOWN = 3 };
  const assay_mended_t* m = &c->mended;
  size_t told = 0, more = 0;
  if (!m->outputs) return;
  assay_str_append(out, "  or      ");
  for (size_t i = 0; i < m->n; i++) {
    if (is_told(m, i)) continue;
    if (told < SHOWN) assay_str_printf(out, "%s%s", told ? ", " : "", m->repairs[i].text);
    more += told++ >= SHOWN;
  }
  if (more) assay_str_printf(out, ", %zu more", more);
  assay_str_append(out, "   verified");
  for (size_t i = 0; i < c->n_outputs && i < 2; i++) {
    assay_str_append(out, i ? "; " : ": ");
    assay_report_output(&m->outputs[i], out);
  }
  assay_str_append(out, "\n");
  if (file) assay_str_printf(out, "          %s\n", file);
}

// ---- JSON ---------------------------------------------------------------------------------------

static const char* layer_name(const assay_layer_account_t* a) {
  return a->layer ? a->layer->name : a->node->label;
}

static json_t* name_of(const assay_odd_constant_t* o) {
  return assay_json_text(o->value ? o->value->name : o->attribute);
}

json_t* assay_report_constant_json(const assay_lost_constant_t* l) {
  if (!l) return json_null();
  const assay_odd_constant_t* o = l->odd;
  json_t* shows =
      json_pack("{s:o, s:s, s:I, s:I, s:o}", "layer", assay_json_text(layer_name(l->shows)), "op",
                l->shows->node->op_type, "not_finite", (json_int_t)l->unfinite, "elements",
                (json_int_t)l->shows->total.n, "error",
                l->unfinite ? json_null() : assay_json_number(l->error));
  return json_pack("{s:o, s:o, s:o, s:o, s:s, s:o}", "name", name_of(o), "node",
                   assay_json_text(o->node->label), "from", assay_json_number(o->example),
                   "becomes", assay_json_number(o->becomes), "format", assay_format_name(o->format),
                   "shows", shows);
}

static json_t* change(const assay_mended_t* m, size_t i) {
  const assay_odd_constant_t* o = m->of[i]->odd;
  return json_pack("{s:o, s:o, s:o, s:o}", "node", assay_json_text(m->repairs[i].node->label),
                   "name", name_of(o), "from", assay_json_number(o->example), "to",
                   assay_json_number(assay_mended_number(o->format, o->example, m->attempt)));
}

json_t* assay_report_mended_json(const assay_check_t* c, const char* file) {
  const assay_mended_t* m = &c->mended;
  json_t* changes = json_array();
  if (!m->outputs) return json_decref(changes), json_null();
  for (size_t i = 0; i < m->n; i++) changes = assay_json_push(changes, change(m, i));
  return json_pack("{s:o, s:{s:s, s:o}, s:i, s:o}", "changes", changes, "verified", "verdict",
                   "faithful", "outputs", assay_report_outputs_json(m->outputs, c->n_outputs),
                   "runs", m->runs, "file", file ? assay_json_text(file) : json_null());
}
