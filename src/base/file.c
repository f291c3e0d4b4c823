// Files: mapped for reading, replaced whole when written.
#include "base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/beneath.h"

// ---- mappings ---------------------------------------------------------------------------------

struct assay_mapping {
  _Atomic int refs;
  uint8_t* data;
  size_t size;
  bool mapped;             // else allocated
  assay_mapping_t* whole;  // of a part: it owns the bytes
};

static assay_status_t map_fd(int fd, const char* path, assay_mapping_t* m) {
  struct stat info;
  if (fstat(fd, &info)) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  if (S_ISDIR(info.st_mode))
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s' is a folder; give a file", path);
  if (!S_ISREG(info.st_mode))
    return ASSAY_ERROR(ASSAY_UNSUPPORTED, "'%s' is not a regular file", path);
  m->size = (size_t)info.st_size;
  if (!m->size) return NULL;
  void* p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED)
    return ASSAY_ERROR(ASSAY_NO_MEMORY, "'%s': cannot map %zu bytes: %s", path, m->size,
                       strerror(errno));
  m->data = p;
  m->mapped = true;
  return NULL;
}

assay_status_t assay_mapping_of_file(int fd, const char* path, assay_mapping_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  m->refs = 1;
  assay_status_t st = map_fd(fd, path, m);
  if (st) return assay_mapping_release(m), st;
  *out = m;
  return NULL;
}

assay_status_t assay_mapping_open(const char* path, assay_mapping_t** out) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  assay_status_t st = assay_mapping_of_file(fd, path, out);
  close(fd);
  return st;
}

assay_status_t assay_mapping_copy(const void* data, size_t size, assay_mapping_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  m->refs = 1;
  m->size = size;
  m->data = assay_malloc(size);
  if (!m->data) return assay_free(m), assay_status_no_memory();
  if (size) memcpy(m->data, data, size);
  *out = m;
  return NULL;
}

assay_status_t assay_mapping_zeros(size_t size, assay_mapping_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  m->refs = 1;
  m->size = size;
  m->mapped = size > 0;
  void* p =
      size ? mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : NULL;
  if (p == MAP_FAILED) {
    assay_free(m);
    return ASSAY_ERROR(ASSAY_NO_MEMORY, "cannot map %zu bytes of zeros: %s", size, strerror(errno));
  }
  m->data = p;
  *out = m;
  return NULL;
}

assay_status_t assay_mapping_part(assay_mapping_t* whole, size_t offset, size_t size,
                                  assay_mapping_t** out) {
  if (offset > whole->size || size > whole->size - offset)
    return ASSAY_ERROR(ASSAY_CORRUPT, "bytes %zu to %zu are past the end at %zu", offset,
                       offset + size, whole->size);
  assay_mapping_t* m = NULL;
  ASSAY_TRY(ASSAY_NEW(&m));
  m->refs = 1;
  m->data = whole->data + offset;
  m->size = size;
  m->whole = whole;
  assay_mapping_retain(whole);
  *out = m;
  return NULL;
}

void assay_mapping_retain(assay_mapping_t* m) { atomic_fetch_add(&m->refs, 1); }

void assay_mapping_release(assay_mapping_t* m) {
  if (!m || atomic_fetch_sub(&m->refs, 1) != 1) return;
  if (m->whole)
    assay_mapping_release(m->whole);
  else if (m->mapped)
    munmap(m->data, m->size);
  else
    assay_free(m->data);
  assay_free(m);
}

void assay_mapping_release_owner(void* mapping) { assay_mapping_release(mapping); }

void assay_mapping_forget(const assay_mapping_t* m, const void* at, size_t n) {
  while (m->whole) m = m->whole;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)at;
  const uintptr_t from = (first + page - 1) / page * page, to = (first + n) / page * page;
  if (m->mapped && from < to) madvise((void*)from, to - from, MADV_DONTNEED);
}

const uint8_t* assay_mapping_data(const assay_mapping_t* m) { return m->data; }
size_t assay_mapping_size(const assay_mapping_t* m) { return m->size; }

// ---- writers ----------------------------------------------------------------------------------

struct assay_writer {
  FILE* file;
  uint64_t offset;
  char *path, *temporary;
  bool named;  // the file is under its temporary name; else it has none until it is complete
  bool as_is;  // a device or a pipe, which nothing takes the place of
};

