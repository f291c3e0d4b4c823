// Contexts: what is bound, and the thread of their own. How a run goes: context_run.c.
#include <omp.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "runtime/context_internal.h"

// ---- making and ending --------------------------------------------------------------------------

// What a tap sees of one side of a layer: what is there of n tensors, with the values' names.
typedef struct side {
  const char** names;
  assay_tensor_t** tensors;
  size_t n;
} side_t;

static void add(side_t* s, const assay_value_t* v, assay_tensor_t* t) {
  if (!v || !t) return;
  s->names[s->n] = v->name;
  s->tensors[s->n++] = t;
}

static assay_status_t side_create(size_t n, side_t* out) {
  ASSAY_TRY(assay_new_array(n, sizeof *out->names, &out->names));
  return assay_new_array(n, sizeof *out->tensors, &out->tensors);
}

static void side_deinit(side_t* s) {
  assay_free(s->names);
  assay_free(s->tensors);
}

// The inputs of all nodes of the layer, one after the other, or of the last one only.
static void add_inputs(const assay_layer_t* l, const assay_node_t* node, size_t n_in,
                       assay_tensor_t* const* in, side_t* out) {
  size_t n = 0, k = 0;
  for (size_t i = 0; l && i < l->n_nodes; i++) n += l->nodes[i]->n_inputs;
  if (n != n_in || !l) {
    for (size_t j = 0; j < node->n_inputs && j < n_in; j++) add(out, node->inputs[j], in[j]);
    return;
  }
  for (size_t i = 0; i < l->n_nodes; i++)
    for (size_t j = 0; j < l->nodes[i]->n_inputs; j++, k++) add(out, l->nodes[i]->inputs[j], in[k]);
}

static assay_status_t on_layer(void* user, const assay_layer_t* l, const assay_node_t* node,
                               uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                               size_t n_out, assay_tensor_t* const* out) {
  const assay_context_t* c = user;
  side_t read = {0}, made = {0};
  if (c->reserving) return NULL;
  assay_status_t st = side_create(n_in, &read);
  if (!st) st = side_create(n_out, &made);
  if (!st) {
    add_inputs(l, node, n_in, in, &read);
    for (size_t j = 0; j < n_out && j < node->n_outputs; j++) add(&made, node->outputs[j], out[j]);
    const assay_layer_values_t values = {.struct_size = sizeof values,
                                         .layer = l ? l->name : node->label,
                                         .op = l ? l->nodes[0]->op_type : node->op_type,
                                         .iteration = iteration,
                                         .n_inputs = read.n,
                                         .n_outputs = made.n,
                                         .input_names = read.names,
                                         .inputs = read.tensors,
                                         .output_names = made.names,
                                         .outputs = made.tensors};
    st = c->options.tap(c->options.tap_user, &values);
  }
  side_deinit(&read);
  side_deinit(&made);
  return st;
}

static assay_status_t list_values(assay_context_t* c) {
  c->n_inputs = assay_engine_input_count(c->engine);
  c->n_outputs = assay_engine_output_count(c->engine);
  c->n_layers = assay_plan_layers(assay_engine_plan(c->engine))->n_layers;
  ASSAY_TRY(assay_new_array(c->n_inputs, sizeof *c->inputs, &c->inputs));
  ASSAY_TRY(assay_new_array(c->n_outputs, sizeof *c->outputs, &c->outputs));
  ASSAY_TRY(assay_new_array(c->n_layers, sizeof *c->start_ns, &c->start_ns));
  ASSAY_TRY(assay_new_array(c->n_layers, sizeof *c->duration_ns, &c->duration_ns));
  for (size_t i = 0; i < c->n_inputs; i++) c->inputs[i].value = assay_engine_input(c->engine, i);
  for (size_t i = 0; i < c->n_outputs; i++)
    c->outputs[i] = (context_output_t){.value = assay_engine_output(c->engine, i), .rank = -1};
  return NULL;
}

