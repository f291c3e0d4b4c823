// Constants that their format cannot hold and that outputs' errors begin at: both ends of the
// chain, and what the constant could be instead.
#ifndef ASSAY_DIAGNOSE_CONSTANTS_LOST_CONSTANTS_H_
#define ASSAY_DIAGNOSE_CONSTANTS_LOST_CONSTANTS_H_

#include "account/account.h"
#include "account/outputs.h"
#include "diagnose/repair.h"
#include "ranges/constants.h"

typedef struct assay_lost_constant {
  const assay_odd_constant_t* odd;      // borrowed
  const assay_layer_account_t* begins;  // the layer that reads it
  const assay_layer_account_t* shows;   // the first one, that or after it, where it is seen
  int64_t unfinite;  // elements that are not finite there and are in truth; 0: an error
  double error;      // then: relative, root mean square
  // The node of the model as it was given, and which input; node NULL: it reads no such constant.
  const assay_node_t* node;
  size_t input;
  bool to_blame;
} assay_lost_constant_t;

// Starts as {0}.
typedef struct assay_lost_constants {
  assay_lost_constant_t* at;  // in the order of the graph
  size_t n, capacity;
} assay_lost_constants_t;
void assay_lost_constants_deinit(assay_lost_constants_t* c);

// Those from which an output's error can have come. Where outputs are NaN or infinite, what is
// infinite only since truth is past the range as well (a mask) counts as seen where it does harm.
assay_status_t assay_lost_constants_find(const assay_plan_t* plan, const assay_account_t* account,
                                         const assay_odd_constants_t* odd,
                                         const assay_output_check_t* outputs,
                                         assay_lost_constants_t* out) ASSAY_MUST_USE;

// "'eps' is 1e-12 and becomes 0 in fp16, whose numbers begin at 5.96e-08".
void assay_lost_constant_describe(const assay_lost_constant_t* c, char* out, size_t capacity);
// "divide (Div): 32 of 96 elements are not finite".
void assay_lost_constant_shown(const assay_lost_constant_t* c, char* out, size_t capacity);

// What a number could be instead, so that the format holds it: the nearest that it does (attempt
// 0), or one further off, which leaves room to compute with (1). Numbers that it holds stay.
enum { ASSAY_MENDING_ATTEMPTS = 2 };
double assay_mended_number(assay_format_t format, double x, int attempt);
// The repair that puts the mended constant in; text says what changes.
assay_status_t assay_lost_constant_repair(const assay_lost_constant_t* c, int attempt,
                                          assay_repair_t* out) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_CONSTANTS_LOST_CONSTANTS_H_
