// Blocks that are kept for later, in files without a name.
#include "base/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/process.h"

// Of smaller blocks a mapping of their own costs more than it gives.
enum { SMALL = 1 << 16 };
// How often pages are given back: what is read in between is in memory.
static const int64_t EVERY_NS = 20 * 1000 * 1000;

struct assay_spilled {
  void* data;
  size_t bytes;
  size_t place;  // in `all`
};

static struct {
  pthread_mutex_t lock;
  assay_spilled_t** at;
  size_t n, capacity;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic size_t count;
static _Atomic int64_t trimmed;  // when
static _Atomic int64_t limit;    // bytes in use; 0: not asked yet

static int64_t limit_now(void) {
  int64_t found = atomic_load_explicit(&limit, memory_order_relaxed);
  struct rusage usage;
  if (found) return found;
  found = getrusage(RUSAGE_SELF, &usage) ? INT64_MAX : (int64_t)usage.ru_maxrss * 1024 / 2;
  atomic_store_explicit(&limit, found, memory_order_relaxed);
  return found;
}

int64_t assay_spill_set_limit(int64_t bytes) { return atomic_exchange(&limit, bytes); }

bool assay_spill_is_due(size_t bytes) {
  return bytes >= SMALL && assay_memory_used() > limit_now();
}

// ---- files -------------------------------------------------------------------------------------

// A file that nobody else sees; -1: there is none.
static int open_unnamed(void) {
  const char* folder = assay_folder_for_temporary();
  int fd = -1;
  if (!folder) return -1;
#ifdef O_TMPFILE
  fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
  if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)) return fd;
#endif
  char path[4096];
  static const char name[] = "/assay-XXXXXX";
  if (strlen(folder) + sizeof name > sizeof path) return -1;
  strcpy(path, folder);
  strcat(path, name);
  fd = mkostemp(path, O_CLOEXEC);
  if (fd >= 0) (void)unlink(path);
  return fd;
}

static bool write_all(int fd, const char* data, size_t bytes) {
  while (bytes) {
    const ssize_t n = write(fd, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    data += n;
    bytes -= (size_t)n;
  }
  return true;
}

// Written before it is mapped: where the disk is full, that says so, and no page is missing later.
static void* map_copy(const void* data, size_t bytes) {
  const int fd = open_unnamed();
  if (fd < 0) return NULL;
  void* p = write_all(fd, data, bytes)
                ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                : MAP_FAILED;
  close(fd);
  return p == MAP_FAILED ? NULL : p;
}

// ---- blocks ------------------------------------------------------------------------------------

static assay_status_t list(assay_spilled_t* s) {
  assay_status_t st = assay_grow(&all.at, &all.capacity, all.n + 1, sizeof *all.at);
  if (st) return st;
  s->place = all.n;
  all.at[all.n++] = s;
  atomic_store(&count, all.n);
  return NULL;
}

assay_spilled_t* assay_spill(const void* data, size_t bytes) {
  assay_spilled_t* s = assay_malloc(sizeof *s);
  if (!s) return NULL;
  *s = (assay_spilled_t){.data = map_copy(data, bytes), .bytes = bytes};
  if (!s->data) return assay_free(s), NULL;
  pthread_mutex_lock(&all.lock);
  assay_status_t st = list(s);
  pthread_mutex_unlock(&all.lock);
  if (!st) return s;
  assay_status_free(st);
  munmap(s->data, s->bytes);
  assay_free(s);
  return NULL;
}

void* assay_spilled_data(const assay_spilled_t* s) { return s->data; }

void assay_spilled_release(void* spilled) {
  assay_spilled_t* s = spilled;
  pthread_mutex_lock(&all.lock);
  all.at[s->place] = all.at[--all.n];
  all.at[s->place]->place = s->place;
  atomic_store(&count, all.n);
  if (!all.n) {
    assay_free(all.at);
    all.at = NULL;
    all.capacity = 0;
  }
  pthread_mutex_unlock(&all.lock);
  munmap(s->data, s->bytes);
  assay_free(s);
}

void assay_spill_trim(void) {
  if (!atomic_load_explicit(&count, memory_order_relaxed)) return;
  const int64_t now = assay_clock_ns();
  if (now - atomic_load_explicit(&trimmed, memory_order_relaxed) < EVERY_NS) return;
  if (pthread_mutex_trylock(&all.lock)) return;  // another thread is about it
  atomic_store_explicit(&trimmed, now, memory_order_relaxed);
  for (size_t i = 0; i < all.n; i++)
    (void)madvise(all.at[i]->data, all.at[i]->bytes, MADV_DONTNEED);
  pthread_mutex_unlock(&all.lock);
}

size_t assay_spill_count(void) { return atomic_load(&count); }
