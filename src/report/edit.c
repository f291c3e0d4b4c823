// What an edit did to a model and to its truth, as text and JSON.
#include <math.h>
#include <string.h>

#include "edit/edit_public.h"
#include "io/json.h"
#include "report/edit_report.h"
#include "report/report_public.h"

enum { MAX_OUTPUTS = 4, MAX_NOTES = 4 };

// ---- text ---------------------------------------------------------------------------------------

static const assay_moved_t* shown(const assay_proof_t* p, const assay_proof_output_t* o) {
  return p->stored ? &o->stored : &o->truth;
}

// The output that moved most, in units of its own scale; broken ones before all others.
static double severity(const assay_proof_t* p, const assay_proof_output_t* o) {
  const assay_moved_t* m = shown(p, o);
  if (!m->same_shape) return (double)INFINITY;
  if (m->broken) return 1e300;
  return m->scale > 0 ? m->largest / m->scale : m->largest;
}

static const assay_proof_output_t* worst(const assay_proof_t* p) {
  const assay_proof_output_t* w = NULL;
  for (size_t i = 0; i < p->n; i++)
    if (!w || severity(p, &p->outputs[i]) > severity(p, w)) w = &p->outputs[i];
  return w;
}

static void put_moved(const assay_moved_t* m, assay_str_t* out) {
  if (!m->same_shape)
    assay_str_append(out, "another shape or kind");
  else if (m->broken)
    assay_str_printf(out, "%lld of %lld elements are not finite on one side, or other text",
                     (long long)m->broken, (long long)m->n);
  else
    assay_str_printf(out, "largest difference %.3g of %.4g", m->largest, m->scale);
}

static void headline(const assay_edit_result_t* r, const assay_edit_names_t* names,
                     assay_str_t* out) {
  static const char* const words[] = {"UNCHANGED", "ROUNDED", "CHANGED", "NOT PROVEN"};
  const assay_proof_output_t* w = worst(&r->proof);
  assay_str_printf(out, "%s  %s: ", words[r->verdict], names->model);
  if (r->verdict == ASSAY_EDIT_NOT_PROVEN) {
    assay_str_printf(out, "not verified (%s)\n", assay_str_get(&r->why_not));
    return;
  }
  assay_str_append(out, r->verdict == ASSAY_EDIT_UNCHANGED ? "truth unchanged: "
                        : r->verdict == ASSAY_EDIT_ROUNDED
                            ? "truth moved by no more than rounding explains: "
                            : "truth changed: ");
  if (w && r->proof.n > 1) assay_str_printf(out, "'%s': ", w->name);
  if (w) put_moved(shown(&r->proof, w), out);
  if (!w) assay_str_append(out, "no outputs");
  assay_str_printf(out, ", %zu sample%s%s%s%s\n", r->proof.n_samples,
                   r->proof.n_samples == 1 ? "" : "s", r->proof.sizes.len ? " (" : "",
                   assay_str_get(&r->proof.sizes), r->proof.sizes.len ? ")" : "");
}

static void output_line(const assay_proof_t* p, const assay_proof_output_t* o, assay_str_t* out) {
  assay_str_printf(out, "  '%s'   ", o->name);
  put_moved(&o->truth, out);
  if (o->truth.same_shape && !o->truth.broken && isfinite(o->truth.snr_db))
    assay_str_printf(out, ", SNR %.1f dB", o->truth.snr_db);
  if (p->stored) {
    assay_str_append(out, "; as stored: ");
    put_moved(&o->stored, out);
    if (isfinite(o->stored.snr_db)) assay_str_printf(out, ", SNR %.1f dB", o->stored.snr_db);
  }
  if (p->has_explained) {
    const double rms = p->stored ? o->stored.rms : o->truth.rms;
    assay_str_printf(out, "; RMS %.3g where one rounding of each value gives %.3g", rms,
                     o->explained);
  }
  if (p->unquantized) {
    assay_str_append(out, "; without quantizers: ");
    put_moved(&o->unquantized, out);
  }
  assay_str_append(out, "\n");
}

