// Barriers in shared memory (mbarrier), and the copy engine: what it is told of a tensor
// (cuTensorMapEncode...), and tiles of it. A tile comes when somebody waits for its barrier and not
// before; until then its place holds NaN, so that who reads too early, and who asks for a tile
// whose place is still read, shows.
#include <stdio.h>
#include <string.h>

#include "internal.h"
#include "switch.h"

enum { MAGIC = 0x70a9, MAX_RANK = 5, PATTERN = 1024, PIECE = 16 };

typedef struct map {  // in a CUtensorMap's 128 bytes
  uint64_t at, steps[MAX_RANK - 1];
  uint32_t dims[MAX_RANK];
  uint16_t magic, box[MAX_RANK];
  int16_t lower[3], upper[3];
  uint8_t rank, strides[MAX_RANK], line, element;  // bytes
  bool windows, to_tf32;
} map_t;
_Static_assert(sizeof(map_t) <= 128, "a tensor map has 128 bytes");

// ---- what it is told ----------------------------------------------------------------------------

static bool set_tensor(map_t* m, int type, uint32_t rank, const void* at, const uint64_t* dims,
                       const uint64_t* steps, const uint32_t* strides, int interleave, int swizzle,
                       int fill) {
  *m = (map_t){.magic = MAGIC, .at = (uint64_t)(uintptr_t)at, .rank = (uint8_t)rank};
  // Formats and swizzles that the platform knows.
  if (rank < 2 || rank > MAX_RANK ||
      (type != CUDA_MAP_UINT8 && type != CUDA_MAP_FLOAT16 && type != CUDA_MAP_BFLOAT16 &&
       type != CUDA_MAP_FLOAT32 && type != CUDA_MAP_TFLOAT32) ||
      interleave || fill || (swizzle != CUDA_MAP_SWIZZLE_64 && swizzle != CUDA_MAP_SWIZZLE_128) ||
      m->at % 16)
    return false;
  m->to_tf32 = type == CUDA_MAP_TFLOAT32;
  m->element = type == CUDA_MAP_UINT8 ? 1 : type == CUDA_MAP_FLOAT32 || m->to_tf32 ? 4 : 2;
  m->line = swizzle == CUDA_MAP_SWIZZLE_128 ? 128 : 64;
  for (uint32_t i = 0; i < rank; i++) {
    if (!dims[i] || dims[i] > (uint64_t)1 << 32 || !strides[i] || strides[i] > 8) return false;
    m->dims[i] = (uint32_t)dims[i];
    m->strides[i] = (uint8_t)strides[i];
  }
  for (uint32_t i = 0; i + 1 < rank; i++) {
    if (steps[i] % 16 || steps[i] >= (uint64_t)1 << 40) return false;
    m->steps[i] = steps[i];
  }
  return strides[0] == 1;
}

cuda_result_t cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* at,
                                     const uint64_t* dims, const uint64_t* steps,
                                     const uint32_t* box, const uint32_t* strides, int interleave,
                                     int swizzle, int promotion, int fill) {
  map_t m;
  CALLED(false);
  if ((uintptr_t)map % 64 || promotion < 0 || promotion > 3 ||
      !set_tensor(&m, type, rank, at, dims, steps, strides, interleave, swizzle, fill))
    return INVALID_VALUE;
  for (uint32_t i = 0; i < rank; i++) {
    if (!box[i] || box[i] > 256 || strides[i] != 1) return INVALID_VALUE;
    m.box[i] = (uint16_t)box[i];
  }
  if (box[0] * m.element != m.line)
    return INVALID_VALUE;  // lines that are not full: not known here
  memset(map, 0, 128);
  memcpy(map, &m, sizeof m);
  return 0;
}

cuda_result_t cuTensorMapEncodeIm2col(void* map, int type, uint32_t rank, void* at,
                                      const uint64_t* dims, const uint64_t* steps, const int* lower,
                                      const int* upper, uint32_t channels, uint32_t pixels,
                                      const uint32_t* strides, int interleave, int swizzle,
                                      int promotion, int fill) {
  map_t m;
  CALLED(false);
  if ((uintptr_t)map % 64 || promotion < 0 || promotion > 3 || rank != 4 || channels > 256 ||
      pixels > 1024 || !pixels ||
      !set_tensor(&m, type, rank, at, dims, steps, strides, interleave, swizzle, fill))
    return INVALID_VALUE;
  for (uint32_t i = 0; i < rank - 2; i++) {
    if (lower[i] < -128 || lower[i] > 127 || upper[i] < -128 || upper[i] > 127)
      return INVALID_VALUE;
    m.lower[i] = (int16_t)lower[i];
    m.upper[i] = (int16_t)upper[i];
  }
  if (channels * m.element != m.line) return INVALID_VALUE;
  m.windows = true;
  m.box[0] = (uint16_t)channels;
  m.box[1] = (uint16_t)pixels;
  memset(map, 0, 128);
  memcpy(map, &m, sizeof m);
  return 0;
}

