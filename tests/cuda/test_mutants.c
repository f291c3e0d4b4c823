// Kernels with faults put into them: the platform without a GPU (fake/) finds each, as a launch
// that fails with a message, or as another result. Faults are replacements in the kernels' texts,
// so that they follow the kernels.
#include <math.h>

#include "backends/cuda/kernels/attention_args.h"
#include "backends/cuda/kernels/int8_bulk_args.h"
#include "backends/cuda/kernels/product_bulk_args.h"
#include "backends/cuda/maps.h"
#include "platform_case.h"

enum { MAX_BYTES = 1 << 17, SEEDS = 3 };

typedef struct sample_args {
  uint64_t x, y, z;
  int32_t rows, columns, depth;
} sample_args_t;

// A kernel and a launch of it. Of the backend's own the file is that of its folder.
typedef struct sample {
  const char *file, *kernel, *options;
  int32_t rows, columns, depth;  // z has rows * columns numbers of 32 bits
  bool halves;                   // x and y: fp16
  cuda_grid_t grid;
} sample_t;

static const char mma_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DIN_IS_F32=0 -DBM=32 -DBN=64 -DWM=2 -DWN=2 -DX_FAST=1 -DW_FAST=2 "
    "-DSTAGES=2 -DW_CONSTANT=0";

static const char wgmma_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DX_FAST=1 -DW_FAST=2 -DSTAGES=4 -DW_CONSTANT=0";

static const char bulk_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DSTAGES=4 -DTURNED=1 -DW_CONSTANT=0";

// Six tiles of one block.
static const char turns_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DSTAGES=3 -DTURNED=1 -DW_CONSTANT=0 "
    "-DFINISH_COLUMNS=48";

// Five tiles of rows, of two columns each, of one pair of blocks.
static const char shared_turns_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DSTAGES=3 -DTURNED=1 -DW_CONSTANT=0 -DSHARING=2";

// Three tiles of rows: two pairs of blocks, of which one block has no tile.
static const char clusters_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DSTAGES=2 -DTURNED=1 -DW_CONSTANT=0";

// Two clusters of two blocks, which normalize their rows in place.
static const char normed_options[] =
    "-DIN=f16 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DSTAGES=4 -DTURNED=1 -DW_CONSTANT=0 -DCLUSTER=2 "
    "-DX_SHARING=2 -DNORM_TYPE=f32 -DNORM_SPAN=32 -DNORM_KEEP=2 -DNORM_VEC=4 -DNORM_CENTERED=1 "
    "-DNORM_SCALE=0 -DNORM_BIAS=0 -DNORM_MOVED=0";

// Weights in two parts, one after the other.
static const char parts_options[] =
    "-DIN=f32 -DOUT=f32 -DCONV=0 -DBM=128 -DBN=96 -DSTAGES=4 "
    "-DTURNED=0 -DW_CONSTANT=0 -DW_PARTS=2";

// A mask of keys, three blocks of them; two tiles of queries.
static const char attention_options[] =
    "-DBATCH=1 -DINDEX=int32_t -DCAP=0 -DWINDOWED=0 -DGROUPED=0 -DMASKS=1 -DKINDS=0 -DALONG_KEYS=1 "
    "-DALONG_QUERIES=0 -DPAIRED=1 -DWALKED=0 -DT=f16 -DSIZE=64 -DV_SIZE=64 -DWHOLE=1 -DY_FAST=1 "
    "-DKEYS=64 -DONE_BLOCK=0 -DEXP2=1 -DFOLDED=0 -DGROUPS=1 -DBLOCKS_OF=4 -DTOGETHER=1";

// Four tiles of bytes, of five steps that four blocks each share out.
static const char split_options[] =
    "-DBM=64 -DBN=32 -DBK=128 -DSTAGES=3 -DDOWN_FIRST=0 -DSPLIT=4 -DCONV=0 -DX_TYPE=int8_t "
    "-DZERO_READ=0 -DEND=0";

