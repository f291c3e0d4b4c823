// States of a context: an output of one run that is an input of the next, in memory of the context.
//
// One that grows is written after what is there, in the same memory, where all layers that use it
// can do with that (exec/append.h). Else it has two pieces of memory: a run reads one and writes
// the other, and when it has succeeded they change places. So a run that fails leaves all states as
// they were, either way.
#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/sizes.h"
#include "formats/format.h"
#include "runtime/context_internal.h"

static const assay_valtype_t* input_type(const assay_context_t* c, const context_state_t* s) {
  return c->inputs[s->input].value->type;
}

static const char* name_of(const assay_context_t* c, const context_state_t* s) {
  return c->inputs[s->input].value->name;
}

static context_state_t* find_by_input(const assay_context_t* c, size_t input) {
  for (size_t i = 0; i < c->n_states; i++)
    if (c->states[i].input == input) return &c->states[i];
  return NULL;
}

static context_state_t* find_by_output(const assay_context_t* c, size_t output) {
  for (size_t i = 0; i < c->n_states; i++)
    if (c->states[i].output == output) return &c->states[i];
  return NULL;
}

assay_status_t assay_context_check_free(const assay_context_t* c, bool input, size_t i) {
  const context_state_t* s = input ? find_by_input(c, i) : find_by_output(c, i);
  if (!s) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "%s '%s' belongs to the state '%s', whose memory is the context's; call "
                     "assay_context_unbind_state first",
                     input ? "input" : "output",
                     input ? c->inputs[i].value->name : c->outputs[i].value->name, name_of(c, s));
}

// ---- what goes together -------------------------------------------------------------------------

static bool is_tensor(const assay_valtype_t* t) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->elem && t->elem != ASSAY_TYPE_STRING &&
         t->has_shape && t->rank <= ASSAY_MAX_RANK;
}

static assay_status_t check_types(const assay_value_t* in, const assay_value_t* out) {
  const assay_valtype_t *a = in->type, *b = out->type;
  if (!is_tensor(a) || !is_tensor(b))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "input '%s' (%s) and output '%s' (%s) cannot be a state: a state is a "
                       "tensor of numbers of known rank",
                       in->name, ASSAY_VALTYPE_TEXT(a), out->name, ASSAY_VALTYPE_TEXT(b));
  if (a->elem != b->elem || a->rank != b->rank)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "output '%s' is %s and cannot be the next input '%s', which is %s",
                       out->name, ASSAY_VALTYPE_TEXT(b), in->name, ASSAY_VALTYPE_TEXT(a));
  return NULL;
}

// The dimension along which a run may make more than it reads; -1: none.
static assay_status_t find_axis(const assay_value_t* in, const assay_value_t* out, int64_t capacity,
                                int* out_axis) {
  const assay_valtype_t *a = in->type, *b = out->type;
  *out_axis = -1;
  for (int d = 0; d < a->rank; d++) {
    int64_t x, y;
    const bool fixed = a->dims[d] && assay_dim_value(a->dims[d], &x);
    const bool differ = fixed && b->dims[d] && assay_dim_value(b->dims[d], &y) && x != y;
    if (fixed && !differ) continue;
    if (a->dims[d] && b->dims[d] && assay_dim_same(a->dims[d], b->dims[d])) continue;
    // Dimensions of which nothing is known may be the same: a run will tell.
    if (!differ && !capacity && (!a->dims[d] || !b->dims[d])) continue;
    if (differ || !capacity || *out_axis >= 0)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "output '%s' (%s) differs from input '%s' (%s) in dimension %d%s",
                         out->name, ASSAY_VALTYPE_TEXT(b), in->name, ASSAY_VALTYPE_TEXT(a), d,
                         differ      ? ", which is fixed: they cannot be a state"
                         : !capacity ? ": give the capacity up to which the state may grow"
                                     : ", and in another: a state grows in one dimension only");
    *out_axis = d;
  }
  if (!capacity || *out_axis >= 0) return NULL;
  return ASSAY_ERROR(
      ASSAY_INVALID_ARGUMENT,
      "output '%s' and input '%s' have the same shape (%s): the state does not grow, "
      "and its capacity is 0, not %lld",
      out->name, in->name, ASSAY_VALTYPE_TEXT(a), (long long)capacity);
}

// ---- binding ------------------------------------------------------------------------------------

