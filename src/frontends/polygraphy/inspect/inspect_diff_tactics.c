// polygraphy inspect diff-tactics: tactics that occur in replays of bad plans only.
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/shown.h"
#include "frontends/polygraphy/inspect/tactics.h"

// Entries of several replays, each algorithm of a layer once.
typedef struct pool {
  assay_tactic_entry_t* entries;
  size_t n, capacity;
  size_t n_files;
} pool_t;

static bool has(const pool_t* p, const assay_tactic_entry_t* e) {
  for (size_t i = 0; i < p->n; i++)
    if (strcmp(p->entries[i].layer, e->layer) == 0 && assay_tactic_same(&p->entries[i], e))
      return true;
  return false;
}

static assay_status_t add_file(pg_job_t* j, const char* path, pool_t* p) {
  assay_tactics_t t;
  pg_log(PG_INFO, "Loading tactic replay file from %s", path);
  ASSAY_TRY(assay_tactics_read(j->arena, path, &t));
  p->n_files++;
  for (size_t i = 0; i < t.n; i++) {
    if (has(p, &t.entries[i])) continue;
    ASSAY_TRY(assay_grow(&p->entries, &p->capacity, p->n + 1, sizeof *p->entries));
    p->entries[p->n++] = t.entries[i];
  }
  return NULL;
}

static assay_status_t add_path(pg_job_t* j, const char* path, pool_t* p);

static int is_shown(const struct dirent* d) { return d->d_name[0] != '.'; }

// A file of a folder may be something else that was put aside, such as an engine.
static assay_status_t add_member(pg_job_t* j, const char* path, pool_t* p) {
  assay_status_t st = add_path(j, path, p);
  if (!st || assay_status_code(st) != ASSAY_CORRUPT) return st;
  pg_log(PG_WARNING, "Skipped: %s", assay_status_message(st));
  assay_status_free(st);
  return NULL;
}

// All files in it, and in folders in it, in the order of their names.
static assay_status_t add_folder(pg_job_t* j, const char* path, pool_t* p) {
  struct dirent** names = NULL;
  const int n = scandir(path, &names, is_shown, alphasort);
  assay_status_t st = NULL;
  if (n < 0)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "cannot read the folder '%s': %s", path, strerror(errno));
  for (int i = 0; i < n; i++) {
    const char* inside = NULL;
    if (!st) st = assay_arena_printf(j->arena, &inside, "%s/%s", path, names[i]->d_name);
    if (!st) st = add_member(j, inside, p);
    free(names[i]);
  }
  free(names);
  return st;
}

static assay_status_t add_path(pg_job_t* j, const char* path, pool_t* p) {
  struct stat info;
  if (stat(path, &info) != 0)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  return S_ISDIR(info.st_mode) ? add_folder(j, path, p) : add_file(j, path, p);
}

static assay_status_t add_all(pg_job_t* j, pg_flag_id_t flag, const char* name, pool_t* p) {
  const char* path = pg_text(j->args, flag);
  const char* folder = pg_text(j->args, PG_FLAG_dir_inspect_diff_tactics);
  if (!path && !folder)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "there are no %s replays: give --%s PATH, or --dir FOLDER, which has "
                       "folders good and bad",
                       name, name);
  if (!path) ASSAY_TRY(assay_arena_printf(j->arena, &path, "%s/%s", folder, name));
  ASSAY_TRY(add_path(j, path, p));
  pg_log(PG_INFO, "Loaded %zu %s tactic replays.", p->n_files, name);
  return NULL;
}

// Layers of the bad ones with what the good ones do not have; each is told once.
static assay_status_t report(const pool_t* good, const pool_t* bad) {
  assay_str_t text = {0};
  for (size_t i = 0; i < bad->n; i++) {
    const char* layer = bad->entries[i].layer;
    bool reported = false;
    for (size_t k = 0; k < i; k++) reported |= strcmp(bad->entries[k].layer, layer) == 0;
    bool any = false;
    for (size_t k = i; !reported && k < bad->n; k++) {
      const assay_tactic_entry_t* e = &bad->entries[k];
      if (strcmp(e->layer, layer) != 0 || has(good, e)) continue;
      if (!any) assay_str_printf(&text, "\nLayer: %s\n    Algorithms: ", layer);
      if (any) assay_str_append(&text, "\n                ");
      pg_put_algorithm(&text, e);
      any = true;
    }
  }
  assay_status_t st = assay_str_status(&text);
  if (!st && text.len)
    pg_log(PG_INFO, "Found potentially bad tactics:" ASSAY_LINES, assay_str_get(&text));
  else if (!st)
    pg_log(PG_INFO,
           "Could not determine potentially bad tactics. Try providing more tactic replay files if "
           "possible.");
  assay_str_deinit(&text);
  return st;
}

assay_status_t pg_run_inspect_diff_tactics(pg_job_t* j) {
  pool_t good = {0}, bad = {0};
  assay_status_t st = add_all(j, PG_FLAG_good, "good", &good);
  if (!st) st = add_all(j, PG_FLAG_bad, "bad", &bad);
  if (!st) st = report(&good, &bad);
  assay_free(good.entries);
  assay_free(bad.entries);
  return st;
}
