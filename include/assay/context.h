// Contexts: runs of an engine. Each has memory of its own; weights are the engine's.
//
// A run reads its inputs and writes its outputs where the caller has them. Copies are made of
//   inputs   that do not lie at a multiple of their element's size; that an emulated layer reads;
//            that no kernel takes in the type and layout they have (a bf16 layer reads float32)
//   outputs  that do not lie at a multiple of their element's size; that an emulated layer, or none
//            (an input or a constant that is an output) makes; whose memory overlaps an input's;
//            on target emu all of them. See assay_context_output_copied().
#ifndef ASSAY_CONTEXT_H_
#define ASSAY_CONTEXT_H_

#include <assay/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct assay_context assay_context_t;  // one owner

// What a tap sees of a layer, valid during the call. Inside the bodies of If, Loop and Scan it is
// called for each run of each node. Values that a fused layer keeps to itself are not seen.
typedef struct assay_layer_values {
  size_t struct_size;
  const char* layer;   // its name
  const char* op;      // the type of its first node, such as "Conv"
  uint64_t iteration;  // of the loops around it; 0: none
  size_t n_inputs, n_outputs;
  const char* const* input_names;
  assay_tensor_t* const* inputs;  // read only; retain what is kept
  const char* const* output_names;
  assay_tensor_t* const* outputs;  // read only; retain what is kept
} assay_layer_values_t;

// A failure (assay_status_create) ends the run with it.
typedef assay_status_t assay_tap_fn_t(void* user, const assay_layer_values_t* values);

// When a context takes the memory for values between layers and for scratch.
typedef enum assay_allocation {
  ASSAY_ALLOCATE_RUNTIME = 0,  // when a run needs it; it grows with the shapes that come
  ASSAY_ALLOCATE_STATIC,       // when it is created, for the largest shapes of all profiles
  ASSAY_ALLOCATE_PROFILE,      // when it is created, for the largest shapes of one profile
} assay_allocation_t;

typedef struct assay_context_options {
  size_t struct_size;
  int threads;          // that a run uses; 0: as many as the thread that creates the context would
  bool profile;         // take each layer's time: assay_context_layer()
  assay_tap_fn_t* tap;  // called after each layer, in the thread that runs; NULL: none
  void* tap_user;
  // STATIC and PROFILE run the engine with made-up inputs when the context is created, without the
  // tap. Where inputs are none that can be made up, or have open sizes without a range, and where a
  // run needs more all the same, it is as with RUNTIME.
  assay_allocation_t allocation;
  int allocation_profile;  // PROFILE: its number
  bool times;              // take the parts of each run's time: assay_context_times()
} assay_context_options_t;
#define ASSAY_CONTEXT_OPTIONS_INIT \
  { sizeof(assay_context_options_t), 0, false, 0, 0, ASSAY_ALLOCATE_RUNTIME, 0, false }

// options may be NULL. The context holds a reference to the engine.
// Threads: any; contexts of one engine run side by side. Of one context, only
// assay_context_cancel() may be called while another call to it is going on.
ASSAY_API assay_status_t assay_context_create(assay_engine_t* engine,
                                              const assay_context_options_t* options,
                                              assay_context_t** out);
// Bytes that the context has taken so far for values between layers and for scratch; 0: none, or
// the target does not tell. Between runs.
ASSAY_API size_t assay_context_memory(const assay_context_t* context);
// Cancels a run that is under way and waits for its end. NULL is allowed.
ASSAY_API void assay_context_destroy(assay_context_t* context);

// ---- inputs and outputs; between runs -----------------------------------------------------------

// Input i (of assay_engine_input) is read from `data`, in every run until it is bound again: a
// tensor of this type and shape, elements as in ONNX's raw_data. The memory is borrowed; it may
// change between runs, not during one. The shape sets the sizes that the model leaves open.
//   bytes   exactly what the shape takes
// Errors: INVALID_ARGUMENT no such input; another type, rank or size than the engine is for;
// the wrong number of bytes; a run is under way
ASSAY_API assay_status_t assay_context_bind_input(assay_context_t* context, size_t i,
                                                  assay_type_t type, int rank, const int64_t* dims,
                                                  const void* data, size_t bytes);
// The same from a tensor, which is retained: for strings, sequences and the like. NULL unbinds.
ASSAY_API assay_status_t assay_context_set_input(assay_context_t* context, size_t i,
                                                 assay_tensor_t* tensor);
// Output i is written to `data`, as in raw_data, in every run until it is bound again. A run whose
// output takes more than `bytes` fails with INVALID_ARGUMENT. NULL unbinds: the output gets memory
// of its own. Memory of several outputs must not overlap; that of an input may.
ASSAY_API assay_status_t assay_context_bind_output(assay_context_t* context, size_t i, void* data,
                                                   size_t bytes);