static assay_status_t create_lock(assay_context_t* c) {
  pthread_condattr_t attr;
  if (pthread_mutex_init(&c->lock, NULL) != 0) return assay_status_no_memory();
  bool ok = pthread_condattr_init(&attr) == 0;
  if (ok) {
    ok = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0 &&
         pthread_cond_init(&c->changed, &attr) == 0;
    pthread_condattr_destroy(&attr);
  }
  if (ok) return NULL;
  pthread_mutex_destroy(&c->lock);
  return assay_status_no_memory();
}

static assay_status_t reserve(assay_context_t* c) {
  const assay_context_options_t* o = &c->options;
  if (o->allocation == ASSAY_ALLOCATE_RUNTIME) return NULL;
  if (o->allocation != ASSAY_ALLOCATE_STATIC && o->allocation != ASSAY_ALLOCATE_PROFILE)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "allocation is runtime, static or profile, not %d",
                       (int)o->allocation);
  const bool all = o->allocation == ASSAY_ALLOCATE_STATIC;
  if (!all && o->allocation_profile < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there is no profile %d", o->allocation_profile);
  const int before = omp_get_max_threads();
  omp_set_num_threads(o->threads);
  c->reserving = true;
  assay_status_t st =
      assay_engine_reserve(c->engine, c->executor, all ? -1 : o->allocation_profile);
  c->reserving = false;
  omp_set_num_threads(before);
  return st;
}

size_t assay_context_memory(const assay_context_t* c) {
  return assay_executor_planned_bytes(c->executor);
}

assay_status_t assay_context_create(assay_engine_t* engine, const assay_context_options_t* options,
                                    assay_context_t** out) {
  assay_context_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  const assay_context_options_t defaults = ASSAY_CONTEXT_OPTIONS_INIT;
  c->options = defaults;
  if (options)  // an older caller's struct may be shorter
    memcpy(&c->options, options,
           options->struct_size < sizeof defaults ? options->struct_size : sizeof defaults);
  if (c->options.threads < 0 || c->options.threads > 1024) {
    assay_free(c);
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "a context of %d threads: give 1 to 1024, or 0",
                       options->threads);
  }
  if (!c->options.threads) c->options.threads = omp_get_max_threads();
  assay_status_t st = create_lock(c);
  if (st) return assay_free(c), st;
  c->engine = assay_engine_retain(engine);
  c->tap = (assay_tap_t){.layer = on_layer, .user = c};
  st = list_values(c);
  if (!st) st = assay_executor_run_engine(engine, c->options.tap ? &c->tap : NULL, &c->executor);
  if (!st) assay_executor_stepwise(c->executor, c->options.profile);
  if (!st) assay_executor_timed(c->executor, c->options.profile || c->options.times);
  if (!st) st = reserve(c);
  if (st) return assay_context_destroy(c), st;
  *out = c;
  return NULL;
}

void assay_context_drop_results(assay_context_t* c) {
  for (size_t i = 0; c->outputs && i < c->n_outputs; i++) {
    assay_tensor_release(c->outputs[i].result);
    c->outputs[i].result = NULL;
    c->outputs[i].copied = false;
    c->outputs[i].rank = -1;
  }
}

void assay_context_destroy(assay_context_t* c) {
  if (!c) return;
  if (c->has_thread) {
    assay_context_cancel(c);
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
  }
  assay_status_free(c->ended_with);
  assay_context_drop_results(c);
  assay_executor_destroy(c->executor);
  for (size_t i = 0; c->inputs && i < c->n_inputs; i++) assay_tensor_release(c->inputs[i].tensor);
  assay_context_drop_states(c);
  assay_free(c->inputs);
  assay_free(c->outputs);
  assay_free(c->start_ns);
  assay_free(c->duration_ns);
  pthread_cond_destroy(&c->changed);
  pthread_mutex_destroy(&c->lock);
  assay_engine_release(c->engine);
  assay_free(c);
}

// ---- phases -------------------------------------------------------------------------------------

static assay_status_t under_way(void) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "the context runs; wait for the run with assay_context_wait, or take another "
                     "context");
}

static bool is_running(assay_context_t* c) {
  pthread_mutex_lock(&c->lock);
  const bool running = c->phase == CONTEXT_RUNNING;
  pthread_mutex_unlock(&c->lock);
  return running;
}

