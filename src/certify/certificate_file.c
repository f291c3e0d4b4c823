// The file: magic and version of the form, checksum, then numbers of variable length (LEB128),
// texts with their lengths in front, and the values. Nothing in it is trusted: sizes are held
// against the bytes that are left before anything is allocated by them.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/hash.h"
#include "certify/certificate.h"

static const char magic[4] = {'A', 'S', 'C', 'T'};
// More values than any model has: a stride says of how many they are few.
enum { MAX_VALUES = 1 << 20 };
enum { FORM_VERSION = 1, AT_CHECKSUM = 5, HEADER = AT_CHECKSUM + 8 };

void assay_certificate_deinit(assay_certificate_t* c) {
  char* texts[] = {c->version, c->precision, c->rules, c->shapes, c->fp32, c->target};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assay_free(texts[i]);
  assay_free(c->values);
  for (size_t i = 0; i < c->n_decisions; i++) assay_free(c->decisions[i].grades);
  assay_free(c->decisions);
  assay_str_deinit(&c->file);
  assay_str_deinit(&c->path);
  assay_model_release(c->subject);
  *c = (assay_certificate_t){0};
}

bool assay_certificate_keeps(const assay_certificate_t* c, size_t i) {
  return c->form.stride && i < c->n_values && (c->n_values - 1 - i) % c->form.stride == 0;
}

void assay_certificate_seal(void* data, size_t size) {
  if (size < HEADER) return;
  const uint64_t sum = assay_hash((const char*)data + HEADER, size - HEADER, FORM_VERSION);
  memcpy((char*)data + AT_CHECKSUM, &sum, sizeof sum);
}

// ---- writing ------------------------------------------------------------------------------------

static void put_bytes(assay_str_t* s, uint64_t x, int n) {
  for (int i = 0; i < n; i++) {
    const char byte = (char)(x >> (8 * i) & 0xff);
    assay_str_append_n(s, &byte, 1);
  }
}

static void put_number(assay_str_t* s, uint64_t x) {
  for (; x > 0x7f; x >>= 7) put_bytes(s, (x & 0x7f) | 0x80, 1);
  put_bytes(s, x, 1);
}

static void put_signed(assay_str_t* s, int64_t x) {
  put_number(s, x < 0 ? ~((uint64_t)x << 1) : (uint64_t)x << 1);
}

static void put_text(assay_str_t* s, const char* text) {
  const size_t n = text ? strlen(text) : 0;
  put_number(s, n);
  assay_str_append_n(s, text ? text : "", n);
}

static uint8_t flags_of(const assay_certificate_t* c) {
  return (uint8_t)(c->unquantized | c->fused << 1 | c->given << 2 | c->form.names << 3 |
                   c->form.bounds << 4);
}

static void put_head(const assay_certificate_t* c, assay_str_t* s) {
  put_text(s, c->version);
  put_text(s, c->precision);
  put_text(s, c->rules);
  put_text(s, c->shapes);
  put_text(s, c->fp32);
  put_text(s, c->target);
  put_bytes(s, flags_of(c), 1);
  put_number(s, c->seed);
  if (c->given) put_bytes(s, c->inputs, 8);
  put_bytes(s, c->model, 8);
  put_number(s, c->model_bytes);
  put_bytes(s, c->machine, 4);
  put_bytes(s, c->names, 4);
  put_number(s, c->n_values);
  put_bytes(s, c->form.sketches, 1);
  put_bytes(s, c->form.bits_bytes, 1);
  put_number(s, c->form.stride);
}

static void put_value(const assay_certificate_t* c, const assay_certified_value_t* v,
                      assay_str_t* s) {
  if (c->form.names) put_bytes(s, v->name, 2);
  put_bytes(s, v->step, 1);
  if (c->form.bounds) put_bytes(s, v->bound, 1);
  for (int j = 0; j < c->form.sketches; j++) put_signed(s, v->sketch[j]);
  put_bytes(s, v->bits, c->form.bits_bytes);
}

