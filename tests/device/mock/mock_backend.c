// The backend of the device for tests: its kernels, and its row.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/data/move.h"
#include "backends/cpu/shared.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "exec/device/code.h"
#include "exec/device/device_run.h"
#include "mock.h"

typedef struct own {
  assay_choice_t* cpu;
  assay_weights_t* store;
  bool prefer_cpu, declined, tiles;
  unsigned every;
} own_t;

static atomic_bool prefer_cpu, some_declined, with_tiles;
static atomic_uint declined_every;

void mock_prefer_cpu_kernels(bool on) { atomic_store(&prefer_cpu, on); }

void mock_offer_tiles(bool on) { atomic_store(&with_tiles, on); }

void mock_decline(unsigned every, bool declined) {
  atomic_store(&declined_every, every);
  atomic_store(&some_declined, declined);
}

// ---- code ---------------------------------------------------------------------------------------

static const char machine_code[] = "evaluate";
static atomic_int compiled;

int mock_compiled(void) { return atomic_load(&compiled); }

static assay_status_t compile(void* user, void** out, size_t* out_bytes) {
  (void)user;
  *out = assay_malloc(sizeof machine_code);
  if (!*out) return assay_status_no_memory();
  memcpy(*out, machine_code, sizeof machine_code);
  *out_bytes = sizeof machine_code;
  atomic_fetch_add(&compiled, 1);
  return NULL;
}

static bool is_chosen(const own_t* own, const assay_sized_layer_t* l) {
  const char* name = l->layer->name;
  return own->every && assay_hash(name, strlen(name), 1) % own->every == 0;
}

// One operand of a kernel: at p, so many bytes.
typedef struct span {
  assay_device_ptr_t p;
  size_t bytes;
} span_t;

// A kernel that was put into a queue, with its addresses.
typedef struct call {
  void* kernel;
  span_t in[ASSAY_KERNEL_OPERANDS], out[ASSAY_KERNEL_OPERANDS], scratch;
} call_t;

static size_t bytes_of(const assay_operand_t* o, assay_type_t type) {
  return type ? assay_operand_bytes(o, type) : 0;
}

// Where an operand lies, in the queue's thread; NULL: left out.
static assay_status_t locate(span_t s, void** out) {
  *out = NULL;
  if (s.p % MOCK_ALIGNMENT)
    return ASSAY_ERROR(ASSAY_DEVICE, "misaligned address %#llx", (unsigned long long)s.p);
  return s.p ? mock_at(s.p, s.bytes, out) : NULL;
}

// ---- layers as the emulated engine computes them ------------------------------------------------

typedef struct evaluation {
  assay_kernel_t base;
  const char* code;
  assay_sized_layer_t layer;
  void* emu;  // for the queue's thread
  // With sums of its own the plan's layers again, with another accumulator.
  assay_layers_t layers;
  assay_layer_t* own_layers;
} evaluation_t;

static assay_status_t read_input(const evaluation_t* e, size_t k, span_t s) {
  const assay_operand_t* o = &e->layer.in[k];
  assay_value_slot_t held = {0};
  assay_tensor_t *packed = NULL, *canonical;
  void* from;
  ASSAY_TRY(locate(s, &from));
  ASSAY_TRY(assay_tensor_create_packed(o->type, o->rank, o->dims, &packed));
  if (s.bytes) memcpy(packed->data, from, s.bytes);
  assay_value_slot_put(&held, packed);
  assay_status_t st = assay_value_slot_canonical(&held, o->value->type->elem, &canonical);
  if (!st) st = assay_backend_emu.set(e->emu, o->value, canonical);
  assay_value_slot_clear(&held);
  return st;
}

static assay_status_t write_output(const evaluation_t* e, size_t k, span_t s) {
  const assay_operand_t* o = &e->layer.out[k];
  assay_tensor_t *made = assay_backend_emu.get(e->emu, o->value), *packed;
  assay_value_slot_t held = {0};
  void* to;
  if (!made) return NULL;  // nobody reads it
  if (made->rank != o->rank ||
      (o->rank && memcmp(made->dims, o->dims, (size_t)o->rank * sizeof *o->dims) != 0))
    return ASSAY_ERROR(ASSAY_DEVICE, "output '%s' is not what it was inferred to be",
                       o->value->name);
  ASSAY_TRY(locate(s, &to));
  assay_value_slot_put(&held, assay_tensor_retain(made));
  assay_status_t st = assay_value_slot_packed(&held, o->type, &packed);
  if (!st && s.bytes) memcpy(to, packed->data, s.bytes);
  assay_value_slot_clear(&held);
  return st;
}

