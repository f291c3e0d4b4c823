// Other sizes for a segment that was prepared for growing dimensions: each layer whose operands
// change gets a kernel of the bits that a segment made for these very sizes would have.
//
// What the segment is made of stays: layers, slots, moves, places in the arena. So nothing that
// decides about those may come out otherwise; where it would, the segment cannot have the sizes.
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/segment_internal.h"

bool assay_segment_may_grow(const assay_segment_t* s, int first, const assay_setting_t* setting) {
  if (!s->grows || s->first != first || s->apart != setting->apart ||
      !assay_sizes_grow(&s->sizes, setting->sizes, setting->growth, setting->n_growth))
    return false;
  for (size_t i = 0; i < s->n_key; i++) {
    const assay_place_t* p = &s->places[s->key[i]];
    const assay_tensor_t* t = assay_value_slot_any(&setting->values[p->value->id]);
    if (!t || t->kind != ASSAY_KIND_TENSOR || t->rank != p->rank) return false;
  }
  return true;
}

// ---- places -------------------------------------------------------------------------------------

// False: it does not fit where it lies.
static bool give_place(assay_place_t* p, const int64_t* dims) {
  const size_t bytes = (size_t)p->rank * sizeof *dims;
  if (!p->rank || memcmp(p->dims, dims, bytes) == 0) return true;
  memcpy(p->dims, dims, bytes);
  p->size = assay_dims_product(dims, 0, p->rank);
  p->changed = true;
  return p->size <= p->capacity;
}

// Sizes of a value by the model's expressions.
static bool sizes_of(const builder_t* b, const assay_place_t* p, int64_t* dims) {
  int rank;
  return assay_sizes_of(b->in->sizes, p->value, ASSAY_KERNEL_RANK, &rank, dims) && rank == p->rank;
}

// What the run holds. at_capacity: what it would hold then.
static bool give_held(builder_t* b, bool at_capacity) {
  for (size_t i = 0; i < b->s->n_key; i++) {
    assay_place_t* p = &b->s->places[b->s->key[i]];
    int64_t dims[ASSAY_KERNEL_RANK];
    const assay_tensor_t* t = assay_value_slot_any(&b->in->values[p->value->id]);
    if (at_capacity ? !sizes_of(b, p, dims) : !t) return false;
    if (!give_place(p, at_capacity ? dims : t->dims)) return false;
  }
  return true;
}

static bool give_outputs(builder_t* b, const assay_layer_t* l) {
  const assay_node_t* n = l->nodes[l->n_nodes - 1];
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_value_t* v = n->outputs[k];
    int64_t dims[ASSAY_KERNEL_RANK];
    if (!v || b->s->place_of[v->id] < 0) continue;
    assay_place_t* p = &b->s->places[b->s->place_of[v->id]];
    if (!sizes_of(b, p, dims) || !give_place(p, dims)) return false;
  }
  return true;
}

static bool is_changed(const builder_t* b, const assay_value_t* v) {
  const assay_place_t* p = v ? assay_segment_place(b->s, v) : NULL;
  return p && p->changed;
}

// Whether what a layer reads or makes has other sizes than before, or other known contents.
static bool has_changed(const builder_t* b, int i) {
  const assay_layer_t* l = &b->in->layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  for (size_t n = 0; n < l->n_nodes; n++)
    for (size_t k = 0; k < l->nodes[n]->n_inputs; k++)
      if (is_changed(b, l->nodes[n]->inputs[k])) return true;
  for (size_t k = 0; k < last->n_outputs; k++)
    if (is_changed(b, last->outputs[k])) return true;
  return false;
}

// ---- kernels ------------------------------------------------------------------------------------

void segment_read_forms(const assay_kernel_t* k, assay_step_forms_t* out) {
  memcpy(out->in, k->in, sizeof out->in);
  memcpy(out->out, k->out, sizeof out->out);
  out->in_place = k->in_place;
  out->views = k->in_place >= 0 && !k->run && !k->enqueue;
}

static bool same_storages(const assay_storage_t* a, const assay_storage_t* b, int n) {
  for (int i = 0; i < n; i++)
    if (a[i].type != b[i].type || (a[i].type && a[i].layout != b[i].layout)) return false;
  return true;
}

// Which layout a value has in memory may follow from its sizes, unless it is plain.
static bool is_plain(const assay_storage_t* s, int n) {
  for (int i = 0; i < n; i++)
    if (s[i].type && s[i].layout != ASSAY_LAYOUT_PLAIN) return false;
  return true;
}

// Whether a kernel can do in a step what the one did that it was laid out for.
static bool can_replace(const builder_t* b, const assay_step_t* step,
                        const assay_sized_layer_t* d) {
  const assay_step_forms_t* before = &step->forms;
  assay_step_forms_t now;
  segment_read_forms(step->kernel, &now);
  if (!same_storages(before->in, now.in, step->n_in) ||
      !same_storages(before->out, now.out, step->n_out) || !is_plain(now.in, step->n_in) ||
      !is_plain(now.out, step->n_out) || before->views != now.views)
    return false;
  if (now.views) return before->in_place == now.in_place;
  // It was given the memory of an input to write over.
  const int in = before->in_place, slot = in < 0 ? -1 : step->in[in];
  if (slot < 0 || slot != step->out[0] || b->s->slots[slot].kind != ASSAY_SLOT_ARENA) return true;
  return now.in_place == in && assay_operand_bytes(&d->in[in], now.in[in].type) ==
                                   assay_operand_bytes(&d->out[0], now.out[0].type);
}

