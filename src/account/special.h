// NaN and infinities of a layer, element by element: which outputs those that came in reach, and
// which of the engine's the emulated layer shows as well.
//
// An element is reached if its truth changes when other numbers take the place of the inputs'
// elements that are not finite: by NaN in their place (whatever computes with NaN gives NaN), and
// by large numbers of either sign, since operators that compare or select may drop a NaN. The layer
// is evaluated again only where the engine's NaN and infinities are not those of truth.
#ifndef ASSAY_ACCOUNT_SPECIAL_H_
#define ASSAY_ACCOUNT_SPECIAL_H_

#include "account/local.h"

struct assay_special {
  size_t n_out;
  uint8_t** at;  // by output: a byte an element (ASSAY_REACHED, ASSAY_SHOWN); NULL: zeros
  bool rerun;    // the emulated layer was run: what is not shown, the format does not explain
};

typedef struct assay_layer_rerun {
  const assay_layer_t* layer;  // NULL: the node by itself
  const assay_node_t* node;    // the one that the layer ends in
  size_t n_in;
  assay_tensor_t* const* in;      // of all nodes of the layer
  assay_tensor_t* const* engine;  // by output
} assay_layer_rerun_t;

// Whether a tensor of floats, canonical or packed, holds NaN or infinities.
bool assay_holds_unfinite(const assay_tensor_t* t);

// What explains the engine's NaN and infinities where they are not truth's. emulated: the engine
// promises what the emulated layer gives, which is run again (engines that are not ours do not).
// *out is empty where nothing has to be explained. Errors: NO_MEMORY, those of a rerun.
assay_status_t assay_special_find(assay_locals_t* l, const assay_layer_rerun_t* run,
                                  const assay_local_t* local, const assay_rounding_t* rounding,
                                  bool emulated, assay_special_t* out) ASSAY_MUST_USE;
void assay_special_deinit(assay_special_t* s);

#endif  // ASSAY_ACCOUNT_SPECIAL_H_
