// Certificates: what a run of a model was, in a small file, and whether another run is the same.
#ifndef ASSAY_CERTIFY_H_
#define ASSAY_CERTIFY_H_

#include <assay/engine.h>
#include <assay/model.h>
#include <assay/report.h>
#include <assay/samples.h>
#include <assay/types.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a run was. One owner. Threads: functions that take it const may be called from several at
// once.
typedef struct assay_certificate assay_certificate_t;

typedef struct assay_certify_options {
  size_t struct_size;
  const char* target;             // a name that assay_target_name() gives; NULL: "emu"
  assay_format_t precision;       // of float32 values; NONE: as declared; INT8: of a model that
                                  // quantizes, as declared
  const char* layer_precision;    // "PATTERN:FORMAT,..."; NULL: none
  assay_fp32_t fp32;              // which kernels fp32 layers may use
  assay_fusion_t fusion;          // TARGET: on, but for emu
  const char* const* passes_off;  // names of passes that do not run; some: the plan is fused
  size_t n_passes_off;
  bool unquantized;  // quantizers are the identity in truth
  uint64_t seed;     // of random inputs and operators
  const assay_samples_t*
      samples;  // inputs, which verifying needs as well; NULL: drawn from the seed
  // "OUTPUT:VALUE": elements of this output are decided by a threshold. Rows of an output of two
  // dimensions are by their largest element.
  const char* const* thresholds;
  size_t n_thresholds;
  size_t max_bytes;    // how large the certificate may be; 0: 1 % of the model, or 512 bytes
  const char* inject;  // for tests of what watches: a fault of target emu, "NODE:KIND=ARGUMENTS"
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;
} assay_certify_options_t;
#define ASSAY_CERTIFY_OPTIONS_INIT                                              \
  {                                                                             \
    sizeof(assay_certify_options_t), 0, ASSAY_FORMAT_NONE, 0, ASSAY_FP32_TIGHT, \
        ASSAY_FUSION_TARGET, 0, 0, false, 0, 0, 0, 0, 0, 0, 0, 0                \
  }

// Runs a model in the shapes that it was loaded with, beside its truth, and notes what that was.
// The certificate holds a reference to the model.
//   options   may be NULL; read during the call only
// Errors:  INVALID_ARGUMENT unknown target or setting, a threshold that makes no sense or is of no
//          output, inputs that the model does not take; NOT_FOUND a pattern or pass that there is
//          not; UNSUPPORTED, also for INT8 on a model without quantizers; NO_MEMORY
// Threads: any
ASSAY_API assay_status_t assay_certificate_make(assay_model_t* model,
                                                const assay_certify_options_t* options,
                                                assay_certificate_t** out);
// Reads a certificate from its file. Errors: NOT_FOUND; CORRUPT not a certificate, or damaged
ASSAY_API assay_status_t assay_certificate_load(const char* path, assay_certificate_t** out);
// Writes it. Readers of the path see the old file or the new one. Errors: NOT_FOUND no such folder
ASSAY_API assay_status_t assay_certificate_save(assay_certificate_t* certificate, const char* path);
ASSAY_API void assay_certificate_destroy(assay_certificate_t* certificate);  // NULL is allowed

// What was certified. Texts live as long as the certificate; "": nothing was said. Precision and
// rules are as options take them, shapes are such as "image=1x3x8x8".
ASSAY_API const char* assay_certificate_precision(const assay_certificate_t* certificate);
ASSAY_API const char* assay_certificate_layer_precision(const assay_certificate_t* certificate);
ASSAY_API const char* assay_certificate_target(const assay_certificate_t* certificate);
ASSAY_API const char* assay_certificate_shapes(const assay_certificate_t* certificate);
// The version of the library that made it.
ASSAY_API const char* assay_certificate_version(const assay_certificate_t* certificate);
ASSAY_API uint64_t assay_certificate_seed(const assay_certificate_t* certificate);
// Whether inputs were given: verifying needs the same.
ASSAY_API bool assay_certificate_needs_samples(const assay_certificate_t* certificate);
ASSAY_API size_t assay_certificate_bytes(const assay_certificate_t* certificate);  // of the file
// Values of the model, and those that there was room for.
ASSAY_API size_t assay_certificate_value_count(const assay_certificate_t* certificate);
ASSAY_API size_t assay_certificate_kept_count(const assay_certificate_t* certificate);