enum {
  NORM,
  TURN,
  COUNT,
  PRODUCT,
  MOVE,
  MMA,
  WGMMA,
  BULK,
  TURNS,
  SHARED_TURNS,
  CLUSTERS,
  NORMED,
  PARTS,
  ATTENTION,
  SPLIT_TERMS
};
static const sample_t samples[] = {
    [NORM] =
        {"norm.cu", "norm", "", 6, 300, 0, false, {.blocks = 6, .threads = 256, .dependent = true}},
    [TURN] = {"turn.cu", "turn", "", 70, 45, 0, false, {.blocks = 6, .threads = 256}},
    [COUNT] = {"count.cu",
               "count",
               "",
               64,
               50,
               0,
               false,
               {.blocks = 4, .threads = 128, .shared_bytes = 256}},
    [PRODUCT] = {"product.cu",
                 "product",
                 "",
                 60,
                 64,
                 96,
                 true,
                 {.blocks = 4, .threads = 128, .shared_bytes = 2 * 64 * 40 * 2}},
    [MOVE] =
        {"move.cu", "move_bytes", "-DBITS=32", 30, 40, 0, false, {.blocks = 3, .threads = 256}},
    [MMA] = {"product_mma.cu",
             "product_mma",
             mma_options,
             50,
             128,
             136,
             true,
             {.blocks = 4, .threads = 128, .shared_bytes = 2 * (32 + 64) * 128}},
    [WGMMA] = {"product_wgmma.cu",
               "product_wgmma",
               wgmma_options,
               120,
               96,
               456,
               true,
               {.blocks = 1, .threads = 256, .shared_bytes = 4 * (128 + 96) * 128 + 1024}},
    [BULK] = {"product_bulk.cu",
              "product_bulk",
              bulk_options,
              120,
              96,
              456,
              true,
              {.blocks = 1,
               .threads = 320,
               .shared_bytes = 4 * (128 + 96) * 128 + 2048,
               .dependent = true}},
    [TURNS] = {"product_turns.cu",
               "product_turns",
               turns_options,
               300,
               104,
               200,
               true,
               {.blocks = 1,
                .threads = 640,
                .shared_bytes =
                    3 * (128 + 96) * 128 + 3072 + 2 * (128 * 104 * 4 + PRODUCT_OPEN_BYTES),
                .dependent = true}},
    [SHARED_TURNS] = {"product_turns.cu",
                      "product_turns",
                      shared_turns_options,
                      600,
                      104,
                      136,
                      true,
                      {.blocks = 2,
                       .threads = 640,
                       .shared_bytes =
                           3 * (128 + 96) * 128 + 3072 + 2 * (128 * 104 * 4 + PRODUCT_OPEN_BYTES),
                       .cluster = 2,
                       .dependent = true}},
    [CLUSTERS] = {"product_clusters.cu",
                  "product_clusters",
                  clusters_options,
                  260,
                  96,
                  248,
                  true,
                  {.blocks = 4,
                   .threads = 320,
                   .shared_bytes = 2 * (128 + 96) * 128 + 2048,
                   .cluster = 2,
                   .dependent = true}},
    [NORMED] = {"product_norm.cu",
                "product_norm",
                normed_options,
                140,
                184,
                456,
                true,
                {.blocks = 4,
                 .threads = 320,
                 .shared_bytes = 4 * (128 + 96) * 128 + 2048,
                 .cluster = 2,
                 .dependent = true}},
    [PARTS] = {"product_parts.cu",
               "product_parts",
               parts_options,
               120,
               96,
               216,
               false,
               {.blocks = 1,
                .threads = 320,
                .shared_bytes = 4 * (128 + 2 * 96) * 128 + 2048,
                .dependent = true}},
    [ATTENTION] = {"attention_wgmma.cu",
                   "attention_wgmma",
                   attention_options,
                   70,
                   190,
                   64,
                   true,
                   {.blocks = 2,
                    .threads = 128,
                    .shared_bytes = (64 + 4 * 64) * 128 + 2 * 64 * 4 + 1024,
                    .dependent = true}},
    [SPLIT_TERMS] = {"int8_bulk.cu",
                     "int8_bulk",
                     split_options,
                     100,
                     36,
                     560,
                     true,
                     {.blocks = 16,
                      .threads = 192,
                      .shared_bytes = 3 * (64 + 32) * 128 + 2048,
                      .cluster = 4,
                      .dependent = true}},
};

// ---- texts --------------------------------------------------------------------------------------

// With the n-th `from` (from 0) replaced by `to`.
static char* replaced(const char* text, const char* from, const char* to, int n) {
  const char* at = strstr(text, from);
  while (at && n--) at = strstr(at + 1, from);
  if (!at) fail_msg("'%s' is not in the kernel any more: choose another place for the fault", from);
  char* out = assay_malloc(MAX_BYTES);
  assert_non_null(out);
  snprintf(out, MAX_BYTES, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
  return out;
}

static char* read_sample(const char* name) {
  char path[256];
  snprintf(path, sizeof path, "cuda/kernels/%s", name);
  FILE* f = fopen(path, "rb");
  char* text = assay_malloc(MAX_BYTES);
  assert_non_null(text);
  if (f) {
    text[fread(text, 1, MAX_BYTES - 1, f)] = 0;
    fclose(f);
    return text;
  }
  const cuda_kernel_file_t* own = cuda_kernel_file_find(name);
  if (!own) fail_msg("there is no kernel '%s'", name);
  // What they have in common in a header is part of the text, for faults in it.
  static const char* const headers[] = {"product_block.h", "product_tiles.h", "product_stages.h",
                                        "product_parts.h"};
  snprintf(text, MAX_BYTES, "%s", own->text);
  for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
    char include[64];
    const cuda_kernel_file_t* header = cuda_kernel_file_find(headers[i]);
    snprintf(include, sizeof include, "#include \"%s\"", headers[i]);
    if (!header || !strstr(text, include)) continue;
    char* whole = replaced(text, include, header->text, 0);
    assay_free(text);
    text = whole;
  }
  return text;
}

// ---- launches -----------------------------------------------------------------------------------

static void fill(uint32_t* words, size_t n, bool halves) {
  uint32_t random = 7;
  for (size_t i = 0; i < n; i++) {
    random = random * 1664525U + 1013904223U;
    const uint32_t high = random >> 8;
    // Between 1 and 2, and with other signs.
    const float x = (float)(high & 0xffff) / 65536.0F + 1.0F;
    if (halves)
      words[i] = 0x3c003c00U | (random & 0x83ff83ffU);
    else
      memcpy(&words[i], &x, sizeof x);
  }
}

static void give_mma(product_args_t* a, const sample_args_t* s) {
  *a = (product_args_t){.x = s->x,
                        .w = s->y,
                        .y = s->z,
                        .m = s->rows,
                        .n = s->columns,
                        .k = s->depth,
                        .matrices = 1,
                        .x_row = s->depth,
                        .x_k = 1,
                        .w_k = s->columns,
                        .w_column = 1,
                        .y_row = s->columns};
}

// The same, with what the copy engine knows of both sides.
static assay_status_t give_bulk(assay_queue_t* q, product_bulk_args_t* a, const sample_args_t* s,
                                int rows) {
  const cuda_tiles_t x = {ASSAY_TYPE_FLOAT16, s->depth, s->rows, s->depth, 64, rows, false};
  const cuda_tiles_t w = {ASSAY_TYPE_FLOAT16, s->columns, s->depth, s->columns, 32, 64, false};
  give_mma(&a->product, s);
  a->product.norm = (norm_args_t){.y = s->z, .epsilon = 0.5F};
  ASSAY_TRY(cuda_map_tiles(q, &x, s->x, &a->x));
  return cuda_map_tiles(q, &w, s->y, &a->w);
}

