// One run of a context: inputs are checked against each other, outputs get their places, layers run
// one by one, and what was not made in its place is copied there.
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "formats/format.h"
#include "runtime/context_internal.h"

// ---- inputs -------------------------------------------------------------------------------------

// The first dimension of this name among the inputs' before (input, d).
static bool seen(const assay_context_t* c, size_t input, int d, const char* name, size_t* out_input,
                 int* out_d) {
  for (size_t i = 0; i <= input; i++) {
    const assay_valtype_t* t = c->inputs[i].value->type;
    if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) continue;
    for (int k = 0; k < t->rank && (i < input || k < d); k++) {
      const char* other = t->dims[k] ? assay_dim_name(t->dims[k]) : NULL;
      if (other && strcmp(other, name) == 0) return *out_input = i, *out_d = k, true;
    }
  }
  return false;
}

// Dimensions of one name have one size. That each input fits by itself was checked when it was
// bound.
static assay_status_t check_input(const assay_context_t* c, size_t i) {
  const context_input_t* in = &c->inputs[i];
  const assay_valtype_t* t = in->value->type;
  size_t other;
  int d;
  if (!in->tensor)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' (%s) is not bound", in->value->name,
                       ASSAY_VALTYPE_TEXT(t));
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->has_shape) return NULL;
  for (int k = 0; k < t->rank; k++) {
    const char* name = t->dims[k] ? assay_dim_name(t->dims[k]) : NULL;
    if (!name || !seen(c, i, k, name, &other, &d)) continue;
    if (c->inputs[other].tensor->dims[d] != in->tensor->dims[k])
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%s' is %lld in dimension %d of input '%s' and %lld in dimension %d of "
                         "input '%s'",
                         name, (long long)in->tensor->dims[k], k, in->value->name,
                         (long long)c->inputs[other].tensor->dims[d], d,
                         c->inputs[other].value->name);
  }
  return NULL;
}

static assay_status_t set_inputs(assay_context_t* c) {
  for (size_t i = 0; i < c->n_inputs; i++) ASSAY_TRY(check_input(c, i));
  for (size_t i = 0; i < c->n_inputs; i++) {
    const context_input_t* in = &c->inputs[i];
    const assay_device_view_t view = {in->tensor->type, in->tensor->rank, in->tensor->dims, in->at,
                                      assay_tensor_bytes(in->tensor)};
    ASSAY_TRY(in->at ? assay_executor_set_on_device(c->executor, in->value, &view)
                     : assay_executor_set(c->executor, in->value, in->tensor));
  }
  return NULL;
}

// ---- outputs ------------------------------------------------------------------------------------

static bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  return a_bytes && b_bytes && x < y + b_bytes && y < x + a_bytes;
}

// Addresses of a device are none of the host's.
static const void* place_of(const context_output_t* o) {
  return o->at ? (const void*)(uintptr_t)o->at : o->data;
}

static bool overlaps_input(const assay_context_t* c, const context_output_t* o) {
  for (size_t i = 0; i < c->n_inputs; i++) {
    const assay_tensor_t* t = c->inputs[i].tensor;
    if (!c->inputs[i].at && t->kind == ASSAY_KIND_TENSOR && t->store == ASSAY_STORE_PACKED &&
        overlap(o->data, o->bytes, t->data, assay_tensor_bytes(t)))
      return true;
  }
  return false;
}

static bool is_aligned(const context_output_t* o) {
  const assay_valtype_t* t = o->value->type;
  if (!t || t->kind != ASSAY_KIND_TENSOR || !t->elem || t->elem == ASSAY_TYPE_STRING) return false;
  const size_t elem = (size_t)(assay_type_bits(t->elem) + 7) / 8;
  return elem && (uintptr_t)o->data % elem == 0;
}

static assay_status_t bind_outputs(assay_context_t* c) {
  for (size_t i = 0; i < c->n_outputs; i++) {
    context_output_t* o = &c->outputs[i];
    bool again = false;  // a value that two outputs of the model have is made for the first
    for (size_t k = 0; k < i; k++) {
      const context_output_t* other = &c->outputs[k];
      again |= other->value == o->value;
      if (other->value == o->value && (o->at || other->at))
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "outputs %zu and %zu are the same value '%s': it cannot be bound on the "
                           "device",
                           k, i, o->value->name);
      if (overlap(place_of(o), o->bytes, place_of(other), other->bytes))
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "the memory of outputs '%s' and '%s' overlaps",
                           other->value->name, o->value->name);
    }
    if (again) continue;
    if (o->at) ASSAY_TRY(assay_executor_bind_on_device(c->executor, o->value, o->at, o->bytes));
    const bool before = o->direct;
    o->direct = o->data && is_aligned(o) && !overlaps_input(c, o);
    if (o->direct)
      assay_executor_bind(c->executor, o->value, o->data, o->bytes);
    else if (before)
      assay_executor_bind(c->executor, o->value, NULL, 0);
  }
  return NULL;
}

// What was made goes to where the caller wants it, if it is not there.
static assay_status_t deliver(context_output_t* o) {
  assay_tensor_t* made = o->result;
  if (!o->data) return NULL;
  if (!made || made->kind != ASSAY_KIND_TENSOR || made->store != ASSAY_STORE_PACKED)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "output '%s' is not a tensor of numbers and cannot be bound to memory",
                       o->value->name);
  if (made->data == o->data) return NULL;
  const size_t bytes = assay_tensor_bytes(made);
  if (bytes > o->bytes)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "output '%s' is %s%s and takes %zu bytes; %zu are bound", o->value->name,
                       assay_type_name(made->type), ASSAY_DIMS_TEXT(made), bytes, o->bytes);
  assay_tensor_t* there = NULL;
  if (bytes) memcpy(o->data, made->data, bytes);
  ASSAY_TRY(assay_tensor_wrap_packed(made->type, made->rank, made->dims, o->data, (int64_t)bytes,
                                     NULL, NULL, &there));
  assay_tensor_release(made);
  o->result = there;
  o->copied = true;
  return NULL;
}

