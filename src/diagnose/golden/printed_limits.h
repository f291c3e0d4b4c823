// How far printed golden leaves truth open, number by number: half a unit of the last digit of what
// golden gives a node, through the node (ops/bound.h), and half a unit of what golden has for the
// result.
#ifndef ASSAY_DIAGNOSE_GOLDEN_PRINTED_LIMITS_H_
#define ASSAY_DIAGNOSE_GOLDEN_PRINTED_LIMITS_H_

#include "diagnose/golden/walk.h"

// Whether any value's golden was stored with few digits.
bool assay_golden_any_printed(const assay_golden_walk_t* w);

// After assay_golden_walk_fill: takes out the faults that are none within these limits: what is
// left of a difference behind them is no more than rounding explains. Where a fault stays, they
// count as explained.
assay_status_t assay_golden_forgive_printed(assay_golden_walk_t* w) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_GOLDEN_PRINTED_LIMITS_H_
