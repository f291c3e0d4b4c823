// The CPU backend: each layer by a kernel that a tactic has made for its sizes, or, where no tactic
// takes it, by the emulated engine in the same formats.
//
// What is prepared for given sizes, a stretch of layers, is kept for the next run: the last ones
// used. All stretches share one arena and one piece of scratch memory.
#include <math.h>
#include <string.h>

#include "backends/backend.h"
#include "backends/cpu/stretch.h"
#include "base/alloc.h"
#include "formats/format.h"

enum { STRETCHES = 8 };  // kept for each layer at which one starts

typedef struct cpu_bound {
  void* data;  // NULL: none
  size_t bytes;
} cpu_bound_t;

typedef struct cpu {
  const assay_layers_t* layers;
  const assay_tap_t* tap;
  void* emu;
  cpu_shared_t *shared, *own;
  cpu_lifetimes_t lifetimes;
  cpu_value_t* values;       // by value id: what the run holds as tensors
  const cpu_tactic_t** ran;  // by layer; NULL: the emulated engine
  cpu_sizes_t sizes;         // bound so far in this run
  cpu_stretch_t** stretches;
  size_t n_stretches, cap_stretches;
  cpu_stretch_t* now;  // the stretch that runs; NULL: none has begun
  size_t layer;        // that runs now
  bool emulate;        // for the rest of this run: sizes were not what inference had said
  void** at;           // by slot of `now`
  size_t cap_at;
  assay_tensor_t** outputs;  // by value id: tensors for graph outputs, used again when sole
  cpu_bound_t* bound;        // by value id: where the caller wants graph outputs
  char *arena, *scratch;
  size_t arena_bytes, scratch_bytes;
  uint64_t clock;
} cpu_t;

static void cpu_close(void* state) {
  cpu_t* c = state;
  if (!c) return;
  for (int i = 0; i < c->layers->model->n_values; i++) {
    if (c->values) cpu_value_clear(&c->values[i]);
    if (c->outputs) assay_tensor_release(c->outputs[i]);
  }
  for (size_t i = 0; i < c->n_stretches; i++) cpu_stretch_destroy(c->stretches[i]);
  assay_free(c->stretches);
  cpu_lifetimes_deinit(&c->lifetimes);
  assay_free(c->values);
  assay_free(c->outputs);
  assay_free(c->bound);
  assay_free(c->ran);
  cpu_sizes_deinit(&c->sizes);
  assay_free(c->at);
  assay_free(c->arena);
  assay_free(c->scratch);
  cpu_shared_destroy(c->own);
  if (c->emu) assay_backend_emu.close(c->emu);
  assay_free(c);
}

static assay_status_t cpu_open(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                               void** out_state) {
  const size_t n_values = (size_t)layers->model->n_values;
  cpu_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  c->layers = layers;
  c->tap = tap;
  assay_status_t st = assay_backend_emu.open(layers, NULL, tap, &c->emu);
  if (!st) st = assay_new_array(n_values, sizeof *c->values, &c->values);
  if (!st) st = assay_new_array(n_values, sizeof *c->outputs, &c->outputs);
  if (!st) st = assay_new_array(n_values, sizeof *c->bound, &c->bound);
  if (!st) st = assay_new_array(layers->n_layers, sizeof *c->ran, &c->ran);
  if (!st && !shared) st = cpu_shared_create(NULL, &c->own);
  c->shared = shared ? shared : c->own;
  if (!st) st = cpu_lifetimes_find(layers, &c->lifetimes);
  if (st) return cpu_close(c), st;
  *out_state = c;
  return NULL;
}

// ---- values as tensors --------------------------------------------------------------------------

static assay_status_t put(cpu_t* c, const assay_value_t* v, assay_tensor_t* take_tensor) {
  cpu_value_put(&c->values[v->id], take_tensor);
  return cpu_sizes_bind(&c->sizes, v->type, take_tensor->rank, take_tensor->dims);
}

static assay_status_t cpu_set(void* state, const assay_value_t* v, assay_tensor_t* t) {
  if (v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem &&
      t->kind == ASSAY_KIND_TENSOR && t->type != v->type->elem)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "input '%s' holds %s; the model declares %s",
                       v->name, assay_type_name(t->type), assay_type_name(v->type->elem));
  return put(state, v, assay_tensor_retain(t));
}

