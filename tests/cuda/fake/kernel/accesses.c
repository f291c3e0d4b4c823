// What the compiler calls before each access to memory of a kernel that is compiled by
// -fsanitize=thread: the platform looks at the address (bounds, races), and no sanitizer's library
// is linked. Compiled once, and linked into each kernel (../nvrtc.c).
#include <string.h>

#include "engine.h"

// The kernel's own one, of prelude.h.
extern __attribute__((visibility("hidden"))) fake_engine_t fake_own_engine;

#define FAKE_CALLED __attribute__((visibility("hidden")))

FAKE_CALLED void fake_accessed(const void* p, size_t bytes, int is_write, const void* at);
FAKE_CALLED void fake_accessed(const void* p, size_t bytes, int is_write, const void* at) {
  fake_lane_t* lane = FAKE_LANE;
  // Its own variables, and the prelude's.
  if (((uintptr_t)p ^ (uintptr_t)lane) < FAKE_STACK) return;
  if ((uintptr_t)p - (uintptr_t)&fake_own_engine < sizeof fake_own_engine) return;
  fake_own_engine.access(lane, p, bytes, is_write, at);
}

#define FAKE_ACCESS(name, bytes, is_write) \
  FAKE_CALLED void name(void* p);          \
  FAKE_CALLED void name(void* p) { fake_accessed(p, bytes, is_write, __builtin_return_address(0)); }
// Those of a GPU lie at multiples of their bytes, where the type does not say otherwise.
#define FAKE_ACCESSES(bytes)                                   \
  FAKE_ACCESS(__tsan_read##bytes, bytes, FAKE_ALIGNED)         \
  FAKE_ACCESS(__tsan_write##bytes, bytes, FAKE_ALIGNED | 1)    \
  FAKE_ACCESS(__tsan_unaligned_read##bytes, bytes, 0)          \
  FAKE_ACCESS(__tsan_unaligned_write##bytes, bytes, 1)         \
  FAKE_ACCESS(__tsan_volatile_read##bytes, bytes, 0)           \
  FAKE_ACCESS(__tsan_volatile_write##bytes, bytes, 1)          \
  FAKE_ACCESS(__tsan_unaligned_volatile_read##bytes, bytes, 0) \
  FAKE_ACCESS(__tsan_unaligned_volatile_write##bytes, bytes, 1)
FAKE_ACCESSES(1)
FAKE_ACCESSES(2)
FAKE_ACCESSES(4)
FAKE_ACCESSES(8)
FAKE_ACCESSES(16)

#define FAKE_RANGE(name, is_write)                                          \
  FAKE_CALLED void name(void* p, long bytes);                               \
  FAKE_CALLED void name(void* p, long bytes) {                              \
    fake_accessed(p, (size_t)bytes, is_write, __builtin_return_address(0)); \
  }
FAKE_RANGE(__tsan_read_range, 0)
FAKE_RANGE(__tsan_write_range, 1)

FAKE_CALLED void __tsan_init(void);
FAKE_CALLED void __tsan_init(void) {}
FAKE_CALLED void __tsan_func_entry(void* at);
FAKE_CALLED void __tsan_func_entry(void* at) { (void)at; }
FAKE_CALLED void __tsan_func_exit(void* at);
FAKE_CALLED void __tsan_func_exit(void* at) { (void)at; }
FAKE_CALLED void* __tsan_memcpy(void* to, const void* from, size_t bytes);
FAKE_CALLED void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  fake_accessed(from, bytes, 0, __builtin_return_address(0));
  fake_accessed(to, bytes, 1, __builtin_return_address(0));
  return memcpy(to, from, bytes);
}
FAKE_CALLED void* __tsan_memset(void* to, int byte, size_t bytes);
FAKE_CALLED void* __tsan_memset(void* to, int byte, size_t bytes) {
  fake_accessed(to, bytes, 1, __builtin_return_address(0));
  return memset(to, byte, bytes);
}