// The name that a complete file has for the moment in which it takes the place of another one, and,
// with a number after it, that a file has from the first where there are none without names.
static const char second_name[] = ".assay-part";
enum { NAMES = 16, NUMBER_CAPACITY = 3 };  // writers of one path at a time; digits and the end

static void writer_free(assay_writer_t* w) {
  assay_free(w->path);
  assay_free(w->temporary);
  assay_free(w);
}

static assay_status_t cannot_write(const assay_writer_t* w) {
  return ASSAY_ERROR(ASSAY_DEVICE, "cannot write '%s': %s", w->path, strerror(errno));
}

#ifdef O_TMPFILE
// The name under which a file that has none can be given one.
static void name_of_handle(int fd, char name[64]) { snprintf(name, 64, "/proc/self/fd/%d", fd); }
#endif

// A file without a name in the folder of the path: nothing is left of it if the process dies.
static int open_unnamed(const char* path) {
#ifdef O_TMPFILE
  char* slash = strrchr(path, '/');
  const size_t n = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
  char* folder = assay_malloc(n + 1);
  char handle[64];
  if (!folder) return -1;
  memcpy(folder, slash ? path : ".", n);
  folder[n] = 0;
  const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  assay_free(folder);
  if (fd < 0) return -1;
  name_of_handle(fd, handle);
  if (access(handle, F_OK) == 0) return fd;
  close(fd);  // without /proc it could never get a name
#else
  (void)path;
#endif
  return -1;
}

// ---- files with names from the first ------------------------------------------------------------
// Their writers hold a lock on them, so that the next writer of the path can tell those that a dead
// one left, and removes them.

static bool is_named(int fd, const char* path) {
  struct stat a, b;
  return fstat(fd, &a) == 0 && lstat(path, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Removes a file that no writer holds.
static void remove_dead(const char* path) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_named(fd, path)) unlink(path);
  close(fd);
}

// A new file, locked: -1 with EEXIST if another writer has the name. File systems without locks
// have unlocked ones, which nobody removes then.
static int claim(const char* path) {
  const int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (fd < 0) return -1;
  const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
  // Another one may have taken it for a dead one's, in between.
  if ((!locked && errno == EWOULDBLOCK) || !is_named(fd, path)) {
    close(fd);
    errno = EEXIST;
    return -1;
  }
  return fd;
}

static int open_named(assay_writer_t* w) {
  char* number = w->temporary + strlen(w->path) + sizeof second_name - 1;
  int fd = -1;
  for (int i = 1; i <= NAMES; i++) {
    snprintf(number, NUMBER_CAPACITY, "%d", i);
    remove_dead(w->temporary);
  }
  errno = EEXIST;
  for (int i = 1; fd < 0 && errno == EEXIST && i <= NAMES; i++) {
    snprintf(number, NUMBER_CAPACITY, "%d", i);
    fd = claim(w->temporary);
  }
  if (fd < 0 && errno == EEXIST) errno = EBUSY;
  w->named = fd >= 0;
  return fd;
}

// ---- writing ------------------------------------------------------------------------------------

