// What `certify` wrote and what its `--verify` found, told.
#include "report/certify.h"

#include <string.h>

#include "base/shown.h"
#include "certify/certify_public.h"
#include "io/json.h"
#include "report/report.h"
#include "report/report_public.h"

// ---- both -------------------------------------------------------------------------------------

static const char* precision_of(const assay_certificate_t* c) {
  return *c->precision ? c->precision : "fp32, as declared";
}

static const char* kind_name(assay_decision_kind_t kind) {
  return kind == ASSAY_DECISION_TOP1 ? "top1" : "threshold";
}

static void print_decided(const char* output, assay_decision_kind_t kind, double threshold,
                          const size_t* count, assay_str_t* out) {
  const size_t n = count[0] + count[1] + count[2];
  assay_str_printf(out, "'%s'", output);
  if (kind == ASSAY_DECISION_TOP1)
    assay_str_append(out, " (largest of a row)");
  else
    assay_str_printf(out, " > %g", threshold);
  assay_str_printf(out, ": of %zu %zu proven, %zu probable, %zu may flip", n,
                   count[ASSAY_GRADE_PROVEN], count[ASSAY_GRADE_PROBABLE], count[ASSAY_GRADE_OPEN]);
}

static const char* output_name(const assay_model_t* m, const assay_decisions_t* d) {
  return m && d->output < m->graph->n_outputs ? m->graph->outputs[d->output]->name : "";
}

static json_t* count_json(const size_t* count) {
  return json_pack("{s:I, s:I, s:I}", "proven", (json_int_t)count[ASSAY_GRADE_PROVEN], "probable",
                   (json_int_t)count[ASSAY_GRADE_PROBABLE], "open",
                   (json_int_t)count[ASSAY_GRADE_OPEN]);
}

// ---- a certificate that was made ---------------------------------------------------------------

static size_t kept(const assay_certificate_t* c) {
  return c->form.stride ? (c->n_values + c->form.stride - 1) / c->form.stride : 0;
}

static size_t count_odd(const assay_certificate_t* c, uint8_t odd) {
  size_t n = 0;
  for (size_t i = 0; i < c->n_values; i++) n += (c->values[i].odd & odd) != 0;
  return n;
}

assay_status_t assay_report_certify_text(const assay_certificate_t* c,
                                         const assay_certify_names_t* n, assay_str_t* out) {
  enum { SHOWN = 5 };
  const double part = c->model_bytes ? 100 * (double)n->bytes / (double)c->model_bytes : 0;
  const size_t defects = count_odd(c, ASSAY_ODD_DEFECT);
  const size_t unfinite = count_odd(c, ASSAY_ODD_ENGINE);
  assay_str_printf(out, "%s  %s in %s on %s: %s, %zu bytes, %.2g %% of the model\n",
                   n->certificate ? "CERTIFIED" : "NOT SAVED", n->model, precision_of(c), c->target,
                   n->certificate ? n->certificate : "the certificate could not be written",
                   n->bytes, part);
  assay_str_printf(out, "  values    %zu of %zu: truth in %d number%s each%s%s\n", kept(c),
                   c->n_values, c->form.sketches, c->form.sketches == 1 ? "" : "s",
                   c->form.bounds ? ", bounds" : "", c->form.bits_bytes ? ", bits" : "");
  if (n->bytes > n->max)
    assay_str_printf(out, "  size      more than the %zu bytes that it was allowed\n", n->max);
  if (defects)
    assay_str_printf(
        out, "  defects   %zu layers do more than rounding explains: see 'assay check'\n", defects);
  if (unfinite)
    assay_str_printf(out, "  overflow  %zu values have NaN or infinities: see 'assay check'\n",
                     unfinite);
  for (size_t i = 0; i < c->n_decisions && i < SHOWN; i++) {
    const assay_decisions_t* d = &c->decisions[i];
    assay_str_append(out, "  decides   ");
    print_decided(output_name(n->graph, d), d->kind, d->threshold, d->count, out);
    assay_str_append(out, d->grades ? "\n" : " (which ones is left out for the size)\n");
  }
  if (c->n_decisions > SHOWN)
    assay_str_printf(out, "            and %zu more outputs\n", c->n_decisions - SHOWN);
  return assay_str_status(out);
}

