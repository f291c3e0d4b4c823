// Memory: one allocator for the library, checked sizes, arenas.
//
// The allocator is process-wide, as SQLite's is: what the library allocates passes through one
// place, where a test can make any allocation fail and a limit refuses what the machine does not
// have.
#ifndef ASSAY_BASE_ALLOC_H_
#define ASSAY_BASE_ALLOC_H_

#include <assay/memory.h>  // the limit
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// NULL on failure; a size of 0 gives a valid pointer. A request that would pass the limit is
// refused; without a limit one of more than the machine (or the process's control group) has
// available, so that an overcommitting kernel cannot be talked into it.
void* assay_malloc(size_t size);
void* assay_calloc(size_t n, size_t size);  // zeroed; NULL if n * size overflows
void* assay_realloc(void* p, size_t size);
void assay_free(void* p);

// True if this thread's last request was refused by the limit: its size, and what was left.
bool assay_alloc_refused(size_t* out_bytes, int64_t* out_available);

// The same with a status. *out is untouched on failure.
assay_status_t assay_new_array(size_t n, size_t size, void* out) ASSAY_MUST_USE;  // zeroed
#define ASSAY_NEW(out) assay_new_array(1, sizeof **(out), (out))

// Makes room for `need` elements in the array *array (a pointer to the array's pointer) whose
// capacity is *capacity; grows geometrically; new elements are not initialised.
assay_status_t assay_grow(void* array, size_t* capacity, size_t need, size_t size) ASSAY_MUST_USE;

// Checked arithmetic on sizes and element counts: false on overflow or a negative operand.
bool assay_mul_i64(int64_t a, int64_t b, int64_t* out);
bool assay_add_i64(int64_t a, int64_t b, int64_t* out);

// For tests: the nth allocation from now on fails (1 is the next), 0 switches it off; with
// `sticky`, all after it fail, too. Returns how many allocations were made since the last call.
uint64_t assay_alloc_fail_after(uint64_t nth, bool sticky);
// For tests: allocations not yet freed.
int64_t assay_alloc_live(void);

// An arena: what dies together. Nothing in it is freed singly.
typedef struct assay_arena assay_arena_t;
assay_status_t assay_arena_create(assay_arena_t** out) ASSAY_MUST_USE;
void assay_arena_destroy(assay_arena_t* arena);  // NULL is allowed
// Zeroed, aligned for any type; NULL on failure.
void* assay_arena_alloc(assay_arena_t* arena, size_t n, size_t size);
assay_status_t assay_arena_new(assay_arena_t* arena, size_t n, size_t size,
                               void* out) ASSAY_MUST_USE;
// Copies of a string; `n` bytes and a final NUL.
assay_status_t assay_arena_strdup(assay_arena_t* arena, const char* s,
                                  const char** out) ASSAY_MUST_USE;
assay_status_t assay_arena_strndup(assay_arena_t* arena, const char* s, size_t n,
                                   const char** out) ASSAY_MUST_USE;
assay_status_t assay_arena_printf(assay_arena_t* arena, const char** out, const char* format, ...)
    ASSAY_PRINTF(3, 4) ASSAY_MUST_USE;
size_t assay_arena_bytes(const assay_arena_t* arena);

#endif  // ASSAY_BASE_ALLOC_H_