// Of float32, weights by columns, in two parts.
static assay_status_t give_parts(assay_queue_t* q, product_bulk_args_t* a, const sample_args_t* s) {
  const cuda_tiles_t x = {ASSAY_TYPE_FLOAT, s->depth, s->rows, s->depth, 32, 128, false};
  const cuda_tiles_t w = {ASSAY_TYPE_FLOAT, s->depth, 2 * s->columns, s->depth, 32, 96, false};
  give_mma(&a->product, s);
  a->product.w_k = 1;
  a->product.w_column = s->depth;
  ASSAY_TRY(cuda_map_tiles(q, &x, s->x, &a->x));
  return cuda_map_tiles(q, &w, s->y, &a->w);
}

// Queries x; y: keys, values and, as floats, a mask.
static void give_attention(attention_args_t* a, const sample_args_t* s) {
  const attention_side_t keys = {.at = s->y, .row = s->depth, .column = 1};
  *a = (attention_args_t){.q = {.at = s->x, .row = s->depth, .column = 1},
                          .k = keys,
                          .v = keys,
                          .y = {.at = s->z, .row = s->depth, .column = 1},
                          .batch = {divisor_of(1)},
                          .tiles = divisor_of((uint32_t)(s->rows + 63) / 64),
                          .heads = divisor_of(1),
                          .period = divisor_of((uint32_t)s->rows),
                          .q_len = s->rows,
                          .kv_len = s->columns,
                          .size = s->depth,
                          .v_size = s->depth,
                          .scale = 0.125F,
                          .exponent = 1.4426950F,
                          .growth = 5.5F,
                          .masks = {{.at = s->y}}};
}

// Of bytes, weights by columns; the sums are the output.
static assay_status_t give_split(assay_queue_t* q, int8_bulk_args_t* a, const sample_args_t* s) {
  const cuda_tiles_t x = {ASSAY_TYPE_INT8, s->depth, s->rows, s->depth, 128, 64, false};
  const cuda_tiles_t w = {ASSAY_TYPE_INT8, s->depth, s->columns, s->depth, 128, 32, false};
  *a = (int8_bulk_args_t){0};
  give_mma(&a->of.product, s);
  a->of.product.w_k = 1;
  a->of.product.w_column = s->depth;
  ASSAY_TRY(cuda_map_tiles(q, &x, s->x, &a->x));
  return cuda_map_tiles(q, &w, s->y, &a->w);
}

// {from, to, size, rows, columns} of move_args_t: to the other layout.
static void give_move(uint64_t* a, const sample_args_t* s) {
  a[0] = s->x;
  a[1] = s->z;
  a[2] = (uint64_t)s->rows * (uint64_t)s->columns;
  a[3] = (uint64_t)s->rows;
  a[4] = (uint64_t)s->columns;
}

static bool is_sample(const sample_t* s, int i) { return s->kernel == samples[i].kernel; }

static assay_status_t launch(platform_t* p, const sample_t* s, cuda_kernel_t k, uint32_t* z) {
  static uint32_t words[MAX_BYTES / 4];
  const size_t n = (size_t)(s->rows * s->columns), each = s->halves ? 2 : 4;
  const size_t n_x = s->depth ? (size_t)(s->rows * s->depth) : n;
  const size_t n_y = (size_t)(s->columns * s->depth) * (is_sample(s, PARTS) ? 2 : 1);
  union {
    sample_args_t sample;
    product_args_t mma;
    product_bulk_args_t bulk;
    attention_args_t attention;
    int8_bulk_args_t split;
    uint64_t move[5];
  } args;
  fill(words, sizeof words / 4, s->halves);
  const sample_args_t a = {.x = upload(p, words, n_x * each),
                           .y = n_y ? upload(p, words, n_y * each) : 0,
                           .z = upload(p, NULL, n * 4),
                           .rows = s->rows,
                           .columns = s->columns,
                           .depth = s->depth};
  if (is_sample(s, MMA) || is_sample(s, WGMMA))
    give_mma(&args.mma, &a);
  else if (is_sample(s, BULK) || is_sample(s, TURNS) || is_sample(s, CLUSTERS))
    ASSAY_TRY(give_bulk(p->queue, &args.bulk, &a, 128));
  else if (is_sample(s, NORMED))
    ASSAY_TRY(give_bulk(p->queue, &args.bulk, &a, 64));
  else if (is_sample(s, PARTS))
    ASSAY_TRY(give_parts(p->queue, &args.bulk, &a));
  else if (is_sample(s, ATTENTION))
    give_attention(&args.attention, &a);
  else if (is_sample(s, SPLIT_TERMS))
    ASSAY_TRY(give_split(p->queue, &args.split, &a));
  else if (is_sample(s, MOVE))
    give_move(args.move, &a);
  else
    args.sample = a;
  if (is_sample(s, COUNT)) ok(driver->fill(p->queue, a.z, 0, n * 4));
  ASSAY_TRY(cuda_queue_launch(p->queue, k, &s->grid, &args));
  return driver->download(p->queue, a.z, z, n * 4);
}