assay_status_t assay_report_certify_json(const assay_certificate_t* c,
                                         const assay_certify_names_t* n, json_t** out) {
  json_t* decisions = json_array();
  for (size_t i = 0; i < c->n_decisions; i++) {
    const assay_decisions_t* d = &c->decisions[i];
    json_t* grades = d->grades ? json_array() : json_null();
    for (size_t k = 0; d->grades && k < d->n; k++)
      grades = assay_json_push(grades, json_integer(d->grades[k]));
    decisions = assay_json_push(
        decisions,
        json_pack("{s:o, s:s, s:o, s:o, s:o}", "output", assay_json_text(output_name(n->graph, d)),
                  "kind", kind_name(d->kind), "threshold", assay_json_number(d->threshold), "count",
                  count_json(d->count), "grades", grades));
  }
  json_t* file = n->certificate ? assay_json_text(n->certificate) : json_null();
  json_t* j = json_pack(
      "{s:s, s:o, s:o, s:o, s:o, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:o, s:o}", "schema",
      "assay.certify/1", "model", assay_json_text(n->model), "certificate", file, "precision",
      assay_json_text(precision_of(c)), "target", assay_json_text(c->target), "version", c->version,
      "bytes", (json_int_t)n->bytes, "model_bytes", (json_int_t)c->model_bytes, "values",
      (json_int_t)c->n_values, "kept", (json_int_t)kept(c), "sketches", c->form.sketches,
      "bits_bytes", c->form.bits_bytes, "defects", (json_int_t)count_odd(c, ASSAY_ODD_DEFECT),
      "unfinite", (json_int_t)count_odd(c, ASSAY_ODD_ENGINE), "decisions", decisions, "seconds",
      assay_json_number(n->seconds));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}

// ---- one that was verified ---------------------------------------------------------------------

static void print_place(const assay_change_found_t* f, assay_str_t* out) {
  if (!f->node) return;
  assay_str_printf(out, "%s (%s)", f->node->label, f->node->op_type);
  if (f->n_nodes > 1) assay_str_printf(out, " and %zu nodes in its layer", f->n_nodes - 1);
  if (f->since) assay_str_printf(out, ", or before it from %s on", f->since->label);
}

static void verdict(const assay_certificate_t* c, const assay_verified_t* v,
                    const assay_certify_names_t* n, assay_str_t* out) {
  static const char* const says[ASSAY_CHANGE_COUNT] = {
      "it is another model than the certified one",
      "the inputs are others than the certified ones",
      "truth is no longer what it was, from here on: ",
      "the engine is at fault in ",
      "NaN or infinities arise in ",
      "values underflow in ",
      "the engine errs more than certified in ",
      "the engine computes something else than the model, from here on: ",
      "other bits from here on: ",
      "stable predictions flipped",
  };
  assay_str_printf(out, "%s  %s in %s on %s: ", v->holds ? "HOLDS" : "CHANGED", n->model,
                   precision_of(c), n->target);
  if (!v->guilty)
    assay_str_printf(out, "%zu layers, each within its bound; truth as certified in %zu values\n",
                     v->n_layers, v->n_compared);
  else {
    assay_str_append(out, says[v->guilty->what]);
    if (v->guilty->what != ASSAY_CHANGE_DECISION) print_place(v->guilty, out);
    assay_str_append(out, "\n");
  }
}

static void print_bits(const assay_verified_t* v, assay_str_t* out) {
  if (!v->n_bits) return;
  if (v->same_bits == v->n_bits)
    assay_str_printf(out, "  bits      the same in all %zu values\n", v->n_bits);
}

static void print_found(const assay_verified_t* v, const assay_change_found_t* f,
                        assay_str_t* out) {
  const char* mark = f == v->guilty ? "why" : f->note ? "note" : "also";
  assay_str_printf(out, "  %-9s %s: ", mark, assay_change_name(f->what));
  if (f != v->guilty && f->node) {
    print_place(f, out);
    assay_str_append(out, ": ");
  }
  assay_str_shown(out, f->why);
  if (f->n > 1 && f->what != ASSAY_CHANGE_DECISION)
    assay_str_printf(out, "; %zu %s so", f->n,
                     f->what == ASSAY_CHANGE_FAULT ? "layers are" : "values are");
  else if (f->n > 1)
    assay_str_printf(out, "; %zu did", f->n);
  assay_str_append(out, "\n");
}

assay_status_t assay_report_verify_text(const assay_certificate_t* c, const assay_verified_t* v,
                                        const assay_certify_names_t* n, assay_str_t* out) {
  enum { SHOWN = 3 };
  verdict(c, v, n, out);
  if (v->guilty) print_found(v, v->guilty, out);
  for (size_t i = 0; i < v->n; i++)
    if (&v->at[i] != v->guilty) print_found(v, &v->at[i], out);
  print_bits(v, out);
  for (size_t i = 0; i < v->n_decisions && i < SHOWN; i++) {
    const assay_decisions_held_t* h = &v->decisions[i];
    if (!h->output) continue;
    assay_str_append(out, "  decides   ");
    print_decided(h->output, h->kind, h->threshold, h->count, out);
    if (h->compared) assay_str_printf(out, "; %zu flipped", h->flipped);
    assay_str_append(out, "\n");
  }
  if (v->guilty && v->guilty->what == ASSAY_CHANGE_FAULT)
    assay_str_append(out, "  next      assay check, for the layer's whole account\n");
  if (strcmp(c->version, ASSAY_VERSION) != 0)
    assay_str_printf(out, "  version   certified by %s, verified by %s\n", c->version,
                     ASSAY_VERSION);
  return assay_str_status(out);
}

