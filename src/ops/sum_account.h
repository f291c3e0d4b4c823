// What an error model says of sums of products by an algorithm, with some weights.
#ifndef ASSAY_OPS_SUM_ACCOUNT_H_
#define ASSAY_OPS_SUM_ACCOUNT_H_

// Own errors are those of elements of inputs that are independent, of mean square 1, and have mean
// zero or one sign (half normal), whichever is worse for the algorithm; in units of u, the unit
// roundoff of float32.
typedef struct assay_sum_account {
  double own, plain;  // root mean square: the algorithm's, and that of plain sums in one chain
  // Six standard deviations of the algorithm's own error in the worst element of the output, and
  // the guaranteed bound of plain sums there, n sum|a||b|.
  double six_sigma, bound;
  // The magnitudes of inputs, besides 0, for which the algorithm keeps what plain sums keep:
  // nothing overflows on the way that does not in the end, and what is lost to subnormals is small
  // beside what sums round: [min, max), powers of 2. max 0: none are.
  double min, max;
} assay_sum_account_t;

#endif  // ASSAY_OPS_SUM_ACCOUNT_H_
