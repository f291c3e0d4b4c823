// Constants that look as if they had come to harm, by themselves and beside others of the model:
// where no repair restores golden, whose numbers are gone cannot be found again, but told.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_ODDITIES_H_
#define ASSAY_DIAGNOSE_OUTPUTS_ODDITIES_H_

#include "diagnose/search.h"

enum { ASSAY_ODDITIES = 4 };

typedef struct assay_oddity {
  const assay_node_t* node;
  const char* what;  // "a constant of few digits" ...
  double score;      // near 1: hardly ever seen of a healthy constant
} assay_oddity_t;

// The oddest, at most ASSAY_ODDITIES, one a node, the oddest first.
assay_status_t assay_search_oddities(const assay_search_t* s, assay_oddity_t* out,
                                     size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_ODDITIES_H_
