// Checksums of bytes.
#include "base/hash.h"

#include <xxhash.h>

uint64_t assay_hash(const void* data, size_t n, uint64_t seed) {
  return XXH3_64bits_withSeed(data ? data : "", n, seed);
}