// ---- barriers -----------------------------------------------------------------------------------

// That of a block, which may be another one of the lane's cluster.
static barrier_t* find_barrier_of(fake_lane_t* lane, run_t* r, const char* at, int line) {
  for (int i = 0; i < r->n_barriers; i++) {
    barrier_t* b = &r->barriers[i];
    if (b->at != at) continue;
    if (r == lane->run && b->made_by != lane->thread && b->epoch == r->block_epoch &&
        b->cluster_epoch == r->cluster_epoch)
      fail_lane(r, LAUNCH_FAILED, "line %d: a barrier that another thread made, with no SYNC",
                line);
    if (r != lane->run && b->cluster_epoch == r->cluster_epoch)
      fail_lane(lane->run, LAUNCH_FAILED,
                "line %d: a barrier that another block made, with no SYNC_CLUSTER", line);
    if (!b->fenced)
      fail_lane(lane->run, LAUNCH_FAILED, "line %d: a barrier with no BARRIERS_MADE after it",
                line);
    return b;
  }
  fail_lane(lane->run, LAUNCH_FAILED, "line %d: no barrier was made there%s", line,
            r == lane->run ? "" : " yet, in another block, with no SYNC_CLUSTER");
  return NULL;
}

static barrier_t* find_barrier(fake_lane_t* lane, const void* p, int line) {
  return find_barrier_of(lane, lane->run, p, line);
}

// The block of a rank of the lane's cluster, whose shared memory the lane reaches.
static run_t* find_block(fake_lane_t* lane, int rank, int line) {
  const run_t* r = lane->run;
  if (rank < 0 || rank >= r->n_cluster)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: block %d of a cluster of %d", line, rank,
              r->n_cluster);
  if (r->cluster[rank]->ended)
    fail_lane(lane->run, LAUNCH_FAILED,
              "line %d: shared memory of block %d of the cluster, which has ended", line, rank);
  return r->cluster[rank];
}

// What lies at the same place of a block.
static char* same_place(const fake_lane_t* lane, const run_t* r, const void* p) {
  return r->dynamic + ((const char*)p - lane->run->dynamic);
}

void lane_read_of(fake_lane_t* lane, int rank, const void* p, uint32_t* words, int n, int line) {
  run_t* r = find_block(lane, rank, line);
  const char* from = same_place(lane, r, p);
  check_read_of(r, lane, from, (size_t)n * sizeof *words, line);
  memcpy(words, from, (size_t)n * sizeof *words);
}

// Another block is to arrive there: now, or when its tile has come.
static void note_shared(const fake_lane_t* lane, const run_t* r, barrier_t* b) {
  if (r == lane->run) return;
  b->shared = true;
  b->shared_phase = b->phase;
}

bool is_arrived_at(const run_t* r) {
  for (int i = 0; i < r->n_barriers; i++) {
    const barrier_t* b = &r->barriers[i];
    if (b->shared && b->shared_phase >= b->seen_phase) return true;
  }
  return false;
}

void lane_make_barrier(fake_lane_t* lane, void* p, int arrivals, int line) {
  run_t* r = lane->run;
  const char* at = p;
  if (!r->dynamic || at < r->dynamic || at + 8 > r->dynamic + r->launch->dynamic_bytes ||
      (uintptr_t)at % 8 || arrivals < 1 || r->n_barriers == MAX_BARRIERS)
    fail_lane(r, LAUNCH_FAILED,
              "line %d: a barrier out of DYNAMIC, off its size, of %d arrivals, "
              "or one too many",
              line, arrivals);
  r->barriers[r->n_barriers++] = (barrier_t){.at = at,
                                             .count = arrivals,
                                             .pending = arrivals,
                                             .made_by = lane->thread,
                                             .epoch = r->block_epoch,
                                             .cluster_epoch = r->cluster_epoch};
}

