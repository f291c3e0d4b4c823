// Memory of the device, and of the host where it is pinned.
#include <stdlib.h>
#include <string.h>

#include "internal.h"

// By address. Behind each allocation lies a strip that belongs to none.
static struct {
  range_t* at;
  size_t n, room;
  size_t used;
  atomic_ullong version;
} ranges;

uint64_t memory_version(void) { return atomic_load(&ranges.version); }

// The index of the last range that begins at p or before it; -1: none does. Locked.
static ptrdiff_t find(const void* p) {
  ptrdiff_t low = -1, high = (ptrdiff_t)ranges.n;
  while (high - low > 1) {
    const ptrdiff_t middle = (low + high) / 2;
    if ((uintptr_t)ranges.at[middle].at <= (uintptr_t)p)
      low = middle;
    else
      high = middle;
  }
  return low;
}

// Pointers to the end are good, too: of nothing.
static range_t* around(const void* p, size_t bytes) {
  const ptrdiff_t i = find(p);
  if (i < 0) return NULL;
  range_t* r = &ranges.at[i];
  const size_t offset = (size_t)((uintptr_t)p - (uintptr_t)r->at);
  return offset <= r->bytes && bytes <= r->bytes - offset ? r : NULL;
}

bool find_range(const void* p, range_t* out) {
  pthread_mutex_lock(&fake.lock);
  const range_t* r = around(p, 1);
  if (r) *out = *r;
  pthread_mutex_unlock(&fake.lock);
  return r != NULL;
}

struct history* add_history(const void* at) {
  struct history* s = NULL;
  pthread_mutex_lock(&fake.lock);
  range_t* r = around(at, 0);
  if (r) {
    if (!r->history) r->history = make_history(r->bytes);
    s = r->history;
  }
  pthread_mutex_unlock(&fake.lock);
  return s;
}

char* device_memory(cuda_pointer_t p, size_t bytes) {
  if (!(p & DEVICE_BITS)) return NULL;
  char* at = (char*)(uintptr_t)(p & ~DEVICE_BITS);
  pthread_mutex_lock(&fake.lock);
  if (!around(at, bytes)) at = NULL;
  pthread_mutex_unlock(&fake.lock);
  return at;
}

// For the platform's other libraries.
EXPORT char* fake_memory(cuda_pointer_t p, size_t bytes);
EXPORT char* fake_memory(cuda_pointer_t p, size_t bytes) { return device_memory(p, bytes); }

bool is_pinned(const void* p) {
  pthread_mutex_lock(&fake.lock);
  const range_t* r = around(p, 0);
  const bool is = r && r->is_pinned;
  pthread_mutex_unlock(&fake.lock);
  return is;
}

static bool insert(char* at, size_t bytes, bool pinned) {
  if (ranges.n == ranges.room) {
    const size_t room = ranges.room ? 2 * ranges.room : 64;
    range_t* more = realloc(ranges.at, room * sizeof *more);
    if (!more) return false;
    ranges.at = more;
    ranges.room = room;
  }
  const ptrdiff_t i = find(at) + 1;
  memmove(ranges.at + i + 1, ranges.at + i, (ranges.n - (size_t)i) * sizeof *ranges.at);
  ranges.at[i] = (range_t){at, bytes, pinned, NULL};
  ranges.n++;
  ranges.used += pinned ? 0 : bytes;
  fake.state.live++;
  atomic_fetch_add(&ranges.version, 1);
  return true;
}

#if defined(__SANITIZE_ADDRESS__)
enum { STRIP = 0 };  // the sanitizer has its own
#else
enum { STRIP = ALIGNMENT };
#endif

static size_t total_bytes(void) { return fake.state.dry ? (size_t)TOTAL_DRY : (size_t)TOTAL; }

static char* reserve(size_t bytes, bool pinned) {
  void* at = NULL;
  pthread_mutex_lock(&fake.lock);
  const bool fits = bytes &&
                    (pinned || (bytes <= total_bytes() && ranges.used <= total_bytes() - bytes)) &&
                    posix_memalign(&at, ALIGNMENT, bytes + STRIP) == 0;
  if (fits && !insert(at, bytes, pinned)) {
    free(at);
    at = NULL;
  }
  pthread_mutex_unlock(&fake.lock);
  // What kernels that do nothing leave there is no NaN, and pages that nobody reads cost nothing.
  if (at && !fake.state.dry) memset(at, 0xff, bytes + STRIP);
  return at;
}

