// assay debug environment: what numbers depend on besides the model, here or on two machines.
#include <assay/environment.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/client.h"

typedef struct args {
  const char *first, *second, *json;
  bool compare;
} args_t;

static assay_status_t report_this(const void* nothing, assay_report_kind_t kind,
                                  assay_report_fn_t* write, void* user) {
  (void)nothing;
  return assay_environment_report(kind, write, user);
}

static assay_status_t report_both(const void* comparison, assay_report_kind_t kind,
                                  assay_report_fn_t* write, void* user) {
  return assay_environment_comparison_report(comparison, kind, write, user);
}

static int compare(const args_t* a) {
  assay_environment_comparison_t* c = NULL;
  assay_status_t st = assay_environment_compare(a->first, a->second, &c);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  st = cli_client_report(report_both, c, a->json);
  const bool numbers = assay_environment_comparison_changes_numbers(c);
  assay_environment_comparison_destroy(c);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_FAILED);
  return numbers ? ASSAY_EXIT_UNFAITHFUL : ASSAY_EXIT_OK;
}

static int show(const args_t* a) {
  assay_status_t st = cli_client_report(report_this, NULL, a->json);
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
