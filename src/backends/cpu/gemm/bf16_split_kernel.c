// Products of float32 matrices by bf16 multiply-adds in tiles (AMX): each number is the sum of two
// or three bf16 numbers, x = h + m (+ l), of 8 bits each, and of the products of their parts the
// largest three (m h, h h, h m) or six (l h, m h, m m, h m, h h, h l) are added up.
#include "backends/cpu/gemm/bf16_split_kernel.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "backends/cpu/pointwise/convert.h"
#include "base/target.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#define HAS_TILES 1
#endif

enum {
  UNIT = CPU_BF16_SPLIT_UNIT,
  TILE = CPU_BF16_SPLIT_TILE,
  COLUMNS = CPU_BF16_SPLIT_COLUMNS,
  LINE = 64
};

static int mode;
void cpu_bf16_split_set_mode(int m) { mode = m; }
int cpu_bf16_split_mode(void) { return mode; }

// ---- splitting ----------------------------------------------------------------------------------

static inline uint32_t rounded(uint32_t bits) {
  return (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
}

// Units of a row: x - h and x - h - m are exact, and the last one has 8 bits. Not 0: some are out
// of range.
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static uint32_t split_units(int parts, int64_t units, const float* restrict x, cpu_range_t range,
                            uint16_t* restrict to) {
  const uint32_t width = range.max - range.min;
  uint32_t out = 0;
  for (int64_t u = 0; u < units; u++, x += UNIT, to += parts * UNIT) {
    _Pragma("omp simd reduction(|:out)") for (int i = 0; i < UNIT; i++) {
      const uint32_t b = cpu_bits(x[i]), size = b & 0x7fffffff, h = rounded(b);
      const float r = x[i] - cpu_from_bits(h);
      const uint32_t m = rounded(cpu_bits(r));
      out |= (uint32_t)(size - range.min >= width) & (uint32_t)(size != 0);
      to[i] = (uint16_t)(h >> 16);
      to[UNIT + i] = (uint16_t)(m >> 16);
    }
    if (parts == 2) continue;
    _Pragma("omp simd") for (int i = 0; i < UNIT; i++) {
      const float r = x[i] - cpu_from_bits((uint32_t)to[i] << 16);
      const float l = r - cpu_from_bits((uint32_t)to[UNIT + i] << 16);
      to[2 * UNIT + i] = (uint16_t)(cpu_bits(l) >> 16);
    }
  }
  return out;
}

#ifdef HAS_TILES
// The same on CPUs with tiles, which round to bf16 in one instruction.
#define FAST __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"), always_inline))

// Rounds two vectors, puts them to `to`, and leaves what remains of them.
FAST static inline void take_part(__m512* x0, __m512* x1, uint16_t* to) {
  static const _Alignas(64)
      uint16_t halves[2][32] = {{0, 0, 0, 1, 0, 2,  0, 3,  0, 4,  0, 5,  0, 6,  0, 7,
                                 0, 8, 0, 9, 0, 10, 0, 11, 0, 12, 0, 13, 0, 14, 0, 15},
                                {0, 16, 0, 17, 0, 18, 0, 19, 0, 20, 0, 21, 0, 22, 0, 23,
                                 0, 24, 0, 25, 0, 26, 0, 27, 0, 28, 0, 29, 0, 30, 0, 31}};
  const __mmask32 upper = 0xaaaaaaaa;
  const __m512i h = (__m512i)_mm512_cvtne2ps_pbh(*x1, *x0);
  const __m512i h0 = _mm512_maskz_permutexvar_epi16(upper, _mm512_load_si512(halves[0]), h);
  const __m512i h1 = _mm512_maskz_permutexvar_epi16(upper, _mm512_load_si512(halves[1]), h);
  _mm512_store_si512(to, h);
  *x0 = _mm512_sub_ps(*x0, _mm512_castsi512_ps(h0));
  *x1 = _mm512_sub_ps(*x1, _mm512_castsi512_ps(h1));
}

// Twice their bits have no sign; 0 less one is above all.
FAST static inline void note_size(__m512 x, __m512i* min, __m512i* max) {
  const __m512i b = _mm512_castps_si512(x), size = _mm512_add_epi32(b, b);
  *max = _mm512_max_epu32(*max, size);
  *min = _mm512_min_epu32(*min, _mm512_add_epi32(size, _mm512_set1_epi32(-1)));
}

__attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16"))) static uint32_t split_units_fast(
    int parts, int64_t units, const float* x, cpu_range_t range, uint16_t* to) {
  __m512i min = _mm512_set1_epi32(-1), max = _mm512_setzero_si512();
  for (int64_t u = 0; u < units; u++, x += UNIT, to += parts * UNIT) {
    __m512 x0 = _mm512_loadu_ps(x), x1 = _mm512_loadu_ps(x + UNIT / 2);
    note_size(x0, &min, &max);
    note_size(x1, &min, &max);
    take_part(&x0, &x1, to);
    take_part(&x0, &x1, to + UNIT);
    if (parts == 3) _mm512_store_si512(to + 2 * UNIT, (__m512i)_mm512_cvtne2ps_pbh(x1, x0));
  }
  return _mm512_cmpge_epu32_mask(max, _mm512_set1_epi32((int)(2 * range.max))) |
         _mm512_cmplt_epu32_mask(min, _mm512_set1_epi32((int)(2 * range.min - 1)));
}
#endif

