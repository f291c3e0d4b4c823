// What runs a plan's layers, for every backend with kernels: each layer by the kernel that was
// prepared for its sizes (segment.h), or, where there is none, by the emulated engine in the same
// formats.
#include "exec/runner.h"

#include <string.h>

#include "base/alloc.h"
#include "base/cancel/cancel.h"
#include "base/contention.h"

enum { MAX_SEGMENTS = 8 };  // kept for each layer at which one starts

assay_status_t assay_runner_init(assay_runner_t* r, const assay_layers_t* layers,
                                 const assay_tap_t* tap, const assay_runner_memory_t* memory,
                                 const assay_setting_t* setting) {
  const size_t n_values = (size_t)layers->model->n_values;
  r->layers = layers;
  r->tap = tap;
  r->memory = memory;
  r->setting = *setting;
  ASSAY_TRY(assay_backend_emu.open(layers, NULL, tap, &r->emu));
  ASSAY_TRY(assay_new_array(n_values, sizeof *r->values, &r->values));
  ASSAY_TRY(assay_new_array(n_values, sizeof *r->outputs, &r->outputs));
  ASSAY_TRY(assay_new_array(n_values, sizeof *r->bound, &r->bound));
  ASSAY_TRY(assay_new_array(layers->n_layers, sizeof *r->ran, &r->ran));
  ASSAY_TRY(assay_lifetimes_find(layers, &r->lifetimes));
  r->setting.layers = layers;
  r->setting.lifetimes = &r->lifetimes;
  r->setting.sizes = &r->sizes;
  r->setting.values = r->values;
  return NULL;
}

void assay_runner_deinit(assay_runner_t* r) {
  for (int i = 0; r->layers && i < r->layers->model->n_values; i++) {
    if (r->values) assay_value_slot_clear(&r->values[i]);
    if (r->outputs) assay_tensor_release(r->outputs[i]);
  }
  for (size_t i = 0; i < r->n_segments; i++) assay_segment_destroy(r->segments[i]);
  assay_free(r->segments);
  assay_free(r->growth);
  assay_free(r->appends);
  assay_lifetimes_deinit(&r->lifetimes);
  assay_free(r->values);
  assay_free(r->outputs);
  assay_free(r->bound);
  assay_free(r->ran);
  assay_sizes_deinit(&r->sizes);
  if (r->emu) assay_backend_emu.close(r->emu);
}

// ---- values as tensors --------------------------------------------------------------------------

