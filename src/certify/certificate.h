// A certificate: what a run of a model was, small enough to be kept beside it.
//
// It says what was run (model, precision, inputs by their seed, version), has for each value of the
// model a sketch of its truth and how far the engine that was certified lay from that, maybe a hash
// of the engine's bits, and for each decision of the outputs whether it can flip. `assay_certify`
// makes one (certify.h), `assay_certificate_verify` holds another run against it (verify.h).
//
// Of a model's values it keeps as many as its size allows: all, or every second, fourth, ...
#ifndef ASSAY_CERTIFY_CERTIFICATE_H_
#define ASSAY_CERTIFY_CERTIFICATE_H_

#include <assay/certify.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/str.h"

enum { ASSAY_CERTIFICATE_SKETCHES = 4 };

// What is odd about a value in the run that was certified.
enum {
  ASSAY_ODD_TRUTH = 1,      // truth has NaN or infinities
  ASSAY_ODD_ENGINE = 2,     // the engine has
  ASSAY_ODD_UNDERFLOW = 4,  // its layer made elements 0 that truth has not
  ASSAY_ODD_DEFECT = 8,     // its layer's own error was past its bound
};

typedef struct assay_certified_value {
  uint16_t name;  // hash of its name
  uint8_t step;   // code of a size: what the sketches are multiples of. The engine's error was at
                  // most ASSAY_CERTIFICATE_STEPS of it (Euclidean norm)
  uint8_t bound;  // code: RMS of its layer's own probable bound; 0: not known
  uint8_t odd;
  uint32_t bits;  // hash of the engine's value; 0: it has none
  int64_t sketch[ASSAY_CERTIFICATE_SKETCHES];
} assay_certified_value_t;
enum { ASSAY_CERTIFICATE_STEPS = 4 };

// Whether a decision can flip.
typedef enum assay_grade {
  ASSAY_GRADE_OPEN = 0,  // it may
  ASSAY_GRADE_PROBABLE,  // its margin is many times the errors that runs with other roundings show
  ASSAY_GRADE_PROVEN,    // no engine that computes the nodes in these formats can flip it
} assay_grade_t;

typedef enum assay_decision_kind {
  ASSAY_DECISION_TOP1 = 0,
  ASSAY_DECISION_THRESHOLD
} assay_decision_kind_t;

// All decisions of one output, over all samples.
typedef struct assay_decisions {
  uint32_t output;  // of the graph, by number
  assay_decision_kind_t kind;
  double threshold;
  size_t n;
  size_t count[3];   // by grade
  uint32_t choices;  // hash of what truth decides
  uint8_t* grades;   // n of them; NULL: left out for the size
} assay_decisions_t;

// How much is kept of each value.
typedef struct assay_certificate_form {
  uint8_t sketches;    // 0 to 4
  uint8_t bits_bytes;  // 0, 1, 2 or 4
  bool names, bounds;
  uint32_t stride;  // every so many values, from the last one backwards
} assay_certificate_form_t;

struct assay_certificate {
  // Texts: "" where there is nothing to say; as their options take them.
  char *version, *precision, *rules, *shapes, *fp32, *target;
  bool unquantized, fused;
  bool given;  // inputs were given, and are told by their hash; else drawn from the seed
  uint64_t seed, inputs;
  uint64_t model, model_bytes;
  uint32_t machine;  // hash of what the engine is made for
  uint32_t names;    // hash of the names of all values
  size_t n_values;   // of the model
  assay_certificate_form_t form;
  assay_certified_value_t* values;  // by number of the value; those not kept are zero
  assay_decisions_t* decisions;
  size_t n_decisions;
  // Of those that the public API makes (certify_public.c).
  assay_str_t file;        // its bytes
  assay_str_t path;        // where it is; "": nowhere yet
  assay_model_t* subject;  // NULL: it was read
  size_t max;              // bytes that it was allowed
  double seconds;          // that it took to make
};

void assay_certificate_deinit(assay_certificate_t* c);
// Whether value i is kept in this form.
bool assay_certificate_keeps(const assay_certificate_t* c, size_t i);

// ---- the file -----------------------------------------------------------------------------------

// Appends the file's bytes, in the richest form that takes no more than `max` bytes, which is set
// in c; in the poorest one if none does. Grades are left out (freed) where they alone take half of
// it.
assay_status_t assay_certificate_encode(assay_certificate_t* c, size_t max,
                                        assay_str_t* out) ASSAY_MUST_USE;
// Errors: CORRUPT it is not a certificate, is damaged, or of another form.
assay_status_t assay_certificate_decode(const void* data, size_t size,
                                        assay_certificate_t* out) ASSAY_MUST_USE;
// For tests: puts the checksum of bytes that were changed into them.
void assay_certificate_seal(void* data, size_t size);

#endif  // ASSAY_CERTIFY_CERTIFICATE_H_
