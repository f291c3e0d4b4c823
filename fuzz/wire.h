// Changes to protobuf messages that leave them messages.
#ifndef ASSAY_FUZZ_WIRE_H_
#define ASSAY_FUZZ_WIRE_H_

#include <stddef.h>
#include <stdint.h>

enum { WIRE_CAPACITY = 256 };  // bytes that a change adds at most

// libFuzzer's; a program without it brings one of its own.
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// What is drawn follows from the seed alone.
void wire_seed(uint64_t seed);
uint64_t wire_draw(uint64_t n);  // below n; 0: 0

// Changes one field of a message or of those within; `out` has room for n + WIRE_CAPACITY. 0:
// nothing was done.
size_t wire_change(const uint8_t* data, size_t n, uint8_t* out);
// Takes a field of message b into message a; `out` has room for both and WIRE_CAPACITY. 0: nothing
// was done.
size_t wire_cross(const uint8_t* a, size_t na, const uint8_t* b, size_t nb, uint8_t* out);

#endif  // ASSAY_FUZZ_WIRE_H_
