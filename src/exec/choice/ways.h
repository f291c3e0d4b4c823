// The ways in which a layer can be run, in the order in which they are tried: tactics by rank, and
// of one with variants these, the bits of the first that it lists before others. Those that give
// the same bits as the first that takes the layer compete by time; of these the ones that are
// predicted to be fastest are timed (assay_ways_order), since not all are. No prediction has a say
// in which bits these are.
#ifndef ASSAY_EXEC_CHOICE_WAYS_H_
#define ASSAY_EXEC_CHOICE_WAYS_H_

#include "exec/choice/choice.h"

// A tactic, or one of its variants.
typedef struct assay_way {
  const assay_tactic_t* tactic;
  const char *name, *numerics;  // as assay_kernel_t's; the name lives as long as the choice
  double predicted;             // microseconds, by a tactic with variants; NAN: none
  assay_variant_t variant;      // name "": the tactic has none
} assay_way_t;

typedef struct assay_ways {
  assay_way_t* at;
  size_t n, cap;
} assay_ways_t;

// Those of the tactics that the choice's sources allow. Where bits matter and nothing is timed now,
// the ways of a library (assay_tactic_t.verify) are those that the timings know of the layer, so
// that it is not asked, nor opened, before one is made. signature: of the layer; NULL: without
// such.
assay_status_t assay_ways_list(assay_choice_t* c, const assay_sized_layer_t* l,
                               const char* signature, assay_ways_t* out) ASSAY_MUST_USE;
void assay_ways_deinit(assay_ways_t* w);

// Of the ways from a place on, those of the same bits as these numerics by their predictions, in
// the places that they have: several tactics' variants are timed before the slow ones of the first
// tactic. Call it behind the first that takes the layer, which stays where it is: which bits a
// layer has goes by the table alone.
void assay_ways_order(const assay_choice_t* c, const char* numerics, size_t from, assay_ways_t* w);

// Whether time may decide between kernels of these numerics (assay_tactic_t): any two in a choice
// where bits do not matter.
bool assay_ways_compete(const assay_choice_t* c, const char* a, const char* b);

// Whether the choice's sources allow a tactic.
bool assay_ways_allow(const assay_choice_t* c, const assay_tactic_t* tactic);

// Whether a tactic's kernels may be taken without a look at their bits.
bool assay_ways_trust(const assay_choice_t* c, const assay_tactic_t* tactic);

// The kernel of a way; *out NULL: the layer is none for it. limit: of its scratch, past which there
// is none; 0: any.
assay_status_t assay_way_make(const assay_way_t* w, const assay_sized_layer_t* l, uint64_t limit,
                              assay_kernel_t** out) ASSAY_MUST_USE;

// The way that is forced on a layer ("TACTIC/VARIANT LAYER", or "TACTIC LAYER" for the likeliest of
// its variants), whatever the sources; out->tactic NULL: none is, or there is none of that name.
assay_status_t assay_way_forced(assay_choice_t* c, const assay_sized_layer_t* l,
                                assay_way_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_CHOICE_WAYS_H_
