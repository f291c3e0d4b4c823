// The two fixes that a user can choose from, as lines and as JSON.
#include <string.h>

#include "io/json.h"
#include "report/report.h"

static void fix_line(const assay_fix_front_t* f, const assay_fix_t* chosen,
                     assay_fix_choice_t which, assay_str_t* out) {
  const assay_fix_t* fix = assay_fix_front_get(f, chosen, which);
  const double time = assay_fix_front_time(f, which);
  assay_str_printf(out, "  %-7s %s%zu node%s in %s", assay_fix_choice_name(which),
                   fix == chosen ? "chosen: " : "", fix->n_nodes, fix->n_nodes == 1 ? "" : "s",
                   assay_format_name(fix->format));
  if (time > 0) assay_str_printf(out, ", an estimated %.2f of the time of all", time);
  assay_str_append(out, fix->verified ? "; verified: " : "; NOT verified: ");
  assay_report_output(&fix->outputs[0], out);
  assay_str_append(out, "\n");
}

void assay_report_front_lines(const assay_fix_front_t* f, const assay_fix_t* chosen,
                              assay_str_t* out) {
  if (f->chosen == ASSAY_FIX_ANY) return;
  if (f->differ) {
    fix_line(f, chosen, ASSAY_FIX_FEWEST, out);
    fix_line(f, chosen, ASSAY_FIX_BEST, out);
  }
  assay_str_append(out, f->differ     ? "  all     in fp32: "
                        : f->has_best ? "  best    the same: all layers in fp32 give "
                                      : "  best    none: all layers in fp32 do not do: ");
  assay_report_output(&f->wide[0], out);
  assay_str_append(out, "\n");
}

void assay_report_unmended_lines(const assay_output_check_t* wide, size_t n, const char* word,
                                 assay_str_t* out) {
  enum { SHOWN = 2 };
  size_t shown = 0;
  for (size_t i = 0; wide && i < n && shown < SHOWN; i++) {
    if (wide[i].faithful) continue;
    const bool ill = assay_fix_front_is_ill(&wide[i]);
    assay_str_printf(out, "  %-7s ", shown ? "note" : word);
    if (!shown && strcmp(word, "fix") == 0) assay_str_append(out, "none: ");
    if (ill)
      assay_str_printf(out, "'%s' is ill-conditioned, no precision mends it;\n          ",
                       wide[i].value->name);
    assay_str_append(out, ill ? "all layers in fp32 give " : "not even all layers in fp32 do: ");
    assay_report_output(&wide[i], out);
    assay_str_append(out, "\n");
    shown++;
  }
}

json_t* assay_report_ill_json(const assay_output_check_t* wide, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; wide && i < n; i++)
    if (assay_fix_front_is_ill(&wide[i]))
      list = assay_json_push(list, assay_json_text(wide[i].value->name));
  return list;
}

static json_t* fix_json(const assay_fix_front_t* f, const assay_fix_t* chosen,
                        assay_fix_choice_t which, size_t n_outputs) {
  const assay_fix_t* fix = assay_fix_front_get(f, chosen, which);
  const double time = assay_fix_front_time(f, which);
  if (!fix) return json_null();
  assay_str_t rules = {0};
  assay_report_layer_precision(fix, &rules);
  json_t* j = json_pack(
      "{s:o, s:b, s:o, s:o, s:o}", "nodes", assay_report_labels_json(fix->nodes, fix->n_nodes),
      "verified", (int)fix->verified, "outputs", assay_report_outputs_json(fix->outputs, n_outputs),
      "layer_precision", rules.failed ? NULL : assay_json_text(assay_str_get(&rules)),
      "estimated_time", time > 0 ? assay_json_number(time) : json_null());
  assay_str_deinit(&rules);
  return j;
}

json_t* assay_report_front_json(const assay_fix_front_t* f, const assay_fix_t* chosen,
                                size_t n_outputs) {
  if (f->chosen == ASSAY_FIX_ANY) return json_null();
  return json_pack("{s:s, s:b, s:o, s:o, s:o}", "chosen", assay_fix_choice_name(f->chosen),
                   "differ", (int)f->differ, "fewest",
                   fix_json(f, chosen, ASSAY_FIX_FEWEST, n_outputs), "best",
                   fix_json(f, chosen, ASSAY_FIX_BEST, n_outputs), "all",
                   assay_report_outputs_json(f->wide, n_outputs));
}
