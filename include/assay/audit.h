// Audits: what a model can do in a precision for any input in a range, found without running it on
// data; and what about it is there by accident: broadcasts, batch sizes, constants, operators.
#ifndef ASSAY_AUDIT_H_
#define ASSAY_AUDIT_H_

#include <assay/model.h>
#include <assay/report.h>
#include <assay/samples.h>
#include <assay/tensor.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// One owner. Threads: functions that take it const may be called from several at once.
typedef struct assay_audit assay_audit_t;

typedef struct assay_audit_options {
  size_t struct_size;
  assay_format_t precision;     // of float32 values; NONE: as declared; INT8: of a model that
                                // quantizes, as declared
  assay_format_t accumulator;   // what sums are kept in; NONE: the precision's own
  const char* layer_precision;  // "PATTERN:FORMAT,..."; NULL: none
  // Between which numbers inputs lie: "NAME=LO:HI", "NAME=R" for -R:R, or without a name all float
  // inputs. What nothing is said of has the samples' range, or [-1, 1].
  const char* const* boxes;
  size_t n_boxes;
  const assay_samples_t*
      samples;  // of the model's inputs; their shapes are used as well; NULL: none
  // Sizes that the model leaves open, for the ranges, as in assay_model_options_t; others are 1.
  // The lists of broadcasts and baked sizes are of the model as it was loaded.
  const assay_input_shape_t* shapes;
  size_t n_shapes;
  bool no_radius;                 // do not look for the largest box that is safe
  bool no_witness;                // do not look for an input that breaks the model
  double seconds;                 // how long to look for it
  uint64_t seed;                  // of that search
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;
  const assay_dim_size_t* dims;  // as `shapes`
  size_t n_dims;
  int64_t batch;
} assay_audit_options_t;
#define ASSAY_AUDIT_OPTIONS_INIT                                                                  \
  {                                                                                               \
    sizeof(assay_audit_options_t), ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0, 0, 0, 0, 0, false, \
        false, 30, 0, 0, 0, 0, 0, 0                                                               \
  }

// Audits a model, which may hold operators that are not known (assay_model_options_t). The audit
// holds a reference to it.
//   options   may be NULL; read during the call only
// Errors:  INVALID_ARGUMENT a box or shape that does not fit, a format that is not a float;
// NOT_FOUND
//          a pattern that matches nothing; UNSUPPORTED, also for INT8 on a model without
//          quantizers; NO_MEMORY
// Threads: any
ASSAY_API assay_status_t assay_audit_run(assay_model_t* model, const assay_audit_options_t* options,
                                         assay_audit_t** out);
ASSAY_API void assay_audit_destroy(assay_audit_t* audit);  // NULL is allowed

// ---- ranges -------------------------------------------------------------------------------------

typedef enum assay_audit_verdict {
  ASSAY_AUDIT_SAFE = 0,      // no input in the box gives a NaN or an infinity anywhere
  ASSAY_AUDIT_UNSAFE,        // an input that does is there: the witness
  ASSAY_AUDIT_MAY_OVERFLOW,  // nodes may pass their range; no input was found that does it
  ASSAY_AUDIT_NOT_KNOWN,     // nodes whose range is not known, and no others
} assay_audit_verdict_t;

// What the audit comes to, for all outputs together.
ASSAY_API assay_audit_verdict_t assay_audit_verdict(const assay_audit_t* audit);
// "safe", "overflow", "may-overflow", "not-known".
ASSAY_API const char* assay_audit_verdict_name(assay_audit_verdict_t verdict);

// The box: inputs without an initializer, by number; NULL past the end.
ASSAY_API size_t assay_audit_input_count(const assay_audit_t* audit);
ASSAY_API const char* assay_audit_input_name(const assay_audit_t* audit, size_t i);
// Errors: INVALID_ARGUMENT no such input
ASSAY_API assay_status_t assay_audit_input_range(const assay_audit_t* audit, size_t i,
                                                 double* out_low, double* out_high);
