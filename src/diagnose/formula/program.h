// For this folder: what a formula is, and how its program is read.
#ifndef ASSAY_DIAGNOSE_FORMULA_PROGRAM_H_
#define ASSAY_DIAGNOSE_FORMULA_PROGRAM_H_

#include "diagnose/formula.h"

enum { ASSAY_FORMULA_STACK = 16, ASSAY_FORMULA_ATTRS = 16 };

struct assay_formula {
  size_t references;
  bool rounds;  // what its nodes make is rounded to its type
  assay_formula_terms_t terms;
  char program[ASSAY_FORMULA_TEXT];
};

// Says in turn what a program pushes and computes. What the stack holds is the receiver's.
typedef struct assay_formula_operator {
  const char *domain, *op_type;
  const assay_attr_t* attrs;
  size_t n_attrs, n_outputs, of;
} assay_formula_operator_t;

typedef struct assay_formula_receiver {
  void* user;
  assay_type_t type;
  int64_t opset;
  assay_status_t (*source)(void* user);
  assay_status_t (*value)(void* user, const assay_value_t* v);
  assay_status_t (*constant)(void* user, assay_tensor_t* t);
  assay_status_t (*duplicate)(void* user);
  // What another formula makes.
  assay_status_t (*made)(void* user, const struct assay_formula_receiver* r,
                         const assay_formula_t* f);
  assay_status_t (*none)(void* user);
  // Takes n operands from the stack, the last on top, and puts output `of` there.
  assay_status_t (*node)(void* user, const assay_formula_operator_t* op, size_t n);
} assay_formula_receiver_t;

// Tells the receiver what a program does, word by word.
assay_status_t assay_formula_run(const assay_formula_t* f,
                                 const assay_formula_receiver_t* r) ASSAY_MUST_USE;
// A node of ai.onnx on the n operands on top.
assay_status_t assay_formula_put_node(const assay_formula_receiver_t* r, const char* op_type,
                                      size_t n, const assay_attr_t* attrs,
                                      size_t n_attrs) ASSAY_MUST_USE;
assay_status_t assay_formula_no_room(const char* program) ASSAY_MUST_USE;

// A pooling's attributes. list: spatial dimensions, and in each the window, the stride, the padding
// before and behind; whether padding counts. Returns how many there are; 0: it is not one.
typedef struct assay_formula_pool {
  int64_t kernel[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK], pads[2 * ASSAY_MAX_RANK];
  assay_attr_t attrs[4];
} assay_formula_pool_t;
size_t assay_formula_read_pool(const int64_t* list, assay_formula_pool_t* out);

#endif  // ASSAY_DIAGNOSE_FORMULA_PROGRAM_H_
