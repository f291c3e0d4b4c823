// What a backend is: something that runs the layers of a plan.
#ifndef ASSAY_EXEC_BACKEND_H_
#define ASSAY_EXEC_BACKEND_H_

#include "base/str.h"
#include "exec/choice/accuracy_gate.h"
#include "exec/choice/tactic_runs.h"
#include "exec/device.h"
#include "ops/bound.h"
#include "ops/op.h"
#include "plan/layers.h"

struct assay_sizes;      // exec/segment/sizes.h
struct assay_growth;     // there, too
struct assay_append;     // exec/append.h
struct assay_run_times;  // <assay/context.h>

// Reads a layer's inputs before it starts and its outputs when it has ended, changing nothing. For
// a node inside a body (If, Loop, Scan) it is called for each run of the body. Of a layer of
// several nodes, `node` is the last one, and `in` holds the inputs of all of them, one after the
// other, with NULL for hidden ones. Tensors are borrowed.
// `iteration` is that of the loops around the node (assay_random_iteration): random operators draw
// by it.
typedef struct assay_tap {
  assay_status_t (*layer)(void* user, const assay_layer_t* layer, const assay_node_t* node,
                          uint64_t iteration, size_t n_in, assay_tensor_t* const* in, size_t n_out,
                          assay_tensor_t* const* out);
  void* user;
} assay_tap_t;

typedef struct assay_backend_options {
  const char* tactic_sources;  // names with ',' between; '-NAME': not this tactic; NULL: all
  const char* timings;         // a timing cache's text; of another machine: not read. NULL: none
  size_t timings_bytes;
  bool measure;  // time the tactics that compete for a layer, where the cache does not know them
  bool batch_variant;  // all that take a layer compete, not only those that give the same bits
  int device;          // of several: its number (assay_backend_share)
  int max_tactics;     // so many of a layer are timed at most, the first ones; 0: all
  // These tactics for these layers where they take them, whatever the times and the sources: lines
  // "TACTIC LAYER". NULL: none.
  const char* forced;
  int timing_runs;  // a time is the mean of so many runs; 0: the fastest of some
  // Kernels that need more bytes of scratch are passed by where another one takes the layer, and
  // where none does the one that needs least is taken; 0: no limit.
  uint64_t max_scratch;
} assay_backend_options_t;

// A tensor in a device's memory, borrowed: row-major, as in raw_data.
typedef struct assay_device_view {
  assay_type_t type;
  int rank;
  const int64_t* dims;
  assay_device_ptr_t at;
  size_t bytes;
} assay_device_view_t;

