// Activations that a framework wrote out in simpler nodes become ONNX's operators: GELU in both
// forms, SiLU, Mish, HardSwish, ELU.
//
// The constants of these functions are not float32 numbers (1 / sqrt(2), 1 / 6): the operator has
// them exactly. Where a form has no value at -infinity (infinity times 0) the operator has its
// limit.
#include "passes/assemble/forms.h"

typedef struct form {
  const char* pattern;  // of x, and maybe $alpha
  const char* op;
  const char* approximate;  // of Gelu; NULL: the default
} form_t;

#define ERF "Add(Erf(Times(x, ~0.70710678118654752)), 1)"
#define HALF_ERF "Add(Times(Erf(Times(x, ~0.70710678118654752)), 0.5), 0.5)"
#define SIXTH "~0.16666666666666667"

static const form_t forms[] = {
    {"Product(x, " ERF ", 0.5)", "Gelu", NULL},
    {"Mul(x, " HALF_ERF ")", "Gelu", NULL},
    {"Product(x, Add(Tanh(GeluCurve(x)), 1), 0.5)", "Gelu", "tanh"},
    {"Mul(x, Add(Times(Tanh(GeluCurve(x)), 0.5), 0.5))", "Gelu", "tanh"},
    {"Mul(x, Sigmoid(Mul?(x, $alpha)))", "Swish", NULL},
    {"Div(x, Add(Exp(Neg(x)), 1))", "Swish", NULL},
    {"Mul(x, Tanh(Softplus(x)))", "Mish", NULL},
    {"Mul(x, Tanh(Log(Add(Exp(x), 1))))", "Mish", NULL},
    {"Mul(x, HardSigmoid[alpha=" SIXTH ", beta=0.5](x))", "HardSwish", NULL},
    {"Product(x, Clip(Add(x, 3), 0, 6), " SIXTH ")", "HardSwish", NULL},
    {"Product(x, Min(Max(Add(x, 3), 0), 6), " SIXTH ")", "HardSwish", NULL},
    {"Product(x, Max(Min(Add(x, 3), 6), 0), " SIXTH ")", "HardSwish", NULL},
    {"Where(Greater(x, 0), x, Mul?(Expm1(x), $alpha))", "Elu", NULL},
    {"Where(Less(x, 0), Mul?(Expm1(x), $alpha), x)", "Elu", NULL},
    {"Add(Relu(x), Mul?(Expm1(Min(x, 0)), $alpha))", "Elu", NULL},
    {"Add(Max(x, 0), Mul?(Expm1(Min(x, 0)), $alpha))", "Elu", NULL},
};

static const char* pattern(size_t form) { return forms[form].pattern; }

// The operator exists for the type, and has the shape and the parameter of the nodes.
static bool accept(const assay_edit_t* e, size_t form, const assay_match_t* m, void* site) {
  const assay_value_t *x = assay_match_value(m, "x"), *y = m->nodes[0]->outputs[0];
  double alpha = 1;
  (void)site;
  assay_match_number(m, "alpha", &alpha);
  return !assay_pass_constant(x) && assay_same_static_shape(x, y) &&
         assay_elem_of(x) == assay_elem_of(y) && assay_edit_allows(e, forms[form].op, x) &&
         (double)(float)alpha == alpha;
}

static assay_status_t rewrite(assay_edit_t* e, size_t form, const assay_match_t* m, void* site) {
  const form_t* f = &forms[form];
  double alpha = 1;
  assay_node_t* n = m->nodes[0];
  assay_value_t* x = assay_match_value(m, "x");
  (void)site;
  assay_match_number(m, "alpha", &alpha);
  ASSAY_TRY(assay_edit_join(e, m, "together they are %s%s%s", f->op, f->approximate ? " by " : "",
                            f->approximate ? f->approximate : ""));
  ASSAY_TRY(assay_edit_become(e, n, f->op, 1, &x));
  if (f->approximate) ASSAY_TRY(assay_edit_attr_s(e, n, "approximate", f->approximate));
  return alpha != 1 ? assay_edit_attr_f(e, n, "alpha", alpha) : NULL;
}

static assay_status_t run(assay_pass_context_t* c) {
  return assay_forms_run(
      c, &(assay_forms_t){sizeof forms / sizeof *forms, pattern, accept, rewrite, NULL});
}

const assay_pass_t assay_pass_activation_assembly = {
    .name = "activation_assembly",
    .until_fixpoint = true,
    .summary = "GELU, SiLU, Mish, HardSwish and ELU in several nodes become one",
    .rounds_constants = true,
    .run = run,
};