void lane_barriers_made(fake_lane_t* lane) {
  run_t* r = lane->run;
  for (int i = 0; i < r->n_barriers; i++)
    r->barriers[i].fenced |= r->barriers[i].made_by == lane->thread;
}

static void look_at(run_t* r, barrier_t* b) {
  for (int i = 0; i < r->n_cluster; i++) r->cluster[i]->tries = 0;
  if (b->pending || b->bytes) return;
  b->phase++;
  b->pending = b->count;
}

static void arrive(fake_lane_t* lane, run_t* r, barrier_t* b, int bytes, int line) {
  if (!b->pending)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: more than %d arrivals in a phase", line,
              b->count);
  b->bytes += bytes;
  b->pending--;
  look_at(r, b);
}

void lane_arrive(fake_lane_t* lane, void* p, int bytes, int line) {
  arrive(lane, lane->run, find_barrier(lane, p, line), bytes, line);
}

void lane_arrive_in(fake_lane_t* lane, void* p, int rank, int line) {
  run_t* r = find_block(lane, rank, line);
  barrier_t* b = find_barrier_of(lane, r, same_place(lane, r, p), line);
  note_shared(lane, r, b);
  arrive(lane, r, b, 0, line);
}

// ---- tiles --------------------------------------------------------------------------------------

// A line of a tile: its coordinates in the tensor; false: out of it.
static bool find_line(const map_t* m, const late_bulk_t* c, int i, int64_t* at) {
  bool inside = true;
  at[0] = c->coordinates[0];
  if (!m->windows) {
    at[1] = c->coordinates[1] + i;
  } else {
    // From a window on, along the box that windows begin in; then what lies so much further.
    int64_t from[3], n[3], place[3];
    for (int d = 0; d < 2; d++) {
      const int64_t stride = m->strides[d + 1];
      n[d] = ((int64_t)m->dims[d + 1] + m->upper[d] - m->lower[d] + stride - 1) / stride;
      from[d] = c->coordinates[d + 1] - m->lower[d];
      if (from[d] < 0 || from[d] % stride) return false;
      place[d] = from[d] / stride;
    }
    place[0] += i;
    place[1] += place[0] / n[0];
    place[0] %= n[0];
    place[2] = c->coordinates[3] + place[1] / n[1];
    place[1] %= n[1];
    for (int d = 0; d < 2; d++)
      at[d + 1] = place[d] * m->strides[d + 1] + m->lower[d] + c->coordinates[4 + d];
    at[3] = place[2];
  }
  for (int d = 1; d < m->rank; d++) inside &= at[d] >= 0 && at[d] < m->dims[d];
  return inside;
}

// What there is of a line; elements: how many from the tensor.
static const char* source_of(fake_lane_t* lane, const map_t* m, const int64_t* at, int* elements,
                             int line) {
  uint64_t from = m->at + (uint64_t)at[0] * m->element;
  const int64_t left = m->dims[0] - at[0];
  *elements = left < m->box[0] ? (int)left : m->box[0];
  if (at[0] < 0 || *elements <= 0) return *elements = 0, NULL;
  for (int d = 1; d < m->rank; d++) from += (uint64_t)at[d] * m->steps[d - 1];
  const char* p = device_memory(from, (size_t)*elements * m->element);
  if (!p)
    fail_lane(lane->run, ILLEGAL_ADDRESS, "line %d: a tile of 0x%llx, where no memory is", line,
              (unsigned long long)from);
  return p;
}

static map_t read_map(fake_lane_t* lane, const void* from, int line) {
  map_t m;
  memcpy(&m, from, sizeof m);
  if (m.magic != MAGIC)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: a tile by what is not a tensor map", line);
  return m;
}

static int lines_of(const map_t* m) { return m->box[1]; }

// One block of those that get the tile.
static void ask_for(fake_lane_t* lane, run_t* r, const late_bulk_t* asked, const void* barrier,
                    size_t bytes) {
  late_bulk_t c = *asked;
  c.to = same_place(lane, r, asked->to);
  c.barrier = find_barrier_of(lane, r, same_place(lane, r, barrier), c.line);
  if (r->n_bulks == MAX_BULKS)
    fail_lane(lane->run, LAUNCH_FAILED, "line %d: more than %d tiles that nobody waits for", c.line,
              MAX_BULKS);
  note_shared(lane, r, c.barrier);
  poison(c.to, bytes);
  r->bulks[r->n_bulks++] = c;
}

