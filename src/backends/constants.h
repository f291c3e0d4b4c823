// Constants that tactics read when they make a kernel.
#ifndef ASSAY_BACKENDS_CONSTANTS_H_
#define ASSAY_BACKENDS_CONSTANTS_H_

#include "exec/kernel.h"

// The integers of input i of a node, if they are known; out_n -1: the input is left out. False:
// they are not known before the run, are not integers, or more than max.
bool assay_known_ints(const assay_sized_layer_t* l, const assay_node_t* n, size_t i, int max,
                      int64_t* out, int* out_n);
// The same from an attribute; an input of that number is taken where there is one.
bool assay_known_list(const assay_sized_layer_t* l, const assay_node_t* n, const char* attribute,
                      size_t i, int max, int64_t* out, int* out_n);
// Axis `a` of a tensor of that rank, counted from its end if negative; -1: there is none.
int assay_known_axis(int64_t a, int rank);

#endif  // ASSAY_BACKENDS_CONSTANTS_H_
