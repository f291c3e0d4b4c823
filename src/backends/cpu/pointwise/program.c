// Programs of pointwise nodes: the layer's code (backends/layers/pointwise.h) with tiles and slots.
#include "backends/cpu/pointwise/program.h"

#include <string.h>

#include "backends/cpu/pointwise/program_code.h"
#include "base/alloc.h"

typedef struct compiler {
  const assay_sized_layer_t* l;
  cpu_program_t* p;
  const pointwise_code_t* code;
} compiler_t;

// ---- tiles and slots ------------------------------------------------------------------------

static void choose_tiles(cpu_program_t* p) {
  enum { VECTOR = 16 };
  if (p->columns <= PROGRAM_TILE) {
    p->tile_columns = p->columns;
    p->tile_rows = p->columns ? PROGRAM_TILE / p->columns : 1;
    if (p->tile_rows > p->rows) p->tile_rows = p->rows;
    return;
  }
  const int64_t parts = (p->columns + PROGRAM_TILE - 1) / PROGRAM_TILE;
  p->tile_rows = 1;
  p->tile_columns = ((p->columns + parts - 1) / parts + VECTOR - 1) / VECTOR * VECTOR;
}

// Streams that do not lie as tiles need slots for good.
static bool needs_slot(const cpu_program_t* p, size_t s) {
  const program_walk_t* w = &p->walks[s];
  if (p->streams[s].type != ASSAY_TYPE_FLOAT) return true;
  if (w->access == POINTWISE_WHOLE) return false;
  // A tile in a row is a piece of it.
  return p->tile_rows > 1 || w->strides[p->rank - 1] != 1;
}

// The last instruction that reads instruction i.
static size_t last_reader(const compiler_t* c, size_t i) {
  size_t last = i;
  for (size_t k = i + 1; k < c->p->n_code; k++)
    for (int j = 0; j < 3; j++)
      if (c->code->code[k].operand[j] == CPU_MAX_STREAMS + (int)i) last = k;
  return last;
}

static bool assign_slots(compiler_t* c) {
  cpu_program_t* p = c->p;
  bool used[PROGRAM_SLOTS] = {false};
  int slot_of[CPU_MAX_INSTRUCTIONS];
  for (size_t s = 0; s < p->n_streams; s++) {
    p->walks[s].slot = needs_slot(p, s) ? p->n_slots++ : -1;
    if (p->n_slots > PROGRAM_SLOTS) return false;
    if (p->walks[s].slot >= 0) used[p->walks[s].slot] = true;
  }
  for (size_t i = 0; i < p->n_code; i++) {
    program_instruction_t* code = &p->code[i];
    for (int j = 0; j < 3; j++) {
      const int o = c->code->code[i].operand[j];
      const bool stream = o < CPU_MAX_STREAMS;
      code->operand[j] =
          (program_place_t){.slot = !stream, .index = stream ? o : slot_of[o - CPU_MAX_STREAMS]};
    }
    // What is read here for the last time may be written over: element by element.
    for (size_t k = 0; k < i; k++)
      if (last_reader(c, k) == i) used[slot_of[k]] = false;
    int slot = 0;
    while (slot < PROGRAM_SLOTS && used[slot]) slot++;
    if (slot == PROGRAM_SLOTS) return false;
    used[slot] = true;
    slot_of[i] = code->slot = slot;
    if (slot >= p->n_slots) p->n_slots = slot + 1;
  }
  p->out_slot = slot_of[p->n_code - 1];
  return true;
}

static bool is_streamed(const compiler_t* c, int operand) {
  if (operand < 0 || operand >= CPU_MAX_STREAMS) return false;
  const int64_t step = c->p->walks[operand].strides[c->p->rank - 1];
  return assay_type_is_kernel_float(c->p->streams[operand].type) && (step == 0 || step == 1);
}

// Instruction i as a link: it takes what the one before it has made, the first one a stream, and
// perhaps one more stream.
static bool to_link(compiler_t* c, size_t i) {
  cpu_program_t* p = c->p;
  const int* o = c->code->code[i].operand;
  cpu_link_t* l = &p->links[i];
  *l = (cpu_link_t){.stream = -1,
                    .param = {p->code[i].param[0], p->code[i].param[1]},
                    .call = p->code[i].function};
  if (i + 1 == p->n_code) {
    const assay_type_t type = c->l->out[0].type;
    l->call = cpu_function_before(l->call, type);
    l->use = type == ASSAY_TYPE_FLOAT16    ? CPU_V_FLOAT16
             : type == ASSAY_TYPE_BFLOAT16 ? CPU_V_BFLOAT16
                                           : CPU_V_FLOAT32;
  }
  l->kind = cpu_link_kind(p->code[i].function, l->use);
  const bool two = l->kind == CPU_LINK_ADD || l->kind == CPU_LINK_SUB || l->kind == CPU_LINK_MUL;
  if (l->kind == CPU_LINK_SWISH && l->param[0] == 0) l->kind = CPU_LINK_CALL;
  if (o[2] >= 0 || two != (o[1] >= 0)) return false;
  const int made = CPU_MAX_STREAMS + (int)i - 1;
  int at = o[0], other = o[1];
  if (i && at != made && l->kind != CPU_LINK_SUB) at = o[1], other = o[0];
  if (two && !is_streamed(c, other)) return false;
  if (two) l->stream = other;
  if (i) return at == made;
  p->first_stream = at;
  return is_streamed(c, at);
}

