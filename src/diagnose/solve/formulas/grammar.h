// Formulas of two values, f(g(a) op h(b)), and of three: what they are made of.
#ifndef ASSAY_DIAGNOSE_SOLVE_GRAMMAR_H_
#define ASSAY_DIAGNOSE_SOLVE_GRAMMAR_H_

#include <stdbool.h>
#include <stddef.h>

enum {
  ASSAY_GRAMMAR_INNER = 16,
  ASSAY_GRAMMAR_OUTER = 8,
  ASSAY_GRAMMAR_OPERATORS = 9,
  ASSAY_GRAMMAR_CHOICES = 4,  // operators from here on choose one of the two
  ASSAY_GRAMMAR_THREE = 6
};

typedef struct assay_grammar_inner {
  const char *program, *says;  // of what is on top of the stack (diagnose/formula.h)
  double (*of)(double x);
} assay_grammar_inner_t;

typedef struct assay_grammar_outer {
  const char *program, *says;
  double (*inverse)(double y);
} assay_grammar_outer_t;

// % is g(a), & is h(b); a is x and b is v.
typedef struct assay_grammar_operator {
  const char *program, *says;
  bool turns;  // the other way round it is the same
} assay_grammar_operator_t;

typedef struct assay_grammar_three {
  const char *program, *says;
} assay_grammar_three_t;

// The first of each is none, the likelier ones come first.
extern const assay_grammar_inner_t assay_grammar_inner[ASSAY_GRAMMAR_INNER];
extern const assay_grammar_outer_t assay_grammar_outer[ASSAY_GRAMMAR_OUTER];
extern const assay_grammar_operator_t assay_grammar_operators[ASSAY_GRAMMAR_OPERATORS];
extern const assay_grammar_three_t assay_grammar_three[ASSAY_GRAMMAR_THREE];

double assay_grammar_combine(size_t op, double a, double b, double ga, double hb);
double assay_grammar_combine_three(size_t op, double a, double b, double c);

#endif  // ASSAY_DIAGNOSE_SOLVE_GRAMMAR_H_
