// A pass and a tactic that are wrong on purpose: rows of the tables that this program is compiled
// with.
#ifndef ASSAY_TESTS_ACCURACY_PLANTED_H_
#define ASSAY_TESTS_ACCURACY_PLANTED_H_

typedef enum planted_pass {
  PLANTED_NO_PASS = 0,
  PLANTED_SWAP,   // x - y becomes y - x
  PLANTED_SCALE,  // x @ w becomes (x * 2^14) @ (w * 2^-14): the same numbers, but not in fp16
} planted_pass_t;
extern planted_pass_t planted_pass;

typedef enum planted_tactic {
  PLANTED_NO_TACTIC = 0,
  PLANTED_ELEMENT,  // products with one wrong element
  PLANTED_NAN,      // products with one NaN
} planted_tactic_t;
extern planted_tactic_t planted_tactic;

#endif  // ASSAY_TESTS_ACCURACY_PLANTED_H_
