// Checksums of bytes.
#ifndef ASSAY_BASE_HASH_H_
#define ASSAY_BASE_HASH_H_

#include <stddef.h>
#include <stdint.h>

// XXH3 of n bytes (data may be NULL if n is 0), going on from what `seed` stands for: a chain of
// calls hashes a sequence of pieces.
uint64_t assay_hash(const void* data, size_t n, uint64_t seed);

#endif  // ASSAY_BASE_HASH_H_
