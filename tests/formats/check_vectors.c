// Compares number formats, bit by bit, with what make_vectors.py wrote: check_vectors FOLDER.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/format.h"

enum { CHUNK = 1 << 16, SHOWN = 10 };

static int64_t checked, wrong;

static FILE* open_in(const char* folder, const char* name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* f = fopen(path, "rb");
  if (!f) {
    fprintf(stderr, "check_vectors: %s: %s\n", path, strerror(errno));
    exit(2);
  }
  return f;
}

static uint64_t bits_of(double x) {
  uint64_t b;
  memcpy(&b, &x, sizeof b);
  return b;
}

static void complain(const char* what, const char* where, double x, uint64_t got, uint64_t want) {
  if (wrong++ < SHOWN)
    printf("%s: %s: x = %a (%016" PRIx64 "): got %" PRIx64 ", expected %" PRIx64 "\n", where, what,
           x, bits_of(x), got, want);
}

// Same number; NaN against NaN whatever their bits, since the oracles' differ.
static bool same(double a, double b) { return bits_of(a) == bits_of(b) || (a != a && b != b); }

static void check_decode(const char* folder, const char* name, const char* file) {
  assay_format_t format = assay_format_parse(name);
  FILE* f = open_in(folder, file);
  double want;
  uint64_t pattern = 0;
  for (; fread(&want, sizeof want, 1, f) == 1; pattern++, checked++) {
    double got = assay_format_decode(format, pattern);
    if (!same(got, want)) complain("decode", name, (double)pattern, bits_of(got), bits_of(want));
    if (got != got) continue;
    uint64_t back = assay_format_encode(format, got, ASSAY_OVERFLOW_IEEE);
    if (back != pattern) complain("round trip", name, got, back, pattern);
    double r = assay_format_round(format, got, ASSAY_OVERFLOW_IEEE);
    if (!same(r, got)) complain("a value is not its own rounding", name, got, bits_of(r), pattern);
  }
  const assay_format_info_t* info = assay_format_info(format);
  if (pattern != UINT64_C(1) << info->bits) complain("patterns", file, 0, pattern, 0);
  fclose(f);
}

// One element out of packed ones, whatever their width.
static uint64_t packed_at(const unsigned char* packed, int64_t i, int bits) {
  uint64_t v = 0;
  for (int b = 0; b < bits; b++) {
    int64_t at = i * bits + b;
    v |= (uint64_t)(packed[at / 8] >> (at % 8) & 1) << b;
  }
  return v;
}

static void check_encode(const char* folder, const char* name, const char* overflow_name,
                         const char* inputs, const char* file, size_t width, int e8m0_mode) {
  static float in[CHUNK];
  static double x[CHUNK], rounded[CHUNK], back[CHUNK];
  static unsigned char want[2 * CHUNK], packed[8 * CHUNK];
  assay_format_t format = assay_format_parse(name);
  const assay_format_info_t* info = assay_format_info(format);
  assay_overflow_t overflow =
      strcmp(overflow_name, "ieee") ? ASSAY_OVERFLOW_SATURATE : ASSAY_OVERFLOW_IEEE;
  FILE *f = open_in(folder, inputs), *g = open_in(folder, file);
  size_t n;
  int64_t total = 0;
  while ((n = fread(in, sizeof *in, CHUNK, f)) > 0) {
    if (fread(want, width, n, g) != n) {
      complain("too short", file, 0, 0, 0);
      break;
    }
    for (size_t i = 0; i < n; i++) x[i] = (double)in[i];
    assay_format_round_n(format, x, rounded, n, overflow);
    bool packs = info->is_float && e8m0_mode == (int)ASSAY_E8M0_NEAREST;
    if (packs) {
      assay_pack(info->type, x, (int64_t)n, packed, overflow);
      assay_unpack(info->type, packed, 0, (int64_t)n, back);
    }
    for (size_t i = 0; i < n; i++) {
      uint64_t expected = 0, got;
      memcpy(&expected, want + i * width, width);
      if (e8m0_mode != (int)ASSAY_E8M0_NEAREST) {
        double r = assay_format_round_e8m0(x[i], (assay_e8m0_mode_t)e8m0_mode, overflow);
        got = assay_format_encode(format, r, overflow);
      } else {
        got = assay_format_encode(format, x[i], overflow);
      }
      if (got != expected) complain(overflow_name, file, x[i], got, expected);
      if (e8m0_mode != (int)ASSAY_E8M0_NEAREST) continue;
      double r = assay_format_round(format, x[i], overflow);
      double value = assay_format_decode(format, expected);
      bool no_nan = x[i] != x[i] && !info->has_nan && info->is_float;
      if (!same(r, value) && !(no_nan && r == 0))
        complain("round", file, x[i], bits_of(r), expected);
      if (bits_of(r) != bits_of(rounded[i]))
        complain("round_n", file, x[i], bits_of(rounded[i]), bits_of(r));
      if (!packs) continue;
      uint64_t p = packed_at(packed, (int64_t)i, info->bits);
      if (p != expected) complain("pack", file, x[i], p, expected);
      if (bits_of(back[i]) != bits_of(value))
        complain("unpack", file, x[i], bits_of(back[i]), bits_of(value));
    }
    total += (int64_t)n;
  }
  checked += total;
  fclose(f);
  fclose(g);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: check_vectors FOLDER\n");
    return 2;
  }
  FILE* manifest = open_in(argv[1], "manifest.txt");
  char line[1024], verb[16], a[64], b[64], inputs[256], file[256];
  size_t width;
  int lines = 0;
  while (fgets(line, sizeof line, manifest)) {
    lines++;
    if (sscanf(line, "decode %63s %255s", a, file) == 2) {
      check_decode(argv[1], a, file);
    } else if (sscanf(line, "%15s %63s %63s %255s %255s %zu", verb, a, b, inputs, file, &width) ==
               6) {
      bool e8m0 = strcmp(verb, "e8m0") == 0;
      int mode = !e8m0 || !strcmp(a, "nearest") ? (int)ASSAY_E8M0_NEAREST
                 : !strcmp(a, "up")             ? (int)ASSAY_E8M0_UP
                                                : (int)ASSAY_E8M0_DOWN;
      check_encode(argv[1], e8m0 ? "fp8e8m0" : a, b, inputs, file, width, mode);
    } else {
      fprintf(stderr, "check_vectors: manifest.txt:%d: not understood: %s", lines, line);
      return 2;
    }
  }
  fclose(manifest);
  printf("check_vectors: %" PRId64 " comparisons in %d files, %" PRId64 " wrong\n", checked, lines,
         wrong);
  return wrong || !lines ? 1 : 0;
}