static assay_status_t evaluate(void* user) {
  const call_t* c = user;
  const evaluation_t* e = c->kernel;
  assay_status_t st = strcmp(e->code, machine_code) == 0
                          ? NULL
                          : ASSAY_ERROR(ASSAY_DEVICE, "the code of a kernel is damaged");
  for (size_t k = 0; !st && k < e->layer.n_in; k++) st = read_input(e, k, c->in[k]);
  if (!st) st = assay_backend_emu.step(e->emu, (size_t)(e->layer.layer - e->layer.layers->layers));
  for (size_t k = 0; !st && k < e->layer.n_out; k++)
    if (e->layer.out[k].value) st = write_output(e, k, c->out[k]);
  assay_backend_emu.reset(e->emu);
  return st;
}

static assay_status_t put_call(void* kernel, assay_status_t (*work)(void*), const assay_kernel_t* k,
                               const assay_sized_layer_t* l, assay_queue_t* q,
                               const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                               assay_device_ptr_t scratch) {
  call_t* c = calloc(1, sizeof *c);
  if (!c) return assay_status_no_memory();
  c->kernel = kernel;
  for (size_t i = 0; i < l->n_in; i++)
    c->in[i] = (span_t){k->in[i].type ? in[i] : 0, bytes_of(&l->in[i], k->in[i].type)};
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) c->out[i] = (span_t){out[i], bytes_of(&l->out[i], k->out[i].type)};
  c->scratch = (span_t){k->scratch ? scratch : 0, k->scratch};
  return mock_enqueue(q, &(mock_work_t){work, free, c});
}

static assay_status_t evaluation_enqueue(assay_kernel_t* k, assay_queue_t* q,
                                         const assay_device_ptr_t* in,
                                         const assay_device_ptr_t* out,
                                         assay_device_ptr_t scratch) {
  return put_call(k, evaluate, k, &((evaluation_t*)k)->layer, q, in, out, scratch);
}

static void evaluation_destroy(assay_kernel_t* k) {
  evaluation_t* e = (evaluation_t*)k;
  if (e->emu) assay_backend_emu.close(e->emu);
  assay_free(e->own_layers);
  assay_free(e);
}

// The layer's sums in a format of their own; NONE: as the plan says.
static assay_status_t keep_sums_in(evaluation_t* e, assay_format_t format) {
  const assay_layers_t* given = e->layer.layers;
  if (!format) return NULL;
  ASSAY_TRY(assay_new_array(given->n_all_layers, sizeof *e->own_layers, &e->own_layers));
  memcpy(e->own_layers, given->layers, given->n_all_layers * sizeof *e->own_layers);
  const size_t i = (size_t)(e->layer.layer - given->layers);
  e->own_layers[i].accumulator = format;
  e->layers = *given;
  e->layers.layers = e->own_layers;
  e->layer.layers = &e->layers;
  e->layer.layer = &e->own_layers[i];
  return NULL;
}

static assay_status_t make_with_sums(const assay_sized_layer_t* l, assay_format_t format,
                                     assay_kernel_t** out) {
  const own_t* own = l->own;
  evaluation_t* e = NULL;
  if (own->declined && is_chosen(own, l)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&e));
  e->base = (assay_kernel_t){
      .in_place = -1, .enqueue = evaluation_enqueue, .destroy = evaluation_destroy};
  e->layer = *l;
  for (size_t i = 0; i < l->n_in; i++) e->base.in[i].type = l->in[i].type;
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) e->base.out[i].type = l->out[i].type;
  const void* code = NULL;
  size_t bytes = 0;
  assay_status_t st = assay_code_get(own->store, "code evaluate", compile, NULL, &code, &bytes);
  e->code = code;
  if (!st && bytes != sizeof machine_code)
    st = ASSAY_ERROR(ASSAY_CORRUPT, "the code of a kernel has %zu bytes", bytes);
  if (!st) st = keep_sums_in(e, format);
  if (!st) st = assay_backend_emu.open(e->layer.layers, NULL, NULL, &e->emu);
  if (st) return evaluation_destroy(&e->base), st;
  *out = &e->base;
  return NULL;
}

static assay_status_t evaluation_make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  return make_with_sums(l, ASSAY_FORMAT_NONE, out);
}

