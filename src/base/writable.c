// Whether a path can be written, asked before the work whose result goes there.
#include "base/writable.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"

// Appends the folder that a path lies in: "." of a bare name.
static void append_parent(const char* path, assay_str_t* out) {
  size_t n = strlen(path);
  while (n > 1 && path[n - 1] == '/') n--;
  while (n && path[n - 1] != '/') n--;
  while (n > 1 && path[n - 1] == '/') n--;
  if (n)
    assay_str_append_n(out, path, n);
  else
    assay_str_append(out, ".");
}

// Makes a file without a name, which is gone when it is closed: what rights alone do not tell (a
// read-only file system, no room for one more file) shows. Where there are no such files, rights
// have to do.
static int try_folder(const char* folder) {
#ifdef O_TMPFILE
  const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0) return close(fd), 0;
  if (errno == EROFS || errno == ENOSPC || errno == EDQUOT) return errno;
#endif
  return access(folder, W_OK | X_OK) ? errno : 0;
}

static assay_status_t existing_folder(const char* folder) {
  struct stat info;
  if (stat(folder, &info))
    return errno == ENOENT
               ? ASSAY_ERROR(ASSAY_DEVICE, "there is no folder '%s'; make it, or give another path",
                             folder)
               : ASSAY_ERROR(ASSAY_DEVICE, "folder '%s': %s; give another path", folder,
                             strerror(errno));
  if (!S_ISDIR(info.st_mode))
    return ASSAY_ERROR(ASSAY_DEVICE, "'%s' is not a folder; give another path", folder);
  const int why = try_folder(folder);
  return why ? ASSAY_ERROR(ASSAY_DEVICE,
                           "nothing can be written into folder '%s' (%s); give another path",
                           folder, strerror(why))
             : NULL;
}

static assay_status_t parent_of(const char* path) {
  assay_str_t folder = {0};
  append_parent(path, &folder);
  assay_status_t st = assay_str_status(&folder);
  if (!st) st = existing_folder(assay_str_get(&folder));
  assay_str_deinit(&folder);
  return st;
}

assay_status_t assay_writable_file(const char* path) {
  struct stat info;
  if (!*path) return ASSAY_ERROR(ASSAY_DEVICE, "the path is empty; name a file");
  if (stat(path, &info)) {
    if (errno != ENOENT) return ASSAY_ERROR(ASSAY_DEVICE, "%s; give another path", strerror(errno));
    if (path[strlen(path) - 1] == '/')
      return ASSAY_ERROR(ASSAY_DEVICE, "it names a folder; name a file in it");
    return parent_of(path);
  }
  if (S_ISDIR(info.st_mode)) return ASSAY_ERROR(ASSAY_DEVICE, "it is a folder; name a file in it");
  if (!S_ISREG(info.st_mode))  // a device or a pipe is written as it is
    return access(path, W_OK) ? ASSAY_ERROR(ASSAY_DEVICE, "%s; give another path", strerror(errno))
                              : NULL;
  // A file is replaced, not changed: what counts is where it really lies.
  char* real = realpath(path, NULL);
  if (!real) return ASSAY_ERROR(ASSAY_DEVICE, "%s; give another path", strerror(errno));
  assay_status_t st = parent_of(real);
  free(real);
  return st;
}

assay_status_t assay_writable_folder(const char* path) {
  struct stat info;
  assay_str_t at = {0}, up = {0};
  if (!*path) return ASSAY_ERROR(ASSAY_DEVICE, "the path is empty; name a folder");
  assay_str_append(&at, path);
  assay_status_t st = assay_str_status(&at);
  // Those that are missing are made: the first one that is there decides.
  while (!st && stat(assay_str_get(&at), &info) && errno == ENOENT) {
    up.len = 0;
    append_parent(assay_str_get(&at), &up);
    st = assay_str_status(&up);
    if (st || strcmp(assay_str_get(&up), assay_str_get(&at)) == 0) break;
    const assay_str_t swapped = at;
    at = up;
    up = swapped;
  }
  if (!st) st = existing_folder(assay_str_get(&at));
  assay_str_deinit(&at);
  assay_str_deinit(&up);
  return st;
}
