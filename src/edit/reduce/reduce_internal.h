// Reducing, from the inside: parts of a model, what is fed to them, and whether they fail.
#ifndef ASSAY_EDIT_REDUCE_REDUCE_INTERNAL_H_
#define ASSAY_EDIT_REDUCE_REDUCE_INTERNAL_H_

#include "edit/reduce/reduce.h"

// Where values in the middle of the model come from.
typedef enum assay_reduce_source {
  ASSAY_REDUCE_ENGINE = 0,
  ASSAY_REDUCE_TRUTH,
  ASSAY_REDUCE_SOURCES,
} assay_reduce_source_t;

// What engine and truth made of the whole model's values, kept as packed tensors.
typedef struct assay_reduce_values {
  const assay_reduce_options_t* o;
  assay_model_t* model;
  const assay_samples_t* samples;
  assay_tensor_t** kept[ASSAY_REDUCE_SOURCES];  // [sample * values + value id]; NULL: not kept
  bool* ran[ASSAY_REDUCE_SOURCES];              // [sample]: run to the end, and nothing let go
  size_t bytes;
  const assay_set_t* golden;  // by sample: values inside are these, or not to be had; NULL: engine
                              // and truth
} assay_reduce_values_t;

assay_status_t assay_reduce_values_init(assay_reduce_values_t* v, assay_model_t* model,
                                        const assay_samples_t* samples,
                                        const assay_reduce_options_t* o) ASSAY_MUST_USE;
void assay_reduce_values_deinit(assay_reduce_values_t* v);
// The value of a sample, borrowed until the next call; NULL where the source does not show it.
assay_status_t assay_reduce_value(assay_reduce_values_t* v, assay_reduce_source_t source,
                                  size_t sample, const assay_value_t* value,
                                  assay_tensor_t** out) ASSAY_MUST_USE;

// A part of the model, cut out.
typedef struct assay_piece {
  assay_model_t* model;     // as it is to be written
  assay_model_t* prepared;  // the same, ready to run
} assay_piece_t;

// Cuts nodes (by place in the top graph) out of a model. *out_can: false where that cannot be, with
// *out untouched.
assay_status_t assay_piece_cut(assay_model_t* model, const bool* nodes, assay_piece_t* out,
                               bool* out_can) ASSAY_MUST_USE;
void assay_piece_deinit(assay_piece_t* p);
// The inputs of a piece for one sample, added to *out after those that it has. Of the engine, or,
// where that has none or (finite) holds NaN or infinities that truth does not, of truth.
assay_status_t assay_piece_feed(const assay_piece_t* p, assay_reduce_values_t* values,
                                size_t sample, bool finite, assay_samples_t* out, bool* out_can,
                                bool* io_from_truth) ASSAY_MUST_USE;
// Truth's outputs of a prepared model for each sample, in declared types.
assay_status_t assay_reduce_golden(const assay_model_t* m, const assay_samples_t* samples,
                                   const assay_check_setting_t* o,
                                   assay_samples_t* out) ASSAY_MUST_USE;

// Golden of each sample by itself, n sets. Errors: INVALID_ARGUMENT arrays that do not hold n.
assay_status_t assay_reduce_split_golden(const assay_model_t* m, const assay_reduce_options_t* o,
                                         size_t n, assay_set_t** out) ASSAY_MUST_USE;
void assay_reduce_free_golden(assay_set_t* sets, size_t n);
// Puts golden's outputs into the place of one sample's, where it has them.
assay_status_t assay_reduce_take_golden(const assay_model_t* m, const assay_set_t* golden,
                                        assay_tensor_t** io) ASSAY_MUST_USE;

// One sample, or `n` from `first` on, of several: borrowed.
assay_samples_t assay_reduce_view(const assay_samples_t* s, size_t first, size_t n);

// Who wants to know more of a check than whether it fails.
typedef struct assay_reduce_observer {
  assay_status_t (*see)(void* user, const assay_check_t* check);
  void* user;
} assay_reduce_observer_t;

// Runs a model on samples and judges it: by a check, or by the user's command; with `observer` (may
// be NULL) there is a check in any case. written, path: the same model for files, and where it is
// one already; NULL: nowhere. golden: of the sample; NULL: none.
assay_status_t assay_reduce_judge(const assay_reduce_options_t* o, assay_model_t* prepared,
                                  assay_model_t* written, const char* path,
                                  const assay_samples_t* samples, const assay_set_t* golden,
                                  const assay_reduce_observer_t* observer,
                                  assay_reduce_failure_t* out) ASSAY_MUST_USE;
// Whether a failure of a part is that of the whole.
bool assay_reduce_is_same(const assay_reduce_options_t* o, const assay_reduce_failure_t* whole,
                          const assay_reduce_failure_t* part);
// Errors of a part that only say that it does not fail as the whole does are taken for that.
assay_status_t assay_reduce_forgive(assay_status_t st) ASSAY_MUST_USE;

// One tensor for each value and sample, into npz files.
assay_status_t assay_reduce_write_values(const char* path, assay_value_t* const* values,
                                         const assay_samples_t* s,
                                         size_t* out_written) ASSAY_MUST_USE;

#endif  // ASSAY_EDIT_REDUCE_REDUCE_INTERNAL_H_
