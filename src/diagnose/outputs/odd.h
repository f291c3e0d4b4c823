// Constants that look damaged by themselves: where no repair restores golden, their nodes are
// named.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_ODD_H_
#define ASSAY_DIAGNOSE_OUTPUTS_ODD_H_

#include "diagnose/search.h"

enum { ASSAY_ODD_NODES = 2 };

typedef struct assay_odd {
  const assay_node_t* node;
  const assay_value_t* value;
  const char* text;
} assay_odd_t;

// Nodes whose constants no training leaves so, and which a target that differs is made from; the
// oddest first. At most ASSAY_ODD_NODES; none where as many others look the same.
assay_status_t assay_search_odd(const assay_search_t* s, assay_odd_t* out,
                                size_t* out_n) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_ODD_H_
