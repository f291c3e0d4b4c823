// What a repair will do to the targets, predicted to first order from what it does to its own node.
//
// With r = truth - golden over all targets (each element over its target's size), a repair that
// changes a value by d moves the targets by about J d, and the right one has J d = -r. Products
// with J d cost one pass backwards: <p, J d> = <J^T p, d>. The probes p are r itself, which tells
// how much of r the repair takes away, and vectors of random signs at right angles to r, which tell
// how much it adds elsewhere: the mean of <p, J d>^2 over random signs p is |J d|^2 (M. F.
// Hutchinson, 1989).
//
// The pass goes node by node, last first, and keeps what nodes before still need and, where there
// is room, the values of the next ASSAY_PREDICT_WINDOW nodes after: the caller asks about a node's
// repairs when the pass has come to it.
#ifndef ASSAY_DIAGNOSE_SEARCH_PREDICT_H_
#define ASSAY_DIAGNOSE_SEARCH_PREDICT_H_

#include "diagnose/search.h"

enum { ASSAY_PROBES = 8, ASSAY_PREDICT_WINDOW = 24 };

typedef struct assay_predict assay_predict_t;

// What the targets are predicted to do: products of J d with each probe.
typedef struct assay_forecast {
  bool known;
  double along;                     // <r, J d> / <r, r>: -1 takes r away
  double across[ASSAY_PROBES - 1];  // the same with random signs at right angles to r
} assay_forecast_t;

// *out NULL: truth cannot be compared with golden (other shapes, no floats).
assay_status_t assay_predict_create(const assay_search_t* s, assay_predict_t** out) ASSAY_MUST_USE;
void assay_predict_destroy(assay_predict_t* p);  // NULL is allowed

// Adds to a forecast what it does that a value is `now` instead of `was`. A value of the node that
// the pass has come to; others have no forecast. A tensor that can be broadcast to the value's
// shape counts as if it were: that is what the pointwise nodes after a reduction make of it.
// Several threads may ask.
void assay_predict_add(const assay_predict_t* p, const assay_value_t* v, const assay_tensor_t* now,
                       const assay_tensor_t* was, assay_forecast_t* forecast);
// Derivatives of the probes by input `input` of node `position`, to which the pass has come: to be
// freed; *out NULL: not known.
assay_status_t assay_predict_constant(const assay_predict_t* p, size_t position, size_t input,
                                      double** out) ASSAY_MUST_USE;
// Adds what it does that an input is `now` instead of `was`, by the derivatives by it.
void assay_predict_products(const assay_predict_t* p, const double* derivatives,
                            const assay_tensor_t* now, const assay_tensor_t* was,
                            assay_forecast_t* forecast);
// Derivatives of the probes by a value that the pass has come to: ASSAY_PROBES blocks of its
// elements, borrowed; NULL: not known. Of them the first is of r, the others are of random signs.
const double* assay_predict_derivatives(const assay_predict_t* p, const assay_value_t* v);
// <probe, r>.
double assay_predict_overlap(const assay_predict_t* p, int probe);
// Goes on over node `position` to the one before it.
assay_status_t assay_predict_pass(assay_predict_t* p, size_t position) ASSAY_MUST_USE;

// What is left of |r|, over |r|: with the whole change, and with the part of it that leaves least.
// 1: nothing gained. NAN: not known.
double assay_forecast_remains(const assay_forecast_t* f);
double assay_forecast_best(const assay_forecast_t* f);

#endif  // ASSAY_DIAGNOSE_SEARCH_PREDICT_H_