// What is odd is rare: a list, each with the number of values since the one before.
static void put_odd(const assay_certificate_t* c, assay_str_t* s) {
  size_t n = 0, last = 0;
  for (size_t i = 0; i < c->n_values; i++) n += c->values[i].odd != 0;
  put_number(s, n);
  for (size_t i = 0; i < c->n_values; i++) {
    if (!c->values[i].odd) continue;
    put_number(s, i - last);
    put_bytes(s, c->values[i].odd, 1);
    last = i;
  }
}

// Grades as runs: length * 4 + grade.
static void put_grades(const assay_decisions_t* d, assay_str_t* s) {
  for (size_t i = 0, end; i < d->n; i = end) {
    for (end = i + 1; end < d->n && d->grades[end] == d->grades[i];) end++;
    put_number(s, (uint64_t)(end - i) << 2 | d->grades[i]);
  }
}

static void put_decisions(const assay_certificate_t* c, assay_str_t* s) {
  put_number(s, c->n_decisions);
  for (size_t i = 0; i < c->n_decisions; i++) {
    const assay_decisions_t* d = &c->decisions[i];
    uint64_t threshold;
    memcpy(&threshold, &d->threshold, sizeof threshold);
    put_number(s, d->output);
    put_bytes(s, (uint64_t)d->kind | (uint64_t)(d->grades != NULL) << 1, 1);
    if (d->kind == ASSAY_DECISION_THRESHOLD) put_bytes(s, threshold, 8);
    put_number(s, d->n);
    put_bytes(s, d->choices, 4);
    if (d->grades) {
      put_grades(d, s);
      continue;
    }
    for (int g = 0; g < 3; g++) put_number(s, d->count[g]);
  }
}

static assay_status_t write_in(const assay_certificate_t* c, assay_str_t* s) {
  s->len = 0;
  assay_str_append_n(s, magic, sizeof magic);
  put_bytes(s, FORM_VERSION, 1);
  put_bytes(s, 0, 8);
  put_head(c, s);
  for (size_t i = 0; i < c->n_values; i++)
    if (assay_certificate_keeps(c, i)) put_value(c, &c->values[i], s);
  put_odd(c, s);
  put_decisions(c, s);
  ASSAY_TRY(assay_str_status(s));
  assay_certificate_seal(s->text, s->len);
  return NULL;
}

// From rich to poor; after the last one every second, fourth, ... value.
static const assay_certificate_form_t forms[] = {
    {.sketches = 4, .bits_bytes = 4, .names = true, .bounds = true, .stride = 1},
    {.sketches = 2, .bits_bytes = 4, .names = true, .bounds = true, .stride = 1},
    {.sketches = 2, .bits_bytes = 2, .names = true, .bounds = true, .stride = 1},
    {.sketches = 1, .bits_bytes = 2, .names = true, .bounds = true, .stride = 1},
    {.sketches = 1, .bits_bytes = 2, .names = false, .bounds = true, .stride = 1},
    {.sketches = 1, .bits_bytes = 2, .names = false, .bounds = false, .stride = 1},
    {.sketches = 1, .bits_bytes = 1, .names = false, .bounds = false, .stride = 1},
};

static bool next_form(assay_certificate_t* c, size_t* at) {
  enum { N_FORMS = sizeof forms / sizeof *forms };
  if (*at + 1 < N_FORMS) {
    c->form = forms[++*at];
    return true;
  }
  if (c->form.stride >= c->n_values) return false;
  c->form.stride *= 2;
  return true;
}

assay_status_t assay_certificate_encode(assay_certificate_t* c, size_t max, assay_str_t* out) {
  assay_str_t grades = {0};
  if (c->n_values > MAX_VALUES)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the model has %zu values, a certificate holds %d at most", c->n_values,
                       MAX_VALUES);
  for (size_t i = 0; i < c->n_decisions; i++)
    if (c->decisions[i].grades) put_grades(&c->decisions[i], &grades);
  assay_status_t st = assay_str_status(&grades);
  const bool leave_out = grades.len > max / 2;
  assay_str_deinit(&grades);
  if (st) return st;
  for (size_t i = 0; leave_out && i < c->n_decisions; i++) {
    assay_free(c->decisions[i].grades);
    c->decisions[i].grades = NULL;
  }
  size_t at = 0;
  c->form = forms[0];
  ASSAY_TRY(write_in(c, out));
  while (out->len > max && next_form(c, &at)) ASSAY_TRY(write_in(c, out));
  return NULL;
}