// Whether a tensor has the sizes that were predicted for the value; nothing is said against it
// where none were.
static bool is_as_foreseen(const assay_runner_t* r, const assay_value_t* v,
                           const assay_tensor_t* t) {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  if (t->kind != ASSAY_KIND_TENSOR || !assay_sizes_of(&r->sizes, v, ASSAY_KERNEL_RANK, &rank, dims))
    return true;
  return t->rank == rank && (!rank || memcmp(t->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

// Where a value has other sizes than were predicted, nothing that follows from those may be
// trusted, contents that only sizes tell among it: the rest of the run is evaluated.
assay_status_t assay_runner_put(assay_runner_t* r, const assay_value_t* v,
                                assay_tensor_t* take_tensor) {
  assay_value_slot_put(&r->values[v->id], take_tensor);
  ASSAY_TRY(assay_sizes_bind(&r->sizes, v->type, take_tensor->rank, take_tensor->dims));
  r->emulate |= !is_as_foreseen(r, v, take_tensor);
  return NULL;
}

assay_status_t assay_runner_set(void* state, const assay_value_t* v, assay_tensor_t* t) {
  if (v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem &&
      t->kind == ASSAY_KIND_TENSOR && t->type != v->type->elem)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' holds %s; the model declares %s",
                       v->name, assay_type_name(t->type), assay_type_name(v->type->elem));
  return assay_runner_put(state, v, assay_tensor_retain(t));
}

// Whether what is at a place was made there, and may still be.
static bool is_made_here(const assay_runner_t* r, const assay_place_t* p) {
  if (!p->n_forms || r->lifetimes.last[p->value->id] < (int)r->layer) return false;
  const assay_slot_t* slot = &r->now->slots[p->forms[0].slot];
  return !slot->passes && (slot->kind != ASSAY_SLOT_VALUE || slot->value != p->value);
}

// Sees to it that the run holds a value as a tensor, where it has been made at all.
static assay_status_t hold(assay_runner_t* r, const assay_value_t* v, assay_value_slot_t** out) {
  assay_tensor_t* t = NULL;
  *out = &r->values[v->id];
  if (assay_value_slot_is_set(*out)) return NULL;
  const assay_place_t* p = r->now ? assay_segment_place(r->now, v) : NULL;
  assay_tensor_t* constant = assay_value_slot_constant(v);
  if (constant)
    t = assay_tensor_retain(constant);
  else if (p && p->known)
    t = assay_tensor_retain(p->known);
  else if (p && is_made_here(r, p))
    ASSAY_TRY(r->memory->read(r, p, &t));
  if (!t) return NULL;
  ASSAY_TRY(assay_runner_put(r, v, t));
  (*out)->keep = constant;
  return NULL;
}

// What lies with room is copied for those who know nothing of that.
static assay_status_t leave_capacity(const assay_runner_t* r, const assay_value_t* v,
                                     assay_value_slot_t* value) {
  const assay_append_t* a = r->appending ? assay_runner_append_of(r, v) : NULL;
  assay_tensor_t* t = NULL;
  if (!a || !value->packed || value->packed->data != a->memory) return NULL;
  ASSAY_TRY(assay_append_read(a, value->packed->dims, &t));
  assay_value_slot_put(value, t);
  return NULL;
}

static assay_status_t reach(assay_runner_t* r, const assay_value_t* v) {
  return r->memory->reach ? r->memory->reach(r, v) : NULL;
}

static assay_status_t canonical(assay_runner_t* r, const assay_value_t* v, assay_tensor_t** out) {
  assay_value_slot_t* value;
  *out = NULL;
  ASSAY_TRY(hold(r, v, &value));
  ASSAY_TRY(reach(r, v));
  if (!assay_value_slot_is_set(value)) return NULL;
  ASSAY_TRY(leave_capacity(r, v, value));
  const bool is_tensor = v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem;
  return assay_value_slot_canonical(
      value, is_tensor ? v->type->elem : assay_value_slot_any(value)->type, out);
}

assay_tensor_t* assay_runner_get(void* state, const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  assay_status_t st = canonical(state, v, &t);
  if (!st) return t;
  assay_status_free(st);
  return NULL;
}

assay_status_t assay_runner_packed(void* state, const assay_value_t* v, assay_tensor_t** out) {
  assay_value_slot_t* value;
  *out = NULL;
  ASSAY_TRY(hold(state, v, &value));
  ASSAY_TRY(reach(state, v));
  ASSAY_TRY(leave_capacity(state, v, value));
  const assay_tensor_t* any = assay_value_slot_any(value);
  if (!any || any->kind != ASSAY_KIND_TENSOR || any->store == ASSAY_STORE_STR) return NULL;
  const bool is_tensor = v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem;
  return assay_value_slot_packed(value, is_tensor ? v->type->elem : any->type, out);
}

void assay_runner_bind(void* state, const assay_value_t* v, void* data, size_t bytes) {
  assay_runner_t* r = state;
  assay_tensor_release(r->outputs[v->id]);
  r->outputs[v->id] = NULL;
  r->bound[v->id] = (assay_bound_output_t){data, bytes};
}

void assay_runner_reset(void* state) {
  assay_runner_t* r = state;
  for (int i = 0; i < r->layers->model->n_values; i++)
    if (!r->values[i].keep) assay_value_slot_clear(&r->values[i]);
  assay_sizes_clear(&r->sizes);
  r->now = NULL;
  r->emulate = r->appending = false;
  assay_backend_emu.reset(r->emu);
}

// ---- segments ----------------------------------------------------------------------------------

// The bytes that a graph output takes where the caller wants it; -1: it does not fit there, or may
// lie anywhere.
static int64_t bound_bytes(const assay_runner_t* r, const assay_value_t* v,
                           const assay_place_t* p) {
  const assay_bound_output_t* b = &r->bound[v->id];
  int64_t bytes;
  if (!b->data || !assay_type_packed_bytes(v->type->elem, p->size, &bytes)) return -1;
  return (uint64_t)bytes <= b->bytes ? bytes : -1;
}

assay_status_t assay_runner_output(assay_runner_t* r, const assay_value_t* v,
                                   assay_tensor_t** out) {
  const assay_place_t* p = assay_segment_place(r->now, v);
  assay_tensor_t** t = &r->outputs[v->id];
  assay_append_t* a = r->now->appends ? assay_runner_append_of(r, v) : NULL;
  void* data = a ? a->memory : r->bound[v->id].data;
  int64_t bytes = a ? 0 : bound_bytes(r, v, p);
  if (a && !assay_type_packed_bytes(v->type->elem, p->size, &bytes))
    return ASSAY_ERROR(ASSAY_INTERNAL, "output '%s' is too large", v->name);
  if (a) memcpy(a->dims, p->dims, sizeof a->dims);
  const bool again = *t && assay_tensor_is_sole(*t) && (*t)->rank == p->rank &&
                     ((*t)->data == data) == (bytes >= 0) &&
                     (!p->rank || memcmp((*t)->dims, p->dims, (size_t)p->rank * 8) == 0);
  if (!again) {
    assay_tensor_release(*t);
    *t = NULL;
    if (bytes < 0)
      ASSAY_TRY(assay_tensor_create_packed(v->type->elem, p->rank, p->dims, t));
    else
      ASSAY_TRY(
          assay_tensor_wrap_packed(v->type->elem, p->rank, p->dims, data, bytes, NULL, NULL, t));
  }
  *out = *t;
  return NULL;
}

// After its last layer: what later ones read becomes tensors.
static assay_status_t end(assay_runner_t* r) {
  const assay_segment_t* s = r->now;
  assay_value_slot_t* value;
  for (size_t i = 0; i < s->n_places; i++) {
    const assay_value_t* v = s->places[i].value;
    if (r->lifetimes.last[v->id] >= s->end && !assay_value_slot_constant(v))
      ASSAY_TRY(hold(r, v, &value));
  }
  r->now = NULL;
  return NULL;
}

// Makes room for one more segment that starts there.
static size_t place_for(assay_runner_t* r, int first) {
  size_t n = 0, oldest = r->n_segments;
  for (size_t i = 0; i < r->n_segments; i++) {
    if (r->segments[i]->first != first) continue;
    n++;
    if (oldest == r->n_segments || r->segments[i]->used < r->segments[oldest]->used) oldest = i;
  }
  if (n < MAX_SEGMENTS) return r->n_segments;
  assay_runner_drop_segment(r, oldest);
  return r->n_segments;
}

static assay_status_t find_segment(assay_runner_t* r, int first) {
  assay_segment_t* found = NULL;
  for (size_t i = 0; !found && i < r->n_segments; i++)
    if (assay_segment_fits(r->segments[i], first, &r->setting)) found = r->segments[i];
  if (!found && r->setting.n_growth) ASSAY_TRY(assay_runner_grow_segment(r, first, &found));
  if (!found) {
    const size_t at = place_for(r, first);
    ASSAY_TRY(assay_grow(&r->segments, &r->cap_segments, at + 1, sizeof(assay_segment_t*)));
    ASSAY_TRY(assay_segment_create(&r->setting, first, &found));
    r->segments[r->n_segments++] = found;
  }
  found->used = ++r->clock;
  if (first == 0) assay_runner_settle(r, found->appends);
  return r->memory->begin(r, found);
}

assay_status_t assay_runner_fetch(assay_runner_t* r, const assay_segment_reformat_t* m,
                                  assay_tensor_t** out) {
  const assay_slot_t* slot = &r->now->slots[m->to];
  assay_value_slot_t* value = &r->values[slot->value->id];
  const assay_tensor_t* any = assay_value_slot_any(value);
  *out = slot->held;
  if (*out) return NULL;
  if (!any || any->kind != ASSAY_KIND_TENSOR || any->rank != m->move.rank ||
      (any->rank && memcmp(any->dims, m->move.dims, (size_t)any->rank * 8) != 0))
    return NULL;
  ASSAY_TRY(reach(r, slot->value));
  return assay_value_slot_packed(value, m->move.to.type, out);
}

// ---- running --------------------------------------------------------------------------------

static assay_status_t run_emulated(assay_runner_t* r, size_t i) {
  const assay_layer_t* l = &r->layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  const assay_value_list_t* reads = &r->lifetimes.reads[i];
  for (size_t k = 0; k < reads->n; k++) {
    assay_tensor_t* t = NULL;
    if (assay_value_slot_constant(reads->at[k]) &&
        !assay_value_slot_is_set(&r->values[reads->at[k]->id]))
      continue;
    ASSAY_TRY(canonical(r, reads->at[k], &t));
    if (t) ASSAY_TRY(assay_backend_emu.set(r->emu, reads->at[k], t));
  }
  ASSAY_TRY(assay_backend_emu.step(r->emu, i));
  for (size_t k = 0; k < last->n_outputs; k++) {
    assay_tensor_t* t = last->outputs[k] ? assay_backend_emu.get(r->emu, last->outputs[k]) : NULL;
    if (t) ASSAY_TRY(assay_runner_put(r, last->outputs[k], assay_tensor_retain(t)));
  }
  return NULL;
}

static assay_status_t tapped(assay_runner_t* r, const assay_layer_t* l, assay_tensor_t* const* in,
                             size_t n_in) {
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(last->n_outputs, sizeof *out, &out));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < last->n_outputs; i++)
    if (last->outputs[i]) st = canonical(r, last->outputs[i], &out[i]);
  if (!st) st = r->tap->layer(r->tap->user, l, last, 0, n_in, in, last->n_outputs, out);
  assay_free(out);
  return st;
}

