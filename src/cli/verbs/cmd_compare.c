// assay compare: two files of tensors against each other.
#include <assay/compare.h>
#include <assay/memory.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "cli/client.h"

#define VERB "compare"

typedef struct args {
  const char *file, *reference, *atol, *rtol, *ulp, *json;
  opt_list_t require;
  int64_t top_k, memory_limit;
  bool allow_missing, all;
  double timeout;
} args_t;

typedef struct job {
  const args_t* args;
  assay_limit_t* limits;
  char** names;  // that limits are on, by limit; NULL: all
  assay_comparison_t* comparison;
} job_t;

static void job_deinit(job_t* j) {
  assay_comparison_destroy(j->comparison);
  for (size_t i = 0; j->names && i < j->args->require.n; i++) assay_free(j->names[i]);
  assay_free(j->names);
  assay_free(j->limits);
}

// ---- options ------------------------------------------------------------------------------------

static assay_status_t parse_tolerance(const char* option, const char* text, double* out) {
  char* end;
  if (!text) return NULL;
  *out = strtod(text, &end);
  if (end == text || *end || !(*out >= 0))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s is a number of 0 or more, not '%s'", option,
                       text);
  return NULL;
}

static assay_status_t find_statistic(const char* requirement, const char* name, size_t n,
                                     assay_statistic_t* out) {
  char word[32];
  snprintf(word, sizeof word, "%.*s", (int)n, name);
  assay_nearest_t near = {.wanted = word};
  for (int s = 0; s < ASSAY_STATISTIC_COUNT; s++) {
    const char* known = assay_statistic_name((assay_statistic_t)s);
    if (strlen(known) == n && strncmp(known, name, n) == 0)
      return *out = (assay_statistic_t)s, NULL;
    assay_nearest_offer(&near, known);
  }
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "--require '%s': there is no statistic '%s'%s; there are max_abs, max_rel, "
      "rms, cosine, snr_db, psnr_db, max_ulp, top1 and others (docs/verbs/compare.md)",
      requirement, word, ASSAY_NEAREST_TEXT(&near));
}

// "OP VALUE" as the numbers that the statistic has to be between.
static assay_status_t parse_bound(const char* requirement, const char* at, assay_limit_t* out) {
  static const char* const ops[] = {">=", "<=", "==", ">", "<"};
  enum { N_OPS = sizeof ops / sizeof *ops };
  size_t op = 0;
  char* end;
  while (op < N_OPS && strncmp(at, ops[op], strlen(ops[op])) != 0) op++;
  const char* number = op < N_OPS ? at + strlen(ops[op]) : at;
  const double x = strtod(number, &end);
  while (*end == ' ') end++;
  if (op == N_OPS || end == number || *end || isnan(x))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--require '%s' is not '[NAME:] STATISTIC OP VALUE', such as 'cosine >= "
                       "0.999', with OP one of >= > <= < ==",
                       requirement);
  const char sign = *ops[op];
  const bool open = !ops[op][1];
  out->min = sign == '<' ? -(double)INFINITY : open ? nextafter(x, (double)INFINITY) : x;
  out->max = sign == '>' ? (double)INFINITY : open ? nextafter(x, -(double)INFINITY) : x;
  return NULL;
}

// "[NAME:] STATISTIC OP VALUE"; a name may have ':' in it.
static assay_status_t parse_limit(const char* text, assay_limit_t* out, char** out_name) {
  const char* colon = strrchr(text, ':');
  const char* at = colon ? colon + 1 : text;
  if (colon) {
    const size_t n = (size_t)(colon - text);
    ASSAY_TRY(assay_new_array(n + 1, 1, out_name));
    memcpy(*out_name, text, n);
    out->name = *out_name;
  }
  while (*at == ' ') at++;
  const size_t n = strcspn(at, " <>=");
  ASSAY_TRY(find_statistic(text, at, n, &out->statistic));
  at += n;
  while (*at == ' ') at++;
  return parse_bound(text, at, out);
}