static void find_chain(compiler_t* c) {
  bool ok = cpu_has_chains() && assay_type_is_kernel_float(c->l->out[0].type);
  for (size_t i = 0; ok && i < c->p->n_code; i++) ok = to_link(c, i);
  c->p->n_links = ok ? (int)c->p->n_code : 0;
}

// What the code says, by functions of this machine.
static void take_code(compiler_t* c) {
  const pointwise_code_t* code = c->code;
  cpu_program_t* p = c->p;
  p->n_streams = code->n_streams;
  p->n_code = code->n_code;
  for (size_t s = 0; s < p->n_streams; s++) {
    p->streams[s] = code->streams[s];
    p->walks[s] = (program_walk_t){.access = code->walks[s].access};
    memcpy(p->walks[s].strides, code->walks[s].strides, sizeof p->walks[s].strides);
  }
  for (size_t i = 0; i < p->n_code; i++) {
    p->code[i].function = cpu_function_of((pointwise_function_t)code->code[i].function);
    memcpy(p->code[i].param, code->code[i].param, sizeof p->code[i].param);
  }
  p->rank = code->rank;
  memcpy(p->dims, code->dims, sizeof p->dims);
  p->rows = code->rows;
  p->columns = code->columns;
  p->cost = code->cost;
  p->first_whole = pointwise_first_whole(code);
  p->in_place = pointwise_in_place(code, c->l->out[0].type);
}

static bool finish(compiler_t* c) {
  cpu_program_t* p = c->p;
  choose_tiles(p);
  find_chain(c);
  p->code[p->n_code - 1].function =
      cpu_function_before(p->code[p->n_code - 1].function, c->l->out[0].type);
  return assign_slots(c);
}

// ---- entry ----------------------------------------------------------------------------------

assay_status_t cpu_program_make(const assay_sized_layer_t* l, size_t first,
                                const assay_value_t* result, assay_layout_t layout,
                                cpu_program_t** out) {
  const pointwise_options_t options = {
      .first = first, .result = result, .layout = layout, .max_copied = INT64_MAX};
  pointwise_code_t code;
  bool ok = false;
  *out = NULL;
  ASSAY_TRY(pointwise_compile(l, &options, &code, &ok));
  if (!ok) return NULL;
  compiler_t c = {.l = l, .code = &code};
  assay_status_t st = ASSAY_NEW(&c.p);
  if (st) return pointwise_deinit(&code), st;
  take_code(&c);  // with the constants and tables
  if (finish(&c))
    *out = c.p;
  else
    cpu_program_destroy(c.p);
  return NULL;
}

void cpu_program_destroy(cpu_program_t* p) {
  for (size_t i = 0; p && i < p->n_streams; i++) {
    assay_free(p->streams[i].constant);
    assay_free(p->streams[i].table.rows);
  }
  assay_free(p);
}

bool cpu_program_reads(const cpu_program_t* p, int input) {
  for (size_t i = 0; i < p->n_streams; i++)
    if (!p->streams[i].constant && p->streams[i].input == input) return true;
  return false;
}

int cpu_program_first_whole(const cpu_program_t* p) { return p->first_whole; }

size_t cpu_program_n_streams(const cpu_program_t* p) { return p->n_streams; }
const cpu_stream_t* cpu_program_stream(const cpu_program_t* p, size_t i) { return &p->streams[i]; }

int cpu_program_in_place(const cpu_program_t* p) { return p->in_place; }

const cpu_link_t* cpu_program_only_link(const cpu_program_t* p) {
  const bool only = p->n_links == 1 && p->n_streams == 1 && p->streams[0].input == POINTWISE_RESULT;
  return only ? &p->links[0] : NULL;
}

assay_status_t cpu_program_from(const assay_sized_layer_t* l, size_t first, assay_layout_t layout,
                                assay_kernel_t* k, cpu_program_t** program, bool* ok) {
  if (l->layer->n_nodes == first) return NULL;
  ASSAY_TRY(cpu_program_make(l, first, l->layer->nodes[first - 1]->outputs[0], layout, program));
  *ok = *program;
  for (size_t i = 0; *program && i < cpu_program_n_streams(*program); i++) {
    const cpu_stream_t* s = cpu_program_stream(*program, i);
    if (s->constant || s->input < 0) continue;
    // One input in one form.
    if (k->in[s->input].type) *ok = false;
    k->in[s->input] = (assay_storage_t){s->type, s->layout};
  }
  return NULL;
}

assay_status_t cpu_program_behind(const assay_sized_layer_t* l, assay_layout_t layout,
                                  assay_kernel_t* k, cpu_program_t** program, bool* ok) {
  return cpu_program_from(l, 1, layout, k, program, ok);
}
