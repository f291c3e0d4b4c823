// Operators that a program or a library has registered: include/assay/ops.h.
//
// They are rows like the others, whose functions call what was registered. assay_op_find and
// assay_schema_find find them after the rows of the table. A row stays as long as the process.
#ifndef ASSAY_OPS_CUSTOM_H_
#define ASSAY_OPS_CUSTOM_H_

#include <assay/ops.h>

#include "ops/op.h"

typedef struct assay_custom_op assay_custom_op_t;
struct assay_custom_op {
  assay_op_t row;        // first: a row's address is its operator's
  assay_op_spec_t spec;  // with texts of its own
  const assay_schema_t* schema;
  char *texts, *origin;
  assay_custom_op_t* next;
};

const assay_op_t* assay_custom_find(const char* domain, const char* name, int64_t version);
// *out_known (may be NULL) is set where there is an operator of the name in any version.
const assay_schema_t* assay_custom_schema(const char* domain, const char* name, int64_t version,
                                          bool* out_known);
// Whether an operator of the domain is registered: all of its versions are known then.
bool assay_custom_has_domain(const char* domain);
// What was registered of a row; NULL: a row of the table.
const assay_custom_op_t* assay_custom_of(const assay_op_t* row);

// ---- custom_call.c: how the functions are called ------------------------------------------------

extern const assay_ops_api_t assay_custom_api;
// Fills in what a row's functions are.
void assay_custom_make_row(assay_custom_op_t* op);

// An input or output of a kernel.
typedef struct assay_custom_operand {
  assay_op_array_t array;
  void* data;
  bool there;
} assay_custom_operand_t;
assay_status_t assay_custom_run_kernel(const assay_node_t* node, const assay_custom_operand_t* in,
                                       const assay_custom_operand_t* out) ASSAY_MUST_USE;
bool assay_custom_takes(const assay_node_t* node, const assay_custom_operand_t* in,
                        const assay_custom_operand_t* out);

// ---- custom.c, for registering ----------------------------------------------------------------

assay_status_t assay_custom_add(assay_ops_list_t* list, const assay_op_spec_t* spec) ASSAY_MUST_USE;

#endif  // ASSAY_OPS_CUSTOM_H_
