// How long a kernel of a tactic takes, predicted from the layer's sizes: what ranks tactics that
// are not timed. For each kind of layer, type and tactic a row of constants,
//   microseconds = fixed + macs * ns_a_mac / 1000 + (bytes read, written, of weights) * ns / 1000
// fitted by non-negative least squares to measured times (bench/cost_model.py), one table for each
// class of machine, so that all builds on machines of a class choose alike
// (docs/adr/0020-costs.md).
#ifndef ASSAY_EXEC_CHOICE_COSTS_H_
#define ASSAY_EXEC_CHOICE_COSTS_H_

#include "exec/kernel.h"

typedef struct assay_cost_row {
  const char *kind, *type, *tactic;
  double fixed;                      // microseconds
  double mac, read, write, weights;  // nanoseconds a multiply-add, and a byte of each
} assay_cost_row_t;

typedef struct assay_costs {
  const assay_cost_row_t* rows;
  size_t n;
} assay_costs_t;

// What a prediction is made of.
typedef struct assay_layer_sizes {
  const char* kind;  // "conv", "conv_1x1", "depthwise", "matmul", "matmul_pair", a pool's operator
  const char* type;  // "fp32", "bf16", "fp16", "int8": of the activations
  // Of one sample, and the same for any batch: a choice by them does not depend on the batch.
  bool by_sample;
  double macs, read, write, weights;
} assay_layer_sizes_t;

// false: no kind that there are predictions for.
bool assay_layer_sizes(const assay_sized_layer_t* l, assay_layer_sizes_t* out);
// Microseconds on one thread; NAN: the table has no row.
double assay_costs_predict(const assay_costs_t* costs, const assay_layer_sizes_t* sizes,
                           const char* tactic);

// Puts the tactics of a layer into the order in which they are tried: that of the table, but where
// one is predicted to take less than FASTER of the time of one before it, it comes first. Only
// tactics of the same bits change places, and others where the choice cannot depend on the batch.
//   any_bits  or where it may
void assay_costs_rank(const assay_costs_t* costs, const assay_sized_layer_t* l, bool any_bits,
                      const assay_tactic_t* const* tactics, size_t n, size_t* out_order);

#endif  // ASSAY_EXEC_CHOICE_COSTS_H_