// A tensor of its own with what lies in the arena.
static assay_status_t copy_of(cpu_t* c, const cpu_place_t* p, assay_tensor_t** out) {
  cpu_move_t m = {.rank = p->rank,
                  .size = p->size,
                  .from = p->forms[0].form,
                  .to = {p->forms[0].form.type, CPU_PLAIN},
                  .through = p->forms[0].form.type};
  memcpy(m.dims, p->dims, sizeof m.dims);
  ASSAY_TRY(assay_tensor_create_packed(m.to.type, m.rank, m.dims, out));
  cpu_move_run(&m, c->at[p->forms[0].slot], (*out)->data, NULL);
  return NULL;
}

// Sees to it that the run holds a value as a tensor, where it has been made at all.
static assay_status_t hold(cpu_t* c, const assay_value_t* v, cpu_value_t** out) {
  assay_tensor_t* t = NULL;
  *out = &c->values[v->id];
  if (cpu_value_is_set(*out)) return NULL;
  const cpu_place_t* p = c->now ? cpu_stretch_place(c->now, v) : NULL;
  if (v->constant)
    t = assay_tensor_retain(v->constant);
  else if (p && p->known)
    t = assay_tensor_retain(p->known);
  else if (p && p->n_forms && c->now->slots[p->forms[0].slot].kind != CPU_SLOT_HELD &&
           c->lifetimes.last[v->id] >= (int)c->layer)
    ASSAY_TRY(copy_of(c, p, &t));
  if (!t) return NULL;
  ASSAY_TRY(put(c, v, t));
  (*out)->keep = v->constant;
  return NULL;
}

static assay_status_t canonical(cpu_t* c, const assay_value_t* v, assay_tensor_t** out) {
  cpu_value_t* value;
  ASSAY_TRY(hold(c, v, &value));
  *out = NULL;
  if (!cpu_value_is_set(value)) return NULL;
  const bool is_tensor = v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem;
  return cpu_value_canonical(value, is_tensor ? v->type->elem : cpu_value_any(value)->type, out);
}

static assay_tensor_t* cpu_get(void* state, const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  assay_status_t st = canonical(state, v, &t);
  if (!st) return t;
  assay_status_free(st);
  return NULL;
}

static assay_status_t cpu_packed(void* state, const assay_value_t* v, assay_tensor_t** out) {
  cpu_value_t* value;
  *out = NULL;
  ASSAY_TRY(hold(state, v, &value));
  const assay_tensor_t* any = cpu_value_any(value);
  if (!any || any->kind != ASSAY_KIND_TENSOR || any->store == ASSAY_STORE_STR) return NULL;
  const bool is_tensor = v->type && v->type->kind == ASSAY_KIND_TENSOR && v->type->elem;
  return cpu_value_packed(value, is_tensor ? v->type->elem : any->type, out);
}

static void cpu_bind(void* state, const assay_value_t* v, void* data, size_t bytes) {
  cpu_t* c = state;
  assay_tensor_release(c->outputs[v->id]);
  c->outputs[v->id] = NULL;
  c->bound[v->id] = (cpu_bound_t){data, bytes};
}

static void cpu_reset(void* state) {
  cpu_t* c = state;
  for (int i = 0; i < c->layers->model->n_values; i++)
    if (!c->values[i].keep) cpu_value_clear(&c->values[i]);
  cpu_sizes_clear(&c->sizes);
  c->now = NULL;
  c->emulate = false;
  assay_backend_emu.reset(c->emu);
}

// ---- stretches ----------------------------------------------------------------------------------

static assay_status_t room(char** memory, size_t* have, size_t bytes) {
  if (bytes <= *have) return NULL;
  assay_free(*memory);
  *have = 0;
  *memory = assay_malloc(bytes + ASSAY_BLOCK_ALIGNMENT);
  if (!*memory) return assay_status_no_memory();
  *have = bytes;
  return NULL;
}

static char* aligned(char* memory) {
  const uintptr_t a = ASSAY_BLOCK_ALIGNMENT;
  return (char*)(((uintptr_t)memory + a - 1) / a * a);
}

