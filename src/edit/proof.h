// The proof of an edit: truth of the model before and after, on the same inputs.
//
// Values of the two are the same by id. What the edited model takes as inputs is given to it as
// truth of the original has it, be it an input there or a value within; what it hands out is
// compared with the same value of the original.
#ifndef ASSAY_EDIT_PROOF_H_
#define ASSAY_EDIT_PROOF_H_

#include "base/str.h"
#include "data/samples.h"
#include "edit/moved.h"
#include "ir/ir.h"

// Which nodes of the original may be rounded otherwise than before, and to which format.
typedef struct assay_rounded {
  bool* nodes;  // by node id of the original; NULL: none
  size_t n;
  assay_format_t format;  // NONE: each value's own type
} assay_rounded_t;

typedef struct assay_proof_output {
  const char* name;  // in the edited model
  assay_moved_t truth;
  assay_moved_t stored;       // rounded to declared types, against truth before; with `stored`
  assay_moved_t unquantized;  // with `unquantized`
  double explained;           // RMS that rounding explains; with `has_explained`
  int64_t explained_different;
  bool within;  // truth (and stored) moved by no more than that explains
} assay_proof_output_t;

typedef struct assay_proof {
  assay_proof_output_t* outputs;
  size_t n;
  size_t n_samples;
  bool stored, unquantized, has_explained;
  bool unchanged, within;  // of all outputs
  assay_str_t sizes;       // "N=1; N=2": of open dimensions, by sample; "" if there are none
} assay_proof_t;

typedef struct assay_proof_options {
  bool stored, unquantized;
  const assay_rounded_t* rounded;  // NULL: nothing may round
  uint64_t seed;
  void (*progress)(void* user, const char* what, double fraction);
  void* user;
} assay_proof_options_t;

// before, after: prepared; samples: of before's inputs, in their order. Names in the result are
// after's and live as long as it does.
// Errors: those of running the models; for those of `after` *out_after is set.
assay_status_t assay_proof_run(const assay_model_t* before, const assay_model_t* after,
                               const assay_samples_t* samples, const assay_proof_options_t* options,
                               assay_proof_t* out, bool* out_after) ASSAY_MUST_USE;
void assay_proof_deinit(assay_proof_t* p);

// Samples for a proof: of models with open sizes one in which they are 1, and one in which batches
// are 2, where the model takes that.
assay_status_t assay_proof_samples(const assay_model_t* model, size_t n_shapes,
                                   const assay_input_shape_t* shapes, int n, uint64_t seed,
                                   assay_samples_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_PROOF_H_
