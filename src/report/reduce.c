// What `debug reduce` found, told.
#include "report/reduce.h"

#include <string.h>

#include "io/json.h"
#include "report/report.h"

static const char* plural(size_t n) { return n == 1 ? "" : "s"; }

static void verdict(const assay_reduced_t* r, const assay_reduce_names_t* n, assay_str_t* out) {
  static const char* const words[] = {"REDUCED", "WHOLE", "SOUND"};
  assay_str_printf(out, "%s  %s in %s on %s: ", words[r->verdict], n->model, n->precision,
                   n->target);
  if (r->verdict == ASSAY_REDUCE_SOUND)
    assay_str_printf(out, "nothing fails, of %zu sample%s\n", r->n_samples, plural(r->n_samples));
  else if (r->verdict == ASSAY_REDUCE_WHOLE)
    assay_str_printf(out, "it fails, and no part of its %zu nodes was found that does by itself\n",
                     r->n_nodes_before);
  else
    assay_str_printf(out, "%zu of %zu node%s still fail%s\n", r->n_nodes, r->n_nodes_before,
                     plural(r->n_nodes_before), r->n_nodes == 1 ? "s" : "");
}

static void nodes_line(const assay_model_t* m, assay_str_t* out) {
  enum { SHOWN = 3 };
  size_t shown = 0, more = 0;
  assay_str_append(out, "  nodes    ");
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* n = m->graph->nodes[i];
    if (strcmp(n->op_type, "Constant") == 0) continue;
    if (shown < SHOWN)
      assay_str_printf(out, "%s%s (%s)", shown ? ", " : "", n->label, n->op_type);
    else
      more++;
    shown++;
  }
  if (more) assay_str_printf(out, " and %zu more", more);
  assay_str_append(out, "\n");
}

static void failure_line(const char* label, const assay_reduce_failure_t* f, assay_str_t* out) {
  if (!f->fails) return;
  assay_str_printf(out, "  %-7s  ", label);
  if (*f->node) assay_str_printf(out, "%s (%s): ", f->node, f->op);
  assay_str_printf(out, "%s\n", *f->why ? f->why : "the outputs are not what they have to be");
}

static void way_line(const assay_reduced_t* r, assay_str_t* out) {
  static const char* const says[] = {"the layer to blame fails by itself",
                                     "the layer to blame fails with nodes around it only",
                                     "what was left of the graph, cut from both ends"};
  assay_str_printf(out, "  how      %s; %zu part%s run, %.1f s", says[r->way], r->tries,
                   plural(r->tries), r->seconds);
  if (r->minimal && r->n_nodes > 1) assay_str_append(out, "; no node of it can go");
  if (r->cut_short) assay_str_append(out, "; the time was over: --time gives it more");
  assay_str_append(out, "\n");
}

static void samples_line(const assay_reduced_t* r, const assay_reduce_names_t* n,
                         assay_str_t* out) {
  if (r->n_samples < 2) return;
  if (r->joint) {
    assay_str_printf(out, "  samples  %zu, which fail together only\n", r->n_samples);
    return;
  }
  assay_str_printf(out, "  samples  %zu of %zu fail; it fails for ", r->n_failing, r->n_samples);
  if (r->inputs.n == r->n_failing)
    assay_str_append(out, r->n_failing == 1 ? "that one" : "all of them");
  else
    assay_str_printf(out, "%zu of them", r->inputs.n);
  assay_str_printf(out, ", the worst is number %zu", r->sample_of[0]);
  if (n->folder && n->written < r->inputs.n)
    assay_str_append(out, ", the only one in the files, as shapes differ");
  assay_str_append(out, "\n");
}