// What an output is borrows nothing that the caller may change, and is nothing that he must not
// change: an input or a constant that is an output, too, is copied.
static assay_status_t own(const assay_context_t* c, const assay_value_t* v, assay_tensor_t** t) {
  bool borrowed = *t && (*t)->kind == ASSAY_KIND_TENSOR && v->constant;
  for (size_t i = 0; *t && i < c->n_inputs; i++)
    borrowed |= c->inputs[i].tensor->kind == ASSAY_KIND_TENSOR && (*t)->kind == ASSAY_KIND_TENSOR &&
                (*t)->store == ASSAY_STORE_PACKED && (*t)->data == c->inputs[i].tensor->data;
  if (!borrowed) return NULL;
  assay_tensor_t* copy = NULL;
  ASSAY_TRY(assay_tensor_copy(*t, &copy));
  assay_tensor_release(*t);
  *t = copy;
  return NULL;
}

static assay_status_t collect(assay_context_t* c) {
  for (size_t i = 0; i < c->n_outputs; i++) {
    context_output_t* o = &c->outputs[i];
    if (o->at) {
      ASSAY_TRY(assay_executor_deliver(c->executor, o->value, &o->rank, o->dims));
      continue;
    }
    const context_state_t* s = assay_context_appended(c, i);
    if (s) {
      o->rank = o->value->type->rank;
      memcpy(o->dims, s->append->dims, (size_t)o->rank * sizeof *o->dims);
      continue;
    }
    ASSAY_TRY(assay_executor_take(c->executor, o->value, &o->result));
    ASSAY_TRY(own(c, o->value, &o->result));
    if (o->result && o->result->kind == ASSAY_KIND_TENSOR) {
      o->rank = o->result->rank;
      memcpy(o->dims, o->result->dims, sizeof o->dims);
    }
  }
  for (size_t i = 0; i < c->n_outputs; i++)
    if (!assay_context_appended(c, i))
      ASSAY_TRY(assay_context_check_made(c, i, c->outputs[i].result));
  // All of them are taken before memory is written that an input may share.
  for (size_t i = 0; i < c->n_outputs; i++)
    if (!assay_context_appended(c, i)) ASSAY_TRY(deliver(&c->outputs[i]));
  return NULL;
}

// ---- the run ------------------------------------------------------------------------------------

// Of a device its own clock tells how long a layer ran: before it, what all before took.
static assay_status_t note_duration(assay_context_t* c, size_t i, int64_t now, double* before) {
  assay_run_times_t times;
  bool known = false;
  ASSAY_TRY(assay_executor_times(c->executor, &times, &known));
  const double by_device = 1e3 * (times.compute - *before);
  // A layer that the host runs takes nothing of the device's time.
  c->duration_ns[i] = known && by_device > 0 ? (int64_t)by_device : now - c->start_ns[i];
  *before = times.compute;
  return NULL;
}

static assay_status_t run_layers(assay_context_t* c) {
  const int64_t begin = c->options.profile ? assay_clock_ns() : 0;
  double before = 0;
  for (size_t i = 0; i < c->n_layers; i++) {
    if (assay_cancel_is_requested(&c->cancel))
      return ASSAY_ERROR(ASSAY_CANCELLED, "the run was cancelled before layer %zu of %zu", i,
                         c->n_layers);
    if (c->options.profile) c->start_ns[i] = assay_clock_ns() - begin;
    ASSAY_TRY(assay_executor_step(c->executor, i));
    if (c->options.profile) ASSAY_TRY(note_duration(c, i, assay_clock_ns() - begin, &before));
  }
  return NULL;
}

static assay_status_t note_times(assay_context_t* c, int64_t begin) {
  bool known = false;
  if (!c->options.times) return NULL;
  ASSAY_TRY(assay_executor_times(c->executor, &c->times, &known));
  if (!known) c->times.compute = 1e-3 * (double)(assay_clock_ns() - begin);
  return NULL;
}

static assay_status_t run_now(assay_context_t* c) {
  const int64_t begin = c->options.times ? assay_clock_ns() : 0;
  assay_context_drop_results(c);
  c->times = (assay_run_times_t)ASSAY_RUN_TIMES_INIT;
  if (c->n_layers) {
    memset(c->start_ns, 0, c->n_layers * sizeof *c->start_ns);
    memset(c->duration_ns, 0, c->n_layers * sizeof *c->duration_ns);
  }
  assay_executor_reset(c->executor);
  assay_status_t st = assay_context_begin_states(c);
  if (!st) st = set_inputs(c);
  if (!st) st = bind_outputs(c);
  if (!st) st = run_layers(c);
  if (!st) st = collect(c);
  if (!st) st = note_times(c, begin);
  if (!st) st = assay_context_advance_states(c);
  // Nothing of the caller's memory is held on to between runs.
  assay_executor_reset(c->executor);
  if (st) assay_context_drop_results(c);
  return st;
}

assay_status_t assay_context_run_now(assay_context_t* c) {
  // A layer that is long, such as a loop, looks within itself.
  assay_cancel_t* before = assay_cancel_watch(&c->cancel);
  c->cancel.outer = before;
  assay_status_t st = run_now(c);
  assay_cancel_watch(before);
  return st;
}
