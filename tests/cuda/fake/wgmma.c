// Products of groups of four warps (wgmma): done at the wait and not before, so that sums that are
// touched too early, and operands that are written too early, show. A lane computes its own sums.
#include <string.h>

#include "internal.h"

// Where a block's dynamic shared memory begins: no more than what DYNAMIC promises.
// Terms of 16 bits, the bytes of them, and as many terms of tf32.
enum { BASE = 1024 + 128, TERMS = 16, SLICE = 32, TERMS_OF_TF32 = 8 };

void forget_products(fiber_t* f) {
  f->n_products = f->n_product_groups = f->open_products = 0;
  for (int i = 0; i < MAX_TILES; i++) f->sums[i].at = NULL;
  f->fenced = false;
  f->fences = 0;
  f->products_digest = 0;
}

static fiber_t* fiber_of(const fake_lane_t* lane) { return &lane->run->fibers[lane->thread]; }

uint32_t lane_shared_address(fake_lane_t* lane, const void* p, int line) {
  const run_t* r = lane->run;
  const char* at = p;
  if (!r->dynamic || at < r->dynamic || at > r->dynamic + r->launch->dynamic_bytes)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: shared_address of what is not in DYNAMIC", line);
  return BASE + (uint32_t)(at - r->dynamic);
}

void* lane_shared_place(fake_lane_t* lane, uint32_t at, int line) {
  const run_t* r = lane->run;
  if (!r->dynamic || at < BASE || at - BASE > (uint32_t)r->launch->dynamic_bytes)
    fail_lane(lane->run, ILLEGAL_ADDRESS, "line %d: shared memory at %u, out of DYNAMIC", line, at);
  return r->dynamic + (at - BASE);
}

// ---- what other lanes have written --------------------------------------------------------------

void note_unfenced(run_t* r, int thread, const char* at, size_t bytes) {
  const size_t offset = (size_t)(at - r->dynamic);
  const uint32_t now = (uint32_t)thread << 20 | (r->fibers[thread].fences & 0xfffff);
  for (size_t i = offset / 16; i <= (offset + bytes - 1) / 16; i++) r->unfenced[i] = now + 1;
}

static void check_fenced(fake_lane_t* lane, size_t offset, int line) {
  const run_t* r = lane->run;
  const uint32_t written = r->unfenced[offset / 16];
  if (!written) return;
  const uint32_t thread = (written - 1) >> 20, then = (written - 1) & 0xfffff;
  if ((r->fibers[thread].fences & 0xfffff) == then)
    fail_lane(lane->run, LAUNCH_FAILED,
              "line %d: wgmma reads what thread %u has written with no FENCE_ASYNC after it", line,
              thread);
}

void lane_fence_async(fake_lane_t* lane) { fiber_of(lane)->fences++; }

// ---- descriptors: "Matrix Descriptor Format", PTX ISA -------------------------------------------

typedef struct matrix {
  uint32_t at, across, down;
  int line;  // bytes
} matrix_t;

static matrix_t read_descriptor(fake_lane_t* lane, uint64_t d, int line) {
  const unsigned swizzle = (unsigned)(d >> 62), base = d >> 49 & 7;
  if ((swizzle != 1 && swizzle != 2) || base)
    fail_lane(
        lane->run, LAUNCH_FAILED,
        "line %d: wgmma of a matrix in lines of kind %u, base %u: the platform knows 1 and 2, "
        "base 0",
        line, swizzle, base);
  return (matrix_t){.at = (uint32_t)(d & 0x3fff) << 4,
                    .across = (uint32_t)(d >> 16 & 0x3fff) << 4,
                    .down = (uint32_t)(d >> 32 & 0x3fff) << 4,
                    .line = swizzle == 1 ? 128 : 64};
}

// Where element (i, k) of rows or columns i lies; bits of the address change places.
static uint32_t place_of(const matrix_t* m, bool turned, uint32_t i, uint32_t k) {
  const uint32_t pieces = (uint32_t)m->line / 16, width = (uint32_t)m->line;
  const uint32_t at = turned ? m->at + i / 8 % pieces * 16 + i / 8 / pieces * m->across +
                                   k % 8 * width + k / 8 * m->down + i % 8 * 2
                             : m->at + i % 8 * width + i / 8 * m->down + k * 2;
  return at ^ (at >> 7 & (pieces - 1)) << 4;
}

static const char* pointer_of(fake_lane_t* lane, uint32_t at, int line) {
  const run_t* r = lane->run;
  if (at < BASE || at - BASE + 2 > (uint32_t)r->launch->dynamic_bytes)
    fail_lane(lane->run, ILLEGAL_ADDRESS,
              "line %d: wgmma reads shared memory at %u, out of DYNAMIC", line, at);
  return r->dynamic + (at - BASE);
}

