// Memory: one allocator for the library, checked sizes, arenas.
#include "base/alloc.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

// ---- the allocator ----------------------------------------------------------------------------

static _Atomic uint64_t allocations;  // since the last assay_alloc_fail_after
static _Atomic uint64_t fail_at;      // 0: never
static _Atomic bool fail_sticky;
static _Atomic int64_t live;
static _Atomic int64_t live_bytes;

// What is refused: with a limit that was set, whatever would pass it. Without, what the machine
// does not have: by its total, and by what is available when the bytes in use have grown to
// `inspect`.
static _Atomic int64_t limit_bytes;  // 0: none
static _Atomic int64_t total_bytes;  // the machine's; 0: not asked yet
static _Atomic int64_t inspect;

// The request of this thread that was refused last, until one is granted.
static _Thread_local size_t refused_bytes;
static _Thread_local int64_t refused_available;

enum { SMALL_BYTES = 1 << 20 };  // of these the system's allocator decides

static bool refuse(size_t size, int64_t remaining) {
  refused_bytes = size;
  refused_available = remaining > 0 ? remaining : 0;
  return false;
}

static int64_t evaluator_bytes(void) {
  int64_t total = atomic_load_explicit(&total_bytes, memory_order_relaxed);
  if (total) return total;
  uint64_t found = assay_memory_total();
  total = found < INT64_MAX / 2 ? (int64_t)found : INT64_MAX / 2;
  atomic_store_explicit(&total_bytes, total, memory_order_relaxed);
  return total;
}

static bool fits(size_t size) {
  int64_t used = atomic_load_explicit(&live_bytes, memory_order_relaxed);
  int64_t limit = atomic_load_explicit(&limit_bytes, memory_order_relaxed);
  int64_t remaining = (limit ? limit : evaluator_bytes()) - used;
  if (size > INT64_MAX / 4 || (int64_t)size > remaining) return refuse(size, remaining);
  if (limit || size < SMALL_BYTES) return true;
  int64_t then = used + (int64_t)size;
  if (then <= atomic_load_explicit(&inspect, memory_order_relaxed)) return true;
  // An overcommitting kernel grants what it does not have and kills the process when it is touched:
  // it is asked what there is, again after each further eighth of it.
  uint64_t found = assay_memory_available();
  int64_t available = found < INT64_MAX / 4 ? (int64_t)found : INT64_MAX / 4;
  available -= available / 16;  // for others, and for what the kernel needs to keep track
  if ((int64_t)size > available) return refuse(size, available);
  atomic_store_explicit(&inspect, then + (available - (int64_t)size) / 8, memory_order_relaxed);
  return true;
}

// Whether a request for `size` more bytes may go to the system's allocator.
static bool admitted(size_t size) {
  uint64_t n = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
  uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
  refused_bytes = 0;
  if (at && (n == at || (n > at && atomic_load_explicit(&fail_sticky, memory_order_relaxed))))
    return false;
  return fits(size);
}

static void count_bytes(int64_t n) {
  atomic_fetch_add_explicit(&live_bytes, n, memory_order_relaxed);
}

static void* counted(void* p) {
  if (p) {
    atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
    count_bytes((int64_t)malloc_usable_size(p));
  }
  return p;
}

void* assay_malloc(size_t size) { return admitted(size) ? counted(malloc(size ? size : 1)) : NULL; }

void* assay_calloc(size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes) || !admitted(bytes)) return NULL;
  return counted(calloc(bytes ? bytes : 1, 1));
}

void* assay_realloc(void* p, size_t size) {
  if (!p) return assay_malloc(size);
  size_t was = malloc_usable_size(p);
  if (!admitted(size > was ? size - was : 0)) return NULL;
  void* q = realloc(p, size ? size : 1);
  if (q) count_bytes((int64_t)malloc_usable_size(q) - (int64_t)was);
  return q;
}

void assay_free(void* p) {
  if (p) {
    atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
    count_bytes(-(int64_t)malloc_usable_size(p));
  }
  free(p);
}

int64_t assay_memory_set_limit(int64_t bytes) {
  atomic_store_explicit(&inspect, 0, memory_order_relaxed);
  return atomic_exchange(&limit_bytes, bytes > 0 ? bytes : 0);
}

int64_t assay_memory_used(void) { return atomic_load(&live_bytes); }

void assay_text_free(char* text) { assay_free(text); }