// ---- reading ------------------------------------------------------------------------------------

typedef struct reader {
  const uint8_t *at, *end;
  bool bad;
} reader_t;

static size_t left(const reader_t* r) { return (size_t)(r->end - r->at); }

static uint64_t get_bytes(reader_t* r, int n) {
  uint64_t x = 0;
  if (left(r) < (size_t)n) return r->bad = true, 0;
  for (int i = 0; i < n; i++) x |= (uint64_t)r->at[i] << (8 * i);
  r->at += n;
  return x;
}

static uint64_t get_number(reader_t* r) {
  uint64_t x = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const uint64_t byte = get_bytes(r, 1);
    if (shift == 63 && byte > 1) break;
    x |= (byte & 0x7f) << shift;
    if (!(byte & 0x80)) return x;
  }
  r->bad = true;
  return 0;
}

static int64_t get_signed(reader_t* r) {
  const uint64_t x = get_number(r);
  return x & 1 ? (int64_t) ~(x >> 1) : (int64_t)(x >> 1);
}

// A number of things of which each takes `min` bytes at least.
static size_t get_count(reader_t* r, size_t min) {
  const uint64_t n = get_number(r);
  if (n > left(r) / min) return r->bad = true, 0;
  return (size_t)n;
}

static assay_status_t get_text(reader_t* r, char** out) {
  const size_t n = get_count(r, 1);
  ASSAY_TRY(assay_new_array(n + 1, 1, out));
  if (n) memcpy(*out, r->at, n);
  r->at += n;
  r->bad |= memchr(*out, 0, n) != NULL;
  return NULL;
}

static assay_status_t get_head(reader_t* r, assay_certificate_t* c) {
  char** texts[] = {&c->version, &c->precision, &c->rules, &c->shapes, &c->fp32, &c->target};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) ASSAY_TRY(get_text(r, texts[i]));
  const uint64_t flags = get_bytes(r, 1);
  c->unquantized = flags & 1;
  c->fused = flags >> 1 & 1;
  c->given = flags >> 2 & 1;
  c->form.names = flags >> 3 & 1;
  c->form.bounds = flags >> 4 & 1;
  c->seed = get_number(r);
  if (c->given) c->inputs = get_bytes(r, 8);
  c->model = get_bytes(r, 8);
  c->model_bytes = get_number(r);
  c->machine = (uint32_t)get_bytes(r, 4);
  c->names = (uint32_t)get_bytes(r, 4);
  const uint64_t n = get_number(r);
  c->form.sketches = (uint8_t)get_bytes(r, 1);
  c->form.bits_bytes = (uint8_t)get_bytes(r, 1);
  const uint64_t stride = get_number(r);
  // Every value that is kept takes a byte at least; there are at most so many without one.
  const uint64_t per = stride ? (n + stride - 1) / stride : 0;
  r->bad |= flags >> 5 || !stride || stride > UINT32_MAX || n > MAX_VALUES || per > left(r) ||
            c->form.sketches > ASSAY_CERTIFICATE_SKETCHES || c->form.bits_bytes > 4 ||
            stride > 2 * n + 1;
  if (r->bad) return NULL;
  c->n_values = (size_t)n;
  c->form.stride = (uint32_t)stride;
  return NULL;
}

static void get_value(reader_t* r, const assay_certificate_form_t* f, assay_certified_value_t* v) {
  if (f->names) v->name = (uint16_t)get_bytes(r, 2);
  v->step = (uint8_t)get_bytes(r, 1);
  if (f->bounds) v->bound = (uint8_t)get_bytes(r, 1);
  for (int j = 0; j < f->sketches; j++) v->sketch[j] = get_signed(r);
  v->bits = (uint32_t)get_bytes(r, f->bits_bytes);
}

