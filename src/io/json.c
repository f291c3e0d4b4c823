// JSON files: jansson with our errors and limits, and numbers that JSON does not have.
#include "io/json.h"

#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/shown.h"

static assay_status_t parse(const void* data, size_t size, size_t flags, json_t** out) {
  json_error_t error;
  json_t* j = json_loadb(data ? data : "", size, JSON_REJECT_DUPLICATES | flags, &error);
  // Without memory jansson 2.14 mostly gives no error at all.
  if (!j && (!*error.text || json_error_code(&error) == json_error_out_of_memory))
    return assay_status_no_memory();
  if (!j)
    return ASSAY_ERROR(ASSAY_CORRUPT, "JSON: line %d, column %d: %s", error.line, error.column,
                       error.text);
  *out = j;
  return NULL;
}

assay_status_t assay_json_parse(const void* data, size_t size, json_t** out) {
  return parse(data, size, 0, out);
}

assay_status_t assay_json_parse_bytes(const void* data, size_t size, json_t** out) {
  return parse(data, size, JSON_ALLOW_NUL, out);
}

// ---- numbers that JSON does not have ------------------------------------------------------------

// The word at p if it is one of those that C++ and Python write for what JSON has no numbers for.
static size_t special(const char* p, const char* end, const char** out) {
  static const struct {
    const char *word, *means;
  } words[] = {{"nan", "\"nan\""},       {"-nan", "\"nan\""}, {"NaN", "\"nan\""},
               {"-inf", "\"-inf\""},     {"inf", "\"inf\""},  {"Infinity", "\"inf\""},
               {"-Infinity", "\"-inf\""}};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const size_t n = strlen(words[i].word);
    if ((size_t)(end - p) < n || memcmp(p, words[i].word, n) != 0) continue;
    if (p + n < end && strchr(",] \t\r\n}", p[n]) == NULL) continue;
    *out = words[i].means;
    return n;
  }
  return 0;
}

// JSON proper of a text with bare nan and inf.
static assay_status_t make_proper(const char* p, size_t size, assay_str_t* out) {
  const char *end = p + size, *from = p;
  bool quoted = false;
  while (p < end) {
    const char* means;
    size_t n = 0;
    if (*p == '"') quoted = !quoted;
    if (quoted && *p == '\\' && p + 1 < end)
      p++;
    else if (!quoted && strchr("nNiI-", *p) && *p)
      n = special(p, end, &means);
    if (n) {
      assay_str_append_n(out, from, (size_t)(p - from));
      assay_str_append(out, means);
      from = p + n;
    }
    p += n ? n : 1;
  }
  assay_str_append_n(out, from, (size_t)(end - from));
  return assay_str_status(out);
}

assay_status_t assay_json_parse_python(const void* data, size_t size, json_t** out) {
  assay_str_t proper = {0};
  assay_status_t st = make_proper(data ? data : "", size, &proper);
  if (!st) st = assay_json_parse_bytes(assay_str_get(&proper), proper.len, out);
  assay_str_deinit(&proper);
  return st;
}

// ---- values -------------------------------------------------------------------------------------

assay_status_t assay_json_read(const char* path, json_t** out) {
  assay_mapping_t* m = NULL;
  ASSAY_TRY(assay_mapping_open(path, &m));
  assay_status_t st = assay_json_parse(assay_mapping_data(m), assay_mapping_size(m), out);
  assay_mapping_release(m);
  return assay_status_note(st, "'%s'", path);
}

json_t* assay_json_number(double x) {
  if (isnan(x)) return json_string("nan");
  if (isinf(x)) return json_string(x > 0 ? "inf" : "-inf");
  return json_real(x);
}

// Bytes of the UTF-8 sequence at p; 0: not one. Source: Unicode 15, table 3-7.
static size_t utf8_bytes(const unsigned char* p) {
  size_t n = p[0] < 0x80   ? 1
             : p[0] < 0xc2 ? 0
             : p[0] < 0xe0 ? 2
             : p[0] < 0xf0 ? 3
             : p[0] < 0xf5 ? 4
                           : 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xc0) != 0x80) return 0;
  if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
      (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
    return 0;
  return n;
}