bool assay_alloc_refused(size_t* out_bytes, int64_t* out_available) {
  if (!refused_bytes) return false;
  *out_bytes = refused_bytes;
  *out_available = refused_available;
  return true;
}

uint64_t assay_alloc_fail_after(uint64_t nth, bool sticky) {
  atomic_store(&fail_sticky, sticky);
  atomic_store(&fail_at, nth);
  return atomic_exchange(&allocations, 0);
}

int64_t assay_alloc_live(void) { return atomic_load(&live); }

assay_status_t assay_new_array(size_t n, size_t size, void* out) {
  void* p = assay_calloc(n, size);
  if (!p) return assay_status_no_memory();
  memcpy(out, &p, sizeof p);
  return NULL;
}

assay_status_t assay_grow(void* array, size_t* capacity, size_t need, size_t size) {
  if (need <= *capacity) return NULL;
  size_t grown = *capacity < 8 ? 8 : *capacity + *capacity / 2;
  if (grown < need) grown = need;
  size_t bytes;
  void* p;
  memcpy(&p, array, sizeof p);
  if (__builtin_mul_overflow(grown, size, &bytes) || !(p = assay_realloc(p, bytes)))
    return assay_status_no_memory();
  memcpy(array, &p, sizeof p);
  *capacity = grown;
  return NULL;
}

bool assay_mul_i64(int64_t a, int64_t b, int64_t* out) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, out);
}

bool assay_add_i64(int64_t a, int64_t b, int64_t* out) {
  return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, out);
}

// ---- arenas -----------------------------------------------------------------------------------

enum { ARENA_BLOCK_BYTES = 64 << 10, ARENA_ALIGN = 16 };

typedef struct block {
  struct block* next;
  size_t used, size;
  _Alignas(ARENA_ALIGN) unsigned char data[];
} block_t;

struct assay_arena {
  block_t* blocks;  // the one in use first
  size_t bytes;
};

assay_status_t assay_arena_create(assay_arena_t** out) { return ASSAY_NEW(out); }

void assay_arena_destroy(assay_arena_t* arena) {
  if (!arena) return;
  for (block_t *b = arena->blocks, *next; b; b = next) {
    next = b->next;
    assay_free(b);
  }
  assay_free(arena);
}

void* assay_arena_alloc(assay_arena_t* arena, size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX - ARENA_BLOCK_BYTES) return NULL;
  bytes = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
  block_t* b = arena->blocks;
  if (!b || b->size - b->used < bytes) {
    // A large request gets a block of its own after the one in use, whose rest stays usable.
    bool large = bytes > ARENA_BLOCK_BYTES / 4;
    size_t capacity = large ? bytes : ARENA_BLOCK_BYTES;
    block_t* fresh = assay_calloc(1, sizeof *fresh + capacity);
    if (!fresh) return NULL;
    fresh->size = capacity;
    arena->bytes += capacity;
    if (large && b) {
      fresh->next = b->next;
      b->next = fresh;
    } else {
      fresh->next = b;
      arena->blocks = fresh;
    }
    b = fresh;
  }
  void* p = b->data + b->used;
  b->used += bytes;
  return p;
}

assay_status_t assay_arena_new(assay_arena_t* arena, size_t n, size_t size, void* out) {
  void* p = assay_arena_alloc(arena, n, size);
  if (!p) return assay_status_no_memory();
  memcpy(out, &p, sizeof p);
  return NULL;
}

assay_status_t assay_arena_strndup(assay_arena_t* arena, const char* s, size_t n,
                                   const char** out) {
  if (n == SIZE_MAX) return assay_status_no_memory();
  char* p = assay_arena_alloc(arena, n + 1, 1);
  if (!p) return assay_status_no_memory();
  if (n) memcpy(p, s, n);
  *out = p;
  return NULL;
}

assay_status_t assay_arena_strdup(assay_arena_t* arena, const char* s, const char** out) {
  return assay_arena_strndup(arena, s, strlen(s), out);
}

assay_status_t assay_arena_printf(assay_arena_t* arena, const char** out, const char* format, ...) {
  va_list args, again;
  va_start(args, format);
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  va_end(args);
  char* p = n < 0 ? NULL : assay_arena_alloc(arena, (size_t)n + 1, 1);
  if (p) vsnprintf(p, (size_t)n + 1, format, again);
  va_end(again);
  if (!p) return assay_status_no_memory();
  *out = p;
  return NULL;
}

size_t assay_arena_bytes(const assay_arena_t* arena) { return arena->bytes; }