static const char* growing_name(const assay_context_t* c, const context_state_t* s) {
  const assay_valtype_t* t = input_type(c, s);
  return s->axis >= 0 && t->dims[s->axis] ? assay_dim_name(t->dims[s->axis]) : NULL;
}

// A dimension that several states have grows up to the largest of their capacities. Those are of
// what a run makes.
static assay_status_t grow(assay_context_t* c, const context_state_t* s) {
  const char* name = growing_name(c, s);
  if (!name) return NULL;
  for (size_t i = 0; i < c->n_states; i++) {
    const char* other = growing_name(c, &c->states[i]);
    if (other && strcmp(other, name) == 0 && c->states[i].capacity > s->capacity) s = &c->states[i];
  }
  const assay_growth_t growth = {name, c->outputs[s->output].value->type->dims[s->axis],
                                 s->capacity};
  return assay_executor_grow(c->executor, &growth);
}

static assay_status_t grow_in_place(assay_context_t* c, context_state_t* s) {
  const assay_value_t* in = c->inputs[s->input].value;
  bool can = false;
  if (s->axis < 0 || in->type->rank > ASSAY_APPEND_RANK || assay_type_bits(in->type->elem) % 8)
    return NULL;
  ASSAY_TRY(ASSAY_NEW(&s->append));
  *s->append = (assay_append_t){.in = in,
                                .out = c->outputs[s->output].value,
                                .axis = s->axis,
                                .capacity = s->capacity,
                                .appended = true};
  assay_status_t st = assay_executor_append(c->executor, s->append, true, &can);
  if (!st && can) return NULL;
  assay_free(s->append);
  s->append = NULL;
  return st;
}

assay_status_t assay_context_bind_state(assay_context_t* c, const char* input, const char* output,
                                        int64_t capacity) {
  context_state_t s = {.axis = -1, .capacity = capacity};
  ASSAY_TRY(assay_context_check_idle(c));
  ASSAY_TRY(assay_engine_find_input(c->engine, input, &s.input));
  ASSAY_TRY(assay_engine_find_output(c->engine, output, &s.output));
  const assay_value_t *in = c->inputs[s.input].value, *out = c->outputs[s.output].value;
  if (capacity < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "state '%s': the capacity is %lld; give 0 or more",
                       input, (long long)capacity);
  ASSAY_TRY(assay_context_check_free(c, true, s.input));
  ASSAY_TRY(assay_context_check_free(c, false, s.output));
  ASSAY_TRY(check_types(in, out));
  ASSAY_TRY(find_axis(in, out, capacity, &s.axis));
  ASSAY_TRY(assay_grow(&c->states, &c->cap_states, c->n_states + 1, sizeof *c->states));
  ASSAY_TRY(grow(c, &s));
  ASSAY_TRY(assay_context_set_input(c, s.input, NULL));
  ASSAY_TRY(assay_context_bind_output(c, s.output, NULL, 0));
  ASSAY_TRY(grow_in_place(c, &s));
  c->states[c->n_states++] = s;
  return NULL;
}

static assay_status_t find_state(assay_context_t* c, const char* input, context_state_t** out) {
  size_t i;
  ASSAY_TRY(assay_context_check_idle(c));
  ASSAY_TRY(assay_engine_find_input(c->engine, input, &i));
  *out = find_by_input(c, i);
  if (*out) return NULL;
  return ASSAY_ERROR(ASSAY_NOT_FOUND,
                     "input '%s' belongs to no state; call assay_context_bind_state first", input);
}

// The run that follows begins with it empty, or with zeros.
static void forget(assay_context_t* c, context_state_t* s) {
  s->known = false;
  assay_tensor_release(c->inputs[s->input].tensor);
  c->inputs[s->input].tensor = NULL;
}

static void drop(assay_context_t* c, context_state_t* s) {
  forget(c, s);
  assay_tensor_release(c->outputs[s->output].result);
  c->outputs[s->output] = (context_output_t){.value = c->outputs[s->output].value, .rank = -1};
  assay_executor_bind(c->executor, c->outputs[s->output].value, NULL, 0);
  for (int i = 0; i < 2; i++) assay_free(s->memory[i]);
  assay_free(s->append);
}

assay_status_t assay_context_unbind_state(assay_context_t* c, const char* input) {
  context_state_t* s;
  bool can;
  ASSAY_TRY(find_state(c, input, &s));
  if (s->append) ASSAY_TRY(assay_executor_append(c->executor, s->append, false, &can));
  drop(c, s);
  *s = c->states[--c->n_states];
  return NULL;
}