// Reads the model of a file in the shapes that were certified. Errors: those of assay_model_load()
ASSAY_API assay_status_t assay_certificate_load_model(const assay_certificate_t* certificate,
                                                      const char* path, assay_model_t** out);

// ---- verifying ----------------------------------------------------------------------------------

// What came of it. One owner, immutable.
typedef struct assay_verification assay_verification_t;

typedef struct assay_verify_options {
  size_t struct_size;
  const char* target;     // NULL: that of the certificate
  bool other_fp32;        // fp32 is what follows, not as certified
  assay_fp32_t fp32;      // which kernels fp32 layers may use
  assay_fusion_t fusion;  // TARGET: as certified; of another target as in assay_certify_options_t
  const char* const* passes_off;
  size_t n_passes_off;
  const assay_samples_t* samples;  // as certified; NULL: drawn from the certificate's seed
  assay_engine_t* engine;   // run this one, which was built or loaded, in the place of a target
  const char* engine_name;  // what reports and messages call it; NULL: "the engine"
  bool bits;                // other bits are a change; else only what passes its bounds is
  const char* inject;       // as in assay_certify_options_t
  assay_progress_fn_t* progress;  // NULL: no reports of progress
  void* user;
} assay_verify_options_t;
#define ASSAY_VERIFY_OPTIONS_INIT                                                                \
  {                                                                                              \
    sizeof(assay_verify_options_t), 0, false, ASSAY_FP32_TIGHT, ASSAY_FUSION_TARGET, 0, 0, 0, 0, \
        0, false, 0, 0, 0                                                                        \
  }

// Runs a model that was loaded in the certified shapes (assay_certificate_load_model), and holds
// the run against the certificate, which has to live as long as the result. The result holds a
// reference to the model.
//   options   may be NULL; read during the call only
// Errors:  INVALID_ARGUMENT other shapes than certified, inputs that are needed and missing, bits
//          that cannot be compared, an engine of another precision; others as for making one
// Threads: any
ASSAY_API assay_status_t assay_verification_run(const assay_certificate_t* certificate,
                                                assay_model_t* model,
                                                const assay_verify_options_t* options,
                                                assay_verification_t** out);
ASSAY_API void assay_verification_destroy(assay_verification_t* verification);  // NULL is allowed

// Whether the other run has what the certificate says.
ASSAY_API bool assay_verification_holds(const assay_verification_t* verification);
// Layers that were judged, and values whose truth was compared.
ASSAY_API size_t assay_verification_layer_count(const assay_verification_t* verification);
ASSAY_API size_t assay_verification_value_count(const assay_verification_t* verification);

// What changed. Texts live as long as the result; NULL past the end.
ASSAY_API size_t assay_verification_change_count(const assay_verification_t* verification);
// "model", "inputs", "truth", "fault", "unfinite", "underflow", "error", "drift", "bits",
// "decision".
ASSAY_API const char* assay_verification_change_kind(const assay_verification_t* verification,
                                                     size_t i);
// The first node where it shows; "": it is not of a node.
ASSAY_API const char* assay_verification_change_node(const assay_verification_t* verification,
                                                     size_t i);
ASSAY_API const char* assay_verification_change_why(const assay_verification_t* verification,
                                                    size_t i);
// Whether the certificate holds all the same; whether it is what explains the others.
ASSAY_API bool assay_verification_change_is_note(const assay_verification_t* verification,
                                                 size_t i);
ASSAY_API bool assay_verification_change_is_cause(const assay_verification_t* verification,
                                                  size_t i);

// ---- reports ------------------------------------------------------------------------------------

// TEXT: at most 15 lines each. JSON: "assay.certify/1" and "assay.certify.verify/1". They have no
// options. Errors: as in report.h
ASSAY_API assay_status_t assay_certificate_report(const assay_certificate_t* certificate,
                                                  assay_report_kind_t kind,
                                                  assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_certificate_write_report(const assay_certificate_t* certificate,
                                                        assay_report_kind_t kind, const char* path);
ASSAY_API assay_status_t assay_verification_report(const assay_verification_t* verification,
                                                   assay_report_kind_t kind,
                                                   assay_report_fn_t* write, void* user);
ASSAY_API assay_status_t assay_verification_write_report(const assay_verification_t* verification,
                                                         assay_report_kind_t kind,
                                                         const char* path);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_CERTIFY_H_
