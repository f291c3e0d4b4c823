// The box of a model's inputs: between which numbers each of them lies.
#ifndef ASSAY_RANGES_BOX_H_
#define ASSAY_RANGES_BOX_H_

#include "data/samples.h"

typedef enum assay_box_origin {
  ASSAY_BOX_ASSUMED = 0,  // [-1, 1], or what an integer picks from: nothing was said
  ASSAY_BOX_GIVEN,        // by the user
  ASSAY_BOX_SAMPLES,      // the range of the samples' elements
} assay_box_origin_t;

typedef struct assay_box_input {
  const assay_value_t* value;
  double lo, hi;
  bool is_float;
  assay_box_origin_t origin;
} assay_box_input_t;

typedef struct assay_box {
  assay_box_input_t* inputs;  // by graph input; those with an initializer have value NULL
  size_t n;
} assay_box_t;

// entries: "NAME=LO:HI", NAME=R for -R:R, or without a name for all float inputs. samples may be
// NULL. Errors: INVALID_ARGUMENT naming the entry.
assay_status_t assay_box_create(const assay_model_t* model, const char* const* entries, size_t n,
                                const assay_samples_t* samples, assay_box_t* out) ASSAY_MUST_USE;
void assay_box_deinit(assay_box_t* b);

// The box with its float inputs scaled: about 0 if 0 is in all of them, else each about its middle.
// Integer inputs stay. Of two scales the smaller one's box lies in the other's.
void assay_box_scale(const assay_box_t* b, double scale, assay_box_t* into);
assay_status_t assay_box_copy(const assay_box_t* b, assay_box_t* out) ASSAY_MUST_USE;
// Whether all float inputs lie in one and the same [-r, r]: then a scale is a bound on |x|.
bool assay_box_is_ball(const assay_box_t* b, double* out_r);

#endif  // ASSAY_RANGES_BOX_H_
