#include "accuracy/require.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy/check.h"
#include "accuracy/script.h"
#include "base/alloc.h"
#include "base/functions.h"

// ---- statistics -----------------------------------------------------------------------------------------

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
  bool floats, golden;  // of float outputs only; needs golden
  double (*room)(double now, double wanted);  // see assay_require_room; NULL: a guess
} statistic_t;

// 1 - cosine grows with the error's energy; decibels are its logarithm, the others its root.
static double room_cosine(double now, double wanted) { return (1 - wanted) / (1 - now); }
static double room_db(double now, double wanted) { return assay_pow(10, (now - wanted) / 10); }
static double room_root(double now, double wanted) { return wanted / now * (wanted / now); }

static const statistic_t statistics[] = {
    {"cosine", get_cosine, true, false, room_cosine},
    {"snr_db", get_snr, true, false, room_db},
    {"psnr_db", get_psnr, true, false, room_db},
    {"max_abs", get_max_abs, true, false, room_root},
    {"max_rel", get_max_rel, true, false, room_root},
    {"mean", get_mean, true, false, NULL},
    {"rms", get_rms, true, false, room_root},
    {"nan", get_nan, true, false, NULL},
    {"inf", get_inf, true, false, NULL},
    {"top1", get_top1, true, false, NULL},
    {"top5", get_top5, true, false, NULL},
    {"differing", get_differing, false, false, NULL},
    {"golden_psnr_db", get_golden_psnr, true, true, NULL},
    {"golden_snr_db", get_golden_snr, true, true, NULL},
    {"golden_max_abs", get_golden_max, true, true, NULL},
    {"drop_psnr_db", get_drop, true, true, NULL},
};
enum { N_STATISTICS = sizeof statistics / sizeof *statistics };

// ---- parsing --------------------------------------------------------------------------------------------

static const struct {
  const char* text;
  assay_relation_t relation;
} relations[] = {{">=", ASSAY_AT_LEAST}, {"<=", ASSAY_AT_MOST}, {"==", ASSAY_EQUAL},
                 {">", ASSAY_ABOVE},     {"<", ASSAY_BELOW}};

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
  assay_status_t st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                                  "'%s' is no requirement: write '[OUTPUT:] STATISTIC OP VALUE' with OP one of "
                                  ">= > <= < == and STATISTIC one of %s",
                                  text, assay_str_get(&names));
  assay_str_deinit(&names);
  return st;
}

// `copy` is cut up; its parts stay in use.
static assay_status_t parse(char* copy, const char* text, assay_requirement_t* out) {
  char* op = NULL;
  size_t op_len = 0;
  for (size_t i = 0; i < sizeof relations / sizeof *relations && !op; i++) {
    op = strstr(copy, relations[i].text);
    if (!op) continue;
    op_len = strlen(relations[i].text);
    out->relation = relations[i].relation;
  }
  if (!op) return bad(text);
  char *value = trim(op + op_len), *end = NULL;
  *op = 0;
  out->value = strtod(value, &end);
  if (end == value || *end || isnan(out->value)) return bad(text);
  char* name = strrchr(copy, ':');
  if (name) {
    *name++ = 0;
    out->output = trim(copy);
  } else {
    name = copy;
  }
  name = trim(name);
  for (int i = 0; i < N_STATISTICS; i++) {
    if (strcmp(statistics[i].name, name) != 0) continue;
    out->statistic = i;
    return NULL;
  }
  return bad(text);
}

static assay_status_t copy_text(assay_requirements_t* r, const char* text, char** out) {
  ASSAY_TRY(assay_grow(&r->texts, &r->cap_texts, r->n_texts + 1, sizeof *r->texts));
  ASSAY_TRY(assay_new_array(strlen(text) + 1, 1, out));
  strcpy(*out, text);
  r->texts[r->n_texts++] = *out;
  return NULL;
}

assay_status_t assay_require_parse(assay_requirements_t* r, const char* text) {
  char *copy = NULL, *whole = NULL;
  assay_requirement_t next = {0};
  ASSAY_TRY(copy_text(r, text, &whole));
  next.command = assay_script_is_command(text);
  if (!next.command) {
    ASSAY_TRY(copy_text(r, text, &copy));
    ASSAY_TRY(parse(copy, text, &next));
  }
  ASSAY_TRY(assay_grow(&r->at, &r->capacity, r->n + 1, sizeof *r->at));
  next.text = whole;
  r->at[r->n++] = next;
  return NULL;
}

void assay_requirements_deinit(assay_requirements_t* r) {
  for (size_t i = 0; i < r->n_texts; i++) assay_free(r->texts[i]);
  assay_free(r->texts);
  assay_free(r->at);
  *r = (assay_requirements_t){0};
}

assay_status_t assay_require_resolve(const assay_requirements_t* r, const assay_graph_t* g) {
  for (size_t i = 0; i < r->n; i++) {
    bool found = !r->at[i].output;
    for (size_t k = 0; k < g->n_outputs; k++)
      found |= r->at[i].output && strcmp(g->outputs[k]->name, r->at[i].output) == 0;
    if (!found)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "requirement '%s': the model has no output '%s'",
                         r->at[i].text, r->at[i].output);
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

// ---- holding ----------------------------------------------------------------------------------------------

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

static bool is_about(const assay_requirement_t* q, const assay_output_check_t* output) {
  const statistic_t* s = &statistics[q->statistic];
  if (q->command || (q->output && strcmp(q->output, output->value->name) != 0)) return false;
  return s->floats == output->is_float && (!s->golden || output->has_golden);
}

bool assay_require_value(const assay_requirement_t* q, const assay_output_check_t* output,
                         const char** out_name, double* out_value) {
  if (!is_about(q, output)) return false;
  *out_name = statistics[q->statistic].name;
  *out_value = statistics[q->statistic].get(output);
  return true;
}

bool assay_require_holds(const assay_requirements_t* r, const assay_output_check_t* output,
                         assay_str_t* why) {
  bool all = true;
  for (size_t i = 0; i < r->n; i++) {
    const assay_requirement_t* q = &r->at[i];
    const statistic_t* s = &statistics[q->statistic];
    if (q->command || (q->output && strcmp(q->output, output->value->name) != 0)) continue;
    if (s->floats != output->is_float || (s->golden && !output->has_golden)) {
      if (q->output) all = false;
      continue;
    }
    const double x = s->get(output);
    if (relates(x, q->relation, q->value)) continue;
    all = false;
    if (why)
      assay_str_printf(why, "%s'%s' has %s %.6g, required: %s", why->len ? "; " : "",
                       output->value->name, s->name, x, q->text);
  }
  return all;
}

double assay_require_room(const assay_requirements_t* r, const assay_output_check_t* output) {
  double room = 1;
  for (size_t i = 0; i < r->n; i++) {
    const assay_requirement_t* q = &r->at[i];
    const statistic_t* s = &statistics[q->statistic];
    if (!is_about(q, output)) continue;
    const double now = s->get(output);
    if (relates(now, q->relation, q->value)) continue;
    const double part = s->room ? s->room(now, q->value) : 0.1;
    room = fmin(room, part >= 0 && part < 1 ? part : 0.25);
  }
  return room;
}