// All inputs of a layer, retained; hidden ones NULL.
static assay_status_t inputs_of(assay_runner_t* r, const assay_layer_t* l, assay_tensor_t** in) {
  for (size_t i = 0; i < l->n_nodes; i++)
    for (size_t j = 0; j < l->nodes[i]->n_inputs; j++, in++) {
      const assay_value_t* v = l->nodes[i]->inputs[j];
      if (!v || r->layers->hidden_value[v->id]) continue;
      ASSAY_TRY(canonical(r, v, in));
      assay_tensor_retain(*in);
    }
  return NULL;
}

static assay_status_t run_prepared(assay_runner_t* r, size_t i, bool* ok) {
  return assay_runner_step_of(r, i)->kernel ? r->memory->layer(r, i, ok) : NULL;
}

// With a tap: what enters is read before the kernel may write over it.
static assay_status_t run_tapped(assay_runner_t* r, size_t i, bool* ok) {
  const assay_layer_t* l = &r->layers->layers[i];
  size_t n = 0;
  for (size_t k = 0; k < l->n_nodes; k++) n += l->nodes[k]->n_inputs;
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *in, &in));
  assay_status_t st = inputs_of(r, l, in);
  if (!st) st = run_prepared(r, i, ok);
  if (!st && *ok) st = tapped(r, l, in, n);
  for (size_t k = 0; k < n; k++) assay_tensor_release(in[k]);
  assay_free(in);
  return st;
}