void assay_context_drop_states(assay_context_t* c) {
  for (size_t i = 0; i < c->n_states; i++) {
    for (int k = 0; k < 2; k++) assay_free(c->states[i].memory[k]);
    assay_free(c->states[i].append);
  }
  assay_free(c->states);
}

assay_status_t assay_context_reset_states(assay_context_t* c) {
  ASSAY_TRY(assay_context_check_idle(c));
  for (size_t i = 0; i < c->n_states; i++) forget(c, &c->states[i]);
  return NULL;
}

// The largest size that the engine's profiles have for a dimension of this name; 0: none has it.
static int64_t profiled_capacity(const assay_context_t* c, const char* dimension) {
  const assay_profile_t* p = NULL;
  const size_t n = assay_engine_profiles(c->engine, &p);
  int64_t capacity = 0;
  for (size_t k = 0; k < n; k++) {
    for (size_t i = 0; !p[k].values && i < c->n_inputs; i++) {
      const assay_value_t* v = c->inputs[i].value;
      if (strcmp(v->name, p[k].input) != 0 || !is_tensor(v->type)) continue;
      for (int d = 0; d < v->type->rank && d < p[k].rank; d++) {
        const char* name = v->type->dims[d] ? assay_dim_name(v->type->dims[d]) : NULL;
        if (name && strcmp(name, dimension) == 0 && p[k].max[d] > capacity) capacity = p[k].max[d];
      }
    }
  }
  return capacity;
}

assay_status_t assay_context_grow(assay_context_t* c, const char* dimension, int64_t capacity) {
  ASSAY_TRY(assay_context_check_idle(c));
  if (!capacity) capacity = profiled_capacity(c, dimension);
  for (size_t i = 0; i < c->n_inputs; i++) {
    const assay_valtype_t* t = c->inputs[i].value->type;
    for (int d = 0; is_tensor(t) && d < t->rank; d++) {
      const char* name = t->dims[d] ? assay_dim_name(t->dims[d]) : NULL;
      if (!name || strcmp(name, dimension) != 0) continue;
      if (capacity < 1)
        return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "dimension '%s': the capacity is %lld%s; give 1 or more", dimension,
                           (long long)capacity,
                           capacity ? "" : ", and no profile of the engine has a range for it");
      return assay_executor_grow(c->executor, &(assay_growth_t){name, NULL, capacity});
    }
  }
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "no input has an open dimension '%s'", dimension);
}

size_t assay_context_kernels_made(const assay_context_t* c) {
  return assay_executor_made(c->executor);
}

// ---- memory -------------------------------------------------------------------------------------

// Memory for these sizes, at the capacity where it grows; what is there stays if there is enough.
// That which a run writes comes when one needs it.
static assay_status_t reserve(const assay_context_t* c, context_state_t* s, const int64_t* dims) {
  const assay_valtype_t* t = input_type(c, s);
  int64_t full[ASSAY_MAX_RANK], size, bytes;
  memcpy(full, dims, (size_t)t->rank * sizeof *dims);
  if (s->axis >= 0) full[s->axis] = s->capacity;
  if (!assay_dims_size(t->rank, full, &size) || !assay_type_packed_bytes(t->elem, size, &bytes) ||
      bytes > PTRDIFF_MAX / 2)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "state '%s' is too large: %s, and %lld in dimension %d", name_of(c, s),
                       ASSAY_VALTYPE_TEXT(t), (long long)s->capacity, s->axis);
  if (s->memory[s->now] && (size_t)bytes <= s->bytes) return NULL;
  for (int i = 0; i < 2; i++) {
    assay_free(s->memory[i]);
    s->memory[i] = NULL;
  }
  s->bytes = 0;
  ASSAY_TRY(assay_new_array((size_t)bytes + 1, 1, &s->memory[s->now]));
  s->bytes = (size_t)bytes;
  return NULL;
}

static assay_status_t make_other(context_state_t* s) {
  return s->memory[!s->now] ? NULL : assay_new_array(s->bytes + 1, 1, &s->memory[!s->now]);
}

