// Pages: one HTML file that holds all it needs, made of what the build embedded (page/) and of
// data.
#include "report/page.h"

typedef struct page_piece {
  const unsigned char* text;  // NULL: a slot, to be filled
  size_t len;
  char slot;  // 't' the title, 'p' the text, 'd' the data
} page_piece_t;
#include "report/page.inc"

static const struct {
  const page_piece_t* pieces;
  size_t n;
} pages[] = {
    [ASSAY_PAGE_CHECK] = {check_pieces, sizeof check_pieces / sizeof *check_pieces},
    [ASSAY_PAGE_MODEL] = {model_pieces, sizeof model_pieces / sizeof *model_pieces},
};

void assay_page_deinit(assay_page_t* p) {
  assay_str_deinit(&p->title);
  assay_str_deinit(&p->text);
  json_decref(p->data);
  *p = (assay_page_t){0};
}

// Text in HTML.
static void append_text(assay_str_t* out, const char* text) {
  for (const char* p = text; *p; p++) {
    if (*p == '&')
      assay_str_append(out, "&amp;");
    else if (*p == '<')
      assay_str_append(out, "&lt;");
    else if (*p == '>')
      assay_str_append(out, "&gt;");
    else if (*p == '"')
      assay_str_append(out, "&quot;");
    else
      assay_str_append_n(out, p, 1);
  }
}

// JSON in a script element: '<' and '>' end or open nothing there, and '&' is not an entity. All
// three occur within strings only, where JSON has an escape for them.
static int append_json(const char* text, size_t n, void* user) {
  assay_str_t* out = user;
  size_t from = 0;
  for (size_t i = 0; i < n; i++) {
    if (text[i] != '<' && text[i] != '>' && text[i] != '&') continue;
    assay_str_append_n(out, text + from, i - from);
    assay_str_printf(out, "\\u%04x", (unsigned)text[i]);
    from = i + 1;
  }
  assay_str_append_n(out, text + from, n - from);
  return 0;
}

static void append_slot(char slot, const assay_page_t* p, assay_str_t* out) {
  enum { DIGITS = 7 };  // for people
  if (slot == 't')
    append_text(out, assay_str_get(&p->title));
  else if (slot == 'p')
    append_text(out, assay_str_get(&p->text));
  else if (json_dump_callback(p->data, append_json, out,
                              JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)))
    out->failed = true;
}

assay_status_t assay_page_put(assay_page_kind_t kind, const assay_page_t* p, assay_str_t* out) {
  ASSAY_TRY(assay_str_status(&p->title));
  ASSAY_TRY(assay_str_status(&p->text));
  if (!p->data) return assay_status_no_memory();
  for (size_t i = 0; i < pages[kind].n; i++) {
    const page_piece_t* piece = &pages[kind].pieces[i];
    if (piece->text)
      assay_str_append_n(out, (const char*)piece->text, piece->len);
    else
      append_slot(piece->slot, p, out);
  }
  return assay_str_status(out);
}
