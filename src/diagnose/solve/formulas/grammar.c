// The formulas of two or three values that are gone through.
#include "diagnose/solve/formulas/grammar.h"

#include <math.h>

#include "base/functions.h"

static double same(double x) { return x; }
static double relu(double x) { return fmax(x, 0); }
static double sigmoid(double x) { return 1 / (1 + assay_exp(-x)); }
static double square(double x) { return x * x; }
static double silu(double x) { return x * sigmoid(x); }
static double softplus(double x) { return fmax(x, 0) + assay_log1p(assay_exp(-fabs(x))); }
static double gelu(double x) { return 0.5 * x * (1 + assay_erf(x * 0.70710678118654752)); }
static double reciprocal(double x) { return 1 / x; }
static double sign(double x) { return (x > 0) - (x < 0); }

const assay_grammar_inner_t assay_grammar_inner[ASSAY_GRAMMAR_INNER] = {
    {"", "", same},
    {" Sigmoid", "sigmoid", sigmoid},
    {" Tanh", "tanh", assay_tanh},
    {" Relu", "relu", relu},
    {" Exp", "exp", assay_exp},
    {" dup *", "square", square},
    {" Softplus", "softplus", softplus},
    {" Sqrt", "sqrt", sqrt},
    {" Log", "log", assay_log},
    {" Abs", "abs", fabs},
    {" dup Sigmoid *", "silu", silu},
    {" dup 0.70710678118654752 * Erf 1 + * 0.5 *", "gelu", gelu},
    {" Sin", "sin", assay_sin},
    {" Cos", "cos", assay_cos},
    {" Reciprocal", "1/", reciprocal},
    {" Sign", "sign", sign},
};

static double logit(double y) { return assay_log(y / (1 - y)); }
static double exp_less(double y) { return assay_log(assay_expm1(y)); }

// What stands outside, and what it was made of.
const assay_grammar_outer_t assay_grammar_outer[ASSAY_GRAMMAR_OUTER] = {
    {"", "", same},
    {" Sqrt", "sqrt", square},
    {" Sigmoid", "sigmoid", logit},
    {" Tanh", "tanh", assay_atanh},
    {" Exp", "exp", assay_log},
    {" Log", "log", assay_exp},
    {" Reciprocal", "1/", reciprocal},
    {" Softplus", "softplus", exp_less}};

// Of g(a) and h(b); a and b as they are decide where one of the two is chosen. % is g(a), & is
// h(b).
const assay_grammar_operator_t assay_grammar_operators[ASSAY_GRAMMAR_OPERATORS] = {
    {"% & +", "% + &", true},
    {"% & -", "% - &", false},
    {"% & *", "% * &", true},
    {"% & /", "% / &", false},
    {"% & max", "the larger of % and &", true},
    {"% & min", "the smaller of % and &", true},
    {"x 0 > % & where", "% where x > 0, else &", false},
    {"v 0 > % & where", "% where v > 0, else &", false},
    {"x v > % & where", "% where x > v, else &", false}};

double assay_grammar_combine(size_t op, double a, double b, double ga, double hb) {
  switch (op) {
    case 0:
      return ga + hb;
    case 1:
      return ga - hb;
    case 2:
      return ga * hb;
    case 3:
      return ga / hb;
    case 4:
      return fmax(ga, hb);
    case 5:
      return fmin(ga, hb);
    case 6:
      return a > 0 ? ga : hb;
    case 7:
      return b > 0 ? ga : hb;
    default:
      return a > b ? ga : hb;
  }
}

// Of three values.
const assay_grammar_three_t assay_grammar_three[ASSAY_GRAMMAR_THREE] = {
    {"x v * u +", "x v + u"},     {"x v + u *", "(x + v) u"}, {"x v - u *", "(x - v) u"},
    {"x v - u /", "(x - v) / u"}, {"x v * u *", "x v u"},     {"v x v - u * +", "u x + (1 - u) v"}};

double assay_grammar_combine_three(size_t op, double a, double b, double c) {
  switch (op) {
    case 0:
      return a * b + c;
    case 1:
      return (a + b) * c;
    case 2:
      return (a - b) * c;
    case 3:
      return (a - b) / c;
    case 4:
      return a * b * c;
    default:
      return b + (a - b) * c;
  }
}