static void get_odd(reader_t* r, assay_certificate_t* c) {
  const size_t n = get_count(r, 2);
  uint64_t at = 0;
  for (size_t k = 0; !r->bad && k < n; k++) {
    const uint64_t step = get_number(r);
    const uint64_t odd = get_bytes(r, 1);
    if (step >= c->n_values || at + step >= c->n_values) r->bad = true;
    if (r->bad) return;
    at += step;
    c->values[at].odd = (uint8_t)odd;
  }
}

// Runs are short for what they stand for, so that their sum is held against a limit before anything
// is made of it.
static assay_status_t get_grades(reader_t* r, assay_decisions_t* d) {
  enum { MAX = 1 << 24 };
  if (d->n > MAX) r->bad = true;
  if (r->bad) return NULL;
  ASSAY_TRY(assay_new_array(d->n, 1, &d->grades));
  for (size_t i = 0; i < d->n;) {
    const uint64_t run = get_number(r), grade = run & 3, n = run >> 2;
    if (r->bad || !n || n > d->n - i || grade > ASSAY_GRADE_PROVEN) return r->bad = true, NULL;
    memset(d->grades + i, (int)grade, (size_t)n);
    d->count[grade] += (size_t)n;
    i += (size_t)n;
  }
  return NULL;
}

static assay_status_t get_decisions(reader_t* r, assay_certificate_t* c) {
  const size_t n = get_count(r, 7);
  if (r->bad) return NULL;
  ASSAY_TRY(assay_new_array(n, sizeof *c->decisions, &c->decisions));
  for (; !r->bad && c->n_decisions < n;) {
    assay_decisions_t* d = &c->decisions[c->n_decisions++];
    d->output = (uint32_t)get_number(r);
    const uint64_t kind = get_bytes(r, 1);
    d->kind = kind & 1 ? ASSAY_DECISION_THRESHOLD : ASSAY_DECISION_TOP1;
    const uint64_t threshold = d->kind == ASSAY_DECISION_THRESHOLD ? get_bytes(r, 8) : 0;
    memcpy(&d->threshold, &threshold, sizeof threshold);
    d->n = (size_t)get_number(r);
    d->choices = (uint32_t)get_bytes(r, 4);
    r->bad |= kind > 3;
    if (kind & 2) {
      ASSAY_TRY(get_grades(r, d));
      continue;
    }
    for (int g = 0; g < 3; g++) d->count[g] = (size_t)get_number(r);
  }
  return NULL;
}

static assay_status_t read_all(reader_t* r, assay_certificate_t* c) {
  ASSAY_TRY(get_head(r, c));
  if (r->bad) return NULL;
  ASSAY_TRY(assay_new_array(c->n_values, sizeof *c->values, &c->values));
  for (size_t i = 0; !r->bad && i < c->n_values; i++)
    if (assay_certificate_keeps(c, i)) get_value(r, &c->form, &c->values[i]);
  if (!r->bad) get_odd(r, c);
  return r->bad ? NULL : get_decisions(r, c);
}

assay_status_t assay_certificate_decode(const void* data, size_t size, assay_certificate_t* out) {
  const uint8_t* bytes = data;
  uint64_t sum;
  if (size < HEADER || memcmp(bytes, magic, sizeof magic) != 0)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "it is not a certificate: 'assay certify MODEL -o C' writes one");
  if (bytes[sizeof magic] != FORM_VERSION)
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "a certificate of form %d, this version reads form %d: make it anew",
                       bytes[sizeof magic], FORM_VERSION);
  memcpy(&sum, bytes + AT_CHECKSUM, sizeof sum);
  if (sum != assay_hash(bytes + HEADER, size - HEADER, FORM_VERSION))
    return ASSAY_ERROR(ASSAY_CORRUPT,
                       "the certificate is damaged or cut off: its checksum does not fit");
  reader_t r = {.at = bytes + HEADER, .end = bytes + size};
  assay_certificate_t c = {0};
  assay_status_t st = read_all(&r, &c);
  if (!st && (r.bad || r.at != r.end))
    st = ASSAY_ERROR(ASSAY_CORRUPT,
                     "the certificate contradicts itself at byte %zu of %zu: make it anew",
                     (size_t)(r.at - bytes), size);
  if (st) return assay_certificate_deinit(&c), st;
  *out = c;
  return NULL;
}
