// Faulty nodes of a model: each is checked and run by itself, on what its inputs were computed to
// be.
#ifndef ASSAY_EDIT_LINT_H_
#define ASSAY_EDIT_LINT_H_

#include "base/alloc.h"
#include "ir/ir.h"

typedef enum assay_lint_level {
  ASSAY_LINT_WARNING = 0,
  ASSAY_LINT_EXCEPTION,
} assay_lint_level_t;

typedef struct assay_lint_entry {
  assay_lint_level_t level;
  const char* source;   // "onnx_checker": against the standard; "assay": when it was to be run
  const char* message;  // one line
  const char *node, *op_type;  // NULL: about the whole model
} assay_lint_entry_t;

typedef struct assay_lint {
  assay_arena_t* arena;  // of all text
  assay_lint_entry_t* entries;
  size_t n_entries, cap_entries;
  const char **passing, **failing;  // names of nodes; those after a faulty one are in neither
  size_t n_passing, n_failing;
  bool failed;  // an entry is an exception
} assay_lint_t;

// Names of nodes that have none are made up: call it first.
assay_status_t assay_lint_name_nodes(assay_model_t* m) ASSAY_MUST_USE;
// What is wrong with the model as a whole. model: read with undefined values allowed.
assay_status_t assay_lint_check(const assay_model_t* model, assay_lint_t* out) ASSAY_MUST_USE;
// Node by node, and what no output needs. inputs: one tensor for each graph input;
// NULL where an initializer stands in.
assay_status_t assay_lint_run(const assay_model_t* model, assay_tensor_t* const* inputs,
                              assay_lint_t* out) ASSAY_MUST_USE;
// A finding about the whole model, such as that it cannot be read.
assay_status_t assay_lint_add(assay_lint_t* l, assay_lint_level_t level, const char* source,
                              const char* message) ASSAY_MUST_USE;
assay_status_t assay_lint_init(assay_lint_t* out) ASSAY_MUST_USE;
void assay_lint_deinit(assay_lint_t* l);

#endif  // ASSAY_EDIT_LINT_H_
