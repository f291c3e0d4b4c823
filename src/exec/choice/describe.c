// Layers as tactics see them: with the sizes that they have in a run.
#include "exec/choice/describe.h"

#include <string.h>

#include "base/alloc.h"
#include "eval/evaluator.h"
#include "formats/format.h"

// The type that holds a format's numbers in memory; UNDEFINED: none does. What is tf32 lies as
// float32: kernels round it as they read it.
static assay_type_t memory_type(assay_format_t format) {
  switch (format) {
    case ASSAY_FORMAT_FP32:
    case ASSAY_FORMAT_TF32:
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

static assay_type_t declared_type(const assay_value_t* v) {
  return v->type && v->type->kind == ASSAY_KIND_TENSOR ? v->type->elem : ASSAY_TYPE_UNDEFINED;
}

assay_type_t assay_stored_type(const assay_layers_t* layers, const assay_value_t* v) {
  const assay_type_t declared = declared_type(v);
  if (declared != ASSAY_TYPE_FLOAT || !v->producer) return declared;
  const int made_by = layers->layer_of_node[v->producer->id];
  if (made_by < 0) return declared;
  return memory_type(assay_layer_storage(&layers->layers[made_by], declared));
}

// In which type input i of a node enters the layer.
static assay_type_t entering_type(const assay_layers_t* layers, const assay_layer_t* l,
                                  const assay_node_t* node, size_t i) {
  const assay_type_t declared = declared_type(node->inputs[i]);
  if (declared != ASSAY_TYPE_FLOAT) return declared;
  const assay_tensor_t shape = {.kind = ASSAY_KIND_TENSOR, .type = declared};
  const assay_format_t f = assay_layer_operand(layers, l, node, i, &shape);
  // What the layer takes as it is lies in the format of the layer that made it.
  return f == ASSAY_FORMAT_NONE ? assay_stored_type(layers, node->inputs[i]) : memory_type(f);
}

typedef struct description {
  const assay_layers_t* layers;
  const assay_sizes_t* sizes;
  assay_describe_value_t* describe_value;
  void* user;
  assay_sized_layer_t* out;
} description_t;

static bool is_of_numbers(assay_type_t t) { return t && t != ASSAY_TYPE_STRING; }

static bool describe_input(const description_t* c, const assay_node_t* node, size_t i) {
  assay_sized_layer_t* d = c->out;
  const assay_value_t* v = node->inputs[i];
  if (!v || c->layers->hidden_value[v->id]) return true;
  const assay_type_t type = entering_type(c->layers, d->layer, node, i);
  const assay_operand_t* known = assay_sized_input(d, v);
  if (known) return known->type == type;
  if (!is_of_numbers(type) || d->n_in == ASSAY_KERNEL_OPERANDS) return false;
  assay_operand_t* o = &d->in[d->n_in++];
  *o = (assay_operand_t){.value = v, .type = type};
  return c->describe_value(c->user, v, o);
}

static bool describe_output(const description_t* c, const assay_value_t* v) {
  assay_sized_layer_t* d = c->out;
  if (d->n_out == ASSAY_KERNEL_OPERANDS) return false;
  assay_operand_t* o = &d->out[d->n_out++];
  *o = (assay_operand_t){.value = v};
  if (!v) return true;
  o->type = assay_stored_type(c->layers, v);
  return is_of_numbers(o->type) &&
         assay_sizes_of(c->sizes, v, ASSAY_KERNEL_RANK, &o->rank, o->dims) &&
         assay_dims_size(o->rank, o->dims, &o->size);
}

bool assay_describe_layer(const assay_layers_t* layers, size_t i, const assay_sizes_t* sizes,
                          assay_describe_value_t* describe_value, void* user,
                          assay_sized_layer_t* out) {
  const assay_layer_t* l = &layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  const description_t c = {layers, sizes, describe_value, user, out};
  *out = (assay_sized_layer_t){.layers = layers, .layer = l};
  for (size_t k = 0; k < l->n_nodes; k++) {
    if (!l->nodes[k]->op || l->nodes[k]->op->flags & (ASSAY_OP_CONTROL | ASSAY_OP_RANDOM))
      return false;
    for (size_t j = 0; j < l->nodes[k]->n_inputs; j++)
      if (!describe_input(&c, l->nodes[k], j)) return false;
  }
  for (size_t k = 0; k < last->n_outputs; k++)
    if (!describe_output(&c, last->outputs[k])) return false;
  return true;
}

// ---- what tactics ask -----------------------------------------------------------------------

const assay_operand_t* assay_sized_input(const assay_sized_layer_t* l, const assay_value_t* v) {
  const int i = assay_sized_input_index(l, v);
  return i < 0 ? NULL : &l->in[i];
}

int assay_sized_input_index(const assay_sized_layer_t* l, const assay_value_t* v) {
  for (size_t i = 0; v && i < l->n_in; i++)
    if (l->in[i].value == v) return (int)i;
  return -1;
}

void assay_sized_note_accuracy_gate(const assay_sized_layer_t* l,
                                    const assay_accuracy_gate_t* gate) {
  if (l->gates && l->gates->n < ASSAY_MAX_ACCURACY_GATES) l->gates->at[l->gates->n++] = *gate;
}

void assay_operand_memory_dims(const assay_operand_t* o, int64_t* dims) {
  memcpy(dims, o->dims, sizeof o->dims);
  if (o->capacity.size) dims[o->capacity.axis] = o->capacity.size;
}

size_t assay_operand_bytes(const assay_operand_t* o, assay_type_t type) {
  int64_t dims[ASSAY_KERNEL_RANK], size = o->size, bytes = 0;
  assay_operand_memory_dims(o, dims);
  if (o->capacity.size) size = assay_dims_product(dims, 0, o->rank);
  return assay_type_packed_bytes(type, size, &bytes) ? (size_t)bytes : 0;
}

bool assay_operand_is_channels_last(const assay_operand_t* o) {
  return o->layout == ASSAY_LAYOUT_CHANNELS_LAST && o->rank >= 3;
}

bool assay_type_is_kernel_float(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT || type == ASSAY_TYPE_FLOAT16 || type == ASSAY_TYPE_BFLOAT16;
}

static bool lies_as_floats(const assay_operand_t* o) {
  return o->constant->store == ASSAY_STORE_PACKED && o->constant->type == ASSAY_TYPE_FLOAT &&
         o->type == ASSAY_TYPE_FLOAT;
}

// Elements [at, at + n) of a tensor, as floats of the type in which the layer takes it.
static assay_status_t floats_of(const assay_operand_t* o, int64_t at, int64_t n, float* to) {
  const assay_tensor_t* t = o->constant;
  assay_tensor_t *part = NULL, *wide = NULL, *rounded = NULL;
  int64_t from = 0, bytes = 0;
  assay_status_t st = NULL;
  if (t->store == ASSAY_STORE_PACKED || t->store == ASSAY_STORE_NARROW) {
    const assay_type_t type = assay_tensor_lies_as(t);
    if (!assay_type_packed_bytes(type, at, &from) || !assay_type_packed_bytes(type, n, &bytes))
      return assay_status_no_memory();
    if (lies_as_floats(o)) {  // as nearly all weights do
      memcpy(to, (const char*)t->data + from, (size_t)bytes);
      return NULL;
    }
    st = assay_tensor_wrap_packed(type, 1, &n, (const char*)t->data + from, bytes, NULL, NULL,
                                  &part);
    if (!st) st = assay_tensor_widen(part, &wide);
  } else {
    st = assay_tensor_create(t->type, 1, &n, &wide);
    if (!st) memcpy(wide->data, assay_f64(t) + at, (size_t)n * sizeof(double));
  }
  const bool lies_rounded = t->store == ASSAY_STORE_NARROW && t->narrow == o->type;
  if (!st && lies_rounded) rounded = assay_tensor_retain(wide);
  if (!st && !lies_rounded) st = assay_round_tensor(wide, assay_type_format(o->type), &rounded);
  for (int64_t i = 0; !st && i < n; i++) to[i] = (float)assay_f64(rounded)[i];
  assay_tensor_release(part);
  assay_tensor_release(wide);
  assay_tensor_release(rounded);
  return st;
}

// Piece by piece: float64 in between takes twice the room, and weights are large.
assay_status_t assay_operand_floats(const assay_operand_t* o, float** out) {
  enum { PIECE = 1 << 16 };  // even: two elements of 4 bits share a byte
  float* x = NULL;
  ASSAY_TRY(assay_new_array((size_t)o->size, sizeof *x, &x));
  assay_status_t st = NULL;
  for (int64_t at = 0; !st && at < o->size; at += PIECE)
    st = floats_of(o, at, o->size - at < PIECE ? o->size - at : PIECE, x + at);
  assay_tensor_forget(o->constant);
  if (st) return assay_free(x), st;
  *out = x;
  return NULL;
}

assay_status_t assay_operand_view(const assay_operand_t* o, const float** out, float** made) {
  *made = NULL;
  if (lies_as_floats(o) && (uintptr_t)o->constant->data % _Alignof(float) == 0) {
    *out = o->constant->data;
    return NULL;
  }
  ASSAY_TRY(assay_operand_floats(o, made));
  *out = *made;
  return NULL;
}

assay_status_t assay_operand_narrow(const assay_operand_t* o, assay_tensor_t** out) {
  assay_tensor_t* t = (assay_tensor_t*)(uintptr_t)o->constant;
  assay_tensor_t* narrow = NULL;
  if (o->type != ASSAY_TYPE_FLOAT16 && o->type != ASSAY_TYPE_BFLOAT16) return NULL;
  if (t->store == ASSAY_STORE_PACKED && t->type == o->type &&
      (uintptr_t)t->data % sizeof(uint16_t) == 0)
    return *out = assay_tensor_retain(t), NULL;
  if (t->type != ASSAY_TYPE_FLOAT || t->store == ASSAY_STORE_LATE) return NULL;
  if (t->store == ASSAY_STORE_NARROW && t->narrow == o->type) return assay_tensor_narrowed(t, out);
  ASSAY_TRY(assay_tensor_narrow(t, o->type, &narrow));
  if (!narrow) return NULL;
  assay_status_t st = assay_tensor_narrowed(narrow, out);
  assay_tensor_release(narrow);
  return st;
}

assay_status_t assay_operand_padded_floats(const assay_operand_t* o, int64_t capacity,
                                           float** out) {
  float* given = NULL;
  if (!o) return NULL;
  ASSAY_TRY(assay_operand_floats(o, &given));
  assay_status_t st = assay_new_array((size_t)capacity, sizeof **out, out);
  if (!st) memcpy(*out, given, (size_t)o->size * sizeof *given);
  assay_free(given);
  return st;
}
