// The page of a check: its title, the terminal's lines, its data.
#include <string.h>

#include "report/page.h"
#include "report/page_data.h"

assay_status_t assay_report_html(const assay_check_t* c, const assay_report_names_t* names,
                                 const assay_pictures_t* pictures, assay_str_t* out) {
  assay_page_t page = {0};
  const char* slash = strrchr(names->model, '/');
  assay_str_append(&page.title, c->faithful ? "faithful: " : "UNFAITHFUL: ");
  assay_str_append(&page.title, slash ? slash + 1 : names->model);
  assay_status_t st = assay_report_text(c, names, &page.text);
  if (!st) st = assay_page_data(c, names, pictures, &page.data);
  if (!st) st = assay_page_put(ASSAY_PAGE_CHECK, &page, out);
  assay_page_deinit(&page);
  return st;
}