// The bytes that a graph output takes where the caller wants it; -1: it does not fit there, or may
// lie anywhere.
static int64_t bound_bytes(const cpu_t* c, const assay_value_t* v, const cpu_place_t* p) {
  const cpu_bound_t* b = &c->bound[v->id];
  int64_t bytes;
  if (!b->data || !assay_type_packed_bytes(v->type->elem, p->size, &bytes)) return -1;
  return (uint64_t)bytes <= b->bytes ? bytes : -1;
}

// The tensor that a graph output is written to: where the caller wants it, or that of the last run,
// if the caller let go of it.
static assay_status_t output_tensor(cpu_t* c, const assay_value_t* v, void** out_data) {
  const cpu_place_t* p = cpu_stretch_place(c->now, v);
  assay_tensor_t** t = &c->outputs[v->id];
  void* data = c->bound[v->id].data;
  const int64_t bytes = bound_bytes(c, v, p);
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
  *out_data = (*t)->data;
  return NULL;
}

static assay_status_t begin(cpu_t* c, cpu_stretch_t* s) {
  ASSAY_TRY(room(&c->arena, &c->arena_bytes, s->arena_bytes));
  ASSAY_TRY(room(&c->scratch, &c->scratch_bytes, s->scratch_bytes));
  ASSAY_TRY(assay_grow(&c->at, &c->cap_at, s->n_slots, sizeof *c->at));
  c->now = s;
  for (size_t i = 0; i < s->n_slots; i++) {
    const cpu_slot_t* slot = &s->slots[i];
    c->at[i] = NULL;
    if (slot->kind == CPU_SLOT_ARENA) c->at[i] = aligned(c->arena) + slot->block.offset;
    if (slot->kind == CPU_SLOT_CONSTANT) c->at[i] = (void*)(uintptr_t)slot->constant;
    if (slot->kind == CPU_SLOT_OUTPUT) ASSAY_TRY(output_tensor(c, slot->value, &c->at[i]));
  }
  return NULL;
}

// Behind its last layer: what later ones read becomes tensors.
static assay_status_t end(cpu_t* c) {
  const cpu_stretch_t* s = c->now;
  cpu_value_t* value;
  for (size_t i = 0; i < s->n_places; i++) {
    const assay_value_t* v = s->places[i].value;
    if (c->lifetimes.last[v->id] >= s->end && !v->constant) ASSAY_TRY(hold(c, v, &value));
  }
  c->now = NULL;
  return NULL;
}

// Makes room for one more stretch that starts there.
static size_t place_for(cpu_t* c, int first) {
  size_t n = 0, oldest = c->n_stretches;
  for (size_t i = 0; i < c->n_stretches; i++) {
    if (c->stretches[i]->first != first) continue;
    n++;
    if (oldest == c->n_stretches || c->stretches[i]->used < c->stretches[oldest]->used) oldest = i;
  }
  if (n < STRETCHES) return c->n_stretches;
  cpu_stretch_destroy(c->stretches[oldest]);
  c->stretches[oldest] = c->stretches[--c->n_stretches];
  return c->n_stretches;
}

static assay_status_t find_stretch(cpu_t* c, int first) {
  const cpu_setting_t setting = {c->layers, &c->lifetimes, &c->sizes, c->values, c->shared};
  cpu_stretch_t* found = NULL;
  for (size_t i = 0; !found && i < c->n_stretches; i++)
    if (cpu_stretch_fits(c->stretches[i], first, &setting)) found = c->stretches[i];
  if (!found) {
    const size_t at = place_for(c, first);
    ASSAY_TRY(assay_grow(&c->stretches, &c->cap_stretches, at + 1, sizeof(cpu_stretch_t*)));
    ASSAY_TRY(cpu_stretch_create(&setting, first, &found));
    c->stretches[c->n_stretches++] = found;
  }
  found->used = ++c->clock;
  return begin(c, found);
}

// ---- running --------------------------------------------------------------------------------