assay_status_t assay_context_check_idle(assay_context_t* c) {
  return is_running(c) ? under_way() : NULL;
}

// From IDLE to RUNNING.
static assay_status_t begin(assay_context_t* c) {
  if (c->phase == CONTEXT_RUNNING) return under_way();
  if (c->phase == CONTEXT_ENDED)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "the context's last run was not waited for: call assay_context_wait");
  c->phase = CONTEXT_RUNNING;
  assay_cancel_reset(&c->cancel);
  return NULL;
}

assay_status_t assay_context_run(assay_context_t* c) {
  pthread_mutex_lock(&c->lock);
  assay_status_t st = begin(c);
  pthread_mutex_unlock(&c->lock);
  if (st) return st;
  const int before = omp_get_max_threads();
  omp_set_num_threads(c->options.threads);
  st = assay_context_run_now(c);
  omp_set_num_threads(before);
  pthread_mutex_lock(&c->lock);
  c->phase = CONTEXT_IDLE;
  pthread_mutex_unlock(&c->lock);
  return st;
}

void assay_context_cancel(assay_context_t* c) {
  pthread_mutex_lock(&c->lock);
  if (c->phase == CONTEXT_RUNNING) assay_cancel_request(&c->cancel);
  pthread_mutex_unlock(&c->lock);
}

// ---- the thread of its own ----------------------------------------------------------------------

static void* serve(void* p) {
  assay_context_t* c = p;
  omp_set_num_threads(c->options.threads);
  pthread_mutex_lock(&c->lock);
  for (;;) {
    while (!c->queued && !c->stop) pthread_cond_wait(&c->changed, &c->lock);
    if (!c->queued) break;
    c->queued = false;
    pthread_mutex_unlock(&c->lock);
    assay_status_t st = assay_context_run_now(c);
    pthread_mutex_lock(&c->lock);
    c->ended_with = st;
    c->phase = CONTEXT_ENDED;
    pthread_cond_broadcast(&c->changed);
  }
  pthread_mutex_unlock(&c->lock);
  return NULL;
}

assay_status_t assay_context_start(assay_context_t* c) {
  pthread_mutex_lock(&c->lock);
  assay_status_t st = begin(c);
  if (!st && !c->has_thread) {
    c->has_thread = pthread_create(&c->thread, NULL, serve, c) == 0;
    if (!c->has_thread) {
      c->phase = CONTEXT_IDLE;
      st = ASSAY_ERROR(ASSAY_DEVICE, "the system has no thread for a run of its own");
    }
  }
  if (!st) {
    c->queued = true;
    pthread_cond_broadcast(&c->changed);
  }
  pthread_mutex_unlock(&c->lock);
  return st;
}

assay_status_t assay_context_wait(assay_context_t* c) {
  pthread_mutex_lock(&c->lock);
  while (c->phase == CONTEXT_RUNNING) pthread_cond_wait(&c->changed, &c->lock);
  const bool ended = c->phase == CONTEXT_ENDED;
  assay_status_t st = c->ended_with;
  c->ended_with = NULL;
  c->phase = CONTEXT_IDLE;
  pthread_mutex_unlock(&c->lock);
  return ended ? st
               : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                             "there is no run to wait for: call assay_context_start first");
}

