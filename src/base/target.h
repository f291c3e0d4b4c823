// Functions that are compiled several times, for several instruction sets.
#ifndef ASSAY_BASE_TARGET_H_
#define ASSAY_BASE_TARGET_H_

#include <limits.h>  // tells whether the C library is glibc

#if defined(__SANITIZE_THREAD__)
#define ASSAY_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ASSAY_THREAD_SANITIZER 1
#endif
#endif

// The best of these for the CPU is chosen when the program is loaded. With thread sanitizer, whose
// calls stand in the choosing functions too, that is before it is ready: one version only.
// clang 14 makes the choosing functions symbols that all files see, under names that callers in
// other files do not know (mended in later ones): one version only, too.
#if defined(__clang__) && __clang_major__ < 17
#define ASSAY_CLONES(...)
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && \
    !defined(ASSAY_THREAD_SANITIZER)
#define ASSAY_HAS_CLONES 1
#define ASSAY_CLONES(...) __attribute__((target_clones(__VA_ARGS__)))
#else
#define ASSAY_CLONES(...)
#endif

#endif  // ASSAY_BASE_TARGET_H_