static assay_status_t run_emulated(cpu_t* c, size_t i) {
  const assay_layer_t* l = &c->layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  const cpu_value_list_t* reads = &c->lifetimes.reads[i];
  for (size_t k = 0; k < reads->n; k++) {
    assay_tensor_t* t = NULL;
    if (reads->at[k]->constant && !cpu_value_is_set(&c->values[reads->at[k]->id])) continue;
    ASSAY_TRY(canonical(c, reads->at[k], &t));
    if (t) ASSAY_TRY(assay_backend_emu.set(c->emu, reads->at[k], t));
  }
  ASSAY_TRY(assay_backend_emu.step(c->emu, i));
  for (size_t k = 0; k < last->n_outputs; k++) {
    assay_tensor_t* t = last->outputs[k] ? assay_backend_emu.get(c->emu, last->outputs[k]) : NULL;
    if (t) ASSAY_TRY(put(c, last->outputs[k], assay_tensor_retain(t)));
  }
  return NULL;
}

// Moves [from, to) of the stretch; *ok false: a tensor has another shape than was foreseen.
static assay_status_t run_moves(cpu_t* c, size_t from, size_t to, bool* ok) {
  for (size_t i = from; i < to; i++) {
    const cpu_stretch_move_t* m = &c->now->moves[i];
    if (m->from >= 0) {
      cpu_move_run(&m->move, c->at[m->from], c->at[m->to], aligned(c->scratch));
      continue;
    }
    cpu_value_t* value = &c->values[c->now->slots[m->to].value->id];
    const assay_tensor_t* any = cpu_value_any(value);
    assay_tensor_t* t;
    if (!any || any->kind != ASSAY_KIND_TENSOR || any->rank != m->move.rank ||
        (any->rank && memcmp(any->dims, m->move.dims, (size_t)any->rank * 8) != 0))
      return *ok = false, NULL;
    ASSAY_TRY(cpu_value_packed(value, m->move.to.type, &t));
    c->at[m->to] = t->data;
  }
  return NULL;
}

static assay_status_t run_kernel(cpu_t* c, const cpu_step_t* s, bool* ok) {
  const void* in[CPU_MAX_OPERANDS];
  void* out[CPU_MAX_OPERANDS];
  cpu_kernel_t* k = s->kernel;
  ASSAY_TRY(run_moves(c, s->moves, s->outputs, ok));
  if (!*ok) return NULL;
  for (int i = 0; i < s->n_in; i++) in[i] = s->in[i] < 0 ? NULL : c->at[s->in[i]];
  for (int i = 0; i < s->n_out; i++) out[i] = s->out[i] < 0 ? NULL : c->at[s->out[i]];
  if (k->run) ASSAY_TRY(k->run(k, in, out, aligned(c->scratch)));
  return run_moves(c, s->outputs, s->end, ok);
}

// The tensors of graph outputs that the layer has made.
static void hand_out(cpu_t* c, const assay_layer_t* l) {
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  for (size_t k = 0; k < last->n_outputs; k++) {
    const assay_value_t* v = last->outputs[k];
    if (v && v->is_output) cpu_value_put(&c->values[v->id], assay_tensor_retain(c->outputs[v->id]));
  }
}

static assay_status_t tapped(cpu_t* c, const assay_layer_t* l, assay_tensor_t* const* in,
                             size_t n_in) {
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  assay_tensor_t** out = NULL;
  ASSAY_TRY(assay_new_array(last->n_outputs, sizeof *out, &out));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < last->n_outputs; i++)
    if (last->outputs[i]) st = canonical(c, last->outputs[i], &out[i]);
  if (!st) st = c->tap->layer(c->tap->user, l, last, 0, n_in, in, last->n_outputs, out);
  assay_free(out);
  return st;
}

// All inputs of a layer, retained; hidden ones NULL.
static assay_status_t inputs_of(cpu_t* c, const assay_layer_t* l, assay_tensor_t** in) {
  for (size_t i = 0; i < l->n_nodes; i++)
    for (size_t j = 0; j < l->nodes[i]->n_inputs; j++, in++) {
      const assay_value_t* v = l->nodes[i]->inputs[j];
      if (!v || c->layers->hidden_value[v->id]) continue;
      ASSAY_TRY(canonical(c, v, in));
      assay_tensor_retain(*in);
    }
  return NULL;
}