// Runs a text; *z is what comes out; message: what failed.
static bool run(const sample_t* s, const char* text, uint32_t* z, char* message, size_t bytes) {
  platform_t p;
  char* sample_header = read_sample("sample_args.h");
  char* whole = assay_malloc(MAX_BYTES);
  // Its header is not among the backend's.
  const char* rest = strstr(text, "#include \"sample_args.h\"");
  if (rest)
    snprintf(whole, MAX_BYTES, "%s%s", sample_header, rest + strlen("#include \"sample_args.h\""));
  else
    snprintf(whole, MAX_BYTES, "%s", text);
  platform_init(&p);
  fake->quiet = true;
  cuda_module_t m = load_text(&p, whole, s->options);
  assay_status_t st = launch(&p, s, get_kernel(&p, m, s->kernel, s->grid.shared_bytes), z);
  snprintf(message, bytes, "%s", st ? fake->message : "");
  const bool good = !st;
  assay_status_free(st);
  assay_free(sample_header);
  assay_free(whole);
  cuda_module_unload(p.device, m);
  platform_deinit(&p);
  return good;
}

static void seed(int n) {
  char text[16];
  snprintf(text, sizeof text, "%d", n);
  setenv("ASSAY_FAKE_SEED", text, 1);
}

static uint32_t right[sizeof samples / sizeof *samples][MAX_BYTES / 4];

static void kernels_are_right(void** state) {
  (void)state;
  static uint32_t z[MAX_BYTES / 4];
  for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
    const sample_t* s = &samples[i];
    char* text = read_sample(s->file);
    for (int n = 1; n <= SEEDS; n++) {
      char message[sizeof fake->message];
      seed(n);
      if (!run(s, text, n == 1 ? right[i] : z, message, sizeof message))
        fail_msg("%s, seed %d: %s", s->file, n, message);
      if (n > 1) assert_memory_equal(z, right[i], (size_t)(s->rows * s->columns) * 4);
    }
    assay_free(text);
  }
}

// Tiles counted down the rows first.
static void other_orders_are_right(void** state) {
  (void)state;
  static uint32_t z[MAX_BYTES / 4];
  sample_t s = samples[TURNS];
  char options[512], message[sizeof fake->message];
  char* text = read_sample(s.file);
  snprintf(options, sizeof options, "%s -DDOWN_FIRST=1", s.options);
  s.options = options;
  if (!run(&s, text, z, message, sizeof message)) fail_msg("%s: %s", s.file, message);
  assert_memory_equal(z, right[TURNS], (size_t)(s.rows * s.columns) * 4);
  assay_free(text);
}

// What comes out, against sums in float64: fragments and matrices lie where PTX says. Tensor cores
// cut, so that 96 terms may be off by 96 of the last bits.
static void products_are_right(void** state) {
  (void)state;
  static uint32_t words[MAX_BYTES / 4];
  const sample_t* s = &samples[PRODUCT];
  const uint16_t *x = (const uint16_t*)words, *y = x;
  fill(words, sizeof words / 4, true);
  for (int i = 0; i < s->rows; i++)
    for (int j = 0; j < s->columns; j++) {
      double sum = 0, size = 0;
      float got;
      for (int k = 0; k < s->depth; k++) {
        const uint16_t u = x[i * s->depth + k], v = y[k * s->columns + j];
        const double term = (1 + (u & 0x3ff) / 1024.0) * (1 + (v & 0x3ff) / 1024.0);
        sum += (u ^ v) & 0x8000 ? -term : term;
        size += term;
      }
      memcpy(&got, &right[PRODUCT][i * s->columns + j], sizeof got);
      if (!(fabs((double)got - sum) <= 96 * size * 0x1p-24))
        fail_msg("(%d, %d): %g, not %g", i, j, (double)got, sum);
    }
}

// ---- faults -------------------------------------------------------------------------------------

typedef struct fault {
  int sample;
  const char *what, *from, *to;
  int n;             // which of the places
  const char* says;  // NULL: the result is another
} fault_t;

