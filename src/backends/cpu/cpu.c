// The CPU backend: each layer by a kernel that a tactic has made for its sizes, or, where no tactic
// takes it, by the emulated engine in the same formats (exec/runner.h). Kernels read what the
// run holds, and write what the caller gets, where it lies; all else lies in one arena, which
// segments of all sizes share, as they do one piece of scratch memory.
#include <string.h>

#include "backends/cpu/data/move.h"
#include "backends/cpu/row_pipeline.h"
#include "backends/cpu/shared.h"
#include "backends/cpu/tactic.h"
#include "base/alloc.h"
#include "base/memory.h"
#include "base/shown.h"
#include "exec/runner.h"

typedef struct cpu {
  assay_runner_t runner;
  assay_choice_t *shared, *own;
  void** at;  // by slot of the segment that runs
  size_t cap_at;
  char *arena, *scratch;
  size_t arena_bytes, scratch_bytes;
} cpu_t;

// ---- what segments are prepared for ------------------------------------------------------------

static bool takes(void* user, const assay_layer_t* l) {
  (void)user;
  return cpu_takes(l);
}

static assay_status_t choose(void* user, const assay_sized_layer_t* l, assay_kernel_t** out,
                             assay_candidate_t* candidates, int* n_candidates) {
  return assay_choose(((cpu_t*)user)->shared, l, out, candidates, n_candidates);
}

static assay_status_t resize(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                             bool* out_ok) {
  return assay_choice_resize(((cpu_t*)user)->shared, l, k, out_ok);
}

static assay_status_t cost(void* user, const assay_sized_layer_t* l, assay_kernel_t* k,
                           double* out_microseconds) {
  return assay_choice_cost(((cpu_t*)user)->shared, l, k, out_microseconds);
}

static assay_status_t move_cost(void* user, const assay_reformat_t* m, double* out_microseconds) {
  return assay_choice_move_cost(((cpu_t*)user)->shared, m, out_microseconds);
}

static bool can_move(void* user, const assay_reformat_t* m) {
  (void)user;
  return cpu_move_is_possible(m);
}

static size_t move_scratch(void* user, const assay_reformat_t* m) {
  (void)user;
  return cpu_move_scratch(m);
}

typedef struct constant_move {
  const assay_reformat_t* move;
  const void* from;
} constant_move_t;

static assay_status_t fill_moved(void* user, void* to) {
  const constant_move_t* c = user;
  char* scratch = assay_malloc(cpu_move_scratch(c->move));
  if (!scratch) return assay_status_no_memory();
  cpu_move_run(c->move, c->from, to, scratch);
  assay_free(scratch);
  return NULL;
}

// A constant is moved once, for all segments of all contexts.
static assay_status_t constant(void* user, const assay_value_t* v, const assay_reformat_t* m,
                               const void* from, uint64_t* out) {
  constant_move_t c = {m, from};
  const void* at = NULL;
  assay_str_t key = {0};
  assay_str_printf_raw(&key, "%s as %s in layout %d through %s", v->name,
                       assay_type_name(m->to.type), (int)m->to.layout, assay_type_name(m->through));
  assay_status_t st =
      assay_weights_get_by(((cpu_t*)user)->shared->store, &key, assay_reformat_bytes(m, m->to.type),
                           fill_moved, &c, &at);
  if (!st) *out = (uintptr_t)at;
  return st;
}

static bool couple(void* user, assay_kernel_t* const* kernels, assay_pipeline_t* pipeline) {
  (void)user;
  return cpu_pipeline_couple(kernels, pipeline);
}

static const assay_target_t target = {.takes = takes,
                                      .choose = choose,
                                      .resize = resize,
                                      .cost = cost,
                                      .move_cost = move_cost,
                                      .can_move = can_move,
                                      .move_scratch = move_scratch,
                                      .couple = couple,
                                      .constant = constant};

// ---- memory -------------------------------------------------------------------------------------

static assay_status_t reserve(char** memory, size_t* have, size_t bytes) {
  if (*memory && bytes <= *have) return NULL;  // no bytes are somewhere, too
  assay_free(*memory);
  *have = 0;
  *memory = assay_malloc(bytes + ASSAY_BLOCK_ALIGNMENT);
  if (!*memory) return assay_status_no_memory();
  *have = bytes;
  assay_memory_use_large_pages(*memory, bytes);
  return NULL;
}

