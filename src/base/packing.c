// Packed state: what a struct holds as bytes, and back.
#include "base/packing.h"

#include <string.h>

#include "base/hash.h"

enum { MAGIC = 8, HEAD = 16 };

void assay_pack_bytes(assay_packing_t* p, void* data, size_t n) {
  if (p->to) {
    assay_str_append_n(p->to, data, n);
    return;
  }
  if (p->failed || n > p->n - p->at) {
    p->failed = true;
    memset(data, 0, n);
    return;
  }
  memcpy(data, p->from + p->at, n);
  p->at += n;
}

void assay_pack_u64(assay_packing_t* p, uint64_t* x) {
  uint8_t bytes[8];
  for (int i = 0; p->to && i < 8; i++) bytes[i] = (uint8_t)(*x >> 8 * i);
  assay_pack_bytes(p, bytes, sizeof bytes);
  if (p->to) return;
  *x = 0;
  for (int i = 0; i < 8; i++) *x |= (uint64_t)bytes[i] << 8 * i;
}

void assay_pack_i64(assay_packing_t* p, int64_t* x) {
  uint64_t bits = (uint64_t)*x;
  assay_pack_u64(p, &bits);
  *x = (int64_t)bits;
}

void assay_pack_f64(assay_packing_t* p, double* x) {
  uint64_t bits;
  memcpy(&bits, x, sizeof bits);
  assay_pack_u64(p, &bits);
  memcpy(x, &bits, sizeof bits);
}

void assay_pack_count(assay_packing_t* p, uint64_t* x, uint64_t max) {
  assay_pack_u64(p, x);
  if (*x <= max) return;
  p->failed = true;
  *x = 0;
}

static void pack_between(assay_packing_t* p, int64_t* x, int64_t min) {
  static const int64_t MAX = INT64_C(1) << 53;
  assay_pack_i64(p, x);
  if (*x >= min && *x <= MAX) return;
  p->failed = true;
  *x = min;
}

void assay_pack_tally(assay_packing_t* p, int64_t* x) { pack_between(p, x, 0); }
void assay_pack_place(assay_packing_t* p, int64_t* x) { pack_between(p, x, -1); }

void assay_pack_bool(assay_packing_t* p, bool* x) {
  uint64_t one = *x;
  assay_pack_count(p, &one, 1);
  *x = one != 0;
}

void assay_pack_text(assay_packing_t* p, char* text, size_t room) {
  uint64_t n = p->to ? strlen(text) : 0;
  assay_pack_count(p, &n, room - 1);
  assay_pack_bytes(p, text, (size_t)n);
  if (!p->to) text[n] = '\0';
}

void assay_packing_begin(assay_packing_t* p, assay_str_t* to) {
  *p = (assay_packing_t){.to = to};
  assay_pack_bytes(p, (char[HEAD]){0}, HEAD);
}

assay_status_t assay_packing_end(assay_packing_t* p, const char magic[8]) {
  ASSAY_TRY(assay_str_status(p->to));
  const uint64_t sum = assay_hash(p->to->text + HEAD, p->to->len - HEAD, 0);
  memcpy(p->to->text, magic, MAGIC);
  memcpy(p->to->text + MAGIC, &sum, sizeof sum);
  return NULL;
}

assay_status_t assay_packing_open(const void* data, size_t size, const char magic[8],
                                  const char* what, assay_packing_t* out) {
  const uint8_t* bytes = data;
  uint64_t sum;
  if (size < HEAD || memcmp(bytes, magic, MAGIC) != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT, "this is not a part of %s, or it was made by another version",
                       what);
  memcpy(&sum, bytes + MAGIC, sizeof sum);
  if (sum != assay_hash(bytes + HEAD, size - HEAD, 0))
    return ASSAY_ERROR(ASSAY_CORRUPT, "a part of %s is damaged: its checksum is another one", what);
  *out = (assay_packing_t){.from = bytes + HEAD, .n = size - HEAD};
  return NULL;
}

assay_status_t assay_packing_status(const assay_packing_t* p) {
  if (p->to) return assay_str_status(p->to);
  if (!p->failed && p->at == p->n) return NULL;
  return ASSAY_ERROR(ASSAY_CORRUPT, "saved state %s at byte %zu of %zu",
                     p->failed ? "ends early, or holds what cannot be," : "goes on", p->at, p->n);
}
