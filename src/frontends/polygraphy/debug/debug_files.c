// Files that are put aside by what came of an iteration, and numbers as Python prints them.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/shown.h"
#include "frontends/polygraphy/debug/debug_loop.h"
#include "frontends/polygraphy/log.h"

enum { MAX_NAMESAKES = 1000 };

void pg_put_float(assay_str_t* out, double x) {
  char text[40] = "";
  int digits = 0;
  if (!isfinite(x)) {
    assay_str_append(out, isnan(x) ? "nan" : x < 0 ? "-inf" : "inf");
    return;
  }
  do snprintf(text, sizeof text, "%.*e", digits, x);
  while (strtod(text, NULL) != x && ++digits < 17);
  const int exponent = atoi(strchr(text, 'e') + 1);
  // Within these, Python writes no exponent, and at least one digit after the point.
  if (exponent >= -4 && exponent < 16)
    assay_str_printf_raw(out, "%.*f", digits > exponent ? digits - exponent : 1, x);
  else
    assay_str_printf_raw(out, "%.*g", digits + 1, x);
}

void pg_remove(const char* path) {
  if (remove(path) && errno != ENOENT)
    pg_log(PG_WARNING, "Cannot remove '%s': %s", path, strerror(errno));
}

void pg_artifact_name(const char* folder, bool good, const char* path, const char* stamp,
                      size_t index, const char* suffix, assay_str_t* out) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;  // a folder's name may end so
  size_t start = n;
  while (start && path[start - 1] != '/') start--;
  size_t dot = n;
  for (size_t i = n; i > start + 1; i--)
    if (path[i - 1] == '.') {
      dot = i - 1;
      break;
    }
  assay_str_printf_raw(out, "%s/%s/%.*s_%s_N%zu", folder, good ? "good" : "bad", (int)(dot - start),
                       path + start, stamp, index);
  if (suffix) assay_str_printf_raw(out, "_%s", suffix);
  assay_str_append_n(out, path + dot, n - dot);
}

// ---- moving -------------------------------------------------------------------------------------

// To another file system a file is copied.
static assay_status_t copy(const char* from, const char* to) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(from, &m));
  assay_status_t st = assay_file_write(to, assay_mapping_data(m), assay_mapping_size(m));
  assay_mapping_release(m);
  if (!st) pg_remove(from);
  return st;
}

static assay_status_t move(const char* from, const char* to) {
  struct stat info;
  if (rename(from, to) == 0) return NULL;
  if (errno == EXDEV && stat(from, &info) == 0 && S_ISREG(info.st_mode)) return copy(from, to);
  return ASSAY_ERROR(ASSAY_DEVICE, "--artifacts: cannot move '%s' to '%s': %s", from, to,
                     strerror(errno));
}

static bool is_there(const char* path) {
  struct stat info;
  return lstat(path, &info) == 0;
}

// What lies there already stays: the next free "SUFFIX-2", "SUFFIX-3" is taken.
static assay_status_t free_name(const pg_debug_t* d, const char* folder, const char* path,
                                const pg_iteration_t* i, const char* suffix, assay_str_t* out) {
  for (int k = 1; k < MAX_NAMESAKES; k++) {
    assay_str_t tail = {0};
    assay_str_deinit(out);
    *out = (assay_str_t){0};
    if (k > 1) assay_str_printf_raw(&tail, "%s%s%d", suffix ? suffix : "", suffix ? "-" : "", k);
    pg_artifact_name(folder, i->success, path, d->stamp, i->index,
                     k > 1 ? assay_str_get(&tail) : suffix, out);
    assay_status_t st = assay_status_join(assay_str_status(&tail), assay_str_status(out));
    assay_str_deinit(&tail);
    if (st || !is_there(assay_str_get(out))) return st;
  }
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "--artifacts: '%s' and %d others of its name are there",
                     assay_str_get(out), MAX_NAMESAKES);
}

static assay_status_t move_one(const pg_debug_t* d, const pg_iteration_t* i, const char* suffix,
                               const char* path) {
  const char* folder = pg_text(d->job->args, PG_FLAG_art_dir);
  assay_str_t to = {0}, parent = {0};
  if (!is_there(path)) {
    pg_log(PG_ERROR,
           "Artifact: %s does not exist, skipping.\nWas the artifact supposed to be generated?",
           path);
    return NULL;
  }
  assay_str_printf_raw(&parent, "%s/%s", folder, i->success ? "good" : "bad");
  assay_status_t st = assay_str_status(&parent);
  if (!st) st = assay_folder_make(assay_str_get(&parent));
  if (!st) st = free_name(d, folder, path, i, suffix, &to);
  if (!st) pg_log(PG_INFO, "Moving %s to %s", path, assay_str_get(&to));
  if (!st) st = move(path, assay_str_get(&to));
  assay_str_deinit(&parent);
  assay_str_deinit(&to);
  return st;
}

assay_status_t pg_artifacts_move(const pg_debug_t* d, const pg_iteration_t* i, const char* suffix) {
  const pg_words_t* paths = pg_words(d->job->args, PG_FLAG_artifacts);
  for (size_t k = 0; k < paths->n; k++) ASSAY_TRY(move_one(d, i, suffix, paths->items[k]));
  return NULL;
}