static char* aligned(char* memory) {
  const uintptr_t a = ASSAY_BLOCK_ALIGNMENT;
  return (char*)(((uintptr_t)memory + a - 1) / a * a);
}

static assay_status_t begin(assay_runner_t* r, assay_segment_t* s) {
  cpu_t* c = (cpu_t*)r;
  ASSAY_TRY(reserve(&c->arena, &c->arena_bytes, s->arena_bytes));
  ASSAY_TRY(reserve(&c->scratch, &c->scratch_bytes, s->scratch_bytes));
  ASSAY_TRY(assay_grow(&c->at, &c->cap_at, s->n_slots, sizeof *c->at));
  r->now = s;
  for (size_t i = 0; i < s->n_slots; i++) {
    const assay_slot_t* slot = &s->slots[i];
    assay_tensor_t* t;
    c->at[i] = NULL;
    if (slot->kind == ASSAY_SLOT_ARENA) c->at[i] = aligned(c->arena) + slot->block.offset;
    if (slot->kind == ASSAY_SLOT_CONSTANT) c->at[i] = (void*)(uintptr_t)slot->constant;
    if (slot->kind == ASSAY_SLOT_OUTPUT) {
      ASSAY_TRY(assay_runner_output(r, slot->value, &t));
      c->at[i] = t->data;
    }
  }
  return NULL;
}

static assay_status_t read_place(assay_runner_t* r, const assay_place_t* p, assay_tensor_t** out) {
  const cpu_t* c = (const cpu_t*)r;
  const assay_storage_t form = p->forms[0].form;
  assay_reformat_t m = {.rank = p->rank,
                        .size = p->size,
                        .from = form,
                        .to = {form.type, ASSAY_LAYOUT_PLAIN},
                        .through = form.type};
  memcpy(m.dims, p->dims, sizeof m.dims);
  ASSAY_TRY(assay_tensor_create_packed(m.to.type, m.rank, m.dims, out));
  cpu_move_run(&m, c->at[p->forms[0].slot], (*out)->data, NULL);
  return NULL;
}

// ---- running ------------------------------------------------------------------------------------

// Moves [from, to) of the segment; *ok false: a tensor has another shape than was predicted.
static assay_status_t run_moves(cpu_t* c, size_t from, size_t to, bool* ok) {
  for (size_t i = from; i < to; i++) {
    const assay_segment_reformat_t* m = &c->runner.now->moves[i];
    if (m->from >= 0) {
      cpu_move_run(&m->move, c->at[m->from], c->at[m->to], aligned(c->scratch));
      continue;
    }
    assay_tensor_t* t;
    ASSAY_TRY(assay_runner_fetch(&c->runner, m, &t));
    if (!t) return *ok = false, NULL;
    c->at[m->to] = t->data;
  }
  return NULL;
}

static void find_operands(const cpu_t* c, const assay_step_t* s, cpu_operands_t* o) {
  for (int i = 0; i < s->n_in; i++) o->in[i] = s->in[i] < 0 ? NULL : c->at[s->in[i]];
  for (int i = 0; i < s->n_out; i++) o->out[i] = s->out[i] < 0 ? NULL : c->at[s->out[i]];
}

// All kernels of a row pipeline.
static void run_pipeline(const cpu_t* c, const assay_pipeline_t* t) {
  assay_kernel_t* kernels[ASSAY_PIPELINE_KERNELS];
  cpu_operands_t operands[ASSAY_PIPELINE_KERNELS];
  for (int i = 0; i < t->n; i++) {
    const assay_step_t* s = assay_runner_step_of(&c->runner, (size_t)(t->first + i));
    kernels[i] = s->kernel;
    find_operands(c, s, &operands[i]);
  }
  cpu_pipeline_run(t, kernels, operands, aligned(c->scratch));
}

static assay_status_t run_kernel(cpu_t* c, size_t i, bool* ok) {
  const assay_step_t* s = assay_runner_step_of(&c->runner, i);
  const assay_pipeline_t* t = assay_segment_pipeline(c->runner.now, (int)i);
  ASSAY_TRY(run_moves(c, s->moves, s->outputs, ok));
  if (!*ok) return NULL;
  if (t && (int)i == assay_pipeline_last(t)) run_pipeline(c, t);
  if (!t && s->kernel->run) {
    cpu_operands_t o;
    find_operands(c, s, &o);
    ASSAY_TRY(s->kernel->run(s->kernel, o.in, o.out, aligned(c->scratch)));
  }
  return run_moves(c, s->outputs, s->end, ok);
}

