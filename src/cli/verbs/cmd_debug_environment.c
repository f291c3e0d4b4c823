// assay debug environment: what numbers depend on besides the model, here or on two machines.
#include <string.h>

#include "cli/cli.h"
#include "report/environment.h"

typedef struct args {
  const char *first, *second, *json;
  bool compare;
} args_t;

static assay_status_t report(const args_t* a, const assay_str_t* text, const json_t* j) {
  if (!assay_cli_json_to_stdout(a->json)) fputs(assay_str_get(text), stdout);
  return a->json ? assay_cli_write_json(a->json, j) : NULL;
}

static int compare(const args_t* a) {
  json_t *first = NULL, *second = NULL, *j = NULL;
  assay_str_t text = {0};
  bool numbers = false;
  assay_status_t st = assay_json_read(a->first, &first);
  if (!st) st = assay_json_read(a->second, &second);
  if (!st) st = assay_environment_compare(first, second, &text, &j, &numbers);
  int code = ASSAY_EXIT_INPUT;
  if (!st) code = ASSAY_EXIT_FAILED, st = report(a, &text, j);
  json_decref(first);
  json_decref(second);
  json_decref(j);
  assay_str_deinit(&text);
  if (st) return assay_cli_fail(st, code);
  return numbers ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int show(const args_t* a) {
  json_t* j = NULL;
  assay_str_t text = {0};
  assay_status_t st = assay_environment_collect(&j);
  if (!st) st = assay_environment_text(j, &text);
  if (!st) st = report(a, &text, j);
  json_decref(j);
  assay_str_deinit(&text);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static int run(void* p) {
  const args_t* a = p;
  if (a->compare != (a->second != NULL) || (a->first && !a->compare))
    return assay_cli_usage("debug environment", "--compare and two files go together");
  return a->compare ? compare(a) : show(a);
}

static const opt_t options[] = {{"A.json", 0, OPT_STRING, offsetof(args_t, first), NULL,
                                 "with --compare: what --json wrote", false},
                                {"B.json", 0, OPT_STRING, offsetof(args_t, second), NULL,
                                 "with --compare: on another machine", false},
                                {"--compare", 0, OPT_FLAG, offsetof(args_t, compare), NULL,
                                 "say what differs, and what of it can change numbers", false},
                                {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE",
                                 "everything as JSON; - is stdout", false},
                                {0}};

const verb_t assay_verb_debug_environment = {
    .name = "debug environment",
    .summary = "show what numbers depend on besides the model, or compare two machines",
    .usage = "[--compare A.json B.json] [options]",
    .examples =
        "  assay debug environment --json here.json\n"
        "  assay debug environment --compare here.json there.json\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