static uint32_t split(int parts, int64_t units, const float* x, cpu_range_t range, uint16_t* to) {
#ifdef HAS_TILES
  if (!(mode & CPU_BF16_SPLIT_IMITATED)) return split_units_fast(parts, units, x, range, to);
#endif
  return split_units(parts, units, x, range, to);
}

bool cpu_bf16_split_row(int parts, int64_t n, const float* x, cpu_range_t range, uint16_t* to) {
  const int64_t whole = n / UNIT;
  uint32_t out = split(parts, whole, x, range, to);
  if (n % UNIT) {
    float rest[UNIT] = {0};
    memcpy(rest, x + whole * UNIT, (size_t)(n % UNIT) * sizeof *x);
    out |= split(parts, 1, rest, range, to + whole * parts * UNIT);
  }
  return !out;
}

// ---- without tiles ------------------------------------------------------------------------------

// One tile of columns of one row: what TDPBF16PS does to it.
ASSAY_CLONES("arch=x86-64-v4", "arch=x86-64-v3", "default")
static void add_product(const uint16_t* a, const uint16_t* b, float* sum) {
  float even[TILE] = {0}, odd[TILE] = {0};
  for (int k = 0; k < TILE; k++) {
    const float x = cpu_from_bf16(a[2 * k]), y = cpu_from_bf16(a[2 * k + 1]);
    for (int j = 0; j < TILE; j++) {
      even[j] = fmaf(x, cpu_from_bf16(b[k * UNIT + 2 * j]), even[j]);
      odd[j] = fmaf(y, cpu_from_bf16(b[k * UNIT + 2 * j + 1]), odd[j]);
    }
  }
  for (int j = 0; j < TILE; j++) sum[j] += even[j] + odd[j];
}

typedef struct pair {
  int a, b;  // parts
} pair_t;

static void imitate_rows(const cpu_bf16_split_block_t* b) {
  static const pair_t three[] = {{1, 0}, {0, 0}, {0, 1}};
  static const pair_t six[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 0}, {0, 2}};
  const pair_t* pairs = b->parts == 2 ? three : six;
  const int n = b->parts == 2 ? 3 : 6;
  const int64_t rows = (b->rows + TILE - 1) / TILE * TILE, unit = b->parts * 2 * TILE * UNIT;
  for (int64_t r = 0; r < rows; r++) {
    memset(b->c + r * b->c_step, 0, COLUMNS * sizeof *b->c);
    for (int64_t p = 0; p < b->n_pieces; p++)
      for (int64_t u = 0; u < b->units; u++) {
        const uint16_t* a =
            (const uint16_t*)(const void*)(b->a + r * b->step + b->pieces[p]) + u * b->parts * UNIT;
        const uint16_t* w = b->panel + (p * b->units + u) * unit;
        for (int i = 0; i < n; i++)
          for (int t = 0; t < 2; t++)
            add_product(a + pairs[i].a * UNIT, w + (pairs[i].b * 2 + t) * TILE * UNIT,
                        b->c + r * b->c_step + t * TILE);
      }
  }
}

// Subnormal numbers are taken as 0 and become 0.
static void imitate(const cpu_bf16_split_block_t* b) {
#ifdef HAS_TILES
  enum { FLUSHES = 0x8040 };
  const uint32_t before = _mm_getcsr();
  _mm_setcsr(before | FLUSHES);
  imitate_rows(b);
  _mm_setcsr(before);
#else
  imitate_rows(b);
#endif
}

// ---- with tiles ---------------------------------------------------------------------------------
#ifdef HAS_TILES

// Sums are tiles 0 to 3 (rows, columns), the left side's 4 and 5, the right side's 6 and 7.
#define TARGET __attribute__((target("amx-tile,amx-bf16")))

