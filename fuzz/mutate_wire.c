// libFuzzer's hooks for targets that read protobuf messages: its own mutations change bytes
// anywhere, and hardly ever hit the lengths of all messages around them.
#include <stdlib.h>
#include <string.h>

#include "wire.h"

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                 uint8_t* out, size_t max_out, unsigned seed);

enum { CAPACITY = WIRE_CAPACITY };

static size_t take(const uint8_t* made, size_t n, uint8_t* out, size_t max) {
  if (!n || n > max) return 0;
  memcpy(out, made, n);
  return n;
}

size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  wire_seed(seed);
  if (!size || wire_draw(16) == 0) return LLVMFuzzerMutate(data, size, max_size);
  size_t n = size;
  uint8_t* made = malloc(size + 4 * CAPACITY);
  if (!made) abort();
  // Sometimes several changes: one alone seldom leads to another valid model.
  for (uint64_t left = 1 + (wire_draw(3) == 0 ? wire_draw(3) : 0); left--;) {
    size_t m = wire_change(data, n, made);
    m = take(made, m, data, max_size < size + 3 * CAPACITY ? max_size : size + 3 * CAPACITY);
    if (!m) break;
    n = m;
    if (n + CAPACITY > size + 4 * CAPACITY) break;
  }
  free(made);
  return n;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* a, size_t a_size, const uint8_t* b, size_t b_size,
                                 uint8_t* out, size_t max_out, unsigned seed) {
  wire_seed(seed);
  uint8_t* made = malloc(a_size + b_size + CAPACITY);
  if (!made) abort();
  size_t n = take(made, wire_cross(a, a_size, b, b_size, made), out, max_out);
  free(made);
  return n ? n : take(a, a_size, out, max_out);
}