static void output_lines(const assay_edit_result_t* r, bool all, assay_str_t* out) {
  const assay_proof_t* p = &r->proof;
  size_t reported = 0;
  for (size_t i = 0; i < p->n; i++) {
    const bool moved = severity(p, &p->outputs[i]) > 0;
    if (!all && (!moved || reported == MAX_OUTPUTS)) continue;
    output_line(p, &p->outputs[i], out);
    reported++;
  }
  if (reported && reported < p->n)
    assay_str_printf(out, "  and %zu more outputs (--all)\n", p->n - reported);
}

static void note_lines(const assay_edit_result_t* r, bool all, assay_str_t* out) {
  size_t reported = 0, left = 0;
  for (const char* p = assay_str_get(&r->notes); *p;) {
    const char* end = strchr(p, '\n');
    const size_t n = end ? (size_t)(end - p) : strlen(p);
    if (all || reported < MAX_NOTES) {
      assay_str_printf(out, "  %-10s %.*s\n", reported ? "" : "note", (int)n, p);
      reported++;
    } else {
      left++;
    }
    p += n + (end != NULL);
  }
  if (left) assay_str_printf(out, "  %-10s %zu more (--all)\n", "", left);
}

static void file_line(const assay_edit_result_t* r, const assay_edit_names_t* names,
                      assay_str_t* out) {
  if (r->written)
    assay_str_printf(out, "  %-10s %s   %zu nodes, were %zu; %zu constants, were %zu\n", "wrote",
                     names->out, r->after.nodes, r->before.nodes, r->after.initializers,
                     r->before.initializers);
  if (!names->out || r->written) return;
  const char* why = r->may_write ? "the file could not be written"
                    : r->verdict == ASSAY_EDIT_NOT_PROVEN
                        ? "the proof could not be had; --no-proof writes the model without"
                        : "the edit moves more than it may; --force writes the model all the same";
  assay_str_printf(out, "  %-10s %s: %s\n", "not written", names->out, why);
}

assay_status_t assay_report_edit_text(const assay_edit_result_t* r, const assay_edit_names_t* names,
                                      assay_str_t* out) {
  headline(r, names, out);
  assay_str_printf(out, "  %-10s %s: %s\n", "edit", r->editor->name,
                   r->done.len ? assay_str_get(&r->done) : "there was nothing to do");
  if (r->before.functions > r->after.functions && r->after.functions == 0 &&
      !r->editor->keeps_functions)
    assay_str_printf(out, "  %-10s calls of %zu functions were replaced by their bodies\n", "",
                     r->before.functions);
  output_lines(r, names->all, out);
  note_lines(r, names->all, out);
  file_line(r, names, out);
  return assay_str_status(out);
}

// ---- JSON ---------------------------------------------------------------------------------------

static json_t* moved(const assay_moved_t* m) {
  return json_pack("{s:b, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "same_shape", (int)m->same_shape,
                   "elements", (json_int_t)m->n, "different", (json_int_t)m->different, "broken",
                   (json_int_t)m->broken, "largest", assay_json_number(m->largest), "scale",
                   assay_json_number(m->scale), "rms", assay_json_number(m->rms), "snr_db",
                   assay_json_number(m->snr_db));
}

static json_t* output(const assay_proof_t* p, const assay_proof_output_t* o) {
  json_t* j = json_object();
  j = assay_json_put(j, "name", assay_json_text(o->name));
  j = assay_json_put(j, "within", json_boolean(o->within));
  j = assay_json_put(j, "truth", moved(&o->truth));
  if (p->stored) j = assay_json_put(j, "stored", moved(&o->stored));
  if (p->unquantized) j = assay_json_put(j, "unquantized", moved(&o->unquantized));
  if (p->has_explained) j = assay_json_put(j, "explained_rms", assay_json_number(o->explained));
  return j;
}

