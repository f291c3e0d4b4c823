// The option --target.
#include "cli/target_option.h"

#include <stdio.h>
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

static char* field_of(const verb_t* verb, void* args, const char* name) {
  for (const opt_t* o = verb->options; o->name; o++)
    if (o->kind == OPT_STRING && strcmp(o->name, name) == 0) return (char*)args + o->offset;
  return NULL;
}

// The names behind "emu:" of what it can be like, for messages.
static void list_likes(assay_str_t* out) {
  const char* const* likes = assay_target_default(ASSAY_TARGET_INSPECT)->likes;
  for (size_t i = 0; likes && likes[i]; i++)
    assay_str_printf(out, "%s%s", i ? ", " : "", strchr(likes[i], ':') + 1);
}

// "--target emu --like sm_90" is the target "emu:sm_90".
static bool settle_like(const verb_t* verb, void* args, int* out_exit) {
  static char name[64];
  const char *like = NULL, *target = NULL, *emu = assay_target_default(ASSAY_TARGET_INSPECT)->name;
  const char* at = name;
  char* of_like = field_of(verb, args, "--like");
  char* of_target = field_of(verb, args, "--target");
  if (of_like) memcpy(&like, of_like, sizeof like);
  if (!like || !of_target) return true;
  memcpy(&target, of_target, sizeof target);
  if (target && strcmp(target, emu) != 0)
    return *out_exit =
               assay_cli_usage(verb->name, "--like is for --target %s, not '%s'", emu, target),
           false;
  snprintf(name, sizeof name, "%s:%s", emu, like);
  if (strlen(emu) + 1 + strlen(like) >= sizeof name || !assay_backend_find(name)) {
    assay_str_t all = {0};
    list_likes(&all);
    *out_exit = assay_cli_usage(verb->name, "--like '%s' is no GPU whose sums are known; use %s",
                                like, assay_str_get(&all));
    assay_str_deinit(&all);
    return false;
  }
  memcpy(of_target, &at, sizeof at);
  return true;
}

bool cli_target_settle(const verb_t* verb, void* args, int* out_exit) {
  if (!settle_like(verb, args, out_exit)) return false;
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