static void release_at(ptrdiff_t i) {
  range_t* r = &ranges.at[i];
  ranges.used -= r->is_pinned ? 0 : r->bytes;
  if (!fake.state.dry) memset(r->at, 0xff, r->bytes);
  free(r->at);
  free_history(r->history);
  ranges.n--;
  memmove(r, r + 1, (ranges.n - (size_t)i) * sizeof *r);
  fake.state.live--;
  atomic_fetch_add(&ranges.version, 1);
}

static bool release(const void* p, bool pinned) {
  pthread_mutex_lock(&fake.lock);
  const ptrdiff_t i = find(p);
  const bool is = i >= 0 && ranges.at[i].at == p && ranges.at[i].is_pinned == pinned;
  if (is) release_at(i);
  pthread_mutex_unlock(&fake.lock);
  return is;
}

bool release_memory(cuda_pointer_t p) {
  return release((const void*)(uintptr_t)(p & ~DEVICE_BITS), false);
}

void memory_end(void) {
  pthread_mutex_lock(&fake.lock);
  while (ranges.n) release_at((ptrdiff_t)ranges.n - 1);
  free(ranges.at);
  ranges.at = NULL;
  ranges.room = 0;
  pthread_mutex_unlock(&fake.lock);
}

// ---- the driver's functions ---------------------------------------------------------------------

cuda_result_t cuMemGetInfo(size_t* out_free, size_t* out_total) {
  CALLED(true);
  pthread_mutex_lock(&fake.lock);
  *out_free = total_bytes() - ranges.used;
  *out_total = total_bytes();
  pthread_mutex_unlock(&fake.lock);
  return 0;
}

cuda_result_t cuDeviceGetDefaultMemPool(cuda_pool_t* out, cuda_device_id_t device) {
  CALLED(false);
  *out = (cuda_pool_t)(uintptr_t)(device + 1);
  return 0;
}

cuda_result_t cuMemPoolSetAttribute(cuda_pool_t pool, int attribute, void* value) {
  (void)value;
  CALLED(false);
  return pool && attribute == CUDA_POOL_RELEASE_THRESHOLD ? 0 : INVALID_VALUE;
}

cuda_result_t cuMemPoolTrimTo(cuda_pool_t pool, size_t keep) {
  (void)keep;
  CALLED(false);
  return pool ? 0 : INVALID_VALUE;
}

cuda_result_t cuMemAllocAsync(cuda_pointer_t* out, size_t bytes, cuda_stream_t stream) {
  CALLED(true);
  if (is_capturing(stream)) return CAPTURE_UNSUPPORTED;
  char* at = reserve(bytes, false);
  if (!at) return CUDA_OUT_OF_MEMORY;
  *out = (cuda_pointer_t)(uintptr_t)at | DEVICE_BITS;
  return 0;
}

// What is given back is gone in any case.
cuda_result_t cuMemFreeAsync(cuda_pointer_t at, cuda_stream_t stream) {
  const cuda_result_t early = called(__func__, true);
  if (!device_memory(at, 0)) return INVALID_VALUE;
  if (is_capturing(stream)) return release_memory(at), INVALID_VALUE;
  const cuda_result_t r = put(stream, &(work_t){.kind = FREE, .to = at});
  return early ? early : r;
}

cuda_result_t cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  CALLED(true);
  if (flags != (CUDA_HOST_PORTABLE | CUDA_HOST_DEVICE_MAP)) return INVALID_VALUE;
  *out = reserve(bytes, true);
  return *out ? 0 : CUDA_OUT_OF_MEMORY;
}

cuda_result_t cuMemFreeHost(void* p) {
  const cuda_result_t early = called(__func__, true);
  const bool was = release(p, true);
  return early ? early : was ? 0 : INVALID_VALUE;
}

cuda_result_t cuMemHostGetDevicePointer(cuda_pointer_t* out, void* p, unsigned flags) {
  (void)flags;
  CALLED(true);
  if (!is_pinned(p)) return INVALID_VALUE;
  *out = (cuda_pointer_t)(uintptr_t)p | DEVICE_BITS;
  return 0;
}
