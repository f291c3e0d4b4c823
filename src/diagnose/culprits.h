// Culprits: the layers that the error of outputs comes from, most to blame first, and why.
#ifndef ASSAY_DIAGNOSE_CULPRITS_H_
#define ASSAY_DIAGNOSE_CULPRITS_H_

#include "account/account.h"
#include "account/shares.h"

enum { ASSAY_CULPRIT_WHY = 256 };

// Why a layer is to blame.
typedef struct assay_culprit {
  const assay_layer_account_t* account;
  assay_verdict_t verdict;
  bool seen;     // the engine was seen to fail here; false: it would, once those before are mended
  double share;  // of an output's error; 0: not known
  char why[ASSAY_CULPRIT_WHY];  // "overflow: 5.98e+05, fp16 ends at 65504"
  // A constant that the layer's format cannot hold (lost_constants.h), whose fault it is; NULL: of
  // none. Borrowed.
  const struct assay_lost_constant* constant;
} assay_culprit_t;

// Starts as {0}. Accounts are borrowed.
typedef struct assay_culprits {
  assay_culprit_t* at;
  size_t n, capacity;
  size_t n_behind;  // further layers whose values pass the range after the culprits
} assay_culprits_t;

void assay_culprits_deinit(assay_culprits_t* c);

// Appends one, for a reason of the caller's.
assay_status_t assay_culprits_add(assay_culprits_t* c, const assay_layer_account_t* layer,
                                  assay_verdict_t verdict, const char* why) ASSAY_MUST_USE;
// Puts a layer at place `at`, or moves it there: a constant that it reads is at fault, and why.
assay_status_t assay_culprits_put(assay_culprits_t* c, size_t at,
                                  const assay_layer_account_t* layer, assay_verdict_t verdict,
                                  const struct assay_lost_constant* constant,
                                  const char* why) ASSAY_MUST_USE;
// Appends layers that the engine was seen to fail in, then those whose truth passes the range while
// what they read is within it, or was held until then; what lies after them is counted.
assay_status_t assay_culprits_by_range(const assay_account_t* account,
                                       assay_culprits_t* c) ASSAY_MUST_USE;
// Appends the layers from which most of an output's error comes.
assay_status_t assay_culprits_by_share(const assay_plan_t* plan, const assay_account_t* account,
                                       const assay_shares_t* shares,
                                       assay_culprits_t* c) ASSAY_MUST_USE;
// Where no layer range was cut down to single layers: appends those whose own error is largest
// against what they hold.
assay_status_t assay_culprits_by_error(const assay_account_t* account,
                                       assay_culprits_t* c) ASSAY_MUST_USE;

// Where the format ends that a layer stores its values in; INFINITY: in none.
double assay_culprit_range(const assay_layer_account_t* a);

#endif  // ASSAY_DIAGNOSE_CULPRITS_H_
