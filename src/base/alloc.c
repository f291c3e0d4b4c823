#include "base/alloc.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// ---- the allocator ----------------------------------------------------------------------------

static _Atomic uint64_t allocations;  // since the last assay_alloc_fail_after
static _Atomic uint64_t fail_at;      // 0: never
static _Atomic bool fail_sticky;
static _Atomic int64_t live;

static size_t largest_request(void) {
  static _Atomic size_t cached;
  size_t limit = atomic_load_explicit(&cached, memory_order_relaxed);
  if (limit) return limit;
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  limit = pages > 0 && page > 0 ? (size_t)pages * (size_t)page : SIZE_MAX / 2;
  atomic_store_explicit(&cached, limit, memory_order_relaxed);
  return limit;
}

// Whether this request may go to the system's allocator.
static bool admitted(size_t size) {
  uint64_t n = atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed) + 1;
  uint64_t at = atomic_load_explicit(&fail_at, memory_order_relaxed);
  if (at && (n == at || (n > at && atomic_load_explicit(&fail_sticky, memory_order_relaxed))))
    return false;
  return size <= largest_request();
}

static void* counted(void* p) {
  if (p) atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
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
  return admitted(size) ? realloc(p, size ? size : 1) : NULL;
}

void assay_free(void* p) {
  if (p) atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
  free(p);
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
    // A large request gets a block of its own behind the one in use, whose rest stays usable.
    bool large = bytes > ARENA_BLOCK_BYTES / 4;
    size_t room = large ? bytes : ARENA_BLOCK_BYTES;
    block_t* fresh = assay_calloc(1, sizeof *fresh + room);
    if (!fresh) return NULL;
    fresh->size = room;
    arena->bytes += room;
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
