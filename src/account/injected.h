// What a fault that was injected in the engine (backends/emu/inject.h) did to the layer it is in:
// for the mutation bench, which has to know the faults that rounding could hide.
#ifndef ASSAY_ACCOUNT_INJECTED_H_
#define ASSAY_ACCOUNT_INJECTED_H_

#include "account/local.h"

typedef struct assay_injected {
  bool here;        // the fault is in this layer
  int64_t changed;  // elements that are not what the engine gives without the fault
  int64_t past;     // of them: those that moved by more than the guaranteed limit, and half an ulp
                    // where storing rounds; or whose shape is another one
} assay_injected_t;

bool assay_injected_is_in(const assay_layers_t* layers, const assay_layer_t* layer,
                          const assay_node_t* node);

// Adds one run: what the engine gave against the layer run again without the fault.
assay_status_t assay_injected_measure(assay_locals_t* locals, const assay_layer_t* layer,
                                      const assay_node_t* node, size_t n_in,
                                      assay_tensor_t* const* in, const assay_local_t* local,
                                      assay_format_t compute, assay_tensor_t* const* engine,
                                      assay_injected_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_ACCOUNT_INJECTED_H_
