// What the user requires of a model's outputs: "logits: cosine >= 0.999", "boxes[:, 4:] max_abs <=
// 0.01".
#include "account/require.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "account/outputs.h"
#include "base/alloc.h"
#include "base/functions.h"
#include "data/script.h"

// ---- statistics ---------------------------------------------------------------------------------

static double peak_psnr(const assay_error_sum_t* e) {
  return assay_error_sum_psnr_db(e, e->ref_max);
}

static double get_cosine(const assay_output_check_t* o) {
  return assay_error_sum_cosine(&o->error);
}
static double get_snr(const assay_output_check_t* o) { return assay_error_sum_snr_db(&o->error); }
static double get_psnr(const assay_output_check_t* o) { return peak_psnr(&o->error); }
static double get_max_abs(const assay_output_check_t* o) { return o->error.max_abs; }
static double get_max_rel(const assay_output_check_t* o) { return o->error.max_rel; }
static double get_mean(const assay_output_check_t* o) { return assay_error_sum_mean(&o->error); }
static double get_rms(const assay_output_check_t* o) { return assay_error_sum_rms(&o->error); }
static double get_nan(const assay_output_check_t* o) {
  return (double)(o->error.nan > o->error.ref_nan ? o->error.nan - o->error.ref_nan : 0);
}
static double get_inf(const assay_output_check_t* o) {
  return (double)(o->error.inf > o->error.ref_inf ? o->error.inf - o->error.ref_inf : 0);
}
static double get_top1(const assay_output_check_t* o) {
  return o->rows ? (double)o->top1 / (double)o->rows : 1;
}
static double get_top5(const assay_output_check_t* o) {
  return o->rows ? (double)o->top5 / (double)o->rows : 1;
}
static double get_differing(const assay_output_check_t* o) { return (double)o->differing; }
static double get_golden_psnr(const assay_output_check_t* o) {
  return peak_psnr(&o->engine_golden);
}
static double get_golden_snr(const assay_output_check_t* o) {
  return assay_error_sum_snr_db(&o->engine_golden);
}
static double get_golden_max(const assay_output_check_t* o) { return o->engine_golden.max_abs; }
static double get_drop(const assay_output_check_t* o) {
  return peak_psnr(&o->golden) - peak_psnr(&o->engine_golden);
}

typedef struct statistic {
  const char* name;
  double (*get)(const assay_output_check_t* o);
  bool floats, golden;                          // of float outputs only; needs golden
  bool rows;                                    // of rows of scores
  double (*margin)(double now, double wanted);  // see assay_require_margin; NULL: a guess
} statistic_t;

// 1 - cosine grows with the error's energy; decibels are its logarithm, the others its root.
static double margin_cosine(double now, double wanted) { return (1 - wanted) / (1 - now); }
static double margin_db(double now, double wanted) { return assay_pow(10, (now - wanted) / 10); }
static double margin_root(double now, double wanted) { return wanted / now * (wanted / now); }

static const statistic_t statistics[] = {
    {"cosine", get_cosine, true, false, false, margin_cosine},
    {"snr_db", get_snr, true, false, false, margin_db},
    {"psnr_db", get_psnr, true, false, false, margin_db},
    {"max_abs", get_max_abs, true, false, false, margin_root},
    {"max_rel", get_max_rel, true, false, false, margin_root},
    {"mean", get_mean, true, false, false, NULL},
    {"rms", get_rms, true, false, false, margin_root},
    {"nan", get_nan, true, false, false, NULL},
    {"inf", get_inf, true, false, false, NULL},
    {"top1", get_top1, true, false, true, NULL},
    {"top5", get_top5, true, false, true, NULL},
    {"differing", get_differing, false, false, false, NULL},
    {"golden_psnr_db", get_golden_psnr, true, true, false, NULL},
    {"golden_snr_db", get_golden_snr, true, true, false, NULL},
    {"golden_max_abs", get_golden_max, true, true, false, NULL},
    {"drop_psnr_db", get_drop, true, true, false, NULL},
};
enum { N_STATISTICS = sizeof statistics / sizeof *statistics };

// ---- parsing ------------------------------------------------------------------------------------