bool assay_context_wait_for(assay_context_t* c, int64_t milliseconds) {
  struct timespec until;
  const int64_t ms = milliseconds < 0 ? 0 : milliseconds;
  clock_gettime(CLOCK_MONOTONIC, &until);
  // A century is as good as for ever.
  const int64_t max = (int64_t)100 * 366 * 24 * 3600;
  const int64_t ns = until.tv_nsec + ms % 1000 * 1000000;
  until.tv_sec += (time_t)((ms / 1000 < max ? ms / 1000 : max) + ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  pthread_mutex_lock(&c->lock);
  int error = 0;
  while (c->phase == CONTEXT_RUNNING && !error)
    error = ms ? pthread_cond_timedwait(&c->changed, &c->lock, &until) : 1;
  const bool ended = c->phase != CONTEXT_RUNNING;
  pthread_mutex_unlock(&c->lock);
  return ended;
}

// ---- binding ------------------------------------------------------------------------------------

static assay_status_t check_index(assay_context_t* c, const char* what, size_t i, size_t n) {
  if (is_running(c)) return under_way();
  if (i >= n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the engine has %zu %ss; there is no %zu", n, what,
                       i);
  return NULL;
}

// Whether a tensor is of the type and shape that the engine takes, as far as one input tells.
static assay_status_t check_fit(const assay_context_t* c, const assay_value_t* v,
                                const assay_tensor_t* t) {
  const assay_valtype_t* want = v->type ? v->type : v->declared;
  if (!want) return NULL;
  if (t->kind != want->kind)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s; what is given is of another kind",
                       v->name, ASSAY_VALTYPE_TEXT(want));
  if (t->kind != ASSAY_KIND_TENSOR) return NULL;
  if (want->elem && t->type != want->elem)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' is %s; what is given is %s%s", v->name,
                       ASSAY_VALTYPE_TEXT(want), assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
  return assay_engine_check(c->engine, v, t, NULL);
}

static assay_status_t set_input(assay_context_t* c, size_t i, assay_tensor_t* take_tensor,
                                assay_device_ptr_t at) {
  assay_status_t st = assay_context_check_free(c, true, i);
  if (!st && take_tensor) st = check_fit(c, c->inputs[i].value, take_tensor);
  if (st) return assay_tensor_release(take_tensor), st;
  assay_tensor_release(c->inputs[i].tensor);
  c->inputs[i].tensor = take_tensor;
  c->inputs[i].at = at;
  return NULL;
}

assay_status_t assay_context_set_input(assay_context_t* c, size_t i, assay_tensor_t* tensor) {
  ASSAY_TRY(check_index(c, "input", i, c->n_inputs));
  return set_input(c, i, assay_tensor_retain(tensor), 0);
}

// A tensor over memory of the caller's; on a device, for its shape.
static assay_status_t wrap(const assay_context_t* c, size_t i, assay_type_t type, int rank,
                           const int64_t* dims, const void* data, size_t bytes,
                           assay_tensor_t** out) {
  const char* name = c->inputs[i].value->name;
  if (type <= ASSAY_TYPE_UNDEFINED || type >= ASSAY_TYPE_COUNT || type == ASSAY_TYPE_STRING)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s': %s has no elements in raw memory; use assay_context_set_input",
                       name, assay_type_name(type));
  if (bytes > INT64_MAX || (bytes && !data))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s': %zu bytes at no address", name, bytes);
  assay_status_t st =
      assay_tensor_wrap_packed(type, rank, dims, data, (int64_t)bytes, NULL, NULL, out);
  if (st && assay_status_code(st) == ASSAY_CORRUPT) {
    assay_status_t other = ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s", assay_status_message(st));
    assay_status_free(st);
    st = other;
  }
  return assay_status_note(st, "input '%s'", name);
}

assay_status_t assay_context_bind_input(assay_context_t* c, size_t i, assay_type_t type, int rank,
                                        const int64_t* dims, const void* data, size_t bytes) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(check_index(c, "input", i, c->n_inputs));
  ASSAY_TRY(wrap(c, i, type, rank, dims, data, bytes, &t));
  return set_input(c, i, t, 0);
}

static assay_status_t check_device(const assay_context_t* c) {
  const assay_backend_t* b = assay_engine_backend(c->engine);
  if (b->set_on_device) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "target '%s' has no device with memory of its own",
                     b->name);
}

assay_status_t assay_context_bind_input_on_device(assay_context_t* c, size_t i, assay_type_t type,
                                                  int rank, const int64_t* dims, uint64_t address,
                                                  size_t bytes) {
  assay_tensor_t* t = NULL;
  ASSAY_TRY(check_index(c, "input", i, c->n_inputs));
  ASSAY_TRY(check_device(c));
  if (!address)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s': %zu bytes at no address",
                       c->inputs[i].value->name, bytes);
  ASSAY_TRY(wrap(c, i, type, rank, dims, (const void*)(uintptr_t)address, bytes, &t));
  return set_input(c, i, t, address);
}