static assay_status_t make_anew(builder_t* b, const assay_sized_layer_t* d, assay_step_t* step,
                                bool* out_ok) {
  assay_kernel_t* k = NULL;
  ASSAY_TRY(b->in->target->choose(b->in->user, d, &k, step->candidates, &step->n_candidates));
  *out_ok = k;
  if (!k) return NULL;
  b->s->made++;
  step->kernel->destroy(step->kernel);
  step->kernel = k;
  return NULL;
}

static assay_status_t resize_kernel(builder_t* b, int i, bool* out_ok) {
  assay_step_t* step = &b->s->steps[i - b->s->first];
  assay_sized_layer_t d;
  ASSAY_TRY(segment_describe(b, i, &d, out_ok));
  if (*out_ok) ASSAY_TRY(assay_sizes_are_implied(&b->implied, &d, b->in->sizes, out_ok));
  if (!*out_ok || step->pipeline) return *out_ok = false, NULL;
  ASSAY_TRY(b->in->target->resize(b->in->user, &d, step->kernel, out_ok));
  if (!*out_ok) ASSAY_TRY(make_anew(b, &d, step, out_ok));
  *out_ok = *out_ok && can_replace(b, step, &d) && segment_keeps_rooms(b, &d, step->kernel);
  if (step->kernel->scratch > b->s->scratch_bytes) b->s->scratch_bytes = step->kernel->scratch;
  return NULL;
}

static assay_status_t resize_layer(builder_t* b, int i, bool* out_ok) {
  const assay_layer_t* l = &b->in->layers->layers[i];
  const assay_step_t* step = &b->s->steps[i - b->s->first];
  bool known = false;
  *out_ok = true;
  ASSAY_TRY(segment_know_layer(b, l, step->known, &known));
  if (known || step->known) return *out_ok = known && step->known, NULL;
  *out_ok = give_outputs(b, l);
  // What the emulated engine runs, has any sizes.
  return *out_ok && step->kernel && has_changed(b, i) ? resize_kernel(b, i, out_ok) : NULL;
}

// ---- slots and moves ----------------------------------------------------------------------------

// Contents that follow from sizes lie in memory of the segment.
static assay_status_t refresh_slot(const assay_segment_t* s, assay_slot_t* slot) {
  const assay_place_t* p = assay_segment_place(s, slot->value);
  assay_value_slot_t v = {0};
  assay_tensor_t* t = NULL;
  if (slot->kind != ASSAY_SLOT_CONSTANT || !slot->held || !p || !p->known || !p->changed)
    return NULL;
  assay_value_slot_put(&v, assay_tensor_retain(p->known));
  assay_status_t st = assay_value_slot_packed(&v, slot->held->type, &t);
  if (!st) {
    assay_tensor_release(slot->held);
    slot->held = assay_tensor_retain(t);
    slot->constant = (uintptr_t)t->data;
  }
  assay_value_slot_clear(&v);
  return st;
}

static assay_status_t refresh(builder_t* b) {
  assay_segment_t* s = b->s;
  for (size_t i = 0; i < s->n_slots; i++) ASSAY_TRY(refresh_slot(s, &s->slots[i]));
  for (size_t i = 0; i < s->n_moves; i++) {
    assay_reformat_t* m = &s->moves[i].move;
    const assay_place_t* p = assay_segment_place(s, s->slots[s->moves[i].to].value);
    if (!p->changed) continue;
    memcpy(m->dims, p->dims, sizeof m->dims);
    m->size = p->size;
    const size_t scratch = b->in->target->move_scratch(b->in->user, m);
    if (scratch > s->scratch_bytes) s->scratch_bytes = scratch;
  }
  return NULL;
}

// What is known from sizes has places, too.
static bool places_fit(const assay_segment_t* s) {
  for (size_t i = 0; i < s->n_places; i++)
    if (s->places[i].changed && s->places[i].size > s->places[i].capacity) return false;
  return true;
}

// Moves between layouts depend on sizes as kernels do.
static bool moves_are_plain(const assay_segment_t* s) {
  for (size_t i = 0; i < s->n_moves; i++) {
    const assay_place_t* p = assay_segment_place(s, s->slots[s->moves[i].to].value);
    if (p->changed && (s->moves[i].move.from.layout != ASSAY_LAYOUT_PLAIN ||
                       s->moves[i].move.to.layout != ASSAY_LAYOUT_PLAIN))
      return false;
  }
  return true;
}

// ---- the segment --------------------------------------------------------------------------------

assay_status_t segment_give_sizes(builder_t* b, bool at_capacity, bool* out_ok) {
  assay_segment_t* s = b->s;
  for (size_t i = 0; i < s->n_places; i++) s->places[i].changed = false;
  *out_ok = give_held(b, at_capacity);
  for (int i = s->first; *out_ok && i < s->end; i++)
    ASSAY_TRY(
        assay_status_note(resize_layer(b, i, out_ok), "layer '%s'", b->in->layers->layers[i].name));
  *out_ok = *out_ok && moves_are_plain(s) && places_fit(s) && segment_has_capacity(b);
  if (!*out_ok) return NULL;
  memcpy(s->sizes.size, b->in->sizes->size, s->sizes.n * sizeof *s->sizes.size);
  return refresh(b);
}

assay_status_t assay_segment_resize(assay_segment_t* s, const assay_setting_t* setting,
                                    bool* out_ok) {
  builder_t b = {.in = setting, .s = s};
  assay_status_t st = segment_give_sizes(&b, false, out_ok);
  assay_implied_deinit(&b.implied);
  return st;
}
