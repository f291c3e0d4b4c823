// --tempdir and --tempfileControls: where folders for temporary files may be.
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "frontends/trtexec/flags.h"
#include "frontends/trtexec/specs.h"

enum { IN_MEMORY, TEMPORARY, N_KINDS };
static const char* const kinds[N_KINDS] = {"in_memory", "temporary"};

// What a list of KIND:PERMISSION denies, by kind.
static assay_status_t read_controls(assay_arena_t* arena, const char* text, bool* out_denied) {
  static const char flag[] = "--tempfileControls";
  trt_item_t* items = NULL;
  size_t n = 0;
  bool given[N_KINDS] = {false};
  ASSAY_TRY(trt_items_parse(arena, flag, text, &items, &n));
  for (size_t i = 0; i < n; i++) {
    int kind = 0;
    const bool deny = strcmp(items[i].value, "deny") == 0;
    while (kind < N_KINDS && strcmp(kinds[kind], items[i].name) != 0) kind++;
    if (kind == N_KINDS)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "%s: '%s' is not a kind of temporary files: in_memory or temporary", flag,
                         items[i].name);
    if (!deny && strcmp(items[i].value, "allow") != 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' of %s is neither allow nor deny", flag,
                         items[i].value, items[i].name);
    if (given[kind])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: %s is given twice", flag, items[i].name);
    given[kind] = true;
    out_denied[kind] = deny;
  }
  return NULL;
}

static assay_status_t check_folder(const char* path) {
  struct stat info;
  const char* why = stat(path, &info) != 0           ? "there is no such folder: make it first"
                    : !S_ISDIR(info.st_mode)         ? "it is not a folder"
                    : access(path, W_OK | X_OK) != 0 ? "nothing can be written there"
                                                     : NULL;
  return why ? ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--tempdir=%s: %s", path, why) : NULL;
}

assay_status_t trt_rule_temporary(const trt_options_t* o) {
  const char* folder = trt_text(o, TRT_FLAG_tempdir);
  const char* controls = trt_text(o, TRT_FLAG_tempfileControls);
  bool denied[N_KINDS] = {false};
  assay_arena_t* arena = NULL;
  if (folder) ASSAY_TRY(check_folder(folder));
  if (controls) {
    ASSAY_TRY(assay_arena_create(&arena));
    assay_status_t st = read_controls(arena, controls, denied);
    assay_arena_destroy(arena);
    ASSAY_TRY(st);
  }
  assay_folder_rule_temporary(folder,
                              denied[TEMPORARY] ? "--tempfileControls=temporary:deny" : NULL);
  return NULL;
}