static assay_status_t check_dims(const assay_context_t* c, const context_state_t* s,
                                 const char* what, int rank, const int64_t* dims,
                                 assay_type_t type) {
  const assay_valtype_t* t = input_type(c, s);
  bool ok = rank == t->rank && type == t->elem;
  for (int d = 0; ok && d < rank; d++) {
    int64_t fixed;
    ok = dims[d] >= 0 && (!t->dims[d] || !assay_dim_value(t->dims[d], &fixed) || fixed == dims[d]);
  }
  if (!ok)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "state '%s' is %s; %s is of another type or shape",
                       name_of(c, s), ASSAY_VALTYPE_TEXT(t), what);
  if (s->axis >= 0 && dims[s->axis] > s->capacity)
    return ASSAY_ERROR(
        ASSAY_INVALID_ARGUMENT,
        "state '%s': %s has %lld in dimension %d, and the capacity is %lld; bind the "
        "state with a larger one",
        name_of(c, s), what, (long long)dims[s->axis], s->axis, (long long)s->capacity);
  return NULL;
}

assay_status_t assay_context_set_state(assay_context_t* c, const char* input,
                                       assay_tensor_t* tensor) {
  context_state_t* s;
  ASSAY_TRY(find_state(c, input, &s));
  if (!tensor || tensor->kind != ASSAY_KIND_TENSOR)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "state '%s' is set to what is not a tensor", input);
  ASSAY_TRY(check_dims(c, s, "what is given", tensor->rank, tensor->dims, tensor->type));
  forget(c, s);
  ASSAY_TRY(reserve(c, s, tensor->dims));
  if (tensor->size) ASSAY_TRY(assay_tensor_read(tensor, s->memory[s->now], s->bytes));
  memcpy(s->dims, tensor->dims, sizeof s->dims);
  if (s->append) s->append->with_capacity = false;
  s->known = true;
  return NULL;
}

static assay_status_t wrap(const assay_context_t* c, const context_state_t* s,
                           assay_tensor_t** out) {
  const assay_valtype_t* t = input_type(c, s);
  int64_t size, bytes;
  if (!assay_dims_size(t->rank, s->dims, &size) || !assay_type_packed_bytes(t->elem, size, &bytes))
    return ASSAY_ERROR(ASSAY_INTERNAL, "state '%s' is too large", name_of(c, s));
  return assay_tensor_wrap_packed(t->elem, t->rank, s->dims, s->memory[s->now], bytes, NULL, NULL,
                                  out);
}

assay_status_t assay_context_state(assay_context_t* c, const char* input, assay_tensor_t** out) {
  context_state_t* s;
  ASSAY_TRY(find_state(c, input, &s));
  if (!s->known)
    return ASSAY_ERROR(ASSAY_NOT_FOUND, "state '%s' has no value before the first run", input);
  return assay_context_read_state(c, s, out);
}

assay_status_t assay_context_read_state(const assay_context_t* c, const context_state_t* s,
                                        assay_tensor_t** out) {
  assay_tensor_t* view = NULL;
  if (s->append) return assay_append_read(s->append, s->dims, out);
  ASSAY_TRY(wrap(c, s, &view));
  assay_status_t st = assay_tensor_copy(view, out);
  assay_tensor_release(view);
  return st;
}

// ---- runs ---------------------------------------------------------------------------------------

// The size that a name has in the inputs that are bound; states that begin are none of them.
static bool find_size(const assay_context_t* c, const char* name, int64_t* out) {
  for (size_t i = 0; i < c->n_inputs; i++) {
    const assay_valtype_t* t = c->inputs[i].value->type;
    const assay_tensor_t* x = c->inputs[i].tensor;
    for (int d = 0; x && is_tensor(t) && x->rank == t->rank && d < t->rank; d++) {
      const char* other = t->dims[d] ? assay_dim_name(t->dims[d]) : NULL;
      if (other && strcmp(other, name) == 0) return *out = x->dims[d], true;
    }
  }
  return false;
}

static bool look_up(void* user, const char* name, int64_t* out) {
  return find_size(user, name, out);
}

