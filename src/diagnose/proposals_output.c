// Outputs of a node that were exchanged: halves of a Split, the states of a recurrent layer.
#include <stdio.h>

#include "diagnose/proposals.h"

static bool are_alike(const assay_suspect_t* s, size_t a, size_t b) {
  const assay_tensor_t *x = s->out[a], *y = s->out[b];
  return s->node->outputs[a] && s->node->outputs[b] && x && y && x->kind == ASSAY_KIND_TENSOR &&
         assay_tensor_alike(x, y) && x->type == y->type;
}

assay_status_t assay_propose_outputs(const assay_suspect_t* s, const char* cause,
                                     const assay_trial_t* t, bool* stop) {
  for (size_t a = 0; a < s->n_out && !*stop; a++)
    for (size_t b = a + 1; b < s->n_out && !*stop; b++) {
      if (!are_alike(s, a, b)) continue;
      assay_repair_t r = assay_repair_of(s, cause, ASSAY_EDIT_OUTPUTS);
      r.edits[0].input = a;
      r.edits[0].other = b;
      snprintf(r.text, sizeof r.text, "outputs '%.100s' and '%.100s' exchanged",
               s->node->outputs[a]->name, s->node->outputs[b]->name);
      ASSAY_TRY(assay_offer(t, &r, stop));
    }
  return NULL;
}
