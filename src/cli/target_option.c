// The option --target.
#include "cli/target_option.h"

#include <string.h>

#include "base/shown.h"
#include "exec/targets.h"

static const char* report_auto(void) {
  assay_str_t why = {0};
  const assay_backend_t* b = assay_target_auto(&why);
  assay_print(stderr, "assay: --target auto: %s\n", assay_str_get(&why));
  assay_str_deinit(&why);
  return b->name;
}

bool cli_target_settle(const verb_t* verb, void* args, int* out_exit) {
  for (const opt_t* o = verb->options; o->name; o++) {
    char* field = (char*)args + o->offset;
    const char* given = NULL;
    if (o->kind != OPT_STRING || !o->value || strcmp(o->value, "TARGET") != 0) continue;
    memcpy(&given, field, sizeof given);
    if (!given) continue;
    if (strcmp(given, "auto") == 0) {
      given = report_auto();
      memcpy(field, &given, sizeof given);
    }
    const assay_backend_t* b = assay_backend_find(given);
    assay_status_t st = b ? assay_target_want(b) : NULL;
    if (st) return *out_exit = assay_cli_fail(st, ASSAY_EXIT_FAILED), false;
  }
  return true;
}
