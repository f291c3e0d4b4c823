// An input in the box that breaks the model: found by search, confirmed by running the emulated
// engine.
//
// For each hazard, the value that may pass its range is pushed there from several starts: backwards
// through the graph goes the gradient (eval/gradients/vjp.h; straight through quantizers and
// roundings), and the inputs go to the corner of the box that it points to, or a part of the way.
// Corners, constant inputs and samples are tried, too. A witness of the first hazard is preferred
// to one of those after it.
#ifndef ASSAY_RANGES_WITNESS_H_
#define ASSAY_RANGES_WITNESS_H_

#include "ranges/ranges.h"

typedef struct assay_witness {
  bool found;
  assay_tensor_t** inputs;  // by graph input, in its type; NULL: has an initializer
  size_t n;
  const assay_node_t* node;  // where the engine gave the first number that is not finite, or wrong
  const assay_value_t* value;
  assay_hazard_kind_t kind;
  double figure;   // truth of the element there
  bool at_output;  // an output of the graph is not finite, too
  int runs;        // of the engine
} assay_witness_t;
void assay_witness_deinit(assay_witness_t* w);

typedef struct assay_witness_options {
  double seconds;
  uint64_t seed;
  const assay_samples_t* samples;  // starts; NULL: none
  void (*progress)(void* user, double fraction);
  void* user;
} assay_witness_options_t;

assay_status_t assay_witness_find(const assay_plan_t* plan, const assay_box_t* box,
                                  const assay_ranges_t* ranges,
                                  const assay_witness_options_t* options,
                                  assay_witness_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_RANGES_WITNESS_H_
