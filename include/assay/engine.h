// Engines: a model compiled for a target, with weights that all of its contexts share.
#ifndef ASSAY_ENGINE_H_
#define ASSAY_ENGINE_H_

#include <assay/model.h>
#include <assay/tensor.h>
#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_engine assay_engine_t;  // counted, immutable but for what runs make of weights

// The shape of an input: rank dims; -1 keeps what the model declares. Or a range: sizes from min to
// max can be run, and kernels are chosen for dims. A range of an input that has one already belongs
// to the engine's next profile: a run fits one profile with all of its inputs.
typedef struct assay_engine_shape {
  const char* input;
  int rank;
  const int64_t* dims;
  const int64_t *min, *max;  // NULL: no range; else rank of them, 1 <= min <= dims <= max
} assay_engine_shape_t;

typedef struct assay_engine_options {
  size_t struct_size;
  const char* target;           // a name that assay_target_name gives; NULL: "cpu". See there
  assay_format_t precision;     // of float32 values; NONE: as declared; INT8: of a model that
                                // quantizes, as declared
  assay_format_t accumulator;   // what sums are kept in; NONE: the precision's own
  const char* layer_precision;  // "PATTERN:FORMAT,..." on names of nodes and outputs; NULL: none
  const assay_engine_shape_t* shapes;
  size_t n_shapes;
  int64_t batch;  // leading dimension of inputs that leave it open; other open ones are 1; 0: all
                  // stay open
  const char* tactic_sources;  // "assay,onednn": kernels of these sources only; NULL: all
  const char* timing_cache;    // a file that is read, if it is there, and that gets what is
                               // measured; NULL: none
  bool measure;                // time the kernels that compete for a layer, with a cache or without
  bool strict;                 // fail where a layer would not run in the format asked for
  assay_fusion_t fusion;       // TARGET: on
  uint64_t seed;               // of random operators
  bool batch_variant;  // measured: the fastest of all kernels, though bits then depend on the
                       // batch and on what was measured; else only kernels of the same bits
                       // compete
  assay_fp32_t fp32;   // which kernels fp32 layers may use; 0: tight
  bool strip_weights;  // assay_engine_save() leaves the elements of weights out
  bool refittable;     // with strip_weights: other weights may take their place; without, every
                       // engine takes others
} assay_engine_options_t;
#define ASSAY_ENGINE_OPTIONS_INIT                                                              \
  {                                                                                            \
    sizeof(assay_engine_options_t), 0, ASSAY_FORMAT_NONE, ASSAY_FORMAT_NONE, 0, 0, 0, 0, 0, 0, \
        false, false, ASSAY_FUSION_TARGET, 0, false, ASSAY_FP32_TIGHT, false, false            \
  }

// The targets of this library: the name of number i, which lives as long as the library, and in
// a short description; NULL after the last.
// Where a target has devices of its own, a number behind the name says which one ("cuda:1"; the
// name alone: device 0). "auto" is the first target with such a device that can be used here, and
// "cpu" where there is none. Both can stand wherever a target is asked for.
ASSAY_API const char* assay_target_name(size_t i);
ASSAY_API const char* assay_target_description(size_t i);
// Whether this is a target that runs on this machine as it will be deployed, so that times measured
// here are its own; false of one that stands for other hardware, of NULL and of an unknown name.
ASSAY_API bool assay_target_is_here(const char* name);

// Compiles a model. options may be NULL; what they point at is read during the call only. The
// model is not changed and may be released afterwards. Dimensions that stay open get their sizes
// from the tensors that a run is given. Where all sizes or their ranges are known, and where
// kernels are measured or held to `strict`, the model is run with made-up inputs (for the ends of
// ranges, and for what is best; open sizes being 1), so that weights are packed when this returns;
// else, and where made-up values are not what the model takes (a shape of zeros), that is done in
// the first run.
// Errors:  INVALID_ARGUMENT unknown target or source, shape that does not fit, format that is no
//          float; NOT_FOUND a pattern that matches nothing; CORRUPT a timing cache that is none;
//          UNSUPPORTED a layer that fails `strict`, INT8 of a model without quantizers; NO_MEMORY
// Threads: any; kernels are timed, so nothing else should run beside it where they are measured
ASSAY_API assay_status_t assay_engine_build(assay_model_t* model,
                                            const assay_engine_options_t* options,
                                            assay_engine_t** out);
// Whether a file begins as plan files do: assay_engine_load() is for it. False also where there is
// no such file.
ASSAY_API bool assay_engine_is_plan_file(const char* path);
// Reads a plan file. The file stays mapped and must not change while the engine lives.
// Errors: NOT_FOUND; CORRUPT not a whole plan file; UNSUPPORTED made by another version, or for
// another machine
ASSAY_API assay_status_t assay_engine_load(const char* path, assay_engine_t** out);
// The same on one of several devices: target is that of the plan, with the device's number
// ("cuda:1"); NULL: as assay_engine_load(), on device 0. Errors: also INVALID_ARGUMENT the plan is
// for another target
ASSAY_API assay_status_t assay_engine_load_on(const char* path, const char* target,
                                              assay_engine_t** out);
