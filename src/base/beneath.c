// Files below a folder: by openat2 where the system has it, else one component after the other.
#include "base/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"

struct assay_folder {
  int fd;
};

enum { READ_FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY };

assay_status_t assay_folder_open(const char* path, assay_folder_t** out) {
  assay_folder_t* f = NULL;
  ASSAY_TRY(ASSAY_NEW(&f));
  f->fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (f->fd < 0) {
    assay_free(f);
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  }
  *out = f;
  return NULL;
}

void assay_folder_close(assay_folder_t* f) {
  if (!f) return;
  close(f->fd);
  assay_free(f);
}

// ---- opening ------------------------------------------------------------------------------------

// The kernel's own walk; -1 with ENOSYS where there is none.
static int open_by_kernel(int folder, const char* path) {
#ifdef SYS_openat2
  enum { NO_MAGIC_LINKS = 0x02, NO_SYMLINKS = 0x04, BENEATH = 0x08, TRIES = 16 };
  // linux/openat2.h, struct open_how
  struct {
    uint64_t flags, mode, resolve;
  } how = {.flags = READ_FLAGS, .resolve = NO_MAGIC_LINKS | NO_SYMLINKS | BENEATH};
  long fd = -1;
  // EAGAIN: something on the way was renamed meanwhile.
  for (int i = 0; i < TRIES; i++) {
    fd = syscall(SYS_openat2, folder, path, &how, sizeof how);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  return (int)fd;
#else
  (void)folder;
  (void)path;
  errno = ENOSYS;
  return -1;
#endif
}

// A symbolic link in place of a folder is told as one.
static int explain_folder(int at, const char* name, int reason) {
  struct stat info;
  if (reason == ENOTDIR && !fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) && S_ISLNK(info.st_mode))
    reason = ELOOP;
  errno = reason;
  return -1;
}

// One component after the other, each below the one before, none through a link. text is changed.
static int open_by_walk(int folder, char* text) {
  int at = folder;
  for (char* part = text;;) {
    char* slash = strchr(part, '/');
    if (slash) *slash = 0;
    int next;
    if (strcmp(part, "..") == 0)
      next = -1, errno = EXDEV;
    else if (slash)
      next = openat(at, *part ? part : ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    else
      next = openat(at, *part ? part : ".", READ_FLAGS);
    if (next < 0 && slash) explain_folder(at, part, errno);
    const int reason = errno;
    if (at != folder) close(at);
    errno = reason;
    if (next < 0 || !slash) return next;
    at = next;
    part = slash + 1;
  }
}

static assay_status_t open_beneath(int folder, const char* path, unsigned flags, int* out) {
  if (*path == '/')
    return ASSAY_ERROR(ASSAY_CORRUPT, "'%s' is outside of the folder: a relative path is expected",
                       path);
  int fd = -1;
  errno = ENOSYS;
  if (!(flags & ASSAY_BENEATH_WALK)) fd = open_by_kernel(folder, path);
  // EPERM: a sandbox that does not know the call; EAGAIN: names on the way keep changing.
  if (fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN)) {
    char* text = assay_malloc(strlen(path) + 1);
    if (!text) return assay_status_no_memory();
    fd = open_by_walk(folder, strcpy(text, path));
    const int reason = errno;
    assay_free(text);
    errno = reason;
  }
  if (fd < 0 && errno == ELOOP)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "'%s' is a symbolic link or lies behind one, which may lead out of the "
                       "folder; put the file itself there",
                       path);
  if (fd < 0 && errno == EXDEV)
    return ASSAY_ERROR(ASSAY_CORRUPT, "'%s' leads out of the folder", path);
  if (fd < 0) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  *out = fd;
  return NULL;
}

static assay_status_t check_names(int fd, const char* path) {
  struct stat info;
  if (fstat(fd, &info)) return ASSAY_ERROR(ASSAY_NOT_FOUND, "'%s': %s", path, strerror(errno));
  if (S_ISREG(info.st_mode) && info.st_nlink > 1)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "'%s' has %llu names (hard links), and another one may be of a file outside "
                       "of the folder; copy the file, or pass --allow-hard-links (for all "
                       "commands: ASSAY_ALLOW_HARD_LINKS=1)",
                       path, (unsigned long long)info.st_nlink);
  return NULL;
}

assay_status_t assay_mapping_open_beneath(const assay_folder_t* folder, const char* path,
                                          unsigned flags, assay_mapping_t** out) {
  int fd = -1;
  ASSAY_TRY(open_beneath(folder->fd, path, flags, &fd));
  assay_status_t st = flags & ASSAY_BENEATH_HARD_LINKS ? NULL : check_names(fd, path);
  if (!st) st = assay_mapping_of_file(fd, path, out);
  close(fd);
  return st;
}