// Between which numbers a value of the model lies for all inputs in the box.
// Errors: NOT_FOUND no node makes such a value, or nothing is known of it
ASSAY_API assay_status_t assay_audit_value_range(const assay_audit_t* audit, const char* name,
                                                 double* out_low, double* out_high);
// The largest factor by which the scaled box is safe (to 2 %); 0: none; NaN: not computed.
ASSAY_API double assay_audit_safe_scale(const assay_audit_t* audit);
// Whether options.batch is the size of an input's leading dimension.
ASSAY_API bool assay_audit_batch_used(const assay_audit_t* audit);
// Which sizes are 1 because nothing was said of them, such as "'N', dimension 2 of 'x'"; "": none.
ASSAY_API const char* assay_audit_open_sizes(const assay_audit_t* audit);

// ---- the witness: an input in the box that breaks the model, confirmed by running it ------------

// Whether one was found.
ASSAY_API bool assay_audit_has_witness(const assay_audit_t* audit);
// For each input of the box a tensor, borrowed; NULL: none.
ASSAY_API assay_tensor_t* assay_audit_witness(const assay_audit_t* audit, size_t i);
// Writes it to an npz file, which reports name from then on. Errors: NOT_FOUND there is none, or no
// such folder
ASSAY_API assay_status_t assay_audit_save_witness(assay_audit_t* audit, const char* path);

// ---- findings -----------------------------------------------------------------------------------

typedef enum assay_audit_topic {
  ASSAY_AUDIT_HAZARDS = 0,  // nodes that may pass their range, in the model's order
  ASSAY_AUDIT_BROADCASTS,   // operands that a node broadcasts
  ASSAY_AUDIT_BAKED,        // batch sizes that are written into the model
  ASSAY_AUDIT_CONSTANTS,    // constants that the format cannot hold
  ASSAY_AUDIT_OPERATORS,    // a node each: who can run it
  ASSAY_AUDIT_TOPIC_COUNT,
} assay_audit_topic_t;

// How many findings there are of a topic. Finding i: texts live as long as the audit; NULL past the
// end.
ASSAY_API size_t assay_audit_count(const assay_audit_t* audit, assay_audit_topic_t topic);
// The node's name; of a hazard of an input "".
ASSAY_API const char* assay_audit_node(const assay_audit_t* audit, assay_audit_topic_t topic,
                                       size_t i);
// The type of its operator, such as "Conv".
ASSAY_API const char* assay_audit_operator(const assay_audit_t* audit, assay_audit_topic_t topic,
                                           size_t i);
// What kind it is. Hazards: "overflow", "division" ...; broadcasts: "implicit", "number" (a
// constant of one element); baked: "reshape" ...; constants: "infinity", "zero", "one", "subnormal"
// (what the worst element becomes); operators: "kernel", "emulated", "none" (how the CPU runs it).
ASSAY_API const char* assay_audit_kind(const assay_audit_t* audit, assay_audit_topic_t topic,
                                       size_t i);
// Says it in a line, cut off at capacity. Returns out_text.
ASSAY_API const char* assay_audit_describe(const assay_audit_t* audit, assay_audit_topic_t topic,
                                           size_t i, char* out_text, size_t capacity);

// ---- reports ------------------------------------------------------------------------------------

typedef struct assay_audit_report_options {
  size_t struct_size;
  unsigned topics;  // TEXT: which are told in full: bit 1u << TOPIC
} assay_audit_report_options_t;
#define ASSAY_AUDIT_REPORT_OPTIONS_INIT \
  { sizeof(assay_audit_report_options_t), 0 }

// TEXT: a dozen lines, verdict first, and after them topics in full. JSON: "assay.audit/1".
// Errors: as in report.h
ASSAY_API assay_status_t assay_audit_report(const assay_audit_t* audit, assay_report_kind_t kind,
                                            const assay_audit_report_options_t* options,
                                            assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_audit_write_report(const assay_audit_t* audit,
                                                  assay_report_kind_t kind,
                                                  const assay_audit_report_options_t* options,
                                                  const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_AUDIT_H_
