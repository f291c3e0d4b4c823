// Paths that a command line has written: checked before the work, so that none of it is for
// nothing.
#include "cli/output_paths.h"

#include <string.h>
#include <sys/stat.h>

#include "base/writable.h"

static bool is_there(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

static bool is_folder(const char* path) {
  struct stat info;
  const char* slash = strrchr(path, '/');
  if (stat(path, &info) == 0) return S_ISDIR(info.st_mode);
  return *path && !strchr(slash ? slash + 1 : path, '.');
}

assay_status_t cli_output_check(const char* option, const char* path, output_kind_t kind) {
  if (strcmp(path, "-") == 0) return NULL;
  if (kind == OUTPUT_CACHE && is_there(path)) return NULL;
  const bool folder = kind == OUTPUT_FOLDER || (kind == OUTPUT_EITHER && is_folder(path));
  assay_status_t st = folder ? assay_writable_folder(path) : assay_writable_file(path);
  return assay_status_note(st, "nothing was run: %s '%s' cannot be written", option, path);
}

static output_kind_t kind_of(opt_kind_t kind, const char* path) {
  const size_t n = strlen(path);
  if (kind == OPT_OUT_CACHE) return OUTPUT_CACHE;
  if (kind == OPT_OUT_EITHER && n && path[n - 1] == '/') return OUTPUT_FOLDER;
  return kind == OPT_OUT_FOLDER ? OUTPUT_FOLDER : OUTPUT_FILE;
}

static const char* path_of(const opt_t* o, const void* args) {
  const char* path = NULL;
  if (o->kind < OPT_OUT_FILE || o->kind > OPT_OUT_CACHE) return NULL;
  memcpy(&path, (const char*)args + o->offset, sizeof path);
  return path;
}

// Whether a path lies right in a folder that another option has made: "-o out --json out/a.json".
static bool will_be_in(const verb_t* verb, const void* args, const char* path) {
  const char* name = strrchr(path, '/');
  for (const opt_t* o = verb->options; name && o->name; o++) {
    const char* folder = o->kind == OPT_OUT_FOLDER ? path_of(o, args) : NULL;
    size_t n = folder ? strlen(folder) : 0;
    while (n > 1 && folder[n - 1] == '/') n--;
    if (n && (size_t)(name - path) == n && strncmp(path, folder, n) == 0) return true;
  }
  return false;
}

assay_status_t cli_outputs_check(const verb_t* verb, const void* args) {
  for (const opt_t* o = verb->options; o->name; o++) {
    const char* path = path_of(o, args);
    if (!path || will_be_in(verb, args, path)) continue;
    ASSAY_TRY(cli_output_check(o->name, path, kind_of(o->kind, path)));
  }
  return NULL;
}
