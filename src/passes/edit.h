// Changing a graph: what passes that rewrite nodes share.
#ifndef ASSAY_PASSES_EDIT_H_
#define ASSAY_PASSES_EDIT_H_

#include "passes/assemble/pattern.h"

// A change of a graph that is going on. Nodes that die stay in the graph until the end.
typedef struct assay_edit {
  assay_pass_context_t* c;
  assay_uses_t uses;   // of the model as the pass was given it; n_reads is kept up to date
  bool* dead;          // by node id
  size_t n_nodes;      // ids of dead[]
  assay_value_t** to;  // by value id: the value that is read in its place; NULL: itself
} assay_edit_t;

assay_status_t assay_edit_begin(assay_pass_context_t* c, assay_edit_t* out) ASSAY_MUST_USE;
// Redirects readers, takes the dead nodes out, frees. Also after a failure, which is handed on.
assay_status_t assay_edit_end(assay_edit_t* e, assay_status_t st) ASSAY_MUST_USE;

// A whole change: calls visit for every node of every graph that has not died by then.
assay_status_t assay_edit_each(assay_pass_context_t* c,
                               assay_status_t (*visit)(assay_edit_t* e,
                                                       assay_node_t* n)) ASSAY_MUST_USE;

bool assay_edit_is_dead(const assay_edit_t* e, const assay_node_t* node);
// The node goes: what it read is read once less.
void assay_edit_kill(assay_edit_t* e, assay_node_t* node);
// The value that is read in place of v by now.
assay_value_t* assay_edit_value(const assay_edit_t* e, assay_value_t* v);
// Whether readers of `from` can read `to` instead, and `from` need not be made: both are of one
// graph, or only nodes read `from`; the type is the same.
bool assay_edit_can_redirect(const assay_edit_t* e, const assay_value_t* from,
                             const assay_value_t* to);
// Readers of `from`, which a dying node makes, read `to`. Where `from` is handed out of its graph,
// what makes `to` makes `from` instead.
void assay_edit_redirect(assay_edit_t* e, assay_value_t* from, assay_value_t* to);

// What the matched nodes did the root does alone now: notes it, and the other nodes go. The root's
// inputs and operator are the caller's to change, between forget and add of the uses.
assay_status_t assay_edit_join(assay_edit_t* e, const assay_match_t* m, const char* why, ...)
    ASSAY_PRINTF(3, 4) ASSAY_MUST_USE;

// Whether that operator's first input may be of this value's type.
bool assay_edit_allows(const assay_edit_t* e, const char* op_type, const assay_value_t* v);
// Makes a node another operator of ai.onnx, as of the model's operator set, or of the first one
// that has it; with these inputs and no attributes yet.
assay_status_t assay_edit_become(assay_edit_t* e, assay_node_t* node, const char* op_type,
                                 size_t n_inputs, assay_value_t* const* inputs) ASSAY_MUST_USE;
// A new node of that kind with one output of this type, before `before` in its graph. It stands
// for what `before` stands for.
assay_status_t assay_edit_insert(assay_edit_t* e, const assay_node_t* before, const char* op_type,
                                 size_t n_inputs, assay_value_t* const* inputs, const char* name,
                                 const assay_valtype_t* type, assay_node_t** out) ASSAY_MUST_USE;
// The same with n_outputs, which the caller sets.
assay_status_t assay_edit_insert_bare(assay_edit_t* e, const assay_node_t* before,
                                      const char* op_type, size_t n_inputs,
                                      assay_value_t* const* inputs, size_t n_outputs,
                                      assay_node_t** out) ASSAY_MUST_USE;
// Sets an attribute of a node that it may have already.
assay_status_t assay_edit_set_i(assay_edit_t* e, assay_node_t* node, const char* name,
                                int64_t x) ASSAY_MUST_USE;
assay_status_t assay_edit_set_ints(assay_edit_t* e, assay_node_t* node, const char* name, size_t n,
                                   const int64_t* x) ASSAY_MUST_USE;
void assay_edit_drop_attr(assay_node_t* node, const char* name);
// Puts another value into an input of a node, which may get more inputs by that.
assay_status_t assay_edit_set_input(assay_edit_t* e, assay_node_t* node, size_t i,
                                    assay_value_t* v) ASSAY_MUST_USE;
// A constant with a name like this; one reference is taken over. Canonical or packed.
assay_status_t assay_edit_constant(assay_edit_t* e, assay_graph_t* g, const char* name,
                                   assay_tensor_t* take, assay_value_t** out) ASSAY_MUST_USE;
assay_status_t assay_edit_ints(assay_edit_t* e, assay_graph_t* g, const char* name, int64_t n,
                               const int64_t* x, assay_value_t** out) ASSAY_MUST_USE;

// Attributes of a node made by assay_edit_become or _insert: up to 4.
assay_status_t assay_edit_attr_i(assay_edit_t* e, assay_node_t* node, const char* name,
                                 int64_t x) ASSAY_MUST_USE;
assay_status_t assay_edit_attr_f(assay_edit_t* e, assay_node_t* node, const char* name,
                                 double x) ASSAY_MUST_USE;
assay_status_t assay_edit_attr_s(assay_edit_t* e, assay_node_t* node, const char* name,
                                 const char* x) ASSAY_MUST_USE;
assay_status_t assay_edit_attr_ints(assay_edit_t* e, assay_node_t* node, const char* name, size_t n,
                                    const int64_t* x) ASSAY_MUST_USE;

// ---- asking ------------------------------------------------------------------------------------

// Whether a node is this operator of ai.onnx.
bool assay_is(const assay_node_t* n, const char* op_type);
// The rank of a tensor value; -1: not known.
int assay_rank_of(const assay_value_t* v);
// The permutation of a Transpose, of ASSAY_MAX_RANK numbers at most; false: not known, or no
// Transpose.
bool assay_transpose_perm(const assay_node_t* n, int64_t* perm, int* out_rank);
assay_type_t assay_elem_of(const assay_value_t* v);  // UNDEFINED: not known, or no tensor
// A dimension of a tensor value if it is a number; -1.
int64_t assay_dim_of(const assay_value_t* v, int i);
// The integers of a constant, up to `max`; -1: none, or more.
int assay_ints_of(const assay_value_t* v, int max, int64_t* out);
// The axes of a Reduce operator, an attribute or in later versions an input, by dimension. False:
// they are not known.
bool assay_reduced_axes(const assay_node_t* n, int rank, bool* out);
// The shape of a value as a Reshape's target: numbers of at least 1, and at most one -1.
bool assay_reshape_target(const assay_value_t* v, int64_t* out);

#endif  // ASSAY_PASSES_EDIT_H_