// Looks at the pieces of 16 bytes that a warp reads: rows [first, first + n) of a matrix.
static void check_matrix(fake_lane_t* lane, const matrix_t* m, bool turned, int first, int n,
                         int line) {
  for (int i = first; i < first + n; i += turned ? 8 : 1)
    for (int k = 0; k < TERMS; k += turned ? 1 : 8) {
      const char* at = pointer_of(lane, place_of(m, turned, (uint32_t)i, (uint32_t)k), line);
      check_access(lane->run, lane->thread, at, 16, IS_READ, NULL, line);
      check_fenced(lane, (size_t)(at - lane->run->dynamic), line);
    }
}

static int row_of(const fake_lane_t* lane) {
  return lane->thread % FAKE_GROUP / FAKE_WARP * 16;  // of its warp
}

// One lane looks for its warp.
static void check_operands(fake_lane_t* lane, const late_product_t* p) {
  if (lane->thread % FAKE_WARP) return;
  const matrix_t w = read_descriptor(lane, p->w, p->line);
  if (!p->registers) {
    const matrix_t x = read_descriptor(lane, p->x, p->line);
    check_matrix(lane, &x, false, row_of(lane), 16, p->line);
  }
  check_matrix(lane, &w, p->turned, 0, 2 * p->sums->n, p->line);
}

// ---- products -----------------------------------------------------------------------------------

// SLICE bytes: 16 terms of 16 bits; or 32 of 8, or 8 of 32, which lie as pairs and halves do.
static void load(fake_lane_t* lane, const matrix_t* m, bool turned, int i, int line, uint16_t* to) {
  for (int k = 0; k < TERMS; k++)
    memcpy(&to[k], pointer_of(lane, place_of(m, turned, (uint32_t)i, (uint32_t)k), line), 2);
}

static uint32_t sum_of(fake_warp_op_t op, const uint16_t* x, const uint16_t* w, uint32_t before) {
  float d;
  uint8_t bytes[2][SLICE];
  uint32_t words[2][TERMS_OF_TF32];
  if (op == FAKE_WGMMA_TF32) {
    memcpy(words[0], x, SLICE);
    memcpy(words[1], w, SLICE);
    memcpy(&d, &before, sizeof d);
    d = tensor_sum_tf32(words[0], words[1], TERMS_OF_TF32, d);
    memcpy(&before, &d, sizeof d);
    return before;
  }
  if (op != FAKE_WGMMA_F16 && op != FAKE_WGMMA_BF16) {
    memcpy(bytes[0], x, SLICE);
    memcpy(bytes[1], w, SLICE);
    return tensor_integer_sum(op, bytes[0], bytes[1], SLICE, before);
  }
  memcpy(&d, &before, sizeof d);
  d = tensor_sum(op, x, w, TERMS, d);
  memcpy(&before, &d, sizeof d);
  return before;
}

// A lane's two rows.
static void load_left(fake_lane_t* lane, const late_product_t* p, uint16_t (*rows)[TERMS]) {
  if (!p->registers) {
    const matrix_t x = read_descriptor(lane, p->x, p->line);
    const int first = row_of(lane) + lane->thread % FAKE_WARP / 4;
    for (int i = 0; i < 2; i++) load(lane, &x, false, first + 8 * i, p->line, rows[i]);
    return;
  }
  if (memcmp(p->registers, p->words, sizeof p->words) != 0)
    fail_lane(lane->run, LAUNCH_FAILED,
              "line %d: the left side of wgmma was touched before it was waited for", p->line);
  memcpy(rows, p->left, sizeof p->left);
}

// "Register Fragments for wgmma", PTX ISA.
static void compute(fake_lane_t* lane, const late_product_t* p) {
  const matrix_t w = read_descriptor(lane, p->w, p->line);
  const int l = lane->thread % FAKE_WARP;
  uint16_t rows[2][TERMS], columns[2][TERMS];
  check_operands(lane, p);
  load_left(lane, p, rows);
  for (int j = 0; j < p->sums->n; j += 4) {
    for (int i = 0; i < 2; i++)
      load(lane, &w, p->turned, 2 * j + l % 4 * 2 + i, p->line, columns[i]);
    for (int i = 0; i < 4; i++) {
      uint32_t* d = &p->sums->sums[j + i];
      *d = sum_of(p->op, rows[i / 2], columns[i % 2], p->adds ? *d : 0);
    }
  }
}

// Until its sums are there a lane has NaN, of bits that no operation gives (a signalling one).
static const uint32_t untouched = 0xffbfffff;

static late_sums_t* take_sums(fake_lane_t* lane, uint32_t* d, int n, int line) {
  fiber_t* f = fiber_of(lane);
  late_sums_t* spare = NULL;
  for (int i = 0; i < MAX_TILES; i++) {
    if (f->sums[i].at == d && f->sums[i].n == n) return &f->sums[i];
    if (!f->sums[i].at) spare = &f->sums[i];
  }
  if (!spare) {
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: wgmma of more than %d tiles at once", line,
              MAX_TILES);
  }
  spare->at = d;
  spare->n = n;
  spare->products = 0;
  memcpy(spare->sums, d, (size_t)n * sizeof *d);
  for (int i = 0; i < n; i++) memcpy(&d[i], &untouched, sizeof untouched);
  return spare;
}