static json_t* counts(const assay_edit_counts_t* c) {
  return json_pack("{s:I, s:I, s:I, s:I, s:I}", "nodes", (json_int_t)c->nodes, "initializers",
                   (json_int_t)c->initializers, "inputs", (json_int_t)c->inputs, "outputs",
                   (json_int_t)c->outputs, "functions", (json_int_t)c->functions);
}

static json_t* notes(const assay_str_t* text) {
  json_t* list = json_array();
  for (const char* p = assay_str_get(text); *p;) {
    const size_t n = strcspn(p, "\n");
    assay_str_t line = {0};
    assay_str_append_n(&line, p, n);
    list = assay_json_push(list, assay_json_str(&line));
    assay_str_deinit(&line);
    p += n + (p[n] != 0);
  }
  return list;
}

assay_status_t assay_report_edit_json(const assay_edit_result_t* r, const assay_edit_names_t* names,
                                      json_t** out) {
  json_t *j = json_object(), *outputs = json_array();
  for (size_t i = 0; i < r->proof.n; i++)
    outputs = assay_json_push(outputs, output(&r->proof, &r->proof.outputs[i]));
  j = assay_json_put(j, "schema", json_string("assay.edit/1"));
  j = assay_json_put(j, "model", assay_json_text(names->model));
  j = assay_json_put(j, "edit", json_string(r->editor->name));
  j = assay_json_put(j, "verdict", json_string(assay_edit_verdict_name(r->verdict)));
  j = assay_json_put(j, "why_not_proven",
                     r->why_not.len ? assay_json_text(assay_str_get(&r->why_not)) : json_null());
  j = assay_json_put(j, "kept_promise", json_boolean(r->kept_promise));
  j = assay_json_put(j, "done", assay_json_text(assay_str_get(&r->done)));
  j = assay_json_put(j, "changed", json_integer((json_int_t)r->n_changed));
  j = assay_json_put(j, "notes", notes(&r->notes));
  j = assay_json_put(j, "before", counts(&r->before));
  j = assay_json_put(j, "after", counts(&r->after));
  j = assay_json_put(j, "samples", json_integer((json_int_t)r->proof.n_samples));
  j = assay_json_put(j, "sizes", assay_json_text(assay_str_get(&r->proof.sizes)));
  j = assay_json_put(j, "outputs", outputs);
  j = assay_json_put(j, "file",
                     r->written && names->out ? assay_json_text(names->out) : json_null());
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}

// ---- the public face (include/assay/edit.h) -----------------------------------------------------

static assay_status_t make(const assay_edited_t* e, assay_report_kind_t kind,
                           const assay_edit_report_options_t* options, assay_str_t* out) {
  assay_edit_report_options_t o = ASSAY_EDIT_REPORT_OPTIONS_INIT;
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "edits"));
  assay_report_options_read(options, options ? options->struct_size : 0, &o, sizeof o);
  const bool text = kind == ASSAY_REPORT_TEXT;
  const char* written = e->path.len ? assay_str_get(&e->path) : NULL;
  const assay_edit_names_t names = {.model = assay_str_get(&e->model),
                                    .out = text && o.path ? o.path : written,
                                    .all = o.all || !text};
  if (text) return assay_report_edit_text(&e->result, &names, out);
  assay_status_t st = assay_report_edit_json(&e->result, &names, &json);
  return assay_report_print(st, json, out);
}

assay_status_t assay_edited_report(const assay_edited_t* e, assay_report_kind_t kind,
                                   const assay_edit_report_options_t* options,
                                   assay_report_fn_t* write, void* user) {
  assay_str_t text = {0};
  assay_status_t st = make(e, kind, options, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_edited_write_report(const assay_edited_t* e, assay_report_kind_t kind,
                                         const assay_edit_report_options_t* options,
                                         const char* path) {
  return assay_edited_report(e, kind, options, assay_report_to_file, &path);
}
