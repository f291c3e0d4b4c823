// Accuracy gates: what lets a tactic of other numerics than plain fused multiply-adds serve fp32
// (docs/adr/0012-fp32-settings.md).
#include "exec/choice/accuracy_gate.h"

#include <string.h>

// By assay_fp32_t.
static const char* const names[] = {"tight", "plain", "bound"};
enum { NAMES = sizeof names / sizeof *names };

const char* assay_fp32_name(assay_fp32_t setting) { return names[setting]; }

assay_status_t assay_fp32_parse(const char* name, assay_fp32_t* out) {
  for (int i = 0; i < NAMES; i++)
    if (strcmp(name, names[i]) == 0) return *out = (assay_fp32_t)i, NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--fp32 is plain, tight or bound, not '%s'", name);
}

bool assay_accuracy_gate_holds(const assay_accuracy_gate_t* l) {
  return l->asks == ASSAY_FP32_TIGHT ? l->own <= 2 * l->plain : l->six_sigma <= l->bound;
}

bool assay_accuracy_gate_offers(assay_fp32_t setting, assay_fp32_t asks) {
  return setting == ASSAY_FP32_BOUND || (setting == ASSAY_FP32_TIGHT && asks == setting);
}

bool assay_accuracy_gate_allows(const assay_accuracy_gate_t* l, assay_fp32_t setting) {
  return assay_accuracy_gate_offers(setting, l->asks) && l->fits && l->pays &&
         assay_accuracy_gate_holds(l);
}

void assay_accuracy_gate_print(const assay_accuracy_gate_t* l, assay_str_t* out) {
  assay_str_printf(out, "%s: own error %.2g of plain's", l->tactic,
                   l->plain > 0 ? l->own / l->plain : 0.0);
  if (l->asks == ASSAY_FP32_TIGHT)
    assay_str_append(out, " (tight asks for at most 2)");
  else
    assay_str_printf(out, ", 6 sigma %.2g of plain's bound (bound asks for at most 1)",
                     l->bound > 0 ? l->six_sigma / l->bound : 0.0);
  assay_str_printf(out, ": %s%s%s", assay_accuracy_gate_holds(l) ? "holds" : "does not hold",
                   l->fits ? "" : "; the weights leave inputs no range",
                   l->pays ? "" : "; plain is faster");
}
