// What stands around a node: who reads what it gives, which values it could read instead, and its
// twins, nodes that have the same part in other blocks of the network.
#ifndef ASSAY_DIAGNOSE_CAUSES_SURROUNDINGS_H_
#define ASSAY_DIAGNOSE_CAUSES_SURROUNDINGS_H_

#include "diagnose/repair.h"
#include "eval/evaluator.h"

typedef struct assay_surroundings {
  const assay_model_t* model;
  assay_evaluator_t* evaluator;  // full slots
  const bool* hidden;            // by value id: its slot holds golden; NULL: none does
  size_t* order;                 // by node id: its position in the graph
  size_t* first;                 // by value id: of its readers; one more than there are values
  const assay_node_t** readers;
  uint64_t *role, *place;  // by node id: of twins the same; place: whatever their operator is
  bool* after;             // by node id: scratch of assay_around_may_read
  const assay_node_t* after_of;
} assay_surroundings_t;

assay_status_t assay_surroundings_init(const assay_model_t* model, assay_evaluator_t* evaluator,
                                       const bool* hidden,
                                       assay_surroundings_t* out) ASSAY_MUST_USE;
void assay_surroundings_deinit(assay_surroundings_t* a);

size_t assay_around_readers(const assay_surroundings_t* a, const assay_value_t* v,
                            const assay_node_t* const** out);
// Truth of a value; NULL: not known, or no tensor.
assay_tensor_t* assay_around_tensor(const assay_surroundings_t* a, const assay_value_t* v);
// Whether a node may read a value: it is not made from what the node gives.
bool assay_around_may_read(assay_surroundings_t* a, const assay_node_t* n, const assay_value_t* v);
// What is the same in every run: an initializer, or what a Constant node gives.
bool assay_around_is_constant(const assay_value_t* v);
// The only input of a node that is no constant; n_inputs: there is none, or there are several.
size_t assay_around_data_input(const assay_node_t* n);
// Whether two nodes of one operator have the same attributes.
bool assay_around_same_attrs(const assay_node_t* a, const assay_node_t* b);

#endif  // ASSAY_DIAGNOSE_CAUSES_SURROUNDINGS_H_
