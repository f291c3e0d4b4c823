// Factors of the channels that a product of sums reads, and of those that it makes.
#ifndef ASSAY_DIAGNOSE_OUTPUTS_SIDES_H_
#define ASSAY_DIAGNOSE_OUTPUTS_SIDES_H_

#include "diagnose/outputs/sketch.h"
#include "diagnose/search_predict.h"

// Which inputs of Conv, ConvTranspose, MatMul and Gemm are what.
typedef struct assay_sides {
  size_t data, weight;
} assay_sides_t;

bool assay_sides_of(const assay_node_t* n, assay_sides_t* out);
// The weight's axes that hold the channels that it reads, and those that it makes. False: it has
// others.
bool assay_sides_weight_axes(const assay_node_t* n, const assay_sides_t* s, const assay_tensor_t* w,
                             int* out_read, int* out_made);

// Lists the factors of what a node reads, and a scale that stands on the wrong side of its weight.
assay_status_t assay_sides_list(assay_site_sketch_t* k, size_t position,
                                int64_t elements) ASSAY_MUST_USE;
// Their equations, of probes [from, ASSAY_PROBES).
assay_status_t assay_sides_equations(assay_site_sketch_t* k, assay_site_t* site,
                                     const assay_search_t* s, const assay_predict_t* p,
                                     int from) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_OUTPUTS_SIDES_H_
