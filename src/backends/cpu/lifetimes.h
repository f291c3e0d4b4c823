// Which layers read and make which values of the top graph.
#ifndef ASSAY_BACKENDS_CPU_LIFETIMES_H_
#define ASSAY_BACKENDS_CPU_LIFETIMES_H_

#include "backends/backend.h"

typedef struct cpu_value_list {
  const assay_value_t** at;
  size_t n, cap;
} cpu_value_list_t;

typedef struct cpu_lifetimes {
  size_t n_layers;
  cpu_value_list_t* reads;  // by layer: values that its nodes and their bodies read, each once
  cpu_value_list_t* ends;   // by layer: values that nobody needs behind it; never graph outputs
  int* last;                // by value id: the last layer that reads or makes it
} cpu_lifetimes_t;

assay_status_t cpu_lifetimes_find(const assay_layers_t* layers, cpu_lifetimes_t* out);
void cpu_lifetimes_deinit(cpu_lifetimes_t* l);

#endif  // ASSAY_BACKENDS_CPU_LIFETIMES_H_