static const struct {
  const char* text;
  assay_relation_t relation;
} relations[] = {{">=", ASSAY_AT_LEAST},
                 {"<=", ASSAY_AT_MOST},
                 {"==", ASSAY_EQUAL},
                 {">", ASSAY_ABOVE},
                 {"<", ASSAY_BELOW}};

static char* trim(char* s) {
  while (isspace((unsigned char)*s)) s++;
  size_t n = strlen(s);
  while (n && isspace((unsigned char)s[n - 1])) s[--n] = 0;
  return s;
}

static assay_status_t bad(const char* text) {
  assay_str_t names = {0};
  for (int i = 0; i < N_STATISTICS; i++)
    assay_str_printf(&names, "%s%s", i ? ", " : "", statistics[i].name);
  assay_status_t st =
      ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                  "'%s' is not a requirement: write '[OUTPUT:] STATISTIC OP VALUE' with OP one of "
                  ">= > <= < == and STATISTIC one of %s; OUTPUT may be a part of one, such as "
                  "'scores[:, 4:]'",
                  text, assay_str_get(&names));
  assay_str_deinit(&names);
  return st;
}

// The relation that comes last: names may hold such signs, values do not.
static char* find_relation(char* text, assay_relation_t* out, size_t* out_length) {
  char* last = NULL;
  for (size_t i = 0; i < sizeof relations / sizeof *relations; i++) {
    const size_t length = strlen(relations[i].text);
    for (char* at = strstr(text, relations[i].text); at; at = strstr(at + 1, relations[i].text)) {
      if (last && at < last + *out_length) continue;
      last = at;
      *out_length = length;
      *out = relations[i].relation;
    }
  }
  return last;
}

// "OUTPUT", "OUTPUT[PART]": as a name, and cut in two where it ends in brackets. An output may have
// such a name.
static assay_status_t parse_output(char* copy, const char* whole, assay_requirement_t* out) {
  const size_t n = strlen(copy);
  char* open = n && copy[n - 1] == ']' ? strrchr(copy, '[') : NULL;
  out->output = copy;
  out->whole = whole;
  if (!open) return NULL;
  ASSAY_TRY(ASSAY_NEW(&out->part));
  assay_status_t st = assay_slice_parse(open, out->part);
  if (!st && open == copy)
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "'%s': name the output that this is a part of", copy);
  if (st) {
    assay_free(out->part);
    out->part = NULL;
    return st;
  }
  *open = 0;
  out->output = trim(copy);
  return NULL;
}