static uint64_t mixed(uint64_t digest, uint64_t with) {
  return (digest ^ with) * 0x100000001b3 + (digest >> 29);
}

// The next product of a lane, whose group is there and whose registers are in order.
static late_product_t* take_product(fake_lane_t* lane, int line) {
  run_t* r = lane->run;
  fiber_t* f = fiber_of(lane);
  if (lane->thread - lane->thread % FAKE_GROUP + FAKE_GROUP > lane->threads)
    fail_lane(r, LAUNCH_FAILED, "line %d: wgmma in a group of less than %d threads", line,
              FAKE_GROUP);
  if (!f->fenced) fail_lane(r, LAUNCH_FAILED, "line %d: wgmma with no WGMMA_FENCE before it", line);
  if (f->n_products == MAX_PRODUCTS)
    fail_lane(r, LAUNCH_FAILED, "line %d: more than %d products that nobody waits for", line,
              MAX_PRODUCTS);
  return &f->products[f->n_products++];
}

static void ask_for(fake_lane_t* lane, late_product_t* p) {
  fiber_t* f = fiber_of(lane);
  p->sums->products++;
  f->open_products++;
  f->products_digest = mixed(mixed(mixed(f->products_digest, p->x), p->w), (uint64_t)p->line);
  check_operands(lane, p);
}

void lane_wgmma(fake_lane_t* lane, fake_warp_op_t op, void* d, int n, uint64_t x, uint64_t w,
                int turned, int adds, int line) {
  rest(lane->run, AT_WARP, op, line);
  late_product_t* p = take_product(lane, line);
  *p = (late_product_t){.op = op,
                        .sums = take_sums(lane, d, n / 2, line),
                        .x = x,
                        .w = w,
                        .turned = turned != 0,
                        .adds = adds != 0,
                        .line = line};
  ask_for(lane, p);
}

// Rows of a lane are in the registers of the four lanes that have them: a word of tf32, or two
// terms of 16 bits.
void lane_wgmma_left(fake_lane_t* lane, fake_warp_op_t op, float* d, int n, const uint32_t* x,
                     uint64_t w, int turned, int adds, int line) {
  const int first = lane->thread % FAKE_WARP / 4 * 4;
  memcpy(next_slot(lane), x, sizeof(uint32_t[4]));
  rest(lane->run, AT_WARP, op, line);
  late_product_t* p = take_product(lane, line);
  *p = (late_product_t){.op = op,
                        .sums = take_sums(lane, (uint32_t*)(void*)d, n / 2, line),
                        .w = w,
                        .registers = x,
                        .turned = turned != 0,
                        .adds = adds != 0,
                        .line = line};
  memcpy(p->words, x, sizeof p->words);
  for (int i = 0; i < 4; i++) {
    uint32_t words[4];
    memcpy(words, given(lane, first + i), sizeof words);
    for (int j = 0; j < 4; j++) p->left[j % 2][j / 2 * 4 + i] = words[j];
  }
  ask_for(lane, p);
}

void lane_wgmma_fence(fake_lane_t* lane, int line) {
  rest(lane->run, AT_WARP, FAKE_WGMMA_FENCE, line);
  fiber_of(lane)->fenced = true;
}

void lane_wgmma_commit(fake_lane_t* lane, int line) {
  fiber_t* f = fiber_of(lane);
  rest(lane->run, AT_WARP, FAKE_WGMMA_COMMIT, line);
  if (f->n_product_groups == MAX_PRODUCTS)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: more than %d groups that nobody waits for", line,
              MAX_PRODUCTS);
  f->product_groups[f->n_product_groups++] = f->open_products;
  f->open_products = 0;
  f->fenced = false;
}

static void finish(fake_lane_t* lane, const late_product_t* p) {
  late_sums_t* s = p->sums;
  compute(lane, p);
  if (--s->products) return;
  for (int i = 0; i < s->n; i++)
    if (memcmp(&s->at[i], &untouched, sizeof untouched) != 0)
      fail_lane(lane->run, LAUNCH_FAILED,
                "line %d: sums of wgmma were touched before they were waited for", p->line);
  memcpy(s->at, s->sums, (size_t)s->n * sizeof *s->at);
  s->at = NULL;
}

void lane_wgmma_wait(fake_lane_t* lane, int left, int line) {
  fiber_t* f = fiber_of(lane);
  int products = 0;
  rest(lane->run, AT_WARP, FAKE_WGMMA_WAIT, line);
  const int groups = f->n_product_groups - left;
  if (left < 0) fail_lane(lane->run, LAUNCH_FAILED, "line %d: WGMMA_WAIT(%d)", line, left);
  if (groups <= 0) return;
  for (int i = 0; i < groups; i++) products += f->product_groups[i];
  for (int i = 0; i < products; i++) finish(lane, &f->products[i]);
  f->n_products -= products;
  f->n_product_groups -= groups;
  memmove(f->products, f->products + products, (size_t)f->n_products * sizeof *f->products);
  memmove(f->product_groups, f->product_groups + groups,
          (size_t)f->n_product_groups * sizeof *f->product_groups);
}
