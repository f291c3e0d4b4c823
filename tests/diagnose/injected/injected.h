// A pass and a tactic that are wrong on purpose: rows of the tables that this program is compiled
// with.
#ifndef ASSAY_TESTS_DIAGNOSE_INJECTED_H_
#define ASSAY_TESTS_DIAGNOSE_INJECTED_H_

typedef enum injected_pass {
  INJECTED_NO_PASS = 0,
  INJECTED_SWAP,   // x - y becomes y - x
  INJECTED_SCALE,  // x @ w becomes (x * 2^14) @ (w * 2^-14): the same numbers, but not in fp16
} injected_pass_t;
extern injected_pass_t injected_pass;

typedef enum injected_tactic {
  INJECTED_NO_TACTIC = 0,
  INJECTED_ELEMENT,  // products with one wrong element
  INJECTED_NAN,      // products with one NaN
} injected_tactic_t;
extern injected_tactic_t injected_tactic;

#endif  // ASSAY_TESTS_DIAGNOSE_INJECTED_H_