// `copy` and `other` (the same text) are cut up; their parts stay in use.
static assay_status_t parse(char* copy, char* other, const char* text, assay_requirement_t* out) {
  size_t length = 0;
  char* op = find_relation(copy, &out->relation, &length);
  if (!op) return bad(text);
  char *value = trim(op + length), *end = NULL;
  *op = 0;
  out->value = strtod(value, &end);
  if (end == value || *end || isnan(out->value)) return bad(text);
  char* left = trim(copy);
  char* name = left + strlen(left);
  while (name > left && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
  out->statistic = -1;
  for (int i = 0; i < N_STATISTICS; i++)
    if (strcmp(statistics[i].name, name) == 0) out->statistic = i;
  if (out->statistic < 0) return bad(text);
  char* before = name;
  while (before > left && isspace((unsigned char)before[-1])) before--;
  if (before == left) return NULL;
  const bool colon = before[-1] == ':';
  if (!colon && before[-1] != ']') return bad(text);
  before[colon ? -1 : 0] = 0;
  char* output = trim(left);
  if (!*output) return bad(text);
  memcpy(other, output, strlen(output) + 1);
  return parse_output(output, other, out);
}

static assay_status_t copy_text(assay_requirements_t* r, const char* text, char** out) {
  ASSAY_TRY(assay_grow(&r->texts, &r->cap_texts, r->n_texts + 1, sizeof *r->texts));
  ASSAY_TRY(assay_new_array(strlen(text) + 1, 1, out));
  strcpy(*out, text);
  r->texts[r->n_texts++] = *out;
  return NULL;
}

assay_status_t assay_require_parse(assay_requirements_t* r, const char* text) {
  char *copy = NULL, *other = NULL, *whole = NULL;
  assay_requirement_t next = {0};
  ASSAY_TRY(copy_text(r, text, &whole));
  next.command = assay_script_is_command(text);
  if (!next.command) {
    ASSAY_TRY(copy_text(r, text, &copy));
    ASSAY_TRY(copy_text(r, text, &other));
    ASSAY_TRY(parse(copy, other, text, &next));
  }
  assay_status_t st = assay_grow(&r->at, &r->capacity, r->n + 1, sizeof *r->at);
  if (st) return assay_free(next.part), st;
  next.text = whole;
  r->at[r->n++] = next;
  return NULL;
}

void assay_requirements_deinit(assay_requirements_t* r) {
  for (size_t i = 0; i < r->n_texts; i++) assay_free(r->texts[i]);
  for (size_t i = 0; i < r->n; i++) assay_free(r->at[i].part);
  assay_free(r->texts);
  assay_free(r->at);
  *r = (assay_requirements_t){0};
}

// ---- outputs that are meant ---------------------------------------------------------------------

static bool has_output(const assay_graph_t* g, const char* name) {
  for (size_t i = 0; g && i < g->n_outputs; i++)
    if (strcmp(g->outputs[i]->name, name) == 0) return true;
  return false;
}

static bool names(const assay_requirement_t* q, const assay_value_t* v) {
  if (!q->output) return true;
  if (strcmp(q->whole, v->name) == 0) return true;
  return q->part && strcmp(q->output, v->name) == 0 && !has_output(v->graph, q->whole);
}

bool assay_require_is_part(const assay_requirement_t* q, const assay_value_t* output) {
  return !q->command && q->part && names(q, output) && strcmp(q->whole, output->name) != 0;
}

// A part has to fit what is known of the shape.
static assay_status_t check_part(const assay_requirement_t* q, const assay_value_t* v) {
  int64_t dims[ASSAY_MAX_RANK];
  if (!v->type || v->type->kind != ASSAY_KIND_TENSOR || !v->type->has_shape) return NULL;
  for (int d = 0; d < v->type->rank; d++)
    if (!assay_dim_value(v->type->dims[d], &dims[d])) dims[d] = -1;
  return assay_status_note(assay_slice_check(q->part, v->type->rank, dims),
                           "requirement '%s': output '%s'", q->text, v->name);
}

assay_status_t assay_require_resolve(const assay_requirements_t* r, const assay_graph_t* g) {
  for (size_t i = 0; i < r->n; i++) {
    const assay_requirement_t* q = &r->at[i];
    bool found = q->command || !q->output;
    for (size_t k = 0; !q->command && k < g->n_outputs; k++) {
      if (!names(q, g->outputs[k])) continue;
      found = true;
      if (assay_require_is_part(q, g->outputs[k])) ASSAY_TRY(check_part(q, g->outputs[k]));
    }
    if (!found)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "requirement '%s': the model has no output '%s'%s",
                         q->text, q->output,
                         ASSAY_VALUES_NEAR_TEXT(g->outputs, g->n_outputs, q->output));
  }
  return NULL;
}

bool assay_require_needs_golden(const assay_requirements_t* r) {
  bool needs = false;
  for (size_t i = 0; i < r->n; i++)
    needs |= r->at[i].command ? strstr(r->at[i].text, "{golden}") != NULL
                              : statistics[r->at[i].statistic].golden;
  return needs;
}

bool assay_require_has_statistics(const assay_requirements_t* r) {
  bool has = false;
  for (size_t i = 0; i < r->n; i++) has |= !r->at[i].command;
  return has;
}

bool assay_require_has_commands(const assay_requirements_t* r) {
  bool has = false;
  for (size_t i = 0; i < r->n; i++) has |= r->at[i].command;
  return has;
}

// ---- holding ------------------------------------------------------------------------------------

static bool relates(double x, assay_relation_t relation, double value) {
  switch (relation) {
    case ASSAY_AT_LEAST:
      return x >= value;
    case ASSAY_ABOVE:
      return x > value;
    case ASSAY_AT_MOST:
      return x <= value;
    case ASSAY_BELOW:
      return x < value;
    case ASSAY_EQUAL:
      return x == value;
  }
  return false;
}

