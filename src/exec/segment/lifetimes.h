// Which layers read and make which values of the top graph.
#ifndef ASSAY_EXEC_SEGMENT_LIFETIMES_H_
#define ASSAY_EXEC_SEGMENT_LIFETIMES_H_

#include "exec/backend.h"

typedef struct assay_value_list {
  const assay_value_t** at;
  size_t n, cap;
} assay_value_list_t;

typedef struct assay_lifetimes {
  size_t n_layers;
  assay_value_list_t* reads;  // by layer: values that its nodes and their bodies read, each once
  assay_value_list_t* ends;   // by layer: values that nobody needs after it; never graph outputs
  int* last;                  // by value id: the last layer that reads or makes it
} assay_lifetimes_t;

assay_status_t assay_lifetimes_find(const assay_layers_t* layers, assay_lifetimes_t* out);
void assay_lifetimes_deinit(assay_lifetimes_t* l);

#endif  // ASSAY_EXEC_SEGMENT_LIFETIMES_H_
