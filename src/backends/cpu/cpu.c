// The CPU backend: each layer by a kernel that a tactic has made for its sizes, or, where no tactic
// takes it, by the emulated engine in the same formats.
//
// Sizes are known as soon as the values are: names of dimensions are bound when a value that has
// them comes into being, and the sizes of a layer's outputs follow. Kernels are kept by the sizes
// that they were made for, the last ones used of each layer.
#include <string.h>

#include "backends/backend.h"
#include "backends/cpu/sizes.h"
#include "backends/cpu/tactic.h"
#include "backends/cpu/values.h"
#include "base/alloc.h"
#include "formats/format.h"
#include "truth/machine.h"

enum { KERNELS = 4 };  // kept of each layer

// What was made of a layer for given sizes.
typedef struct prepared {
  bool made;
  cpu_layer_t layer;
  cpu_kernel_t* kernel;  // NULL: no tactic takes it
  uint64_t used;         // when last; the least is given up first
} prepared_t;

typedef struct step {
  prepared_t prepared[KERNELS];
  const cpu_tactic_t* ran;      // NULL: the emulated engine
  const assay_value_t** reads;  // values of the top graph that its nodes and their bodies read
  size_t n_reads, cap_reads;
  const assay_value_t** ends;  // values that are not needed behind it
  size_t n_ends, cap_ends;
} step_t;

typedef struct cpu {
  const assay_layers_t* layers;
  const assay_tap_t* tap;
  void* emu;
  cpu_value_t* values;  // by value id
  step_t* steps;        // by layer of the top graph
  cpu_sizes_t sizes;
  char* scratch;
  size_t scratch_bytes;
  uint64_t clock;
} cpu_t;

// ---- what tactics ask -----------------------------------------------------------------------

const cpu_operand_t* cpu_input(const cpu_layer_t* l, const assay_value_t* v) {
  const int i = cpu_input_index(l, v);
  return i < 0 ? NULL : &l->in[i];
}

int cpu_input_index(const cpu_layer_t* l, const assay_value_t* v) {
  for (size_t i = 0; v && i < l->n_in; i++)
    if (l->in[i].value == v) return (int)i;
  return -1;
}

size_t cpu_operand_bytes(const cpu_operand_t* o, assay_type_t type) {
  int64_t bytes = 0;
  return assay_type_packed_bytes(type, o->size, &bytes) ? (size_t)bytes : 0;
}

bool cpu_is_channels_last(const cpu_operand_t* o) {
  return o->layout == CPU_CHANNELS_LAST && o->rank >= 3;
}

bool cpu_is_float(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT || type == ASSAY_TYPE_FLOAT16 || type == ASSAY_TYPE_BFLOAT16;
}

assay_status_t cpu_constant_floats(const cpu_operand_t* o, float** out) {
  assay_tensor_t *wide = NULL, *rounded = NULL;
  float* x = NULL;
  assay_status_t st = assay_tensor_widen((assay_tensor_t*)(uintptr_t)o->constant, &wide);
  if (!st) st = assay_round_tensor(wide, assay_type_format(o->type), &rounded);
  if (!st) st = assay_new_array((size_t)o->size, sizeof *x, &x);
  for (int64_t i = 0; !st && i < o->size; i++) x[i] = (float)assay_f64(rounded)[i];
  assay_tensor_release(wide);
  assay_tensor_release(rounded);
  *out = x;
  return st;
}

// ---- layers as they are before any run ------------------------------------------------------

static assay_status_t note_read(cpu_t* c, step_t* s, const assay_value_t* v) {
  if (!v || v->graph != c->layers->model->graph || c->layers->hidden_value[v->id]) return NULL;
  for (size_t i = 0; i < s->n_reads; i++)
    if (s->reads[i] == v) return NULL;
  ASSAY_TRY(assay_grow(&s->reads, &s->cap_reads, s->n_reads + 1, sizeof *s->reads));
  s->reads[s->n_reads++] = v;
  return NULL;
}

static assay_status_t note_reads(cpu_t* c, step_t* s, const assay_node_t* node) {
  for (size_t i = 0; i < node->n_inputs; i++) ASSAY_TRY(note_read(c, s, node->inputs[i]));
  for (size_t a = 0; a < node->n_attrs; a++) {
    const assay_attr_t* attr = &node->attrs[a];
    const bool single = attr->type == ASSAY_ATTR_GRAPH;
    if (!single && attr->type != ASSAY_ATTR_GRAPHS) continue;
    for (size_t k = 0; k < (single ? 1 : attr->n); k++) {
      const assay_graph_t* body = single ? attr->u.g : attr->u.graphs[k];
      for (size_t i = 0; i < body->n_nodes; i++) ASSAY_TRY(note_reads(c, s, body->nodes[i]));
      for (size_t i = 0; i < body->n_outputs; i++) ASSAY_TRY(note_read(c, s, body->outputs[i]));
    }
  }
  return NULL;
}