json_t* assay_json_text(const char* text) {
  const char* end = text;
  for (size_t n; *end && (n = utf8_bytes((const unsigned char*)end)) > 0; end += n) {
  }
  if (!*end) return json_string(text);
  assay_str_t s = {0};
  for (const char* p = text; *p;) {
    size_t n = utf8_bytes((const unsigned char*)p);
    assay_str_append_n(&s, n ? p : "\xef\xbf\xbd", n ? n : 3);
    p += n ? n : 1;
  }
  json_t* j = s.failed ? NULL : json_string(assay_str_get(&s));
  assay_str_deinit(&s);
  return j;
}

json_t* assay_json_str(const assay_str_t* text) {
  return text->failed ? NULL : assay_json_text(assay_str_get(text));
}

json_t* assay_json_push(json_t* list, json_t* take_item) {
  if (!json_array_append_new(list, take_item)) return list;
  json_decref(list);
  return NULL;
}

static bool is_utf8(const char* text) {
  size_t n;
  while (*text && (n = utf8_bytes((const unsigned char*)text)) > 0) text += n;
  return !*text;
}

json_t* assay_json_put(json_t* object, const char* key, json_t* take_item) {
  // A name that is not UTF-8 cannot be a key: jansson would refuse it. NULL: memory ran out over
  // it.
  json_t* proper = !key || is_utf8(key) ? NULL : assay_json_text(key);
  if (proper) key = json_string_value(proper);
  const bool put = !json_object_set_new(object, key, take_item);
  json_decref(proper);
  if (put) return object;
  json_decref(object);
  return NULL;
}

bool assay_json_get_number(const json_t* j, double* out) {
  if (json_is_number(j)) return *out = json_number_value(j), true;
  const char* s = json_string_value(j);
  if (!s) return false;
  if (strcmp(s, "nan") == 0) return *out = (double)NAN, true;
  if (strcmp(s, "inf") == 0) return *out = (double)INFINITY, true;
  if (strcmp(s, "-inf") == 0) return *out = -(double)INFINITY, true;
  return false;
}

static int append(const char* text, size_t n, void* user) {
  assay_str_append_n(user, text, n);
  return 0;
}

// What may not be shown, and JSON allows: DEL, C1 and what turns the direction of text, from byte
// `from` on. All of it is within strings.
static void escape_hidden(assay_str_t* out, size_t from) {
  assay_str_t shown = {0};
  for (size_t at = from, length; at < out->len; at += length) {
    bool hidden;
    uint32_t code;
    length = assay_char_length(out->text + at, out->len - at, &hidden, &code);
    if (hidden && code >= 0x7f && !shown.len) assay_str_append_n(&shown, out->text, at);
    if (hidden && code >= 0x7f)
      assay_str_printf_raw(&shown, "\\u%04x", (unsigned)code);
    else if (shown.len)
      assay_str_append_n(&shown, out->text + at, length);
  }
  if (!shown.len && !shown.failed) return;
  shown.failed |= out->failed;
  assay_str_deinit(out);
  *out = shown;
}

// Not json_dumps: without memory for a string's next piece (jansson 2.14) it leaves the piece out.
void assay_json_print(const json_t* j, int indent, assay_str_t* out) {
  size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(17) | JSON_INDENT((size_t)indent);
  const size_t from = out->len;
  if (json_dump_callback(j, append, out, flags)) out->failed = true;
  escape_hidden(out, from);
  assay_str_append(out, "\n");
}

assay_status_t assay_json_take(json_t* take, char** out) {
  assay_str_t text = {0};
  if (!take) return assay_status_no_memory();
  assay_json_print(take, 1, &text);
  json_decref(take);
  return assay_str_take(&text, out);
}

void assay_json_quote(const char* text, assay_str_t* out) {
  json_t* j = assay_json_text(text);
  const size_t from = out->len;
  if (!j || json_dump_callback(j, append, out, JSON_ENCODE_ANY)) out->failed = true;
  escape_hidden(out, from);
  json_decref(j);
}

assay_status_t assay_json_write(const char* path, const json_t* j, int indent) {
  assay_str_t text = {0};
  assay_writer_t* w = NULL;
  assay_json_print(j, indent, &text);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_writer_open(path, &w);
  if (!st) st = assay_writer_write(w, assay_str_get(&text), text.len);
  if (!st) {
    st = assay_writer_commit(w);
    w = NULL;
  }
  assay_writer_abandon(w);
  assay_str_deinit(&text);
  return st;
}

int assay_json_is_file(const struct dirent* entry) {
  const size_t n = strlen(entry->d_name);
  return n > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + n - 5, ".json") == 0;
}