// Output i of the last run; NULL: none (an optional output that was left empty, a run that
// failed). One reference goes to the caller. Of a bound output: a view of the bound memory, valid
// as long as that is.
ASSAY_API assay_tensor_t* assay_context_output(assay_context_t* context, size_t i);
// The shape of output i of the last run; out_dims has room for its dimensions (32 are enough for
// any). Errors: INVALID_ARGUMENT no such output; NOT_FOUND no run has made it, or it is not a
// tensor.
ASSAY_API assay_status_t assay_context_output_shape(assay_context_t* context, size_t i,
                                                    int* out_rank, int64_t* out_dims);
// Whether the last run made bound output i elsewhere and copied it.
ASSAY_API bool assay_context_output_copied(const assay_context_t* context, size_t i);

// ---- states: values that live across runs; between runs -----------------------------------------

// Makes a state of an input and an output, by their names: what a run makes of the output is what
// the next run reads as the input, in memory of the context. Caches of keys and values grow along
// one dimension, the one in which the output's shape differs from the input's; recurrent states
// keep their shape.
//   capacity   elements along the dimension that grows; 0: the state does not grow
// Before the first run, and after a reset, a state that grows is empty, another one is zeros; open
// sizes are those of the bound inputs. A run that fails leaves all states as they were; one that
// would make more than the capacity fails with INVALID_ARGUMENT before it begins, where the model
// tells, else when it has been made. assay_context_output() of the output is a copy of the state,
// or a view that is valid until the next run.
// A dimension that grows counts as assay_context_grow() has it.
// Errors: NOT_FOUND no such input or output; INVALID_ARGUMENT types or shapes that do not go
// together, or one of them is part of a state already; a run is under way; NO_MEMORY
ASSAY_API assay_status_t assay_context_bind_state(assay_context_t* context, const char* input,
                                                  const char* output, int64_t capacity);
// Ends the state: its input has to be bound again.
// Errors: NOT_FOUND no such input, or it belongs to no state; INVALID_ARGUMENT a run is under way
ASSAY_API assay_status_t assay_context_unbind_state(assay_context_t* context, const char* input);
// All states begin anew. Errors: INVALID_ARGUMENT a run is under way
ASSAY_API assay_status_t assay_context_reset_states(assay_context_t* context);
// The value that the next run reads: a copy, of which one reference goes to the caller.
// Errors: NOT_FOUND no such state, or it has no value before the first run; INVALID_ARGUMENT a run
// is under way; NO_MEMORY
ASSAY_API assay_status_t assay_context_state(assay_context_t* context, const char* input,
                                             assay_tensor_t** out);
// Gives a state the value that the next run reads; copied. A shorter one takes back what the last
// runs have appended.
// Errors: NOT_FOUND; INVALID_ARGUMENT another type or shape, more than the capacity, a run is under
// way; NO_MEMORY
ASSAY_API assay_status_t assay_context_set_state(assay_context_t* context, const char* input,
                                                 assay_tensor_t* tensor);
// An open dimension of inputs, by its name, grows from run to run, up to a capacity. What is
// prepared for one of its sizes is given the others: kernels are made once, and memory between
// layers is planned for the capacity. Larger sizes run as well, but each is prepared separately.
//   capacity   0: the largest size that the engine's profiles have for the dimension
// Results are those of a context whose first run has that size; tactics whose kernels can be given
// other sizes come first where sizes of activations grow (docs/adr/0022-growing-extents.md).
// Errors: NOT_FOUND no input has that dimension; INVALID_ARGUMENT a capacity below 0, or 0 where no
// profile has a range for it; NO_MEMORY
ASSAY_API assay_status_t assay_context_grow(assay_context_t* context, const char* dimension,
                                            int64_t capacity);
// How many kernels the context has made so far, for whatever sizes: where it stays the same, no run
// prepares anything. 0: the target makes none.
ASSAY_API size_t assay_context_kernels_made(const assay_context_t* context);

// ---- inputs and outputs in the memory of the engine's device; between runs ----------------------

// As assay_context_bind_input() and assay_context_bind_output(), with an address on the device
// (CUDA: a CUdeviceptr). Inputs that kernels read are read where they lie, and outputs that kernels
// make are made there; at an address that is not a multiple of 256 they are copied on the device. A
// run needs the memory from its start to its end: what else is done to it on the device has to have
// ended before, or the context's stream has to wait for it. assay_context_output() gives nothing
// for such an output, but there is its shape. Address 0 unbinds an output. Errors: as there;
// UNSUPPORTED the engine's target has no memory of its own
ASSAY_API assay_status_t assay_context_bind_input_on_device(assay_context_t* context, size_t i,
                                                            assay_type_t type, int rank,
                                                            const int64_t* dims, uint64_t address,
                                                            size_t bytes);