static bool is_special(const char* path) {
  struct stat info;
  return stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

static int open_any(assay_writer_t* w) {
  w->as_is = is_special(w->path);
  if (w->as_is) return open(w->path, O_WRONLY | O_CLOEXEC);
  const int fd = open_unnamed(w->path);
  return fd >= 0 ? fd : open_named(w);
}

static assay_status_t open_path(const char* path, assay_writer_t** out) {
  const size_t n = strlen(path);
  assay_writer_t* w = NULL;
  ASSAY_TRY(ASSAY_NEW(&w));
  w->path = assay_malloc(n + 1);
  w->temporary = assay_malloc(n + sizeof second_name + NUMBER_CAPACITY);
  if (!w->path || !w->temporary) return writer_free(w), assay_status_no_memory();
  memcpy(w->path, path, n + 1);
  memcpy(w->temporary, path, n);
  memcpy(w->temporary + n, second_name, sizeof second_name);
  const int fd = open_any(w);
  if (fd >= 0) w->file = fdopen(fd, "wb");
  if (!w->file) {
    assay_status_t st =
        ASSAY_ERROR(ASSAY_NOT_FOUND, "cannot write '%s': %s", path, strerror(errno));
    if (w->named) unlink(w->temporary);
    if (fd >= 0) close(fd);
    return writer_free(w), st;
  }
  *out = w;
  return NULL;
}

// Links stay: /dev/stdout is one, for which a file must not be put.
assay_status_t assay_writer_open(const char* path, assay_writer_t** out) {
  struct stat info;
  const bool link = lstat(path, &info) == 0 && S_ISLNK(info.st_mode);
  char* real = link && !is_special(path) ? realpath(path, NULL) : NULL;
  assay_status_t st = open_path(real ? real : path, out);
  free(real);
  return st;
}

assay_status_t assay_writer_write(assay_writer_t* w, const void* data, size_t n) {
  if (n && fwrite(data, 1, n, w->file) != n) return cannot_write(w);
  w->offset += n;
  return NULL;
}

uint64_t assay_writer_offset(const assay_writer_t* w) { return w->offset; }

// A complete file without a name gets the path: at once where nothing has it. There is no call that
// puts it in another one's place at once: it gets a second name, and that is renamed. A process
// that dies between these two calls leaves the whole file under the second name, which the next
// writer of the same path removes.
static bool replace_by_unnamed(assay_writer_t* w) {
#ifdef O_TMPFILE
  enum { TRIES = 1000 };
  char from[64];
  name_of_handle(fileno(w->file), from);
  if (linkat(AT_FDCWD, from, AT_FDCWD, w->path, AT_SYMLINK_FOLLOW) == 0) {
    unlink(w->temporary);
    return true;
  }
  if (errno != EEXIST) return false;
  for (int i = 0; i < TRIES; i++) {
    if (linkat(AT_FDCWD, from, AT_FDCWD, w->temporary, AT_SYMLINK_FOLLOW)) {
      if (errno != EEXIST || (unlink(w->temporary) && errno != ENOENT)) return false;
    } else if (rename(w->temporary, w->path) == 0) {
      unlink(
          w->temporary);  // still there where both names were one file's: rename then does nothing
      return true;
    } else if (errno != ENOENT) {  // ENOENT: another writer took the name for a dead one's
      const int reason = errno;
      unlink(w->temporary);
      errno = reason;
      return false;
    }
  }
#endif
  (void)w;
  return false;
}

static bool replace_by_named(assay_writer_t* w) {
  if (rename(w->temporary, w->path) == 0) return true;
  const int reason = errno;
  unlink(w->temporary);
  errno = reason;
  return false;
}

static assay_status_t commit(assay_writer_t* w, bool on_disk) {
  assay_status_t st = NULL;
  const bool whole = !fflush(w->file) && (!on_disk || w->as_is || !fsync(fileno(w->file)));
  const bool there =
      whole && (w->as_is || (w->named ? replace_by_named(w) : replace_by_unnamed(w)));
  if (!there) st = cannot_write(w);
  if (!whole && w->named) unlink(w->temporary);
  if (fclose(w->file) && !st) st = cannot_write(w);
  writer_free(w);
  return st;
}

assay_status_t assay_writer_commit(assay_writer_t* w) { return commit(w, true); }

assay_status_t assay_writer_commit_soon(assay_writer_t* w) { return commit(w, false); }

void assay_writer_abandon(assay_writer_t* w) {
  if (!w) return;
  if (w->named) unlink(w->temporary);
  fclose(w->file);
  writer_free(w);
}

assay_status_t assay_folder_make(const char* path) {
  struct stat info;
  char* part = assay_malloc(strlen(path) + 1);
  if (!part) return assay_status_no_memory();
  strcpy(part, path);
  // Those on the way may be there already, or belong to others; the last one decides.
  for (char* p = part; *p; p++) {
    if (*p != '/' || p == part) continue;
    *p = 0;
    (void)mkdir(part, 0777);
    *p = '/';
  }
  assay_status_t st = NULL;
  if (mkdir(part, 0777) && (stat(part, &info) || !S_ISDIR(info.st_mode)))
    st = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "cannot make folder '%s': %s", path, strerror(errno));
  assay_free(part);
  return st;
}

assay_status_t assay_file_write(const char* path, const void* data, size_t n) {
  assay_writer_t* w = NULL;
  ASSAY_TRY(assay_writer_open(path, &w));
  assay_status_t st = assay_writer_write(w, data, n);
  if (st) return assay_writer_abandon(w), st;
  return assay_writer_commit(w);
}
