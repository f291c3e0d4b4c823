// Golden that was not computed in float32: what to do about it.
#include "diagnose/arithmetic.h"

#include "report/report.h"

static const char* advice_of(const assay_arithmetic_t* a) {
  if (a->format == ASSAY_FORMAT_TF32)
    return "torch.backends.cudnn.allow_tf32 = False, torch.backends.cuda.matmul.allow_tf32 = False";
  if (a->scope == ASSAY_ARITHMETIC_OPERANDS)
    return "jax.config.update('jax_default_matmul_precision', 'highest') or the like";
  return "run the network in float32, without autocast";
}

void assay_report_arithmetic_lines(const assay_arithmetic_t* a, assay_str_t* out) {
  if (a->format == ASSAY_FORMAT_NONE) return;
  assay_str_printf(out,
                   "          golden seems to have been computed %s: differences up to the error "
                   "of that\n          arithmetic say nothing against the export; for more exact "
                   "golden: %s\n",
                   assay_arithmetic_text(a), advice_of(a));
}