void lane_bulk(fake_lane_t* lane, void* shared, const void* map, const int* coordinates, int n,
               unsigned blocks, void* barrier, int line) {
  run_t* r = lane->run;
  const map_t m = read_map(lane, map, line);
  late_bulk_t c = {.to = shared, .map = map, .n = n, .line = line};
  const size_t bytes = (size_t)lines_of(&m) * m.line;
  memcpy(c.coordinates, coordinates, (size_t)n * sizeof *coordinates);
  if (m.windows != (n == 6) || (!m.windows && m.rank != 2))
    fail_lane(r, LAUNCH_FAILED, "line %d: a tile of a map of another kind", line);
  // The pattern that pieces change places by goes by addresses.
  if (c.to < r->dynamic || c.to + bytes > r->dynamic + r->launch->dynamic_bytes ||
      lane_shared_address(lane, c.to, line) % PATTERN)
    fail_lane(r, LAUNCH_FAILED, "line %d: a tile out of DYNAMIC, or not at a multiple of %d", line,
              PATTERN);
  for (int i = 0; i < lines_of(&m); i++) {
    int64_t at[MAX_RANK];
    int elements;
    if (!find_line(&m, &c, i, at)) continue;
    const char* p = source_of(lane, &m, at, &elements, line);
    if (p) check_access(r, lane->thread, p, (size_t)elements * m.element, IS_READ, NULL, line);
  }
  if (!blocks) ask_for(lane, r, &c, barrier, bytes);
  for (int rank = 0; blocks >> rank; rank++)
    if (blocks >> rank & 1) ask_for(lane, find_block(lane, rank, line), &c, barrier, bytes);
}

// To nearest, ties to even; NaN of one kind: as an H200 does.
static void round_to_tf32(char* text, int n) {
  for (int i = 0; i < n; i++) {
    uint32_t b;
    memcpy(&b, text + i * 4, sizeof b);
    b = b << 1 > 0xff000000U ? 0x7fffe000U : (b + 0xfffU + (b >> 13 & 1)) & ~0x1fffU;
    memcpy(text + i * 4, &b, sizeof b);
  }
}

static void bring(fake_lane_t* lane, const late_bulk_t* c) {
  const map_t m = read_map(lane, c->map, c->line);
  const size_t bytes = (size_t)lines_of(&m) * m.line;
  for (int i = 0; i < lines_of(&m); i++) {
    char text[128] = {0};
    int64_t at[MAX_RANK];
    int elements;
    if (find_line(&m, c, i, at)) {
      const char* p = source_of(lane, &m, at, &elements, c->line);
      if (p) memcpy(text, p, (size_t)elements * m.element);
      if (m.to_tf32) round_to_tf32(text, elements);
    }
    for (int piece = 0; piece < m.line / PIECE; piece++) {
      size_t to = (size_t)i * m.line + (size_t)piece * PIECE;
      to ^= (to >> 7 & (m.line / PIECE - 1U)) << 4;
      memcpy(c->to + to, text + piece * PIECE, PIECE);
    }
  }
  const size_t offset = (size_t)(c->to - lane->run->dynamic);
  memset(lane->run->unfenced + offset / 16, 0, bytes / 16 * sizeof *lane->run->unfenced);
  c->barrier->bytes -= (int64_t)bytes;
}

static bool has_ended(barrier_t* b, int parity) {
  const bool yes = (b->phase & 1) != (unsigned)parity;
  if (yes) b->seen_phase = b->phase;
  return yes;
}

int lane_try_barrier(fake_lane_t* lane, void* p, int parity, int line) {
  run_t* r = lane->run;
  barrier_t* b = find_barrier(lane, p, line);
  if (has_ended(b, parity)) return 1;
  // Tiles come in any order.
  for (int i = (int)run_draw(r, 2); i < r->n_bulks;) {
    if (r->bulks[i].barrier != b) {
      i++;
      continue;
    }
    const late_bulk_t c = r->bulks[i];
    r->bulks[i] = r->bulks[--r->n_bulks];
    bring(lane, &c);
    look_at(r, b);
  }
  if (++r->tries > MAX_TRIES)
    fail_lane(r, LAUNCH_FAILED, "line %d: nobody ends the phase that a thread waits for", line);
  return has_ended(b, parity);
}