assay_status_t assay_report_reduce_text(const assay_reduced_t* r, const assay_reduce_names_t* n,
                                        assay_str_t* out) {
  verdict(r, n, out);
  if (r->verdict == ASSAY_REDUCE_SOUND) return assay_str_status(out);
  if (r->verdict == ASSAY_REDUCE_WHOLE) {
    failure_line("fails", &r->before, out);
    assay_str_printf(out, "  how      %zu part%s run, %.1f s%s\n", r->tries, plural(r->tries),
                     r->seconds, r->cut_short ? "; the time was over: --time gives it more" : "");
    return assay_str_status(out);
  }
  nodes_line(r->model, out);
  failure_line("fails", &r->after, out);
  if (*r->before.why && strcmp(r->before.why, r->after.why) != 0)
    failure_line("before", &r->before, out);
  way_line(r, out);
  samples_line(r, n, out);
  if (r->from_truth)
    assay_str_append(
        out,
        "  note     some inputs are truth's values: the engine's were not to be had, or "
        "not finite\n");
  if (r->before.blame == ASSAY_BLAME_EXPORT && r->n_nodes > 3)
    assay_str_append(
        out,
        "  note     parts are cut where golden has values: --golden-intermediates gives "
        "more of them\n");
  if (n->folder)
    assay_str_printf(out, "  wrote    %s: model.onnx, inputs.npz, golden.npz (%s outputs)\n",
                     n->folder, r->before.blame == ASSAY_BLAME_EXPORT ? "golden's" : "truth's");
  if (n->command) assay_str_printf(out, "  show it  %s\n", n->command);
  return assay_str_status(out);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t* failure_json(const assay_reduce_failure_t* f) {
  if (!f->fails) return json_null();
  return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "blame", assay_blame_name(f->blame), "verdict",
                   assay_verdict_name(f->verdict), "node", assay_json_text(f->node), "op",
                   assay_json_text(f->op), "why", assay_json_text(f->why), "badness",
                   assay_json_number(f->badness));
}

static json_t* nodes_json(const assay_reduced_t* r) {
  json_t* list = json_array();
  for (size_t i = 0; r->model && i < r->model->graph->n_nodes; i++) {
    const assay_node_t* n = r->model->graph->nodes[i];
    if (strcmp(n->op_type, "Constant") == 0) continue;
    list = assay_json_push(list, json_pack("{s:o, s:o}", "name", assay_json_text(n->label), "op",
                                           assay_json_text(n->op_type)));
  }
  return list;
}

static json_t* text_or_null(const char* text) { return text ? assay_json_text(text) : json_null(); }

assay_status_t assay_report_reduce_json(const assay_reduced_t* r, const assay_reduce_names_t* n,
                                        json_t** out) {
  const bool reduced = r->verdict == ASSAY_REDUCE_REDUCED;
  json_t* covered = json_array();
  for (size_t i = 0; reduced && i < r->inputs.n; i++)
    covered = assay_json_push(covered, json_integer((json_int_t)r->sample_of[i]));
  json_t* j = json_pack(
      "{s:s, s:o, s:o, s:o, s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:b, s:b, s:b, s:I, s:o}", "schema",
      "assay.debug.reduce/1", "model", assay_json_text(n->model), "precision",
      assay_json_text(n->precision), "target", assay_json_text(n->target), "verdict",
      assay_reduce_verdict_name(r->verdict), "way", assay_reduce_way_name(r->way), "nodes_before",
      (json_int_t)r->n_nodes_before, "nodes", (json_int_t)r->n_nodes, "node", nodes_json(r),
      "before", failure_json(&r->before), "after", failure_json(&r->after), "minimal",
      (int)r->minimal, "cut_short", (int)r->cut_short, "inputs_of_truth", (int)r->from_truth,
      "tries", (json_int_t)r->tries, "seconds", assay_json_number(r->seconds));
  json_t* samples = json_pack("{s:I, s:I, s:b, s:o, s:I}", "given", (json_int_t)r->n_samples,
                              "failing", (json_int_t)r->n_failing, "together", (int)r->joint, "of",
                              covered, "written", (json_int_t)n->written);
  j = assay_json_put(j, "samples", samples);
  j = assay_json_put(j, "folder", text_or_null(reduced ? n->folder : NULL));
  j = assay_json_put(j, "command", text_or_null(reduced ? n->command : NULL));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}