// A state without a value: empty where it grows, else zeros.
static assay_status_t begin_state(assay_context_t* c, context_state_t* s) {
  const assay_valtype_t* t = input_type(c, s);
  for (int d = 0; d < t->rank; d++) {
    if (d == s->axis) {
      s->dims[d] = 0;
    } else if (!t->dims[d] || !assay_dim_eval(t->dims[d], look_up, c, &s->dims[d])) {
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "state '%s' (%s) has no value yet, and no bound input tells the size of "
                         "dimension %d; call assay_context_set_state",
                         name_of(c, s), ASSAY_VALTYPE_TEXT(t), d);
    }
  }
  ASSAY_TRY(reserve(c, s, s->dims));
  if (s->axis < 0) memset(s->memory[s->now], 0, s->bytes);
  if (s->append) s->append->with_capacity = false;
  s->known = true;
  return NULL;
}

static assay_status_t too_large(const assay_context_t* c, const context_state_t* s, int64_t size) {
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "state '%s' has room for %lld in dimension %d, and output '%s' would have "
                     "%lld; reset the states, or bind with a larger capacity",
                     name_of(c, s), (long long)s->capacity, s->axis,
                     c->outputs[s->output].value->name, (long long)size);
}

// Before anything runs, where the model says how much will be made.
static assay_status_t check_capacity(assay_context_t* c, const context_state_t* s) {
  const assay_valtype_t* t = c->outputs[s->output].value->type;
  int64_t size;
  if (s->axis < 0 || !t->dims[s->axis] || !assay_dim_eval(t->dims[s->axis], look_up, c, &size) ||
      size <= s->capacity)
    return NULL;
  return too_large(c, s, size);
}

assay_status_t assay_context_begin_states(assay_context_t* c) {
  for (size_t i = 0; i < c->n_states; i++) {
    context_state_t* s = &c->states[i];
    context_input_t* in = &c->inputs[s->input];
    context_output_t* out = &c->outputs[s->output];
    if (!s->known) ASSAY_TRY(begin_state(c, s));
    assay_tensor_release(in->tensor);
    in->tensor = NULL;
    ASSAY_TRY(wrap(c, s, &in->tensor));
    // Where the last run appended, this one will, too.
    const bool appends = s->append && s->append->appended;
    if (s->append) s->append->memory = s->memory[s->now];
    if (!appends) ASSAY_TRY(make_other(s));
    out->data = appends ? NULL : s->memory[!s->now];
    out->bytes = appends ? 0 : s->bytes;
  }
  for (size_t i = 0; i < c->n_states; i++) ASSAY_TRY(check_capacity(c, &c->states[i]));
  return NULL;
}

assay_status_t assay_context_check_made(const assay_context_t* c, size_t output,
                                        const assay_tensor_t* made) {
  const context_state_t* s = find_by_output(c, output);
  if (!s) return NULL;
  const bool is = made && made->kind == ASSAY_KIND_TENSOR && made->store == ASSAY_STORE_PACKED;
  if (is && s->axis >= 0 && made->rank > s->axis && made->dims[s->axis] > s->capacity)
    return too_large(c, s, made->dims[s->axis]);
  bool same = is && made->rank == input_type(c, s)->rank;
  for (int d = 0; same && d < made->rank; d++) same = d == s->axis || made->dims[d] == s->dims[d];
  if (same) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "output '%s' cannot be the next value of the state '%s': it was made with "
                     "other sizes",
                     c->outputs[output].value->name, name_of(c, s));
}

const context_state_t* assay_context_appended(const assay_context_t* c, size_t output) {
  const context_state_t* s = find_by_output(c, output);
  return s && s->append && s->append->appended ? s : NULL;
}

// What was made elsewhere goes to the memory that the next run reads.
static assay_status_t move_in(const assay_context_t* c, context_state_t* s) {
  const assay_tensor_t* made = c->outputs[s->output].result;
  if (made->data == s->memory[!s->now]) return NULL;
  ASSAY_TRY(make_other(s));
  if (made->size) memcpy(s->memory[!s->now], made->data, assay_tensor_bytes(made));
  return NULL;
}

assay_status_t assay_context_advance_states(assay_context_t* c) {
  for (size_t i = 0; i < c->n_states; i++)
    if (!assay_context_appended(c, c->states[i].output)) ASSAY_TRY(move_in(c, &c->states[i]));
  for (size_t i = 0; i < c->n_states; i++) {
    context_state_t* s = &c->states[i];
    memcpy(s->dims, c->outputs[s->output].dims, sizeof s->dims);
    if (assay_context_appended(c, s->output)) continue;
    s->now = !s->now;
    if (s->append) s->append->memory = s->memory[s->now];
    if (s->append) s->append->with_capacity = false;
  }
  return NULL;
}
