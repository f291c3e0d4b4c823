// Making, annotating and passing on errors.
#include "base/status.h"

#include <assay/version.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"
#include "base/shown.h"

struct assay_status {
  assay_code_t code;
  const char* file;
  int line;
  char* message;  // after the struct, in the same allocation
  size_t cause;   // bytes of the message's end that it was made with, before notes
};

// What remains when there is no memory left for a message of its own.
static char no_memory_message[] = "out of memory: free some, or use a smaller model or batch";
static struct assay_status no_memory = {ASSAY_NO_MEMORY, __FILE__, 0, no_memory_message,
                                        sizeof no_memory_message - 1};

static bool has_hidden(const char* text, size_t n) {
  bool hidden = false;
  for (size_t at = 0; at < n && !hidden;) at += assay_char_length(text + at, n - at, &hidden, NULL);
  return hidden;
}

// A copy of a status with its first n bytes as they are shown; tail: what stands after them.
static struct assay_status* show(const struct assay_status* s, size_t n, const char* tail) {
  enum { MAX = 4 };  // times as long: \xff
  const size_t behind = strlen(tail);
  if (n > (SIZE_MAX - sizeof *s - behind - 8) / MAX) return NULL;
  struct assay_status* copy = assay_malloc(sizeof *s + MAX * n + behind + 8);
  if (!copy) return NULL;
  *copy = *s;
  char* out = copy->message = (char*)(copy + 1);
  for (size_t at = 0; at < n; out += strlen(out))
    at += assay_char_shown(s->message + at, n - at, out);
  memcpy(out, tail, behind + 1);
  return copy;
}

static struct assay_status* make(const char* file, int line, assay_code_t code, const char* prefix,
                                 const char* format, va_list args) {
  va_list again;
  va_copy(again, args);
  int n = vsnprintf(NULL, 0, format, args);
  size_t head = prefix ? strlen(prefix) : 0;
  struct assay_status* s = n < 0 ? NULL : assay_malloc(sizeof *s + head + (size_t)n + 1);
  if (s) {
    s->code = code;
    s->file = file;
    s->line = line;
    s->message = (char*)(s + 1);
    vsnprintf(s->message, (size_t)n + 1, format, again);
    // Names come from files: one with a line break in it does not make two lines of the message.
    if (has_hidden(s->message, (size_t)n)) {
      struct assay_status* shown = show(s, (size_t)n, prefix ? prefix : "");
      assay_free(s);
      s = shown;
    } else if (head) {
      memcpy(s->message + n, prefix, head + 1);
    }
    if (s) s->cause = strlen(s->message);
  }
  va_end(again);
  return s ? s : &no_memory;
}

assay_status_t assay_status_make(const char* file, int line, assay_code_t code, const char* format,
                                 ...) {
  va_list args;
  va_start(args, format);
  assay_status_t s = make(file, line, code, NULL, format, args);
  va_end(args);
  return s;
}

assay_status_t assay_status_no_memory(void) {
  size_t bytes;
  int64_t available;
  if (!assay_alloc_refused(&bytes, &available)) return &no_memory;
  return ASSAY_ERROR(
      ASSAY_NO_MEMORY,
      "out of memory: %s more are needed, %s can be had; use a smaller model or batch, "
      "or raise the memory limit",
      ASSAY_BYTES_TEXT(bytes), ASSAY_BYTES_TEXT((uint64_t)available));
}

assay_status_t assay_status_note(assay_status_t status, const char* format, ...) {
  if (!status || status == &no_memory) return status;
  size_t n = strlen(status->message);
  char* tail = assay_malloc(n + 3);
  if (!tail) return status;
  memcpy(tail, ": ", 2);
  memcpy(tail + 2, status->message, n + 1);
  va_list args;
  va_start(args, format);
  assay_status_t s = make(status->file, status->line, status->code, tail, format, args);
  va_end(args);
  assay_free(tail);
  if (s == &no_memory) return status;
  s->cause = status->cause;
  assay_status_free(status);
  return s;
}

assay_status_t assay_status_join(assay_status_t first, assay_status_t second) {
  if (!first) return second;
  assay_status_free(second);
  return first;
}

const char* assay_status_file(assay_status_t status) { return status ? status->file : ""; }
int assay_status_line(assay_status_t status) { return status ? status->line : 0; }

assay_status_t assay_status_create(assay_code_t code, const char* message) {
  if (code <= ASSAY_OK || code > ASSAY_CANCELLED) code = ASSAY_INTERNAL;
  return ASSAY_ERROR(code, "%s", message ? message : "");
}

const char* assay_version(void) { return ASSAY_VERSION; }

assay_code_t assay_status_code(assay_status_t status) { return status ? status->code : ASSAY_OK; }

const char* assay_status_message(assay_status_t status) { return status ? status->message : ""; }

const char* assay_status_cause(assay_status_t status) {
  return status ? status->message + strlen(status->message) - status->cause : "";
}

void assay_status_free(assay_status_t status) {
  if (status != &no_memory) assay_free(status);
}
