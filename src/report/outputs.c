// Outputs and names of nodes, as words and as JSON: what every report is made of.
#include <math.h>
#include <stdio.h>

#include "base/functions.h"
#include "formats/format.h"
#include "io/json.h"
#include "report/report.h"

// ---- words --------------------------------------------------------------------------------------

const char* assay_report_grouped(int64_t n, char* buffer, size_t capacity) {
  char plain[32];
  int len = snprintf(plain, sizeof plain, "%lld", (long long)n);
  size_t used = 0;
  for (int i = 0; i < len && used + 2 < capacity; i++) {
    if (i && plain[i - 1] != '-' && (len - i) % 3 == 0) buffer[used++] = ',';
    buffer[used++] = plain[i];
  }
  buffer[used] = 0;
  return buffer;
}

void assay_report_decibels(assay_str_t* out, const char* what, double db) {
  if (isinf(db) && db > 0)
    assay_str_printf(out, "%s exact", what);
  else
    assay_str_printf(out, "%s %.1f dB", what, db);
}

// "'denoised' is NaN in 196,608 of 196,608 places", "'logits': SNR 70.3 dB, max abs 0.00096".
void assay_report_output(const assay_output_check_t* o, assay_str_t* out) {
  const assay_error_sum_t* e = &o->error;
  assay_str_printf(out, "'%s'", o->value->name);
  if (!o->is_float) {
    if (o->differing) assay_str_printf(out, " differs in %s places", ASSAY_GROUPED(o->differing));
    if (o->differing && o->steps.largest)
      assay_str_printf(out, ", by at most %s step%s", ASSAY_GROUPED(o->steps.largest),
                       o->steps.largest == 1 ? "" : "s");
    if (!o->differing) assay_str_append(out, " is equal");
    return;
  }
  if (e->nan > e->ref_nan) {
    assay_str_printf(out, " is NaN in %s of %s places", ASSAY_GROUPED(e->nan - e->ref_nan),
                     ASSAY_GROUPED(e->n));
  } else if (e->inf > e->ref_inf) {
    assay_str_printf(out, " is Inf in %s of %s places%s", ASSAY_GROUPED(e->inf - e->ref_inf),
                     ASSAY_GROUPED(e->n),
                     e->mismatched == o->unfinite_as_golden ? ", as golden is" : "");
  } else if (e->mismatched) {
    assay_str_printf(out, " has other NaN and Inf than truth in %s of %s places",
                     ASSAY_GROUPED(e->mismatched), ASSAY_GROUPED(e->n));
  } else if (!e->finite) {
    assay_str_append(out, e->n ? " is NaN or Inf in the output and in truth: check the inputs"
                               : " has no elements");
  } else {
    assay_report_decibels(out, ": SNR", assay_error_sum_snr_db(e));
    assay_str_printf(out, ", max abs %.3g, cosine %.6f", e->max_abs, assay_error_sum_cosine(e));
  }
}

// ---- JSON ---------------------------------------------------------------------------------------

json_t* assay_report_slices_json(const assay_slices_found_t* f) {
  if (f->axis < 0) return json_null();
  return json_pack("{s:i, s:I, s:I, s:o, s:I, s:o}", "axis", f->axis, "slices",
                   (json_int_t)f->slices, "dead", (json_int_t)f->dead, "first_dead",
                   f->dead ? json_integer((json_int_t)f->first) : json_null(), "small",
                   (json_int_t)f->small, "small_snr_db",
                   f->small ? assay_json_number(-10 * assay_log10(f->small_loss)) : json_null());
}

// Where one side is not finite and the other is, no finite number tells the error.
static json_t* number(const assay_error_sum_t* e, double x) {
  return assay_json_number(e->mismatched ? (double)NAN : x);
}

static json_t* number_or_null(bool applies, const assay_error_sum_t* e, double x) {
  return applies ? number(e, x) : json_null();
}

json_t* assay_report_sums_json(const assay_error_sum_t* e, bool applies) {
  if (!applies || !e->n) return json_null();
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "max_abs", number(e, e->max_abs),
                   "max_rel", number(e, e->max_rel), "rms", number(e, assay_error_sum_rms(e)),
                   "cosine", number(e, assay_error_sum_cosine(e)), "snr_db",
                   number(e, assay_error_sum_snr_db(e)), "nan", (json_int_t)e->nan, "inf",
                   (json_int_t)e->inf, "mismatched", (json_int_t)e->mismatched);
}

static json_t* output(const assay_output_check_t* o) {
  const assay_error_sum_t* e = &o->error;
  bool f = o->is_float && e->n;
  const char* verdict = o->faithful ? "faithful" : "unfaithful";
  json_t* j = json_pack(
      "{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I}", "name", assay_json_text(o->value->name),
      "verdict", verdict, "max_abs", number_or_null(f, e, e->max_abs), "max_rel",
      number_or_null(f, e, e->max_rel), "rms", number_or_null(f, e, assay_error_sum_rms(e)),
      "cosine", number_or_null(f, e, assay_error_sum_cosine(e)), "snr_db",
      number_or_null(f, e, assay_error_sum_snr_db(e)), "nan", (json_int_t)e->nan, "inf",
      (json_int_t)e->inf);
  j = assay_json_put(j, "differing", json_integer((json_int_t)o->differing));
  if (o->slices) {
    const assay_slices_found_t slices = assay_slices_judge(o->slices);
    j = assay_json_put(j, "slices", assay_report_slices_json(&slices));
  }
  if (o->quantized)
    j = assay_json_put(j, "largest_step", json_integer((json_int_t)o->steps.largest));
  j = assay_json_put(j, "truth_against_golden", assay_report_sums_json(&o->golden, o->has_golden));
  j = assay_json_put(j, "engine_against_golden",
                     assay_report_sums_json(&o->engine_golden, o->has_golden));
  if (o->bits_of)
    j = assay_json_put(
        j, "bits_against_golden",
        json_pack(
            "{s:I, s:I, s:o}", "elements", (json_int_t)o->bits_of, "differing",
            (json_int_t)o->bits_differ, "ulps",
            o->bits_ulps == INT64_MAX ? json_null() : json_integer((json_int_t)o->bits_ulps)));
  return j;
}

json_t* assay_report_outputs_json(const assay_output_check_t* o, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; o && i < n; i++) list = assay_json_push(list, output(&o[i]));
  return list;
}

json_t* assay_report_labels_json(const assay_node_t* const* nodes, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, assay_json_text(nodes[i]->label));
  return list;
}