typedef struct assay_backend {
  const char* name;  // "emu"
  // It stands for hardware that is not here: plans made for it are about the model's own values, so
  // that layers are not fused unless that is asked for.
  bool emulates;
  // Hardware whose arithmetic it can have: the names of targets, "NAME:HARDWARE", NULL after the
  // last one; NULL: none. Such a target is this row with that name and its place, from 1 on, as
  // `device`, and plans for it are those that engines are built with.
  const char* const* likes;
  bool is_like;  // it is one of these
  // An engine that is not ours: what it gives may have any shape, and control nodes are run as a
  // whole, without taps in their bodies.
  bool external;
  // It takes constants of float32 that lie in 16 bits (ASSAY_STORE_NARROW), which plan files hold
  // where the layers round them to these anyway.
  bool narrow_constants;
  // What all states of the same layers share, such as packed weights. NULL: nothing is shared. The
  // states are closed before it. Threads: states that share may run at the same time.
  // options may be NULL. Errors: INVALID_ARGUMENT, CORRUPT in the options.
  assay_status_t (*share)(const assay_layers_t* layers, const assay_backend_options_t* options,
                          void** out_shared);
  void (*unshare)(void* shared);
  // What of it is worth keeping in a plan file: entry i, *out_key NULL after the last one; and the
  // way back, from bytes that outlive it. Between runs only. NULL with share.
  assay_status_t (*saved)(void* shared, size_t i, const char** out_key, const void** out_data,
                          size_t* out_bytes);
  assay_status_t (*restore)(void* shared, const char* key, const void* data, size_t bytes);
  // The timings that were looked up and measured, as text; *out_measured: some were measured now.
  // What is shared holds then more than runs need: share again with these. NULL: there are none.
  assay_status_t (*timings)(void* shared, assay_str_t* out, bool* out_measured);
  void (*freeze)(void* shared);  // nothing is timed from now on. NULL with timings
  // A target with devices of its own: what is asked for them, and which one of them this is
  // (targets.h). NULL: the host.
  const struct assay_device_driver* driver;
  int device;
  // Of the host: what it is made for, besides the plan: libraries, their versions, instruction
  // sets. NULL: nothing. See assay_backend_describe().
  void (*describe)(assay_str_t* out);
  // shared: from `share`; NULL: the state's own. tap may be NULL. *out_state is closed with close.
  assay_status_t (*open)(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                         void** out_state);
  // With a share of its own, on this device. NULL: it has none.
  assay_status_t (*open_on)(const assay_layers_t* layers, int device, const assay_tap_t* tap,
                            void** out_state);
  void (*close)(void* state);
  // Sets a graph input; retained.
  assay_status_t (*set)(void* state, const assay_value_t* value, assay_tensor_t* t);
  // The value as the backend has it now: canonical, float32 values as they are stored; NULL: none.
  assay_tensor_t* (*get)(void* state, const assay_value_t* value);
  // Where the caller wants a graph output: `bytes` bytes at a multiple of its element's size. In
  // runs from now on the backend writes the output there where it can and it fits. data NULL:
  // nowhere any more. NULL: the caller copies what it gets.
  void (*bind)(void* state, const assay_value_t* value, void* data, size_t bytes);
  // From now on a dimension grows from run to run: what is prepared for one size is prepared for
  // all. Copied; again: another capacity. NULL: nothing is prepared for sizes.
  assay_status_t (*grow)(void* state, const struct assay_growth* growth);
  // From now on a value grows in place, where the layers that use it can do so; not on: no longer.
  // It is borrowed, and says after a run whether that appended. NULL: none ever does.
  assay_status_t (*append)(void* state, struct assay_append* a, bool on);
  // How many kernels have been made so far, for whatever sizes. NULL: none ever is.
  size_t (*made)(void* state);
  // `set` and `bind` in the memory of the backend's device: a graph input, for this run, which is
  // read where it lies; where the caller wants a graph output in runs from now on (at 0: nowhere
  // there). NULL: it has no device. Errors: INVALID_ARGUMENT.
  assay_status_t (*set_on_device)(void* state, const assay_value_t* value,
                                  const assay_device_view_t* view);
  assay_status_t (*bind_on_device)(void* state, const assay_value_t* value, assay_device_ptr_t at,
                                   size_t bytes);
  // The queue of its device in which runs are, as other libraries know it (device.h); 0: they do
  // not. NULL: it has no device.
  uint64_t (*stream)(void* state);
  // After the last step: sees to it that such an output is where it is wanted, and tells its shape
  // (room for ASSAY_MAX_RANK dimensions). Errors: INVALID_ARGUMENT it does not fit there.
  assay_status_t (*deliver)(void* state, const assay_value_t* value, int* out_rank,
                            int64_t* out_dims);
  // The value in its declared type as in raw_data, borrowed; *out NULL: there is none, or it is no
  // tensor of numbers. NULL: what `get` gives is packed.
  assay_status_t (*packed)(void* state, const assay_value_t* value, assay_tensor_t** out);
  // Runs layer i of the top graph, or sees to it that it runs: what is asked of the backend waits
  // for it, as does the step of the last layer. A failure may be that of a layer before, which the
  // message names.
  assay_status_t (*step)(void* state, size_t i);
  // Whether each step waits until its layer has run, so that it can be timed. NULL: always.
  void (*stepwise)(void* state, bool on);
  // From now on runs are timed by events of the device; and what a run took so far, of which all
  // that was asked for has been waited for. NULL: the caller's clock tells.
  void (*timed)(void* state, bool on);
  assay_status_t (*times)(void* state, struct assay_run_times* out);
  void (*reset)(void* state);
  // What ran layer i of the top graph when it was last run: "onednn_conv", "emu"; "sizes": nothing
  // did, as its contents follow from sizes. NULL: only one way.
  const char* (*tactic)(void* state, size_t i);
  // The format of the float operands that layer i's arithmetic took in the last run; NONE: it has
  // none. NULL: the layer's, always.
  assay_format_t (*executed)(void* state, size_t i);
  // How the tactic of layer i was chosen in the last run: lines for people. NULL: nothing to say.
  void (*explain)(void* state, size_t i, assay_str_t* out);
  // What the tactic that ran layer i asked before it took it; NULL: it has no accuracy gate. NULL:
  // none ever has.
  const assay_accuracy_gate_t* (*gate)(void* state, size_t i);
  // Bytes that a run takes beside inputs, outputs and what is shared, as planned for the last run.
  // NULL: not known.
  size_t (*planned)(void* state);
  // Bytes of scratch that the kernel needs that ran layer i in the last run. NULL: not known.
  size_t (*scratch)(void* state, size_t i);
  // Runs layer i of the top graph by each tactic that takes it, whatever would be chosen, on inputs
  // as a tap sees them; sizes: of what the run holds. timed: with how long each took. No state is
  // needed. NULL: there is only one way.
  assay_status_t (*each_tactic)(const assay_layers_t* layers, size_t i,
                                const struct assay_sizes* sizes, assay_tensor_t* const* in,
                                bool timed, assay_tactic_runs_t* out);
  // How it rounds inside a node of a layer that is given these inputs.
  void (*rounding)(void* state, const assay_layer_t* layer, size_t n_in, assay_tensor_t* const* in,
                   assay_rounding_t* out);
} assay_backend_t;