static assay_status_t run_prepared(cpu_t* c, size_t i, bool* ok) {
  const cpu_step_t* s = &c->now->steps[i - (size_t)c->now->first];
  if (s->kernel) ASSAY_TRY(run_kernel(c, s, ok));
  if (s->kernel && *ok) hand_out(c, &c->layers->layers[i]);
  return NULL;
}

// With a tap: what enters is read before the kernel may write over it.
static assay_status_t run_tapped(cpu_t* c, size_t i, bool* ok) {
  const assay_layer_t* l = &c->layers->layers[i];
  size_t n = 0;
  for (size_t k = 0; k < l->n_nodes; k++) n += l->nodes[k]->n_inputs;
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *in, &in));
  assay_status_t st = inputs_of(c, l, in);
  if (!st) st = run_prepared(c, i, ok);
  if (!st && *ok) st = tapped(c, l, in, n);
  for (size_t k = 0; k < n; k++) assay_tensor_release(in[k]);
  assay_free(in);
  return st;
}

static assay_status_t cpu_step(void* state, size_t i) {
  cpu_t* c = state;
  c->layer = i;
  if (!c->now && !c->emulate) ASSAY_TRY(find_stretch(c, (int)i));
  const cpu_step_t* s = c->emulate ? NULL : &c->now->steps[i - (size_t)c->now->first];
  bool prepared = s && (s->kernel || s->known);
  // A tap asks how the layer that it sees rounds.
  c->ran[i] = prepared && s->kernel ? s->kernel->tactic : NULL;
  if (prepared) ASSAY_TRY(c->tap ? run_tapped(c, i, &prepared) : run_prepared(c, i, &prepared));
  if (!prepared) {
    c->ran[i] = NULL;
    // From here on nothing that was foreseen may be trusted.
    if (s && s->kernel) c->emulate = true;
    ASSAY_TRY(run_emulated(c, i));
  }
  const cpu_value_list_t* ends = &c->lifetimes.ends[i];
  for (size_t k = 0; k < ends->n; k++) cpu_value_clear(&c->values[ends->at[k]->id]);
  if (!c->emulate && (int)i + 1 == c->now->end) ASSAY_TRY(end(c));
  return NULL;
}

static const char* cpu_tactic(void* state, size_t i) {
  const cpu_t* c = state;
  return c->ran[i] ? c->ran[i]->name : "emu";
}

static size_t cpu_planned(void* state) {
  const cpu_t* c = state;
  return c->arena_bytes + c->scratch_bytes;
}

static void cpu_rounding(void* state, const assay_layer_t* layer, size_t n_in,
                         assay_tensor_t* const* in, assay_rounding_t* out) {
  const cpu_t* c = state;
  const ptrdiff_t i = layer ? layer - c->layers->layers : -1;
  if (i >= 0 && (size_t)i < c->layers->n_layers && c->ran[i])
    *out = c->ran[i]->rounding;
  else
    assay_backend_emu.rounding(c->emu, layer, n_in, in, out);
}

// ---- what contexts share -----------------------------------------------------------------------

#define TIMINGS "timings"

static assay_status_t cpu_share(const assay_layers_t* layers,
                                const assay_backend_options_t* options, void** out_shared) {
  (void)layers;
  cpu_shared_t* shared = NULL;
  ASSAY_TRY(cpu_shared_create(options, &shared));
  *out_shared = shared;
  return NULL;
}

static void cpu_unshare(void* shared) { cpu_shared_destroy(shared); }

static assay_status_t cpu_timings(void* shared, assay_str_t* out, bool* out_measured) {
  const cpu_shared_t* s = shared;
  *out_measured = s->measured;
  return cpu_timings_print(s->timings, false, out);
}

// First the timings that were looked up, so that a plan that is read makes the same choices.
static assay_status_t cpu_saved(void* shared, size_t i, const char** out_key, const void** out_data,
                                size_t* out_bytes) {
  cpu_shared_t* s = shared;
  *out_key = NULL;
  if (i > cpu_store_count(s->store)) return NULL;
  if (i) return cpu_store_entry(s->store, i - 1, out_key, out_data, out_bytes), NULL;
  assay_str_deinit(&s->text);
  ASSAY_TRY(cpu_timings_print(s->timings, true, &s->text));
  *out_key = TIMINGS;
  *out_data = assay_str_get(&s->text);
  *out_bytes = strlen(assay_str_get(&s->text));
  return NULL;
}

