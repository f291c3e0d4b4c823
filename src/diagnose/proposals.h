// What the files of proposals share.
#ifndef ASSAY_DIAGNOSE_PROPOSALS_H_
#define ASSAY_DIAGNOSE_PROPOSALS_H_

#include "diagnose/repair.h"

#define ASSAY_PROPOSAL(stage, cause, function)                                                \
  assay_status_t function(const assay_suspect_t* s, const char* name, const assay_trial_t* t, \
                          bool* stop);
#include "diagnose/proposals.inc"
#undef ASSAY_PROPOSAL

// Offers a repair and releases what it holds.
// Another constant as an input of the node. take: becomes the repair's.
assay_status_t assay_offer_constant(const assay_suspect_t* s, const char* cause, size_t input,
                                    assay_tensor_t* take, const char* text, const assay_trial_t* t,
                                    bool* stop) ASSAY_MUST_USE;
// The next permutation in lexicographic order; false after the last.
bool assay_next_permutation(int64_t* p, int n);
assay_status_t assay_offer(const assay_trial_t* t, assay_repair_t* r, bool* stop) ASSAY_MUST_USE;
// A repair of the suspect with one edit of a kind.
assay_repair_t assay_repair_of(const assay_suspect_t* s, const char* cause, assay_edit_kind_t kind);
// The constant that input i reads, canonical: an initializer's or a Constant node's; *out is NULL
// if it is not one.
assay_status_t assay_suspect_constant(const assay_suspect_t* s, size_t i,
                                      assay_tensor_t** out) ASSAY_MUST_USE;
const char* assay_suspect_input_name(const assay_suspect_t* s, size_t i);  // of the schema

// The texts that an attribute of this name takes in some operator, one by one; NULL: no more.
const char* assay_attr_word(const char* name, size_t i);

// Changes a list of small integers in the ways that fit what it is: an attribute or a constant
// input of this name. emit is called with each changed list.
typedef struct assay_numbers {
  const char* name;
  int64_t at[ASSAY_EDIT_NUMBERS];
  size_t n;
  int rank;  // of the data that they speak of
} assay_numbers_t;
typedef assay_status_t assay_emit_numbers(void* user, const assay_numbers_t* changed, bool* stop);
assay_status_t assay_vary_numbers(const assay_numbers_t* x, assay_emit_numbers* emit, void* user,
                                  bool* stop) ASSAY_MUST_USE;

#endif  // ASSAY_DIAGNOSE_PROPOSALS_H_
