// Something that runs a model: the evaluator, or a plan on a backend. One interface for both.
#ifndef ASSAY_RUNTIME_EXECUTOR_H_
#define ASSAY_RUNTIME_EXECUTOR_H_

#include "eval/evaluator.h"
#include "exec/backend.h"
#include "runtime/engine.h"

typedef struct assay_executor assay_executor_t;

// The evaluator over a prepared model, which must outlive the executor.
assay_status_t assay_executor_evaluate(const assay_model_t* model,
                                       const assay_evaluator_config_t* config,
                                       assay_executor_t** out) ASSAY_MUST_USE;
// A plan on a backend; tap may be NULL. The plan must outlive the executor.
assay_status_t assay_executor_run_plan(const assay_plan_t* plan, const assay_backend_t* backend,
                                       const assay_tap_t* tap,
                                       assay_executor_t** out) ASSAY_MUST_USE;
// The same with what the engine's executors share; the engine is retained.
assay_status_t assay_executor_run_engine(assay_engine_t* engine, const assay_tap_t* tap,
                                         assay_executor_t** out) ASSAY_MUST_USE;
void assay_executor_destroy(assay_executor_t* e);  // NULL is allowed

// The graph that runs: of a fused plan, the rewritten one. Its inputs and outputs are the model's,
// in their order.
const assay_graph_t* assay_executor_graph(const assay_executor_t* e);
// Empties all values; then the inputs are set (retained), then every step is run, in order.
void assay_executor_reset(assay_executor_t* e);
assay_status_t assay_executor_set(assay_executor_t* e, const assay_value_t* v,
                                  assay_tensor_t* t) ASSAY_MUST_USE;
// All of the graph's, in their order; NULL: left out.
assay_status_t assay_executor_set_inputs(assay_executor_t* e,
                                         assay_tensor_t* const* inputs) ASSAY_MUST_USE;
size_t assay_executor_n_steps(const assay_executor_t* e);
assay_status_t assay_executor_step(assay_executor_t* e, size_t i) ASSAY_MUST_USE;
// What ran step i last; the backend's name where it has but one way.
const char* assay_executor_tactic(const assay_executor_t* e, size_t i);
// The format of the float operands that step i's arithmetic took; NONE: it has none.
assay_format_t assay_executor_executed(const assay_executor_t* e, size_t i);
// Whether a layer computes in its format, of which `executed` is what assay_executor_executed says
// of it. To fp32, narrower values that come from other layers are widened, to the bit.
bool assay_layer_computes(const assay_layers_t* layers, const assay_layer_t* layer,
                          assay_format_t executed);
// How the tactic of step i was chosen: lines for people; nothing where there is no choice.
void assay_executor_explain(const assay_executor_t* e, size_t i, assay_str_t* out);
// Runs are timed by events of a device from now on, and what this run took so far (backend.h):
// *out_known false: the device has no clock of its own.
void assay_executor_timed(assay_executor_t* e, bool on);
assay_status_t assay_executor_times(assay_executor_t* e, struct assay_run_times* out,
                                    bool* out_known) ASSAY_MUST_USE;
// Bytes of scratch that the kernel of step i needed in the last run; 0: none, or not known.
size_t assay_executor_scratch(const assay_executor_t* e, size_t i);
// Bytes that a run takes beside inputs, outputs and weights, as planned for the last one; 0: not
// known.
size_t assay_executor_planned_bytes(const assay_executor_t* e);
assay_status_t assay_executor_run(assay_executor_t* e) ASSAY_MUST_USE;
// The same, with reports of progress; progress may be NULL.
assay_status_t assay_executor_run_progress(assay_executor_t* e, assay_progress_fn_t* progress,
                                           void* user) ASSAY_MUST_USE;
// Where a graph output is wanted, at a multiple of its element's size; NULL: nowhere any more.
// After a reset. What is made elsewhere all the same is up to the caller to copy.
void assay_executor_bind(assay_executor_t* e, const assay_value_t* v, void* data, size_t bytes);
// A dimension grows from run to run (backend.h); and how many kernels were made so far.
assay_status_t assay_executor_grow(assay_executor_t* e,
                                   const struct assay_growth* growth) ASSAY_MUST_USE;
// A value grows in place from now on, or no longer; *out_can false: it cannot on this backend.
assay_status_t assay_executor_append(assay_executor_t* e, struct assay_append* a, bool on,
                                     bool* out_can) ASSAY_MUST_USE;
size_t assay_executor_made(const assay_executor_t* e);
// Whether each step waits until its layer has run, so that it can be timed; else one may only start
// it, and a later step, or what asks for a value, waits. The last step always waits.
void assay_executor_stepwise(assay_executor_t* e, bool on);
// A graph input, and where a graph output is wanted, in the memory of the backend's device
// (backend.h); deliver comes after the run. UNSUPPORTED: it has no device.
assay_status_t assay_executor_set_on_device(assay_executor_t* e, const assay_value_t* v,
                                            const assay_device_view_t* view) ASSAY_MUST_USE;
assay_status_t assay_executor_bind_on_device(assay_executor_t* e, const assay_value_t* v,
                                             assay_device_ptr_t at, size_t bytes) ASSAY_MUST_USE;
// The queue that runs are in, as other libraries know it; 0: they do not, or it has no device.
uint64_t assay_executor_stream(const assay_executor_t* e);
assay_status_t assay_executor_deliver(assay_executor_t* e, const assay_value_t* v, int* out_rank,
                                      int64_t* out_dims) ASSAY_MUST_USE;
// A value as in raw_data, where it is a tensor of numbers; else as it is. One reference goes to the
// caller; NULL: not there.
assay_status_t assay_executor_take(assay_executor_t* e, const assay_value_t* v,
                                   assay_tensor_t** out) ASSAY_MUST_USE;
// Canonical, borrowed; NULL: not there.
assay_tensor_t* assay_executor_get(const assay_executor_t* e, const assay_value_t* v);
// The same; a value that there is no memory to make canonical is an error, not NULL.
assay_status_t assay_executor_output(const assay_executor_t* e, const assay_value_t* v,
                                     assay_tensor_t** out) ASSAY_MUST_USE;

#endif  // ASSAY_RUNTIME_EXECUTOR_H_