static assay_status_t note_end(step_t* s, const assay_value_t* v) {
  ASSAY_TRY(assay_grow(&s->ends, &s->cap_ends, s->n_ends + 1, sizeof *s->ends));
  s->ends[s->n_ends++] = v;
  return NULL;
}

// Which values each layer is the last one to read, or makes though nobody reads them.
static assay_status_t find_ends(cpu_t* c) {
  const assay_layers_t* layers = c->layers;
  const size_t n = (size_t)layers->model->n_values;
  int* last = NULL;
  const assay_value_t** value = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *last, &last));
  assay_status_t st = assay_new_array(n, sizeof *value, &value);
  for (size_t i = 0; !st && i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    const assay_node_t* end = l->nodes[l->n_nodes - 1];
    for (size_t k = 0; !st && k < l->n_nodes; k++) st = note_reads(c, &c->steps[i], l->nodes[k]);
    for (size_t k = 0; k < c->steps[i].n_reads; k++) {
      const assay_value_t* v = c->steps[i].reads[k];
      value[v->id] = v;
      last[v->id] = (int)i;
    }
    for (size_t k = 0; k < end->n_outputs; k++)
      if (end->outputs[k]) {
        value[end->outputs[k]->id] = end->outputs[k];
        last[end->outputs[k]->id] = (int)i;
      }
  }
  for (size_t v = 0; !st && v < n; v++)
    if (value[v] && !value[v]->is_output && !value[v]->constant)
      st = note_end(&c->steps[last[v]], value[v]);
  assay_free(last);
  assay_free(value);
  return st;
}

static void clear_prepared(prepared_t* p) {
  if (p->kernel) p->kernel->destroy(p->kernel);
  *p = (prepared_t){0};
}

static void cpu_close(void* state) {
  cpu_t* c = state;
  if (!c) return;
  for (int i = 0; c->values && i < c->layers->model->n_values; i++) cpu_value_clear(&c->values[i]);
  for (size_t i = 0; c->steps && i < c->layers->n_layers; i++) {
    for (int k = 0; k < KERNELS; k++) clear_prepared(&c->steps[i].prepared[k]);
    assay_free(c->steps[i].reads);
    assay_free(c->steps[i].ends);
  }
  assay_free(c->values);
  assay_free(c->steps);
  cpu_sizes_deinit(&c->sizes);
  assay_free(c->scratch);
  if (c->emu) assay_backend_emu.close(c->emu);
  assay_free(c);
}

static assay_status_t cpu_open(const assay_layers_t* layers, const assay_tap_t* tap,
                               void** out_state) {
  cpu_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  c->layers = layers;
  c->tap = tap;
  assay_status_t st = assay_backend_emu.open(layers, tap, &c->emu);
  if (!st) st = assay_new_array((size_t)layers->model->n_values, sizeof *c->values, &c->values);
  if (!st) st = assay_new_array(layers->n_layers, sizeof *c->steps, &c->steps);
  if (!st) st = find_ends(c);
  if (st) return cpu_close(c), st;
  *out_state = c;
  return NULL;
}

// ---- values ---------------------------------------------------------------------------------

static assay_type_t type_of(const assay_value_t* v) {
  return v->type && v->type->kind == ASSAY_KIND_TENSOR ? v->type->elem : ASSAY_TYPE_UNDEFINED;
}

static assay_status_t put(cpu_t* c, const assay_value_t* v, assay_tensor_t* take_tensor,
                          cpu_layout_t layout) {
  cpu_value_put(&c->values[v->id], take_tensor, layout);
  return cpu_sizes_bind(&c->sizes, v->type, take_tensor->rank, take_tensor->dims);
}

static assay_status_t cpu_set(void* state, const assay_value_t* v, assay_tensor_t* t) {
  return put(state, v, assay_tensor_retain(t), CPU_PLAIN);
}

// A value that has been made, or a constant, which gets a slot when it is first read.
static assay_status_t slot(cpu_t* c, const assay_value_t* v, cpu_value_t** out) {
  *out = &c->values[v->id];
  if (cpu_value_is_set(*out) || !v->constant) return NULL;
  ASSAY_TRY(put(c, v, assay_tensor_retain(v->constant), CPU_PLAIN));
  (*out)->keep = true;
  return NULL;
}

