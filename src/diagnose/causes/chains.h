// Chains as proposals write them: new nodes after a node, or before one of its inputs.
#ifndef ASSAY_DIAGNOSE_CAUSES_CHAINS_H_
#define ASSAY_DIAGNOSE_CAUSES_CHAINS_H_

#include "diagnose/repair.h"

#define ASSAY_START \
  { ASSAY_OPERAND_START, 0, 0, NULL }
#define ASSAY_STEP(i) \
  { ASSAY_OPERAND_STEP, i, 0, NULL }
#define ASSAY_INPUT(i) \
  { ASSAY_OPERAND_INPUT, i, 0, NULL }
#define ASSAY_NUMBER(x) \
  { ASSAY_OPERAND_NUMBER, 0, x, NULL }
#define ASSAY_VALUE(v) \
  { ASSAY_OPERAND_VALUE, 0, 0, v }

// Steps as a row of a table: the first without an operator ends them.
typedef struct assay_chain {
  const char* what;
  assay_chain_step_t steps[ASSAY_CHAIN_STEPS];
} assay_chain_t;

// The edit that lets output 0 of a node go through a chain.
static inline void assay_chain_edit(assay_repair_edit_t* e, const assay_chain_step_t* steps,
                                    const assay_tensor_t* start) {
  e->kind = ASSAY_EDIT_CHAIN;
  e->type = start ? start->type : ASSAY_TYPE_FLOAT;
  e->n_chain = 0;
  while (e->n_chain < ASSAY_CHAIN_STEPS && (steps[e->n_chain].op_type || steps[e->n_chain].like)) {
    e->chain[e->n_chain] = steps[e->n_chain];
    e->n_chain++;
  }
}

#endif  // ASSAY_DIAGNOSE_CAUSES_CHAINS_H_
