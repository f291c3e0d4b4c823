// Accuracy gates: what lets a tactic of other numerics than plain fused multiply-adds serve fp32
// (docs/adr/0012-fp32-settings.md). A tactic judges a layer by its weights and an error model; the
// setting of the plan says which tactics may serve at all, and under which condition.
#ifndef ASSAY_EXEC_CHOICE_ACCURACY_GATE_H_
#define ASSAY_EXEC_CHOICE_ACCURACY_GATE_H_

#include <assay/types.h>

#include "base/str.h"

// What a tactic asks before it takes a layer. Own errors by its error model, in units of the unit
// roundoff, for inputs of mean square 1.
typedef struct assay_accuracy_gate {
  const char* tactic;
  assay_fp32_t asks;        // TIGHT, BOUND: from which setting on it may serve
  double own, plain;        // root mean square: its own error, and that of plain sums
  double six_sigma, bound;  // six standard deviations, and the bound of plain sums, in the worst
                            // channel
  bool fits;                // the inputs' range leaves it something to do
  bool pays;                // it is faster, by a model of its work
} assay_accuracy_gate_t;

// All that were asked for a layer.
enum { ASSAY_MAX_ACCURACY_GATES = 4 };
typedef struct assay_accuracy_gates {
  assay_accuracy_gate_t at[ASSAY_MAX_ACCURACY_GATES];
  int n;
} assay_accuracy_gates_t;

const char* assay_fp32_name(assay_fp32_t setting);
// Errors: INVALID_ARGUMENT.
assay_status_t assay_fp32_parse(const char* name, assay_fp32_t* out) ASSAY_MUST_USE;

// Whether the condition under which it may serve holds. TIGHT: own <= 2 plain; BOUND: six_sigma <=
// bound.
bool assay_accuracy_gate_holds(const assay_accuracy_gate_t* l);
// Whether a setting offers tactics that ask for this one.
bool assay_accuracy_gate_offers(assay_fp32_t setting, assay_fp32_t asks);
// Whether it may serve in a setting.
bool assay_accuracy_gate_allows(const assay_accuracy_gate_t* l, assay_fp32_t setting);
// "own error 0.52 of plain's (at most 2): holds"; one line, without its end.
void assay_accuracy_gate_print(const assay_accuracy_gate_t* l, assay_str_t* out);

#endif  // ASSAY_EXEC_CHOICE_ACCURACY_GATE_H_
