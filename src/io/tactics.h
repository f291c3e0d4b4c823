// Tactic replays: which tactic each layer of a plan is run by, as a JSON file in Polygraphy's form.
#ifndef ASSAY_IO_TACTICS_H_
#define ASSAY_IO_TACTICS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/str.h"

enum { ASSAY_TACTIC_RANK = 16 };

// A tensor that goes into a layer or comes out of it.
typedef struct assay_tactic_tensor {
  const char* dtype;  // "DataType.FLOAT"; "" not known
  int rank;
  int64_t strides[ASSAY_TACTIC_RANK];  // elements
  int64_t vectorized_dim, components;  // -1, 1: not vectorized
} assay_tactic_tensor_t;

typedef struct assay_tactic_entry {
  const char* layer;
  int64_t implementation, tactic;  // numbers; of ours, of the tactic's name
  const char* name;                // of ours; NULL: made by another program
  assay_tactic_tensor_t *inputs, *outputs;
  size_t n_inputs, n_outputs;
} assay_tactic_entry_t;

typedef struct assay_tactics {
  assay_tactic_entry_t* entries;
  size_t n;
} assay_tactics_t;

// The number that stands for a tactic of this name.
int64_t assay_tactic_number(const char* name);
// Whether two entries say the same algorithm: numbers and tensors.
bool assay_tactic_same(const assay_tactic_entry_t* a, const assay_tactic_entry_t* b);

// Everything that is read lies in the arena. Reads also files of 0.47 and older, whose classes are
// under "__polygraphy_encoded_<Class>". Errors: NOT_FOUND, CORRUPT the file.
assay_status_t assay_tactics_read(assay_arena_t* arena, const char* path,
                                  assay_tactics_t* out) ASSAY_MUST_USE;
assay_status_t assay_tactics_write(const char* path, const assay_tactics_t* t) ASSAY_MUST_USE;

#endif  // ASSAY_IO_TACTICS_H_