static assay_status_t canonical(cpu_t* c, const assay_value_t* v, assay_tensor_t** out) {
  cpu_value_t* value;
  ASSAY_TRY(slot(c, v, &value));
  *out = NULL;
  if (!cpu_value_is_set(value)) return NULL;
  const assay_type_t type = type_of(v) ? type_of(v) : cpu_value_any(value)->type;
  return cpu_value_canonical(value, type, out);
}

static assay_tensor_t* cpu_get(void* state, const assay_value_t* v) {
  assay_tensor_t* t = NULL;
  assay_status_t st = canonical(state, v, &t);
  if (!st) return t;
  assay_status_free(st);
  return NULL;
}

static void cpu_reset(void* state) {
  cpu_t* c = state;
  for (int i = 0; i < c->layers->model->n_values; i++)
    if (!c->values[i].keep) cpu_value_clear(&c->values[i]);
  cpu_sizes_clear(&c->sizes);
  assay_backend_emu.reset(c->emu);
}

// ---- kernels --------------------------------------------------------------------------------

// The type that holds a format's numbers in memory; UNDEFINED: none does.
static assay_type_t memory_type(assay_format_t format) {
  switch (format) {
    case ASSAY_FORMAT_FP32:
      return ASSAY_TYPE_FLOAT;
    case ASSAY_FORMAT_FP16:
      return ASSAY_TYPE_FLOAT16;
    case ASSAY_FORMAT_BF16:
      return ASSAY_TYPE_BFLOAT16;
    case ASSAY_FORMAT_FP64:
      return ASSAY_TYPE_DOUBLE;
    default:
      return ASSAY_TYPE_UNDEFINED;
  }
}

// In which type input i of a node enters the layer.
static assay_type_t entering_type(const cpu_t* c, const assay_layer_t* l, const assay_node_t* node,
                                  size_t i) {
  const assay_type_t declared = type_of(node->inputs[i]);
  if (declared != ASSAY_TYPE_FLOAT) return declared;
  const assay_tensor_t shape = {.kind = ASSAY_KIND_TENSOR, .type = declared};
  const assay_format_t f = assay_layer_operand(c->layers, l, node, i, &shape);
  if (f != ASSAY_FORMAT_NONE) return memory_type(f);
  // What the layer takes as it is lies in the format of the layer that made it.
  const assay_node_t* maker = node->inputs[i]->producer;
  const int made_by = maker ? c->layers->layer_of_node[maker->id] : -1;
  return made_by < 0 ? declared
                     : memory_type(assay_layer_storage(&c->layers->layers[made_by], declared));
}

static bool describe_input(cpu_t* c, cpu_layer_t* d, const assay_node_t* node, size_t i) {
  const assay_value_t* v = node->inputs[i];
  if (!v || c->layers->hidden_value[v->id]) return true;
  const assay_type_t type = entering_type(c, d->layer, node, i);
  const cpu_operand_t* known = cpu_input(d, v);
  if (known) return known->type == type;
  const assay_tensor_t* t = v->constant ? v->constant : cpu_value_any(&c->values[v->id]);
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->rank > CPU_MAX_RANK || !type ||
      d->n_in == CPU_MAX_OPERANDS)
    return false;
  cpu_operand_t* o = &d->in[d->n_in++];
  *o = (cpu_operand_t){.value = v,
                       .rank = t->rank,
                       .size = t->size,
                       .type = type,
                       .layout = cpu_value_layout(&c->values[v->id]),
                       .constant = v->constant};
  if (t->rank) memcpy(o->dims, t->dims, (size_t)t->rank * sizeof *o->dims);
  return true;
}

static bool describe_output(cpu_t* c, cpu_layer_t* d, const assay_value_t* v) {
  if (d->n_out == CPU_MAX_OPERANDS) return false;
  cpu_operand_t* o = &d->out[d->n_out++];
  *o = (cpu_operand_t){.value = v};
  if (!v) return true;
  o->type = type_of(v);
  if (o->type == ASSAY_TYPE_FLOAT) o->type = memory_type(assay_layer_storage(d->layer, o->type));
  return o->type && cpu_sizes_of(&c->sizes, v, CPU_MAX_RANK, &o->rank, o->dims) &&
         assay_dims_size(o->rank, o->dims, &o->size);
}

