// Layers: the steps of a plan, as backends are given them, and what their formats mean.
#ifndef ASSAY_PLAN_LAYERS_H_
#define ASSAY_PLAN_LAYERS_H_

#include <assay/types.h>

#include "formats/format.h"
#include "ops/op.h"
#include "ops/quant/int8.h"
#include "plan/recorded.h"

// One step of a plan. A layer computes one or more nodes; values that pass between its own nodes
// only are hidden: they are not stored in the layer's format, and no tap sees them. Only its last
// node's outputs are not hidden.
typedef struct assay_layer {
  const char* name;            // the label of its node, or of its first and last one
  const assay_node_t** nodes;  // in order; borrowed from the model
  size_t n_nodes;
  assay_format_t format;       // what its float32 values are stored in
  assay_format_t accumulator;  // what sums are kept in: FP32 unless asked otherwise; FP64 for fp64
  const assay_int8_t* int8;    // computed on integers, as this says; NULL: node by node
  const char* reason;          // why this format: "--precision", the pattern, "as declared"
  bool drawn;  // it draws random numbers, and the engine is not ours: they are taken as they are
} assay_layer_t;

// What a backend is given to run. All of it outlives the backend's state.
typedef struct assay_layers {
  const assay_model_t* model;
  const assay_layer_t* layers;
  size_t n_layers;  // of the top graph; those of bodies follow
  size_t n_all_layers;
  const int* layer_of_node;  // by node id; -1: in no layer. Nodes of bodies have layers of their
                             // own. A node that several layers compute (of recorded values only):
                             // the first of them.
  const bool* hidden_value;  // by value id
  const assay_recorded_t* recorded;  // of the engine whose layers these are; NULL: ours
  uint64_t seed;
  assay_fp32_t fp32;   // what may serve layers of fp32
  const char* inject;  // a fault that the backend makes on purpose (emu/inject.h); NULL: none
  uint64_t draws;  // emu: computes in float64 and rounds what it stores up or down by chance, by
                   // these draws; 0: it rounds as it says
  bool assign_layouts;  // over the graph as a whole (layouts.h), not layer by layer
} assay_layers_t;

// The format in which a layer stores a tensor of a declared type: its own for float32 (tf32 is
// stored as fp32), the type's else. layer NULL: the type's.
assay_format_t assay_layer_storage(const assay_layer_t* layer, assay_type_t type);
// The format to which input i of a node is rounded as it enters the layer; NONE: it is taken as it
// is (hidden values, other types than float32, moved elements, inputs that are float32 only).
assay_format_t assay_layer_operand(const assay_layers_t* layers, const assay_layer_t* layer,
                                   const assay_node_t* node, size_t i, const assay_tensor_t* in);
// Whether a node multiplies its input i in sums of products.
bool assay_node_multiplies(const assay_node_t* node, size_t i);
// Whether input i of a node is a float32 operand of products in a layer of tf32, where it is in
// float64 here. Hidden values are: whether they are rounded then is the engine's matter.
bool assay_layer_multiplies_tf32(const assay_layer_t* layer, const assay_node_t* node, size_t i,
                                 const assay_tensor_t* in);
// Whether a node's arithmetic is float64 whatever its layer's format: an input is declared so.
bool assay_layer_is_double(size_t n_in, assay_tensor_t* const* in);
// Sets the arithmetic in which emu evaluates a node of the layer, by its inputs. Sums in float64
// are in the order of the operators' documentation, too: ARITH_F64's order is that of the CPU's
// BLAS.
void assay_layer_arithmetic(const assay_layer_t* layer, assay_eval_t* c);

#endif  // ASSAY_PLAN_LAYERS_H_