// Inputs that the caller leaves out are what the model says.
static assay_status_t put_defaults(assay_runner_t* r) {
  const assay_graph_t* g = r->layers->model->graph;
  for (size_t k = 0; k < g->n_inputs; k++) {
    const assay_value_t* v = g->inputs[k];
    if (v->constant && !assay_value_slot_is_set(&r->values[v->id]))
      ASSAY_TRY(assay_runner_put(r, v, assay_tensor_retain(v->constant)));
  }
  return NULL;
}

// What nobody reads after layer i.
static void let_go(assay_runner_t* r, size_t i) {
  const assay_value_list_t* ends = &r->lifetimes.ends[i];
  for (size_t k = 0; k < ends->n; k++) assay_value_slot_clear(&r->values[ends->at[k]->id]);
}

static assay_runner_ran_t ran_by(const assay_kernel_t* k) {
  const assay_rounding_t* own = k->rounding ? k->rounding : &k->tactic->rounding;
  return (assay_runner_ran_t){k->tactic, k->name, k->emulated ? NULL : own};
}

assay_status_t assay_runner_step(void* state, size_t i) {
  assay_runner_t* r = state;
  r->layer = i;
  assay_contention_watch();
  ASSAY_TRY(assay_cancel_check());
  if (i == 0) ASSAY_TRY(put_defaults(r));
  if (i == 0 && r->emulate) assay_runner_settle(r, false);
  if (!r->now && !r->emulate) ASSAY_TRY(find_segment(r, (int)i));
  const assay_step_t* s = r->emulate ? NULL : assay_runner_step_of(r, i);
  bool prepared = s && (s->kernel || s->known);
  // A tap asks how the layer that it sees rounds.
  r->ran[i] = (assay_runner_ran_t){0};
  if (prepared && s->kernel) r->ran[i] = ran_by(s->kernel);
  if (prepared) ASSAY_TRY(r->tap ? run_tapped(r, i, &prepared) : run_prepared(r, i, &prepared));
  const assay_pipeline_t* pipeline = s ? assay_segment_pipeline(r->now, (int)i) : NULL;
  const size_t first = pipeline ? (size_t)pipeline->first : i;
  for (size_t k = first; !prepared && k <= i; k++) {
    r->ran[k] = (assay_runner_ran_t){0};
    // From here on nothing that was predicted may be trusted.
    if (s && s->kernel) r->emulate = true;
    ASSAY_TRY(run_emulated(r, k));
  }
  // What is evaluated, lies as it always does.
  for (size_t k = 0; r->emulate && k < r->setting.n_appends; k++) r->appends[k]->appended = false;
  // What a row pipeline reads, the run holds until it has run.
  if (!pipeline || r->emulate || (int)i == assay_pipeline_last(pipeline))
    for (size_t k = first; k <= i; k++) let_go(r, k);
  if (!r->emulate && (int)i + 1 == r->now->end) ASSAY_TRY(end(r));
  return NULL;
}

