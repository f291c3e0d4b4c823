// Which tactic runs a layer: the first that takes it, in the order of the table, which predicted
// times may change (costs.h); where others take it that give the same bits (or any, if asked for),
// and their times are known or may be measured, the fastest of these.
#ifndef ASSAY_EXEC_CHOICE_CHOICE_H_
#define ASSAY_EXEC_CHOICE_CHOICE_H_

#include <pthread.h>

#include "base/alloc.h"
#include "exec/choice/costs.h"
#include "exec/choice/timings.h"
#include "exec/segment/reformat.h"

enum { ASSAY_MAX_TACTICS = 96 };

// What a choice is between.
typedef struct assay_choice_setting {
  const assay_tactic_t* const* tactics;
  size_t n_tactics;
  const char* machine;         // what times depend on, one line; copied
  const assay_costs_t* costs;  // of the machine's class, by which tactics are ranked; NULL: none
  // The mean of so many runs of a kernel at least, on operands of zeros; 0: the fastest of some.
  assay_status_t (*time)(void* user, const assay_sized_layer_t* l, assay_kernel_t* k, int runs,
                         double* out_microseconds);
  // Which of n kernels give the bits of the first one, on the same numbers. NULL: none is known to.
  assay_status_t (*same_bits)(void* user, const assay_sized_layer_t* l, assay_kernel_t* const* k,
                              int n, bool* out_same);
  // The same of a move. NULL: they are not timed.
  assay_status_t (*time_move)(void* user, const assay_reformat_t* m, double* out_microseconds);
  void* user;
} assay_choice_setting_t;

// Shared by the contexts of an engine, and what a plan file keeps of it.
typedef struct assay_choice {
  assay_choice_setting_t setting;
  assay_weights_t* store;
  assay_timings_t* timings;
  char* sources;     // of tactics, with ',' between; NULL: all
  char* forced;      // lines "TACTIC LAYER" or "TACTIC/VARIANT LAYER"; NULL: none
  bool measure;      // kernels that compete are timed where the timings do not know them
  bool any_bits;     // all compete
  bool rehearses;    // what is made now is never run, so not timed either
  int max;           // so many at most, besides a library's ways (assay_tactic_t.verify)
  int runs;          // of a time; 0: the fastest of some
  uint64_t scratch;  // bytes that a kernel may need where another takes the layer; 0: any
  bool measured;     // that has been done: weights of kernels that lost are in the store
  assay_str_t text;  // of the timings, as it is saved
  // Names of variants ("TACTIC/VARIANT"), by which kernels are called.
  pthread_mutex_t lock;
  assay_map_t names;
  assay_arena_t* arena;  // NULL: the lock is not there either
} assay_choice_t;

// options may be NULL. Errors: INVALID_ARGUMENT, CORRUPT in the options.
assay_status_t assay_choice_create(const assay_choice_setting_t* setting,
                                   const assay_backend_options_t* options,
                                   assay_choice_t** out) ASSAY_MUST_USE;
void assay_choice_destroy(assay_choice_t* c);  // NULL is allowed

// Makes the kernel of a layer; *out NULL: none takes it. candidates: room for ASSAY_MAX_CANDIDATES
// of those that were looked at, in the table's order.
assay_status_t assay_choose(assay_choice_t* c, const assay_sized_layer_t* l, assay_kernel_t** out,
                            assay_candidate_t* candidates, int* n_candidates) ASSAY_MUST_USE;

// The kernel that runs two layers in one launch (assay_tactic_t.make_pair), unless it is known to
// take as long as the two kernels, which is measured where that is wanted; *out NULL: there is
// none.
assay_status_t assay_choose_pair(assay_choice_t* c, const assay_layer_pair_t* p,
                                 assay_kernel_t** out) ASSAY_MUST_USE;

// Whether a layer may end a launch of several (assay_tactic_t.make_joint); and the kernel of one,
// *out NULL: there is none, a kernel was asked for of one of its layers, or it is known to take as
// long as the kernels of all, which is measured where that is wanted.
bool assay_may_join(const assay_choice_t* c, const assay_layer_t* l);
assay_status_t assay_choose_joint(assay_choice_t* c, assay_joint_layers_t* j,
                                  assay_kernel_t** out) ASSAY_MUST_USE;

// The same of layers that read the same and run in one launch (assay_tactic_t.make_siblings).
bool assay_are_siblings(const assay_choice_t* c, const assay_layer_t* a, const assay_layer_t* b);
assay_status_t assay_choose_siblings(assay_choice_t* c, const assay_siblings_t* s,
                                     assay_kernel_t** out) ASSAY_MUST_USE;

// Gives a kernel the sizes of the layer (assay_tactic_t.resize), if no tactic of other bits comes
// before its own there; times are not asked again. *out_ok false: it has to be chosen anew.
assay_status_t assay_choice_resize(assay_choice_t* c, const assay_sized_layer_t* l,
                                   assay_kernel_t* k, bool* out_ok) ASSAY_MUST_USE;

// What a kernel takes of this layer, and what a reorder takes: known, measured now if that is
// wanted, or NAN.
assay_status_t assay_choice_cost(assay_choice_t* c, const assay_sized_layer_t* l, assay_kernel_t* k,
                                 double* out_microseconds) ASSAY_MUST_USE;
assay_status_t assay_choice_move_cost(assay_choice_t* c, const assay_reformat_t* m,
                                      double* out_microseconds) ASSAY_MUST_USE;

// As in assay_backend_t. First the timings that were looked up, so that a plan that is read makes
// the same choices; then the store's entries.
assay_status_t assay_choice_saved(assay_choice_t* c, size_t i, const char** out_key,
                                  const void** out_data, size_t* out_bytes) ASSAY_MUST_USE;
assay_status_t assay_choice_restore(assay_choice_t* c, const char* key, const void* data,
                                    size_t bytes) ASSAY_MUST_USE;
assay_status_t assay_choice_timings(const assay_choice_t* c, assay_str_t* out,
                                    bool* out_measured) ASSAY_MUST_USE;
void assay_choice_freeze(assay_choice_t* c);

#endif  // ASSAY_EXEC_CHOICE_CHOICE_H_
