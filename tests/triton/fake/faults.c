// Allocations of a backend that is linked with --wrap=malloc and the like: any of them fails.
#include <stdatomic.h>

#include "inside.h"

static atomic_int made, failing;

int fake_fail_allocation(int n) {
  failing = 0;
  const int before = atomic_exchange(&made, 0);
  failing = n;
  return before;
}

static bool fails(void) { return atomic_fetch_add(&made, 1) + 1 == failing; }

__attribute__((visibility("default"))) void* __wrap_malloc(size_t bytes);
__attribute__((visibility("default"))) void* __wrap_calloc(size_t n, size_t bytes);
__attribute__((visibility("default"))) char* __wrap_strdup(const char* text);
__attribute__((visibility("default"))) int __wrap_posix_memalign(void** out, size_t alignment,
                                                                 size_t bytes);

void* __wrap_malloc(size_t bytes) { return fails() ? NULL : malloc(bytes); }
void* __wrap_calloc(size_t n, size_t bytes) { return fails() ? NULL : calloc(n, bytes); }
char* __wrap_strdup(const char* text) { return fails() ? NULL : strdup(text); }

int __wrap_posix_memalign(void** out, size_t alignment, size_t bytes) {
  return fails() ? 12 /* ENOMEM */ : posix_memalign(out, alignment, bytes);
}
