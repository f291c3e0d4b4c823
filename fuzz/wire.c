// One field of a protobuf message, somewhere in the tree, is changed, removed, doubled or brought
// from another message, and the lengths of all messages around it follow.
#include "wire.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FIELDS = 512, MAX_DEPTH = 24, CAPACITY = WIRE_CAPACITY };

typedef struct field {
  uint64_t key;            // number << 3 | wire type
  const uint8_t* start;    // of the key
  const uint8_t* payload;  // behind key and length
  const uint8_t* end;
} field_t;

static uint64_t state;

void wire_seed(uint64_t seed) {
  state = seed;
  (void)wire_draw(1);
}

uint64_t wire_draw(uint64_t n) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return n ? (state >> 33) % n : 0;
}

static bool read_varint(const uint8_t** p, const uint8_t* end, uint64_t* out) {
  *out = 0;
  for (int shift = 0; *p < end && shift < 64; shift += 7) {
    uint8_t b = *(*p)++;
    *out |= (uint64_t)(b & 127) << shift;
    if (b < 128) return true;
  }
  return false;
}

static size_t put_varint(uint8_t* out, uint64_t x) {
  size_t n = 0;
  for (; x > 127; x >>= 7) out[n++] = (uint8_t)(x | 128);
  out[n++] = (uint8_t)x;
  return n;
}

// The fields of a message; -1 if the bytes are none.
static int read_fields(const uint8_t* p, const uint8_t* end, field_t* out) {
  int n = 0;
  while (p < end) {
    field_t f = {.start = p};
    uint64_t x;
    if (n == MAX_FIELDS || !read_varint(&p, end, &f.key) || f.key < 8) return -1;
    f.payload = p;
    switch (f.key & 7) {
      case 0:
        if (!read_varint(&p, end, &x)) return -1;
        break;
      case 1:
      case 5: {
        ptrdiff_t bytes = (f.key & 7) == 1 ? 8 : 4;
        if (end - p < bytes) return -1;
        p += bytes;
        break;
      }
      case 2:
        if (!read_varint(&p, end, &x) || x > (uint64_t)(end - p)) return -1;
        f.payload = p;
        p += x;
        break;
      default:
        return -1;
    }
    f.end = p;
    out[n++] = f;
  }
  return n;
}

static size_t copy(uint8_t* out, const uint8_t* from, const uint8_t* to) {
  memcpy(out, from, (size_t)(to - from));
  return (size_t)(to - from);
}

static size_t put_field(uint8_t* out, uint64_t key, const uint8_t* payload, size_t n) {
  size_t at = put_varint(out, key);
  at += put_varint(out + at, n);
  memcpy(out + at, payload, n);
  return at + n;
}

static uint64_t number(uint64_t was) {
  static const uint64_t odd[] = {0,
                                 1,
                                 2,
                                 3,
                                 7,
                                 16,
                                 255,
                                 65536,
                                 UINT64_MAX,
                                 (uint64_t)-2,
                                 INT32_MAX,
                                 (uint64_t)INT32_MIN,
                                 UINT32_MAX,
                                 INT64_MAX,
                                 (uint64_t)INT64_MIN,
                                 (uint64_t)1 << 62};
  switch (wire_draw(4)) {
    case 0:
      return odd[wire_draw(sizeof odd / sizeof *odd)];
    case 1:
      return was + wire_draw(5) - 2;
    case 2:
      return wire_draw(30);
    default:
      return was ^ (uint64_t)1 << wire_draw(64);
  }
}

// One changed field; `out` has room for ROOM bytes more than the field.
static size_t change_field(const field_t* f, uint8_t* out) {
  size_t n = (size_t)(f->end - f->payload);
  if ((f->key & 7) == 0) {
    const uint8_t* p = f->payload;
    uint64_t x = 0;
    read_varint(&p, f->end, &x);
    size_t at = put_varint(out, f->key);
    return at + put_varint(out + at, number(x));
  }
  if ((f->key & 7) != 2) {
    size_t at = copy(out, f->start, f->end);
    LLVMFuzzerMutate(out + at - n, n, n);
    return at;
  }
  uint8_t* text = malloc(n + CAPACITY);
  if (!text) abort();
  memcpy(text, f->payload, n);
  n = LLVMFuzzerMutate(text, n, n + CAPACITY / 2);
  size_t at = put_field(out, f->key, text, n);
  free(text);
  return at;
}