static const fault_t faults[] = {
    {NORM, "no barrier", "SYNC();", "", 0, "a race"},
    {NORM, "a barrier for some", "SYNC();", "if (THREAD < 64) SYNC();", 0, ""},
    {NORM, "threads leave before a barrier", "SYNC();", "if (THREAD >= 200) return;\nSYNC();", 0,
     "has ended"},
    {NORM, "half of the lanes summed", "m = 16", "m = 8", 0, NULL},
    {NORM, "a shuffle under divergence", "sum += shuffle", "if (LANE < 16) sum += shuffle", 0,
     "diverge"},
    {NORM, "two lanes write", "LANE == 0", "LANE <= 1", 0, "a race"},
    {NORM, "past the end of shared memory",
     "parts[1][THREAD / WARP] =", "parts[1][THREAD / WARP + 1] =", 0, ""},
    {NORM, "past the end of a row, read", "i < a.columns", "i <= a.columns", 0,
     "out of all memory"},
    {NORM, "past the end of a row, written", "i < a.columns", "i <= a.columns", 1, ""},
    {NORM, "an index wrong by one", "z[i] =", "z[i + 1] =", 0, ""},
    {NORM, "inputs are not waited for", "WAIT_FOR_INPUTS();", "", 0, "WAIT_FOR_INPUTS"},
    {NORM, "written before inputs are waited for", "WAIT_FOR_INPUTS();",
     "z[THREAD] = 0; WAIT_FOR_INPUTS();", 0, "WAIT_FOR_INPUTS"},
    {NORM, "its parts are of no warp", "parts[0][w]", "parts[0][w + 1]", 0, ""},
    {TURN, "no barrier", "SYNC();", "", 0, "a race"},
    {TURN, "a warp's barrier for a block's", "SYNC();", "SYNC_WARP();", 0, "a race"},
    {TURN, "columns are not bounded", "left + LANE < a.columns", "left < a.columns", 0, ""},
    {TURN, "rows are not bounded", "top + LANE < a.rows", "top < a.rows", 0, ""},
    {TURN, "read one line off", "tile[LANE][i]", "tile[LANE + 1][i]", 0, ""},
    {TURN, "blocks overlap", "(BLOCK / across) * 32", "(BLOCK / across) * 31", 0, "a race"},
    {COUNT, "no atomic", "atomic_add_u32(&counts[bits_of(x[i]) >> 16 & 63], 1)",
     "counts[bits_of(x[i]) >> 16 & 63] += 1", 0, "a race"},
    {COUNT, "no atomic between blocks", "atomic_add_u32(&z[i], counts[i])", "z[i] += counts[i]", 0,
     "a race"},
    {COUNT, "counts that are not zero at first", "i < 64", "i < 60", 0, NULL},
    {COUNT, "no barrier before counting", "SYNC();", "", 0, "a race"},
    {COUNT, "no barrier after counting", "SYNC();", "", 1, "a race"},
    {COUNT, "one count too many", "& 63]", "& 64]", 0, ""},
    {PRODUCT, "a wait too few", "WAIT_COPIES(1)", "WAIT_COPIES(2)", 0, ""},
    {PRODUCT, "no wait", "WAIT_COPIES(1);", "", 0, ""},
    {PRODUCT, "no commit", "COMMIT_COPIES();", "", 1, ""},
    {PRODUCT, "no barrier behind the wait", "SYNC();", "", 0, "a race"},
    {PRODUCT, "no barrier before the next copy", "SYNC();", "", 1, "a race"},
    {PRODUCT, "one buffer", "(step + 1) % 2 * 64", "0 * 64", 0, ""},
    {PRODUCT, "lanes of a fragment turned", "LANE / 4 + r", "LANE % 4 + r", 0, ""},
    {PRODUCT, "rows of a fragment", "r / 2 * 8", "r % 2 * 8", 0, ""},
    {PRODUCT, "matrices that are not transposed", "load_matrices_transposed(v", "load_matrices(v",
     0, NULL},
    {PRODUCT, "rows of matrices", "(down + LANE % 16)", "(down + LANE % 8)", 0, NULL},
    {PRODUCT, "off a multiple of 16 bytes", "#define PITCH 40", "#define PITCH 36", 0, "16"},
    {PRODUCT, "rows of x are not bounded", "top + row < a->rows", "true", 0, ""},
    {PRODUCT, "rows of z are not bounded", "row < a.rows", "row >= 0", 0, "out of all memory"},
    {MOVE, "one element too many", "i < a.size", "i <= a.size", 0, "out of all memory"},
    {MOVE, "elements twice", "i += BLOCKS * THREADS", "i += THREADS", 0, "a race"},
    {MOVE, "another order", "at % a->columns * a->rows", "at / a->columns * a->rows", 0, ""},
    {MMA, "a wait too few", "WAIT_COPIES(STAGES - 2)", "WAIT_COPIES(STAGES - 1)", 0, ""},
    {MMA, "no barrier behind the wait", "WAIT_COPIES(STAGES - 2);\n    SYNC();",
     "WAIT_COPIES(STAGES - 2);", 0, "a race"},
    {MMA, "the same tile twice", "x_tiles + now * BM * BK", "x_tiles", 0, ""},
    {MMA, "a step too late", "int now = 0,", "int now = 1,", 0, ""},
    {MMA, "half a step further", "l->from[i] += BK;", "l->from[i] += BK / 2;", 0, ""},
    {MMA, "columns of a fragment", "2 * (LANE % 4)", "2 * (LANE / 8)", 0, ""},
    {BULK, "barriers that the copy engine does not see", "BARRIERS_MADE();", "", 0,
     "BARRIERS_MADE"},
    {BULK, "barriers that others do not see", "BLOCKS_BEGIN();\n  LAUNCH_NEXT();", "LAUNCH_NEXT();",
     0, ""},
    {BULK, "tiles are not waited for",
     "barrier_wait(s->full + turn->stage * BARRIER, turn->parity);", "", 0, ""},
    {BULK, "the phase before is waited for", "turn->stage * BARRIER, turn->parity)",
     "turn->stage * BARRIER, turn->parity ^ 1)", 0, ""},
    {BULK, "tiles are asked for where others are read",
     "barrier_wait(s->empty + t->stage * BARRIER, t->parity ^ 1);", "", 0, ""},
    {BULK, "a stage is given back while it is read", "release(before)",
     "release(before ? s->empty + turn->stage * BARRIER : before)", 0, ""},
    {BULK, "stages are never given back", "if (i) release", "if (i > 1000) release", 0,
     "nobody ends"},
    {BULK, "a warp too many is waited for", "READERS * SHARERS);", "READERS * SHARERS + 1);", 0,
     "nobody ends"},
    {BULK, "one of those that ask is not waited for", "* BARRIER, 2);", "* BARRIER, 1);", 0, ""},
    {BULK, "half of the left side's bytes are expected", "(BM * STEP_BYTES)",
     "(BM * STEP_BYTES / 2)", 0, ""},
    {BULK, "half of the weights' bytes are expected", "(W_PARTS * BN * STEP_BYTES)",
     "(BN * STEP_BYTES / 2)", 0, ""},
    {BULK, "those that multiply do not wait", "WAIT_FOR_INPUTS();\n  if (has_list", "if (has_list",
     0, "WAIT_FOR_INPUTS"},
    {BULK, "the same step of rows", "to, x, (first + i) * BK,", "to, x, first,", 0, ""},
    {BULK, "the same columns of weights", "(int)t->column + c % BN", "(int)t->column", 0, ""},
    {BULK, "stages go on past the last", "last ? 0 : t->stage + 1", "t->stage + 1", 0, ""},
    {BULK, "sums of the last step are not waited for", "WGMMA_WAIT(0);", "WGMMA_WAIT(1);", 0, ""},
    {BULK, "sums are put where a tile is read", "SYNC();  // no tile", "// no tile", 0, ""},
    {PARTS, "sums of a unit are not waited for", "WGMMA_WAIT(0);\n  hold_sums", "hold_sums", 0, ""},
    {PARTS, "a step is taken before it is there",
     "barrier_wait(s->full + turn.stage * BARRIER, turn.parity);", "", 0, ""},
    {PARTS, "the first step is taken before it is there", "barrier_wait(s->full, 0);", "", 0, ""},
    {PARTS, "a stage is given back while it is multiplied", "next_turn(&turn);",
     "next_turn(&turn);\n    release(empty);", 0, ""},
    {PARTS, "stages are never given back", "release(empty);", "(void)empty;", 0, "nobody ends"},
    {PARTS, "the first half of a step twice", "place, 1, &second", "place, 0, &second", 0, ""},
    {PARTS, "registers are taken while they are multiplied", "place, 1, &second",
     "place, 1, &first", 0, ""},
    {PARTS, "the weights' larger parts twice", "BN * STEP_BYTES + s * SLICE", "s * SLICE", 0, ""},
    {PARTS, "pieces lie where they would without turns", "(row & 7) * 4", "0", 0, ""},
    {PARTS, "a unit goes on with the sums before it", "further(w, s * SLICE), s);",
     "further(w, s * SLICE), 1);", 0, ""},
    {PARTS, "registers are not fenced", "WGMMA_FENCE();", "", 1, "WGMMA_FENCE"},
    {TURNS, "a group begins before the other one has seen its steps",
     "if (i) barrier_wait(begin_of(s, group), (int)((i - 1) / GROUPS % 2));", "", 0, ""},
    {TURNS, "a group waits for the turn before", "(i - 1) / GROUPS % 2", "(i + 1) / GROUPS % 2", 0,
     ""},
    {TURNS, "the other group is never told", "barrier_arrive(begin_of(s, 1 - group))",
     "barrier_arrive(begin_of(s, group))", 0, ""},
    {TURNS, "memory of a tile's last step is never given back", "release(last);", "(void)last;", 0,
     "nobody ends"},
    {TURNS, "memory of a tile's last step is given back too early", "begin_of(s, 1 - group));",
     "begin_of(s, 1 - group)), barrier_arrive(last);", 0, ""},
    {TURNS, "a group begins at the first stage", "turn_of(i * (uint32_t)steps)", "turn_of(0)", 0,
     ""},
    {TURNS, "sums are read before all have put theirs", "MEET_BEFORE() SYNC_GROUP(GROUP)",
     "MEET_BEFORE()", 0, "a race"},
    {TURNS, "sums are put while others read", "FINISH_SYNC() SYNC_GROUP(GROUP)", "FINISH_SYNC()", 0,
     "a race"},
    {TURNS, "a warp's barrier for a group's", "SYNC_GROUP(GROUP)", "SYNC_WARP()", 0, "a race"},
    {TURNS, "a block's barrier for a group's", "SYNC_GROUP(GROUP)", "SYNC()", 0, ""},
    {TURNS, "both groups have the same sums", "memory + group * GROUP_BYTES", "memory", 0,
     "a race"},
    {TURNS, "a barrier of half a group", "SYNC_GROUP(GROUP)", "SYNC_GROUP(128)", 0, ""},
    {TURNS, "the upper rows of a tile twice", "begin_products(s, (uint32_t)row,",
     "begin_products(s, 0,", 0, NULL},
    {TURNS, "half of a group's warps release a stage", "#define READERS (GROUP / WARP)",
     "#define READERS (GROUP / WARP / 2)", 0, ""},
    {TURNS, "groups have the same tiles", "at = turns.first + group * turns.step",
     "at = turns.first", 0, ""},
    {TURNS, "weights of the first tile for all", "find_turn(&a->product, at);\n    ask_for_weights",
     "find_turn(&a->product, 0);\n    ask_for_weights", 0, NULL},
    {TURNS, "rows of the first tile for all", "tile_t t = find_turn(&a->product, at);\n#if",
     "tile_t t = find_turn(&a->product, 0);\n#if", 0, NULL},
    {TURNS, "the first columns of a tile twice", "sums + (BN - FINISH_COLUMNS) / 2", "sums", 0,
     NULL},
    {TURNS, "all columns of a tile are the first ones", "t.column += FINISH_COLUMNS;", "", 0, NULL},
    {SHARED_TURNS, "a block ends while the other one reads",
     "wait_for_readers(&s, count_steps(&a.product, steps));", "{}", 0, ""},
    {SHARED_TURNS, "it waits for the last tile's steps alone", "* (uint32_t)steps : 0;",
     "* 0 + (uint32_t)steps : 0;", 0, ""},
    {SHARED_TURNS, "both blocks have the same rows", "t.row += CLUSTER_RANK * BM;", "", 0, ""},
    {SHARED_TURNS, "blocks that share take other tiles", "(uint32_t)BLOCK / SHARING,",
     "(uint32_t)BLOCK,", 0, ""},
    {SHARED_TURNS, "a block's tiles overlap with the next pair's", "rows = SHARING * BM;",
     "rows = BM;", 0, ""},
    {CLUSTERS, "blocks begin before both have their barriers", "SYNC_CLUSTER();", "SYNC();", 0,
     "SYNC_CLUSTER"},
    {CLUSTERS, "barriers that the engine does not see", "BARRIERS_MADE();", "", 0, "BARRIERS_MADE"},
    {CLUSTERS, "a block ends while the other one reads", "wait_for_readers(&s, (uint32_t)steps);",
     "{}", 0, ""},
    {CLUSTERS, "a block ends behind the turn before", "% 2) ^ 1);\n}", "% 2));\n}", 0, ""},
    {CLUSTERS, "memory of the last step is never given back", "release(last);", "(void)last;", 0,
     "nobody ends"},
    {CLUSTERS, "stages of the first block alone are given back", "LANE < SHARERS", "LANE < 1", 0,
     "nobody ends"},
    {CLUSTERS, "stages of the second block alone are given back", "LANE < SHARERS", "LANE == 1", 0,
     "nobody ends"},
    {CLUSTERS, "the other block's stages are not given back",
     "barrier_arrive_in(empty, (uint32_t)LANE)", "barrier_arrive_in(empty, CLUSTER_RANK)", 0, ""},
    {CLUSTERS, "the other block's readers are not waited for", "READERS * SHARERS", "READERS", 0,
     ""},
    {CLUSTERS, "a block asks for no weights", "% SHARING == 0", "% SHARING == 0 && CLUSTER_RANK", 0,
     "nobody ends"},
    {CLUSTERS, "both blocks ask for all weights", "% SHARING == 0", "% SHARING < 2", 0, ""},
    {CLUSTERS, "both blocks ask for the same half", "(part + step) + CLUSTER_RANK", "(part + step)",
     0, ""},
    {CLUSTERS, "a block keeps its half", "(1u << SHARING) - 1", "1u << CLUSTER_RANK", 0,
     "nobody ends"},
    {CLUSTERS, "a block gives its half away", "(1u << SHARING) - 1", "2u >> CLUSTER_RANK", 0,
     "nobody ends"},
    {CLUSTERS, "a third block", "(1u << SHARING) - 1", "(2u << SHARING) - 1", 0,
     "of a cluster of 2"},
    {CLUSTERS, "half of the weights' bytes are expected", "turn, W_BYTES)", "turn, W_BYTES / 2)", 0,
     ""},
    {CLUSTERS, "both blocks have the same rows", "t.row += CLUSTER_RANK * BM", "t.row += 0", 0,
     "a race"},
    {CLUSTERS, "pairs have the same rows", "SHARING * BM, BN", "BM, BN", 0, ""},
    {CLUSTERS, "sums are put where a tile is read", "SYNC();  // no tile", "// no tile", 0, ""},
    {NORMED, "rows are read before all have stored theirs", "  SYNC_ROWS();", "  SYNC();", 0, ""},
    {NORMED, "blocks wait for each other, and not for what they store",
     "SYNC_ROWS SYNC_CLUSTER_MEMORY", "SYNC_ROWS SYNC_CLUSTER", 0, "a race"},
    {NORMED, "all blocks have the first one's rows", "* CLUSTER + RANK", "* CLUSTER", 0, "a race"},
    {NORMED, "warps have rows that others have", "WARPS * CLUSTER)", "WARPS)", 0, "a race"},
    {NORMED, "rows behind the last one", "(left < BM ? left : BM)", "(left < 0 ? left : BM)", 0,
     ""},
    {NORMED, "blocks begin before all have their barriers", "BLOCKS_BEGIN();", "SYNC();", 0,
     "SYNC_CLUSTER"},
    {NORMED, "a block asks for the same rows", "CLUSTER_RANK * X_PART", "0", 0, ""},
    {NORMED, "a block keeps its rows", "(1u << X_SHARING) - 1", "1u << CLUSTER_RANK", 0,
     "nobody ends"},
    {NORMED, "other blocks' readers are not waited for", "READERS * SHARERS", "READERS", 0, ""},
    {NORMED, "other blocks' stages are not given back", "LANE < SHARERS", "LANE < 1", 0,
     "nobody ends"},
    {SPLIT_TERMS, "sums are read before other blocks have put them", "SYNC_SUMS();", "SYNC();", 0,
     "SYNC_CLUSTER_MEMORY"},
    {SPLIT_TERMS, "a barrier of the cluster that orders no memory",
     "#define SYNC_SUMS SYNC_CLUSTER_MEMORY", "#define SYNC_SUMS SYNC_CLUSTER", 0,
     "SYNC_CLUSTER_MEMORY"},
    {SPLIT_TERMS, "a block ends while others read its sums", "SYNC_CLUSTER_MEMORY();  // others",
     "// others", 0, "has ended"},
    {SPLIT_TERMS, "all blocks begin at the first step", "find_first_step(a, CLUSTER_RANK)\n", "0\n",
     0, NULL},
    {SPLIT_TERMS, "blocks of a cluster have tiles of their own", "(uint32_t)BLOCK / SPLIT",
     "(uint32_t)BLOCK", 0, ""},
    {SPLIT_TERMS, "the last step is nobody's", "find_first_step(a, CLUSTER_RANK + 1) - FIRST",
     "find_first_step(a, CLUSTER_RANK + 1) - (CLUSTER_RANK == 3) - FIRST", 0, NULL},
    {WGMMA, "a wait for copies too few", "WAIT_COPIES(STAGES - 3)", "WAIT_COPIES(STAGES - 2)", 0,
     ""},
    {WGMMA, "no fence behind copies", "FENCE_ASYNC();", "", 0, "FENCE_ASYNC"},
    {WGMMA, "the fence before copies arrive", "WAIT_COPIES(STAGES - 3);\n    FENCE_ASYNC();",
     "FENCE_ASYNC();\n    WAIT_COPIES(STAGES - 3);", 0, "FENCE_ASYNC"},
    {WGMMA, "no barrier behind the wait", "FENCE_ASYNC();\n    SYNC();", "FENCE_ASYNC();", 0, ""},
    {WGMMA, "registers are not fenced", "WGMMA_FENCE();", "", 0, "WGMMA_FENCE"},
    {WGMMA, "products of one step are never committed", "WGMMA_COMMIT();",
     "if (k0) WGMMA_COMMIT();", 0, ""},
    {WGMMA, "sums are not waited for", "WGMMA_WAIT(0);", "", 0, ""},
    {WGMMA, "sums of the last step are not waited for", "WGMMA_WAIT(0);", "WGMMA_WAIT(1);", 0, ""},
    {WGMMA, "sums are touched before they are there", "WGMMA_WAIT(1);",
     "sums[0] += 0; WGMMA_WAIT(1);", 0, "touched"},
    {WGMMA, "memory that is multiplied yet is written", "WGMMA_WAIT(1);", "WGMMA_WAIT(2);", 0, ""},
    {WGMMA, "copies into the step that is multiplied", "to = STAGES - 2;", "to = STAGES;", 0, ""},
    {WGMMA, "a step too far ahead", "s < STAGES - 2", "s < STAGES - 1", 0, ""},
    {WGMMA, "half of the threads multiply", "multiply(sums, further",
     "if (group) multiply(sums, further", 0, ""},
    {WGMMA, "warps of a group ask for other products", "THREAD / 128, 0)", "THREAD / 64, 0)", 0,
     ""},
    {WGMMA, "patterns begin off their multiples", "% ALIGNED) % ALIGNED / 2", "% 128) % 128 / 2", 0,
     ""},
    {WGMMA, "pieces of the left side in order", "row * BK + (piece ^ (row & 7))",
     "row * BK + piece", 0, NULL},
    {WGMMA, "pieces of weights in order", "(in_line ^ turn)", "(in_line + 0 * turn)", 0, NULL},
    {WGMMA, "pieces of short lines turned as long ones", "row >> 1 & 3", "row & 3", 0, NULL},
    {WGMMA, "steps across and down exchanged", "BK * LINE * 2, 8 * LINE * 2",
     "8 * LINE * 2, BK * LINE * 2", 0, ""},
    {WGMMA, "steps down of half as much", "16, 1024", "16, 512", 0, NULL},
    {WGMMA, "the next terms too near", "#define X_NEXT 32", "#define X_NEXT 16", 0, NULL},
    {WGMMA, "rows of weights for columns", "#define W_TURNED 1", "#define W_TURNED 0", 0, ""},
    {WGMMA, "columns of sums", "LANE % 4 * 2", "LANE / 8 * 2", 0, ""},
    {ATTENTION, "copies are not waited for", "WAIT_COPIES(0);", "WAIT_COPIES(1);", 0, ""},
    {ATTENTION, "no fence behind copies", "FENCE_ASYNC();", "", 1, "FENCE_ASYNC"},
    {ATTENTION, "no barrier behind the wait", "FENCE_ASYNC();\n    SYNC();", "FENCE_ASYNC();", 0,
     ""},
    {ATTENTION, "registers are not fenced", "WGMMA_FENCE();", "", 1, "WGMMA_FENCE"},
    {ATTENTION, "scores are not waited for", "WGMMA_WAIT(0);", "", 0, ""},
    {ATTENTION, "values are not waited for in the end", "WGMMA_WAIT(0);", "", 2, ""},
    {ATTENTION, "values into those that are multiplied", "s->v + (1 - now)", "s->v + now", 0, ""},
    {ATTENTION, "keys into those that are multiplied", "s->k + now", "s->k + (1 - now)", 0, ""},
    {ATTENTION, "the mask of another block", "(&t, s->masks + now", "(&t, s->masks + (1 - now)", 0,
     ""},
    {ATTENTION, "words of weights in another order", "s[2 * j + i / 2]", "s[2 * j + i % 2]", 0,
     NULL},
    {ATTENTION, "pieces of rows in order", "(piece % 8 ^ row % 8)", "piece % 8", 0, NULL},
    {ATTENTION, "pieces of values in order", "(in_line ^ turn)", "(in_line + 0 * turn)", 0, NULL},
    {ATTENTION, "the next terms too near", "i % 4 * 32", "i % 4 * 16", 0, NULL},
    {ATTENTION, "the next keys' values too near", "j * 16 * V_LINE * 2", "j * 8 * V_LINE * 2", 0,
     NULL},
};

