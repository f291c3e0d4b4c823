// Forged files: plans, timing caches and certificates that somebody changed on purpose, knowing
// what they are made of, and whose checksums fit. Fuzz targets mutate by them,
// tests/robust/forgeries.c makes thousands; what is drawn follows from the seed alone.
#ifndef ASSAY_FUZZ_FORGE_H_
#define ASSAY_FUZZ_FORGE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The bytes of a file; `at` is from malloc.
typedef struct forged {
  uint8_t* at;
  size_t n;
} forged_t;

// Changes a file; what is none of its kind is changed anywhere.
void forge_plan(forged_t* f, uint64_t seed);
void forge_cache(forged_t* f, uint64_t seed);
void forge_certificate(forged_t* f, uint64_t seed);
// Changes nodes and declared types of an ONNX message, by what wire_draw draws. `beside`: the bytes
// of its external data. False: it is none, or cannot be written as it is now.
bool forge_model(forged_t* f, const forged_t* beside);

// Makes a plan pass as one of this build, machine and backend, with its checksum; nothing is done
// to what is too short.
void forge_seal_plan(uint8_t* data, size_t n);
bool forge_is_plan(const uint8_t* data, size_t n);

#endif  // ASSAY_FUZZ_FORGE_H_