// What is asked: the output, or the part of it as it has been recorded; NULL: it has not been.
static const assay_output_check_t* asked_of(const assay_requirement_t* q,
                                            const assay_output_check_t* output,
                                            assay_output_check_t* resized) {
  if (!assay_require_is_part(q, output->value)) return output;
  for (size_t i = 0; i < output->n_parts; i++) {
    if (output->parts[i].part != q->part) continue;
    if (!(output->part_ratio > 0)) return &output->parts[i];
    *resized = output->parts[i];
    assay_output_resize(resized, output->part_ratio);
    return resized;
  }
  return NULL;
}

// Notes why something cannot be judged; false, for the caller to return.
static bool open_since(assay_requirement_result_t* r, const char* format, ...) ASSAY_PRINTF(2, 3);
static bool open_since(assay_requirement_result_t* r, const char* format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(r->why, sizeof r->why, format, args);
  va_end(args);
  return false;
}

static bool golden_can_be_asked(const assay_output_check_t* o, assay_requirement_result_t* r) {
  char text[96];
  if (!o->has_golden || o->golden_samples < o->samples) {
    if (o->golden_why[0]) return open_since(r, "%s", o->golden_why);
    return o->has_golden
               ? open_since(r, "golden lacks it for %lld of %lld samples",
                            (long long)(o->samples - o->golden_samples), (long long)o->samples)
               : open_since(r, "golden has no such output");
  }
  if (o->golden_used != o->golden_rows)
    return open_since(r, "golden has %lld rows, the samples give %lld", (long long)o->golden_rows,
                      (long long)o->golden_used);
  if (o->golden.ref_nan || o->golden.ref_inf)
    return open_since(r, "golden holds %s",
                      assay_unfinite_text(o->golden.ref_nan, o->golden.ref_inf, text, sizeof text));
  return true;
}

// Whether the statistic of an output can be asked for; else why not.
static bool can_be_asked(const statistic_t* s, const assay_output_check_t* o,
                         assay_requirement_result_t* r) {
  char text[96];
  const assay_error_sum_t* e = &o->error;
  if (o->part_why[0]) return open_since(r, "%s", o->part_why);
  if (s->floats != o->is_float)
    return open_since(r, "it is %s floats", o->is_float ? "of" : "not of");
  if (o->samples && !o->elements) return open_since(r, "it has no elements");
  if (o->is_float && o->differing)
    return open_since(r, "the engine gives another shape than truth");
  if (e->ref_nan || e->ref_inf)
    return open_since(r, "truth holds %s",
                      assay_unfinite_text(e->ref_nan, e->ref_inf, text, sizeof text));
  if (s->rows && !o->rows)
    return open_since(r, "it has no rows of scores: one or two dimensions, the last of 2 or more");
  return !s->golden || golden_can_be_asked(o, r);
}

bool assay_require_judge(const assay_requirement_t* q, const assay_output_check_t* output,
                         assay_requirement_result_t* out) {
  const statistic_t* s = &statistics[q->statistic];
  *out = (assay_requirement_result_t){.of = q, .output = output->value->name, .statistic = s->name};
  if (q->command || !names(q, output->value)) return false;
  if (!q->output && (s->floats != output->is_float || (s->rows && !output->rows))) return false;
  assay_output_check_t resized;
  const assay_output_check_t* o = asked_of(q, output, &resized);
  assay_requirement_result_t why = {0};
  if (!o)
    open_since(&why, "the part was not recorded");
  else if (can_be_asked(s, o, &why)) {
    out->value = s->get(o);
    out->known = !isnan(out->value);
    if (!out->known) open_since(&why, "there is nothing finite to compare");
  }
  out->met = out->known && relates(out->value, q->relation, q->value);
  if (out->known && !out->met)
    snprintf(out->why, sizeof out->why, "'%.80s' has %s %.6g, required: %.160s",
             q->output ? q->whole : out->output, s->name, out->value, q->text);
  else if (!out->known)
    snprintf(out->why, sizeof out->why, "'%.80s' cannot be judged by '%.100s': %.120s",
             q->output ? q->whole : out->output, q->text, why.why);
  return true;
}

