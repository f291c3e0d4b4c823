// Fibers: a switch of stacks, which the address sanitizer is told of.
#ifndef TESTS_CUDA_FAKE_SWITCH_H_
#define TESTS_CUDA_FAKE_SWITCH_H_

#include <stddef.h>
#include <string.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FAKE_ASAN
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FAKE_ASAN
#endif

#ifdef FAKE_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define LEAVE(fake, bottom, size) __sanitizer_start_switch_fiber(fake, bottom, size)
#define ARRIVE(fake, bottom, size) __sanitizer_finish_switch_fiber(fake, bottom, size)
#define UNWATCHED __attribute__((no_sanitize_address))
// What lanes that were left in the middle had on their stacks.
static inline void forgive(char* p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
#define LEAVE(fake, bottom, size) (void)(fake), (void)(bottom), (void)(size)
#define ARRIVE(fake, bottom, size) (void)0
#define UNWATCHED
static inline void forgive(char* p, size_t bytes) { (void)p, (void)bytes; }
#endif

// NaN, and -1. Strips that the sanitizer put between variables are written, too.
UNWATCHED static inline void poison(char* p, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) ((volatile char*)p)[i] = (char)0xff;
}

// Saves what a call must keep, changes stacks, and returns where the other fiber left.
void fake_switch(void** from, void* to);
// The stack of a fiber that begins with `start`.
void* fake_prepare(char* top, void (*start)(void));

#endif  // TESTS_CUDA_FAKE_SWITCH_H_