void assay_runner_rounding(void* state, const assay_layer_t* layer, size_t n_in,
                           assay_tensor_t* const* in, assay_rounding_t* out) {
  const assay_runner_t* r = state;
  const ptrdiff_t i = layer ? layer - r->layers->layers : -1;
  if (i >= 0 && (size_t)i < r->layers->n_layers && r->ran[i].rounding)
    *out = *r->ran[i].rounding;
  else
    assay_backend_emu.rounding(r->emu, layer, n_in, in, out);
}

const assay_step_t* assay_runner_last_step(const assay_runner_t* r, size_t i) {
  const assay_segment_t* found = NULL;
  for (size_t k = 0; k < r->n_segments; k++) {
    const assay_segment_t* s = r->segments[k];
    if ((int)i >= s->first && (int)i < s->end && (!found || s->used > found->used)) found = s;
  }
  return found ? &found->steps[i - (size_t)found->first] : NULL;
}

const char* assay_runner_tactic(void* state, size_t i) {
  const assay_runner_t* r = state;
  const assay_step_t* s = r->ran[i].tactic || r->emulate ? NULL : assay_runner_last_step(r, i);
  return r->ran[i].tactic ? r->ran[i].name : s && s->known ? "sizes" : assay_backend_emu.name;
}

assay_format_t assay_runner_executed(void* state, size_t i) {
  const assay_runner_t* r = state;
  const assay_step_t* s = assay_runner_last_step(r, i);
  if (s && s->known) return ASSAY_FORMAT_NONE;
  if (!s || !s->kernel || s->kernel->emulated) return r->layers->layers[i].format;
  for (int k = 0; k < s->n_in; k++)
    if (assay_type_is_kernel_float(s->kernel->in[k].type))
      return assay_type_format(s->kernel->in[k].type);
  return ASSAY_FORMAT_NONE;
}

const assay_accuracy_gate_t* assay_step_accuracy_gate(const assay_step_t* s,
                                                      const assay_tactic_t* tactic) {
  for (int i = 0; i < s->gates.n; i++)
    if (strcmp(s->gates.at[i].tactic, tactic->name) == 0) return &s->gates.at[i];
  return NULL;
}

size_t assay_runner_scratch(void* runner, size_t i) {
  const assay_runner_t* r = runner;
  const assay_step_t* s = r->ran[i].tactic ? assay_runner_last_step(r, i) : NULL;
  return s && s->kernel ? s->kernel->scratch : 0;
}

const assay_accuracy_gate_t* assay_runner_accuracy_gate(void* state, size_t i) {
  const assay_runner_t* r = state;
  const assay_step_t* s = r->ran[i].tactic ? assay_runner_last_step(r, i) : NULL;
  return s ? assay_step_accuracy_gate(s, r->ran[i].tactic) : NULL;
}
