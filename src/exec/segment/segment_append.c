// Values that grow in place (exec/append.h): whether all layers of a segment that use them can do
// so with room, and the one that appends does.
#include "exec/segment/segment_internal.h"

static const assay_append_t* append_of(const builder_t* b, const assay_value_t* v, bool made) {
  for (size_t i = 0; v && b->s->appends && i < b->in->n_appends; i++) {
    const assay_append_t* a = b->in->appends[i];
    if ((made ? a->out : a->in) == v) return a;
  }
  return NULL;
}

static const assay_append_t* any_of(const builder_t* b, const assay_value_t* v) {
  const assay_append_t* a = append_of(b, v, true);
  return a ? a : append_of(b, v, false);
}

static void set_capacity(const builder_t* b, assay_operand_t* o) {
  const assay_append_t* a = any_of(b, o->value);
  if (a) o->capacity = (assay_capacity_t){a->axis, a->capacity};
}

void segment_describe_rooms(const builder_t* b, assay_sized_layer_t* d) {
  for (size_t k = 0; k < d->n_in; k++) set_capacity(b, &d->in[k]);
  for (size_t k = 0; k < d->n_out; k++) set_capacity(b, &d->out[k]);
}

// What was there before the run is read by the layer alone that appends to it.
static bool appends_alone(const builder_t* b, const assay_sized_layer_t* d, size_t in) {
  const assay_append_t* a = append_of(b, d->in[in].value, false);
  return !a || (d->n_out && d->out[0].value == a->out);
}

bool segment_keeps_rooms(const builder_t* b, const assay_sized_layer_t* d,
                         const assay_kernel_t* kernel) {
  bool any = false, ok = true;
  for (size_t k = 0; k < d->n_in; k++) {
    const assay_operand_t* o = &d->in[k];
    if (!o->capacity.size) continue;
    any = true;
    ok = ok && appends_alone(b, d, k) && o->type == o->value->type->elem &&
         kernel->in[k].type == o->type && kernel->in[k].layout == ASSAY_LAYOUT_PLAIN;
  }
  for (size_t k = 0; k < d->n_out; k++) {
    const assay_operand_t* o = &d->out[k];
    if (!o->capacity.size) continue;
    const assay_append_t* a = append_of(b, o->value, true);
    const int from = a ? assay_sized_input_index(d, a->in) : -1;
    any = true;
    ok = ok && k == 0 && from >= 0 && kernel->extends == from + 1 &&
         kernel->out[k].type == o->value->type->elem && kernel->out[k].layout == ASSAY_LAYOUT_PLAIN;
  }
  return !any || (ok && kernel->rooms);
}

void segment_check_emulated(builder_t* b, int i) {
  const assay_layer_t* l = &b->in->layers->layers[i];
  const assay_node_t* n = l->nodes[l->n_nodes - 1];
  const assay_value_list_t* reads = &b->in->lifetimes->reads[i];
  for (size_t k = 0; k < reads->n; k++) b->conflict |= any_of(b, reads->at[k]) != NULL;
  for (size_t k = 0; k < n->n_outputs; k++) b->conflict |= any_of(b, n->outputs[k]) != NULL;
}

// The memory of the value itself, and no other form of it.
static bool is_its_own(const assay_segment_t* s, int slot, const assay_value_t* v) {
  return slot >= 0 && s->slots[slot].value == v &&
         (s->slots[slot].kind == ASSAY_SLOT_VALUE || s->slots[slot].kind == ASSAY_SLOT_OUTPUT);
}

void segment_check_slots(builder_t* b, const assay_sized_layer_t* d, const assay_step_t* step) {
  for (size_t k = 0; k < d->n_in; k++)
    if (d->in[k].capacity.size && step->kernel->in[k].type &&
        !is_its_own(b->s, step->in[k], d->in[k].value))
      b->conflict = true;
  for (size_t k = 0; k < d->n_out; k++)
    if (d->out[k].capacity.size && !is_its_own(b->s, step->out[k], d->out[k].value))
      b->conflict = true;
}

bool segment_has_capacity(const builder_t* b) {
  for (size_t i = 0; b->s->appends && i < b->in->n_appends; i++) {
    const assay_append_t* a = b->in->appends[i];
    const assay_place_t* p = assay_segment_place(b->s, a->out);
    if (!p || p->rank <= a->axis || p->dims[a->axis] > a->capacity) return false;
  }
  return true;
}
