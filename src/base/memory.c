// How much memory there is: the machine's, and what a control group leaves of it; how it is had.
#include "base/memory.h"

#include <fcntl.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// Nothing here allocates: it is asked from within the allocator, and when memory is short.

// ---- files of the kernel ----------------------------------------------------------------------

static bool read_text(const char* path, char* buffer, size_t n) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  size_t len = 0;
  ssize_t got;
  while (len + 1 < n && (got = read(fd, buffer + len, n - 1 - len)) > 0) len += (size_t)got;
  close(fd);
  buffer[len] = 0;
  return len > 0;
}

// The number after `key` at the beginning of a line.
static bool find_number(const char* text, const char* key, uint64_t* out) {
  size_t n = strlen(key);
  for (const char* line = text; line; line = strchr(line, '\n')) {
    line += *line == '\n';
    if (strncmp(line, key, n) != 0) continue;
    char* end;
    unsigned long long x = strtoull(line + n, &end, 10);
    if (end == line + n) return false;
    *out = x;
    return true;
  }
  return false;
}

static bool read_number(const char* folder, const char* name, uint64_t* out) {
  char path[PATH_MAX + 64], text[64];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return read_text(path, text, sizeof text) && find_number(text, "", out);
}

// ---- control groups ---------------------------------------------------------------------------

// What the files of the two versions are called. Source: Linux,
// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst.
typedef struct version {
  const char *root, *line;        // where it is mounted; the line of /proc/self/cgroup
  const char *limit, *used;       // a group without a limit says "max" or a huge number
  const char *inactive, *active;  // in memory.stat: page cache, given back when needed
} version_t;

static const version_t versions[] = {
    {"/sys/fs/cgroup", "0::", "memory.max", "memory.current", "inactive_file ", "active_file "},
    {"/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file ", "total_active_file "},
};

typedef struct limits {
  uint64_t total, available;
} limits_t;

static void take_group(const version_t* v, const char* folder, limits_t* limits) {
  uint64_t limit = 0, used = 0, cache = 0, more = 0;
  if (!read_number(folder, v->limit, &limit)) return;
  if (limit < limits->total) limits->total = limit;
  if (!read_number(folder, v->used, &used)) return;
  char path[PATH_MAX + 64], text[8192];
  snprintf(path, sizeof path, "%s/memory.stat", folder);
  if (read_text(path, text, sizeof text)) {
    (void)find_number(text, v->inactive, &cache);
    (void)find_number(text, v->active, &more);
    cache += more;
  }
  used -= cache < used ? cache : used;
  uint64_t left = limit > used ? limit - used : 0;
  if (left < limits->available) limits->available = left;
}

// The process's group and those above it. Inside a container the path may be the host's, which is
// not there: the container's own group then is the root.
static void take_groups(const version_t* v, limits_t* limits) {
  char text[8192], folder[PATH_MAX];
  if (!read_text("/proc/self/cgroup", text, sizeof text)) return;
  const char* path = strstr(text, v->line);
  if (!path || (v->line[0] == '0' && path != text && path[-1] != '\n')) return;
  path += strlen(v->line);
  size_t root = strlen(v->root), n = strcspn(path, "\n");
  if (root + n >= sizeof folder) return;
  snprintf(folder, sizeof folder, "%s%.*s", v->root, (int)n, path);
  for (;;) {
    take_group(v, folder, limits);
    char* slash = strrchr(folder, '/');
    if (strlen(folder) <= root || !slash) return;
    *slash = 0;
  }
}

static void take_all_groups(limits_t* limits) {
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) take_groups(&versions[i], limits);
}

// ---- the machine ------------------------------------------------------------------------------

uint64_t assay_memory_total(void) {
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  limits_t limits = {.total = UINT64_MAX / 2, .available = UINT64_MAX / 2};
  if (pages > 0 && page > 0) limits.total = (uint64_t)pages * (uint64_t)page;
  take_all_groups(&limits);
  return limits.total;
}

uint64_t assay_memory_available(void) {
  char text[8192];
  uint64_t kb = 0;
  limits_t limits = {.total = UINT64_MAX / 2, .available = UINT64_MAX / 2};
  if (read_text("/proc/meminfo", text, sizeof text) && find_number(text, "MemAvailable:", &kb))
    limits.available = kb * 1024;
  take_all_groups(&limits);
  return limits.available;
}

void assay_memory_use_large_pages(void* memory, size_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t page = 2 << 20, from = ((uintptr_t)memory + page - 1) / page * page;
  const uintptr_t to = ((uintptr_t)memory + bytes) / page * page;
  if (from < to) (void)madvise((void*)from, to - from, MADV_HUGEPAGE);
#else
  (void)memory, (void)bytes;
#endif
}

// ---- text -------------------------------------------------------------------------------------

const char* assay_bytes_text(uint64_t bytes, char* buffer, size_t n) {
  static const char* const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  double x = (double)bytes;
  int unit = 0;
  for (; x >= 999.5 && unit < 6; unit++) x /= 1000;
  snprintf(buffer, n, unit && x < 99.95 ? "%.1f %s" : "%.0f %s", x, units[unit]);
  return buffer;
}

bool assay_bytes_parse(const char* text, uint64_t* out) {
  static const char letters[] = "KMGTPE";
  char* end;
  double x = strtod(text, &end);
  if (end == text || !(x >= 0)) return false;
  while (*end == ' ') end++;
  double unit = 1;
  const char* letter = *end ? strchr(letters, *end >= 'a' ? *end - 'a' + 'A' : *end) : NULL;
  if (letter) {
    end++;
    double base = *end == 'i' ? 1024 : 1000;
    end += *end == 'i';
    for (const char* l = letters; l <= letter; l++) unit *= base;
  }
  end += *end == 'B' || *end == 'b';
  x = floor(x * unit);
  if (*end || !(x < 0x1p63)) return false;
  *out = (uint64_t)x;
  return true;
}

// ---- the system's allocator -------------------------------------------------------------------

void assay_memory_keep(bool on) {
#ifdef __GLIBC__
  static _Atomic int keepers;
  if (on ? atomic_fetch_add(&keepers, 1) : atomic_fetch_sub(&keepers, 1) - 1) return;
  // Source: mallopt(3). Blocks from a threshold on are mapped one by one, and what is free at the
  // end of the heap goes back from another on. Setting either ends glibc's adjusting them, so that
  // afterwards they stay at where adjusting would lead.
  enum { MAP_BYTES = 32 << 20, TRIM_BYTES = 64 << 20 };
  enum { KEEP_MAP_BYTES = 256 << 20, KEEP_TRIM_BYTES = 1 << 30 };
  mallopt(M_MMAP_THRESHOLD, on ? KEEP_MAP_BYTES : MAP_BYTES);
  mallopt(M_TRIM_THRESHOLD, on ? KEEP_TRIM_BYTES : TRIM_BYTES);
  if (!on) malloc_trim(TRIM_BYTES);
#else
  (void)on;
#endif
}