// Of a requirement that is about no output.
static void judge_nowhere(const assay_requirement_t* q, assay_requirement_result_t* out) {
  const statistic_t* s = &statistics[q->statistic];
  *out = (assay_requirement_result_t){.of = q, .statistic = s->name};
  snprintf(out->why, sizeof out->why, "'%.100s' cannot be judged: no output %s", q->text,
           s->rows ? "has rows of scores (one or two dimensions of floats, the last of 2 or more)"
           : s->floats ? "is of floats"
                       : "is of anything but floats");
}

assay_status_t assay_require_results(const assay_requirements_t* r,
                                     const assay_output_check_t* outputs, size_t n_outputs,
                                     const bool* met, assay_requirement_result_t** out,
                                     size_t* n_out) {
  size_t n = 0;
  *out = NULL;
  *n_out = 0;
  if (!r || !r->n) return NULL;
  ASSAY_TRY(assay_new_array(r->n * (n_outputs + 1), sizeof **out, out));
  for (size_t i = 0; i < r->n; i++) {
    const assay_requirement_t* q = &r->at[i];
    const size_t before = n;
    for (size_t o = 0; o < n_outputs; o++) n += assay_require_judge(q, &outputs[o], &(*out)[n]);
    if (q->command && met) {
      (*out)[n] = (assay_requirement_result_t){.of = q, .known = true, .met = met[i]};
      if (!met[i]) snprintf((*out)[n].why, ASSAY_REQUIREMENT_WHY, "the command says no");
      n++;
    } else if (!q->command && n == before) {
      judge_nowhere(q, &(*out)[n++]);
    }
  }
  *n_out = n;
  return NULL;
}

bool assay_require_is_open(const assay_requirements_t* r, const assay_output_check_t* outputs,
                           size_t n_outputs, assay_str_t* why) {
  bool open = false;
  for (size_t i = 0; i < r->n; i++) {
    const assay_requirement_t* q = &r->at[i];
    assay_requirement_result_t one;
    bool about = q->command;
    for (size_t o = 0; o < n_outputs; o++) {
      if (!assay_require_judge(q, &outputs[o], &one)) continue;
      about = true;
      // Another shape, or nothing finite, is the engine's doing.
      if (one.known || outputs[o].differing || outputs[o].error.mismatched) continue;
      if (why) assay_str_printf(why, "%s%s", why->len ? "; " : "", one.why);
      open = true;
    }
    if (about) continue;
    judge_nowhere(q, &one);
    if (why) assay_str_printf(why, "%s%s", why->len ? "; " : "", one.why);
    open = true;
  }
  return open;
}

bool assay_require_value(const assay_requirement_t* q, const assay_output_check_t* output,
                         const char** out_name, double* out_value) {
  assay_requirement_result_t one;
  if (!assay_require_judge(q, output, &one) || !one.known) return false;
  *out_name = one.statistic;
  *out_value = one.value;
  return true;
}

bool assay_require_holds(const assay_requirements_t* r, const assay_output_check_t* output,
                         assay_str_t* why) {
  bool all = true;
  for (size_t i = 0; i < r->n; i++) {
    assay_requirement_result_t one;
    if (!assay_require_judge(&r->at[i], output, &one) || one.met) continue;
    all = false;
    if (why) assay_str_printf(why, "%s%s", why->len ? "; " : "", one.why);
  }
  return all;
}

double assay_require_margin(const assay_requirements_t* r, const assay_output_check_t* output) {
  double margin = 1;
  for (size_t i = 0; i < r->n; i++) {
    const assay_requirement_t* q = &r->at[i];
    const statistic_t* s = &statistics[q->statistic];
    assay_requirement_result_t one;
    if (!assay_require_judge(q, output, &one) || !one.known || one.met) continue;
    const double part = s->margin ? s->margin(one.value, q->value) : 0.1;
    margin = fmin(margin, part >= 0 && part < 1 ? part : 0.25);
  }
  return margin;
}