extern const assay_backend_t assay_backend_emu;
extern const assay_backend_t assay_backend_cpu;
// For plans made of recorded values only; not found by name.
extern const assay_backend_t assay_backend_recorded;
// The backend of a target's name (exec/targets.h); NULL if there is none.
const assay_backend_t* assay_backend_find(const char* name);

// Its rows, for the device that it is of.
assay_status_t assay_backend_share(const assay_backend_t* b, const assay_layers_t* layers,
                                   const assay_backend_options_t* options,
                                   void** out_shared) ASSAY_MUST_USE;
assay_status_t assay_backend_open(const assay_backend_t* b, const assay_layers_t* layers,
                                  void* shared, const assay_tap_t* tap,
                                  void** out_state) ASSAY_MUST_USE;
// What times and numbers depend on besides the plan; and what a plan file needs: one with anything
// else in it is refused. One line each. Errors: DEVICE there is none
void assay_backend_describe(const assay_backend_t* b, assay_str_t* out);
assay_status_t assay_backend_describe_need(const assay_backend_t* b,
                                           assay_str_t* out) ASSAY_MUST_USE;

// Whether a step that this tactic ran was the emulated engine's: no kernel took its layer.
bool assay_tactic_is_emulated(const char* tactic);

// Sets the inputs of the graph, in their order and made canonical; NULL: left out.
assay_status_t assay_backend_set_inputs(const assay_backend_t* backend, void* state,
                                        const assay_graph_t* graph,
                                        assay_tensor_t* const* inputs) ASSAY_MUST_USE;
// A value that the steps have made, as `get` gives it; *out NULL: the model leaves it empty.
// Errors: NO_MEMORY there is none to make it canonical (`get` gives NULL then, too)
assay_status_t assay_backend_output(const assay_backend_t* backend, void* state,
                                    const assay_value_t* value,
                                    assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_EXEC_BACKEND_H_