// Both say that they give the same bits, so that they compete: how is what tests want to see.
static const assay_tactic_t evaluation = {.name = "mock_eval",
                                          .source = "mock",
                                          .numerics = "mock",
                                          .make = evaluation_make,
                                          .rounding = {.compute = ASSAY_FORMAT_FP32,
                                                       .accumulator = ASSAY_FORMAT_FP32,
                                                       .documented = true,
                                                       .fma = true,
                                                       .function_ulps = 1}};

// ---- products in variants of different bits
// ------------------------------------------------------

// "long": one sum, predicted to be faster for many rows, "parts" for few, as where a sum that is
// split fills a device that has little to do. The split one keeps its sums in fp16.
static assay_status_t list_tiles(const assay_sized_layer_t* l, assay_variant_t* out,
                                 size_t* out_n) {
  enum { MANY = 4 };
  const bool is_product = strcmp(l->layer->nodes[0]->op_type, "MatMul") == 0;
  *out_n = 0;
  if (!((const own_t*)l->own)->tiles || !is_product || !l->out[0].rank) return NULL;
  out[0] = (assay_variant_t){.name = "long", .numerics = "long", .predicted = MANY};
  out[1] = (assay_variant_t){
      .name = "parts", .numerics = "parts", .predicted = (double)l->out[0].dims[0]};
  *out_n = 2;
  return NULL;
}

static assay_status_t make_tile(const assay_sized_layer_t* l, const assay_variant_t* v,
                                assay_kernel_t** out) {
  const bool parts = strcmp(v->name, "parts") == 0;
  return make_with_sums(l, parts ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_NONE, out);
}

static const assay_tactic_t tiles = {.name = "mock_tiles",
                                     .source = "mock",
                                     .variants = list_tiles,
                                     .make_variant = make_tile,
                                     .rounding = {.compute = ASSAY_FORMAT_FP32,
                                                  .accumulator = ASSAY_FORMAT_FP16,
                                                  .fma = true,
                                                  .function_ulps = 4}};

// ---- layers as the CPU's kernels compute them ---------------------------------------------------

typedef struct wrapped {
  assay_kernel_t base;
  assay_kernel_t* inner;
  assay_sized_layer_t layer;
} wrapped_t;

static assay_status_t run_inner(void* user) {
  const call_t* c = user;
  const wrapped_t* w = c->kernel;
  void *in[ASSAY_KERNEL_OPERANDS] = {NULL}, *out[ASSAY_KERNEL_OPERANDS] = {NULL}, *scratch;
  for (size_t i = 0; i < w->layer.n_in; i++) ASSAY_TRY(locate(c->in[i], &in[i]));
  for (size_t i = 0; i < w->layer.n_out; i++) ASSAY_TRY(locate(c->out[i], &out[i]));
  ASSAY_TRY(locate(c->scratch, &scratch));
  return w->inner->run(w->inner, (const void* const*)in, out, scratch);
}

static assay_status_t wrapped_enqueue(assay_kernel_t* k, assay_queue_t* q,
                                      const assay_device_ptr_t* in, const assay_device_ptr_t* out,
                                      assay_device_ptr_t scratch) {
  return put_call(k, run_inner, k, &((wrapped_t*)k)->layer, q, in, out, scratch);
}

static void wrapped_destroy(assay_kernel_t* k) {
  wrapped_t* w = (wrapped_t*)k;
  w->inner->destroy(w->inner);
  assay_free(w);
}

// Weights are operands, too: what a kernel packed into the host's memory would not be on the
// device. Sizes, axes and single numbers it may know.
static void hide_weights(assay_sized_layer_t* l) {
  for (size_t i = 0; i < l->n_in; i++)
    if (assay_type_is_float(l->in[i].type) && l->in[i].size > 1) l->in[i].constant = NULL;
}

static bool is_for_cpu(const assay_sized_layer_t* l) {
  return l->layer->format == ASSAY_FORMAT_FP32 || l->layer->format == ASSAY_FORMAT_BF16 ||
         l->layer->format == ASSAY_FORMAT_FP16;
}

static assay_status_t wrapped_make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const own_t* own = l->own;
  assay_candidate_t candidates[ASSAY_MAX_CANDIDATES];
  int n_candidates;
  wrapped_t* w = NULL;
  if (!own->prefer_cpu || !is_for_cpu(l) || is_chosen(own, l)) return NULL;
  ASSAY_TRY(ASSAY_NEW(&w));
  w->layer = *l;
  hide_weights(&w->layer);
  assay_status_t st = assay_choose(own->cpu, &w->layer, &w->inner, candidates, &n_candidates);
  if (st || !w->inner) return assay_free(w), st;
  w->base = *w->inner;
  w->base.run = NULL;
  w->base.enqueue = w->inner->run ? wrapped_enqueue : NULL;
  w->base.destroy = wrapped_destroy;
  *out = &w->base;
  return NULL;
}