static assay_status_t run_layer(assay_runner_t* r, size_t i, bool* ok) {
  const assay_layer_t* l = &r->layers->layers[i];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  ASSAY_TRY(run_kernel((cpu_t*)r, i, ok));
  for (size_t k = 0; *ok && k < last->n_outputs; k++) {
    const assay_value_t* v = last->outputs[k];
    if (v && v->is_output)
      assay_value_slot_put(&r->values[v->id], assay_tensor_retain(r->outputs[v->id]));
  }
  return NULL;
}

static const assay_runner_memory_t memory = {
    .begin = begin, .layer = run_layer, .read = read_place};

// ---- the state ----------------------------------------------------------------------------------

static void cpu_close(void* state) {
  cpu_t* c = state;
  if (!c) return;
  assay_runner_deinit(&c->runner);
  assay_free(c->at);
  assay_free(c->arena);
  assay_free(c->scratch);
  assay_choice_destroy(c->own);
  assay_free(c);
}

static assay_status_t cpu_open(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                               void** out_state) {
  cpu_t* c = NULL;
  ASSAY_TRY(ASSAY_NEW(&c));
  assay_status_t st = shared ? NULL : cpu_choice_create(NULL, &c->own);
  c->shared = shared ? shared : c->own;
  if (!st) {
    const assay_setting_t setting = {.store = c->shared->store,
                                     .target = &target,
                                     .any_bits = c->shared->any_bits,
                                     .apart = tap != NULL,
                                     .alignment = ASSAY_BLOCK_ALIGNMENT,
                                     .user = c};
    st = assay_runner_init(&c->runner, layers, tap, &memory, &setting);
  }
  if (st) return cpu_close(c), st;
  *out_state = c;
  return NULL;
}

static void cpu_stepwise(void* state, bool on) {
  cpu_t* c = state;
  c->runner.setting.apart = on || c->runner.tap;
}

static size_t cpu_planned(void* state) {
  const cpu_t* c = state;
  return c->arena_bytes + c->scratch_bytes;
}

// ---- what contexts share -----------------------------------------------------------------------

static assay_status_t cpu_share(const assay_layers_t* layers,
                                const assay_backend_options_t* options, void** out_shared) {
  (void)layers;
  assay_choice_t* shared = NULL;
  ASSAY_TRY(cpu_choice_create(options, &shared));
  *out_shared = shared;
  return NULL;
}

static void cpu_unshare(void* shared) { assay_choice_destroy(shared); }

static assay_status_t cpu_timings(void* shared, assay_str_t* out, bool* out_measured) {
  return assay_choice_timings(shared, out, out_measured);
}

static void cpu_freeze(void* shared) { assay_choice_freeze(shared); }

static assay_status_t cpu_saved(void* shared, size_t i, const char** out_key, const void** out_data,
                                size_t* out_bytes) {
  return assay_choice_saved(shared, i, out_key, out_data, out_bytes);
}

static assay_status_t cpu_restore(void* shared, const char* key, const void* data, size_t bytes) {
  return assay_choice_restore(shared, key, data, bytes);
}

const assay_backend_t assay_backend_cpu = {.name = "cpu",
                                           .narrow_constants = true,
                                           .share = cpu_share,
                                           .unshare = cpu_unshare,
                                           .saved = cpu_saved,
                                           .restore = cpu_restore,
                                           .timings = cpu_timings,
                                           .freeze = cpu_freeze,
                                           .explain = assay_runner_explain,
                                           .gate = assay_runner_accuracy_gate,
                                           .executed = assay_runner_executed,
                                           .describe = cpu_describe_machine,
                                           .open = cpu_open,
                                           .close = cpu_close,
                                           .set = assay_runner_set,
                                           .get = assay_runner_get,
                                           .bind = assay_runner_bind,
                                           .grow = assay_runner_grow,
                                           .made = assay_runner_made,
                                           .append = assay_runner_append,
                                           .packed = assay_runner_packed,
                                           .step = assay_runner_step,
                                           .stepwise = cpu_stepwise,
                                           .reset = assay_runner_reset,
                                           .tactic = assay_runner_tactic,
                                           .planned = cpu_planned,
                                           .scratch = assay_runner_scratch,
                                           .each_tactic = cpu_each_tactic,
                                           .rounding = assay_runner_rounding};