ASSAY_API assay_status_t assay_context_bind_output_on_device(assay_context_t* context, size_t i,
                                                             uint64_t address, size_t bytes);
// The stream of the device in which the context's runs are (CUDA: a CUstream, made with
// CU_STREAM_NON_BLOCKING, as a number). What another package still does to bound memory in a stream
// of its own comes before the next run if this one is made to wait for it (cuStreamWaitEvent;
// DLPack: array.__dlpack__(stream=...)). A run has ended in it when assay_context_run(), or
// assay_context_wait(), returns. It is the context's: neither to be destroyed nor to be captured.
//   out_device   the device's number, 1 for "cuda:1"; may be NULL
// Errors: UNSUPPORTED the engine's target has no device whose streams others know
ASSAY_API assay_status_t assay_context_stream(const assay_context_t* context, uint64_t* out,
                                              int* out_device);

// ---- running ------------------------------------------------------------------------------------

// Runs once, in this thread (and those that its layers use).
// Errors:  INVALID_ARGUMENT inputs that are not bound, or that do not fit each other; outputs with
//          too little room; a run is under way; CANCELLED; UNSUPPORTED; NO_MEMORY; what the tap
//          returns. The context can run again after each of them
ASSAY_API assay_status_t assay_context_run(assay_context_t* context);
// Starts a run in the context's own thread, which is made with the first one. What is bound must
// stay until it has ended; the next call to start or run it is after assay_context_wait().
// Errors: INVALID_ARGUMENT a run is under way, or was not waited for; NO_MEMORY, DEVICE no thread
ASSAY_API assay_status_t assay_context_start(assay_context_t* context);
// Waits for the run that was started and returns how it ended: OK, or what assay_context_run()
// would have returned. INVALID_ARGUMENT: none was started.
ASSAY_API assay_status_t assay_context_wait(assay_context_t* context);
// Waits that long at most; whether the run has ended, so that assay_context_wait() returns at once.
// 0 polls. True also where none was started.
ASSAY_API bool assay_context_wait_for(assay_context_t* context, int64_t milliseconds);
// Asks the run that is under way to end: before its next layer, or within a long one
// (assay/cancel.h), it does, with CANCELLED. Without a run nothing happens.
// Threads: any, at any time while the context lives
ASSAY_API void assay_context_cancel(assay_context_t* context);

// ---- what ran -----------------------------------------------------------------------------------

typedef struct assay_layer_run {
  size_t struct_size;
  const char* name;
  const char* op;         // the type of its first node, such as "Conv"
  const char* tactic;     // what ran it: "onednn_conv", "emu"
  assay_format_t format;  // what its float32 values are stored in
  int64_t start_ns;       // since the run began, if the context profiles; else 0
  int64_t duration_ns;    // on a device, by its events; 0: it was not run, or no profile
} assay_layer_run_t;
#define ASSAY_LAYER_RUN_INIT \
  { sizeof(assay_layer_run_t), 0, 0, 0, ASSAY_FORMAT_NONE, 0, 0 }

// The parts of a run's time, in microseconds: on a device by its events, so that compute is what
// its kernels took, waits between them included; on the host all is compute.
typedef struct assay_run_times {
  size_t struct_size;
  double enqueue;  // of the calling thread, until all was in the device's queue
  double upload;   // copying to the device
  double compute;
  double download;  // copying from it
} assay_run_times_t;
#define ASSAY_RUN_TIMES_INIT \
  { sizeof(assay_run_times_t), 0, 0, 0, 0 }

// Those of the last run; all 0 if it failed, or the context does not take times.
// out->struct_size says how much of it there is room for. Errors: INVALID_ARGUMENT a run is under
// way
ASSAY_API assay_status_t assay_context_times(assay_context_t* context, assay_run_times_t* out);

// Layers of the engine, which assay_context_layer() gives one by one.
ASSAY_API size_t assay_context_layer_count(const assay_context_t* context);
// Layer i in the last run. out->struct_size says how much of it there is room for. Text lives as
// long as the engine.
// Errors: INVALID_ARGUMENT no such layer; a run is under way
ASSAY_API assay_status_t assay_context_layer(assay_context_t* context, size_t i,
                                             assay_layer_run_t* out);

#ifdef __cplusplus
}
#endif
#endif  // ASSAY_CONTEXT_H_
