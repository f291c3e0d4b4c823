// Links of this program in a folder of their own, so that what a check calls reaches it.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process.h"
#include "base/shown.h"
#include "frontends/polygraphy/debug/debug_loop.h"
#include "frontends/polygraphy/log.h"

static const char* const names[] = {"polygraphy", "trtexec", "assay"};
enum { N_NAMES = sizeof names / sizeof *names, MAX_PATH = 4096 };

// What there is to remove; a handler of signals reads it, so nothing is allocated.
static char links[N_NAMES][MAX_PATH], folder[MAX_PATH];

void pg_links_remove(void) {
  if (!*folder) return;
  for (int i = 0; i < N_NAMES; i++) unlink(links[i]);
  rmdir(folder);
  *folder = 0;
}

static void end(int number) {
  pg_links_remove();
  signal(number, SIG_DFL);
  raise(number);
}

static void watch(void) {
  static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    struct sigaction before, own = {.sa_handler = end};
    sigemptyset(&own.sa_mask);
    if (sigaction(ends[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
      sigaction(ends[i], &own, NULL);
  }
}

static assay_status_t too_long(const char* path) {
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the path '%s' is too long", path);
}

static assay_status_t put(const char* program, int i) {
  const int n = snprintf(links[i], sizeof links[i], "%s/%s", folder, names[i]);
  if (n < 0 || (size_t)n >= sizeof links[i]) return too_long(folder);
  if (symlink(program, links[i]) == 0) return NULL;
  return ASSAY_ERROR(ASSAY_DEVICE, "cannot make the link '%s': %s", links[i], strerror(errno));
}

static bool is_name(const char* command) {
  for (int i = 0; i < N_NAMES; i++)
    if (strcmp(names[i], command) == 0) return true;
  return false;
}

assay_status_t pg_links_put(const char* program, const char* command) {
  const char* before = getenv("PATH");
  assay_str_t made = {0}, path = {0};
  assay_status_t st = assay_folder_make_temporary(&made);
  if (!st && made.len >= sizeof folder) st = too_long(assay_str_get(&made));
  if (!st) {
    memcpy(folder, made.text, made.len + 1);
    watch();
  }
  for (int i = 0; !st && i < N_NAMES; i++) st = put(program, i);
  assay_str_printf_raw(&path, "%s:%s", folder, before ? before : "/usr/local/bin:/usr/bin:/bin");
  if (!st) st = assay_str_status(&path);
  if (!st && setenv("PATH", assay_str_get(&path), 1)) st = assay_status_no_memory();
  if (!st)
    pg_log(is_name(command) ? PG_INFO : PG_VERBOSE,
           "The check command finds polygraphy, trtexec and assay in %s, which is first in its "
           "PATH: they are this program",
           folder);
  assay_str_deinit(&made);
  assay_str_deinit(&path);
  if (st) pg_links_remove();
  return st;
}