typedef struct config {
  uint8_t palette, start, none[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} config_t;
_Static_assert(sizeof(config_t) == 64, "what LDTILECFG reads");

TARGET void cpu_bf16_split_begin(cpu_bf16_split_state_t* s) {
  // In memory for good: compilers believe that only its first bytes are read.
  static const _Alignas(64) config_t c = {.palette = 1,
                                          .bytes = {LINE, LINE, LINE, LINE, LINE, LINE, LINE, LINE},
                                          .rows = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE}};
  if (mode & CPU_BF16_SPLIT_IMITATED) return;
  _tile_storeconfig(s->saved);
  _tile_loadconfig(&c);
}

// Others may count on tiles that they have set, not on what is in them.
TARGET void cpu_bf16_split_end(const cpu_bf16_split_state_t* s) {
  if (mode & CPU_BF16_SPLIT_IMITATED) return;
  if (s->saved[0])
    _tile_loadconfig(s->saved);
  else
    _tile_release();
}

#define LEFT(part)                                       \
  _tile_loadd(4, a + (part)*LINE, step);                 \
  if (tall) {                                            \
    _tile_loadd(5, a + (part)*LINE + TILE * step, step); \
  }
#define RIGHT(part)                                 \
  _tile_loadd(6, w + (part)*2 * TILE * UNIT, LINE); \
  _tile_loadd(7, w + ((part)*2 + 1) * TILE * UNIT, LINE);
#define MULTIPLY             \
  _tile_dpbf16ps(0, 4, 6);   \
  _tile_dpbf16ps(1, 4, 7);   \
  if (tall) {                \
    _tile_dpbf16ps(2, 5, 6); \
    _tile_dpbf16ps(3, 5, 7); \
  }

// `parts` and `tall` are constants where this is inlined.
TARGET __attribute__((always_inline)) static inline void block(int parts, bool tall,
                                                               const cpu_bf16_split_block_t* b) {
  const uint16_t* w = b->panel;
  const int64_t step = b->step;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t p = 0; p < b->n_pieces; p++) {
    const char* a = b->a + b->pieces[p];
    for (int64_t u = 0; u < b->units; u++, a += parts * LINE, w += parts * 2 * TILE * UNIT) {
      if (parts == 3) {
        LEFT(2)
        RIGHT(0)
        MULTIPLY
      }
      LEFT(1)
      if (parts == 2) {
        RIGHT(0)
      }
      MULTIPLY
      if (parts == 3) {
        RIGHT(1)
        MULTIPLY
        LEFT(0)
        MULTIPLY
        RIGHT(0)
        MULTIPLY
        RIGHT(2)
        MULTIPLY
      } else {
        LEFT(0)
        MULTIPLY
        RIGHT(1)
        MULTIPLY
      }
    }
  }
  const int64_t c_step = b->c_step * (int64_t)sizeof(float);
  _tile_stored(0, b->c, c_step);
  _tile_stored(1, b->c + TILE, c_step);
  if (tall) {
    _tile_stored(2, b->c + TILE * b->c_step, c_step);
    _tile_stored(3, b->c + TILE * b->c_step + TILE, c_step);
  }
}

TARGET static void multiply(const cpu_bf16_split_block_t* b) {
  if (b->parts == 2)
    b->rows > TILE ? block(2, true, b) : block(2, false, b);
  else
    b->rows > TILE ? block(3, true, b) : block(3, false, b);
}

static bool has_tiles;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// The instructions are there (CPUID), and the system, which keeps tiles from those who have not
// asked, gives them to this process.
static void ask(void) {
  enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
  unsigned a, b, c, d;
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512bf16") ||
      !__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return;
  const bool bf16 = d >> 22 & 1, tiles = d >> 24 & 1;
  has_tiles = bf16 && tiles && syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

bool cpu_bf16_split_has_tiles(void) {
  pthread_once(&once, ask);
  return has_tiles;
}

void cpu_bf16_split_multiply(const cpu_bf16_split_block_t* b) {
  (mode & CPU_BF16_SPLIT_IMITATED ? imitate : multiply)(b);
}
#else
void cpu_bf16_split_begin(cpu_bf16_split_state_t* s) { (void)s; }
void cpu_bf16_split_end(const cpu_bf16_split_state_t* s) { (void)s; }
bool cpu_bf16_split_has_tiles(void) { return false; }
void cpu_bf16_split_multiply(const cpu_bf16_split_block_t* b) { imitate(b); }
#endif