// Writes a plan file, with what runs have made so far of the weights. Readers of the path see the
// old file or the new one. Of an engine that was built with strip_weights, or loaded without its
// weights, the file has of each weight its name, type, shape and digest only.
// Threads: no context of the engine may run meanwhile
ASSAY_API assay_status_t assay_engine_save(const assay_engine_t* engine, const char* path);
// How many weights a loaded engine has not, and how many bytes they take (out_bytes may be NULL);
// 0: it has all. An engine that misses weights can be looked at, saved and refitted;
// assay_context_create() fails with UNSUPPORTED.
ASSAY_API size_t assay_engine_missing_weights(const assay_engine_t* engine, uint64_t* out_bytes);

// An engine like this one with other weights, made without choosing tactics again: what a build of
// the new model by the same times would give, to the last bit. weights: the same model with other
// elements of its initializers and Constant nodes; anything else must be the same. The old engine
// stays as it is. An engine that misses weights needs all of those; unless it was built refittable
// they must be, by their digests, those that it was built with.
// Errors:  INVALID_ARGUMENT another model, other shapes or types, or a weight that is part of how
// the
//          model was compiled (sizes, constants of patterns), by its name
// Threads: no context of the engine may run meanwhile
ASSAY_API assay_status_t assay_engine_refit(const assay_engine_t* engine,
                                            const assay_model_t* weights, assay_engine_t** out);
// The same with n weights by name; those that are not named stay. Errors: NOT_FOUND unknown names,
// too
ASSAY_API assay_status_t assay_engine_refit_tensors(const assay_engine_t* engine, size_t n,
                                                    const char* const* names,
                                                    assay_tensor_t* const* tensors,
                                                    assay_engine_t** out);

// The model that an engine runs, in the sizes and with the names of its inputs and outputs: for
// samples of them. One reference goes to the caller.
ASSAY_API assay_model_t* assay_engine_model(const assay_engine_t* engine);
ASSAY_API assay_engine_t* assay_engine_retain(assay_engine_t* engine);  // NULL is allowed
ASSAY_API void assay_engine_release(assay_engine_t* engine);            // NULL is allowed

// ---- inputs and outputs -------------------------------------------------------------------------

// An input or an output: borrowed, valid while the engine lives.
typedef struct assay_value assay_io_t;

// Inputs that have no initializer, and outputs, in the model's order; NULL past the end.
ASSAY_API size_t assay_engine_input_count(const assay_engine_t* engine);
ASSAY_API const assay_io_t* assay_engine_input(const assay_engine_t* engine, size_t i);
ASSAY_API size_t assay_engine_output_count(const assay_engine_t* engine);
ASSAY_API const assay_io_t* assay_engine_output(const assay_engine_t* engine, size_t i);
// The place of a name among the inputs (or outputs). Errors: NOT_FOUND.
ASSAY_API assay_status_t assay_engine_find_input(const assay_engine_t* engine, const char* name,
                                                 size_t* out);
ASSAY_API assay_status_t assay_engine_find_output(const assay_engine_t* engine, const char* name,
                                                  size_t* out);

// What one profile says of an input: rank numbers each, min <= best <= max. Of an input that holds
// a shape they are its elements and not its sizes (values).
typedef struct assay_engine_range {
  size_t struct_size;
  bool values;
  int rank;
  int64_t min[8], best[8], max[8];
} assay_engine_range_t;
#define ASSAY_ENGINE_RANGE_INIT                             \
  {                                                         \
    sizeof(assay_engine_range_t), false, 0, {0}, {0}, { 0 } \
  }

// How many profiles an engine has; 0: it was built without ranges, and runs all sizes that the
// model's inputs leave open.
ASSAY_API size_t assay_engine_profile_count(const assay_engine_t* engine);
// What profile number `profile` says of input i. out->struct_size says how much of it there is room
// for. Errors: INVALID_ARGUMENT no such profile or input, or too little room; NOT_FOUND the
// profiles say nothing of that input
ASSAY_API assay_status_t assay_engine_profile_range(const assay_engine_t* engine, size_t profile,
                                                    size_t i, assay_engine_range_t* out);

// What an input or an output of an engine is, as the model declares it.
ASSAY_API const char* assay_io_name(const assay_io_t* io);
ASSAY_API assay_kind_t assay_io_kind(const assay_io_t* io);
// Of the elements; UNDEFINED if the value is not a tensor.
ASSAY_API assay_type_t assay_io_elem(const assay_io_t* io);
// -1: not known, or no tensor.
ASSAY_API int assay_io_rank(const assay_io_t* io);
// Dimension d; -1: dynamic, or d is out of range.
ASSAY_API int64_t assay_io_dim(const assay_io_t* io, int d);
// The name of dimension d; NULL: it is not open, or has none.
ASSAY_API const char* assay_io_dim_name(const assay_io_t* io, int d);
// As text, such as "float[N, 3, 224, 224]"; cut off at capacity. Returns out_text.
ASSAY_API const char* assay_io_type(const assay_io_t* io, char* out_text, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_ENGINE_H_
