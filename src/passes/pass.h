// Graph passes: named rewrites of a prepared model, and the record of what they did.
//
// A pass changes a copy of the model in place and keeps its truth: graph inputs and outputs stay
// what they are, and float64 truth of every output stays the same, but for constants that are
// rounded once again to their declared type. A pass that fuses changes no node: it puts nodes into
// groups that a plan turns into layers.
#ifndef ASSAY_PASSES_PASS_H_
#define ASSAY_PASSES_PASS_H_

#include "ops/op.h"
#include "ops/quant/int8.h"
#include "passes/declared.h"

typedef enum assay_pass_action {
  ASSAY_PASS_REMOVED = 0,  // the nodes are gone
  ASSAY_PASS_CHANGED,      // the first node computes now what all of them did
  ASSAY_PASS_GROUPED,      // the nodes are one layer, in this order
} assay_pass_action_t;
const char* assay_pass_action_name(assay_pass_action_t a);

// What a pass did, once. Nodes are those of the original model.
typedef struct assay_pass_entry {
  const char* pass;
  assay_pass_action_t action;
  const assay_node_t* const* nodes;
  size_t n_nodes;
  const char* why;
} assay_pass_entry_t;

// The nodes of the original model that a node of the rewritten one stands for.
typedef struct assay_origins {
  const assay_node_t* const* nodes;
  size_t n;
} assay_origins_t;

// A constant that the model does not store: a pass computed it.
typedef struct assay_made_constant {
  const assay_value_t* value;
  const char* pass;
} assay_made_constant_t;

typedef struct assay_rewrite {
  assay_arena_t* arena;
  assay_model_t* original;  // retained
  assay_model_t* model;     // rewritten; nodes and values that stayed keep their ids
  assay_pass_entry_t* log;
  size_t n_log, cap_log;
  assay_origins_t* origins;  // by node id of the original, which nodes keep
  size_t n_origins;          // nodes that passes make have ids from the original's number on
  assay_made_constant_t* made;
  size_t n_made, cap_made;
  // Members of a group are neighbours in the top graph, and only the last one's outputs are read
  // outside.
  int* group_of_node;  // by node id, as many as n_origins; -1: in none
  int n_groups;
  const assay_int8_t** int8_of_group;  // NULL entries: not computed on integers
  size_t cap_int8;
  // By node id, as many as n_of_sizes: nodes of the top graph whose outputs follow from sizes and
  // constants alone. They are in no group, and are computed in the types that they declare.
  bool* of_sizes;
  size_t n_of_sizes;
  // For a model that is written again: nodes that are made are of the operator sets that it
  // imports, and, where there is a list, of these operators only.
  bool within_opset;
  const char* const* made_ops;
  size_t n_made_ops;
  const assay_format_t* asked;  // of the options; while passes run
  // By node id of the original, as many as n_formats: the format that a node has in place of the
  // types that it declared (float_types.h); NONE: as precision says.
  const assay_format_t* formats;
  size_t n_formats;
} assay_rewrite_t;

typedef struct assay_pass_options {
  const char* const* off;  // names of passes not to be run
  size_t n_off;
  const char* only;   // NULL: all; else just this one
  bool verify;        // check the model's invariants after every pass (tests, debug builds)
  bool within_opset;  // make only nodes of the operator sets that the model imports
  const char* const* made_ops;  // make only nodes of these operators; none: of any
  size_t n_made_ops;
  // By node id: the format that the caller's rules ask of a node; NONE: none. NULL: no rules.
  const assay_format_t* asked;
} assay_pass_options_t;

typedef struct assay_pass_context {
  const char* name;      // of the pass
  assay_model_t* model;  // to be changed
  assay_rewrite_t* rewrite;
  // The sizes that were given are known now: only nodes that follow from sizes may be computed.
  bool closed;
  bool changed;  // set by what follows: types are inferred again
  void* user;    // of assay_passes_run_own
} assay_pass_context_t;

typedef struct assay_pass {
  const char* name;
  const char* summary;
  // What it changes may give itself, or its neighbours in the table with this mark, more to do: all
  // of them run again until none changes anything.
  bool until_fixpoint;
  bool
      rounds_constants;  // makes constants that are rounded to float32: truth may move by that much
  // Runs again after all passes, on the model with the sizes that were given: changes nothing but
  // what follows from sizes.
  bool after_shapes;
  assay_status_t (*run)(assay_pass_context_t* c);
} assay_pass_t;

// All passes in their order.
size_t assay_pass_count(void);
const assay_pass_t* assay_pass_at(size_t i);
const assay_pass_t* assay_pass_find(const char* name);  // NULL if there is none
bool assay_pass_is_wanted(const assay_pass_options_t* o, const assay_pass_t* p);

// Runs the passes on a copy of a prepared model; options may be NULL. The original is retained and
// not changed.
// Errors: NOT_FOUND for a name in the options that is not a pass.
assay_status_t assay_passes_run(assay_model_t* model, const assay_pass_options_t* options,
                                assay_rewrite_t** out) ASSAY_MUST_USE;
void assay_rewrite_destroy(assay_rewrite_t* r);  // NULL is allowed
// Runs a pass of the caller's own, which need not be in the table, on a copy of a prepared model:
// again and again until it changes nothing, where it is marked so. Of the options those about nodes
// that are made count.
assay_status_t assay_passes_run_own(assay_model_t* model, const assay_pass_t* pass, void* user,
                                    const assay_pass_options_t* options,
                                    assay_rewrite_t** out) ASSAY_MUST_USE;
