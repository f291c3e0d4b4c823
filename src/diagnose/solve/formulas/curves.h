// Functions of one value with numbers: c f(a x + b) + d, or c (x + b)^a + d, fitted to pairs.
//
// Of the numbers those before the function are searched for, from several starts, by damped
// Gauss-Newton steps (K. Levenberg, 1944; D. Marquardt, 1963); those after it are at each step what
// least squares gives (G. Golub and V. Pereyra, 1973: variable projection).
#ifndef ASSAY_DIAGNOSE_SOLVE_CURVES_H_
#define ASSAY_DIAGNOSE_SOLVE_CURVES_H_

#include <stdbool.h>
#include <stddef.h>

enum { ASSAY_CURVE_SAMPLES = 64 };

typedef struct assay_curve_kind {
  const char *name, *program;  // program: of diagnose/formula.h, of what is on top of the stack
  double (*of)(double x);
  int parity;                           // 1: f(-x) = f(x); -1: f(-x) = -f(x); 0: neither
  bool about_zero;                      // b stays 0: the program reads the sign of x itself
  double (*power)(double x, double a);  // instead of `of`: a is the exponent, not a factor
} assay_curve_kind_t;

size_t assay_curve_count(void);
const assay_curve_kind_t* assay_curve_get(size_t i);

typedef struct assay_curve_fit {
  double a, b, c, d;
  double left;  // RMS of what it does not explain
} assay_curve_fit_t;

// Which numbers are free: a form; those with the fewest come first.
size_t assay_curve_forms(void);
// n: ASSAY_CURVE_SAMPLES at most. False: too few pairs for the form's numbers, or no fit.
bool assay_curve_fit(const assay_curve_kind_t* f, size_t form, int n, const double* x,
                     const double* want, assay_curve_fit_t* out);

#endif  // ASSAY_DIAGNOSE_SOLVE_CURVES_H_