// What is required instead of a tolerance: NaN and infinities are at the same places all the same,
// unless something is said of that.
static assay_status_t parse_limits(const args_t* a, job_t* j, assay_compare_options_t* o) {
  bool asked = false;
  size_t n = a->require.n;
  ASSAY_TRY(assay_new_array(n + 1, sizeof *j->limits, &j->limits));
  ASSAY_TRY(assay_new_array(n, sizeof *j->names, &j->names));
  for (size_t i = 0; i < n; i++) {
    ASSAY_TRY(parse_limit(a->require.items[i], &j->limits[i], &j->names[i]));
    asked |= j->limits[i].statistic == ASSAY_STATISTIC_MISMATCHED;
  }
  o->no_tolerance = n && !a->atol && !a->rtol;
  if (o->no_tolerance && !asked)
    j->limits[n++] = (assay_limit_t){.statistic = ASSAY_STATISTIC_MISMATCHED};
  o->limits = j->limits;
  o->n_limits = n;
  return NULL;
}

static assay_status_t parse(const args_t* a, job_t* j, assay_compare_options_t* o) {
  ASSAY_TRY(parse_tolerance("--atol", a->atol, &o->atol));
  ASSAY_TRY(parse_tolerance("--rtol", a->rtol, &o->rtol));
  if (a->ulp) o->ulp_format = cli_client_find_float(a->ulp);
  if (a->ulp && !o->ulp_format)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "unknown format '%s'; use fp32, tf32, bf16, fp16, fp8e4m3, fp64 ...",
                       a->ulp);
  if (a->top_k < 0 || a->top_k > 64)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--top-k is 1 to 64, not %lld", (long long)a->top_k);
  if (a->top_k) o->top_k = (int)a->top_k;
  o->allow_missing = a->allow_missing;
  return parse_limits(a, j, o);
}

// ---- the verb -----------------------------------------------------------------------------------

static assay_status_t report(const void* job, assay_report_kind_t kind, assay_report_fn_t* write,
                             void* user) {
  const job_t* j = job;
  assay_compare_report_options_t o = ASSAY_COMPARE_REPORT_OPTIONS_INIT;
  o.all = j->args->all;
  return assay_comparison_report(j->comparison, kind, &o, write, user);
}

static int compare(const args_t* a, job_t* j) {
  assay_compare_options_t o = ASSAY_COMPARE_OPTIONS_INIT;
  assay_status_t st = parse(a, j, &o);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = assay_compare_files(a->file, a->reference, &o, &j->comparison);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = cli_client_report(report, j, a->json);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return assay_comparison_passed(j->comparison) ? ASSAY_EXIT_OK : ASSAY_EXIT_UNFAITHFUL;
}

static int run(void* p) {
  const args_t* a = p;
  job_t j = {.args = a};
  if (a->memory_limit) assay_memory_set_limit(a->memory_limit);
  const int code = compare(a, &j);
  job_deinit(&j);
  return code;
}

static const opt_t options[] = {
    {"FILE", 0, OPT_STRING, offsetof(args_t, file), NULL,
     "tensors, in one of the formats {formats}", true},
    {"REFERENCE", 0, OPT_STRING, offsetof(args_t, reference), NULL,
     "what they should be, by the same names", true},
    {"--atol", 0, OPT_STRING, offsetof(args_t, atol), "X",
     "elements may differ by X + rtol * |reference| (default: 1e-5)", false},
    {"--rtol", 0, OPT_STRING, offsetof(args_t, rtol), "X", "the same (default: 1e-5)", false},
    {"--require", 0, OPT_LIST, offsetof(args_t, require), "DEMAND",
     "'[NAME:] STATISTIC OP VALUE', such as 'snr_db >= 60' or\n'logits: top1 >= 0.99'; single "
     "elements may then differ, unless\n--atol or --rtol is given",
     false},
    {"--ulp", 0, OPT_STRING, offsetof(args_t, ulp), "FORMAT",
     "whose steps max_ulp counts (default: of the reference's type)", false},
    {"--top-k", 0, OPT_INT, offsetof(args_t, top_k), "N",
     "largest elements that top_k is about (default: 5)", false},
    {"--allow-missing", 0, OPT_FLAG, offsetof(args_t, allow_missing), NULL,
     "leave out tensors that one of the files lacks", false},
    {"--all", 0, OPT_FLAG, offsetof(args_t, all), NULL, "show all tensors, not only the worst",
     false},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "everything as JSON; - is stdout",
     false},
    CLI_MEMORY_OPTION,
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_compare = {
    .name = VERB,
    .summary = "compare two files of tensors: tolerances, statistics, requirements",
    .usage = "FILE REFERENCE [options]",
    .examples =
        "  assay compare outputs.npz golden.npz\n"
        "  assay compare outputs.npz golden.npz --atol 1e-3 --rtol 0 --all\n"
        "  assay compare outputs.json golden.safetensors --require 'snr_db >= 60' --json -\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