// "": either. What the message says may depend on the seed.
static bool is_found(const fault_t* f, const char* text) {
  static uint32_t z[MAX_BYTES / 4];
  const sample_t* s = &samples[f->sample];
  char message[sizeof fake->message] = "";
  for (int n = 1; n <= SEEDS; n++) {
    seed(n);
    const bool good = run(s, text, z, message, sizeof message);
    const bool same = memcmp(z, right[f->sample], (size_t)(s->rows * s->columns) * 4) == 0;
    if (!good && f->says && strstr(message, f->says)) return true;
    if (good && !same && (!f->says || !*f->says)) return true;
    if (!good && !f->says) print_message("%s: '%s' is found as: %s\n", s->file, f->what, message);
  }
  print_message("%s: '%s' says '%s'\n", s->file, f->what, message);
  return false;
}

static void faults_are_found(void** state) {
  (void)state;
  int n = 0, missed = 0;
  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++, n++) {
    const fault_t* f = &faults[i];
    char* text = read_sample(samples[f->sample].file);
    char* wrong = replaced(text, f->from, f->to, f->n);
    if (!is_found(f, wrong)) {
      print_message("%s: not found: %s\n", samples[f->sample].file, f->what);
      missed++;
    }
    assay_free(text);
    assay_free(wrong);
  }
  print_message("%d faults, %d not found\n", n, missed);
  assert_int_equal(missed, 0);
}

int main(void) {
  find_platform();
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_are_right), cmocka_unit_test(other_orders_are_right),
      cmocka_unit_test(products_are_right), cmocka_unit_test(faults_are_found)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