// The layer with the sizes that it has now; false: not for tactics.
static bool describe(cpu_t* c, size_t i, cpu_layer_t* d) {
  const assay_layer_t* l = &c->layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  *d = (cpu_layer_t){.layers = c->layers, .layer = l};
  // What sums are kept in is fp32 in all tactics; tf32 is no format of a CPU.
  if (l->format == ASSAY_FORMAT_TF32 || l->accumulator != ASSAY_FORMAT_FP32) return false;
  for (size_t k = 0; k < l->n_nodes; k++) {
    if (!l->nodes[k]->op || l->nodes[k]->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM))
      return false;
    for (size_t j = 0; j < l->nodes[k]->n_inputs; j++)
      if (!describe_input(c, d, l->nodes[k], j)) return false;
  }
  for (size_t k = 0; k < last->n_outputs; k++)
    if (!describe_output(c, d, last->outputs[k])) return false;
  return true;
}

static bool same_operands(const cpu_operand_t* a, const cpu_operand_t* b, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (a[i].rank != b[i].rank || a[i].layout != b[i].layout ||
        (a[i].rank && memcmp(a[i].dims, b[i].dims, (size_t)a[i].rank * sizeof *a[i].dims) != 0))
      return false;
  return true;
}

static assay_status_t make_kernel(const cpu_layer_t* d, cpu_kernel_t** out) {
  *out = NULL;
  for (size_t t = 0; !*out && t < cpu_n_tactics; t++) {
    ASSAY_TRY(cpu_tactics[t]->make(d, out));
    if (*out) (*out)->tactic = cpu_tactics[t];
  }
  return NULL;
}

// The kernel for a layer at its sizes, from those that are kept or new.
static assay_status_t prepare(cpu_t* c, size_t i, prepared_t** out) {
  step_t* s = &c->steps[i];
  prepared_t* oldest = &s->prepared[0];
  cpu_layer_t d;
  *out = NULL;
  if (!describe(c, i, &d)) return NULL;
  for (int k = 0; k < KERNELS; k++) {
    prepared_t* p = &s->prepared[k];
    if (p->made && p->layer.n_in == d.n_in && same_operands(p->layer.in, d.in, d.n_in) &&
        same_operands(p->layer.out, d.out, d.n_out))
      *out = p;
    if (!p->made || (oldest->made && p->used < oldest->used)) oldest = p;
  }
  if (!*out) {
    clear_prepared(oldest);
    ASSAY_TRY(assay_status_note(make_kernel(&d, &oldest->kernel), "layer '%s'", d.layer->name));
    oldest->layer = d;
    oldest->made = true;
    *out = oldest;
  }
  (*out)->used = ++c->clock;
  return NULL;
}

// ---- running --------------------------------------------------------------------------------

static assay_status_t run_emu(cpu_t* c, size_t i) {
  const assay_layer_t* l = &c->layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  step_t* s = &c->steps[i];
  s->ran = NULL;
  for (size_t k = 0; k < s->n_reads; k++) {
    assay_tensor_t* t = NULL;
    if (s->reads[k]->constant && !cpu_value_is_set(&c->values[s->reads[k]->id])) continue;
    ASSAY_TRY(canonical(c, s->reads[k], &t));
    if (t) ASSAY_TRY(assay_backend_emu.set(c->emu, s->reads[k], t));
  }
  ASSAY_TRY(assay_backend_emu.step(c->emu, i));
  for (size_t k = 0; k < last->n_outputs; k++) {
    assay_tensor_t* t = last->outputs[k] ? assay_backend_emu.get(c->emu, last->outputs[k]) : NULL;
    if (t) ASSAY_TRY(put(c, last->outputs[k], assay_tensor_retain(t), CPU_PLAIN));
  }
  return NULL;
}

static assay_status_t scratch_of(cpu_t* c, size_t bytes) {
  if (bytes <= c->scratch_bytes) return NULL;
  assay_free(c->scratch);
  c->scratch_bytes = 0;
  c->scratch = assay_malloc(bytes);
  if (!c->scratch) return assay_status_no_memory();
  c->scratch_bytes = bytes;
  return NULL;
}

// The inputs in the forms that the kernel reads; each retained in held[].
static assay_status_t fetch(cpu_t* c, const cpu_layer_t* d, const cpu_kernel_t* k,
                            assay_tensor_t** held) {
  for (size_t i = 0; i < d->n_in; i++) {
    cpu_value_t* value;
    assay_tensor_t* t;
    if (!k->in[i].type) continue;
    ASSAY_TRY(slot(c, d->in[i].value, &value));
    // Rounded to the type in which the layer takes it, also where the kernel computes in a wider
    // one.
    ASSAY_TRY(cpu_value_in_form(value, d->in[i].type, k->in[i], &t));
    held[i] = assay_tensor_retain(t);
  }
  return NULL;
}