static json_t* found_json(const assay_change_found_t* f) {
  json_t* nodes = f->n_nodes ? assay_report_labels_json(f->nodes, f->n_nodes)
                  : f->node  ? assay_report_labels_json(&f->node, 1)
                             : json_array();
  return json_pack("{s:s, s:b, s:o, s:o, s:o, s:I, s:o}", "what", assay_change_name(f->what),
                   "note", (int)f->note, "node",
                   f->node ? assay_json_text(f->node->label) : json_null(), "nodes", nodes, "since",
                   f->since ? assay_json_text(f->since->label) : json_null(), "count",
                   (json_int_t)f->n, "why", assay_json_text(f->why));
}

static json_t* held_json(const assay_decisions_held_t* h) {
  return json_pack("{s:o, s:s, s:o, s:o, s:b, s:I, s:I}", "output",
                   assay_json_text(h->output ? h->output : ""), "kind", kind_name(h->kind),
                   "threshold", assay_json_number(h->threshold), "count", count_json(h->count),
                   "compared", (int)h->compared, "flipped", (json_int_t)h->flipped,
                   "flipped_stable", (json_int_t)h->flipped_stable);
}

assay_status_t assay_report_verify_json(const assay_certificate_t* c, const assay_verified_t* v,
                                        const assay_certify_names_t* n, json_t** out) {
  json_t *found = json_array(), *decisions = json_array();
  for (size_t i = 0; i < v->n; i++) found = assay_json_push(found, found_json(&v->at[i]));
  for (size_t i = 0; i < v->n_decisions; i++)
    decisions = assay_json_push(decisions, held_json(&v->decisions[i]));
  json_t* j = json_pack(
      "{s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o, s:o}",
      "schema", "assay.certify.verify/1", "verdict", v->holds ? "holds" : "changed", "model",
      assay_json_text(n->model), "certificate", assay_json_text(n->certificate), "precision",
      assay_json_text(precision_of(c)), "target", assay_json_text(n->target), "certified_by",
      c->version, "verified_by", ASSAY_VERSION, "guilty",
      v->guilty ? found_json(v->guilty) : json_null(), "found", found, "values",
      (json_int_t)v->n_values, "compared", (json_int_t)v->n_compared, "layers",
      (json_int_t)v->n_layers, "bits", (json_int_t)v->n_bits, "same_bits", (json_int_t)v->same_bits,
      "decisions", decisions, "seconds", assay_json_number(n->seconds));
  if (!j) return assay_status_no_memory();
  *out = j;
  return NULL;
}

// ---- the public face (include/assay/certify.h) --------------------------------------------------

static assay_certify_names_t names_made(const assay_certificate_t* c) {
  return (assay_certify_names_t){.model = c->subject ? assay_model_path(c->subject) : "a model",
                                 .certificate = c->path.len ? assay_str_get(&c->path) : NULL,
                                 .target = c->target,
                                 .graph = c->subject,
                                 .bytes = c->file.len,
                                 .max = c->max ? c->max : c->file.len,
                                 .seconds = c->seconds};
}

static assay_certify_names_t names_verified(const assay_verification_t* v) {
  return (assay_certify_names_t){.model = assay_model_path(v->model),
                                 .certificate = assay_str_get(&v->certificate->path),
                                 .target = assay_str_get(&v->engine),
                                 .graph = v->model,
                                 .seconds = v->seconds};
}

assay_status_t assay_certificate_report(const assay_certificate_t* c, assay_report_kind_t kind,
                                        assay_report_fn_t* write, void* user) {
  const assay_certify_names_t names = names_made(c);
  assay_str_t text = {0};
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "certificates"));
  assay_status_t st = kind == ASSAY_REPORT_TEXT ? assay_report_certify_text(c, &names, &text)
                                                : assay_report_certify_json(c, &names, &json);
  if (kind == ASSAY_REPORT_JSON) st = assay_report_print(st, json, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_certificate_write_report(const assay_certificate_t* c,
                                              assay_report_kind_t kind, const char* path) {
  return assay_certificate_report(c, kind, assay_report_to_file, &path);
}

assay_status_t assay_verification_report(const assay_verification_t* v, assay_report_kind_t kind,
                                         assay_report_fn_t* write, void* user) {
  const assay_certify_names_t names = names_verified(v);
  assay_str_t text = {0};
  json_t* json = NULL;
  ASSAY_TRY(assay_report_want_kind(kind, "verifications"));
  assay_status_t st = kind == ASSAY_REPORT_TEXT
                          ? assay_report_verify_text(v->certificate, &v->found, &names, &text)
                          : assay_report_verify_json(v->certificate, &v->found, &names, &json);
  if (kind == ASSAY_REPORT_JSON) st = assay_report_print(st, json, &text);
  return assay_report_deliver(st, &text, write, user);
}

assay_status_t assay_verification_write_report(const assay_verification_t* v,
                                               assay_report_kind_t kind, const char* path) {
  return assay_verification_report(v, kind, assay_report_to_file, &path);
}
