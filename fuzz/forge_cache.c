// Forges timing caches: lines of "MICROSECONDS TACTIC LAYER" below two that say what they are for.
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "exec/backend.h"
#include "forge.h"
#include "wire.h"

enum { MAX_LINES = 4096 };

typedef struct line {
  const char* at;
  size_t n;
} line_t;

typedef struct lines {
  line_t at[MAX_LINES];
  size_t n;
} lines_t;

static void cut(const forged_t* f, lines_t* out) {
  const char *at = (const char*)f->at, *end = at + f->n;
  out->n = 0;
  while (at < end && out->n < MAX_LINES) {
    const char* next = memchr(at, '\n', (size_t)(end - at));
    out->at[out->n++] = (line_t){at, (size_t)((next ? next : end) - at)};
    at = next ? next + 1 : end;
  }
}

static const char* any_time(void) {
  static const char* const times[] = {"0",     "-0",      "nan",   "inf",     "-1",     "1e308",
                                      "1e999", "0x1p-40", "1e-99", "1.5e",    "",       " ",
                                      "1",     "4e-320",  "+7",    "0000001", "1000000"};
  return times[wire_draw(sizeof times / sizeof *times)];
}

// A line with another time, tactic or layer.
static void print_changed(const line_t* l, const line_t* other, assay_str_t* out) {
  const char *space = memchr(l->at, ' ', l->n), *theirs = memchr(other->at, ' ', other->n);
  if (!space || !theirs) {
    assay_str_append_n(out, other->at, other->n);
    return;
  }
  const size_t time = (size_t)(space - l->at), rest = l->n - time;
  const char *layer = memchr(space + 1, ' ', rest - 1), *end;
  switch (wire_draw(6)) {
    case 0:
    case 1:
      assay_str_append(out, any_time());
      assay_str_append_n(out, space, rest);
      break;
    case 2:  // the other's tactic
      assay_str_append_n(out, l->at, time);
      end = memchr(theirs + 1, ' ', (size_t)(other->at + other->n - theirs) - 1);
      assay_str_append_n(out, theirs, (size_t)((end ? end : other->at + other->n) - theirs));
      if (layer) assay_str_append_n(out, layer, (size_t)(l->at + l->n - layer));
      break;
    case 3:
      assay_str_append_n(out, l->at, (size_t)wire_draw(l->n + 1));
      break;
    case 4:
      assay_str_append_n(out, l->at, l->n);
      assay_str_append_n(out, "\0x\xff\x1b[31m", 8);
      break;
    default:
      assay_str_append_n(out, l->at, time);
      for (uint64_t n = wire_draw(3000); n--;) assay_str_append(out, " x");
  }
}

static void print_machine(assay_str_t* out) {
  const assay_backend_t* b = assay_backend_find("cpu");
  if (b && b->describe) b->describe(out);
}

void forge_cache(forged_t* f, uint64_t seed) {
  static lines_t lines;
  assay_str_t out = {0};
  wire_seed(seed);
  cut(f, &lines);
  const size_t changed = (size_t)wire_draw(lines.n), doubled = (size_t)wire_draw(lines.n);
  const size_t gone = (size_t)wire_draw(4 * lines.n + 1);
  for (size_t i = 0; i < lines.n; i++) {
    const line_t* l = &lines.at[i];
    const bool own = wire_draw(20) == 0 && i != 1;
    if (i == gone) continue;
    if (i == 1 && wire_draw(16))
      print_machine(&out);
    else if (own || (i == changed && i > 1))
      print_changed(l, &lines.at[wire_draw(lines.n)], &out);
    else
      assay_str_append_n(&out, l->at, l->n);
    assay_str_append(&out, wire_draw(64) ? "\n" : "\r\n");
    if (i == doubled) assay_str_append_n(&out, l->at, l->n), assay_str_append(&out, "\n");
  }
  if (wire_draw(16) == 0) out.len = (size_t)wire_draw(out.len + 1);
  free(f->at);
  f->n = out.len;
  f->at = malloc(f->n + 1);
  if (!f->at) abort();
  if (f->n) memcpy(f->at, out.text, f->n);
  assay_str_deinit(&out);
}
