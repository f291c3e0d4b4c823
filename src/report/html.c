// The page: one file with all that it needs, made of what the build embedded and of a check's data.
#include <string.h>

#include "base/file.h"
#include "report/page_data.h"

typedef struct page_piece {
  const unsigned char* text;  // NULL: a slot, to be filled
  size_t len;
  char slot;                  // 't' the title, 'p' the terminal's lines, 'd' the data
} page_piece_t;
#include "report/page.inc"

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

// JSON in a script element: '<' and '>' end or open nothing there, and '&' is no entity. All three occur within
// strings only, where JSON has an escape for them.
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

static assay_status_t append_data(const assay_check_t* c, const assay_report_names_t* names,
                                  const assay_pictures_t* pictures, assay_str_t* out) {
  enum { DIGITS = 7 };  // for people
  json_t* data = NULL;
  ASSAY_TRY(assay_page_data(c, names, pictures, &data));
  if (json_dump_callback(data, append_json, out, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS))) out->failed = true;
  json_decref(data);
  return assay_str_status(out);
}

static assay_status_t append_slot(char slot, const assay_check_t* c, const assay_report_names_t* names,
                                  const assay_pictures_t* pictures, assay_str_t* out) {
  assay_str_t text = {0};
  assay_status_t st = NULL;
  const char* slash = strrchr(names->model, '/');
  switch (slot) {
    case 't':
      append_text(out, c->faithful ? "faithful: " : "UNFAITHFUL: ");
      append_text(out, slash ? slash + 1 : names->model);
      break;
    case 'p':
      st = assay_report_text(c, names, &text);
      if (!st) append_text(out, assay_str_get(&text));
      assay_str_deinit(&text);
      break;
    default:
      st = append_data(c, names, pictures, out);
  }
  return st;
}

assay_status_t assay_report_html(const assay_check_t* c, const assay_report_names_t* names,
                                 const assay_pictures_t* pictures, assay_str_t* out) {
  for (size_t i = 0; i < sizeof page_pieces / sizeof *page_pieces; i++) {
    if (page_pieces[i].text)
      assay_str_append_n(out, (const char*)page_pieces[i].text, page_pieces[i].len);
    else
      ASSAY_TRY(append_slot(page_pieces[i].slot, c, names, pictures, out));
  }
  return assay_str_status(out);
}