static assay_status_t run_kernel(cpu_t* c, prepared_t* p) {
  const cpu_layer_t* d = &p->layer;
  cpu_kernel_t* k = p->kernel;
  assay_tensor_t *in[CPU_MAX_OPERANDS] = {NULL}, *out[CPU_MAX_OPERANDS] = {NULL};
  const void* from[CPU_MAX_OPERANDS] = {NULL};
  void* to[CPU_MAX_OPERANDS] = {NULL};
  assay_status_t st = scratch_of(c, k->scratch);
  if (!st) st = fetch(c, d, k, in);
  for (size_t i = 0; !st && i < d->n_out; i++) {
    const cpu_operand_t* o = &d->out[i];
    if (!o->value) continue;
    if (!k->run)
      st = assay_tensor_view(in[k->in_place], o->rank, o->dims, &out[i]);
    else
      st = assay_tensor_create_packed(k->out[i].type, o->rank, o->dims, &out[i]);
    if (!st) to[i] = out[i]->data;
  }
  for (size_t i = 0; i < d->n_in; i++)
    if (in[i]) from[i] = in[i]->data;
  if (!st && k->run) st = k->run(k, from, to, c->scratch);
  for (size_t i = 0; i < d->n_out; i++) {
    if (!out[i]) continue;
    if (!st) {
      st = put(c, d->out[i].value, out[i], k->out[i].layout);
    } else {
      assay_tensor_release(out[i]);
    }
  }
  for (size_t i = 0; i < d->n_in; i++) assay_tensor_release(in[i]);
  return st;
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

// With a tap: what enters is read before the kernel may write over it.
static assay_status_t run_tapped(cpu_t* c, prepared_t* p) {
  const assay_layer_t* l = p->layer.layer;
  size_t n = 0, k = 0;
  for (size_t i = 0; i < l->n_nodes; i++) n += l->nodes[i]->n_inputs;
  assay_tensor_t** in = NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *in, &in));
  assay_status_t st = NULL;
  for (size_t i = 0; i < l->n_nodes; i++)
    for (size_t j = 0; j < l->nodes[i]->n_inputs; j++, k++) {
      const assay_value_t* v = l->nodes[i]->inputs[j];
      if (st || !v || c->layers->hidden_value[v->id]) continue;
      st = canonical(c, v, &in[k]);
      if (!st) assay_tensor_retain(in[k]);
    }
  if (!st) st = run_kernel(c, p);
  if (!st) st = tapped(c, l, in, n);
  for (size_t i = 0; i < n; i++) assay_tensor_release(in[i]);
  assay_free(in);
  return st;
}

static assay_status_t cpu_step(void* state, size_t i) {
  cpu_t* c = state;
  step_t* s = &c->steps[i];
  prepared_t* p = NULL;
  ASSAY_TRY(prepare(c, i, &p));
  if (!p || !p->kernel) {
    ASSAY_TRY(run_emu(c, i));
  } else {
    s->ran = p->kernel->tactic;
    ASSAY_TRY(c->tap ? run_tapped(c, p) : run_kernel(c, p));
  }
  for (size_t k = 0; k < s->n_ends; k++) cpu_value_clear(&c->values[s->ends[k]->id]);
  return NULL;
}

static const char* cpu_tactic(void* state, size_t i) {
  const cpu_tactic_t* ran = ((const cpu_t*)state)->steps[i].ran;
  return ran ? ran->name : "emu";
}

static void cpu_rounding(void* state, const assay_layer_t* layer, size_t n_in,
                         assay_tensor_t* const* in, assay_rounding_t* out) {
  const cpu_t* c = state;
  const ptrdiff_t i = layer ? layer - c->layers->layers : -1;
  if (i >= 0 && (size_t)i < c->layers->n_layers && c->steps[i].ran)
    *out = c->steps[i].ran->rounding;
  else
    assay_backend_emu.rounding(c->emu, layer, n_in, in, out);
}

const assay_backend_t assay_backend_cpu = {.name = "cpu",
                                           .open = cpu_open,
                                           .close = cpu_close,
                                           .set = cpu_set,
                                           .get = cpu_get,
                                           .step = cpu_step,
                                           .reset = cpu_reset,
                                           .tactic = cpu_tactic,
                                           .rounding = cpu_rounding};
