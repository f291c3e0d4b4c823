// What a node is told, over all of its neighbourhood: integers that are counted otherwise, and
// operators that read the same.
#include <stdio.h>
#include <string.h>

#include "diagnose/causes/surroundings.h"
#include "diagnose/proposals.h"

// ---- integers ----------------------------------------------------------------------------------

// Not types, nor what says how a tensor is cut up.
static bool is_count(const assay_attr_spec_t* a) {
  static const char* const others[] = {"to", "dtype", "group", "num_outputs", "output_dtype"};
  if (a->type != ASSAY_ATTR_INT || strstr(a->name, "axis")) return false;
  for (size_t k = 0; k < sizeof others / sizeof *others; k++)
    if (strcmp(a->name, others[k]) == 0) return false;
  return true;
}

// A radius for a size, a size for a radius, a half, a double, one more or less, and small numbers.
assay_status_t assay_propose_any_integer(const assay_suspect_t* s, const char* cause,
                                         const assay_trial_t* t, bool* stop) {
  const assay_schema_t* schema = s->node->schema;
  for (int i = 0; schema && i < schema->n_attrs && !*stop; i++) {
    const assay_attr_spec_t* a = &schema->attrs[i];
    if (!is_count(a)) continue;
    const int64_t now = assay_attr_i64(s->node, a->name, a->has_default ? a->i : 0);
    if (now < 0 || now > INT32_MAX) continue;
    const int64_t near[] = {2 * now + 1, 2 * now, now + 1, now - 1, now / 2, (now - 1) / 2,
                            2 * now - 1, 0,       1,       2,       3,       4,
                            5,           6,       7,       8,       9,       16};
    for (size_t k = 0; k < sizeof near / sizeof *near && !*stop; k++) {
      bool known = near[k] == now || near[k] < 0;
      for (size_t j = 0; j < k; j++) known |= near[j] == near[k];
      if (known) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_ATTR);
      r.edits[0].attr = (assay_attr_t){
          .name = a->name, .type = a->type, .n = 1, .doc = "", .ref = "", .u.i = near[k]};
      snprintf(r.text, sizeof r.text, "%s = %lld instead of %lld", a->name, (long long)near[k],
               (long long)now);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  }
  return NULL;
}

// ---- operators ---------------------------------------------------------------------------------

// Families of operators that read the same.
static const char* const families[][22] = {
    {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
     "ReduceLogSumExp", "ReduceLogSum", "ReduceProd"},
    {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod", "Mean"},
    {"Relu",     "Sigmoid",  "Tanh", "Exp",  "Log",   "Sqrt",    "Reciprocal", "Abs",
     "Neg",      "Erf",      "Sin",  "Cos",  "Floor", "Ceil",    "Round",      "Sign",
     "Softplus", "Softsign", "Elu",  "Selu", "Sinh",  "Identity"},
    {"MaxPool", "AveragePool", "LpPool"},
    {"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"},
    {"ArgMax", "ArgMin"},
    {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"},
    {"And", "Or", "Xor"},
    {"Softmax", "LogSoftmax", "Hardmax"},
    {"HardSigmoid", "Sigmoid", "HardSwish", "Tanh"},
};

assay_status_t assay_propose_any_operator(const assay_suspect_t* s, const char* cause,
                                          const assay_trial_t* t, bool* stop) {
  enum { MOST = sizeof families[0] / sizeof families[0][0] };
  const char* now = s->node->op_type;
  if (*s->node->domain) return NULL;
  for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
    bool in = false;
    for (size_t k = 0; k < MOST && families[f][k]; k++) in |= strcmp(families[f][k], now) == 0;
    for (size_t k = 0; in && k < MOST && families[f][k] && !*stop; k++) {
      if (strcmp(families[f][k], now) == 0) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OPERATOR);
      r.edits[0].op_type = families[f][k];
      snprintf(r.text, sizeof r.text, "%s in place of %s", families[f][k], now);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  }
  return NULL;
}