// Changes one field of a message or of those within; `out` has room for n + ROOM. 0: nothing done.
static size_t change(const uint8_t* data, size_t n, uint8_t* out, int depth) {
  field_t* f = malloc(MAX_FIELDS * sizeof *f);
  if (!f) abort();
  int n_fields = read_fields(data, data + n, f);
  size_t at = 0;
  if (n_fields > 0) {
    int k = (int)wire_draw((uint64_t)n_fields);
    // A larger field has more in it: of two, the larger one.
    int other = (int)wire_draw((uint64_t)n_fields);
    if (f[other].end - f[other].start > f[k].end - f[k].start) k = other;
    size_t size = (size_t)(f[k].end - f[k].payload), inner = 0;
    at = copy(out, data, f[k].start);
    uint8_t* sub = NULL;
    if ((f[k].key & 7) == 2 && depth < MAX_DEPTH && wire_draw(10) < 9) {
      if (!(sub = malloc(size + CAPACITY))) abort();
      inner = change(f[k].payload, size, sub, depth + 1);
    }
    if (inner) {
      at += put_field(out + at, f[k].key, sub, inner);
    } else {
      switch (wire_draw(8)) {
        case 0:  // gone
          break;
        case 1:  // twice
          at += copy(out + at, f[k].start, f[k].end);
          if (f[k].end - f[k].start < CAPACITY / 4) at += copy(out + at, f[k].start, f[k].end);
          break;
        case 2:  // where another stands
          if (f[other].end - f[other].start < CAPACITY / 4)
            at += copy(out + at, f[other].start, f[other].end);
          break;
        default:
          at += change_field(&f[k], out + at);
      }
    }
    at += copy(out + at, f[k].end, data + n);
    free(sub);
  }
  free(f);
  return at;
}

// Takes a field of message b into message a; `out` has room for both and ROOM. 0: nothing done.
static size_t cross(const uint8_t* a, size_t na, const uint8_t* b, size_t nb, uint8_t* out,
                    int depth) {
  field_t* f = malloc(2 * MAX_FIELDS * sizeof *f);
  if (!f) abort();
  field_t* g = f + MAX_FIELDS;
  int n_f = read_fields(a, a + na, f), n_g = read_fields(b, b + nb, g);
  size_t at = 0;
  if (n_f > 0 && n_g > 0) {
    const field_t* from = &g[wire_draw((uint64_t)n_g)];
    int k = 0, first = (int)wire_draw((uint64_t)n_f);
    while (k < n_f && f[(first + k) % n_f].key != from->key) k++;
    const field_t* to = k < n_f ? &f[(first + k) % n_f] : NULL;
    at = copy(out, a, to ? to->start : a + na);
    size_t inner = 0;
    if (to && (to->key & 7) == 2 && depth < MAX_DEPTH && wire_draw(4)) {
      size_t n = (size_t)(to->end - to->payload), m = (size_t)(from->end - from->payload);
      uint8_t* sub = malloc(n + m + CAPACITY);
      if (!sub) abort();
      inner = cross(to->payload, n, from->payload, m, sub, depth + 1);
      if (inner) at += put_field(out + at, to->key, sub, inner);
      free(sub);
    }
    if (!inner) {
      if (to && wire_draw(2)) at += copy(out + at, to->start, to->end);  // beside it
      at += copy(out + at, from->start, from->end);
    }
    if (to) at += copy(out + at, to->end, a + na);
  }
  free(f);
  return at;
}

size_t wire_change(const uint8_t* data, size_t n, uint8_t* out) { return change(data, n, out, 0); }

size_t wire_cross(const uint8_t* a, size_t na, const uint8_t* b, size_t nb, uint8_t* out) {
  return cross(a, na, b, nb, out, 0);
}
