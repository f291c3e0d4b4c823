// Forges certificates: numbers of variable length, texts with their lengths before them, and bytes,
// in the order of src/certify/certificate_file.c.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "certify/certificate.h"
#include "forge.h"
#include "wire.h"

enum { HEADER = 13, TEXTS = 6, MAX_FIELDS = 64 };

typedef struct field {
  size_t at, n;
  bool number;  // of variable length; else bytes
} field_t;

typedef struct fields {
  field_t at[MAX_FIELDS];
  size_t n, end;
  const forged_t* f;
} fields_t;

static uint64_t read_number(const forged_t* f, size_t at, size_t* out_n) {
  uint64_t x = 0;
  *out_n = 0;
  for (int shift = 0; at + *out_n < f->n && shift < 64; shift += 7) {
    const uint8_t b = f->at[at + (*out_n)++];
    x |= (uint64_t)(b & 127) << shift;
    if (b < 128) break;
  }
  return x;
}

static uint64_t add(fields_t* l, size_t n, bool number) {
  uint64_t x = 0;
  if (number) x = read_number(l->f, l->end, &n);
  if (n > l->f->n - l->end) n = l->f->n - l->end;
  if (l->n < MAX_FIELDS) l->at[l->n++] = (field_t){l->end, n, number};
  l->end += n;
  return x;
}

// The head's fields; then the rest is one.
static void list_fields(const forged_t* f, fields_t* out) {
  *out = (fields_t){.f = f, .end = HEADER};
  for (int i = 0; i < TEXTS; i++) {
    const uint64_t n = add(out, 0, true);
    add(out, (size_t)(n < f->n ? n : f->n), false);
  }
  const uint8_t flags = out->end < f->n ? f->at[out->end] : 0;
  add(out, 1, false);
  add(out, 0, true);                  // seed
  if (flags & 4) add(out, 8, false);  // inputs
  add(out, 8, false);                 // model
  add(out, 0, true);                  // its bytes
  add(out, 4, false);                 // machine
  add(out, 4, false);                 // names
  add(out, 0, true);                  // values
  add(out, 1, false);                 // sketches
  add(out, 1, false);                 // bytes of bits
  add(out, 0, true);                  // stride
}

static void put_number(uint64_t x, assay_str_t* out) {
  for (; x > 127; x >>= 7) {
    const char byte = (char)(x | 128);
    assay_str_append_n(out, &byte, 1);
  }
  const char byte = (char)x;
  assay_str_append_n(out, &byte, 1);
}

static uint64_t odd_number(uint64_t was) {
  static const uint64_t odd[] = {0,
                                 1,
                                 2,
                                 7,
                                 8,
                                 255,
                                 1 << 20,
                                 (1 << 20) + 1,
                                 1 << 24,
                                 UINT32_MAX,
                                 UINT64_MAX,
                                 INT64_MAX,
                                 (uint64_t)1 << 63,
                                 127,
                                 128,
                                 16384};
  switch (wire_draw(3)) {
    case 0:
      return odd[wire_draw(sizeof odd / sizeof *odd)];
    case 1:
      return was + wire_draw(5) - 2;
    default:
      return was ^ (uint64_t)1 << wire_draw(64);
  }
}

static void change_field(const forged_t* f, const field_t* field, assay_str_t* out) {
  size_t n = 0;
  if (field->number) {
    put_number(odd_number(read_number(f, field->at, &n)), out);
    return;
  }
  for (size_t i = 0; i < field->n; i++) {
    const char was = (char)f->at[field->at + i], other = (char)wire_draw(256);
    assay_str_append_n(out, wire_draw(3) ? &was : &other, 1);
  }
}

// Somewhere behind the head: a byte or a number is another, bytes are gone or there twice.
static void change_rest(const forged_t* f, size_t from, assay_str_t* out) {
  const size_t rest = f->n - from;
  const size_t at = from + (size_t)wire_draw(rest), left = f->n - at;
  const size_t some = (size_t)wire_draw(left < 40 ? left : 40);
  size_t n = 0;
  assay_str_append_n(out, (const char*)f->at + from, at - from);
  switch (rest ? wire_draw(5) : 4) {
    case 0:
      put_number(odd_number(read_number(f, at, &n)), out);
      break;
    case 1:
      n = some;
      break;
    case 2:
      assay_str_append_n(out, (const char*)f->at + at, some);
      break;
    case 3: {
      const char byte = (char)wire_draw(256);
      n = 1;
      assay_str_append_n(out, &byte, 1);
      break;
    }
    default:
      put_number(wire_draw(1 << 30), out);
  }
  assay_str_append_n(out, (const char*)f->at + at + n, left - n);
}

static void forge_once(forged_t* f) {
  fields_t l;
  assay_str_t out = {0};
  list_fields(f, &l);
  const size_t which = (size_t)wire_draw(2 * l.n);
  assay_str_append_n(&out, (const char*)f->at, HEADER);
  for (size_t i = 0; i < l.n; i++) {
    if (i == which)
      change_field(f, &l.at[i], &out);
    else
      assay_str_append_n(&out, (const char*)f->at + l.at[i].at, l.at[i].n);
  }
  if (which >= l.n)
    change_rest(f, l.end, &out);
  else
    assay_str_append_n(&out, (const char*)f->at + l.end, f->n - l.end);
  free(f->at);
  f->n = out.len;
  f->at = malloc(f->n + 1);
  if (!f->at) abort();
  memcpy(f->at, out.text, f->n);
  assay_str_deinit(&out);
}

void forge_certificate(forged_t* f, uint64_t seed) {
  wire_seed(seed);
  for (uint64_t left = 1 + wire_draw(3); f->n > HEADER && left--;) forge_once(f);
  if (wire_draw(16) == 0) f->n = (size_t)wire_draw(f->n + 1);
  assay_certificate_seal(f->at, f->n);
}