static const assay_tactic_t wrapped = {.name = "mock_cpu",
                                       .source = "mock",
                                       .numerics = "mock",
                                       .make = wrapped_make,
                                       .rounding = {.compute = ASSAY_FORMAT_FP32,
                                                    .accumulator = ASSAY_FORMAT_FP32,
                                                    .fma = true,
                                                    .function_ulps = 4}};

// ---- the kind -----------------------------------------------------------------------------------

static assay_status_t share_own(assay_device_t* d, const assay_layers_t* layers,
                                const assay_backend_options_t* options, assay_weights_t* store,
                                void** out) {
  (void)d, (void)layers, (void)options;
  const char* kernels = getenv("ASSAY_MOCK_KERNELS");
  own_t* own = NULL;
  ASSAY_TRY(ASSAY_NEW(&own));
  own->store = store;
  own->every = atomic_load(&declined_every);
  own->declined = atomic_load(&some_declined);
  own->tiles = atomic_load(&with_tiles);
  own->prefer_cpu = atomic_load(&prefer_cpu) || (kernels && strcmp(kernels, "cpu") == 0);
  assay_status_t st = cpu_choice_create(NULL, &own->cpu);
  if (st) return assay_free(own), st;
  *out = own;
  return NULL;
}

static void unshare_own(void* own) {
  assay_choice_destroy(((own_t*)own)->cpu);
  assay_free(own);
}

static bool takes(void* own, const assay_layer_t* l) {
  (void)own;
  return l->accumulator == ASSAY_FORMAT_FP32;
}

static bool can_move(void* own, const assay_reformat_t* m) {
  (void)own;
  return cpu_move_is_possible(m);
}

static size_t move_scratch(void* own, const assay_reformat_t* m) {
  (void)own;
  return cpu_move_scratch(m);
}

typedef struct move_call {
  assay_reformat_t move;
  span_t from, to, scratch;
} move_call_t;

static assay_status_t run_move(void* user) {
  const move_call_t* c = user;
  void *from, *to, *scratch;
  ASSAY_TRY(locate(c->from, &from));
  ASSAY_TRY(locate(c->to, &to));
  ASSAY_TRY(locate(c->scratch, &scratch));
  cpu_move_run(&c->move, from, to, scratch);
  return NULL;
}

static assay_status_t move(void* own, const assay_reformat_t* m, assay_queue_t* q,
                           assay_device_ptr_t from, assay_device_ptr_t to,
                           assay_device_ptr_t scratch) {
  const size_t bytes = move_scratch(own, m);
  move_call_t* c = calloc(1, sizeof *c);
  if (!c) return assay_status_no_memory();
  *c = (move_call_t){*m,
                     {from, assay_reformat_bytes(m, m->from.type)},
                     {to, assay_reformat_bytes(m, m->to.type)},
                     {bytes ? scratch : 0, bytes}};
  return mock_enqueue(q, &(mock_work_t){run_move, free, c});
}

static const assay_tactic_t* const tactics[] = {&tiles, &wrapped, &evaluation};

static const assay_device_kind_t kind = {.driver = &mock_driver,
                                         .tactics = tactics,
                                         .n_tactics = 3,
                                         .share = share_own,
                                         .unshare = unshare_own,
                                         .takes = takes,
                                         .can_move = can_move,
                                         .move_scratch = move_scratch,
                                         .move = move};

// ---- the row ------------------------------------------------------------------------------------

static assay_status_t share(const assay_layers_t* layers, const assay_backend_options_t* options,
                            void** out_shared) {
  return assay_device_share(&kind, layers, options, out_shared);
}

static assay_status_t open_state(const assay_layers_t* layers, void* shared, const assay_tap_t* tap,
                                 void** out_state) {
  return assay_device_open(&kind, layers, shared, tap, out_state);
}

static assay_status_t open_on(const assay_layers_t* layers, int device, const assay_tap_t* tap,
                              void** out_state) {
  return assay_device_open_on(&kind, layers, device, tap, out_state);
}

const assay_backend_t assay_backend_mock = {.name = "mock",
                                            .driver = &mock_driver,
                                            .share = share,
                                            .open = open_state,
                                            .open_on = open_on,
                                            ASSAY_DEVICE_ROWS};
