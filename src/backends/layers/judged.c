// Weights judged for tactics that an accuracy gate lets serve a layer.
#include "backends/layers/judged.h"

#include <string.h>

#include "base/alloc.h"

typedef struct judging {
  const assay_operand_t* w;
  assay_judge_t* judge;
  const void* user;
} judging_t;

static assay_status_t judge(void* user, void* to) {
  const judging_t* j = user;
  const float* w = NULL;
  float* made = NULL;
  ASSAY_TRY(assay_operand_view(j->w, &w, &made));
  assay_status_t st = j->judge(j->user, w, to);
  assay_free(made);
  return st;
}

assay_status_t assay_judged(const assay_operand_t* w, assay_str_t* take_key, assay_judge_t* by,
                            const void* user, assay_sum_account_t* out) {
  const judging_t j = {w, by, user};
  const void* kept = NULL;
  ASSAY_TRY(assay_weights_get_by(w->store, take_key, sizeof *out, judge, &j, &kept));
  memcpy(out, kept, sizeof *out);
  return NULL;
}

assay_accuracy_gate_t assay_judged_gate(const char* tactic, assay_fp32_t asks,
                                        const assay_sum_account_t* a) {
  return (assay_accuracy_gate_t){.tactic = tactic,
                                 .asks = asks,
                                 .own = a->own,
                                 .plain = a->plain,
                                 .six_sigma = a->six_sigma,
                                 .bound = a->bound};
}