static assay_status_t cpu_restore(void* shared, const char* key, const void* data, size_t bytes) {
  cpu_shared_t* s = shared;
  if (strcmp(key, TIMINGS) == 0) return cpu_timings_parse(s->timings, data, bytes, NULL);
  return cpu_store_put(s->store, key, data, bytes);
}

// What was prepared for layer i last; NULL: nothing.
static const cpu_step_t* step_of(const cpu_t* c, size_t i) {
  const cpu_stretch_t* found = NULL;
  for (size_t k = 0; k < c->n_stretches; k++) {
    const cpu_stretch_t* s = c->stretches[k];
    if ((int)i >= s->first && (int)i < s->end && (!found || s->used > found->used)) found = s;
  }
  return found ? &found->steps[i - (size_t)found->first] : NULL;
}

static assay_format_t cpu_executed(void* state, size_t i) {
  const cpu_t* c = state;
  const cpu_step_t* s = step_of(c, i);
  if (s && s->known) return ASSAY_FORMAT_NONE;
  if (!s || !s->kernel) return c->layers->layers[i].format;
  for (int k = 0; k < s->n_in; k++)
    if (cpu_is_float(s->kernel->in[k].type)) return assay_type_format(s->kernel->in[k].type);
  return ASSAY_FORMAT_NONE;
}

static const char* layout_name(cpu_layout_t layout) {
  return layout == CPU_CHANNELS_LAST ? " channels last" : "";
}

static void explain_forms(const cpu_step_t* s, assay_str_t* out) {
  assay_str_append(out, "  reads");
  for (int k = 0; k < s->n_in; k++)
    if (s->kernel->in[k].type)
      assay_str_printf(out, " %s%s;", assay_type_name(s->kernel->in[k].type),
                       layout_name(s->kernel->in[k].layout));
  assay_str_append(out, " writes");
  for (int k = 0; k < s->n_out; k++)
    if (s->out[k] >= 0)
      assay_str_printf(out, " %s%s;", assay_type_name(s->kernel->out[k].type),
                       layout_name(s->kernel->out[k].layout));
  assay_str_printf(out, " values moved before it: %zu\n", s->outputs - s->moves);
}

static void cpu_explain(void* state, size_t i, assay_str_t* out) {
  const cpu_step_t* s = step_of(state, i);
  if (!s) {
    assay_str_append(out, "  it has not run\n");
  } else if (s->known) {
    assay_str_append(out, "  nothing runs: its contents follow from sizes\n");
  } else if (!s->kernel) {
    assay_str_append(out, "  no tactic takes it: the emulated engine runs it\n");
  } else {
    for (int t = 0; t < s->n_candidates; t++) {
      const cpu_candidate_t* x = &s->candidates[t];
      assay_str_printf(out, "%s %-16s of %-8s ", x->tactic == s->kernel->tactic ? "*" : " ",
                       x->tactic->name, x->tactic->source);
      if (isnan(x->microseconds))
        assay_str_append(out, "not timed: the first that takes it\n");
      else
        assay_str_printf(out, "%10.2f us\n", x->microseconds);
    }
    explain_forms(s, out);
  }
}

const assay_backend_t assay_backend_cpu = {.name = "cpu",
                                           .share = cpu_share,
                                           .unshare = cpu_unshare,
                                           .saved = cpu_saved,
                                           .restore = cpu_restore,
                                           .timings = cpu_timings,
                                           .explain = cpu_explain,
                                           .executed = cpu_executed,
                                           .describe = cpu_describe_machine,
                                           .open = cpu_open,
                                           .close = cpu_close,
                                           .set = cpu_set,
                                           .get = cpu_get,
                                           .bind = cpu_bind,
                                           .packed = cpu_packed,
                                           .step = cpu_step,
                                           .reset = cpu_reset,
                                           .tactic = cpu_tactic,
                                           .planned = cpu_planned,
                                           .rounding = cpu_rounding};
