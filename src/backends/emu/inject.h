// Faults injected in the emulated engine, for tests: one node computes something else than the
// model says. What is wrong, and where, is known then, and whoever looks for it can be held to it.
//
// A fault is text, "NODE:KIND=ARGUMENTS" (the last colon counts). I is an input's number:
//   set=NAME=VALUE    an attribute has another value (lists: numbers with commas)
//   op=TYPE           another operator's kernel
//   swap=I,K          two inputs exchanged
//   scale=I,FACTOR    an input times a factor
//   add=I,K,D         D added to element K of an input; K = -1: to all
//   stale=I,K         row K of an input is the row before it (of row 0: the last)
//   constant=I,NAME   an input is another constant of the model, of the same size
//   transpose=I       an input's elements are read in the other order (last dimension slowest)
//   enter=FORMAT      the inputs are rounded to a format
//   terms=K           the last K terms of every sum are left out (products, reductions, pooling)
//   accumulate=FORMAT sums are kept in a format
//   round=zero        results are rounded towards zero
//   store=FORMAT      results are rounded to a format once more
//   flush=1           results below the layer's normal range become 0
//   tail=K            the last K elements of the output are 0
//   shift=K           the output is moved by K elements
//   put=K,VALUE       element K of the output is VALUE: a number, nan or inf
#ifndef ASSAY_BACKENDS_EMU_INJECT_H_
#define ASSAY_BACKENDS_EMU_INJECT_H_

#include "exec/backend.h"

typedef struct assay_injection assay_injection_t;

// Errors: NOT_FOUND no such node or constant; INVALID_ARGUMENT the text is not such a fault.
assay_status_t assay_injection_parse(const char* text, const assay_layers_t* layers,
                                     assay_injection_t** out) ASSAY_MUST_USE;
void assay_injection_destroy(assay_injection_t* p);  // NULL is allowed

// Whether the faulty node is one of the layer's. A layer on integers computes none of its nodes by
// itself, so one with a fault is run node by node. p may be NULL.
bool assay_injection_is_in(const assay_injection_t* p, const assay_layer_t* layer);

// What the fault does to a node's inputs, its evaluation and its outputs before they are stored;
// nothing to other nodes. p may be NULL. Inputs and outputs are replaced as hooks of a machine do.
// Errors: INVALID_ARGUMENT the node has no such input, or the fault does not fit it.
assay_status_t assay_injection_inputs(const assay_injection_t* p, const assay_node_t* node,
                                      size_t n_in, assay_tensor_t** in) ASSAY_MUST_USE;
void assay_injection_evaluation(const assay_injection_t* p, const assay_node_t* node,
                                assay_eval_t* c);
assay_status_t assay_injection_outputs(const assay_injection_t* p, const assay_node_t* node,
                                       const assay_layer_t* layer, size_t n_out,
                                       assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_BACKENDS_EMU_INJECT_H_
