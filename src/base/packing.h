// Packed state: what a struct holds as bytes, and back. One function walks a struct's fields in
// both directions, so what is written and what is read cannot differ.
//
// Numbers are little endian, doubles by their bits. Reading checks its bounds: past the end, or
// where a number is out of its range, the packing fails and gives zeros from there on; the caller
// asks once, at the end (assay_packing_status).
#ifndef ASSAY_BASE_PACKING_H_
#define ASSAY_BASE_PACKING_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

typedef struct assay_packing {
  assay_str_t* to;  // bytes are appended to it; NULL: they are read
  const uint8_t* from;
  size_t n, at;
  bool failed;  // what was read ends early, or is out of range
} assay_packing_t;

static inline bool assay_packing_reads(const assay_packing_t* p) { return !p->to; }
void assay_pack_bytes(assay_packing_t* p, void* data, size_t n);
void assay_pack_u64(assay_packing_t* p, uint64_t* x);
void assay_pack_i64(assay_packing_t* p, int64_t* x);
void assay_pack_f64(assay_packing_t* p, double* x);
void assay_pack_bool(assay_packing_t* p, bool* x);
// A number from 0 to max.
void assay_pack_count(assay_packing_t* p, uint64_t* x, uint64_t max);
// How many there are of something, 0 to 2^53: those of many parts can be summed.
void assay_pack_tally(assay_packing_t* p, int64_t* x);
// The number of one among so many; -1: of none.
void assay_pack_place(assay_packing_t* p, int64_t* x);
// A text in an array of `room` bytes.
void assay_pack_text(assay_packing_t* p, char* text, size_t room);

// A text of packed state that is kept for later: 8 bytes that say what it is, a checksum, and then
// what is appended. `what` names it in messages, such as "a part of a check".
void assay_packing_begin(assay_packing_t* p, assay_str_t* to);
assay_status_t assay_packing_end(assay_packing_t* p, const char magic[8]) ASSAY_MUST_USE;
// Begins to read such a text. Errors: CORRUPT another magic, or another checksum.
assay_status_t assay_packing_open(const void* data, size_t size, const char magic[8],
                                  const char* what, assay_packing_t* out) ASSAY_MUST_USE;
// Errors: CORRUPT; NO_MEMORY.
assay_status_t assay_packing_status(const assay_packing_t* p) ASSAY_MUST_USE;

#endif  // ASSAY_BASE_PACKING_H_
