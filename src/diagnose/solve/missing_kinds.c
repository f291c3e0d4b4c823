// The kinds of what may be missing at a place, in the order in which they are asked.
#include "diagnose/solve/missing.h"

typedef assay_status_t kind_t(assay_missing_search_t*, const assay_missing_place_t*);

static assay_status_t in_turn(assay_missing_search_t* s, const assay_missing_place_t* p,
                              kind_t* const* kinds, size_t n) {
  for (size_t i = 0; i < n && !assay_missing_is_over(s); i++) ASSAY_TRY(kinds[i](s, p));
  return NULL;
}

assay_status_t assay_missing_kinds(assay_missing_search_t* s, const assay_missing_place_t* p) {
  // A normalization over an image with its numbers is a factor and a summand for each channel, too:
  // those come first.
  static kind_t* const kinds[] = {
      assay_missing_bounds,   assay_missing_activations, assay_missing_values,
      assay_missing_lengths,  assay_missing_moves,       assay_missing_pieces,
      assay_missing_arranged, assay_missing_pooled,      assay_missing_functions,
      assay_missing_branches, assay_missing_grid,        assay_missing_channels,
      assay_missing_fits,     assay_missing_blends,      assay_missing_masked,
      assay_missing_along,    assay_missing_norms,       assay_missing_likes};
  enum { SIMPLE = 3 };  // of arrays alone
  return in_turn(s, p, kinds, s->arrays_only ? SIMPLE : sizeof kinds / sizeof *kinds);
}

assay_status_t assay_missing_formulas(assay_missing_search_t* s, const assay_missing_place_t* p) {
  static kind_t* const kinds[] = {assay_missing_pairs, assay_missing_operators};
  return s->arrays_only ? NULL : in_turn(s, p, kinds, sizeof kinds / sizeof *kinds);
}