// A model that passes made, for sizes that are known now: a copy with these sizes of its inputs,
// and without the nodes that they make known, as it would be had they been given when it was built.
// No float changes. Nodes and values that stayed keep their ids. *out NULL: some size is not known.
// Errors: CORRUPT or INVALID_ARGUMENT where the model is wrong for these sizes.
assay_status_t assay_passes_instance(const assay_model_t* model, const assay_sizes_known_t* known,
                                     assay_model_t** out) ASSAY_MUST_USE;
assay_origins_t assay_rewrite_origins(const assay_rewrite_t* r, const assay_node_t* node);

// ---- for passes --------------------------------------------------------------------------------

// Notes what was done. Nodes are of the model being changed; their origins are written down.
assay_status_t assay_pass_record(assay_pass_context_t* c, assay_pass_action_t action,
                                 const assay_node_t* const* nodes, size_t n, const char* why, ...)
    ASSAY_PRINTF(5, 6) ASSAY_MUST_USE;
// `by` stands for what `node` stood for, too.
assay_status_t assay_pass_absorb(assay_pass_context_t* c, const assay_node_t* node,
                                 const assay_node_t* by) ASSAY_MUST_USE;
// Makes a value without producer a constant with these elements, canonical and in the declared
// type's range; stored packed where they are numbers. One reference is taken over.
assay_status_t assay_pass_set_constant(assay_pass_context_t* c, assay_value_t* value,
                                       assay_tensor_t* take_tensor) ASSAY_MUST_USE;
// The same of all outputs of a node, which is noted as removed, and why; those that are left out
// may be NULL in tensors[], which stay the caller's.
assay_status_t assay_pass_set_outputs(assay_pass_context_t* c, assay_node_t* node,
                                      assay_tensor_t* const* tensors,
                                      const char* why) ASSAY_MUST_USE;
// Rounds float elements in place to the tensor's type. False, with nothing changed, if a finite
// element would become infinite or a nonzero one zero, or, for types of fewer than 32 bits (which
// truth does not round to), if any would change.
bool assay_pass_round(assay_tensor_t* t);
// The elements of a constant that no caller can replace; NULL otherwise.
assay_tensor_t* assay_pass_constant(const assay_value_t* v);
// Puts a new node in front of position `at` of its graph. It stands for what `like` stands for, and
// is of the same operator and version.
assay_status_t assay_pass_insert(assay_pass_context_t* c, assay_node_t* node,
                                 const assay_node_t* like, size_t at) ASSAY_MUST_USE;
// Whether a value is such a constant of one element, and its number.
bool assay_pass_number(const assay_value_t* v, double* out);
// Takes the nodes marked by id out of their graphs. Nodes with ids from n on are not marked.
void assay_pass_remove(assay_pass_context_t* c, const bool* dead, size_t n);

// Who reads what: nodes of all graphs, bodies too; a graph output counts as a read without a node.
typedef struct assay_uses {
  int n_values, n_nodes;   // those that were there; newer ones have higher ids
  int* n_reads;            // by value id
  int* first;              // by value id: where its readers start; one more entry than values
  assay_node_t** readers;  // a node that reads a value twice is listed twice
  int* position;           // by node id: place in its graph
} assay_uses_t;
assay_status_t assay_uses_create(const assay_model_t* m, assay_uses_t* out) ASSAY_MUST_USE;
// Puts the few nodes of a layer into the graph's order.
void assay_uses_sort(const assay_uses_t* u, assay_node_t** nodes, size_t n);
void assay_uses_deinit(assay_uses_t* u);
// How often a value is read; INT_MAX for one that is newer than the count.
int assay_uses_of(const assay_uses_t* u, const assay_value_t* v);
// Whether a value is not an output and read by one node, once: a layer may keep it to itself.
bool assay_uses_once(const assay_uses_t* u, const assay_value_t* v);
// While a pass changes nodes: what a node reads does not count any more, or counts from now on.
void assay_uses_forget(assay_uses_t* u, const assay_node_t* node);
void assay_uses_add(assay_uses_t* u, const assay_node_t* node);

// Makes nodes of the top graph, in its order, one group. The caller has made sure that only the
// last one's output is read outside.
assay_status_t assay_pass_group(assay_pass_context_t* c, assay_node_t* const* nodes, size_t n,
                                const char* why) ASSAY_MUST_USE;
// The same for nodes that are computed on integers.
assay_status_t assay_pass_group_int8(assay_pass_context_t* c, assay_node_t* const* nodes, size_t n,
                                     const assay_int8_t* int8, const char* why) ASSAY_MUST_USE;
bool assay_pass_is_grouped(const assay_pass_context_t* c, const assay_node_t* node);
// Whether a node may be put into a layer: of a known operator, in no layer yet, in no body.
bool assay_pass_may_group(const assay_pass_context_t* c, const assay_node_t* node);
bool assay_rewrite_is_of_sizes(const assay_rewrite_t* r, const assay_node_t* node);
// Whether a node can be fused: a pointwise function with one float output and nothing random or
// discrete in it.
bool assay_pass_is_fusible(const assay_node_t* node);
bool assay_same_static_shape(const assay_value_t* a, const assay_value_t* b);

#define ASSAY_PASS(name) extern const assay_pass_t assay_pass_##name;
#include "passes/passes.inc"
#undef ASSAY_PASS

#endif  // ASSAY_PASSES_PASS_H_