assay_status_t assay_context_bind_output_on_device(assay_context_t* c, size_t i, uint64_t address,
                                                   size_t bytes) {
  ASSAY_TRY(assay_context_bind_output(c, i, NULL, 0));
  if (!address) return NULL;
  ASSAY_TRY(check_device(c));
  c->outputs[i].at = address;
  c->outputs[i].bytes = bytes;
  return NULL;
}

assay_status_t assay_context_stream(const assay_context_t* c, uint64_t* out, int* out_device) {
  *out = 0;
  ASSAY_TRY(check_device(c));
  if (out_device) *out_device = assay_engine_backend(c->engine)->device;
  *out = assay_executor_stream(c->executor);
  if (*out) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "target '%s' has no streams that other libraries know",
                     assay_engine_backend(c->engine)->name);
}

assay_status_t assay_context_bind_output(assay_context_t* c, size_t i, void* data, size_t bytes) {
  ASSAY_TRY(check_index(c, "output", i, c->n_outputs));
  ASSAY_TRY(assay_context_check_free(c, false, i));
  context_output_t* o = &c->outputs[i];
  assay_tensor_release(o->result);
  *o = (context_output_t){.value = o->value, .data = data, .bytes = data ? bytes : 0, .rank = -1};
  assay_executor_bind(c->executor, o->value, NULL, 0);
  return assay_executor_bind_on_device(c->executor, o->value, 0, 0);
}

assay_tensor_t* assay_context_output(assay_context_t* c, size_t i) {
  if (i >= c->n_outputs || is_running(c)) return NULL;
  const context_output_t* o = &c->outputs[i];
  const context_state_t* s = o->rank >= 0 ? assay_context_appended(c, i) : NULL;
  assay_tensor_t* copy = NULL;
  if (!s || !s->append->with_capacity) return assay_tensor_retain(o->result);
  assay_status_free(assay_append_read(s->append, o->dims, &copy));
  return copy;
}

assay_status_t assay_context_output_shape(assay_context_t* c, size_t i, int* out_rank,
                                          int64_t* out_dims) {
  ASSAY_TRY(check_index(c, "output", i, c->n_outputs));
  const context_output_t* o = &c->outputs[i];
  if (o->rank < 0)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "output '%s' has no shape: no run has made it as a tensor",
                       o->value->name);
  *out_rank = o->rank;
  if (o->rank) memcpy(out_dims, o->dims, (size_t)o->rank * sizeof *out_dims);
  return NULL;
}

bool assay_context_output_copied(const assay_context_t* c, size_t i) {
  return i < c->n_outputs && c->outputs[i].copied;
}

// ---- what ran -----------------------------------------------------------------------------------

assay_status_t assay_context_times(assay_context_t* c, assay_run_times_t* out) {
  ASSAY_TRY(assay_context_check_idle(c));
  assay_run_times_t times = c->times;
  times.struct_size = out->struct_size;
  memcpy(out, &times, out->struct_size < sizeof times ? out->struct_size : sizeof times);
  return NULL;
}

size_t assay_context_layer_count(const assay_context_t* c) { return c->n_layers; }

assay_status_t assay_context_layer(assay_context_t* c, size_t i, assay_layer_run_t* out) {
  ASSAY_TRY(check_index(c, "layer", i, c->n_layers));
  const assay_layer_t* l = &assay_plan_layers(assay_engine_plan(c->engine))->layers[i];
  const assay_layer_run_t run = {.struct_size = out->struct_size,
                                 .name = l->name,
                                 .op = l->nodes[0]->op_type,
                                 .tactic = assay_executor_tactic(c->executor, i),
                                 .format = l->format,
                                 .start_ns = c->start_ns[i],
                                 .duration_ns = c->duration_ns[i]};
  memcpy(out, &run, out->struct_size < sizeof run ? out->struct_size : sizeof run);
  return NULL;
}
