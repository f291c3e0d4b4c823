// Pictures of errors as PNG files: where in a tensor they are, and how they grow with what is
// compared.
#include "compare/comparison_pictures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/functions.h"
#include "base/shown.h"
#include "io/numpy_text.h"
#include "io/png.h"

enum { CHANNELS = 3 };

typedef struct canvas {
  int64_t width, height;
  uint8_t* rgb;
} canvas_t;

// A white one.
static assay_status_t new_canvas(int64_t width, int64_t height, canvas_t* out) {
  int64_t n = 0;
  canvas_t c = {.width = width, .height = height};
  if (!assay_mul_i64(width, height, &n) || !assay_mul_i64(n, CHANNELS, &n))
    return assay_status_no_memory();
  if (!(c.rgb = assay_malloc((size_t)n))) return assay_status_no_memory();
  memset(c.rgb, 255, (size_t)n);
  *out = c;
  return NULL;
}

static void fill(canvas_t* c, int64_t x, int64_t y, int64_t w, int64_t h, const uint8_t* rgb) {
  for (int64_t row = y; row < y + h && row < c->height; row++)
    for (int64_t column = x; column < x + w && column < c->width; column++)
      if (row >= 0 && column >= 0)
        memcpy(c->rgb + (row * c->width + column) * CHANNELS, rgb, CHANNELS);
}

// From dark blue over red to yellow, which is told apart also without colours.
static void colour_of(double share, uint8_t* rgb) {
  static const double stops[][CHANNELS] = {
      {13, 8, 135}, {126, 3, 168}, {204, 71, 120}, {248, 149, 64}, {240, 249, 33}};
  enum { LAST = (int)(sizeof stops / sizeof *stops) - 1 };
  const double at = fmin(fmax(share, 0), 1) * LAST;
  const int i = at >= LAST ? LAST - 1 : (int)at;
  for (int k = 0; k < CHANNELS; k++)
    rgb[k] = (uint8_t)lround(stops[i][k] + (at - i) * (stops[i + 1][k] - stops[i][k]));
}

// FOLDER/STEM_OUTPUT.png; slashes of the output's name become '_'. The folder is made.
static assay_status_t path_of(const assay_compare_job_t* j, const char* folder, const char* stem,
                              assay_str_t* out) {
  assay_str_printf_raw(out, "%s/%s_", folder, stem);
  for (const char* p = j->name; *p; p++) assay_str_printf_raw(out, "%c", *p == '/' ? '_' : *p);
  assay_str_append(out, ".png");
  ASSAY_TRY(assay_str_status(out));
  return assay_folder_make(folder);
}

static assay_status_t save(const assay_compare_job_t* j, canvas_t* take_canvas, const char* folder,
                           const char* stem, const char* line, int depth) {
  assay_str_t path = {0};
  assay_status_t st = path_of(j, folder, stem, &path);
  if (!st)
    st = assay_png_write(path.text, take_canvas->width, take_canvas->height, take_canvas->rgb);
  if (!st)
    assay_compare_log(&j->run->comparison->log, ASSAY_LOG_INFO, depth, "%s: '%s'", line, path.text);
  assay_str_deinit(&path);
  assay_free(take_canvas->rgb);
  return st;
}

// What is shown of numbers: from the smallest to the largest finite one, by powers of ten if asked.
typedef struct scale {
  double low, high;
  bool powers, any;
} scale_t;

static scale_t scale_of(const assay_numeric_t* a, bool powers, bool absolute) {
  scale_t s = {.powers = powers};
  for (int64_t i = 0; i < a->n; i++) {
    double x = assay_numeric_at(a, i);
    if (absolute) x = fabs(x);
    if (!isfinite(x) || (powers && x <= 0)) continue;
    if (!s.any || x < s.low) s.low = x;
    if (!s.any || x > s.high) s.high = x;
    s.any = true;
  }
  return s;
}

static double share_of(const scale_t* s, double x) {
  if (s->high <= s->low) return 0;
  if (!s->powers) return (x - s->low) / (s->high - s->low);
  return x > 0
             ? (assay_log10(x) - assay_log10(s->low)) / (assay_log10(s->high) - assay_log10(s->low))
             : 0;
}

// ---- maps ---------------------------------------------------------------------------------------

enum { GAP = 4, LONGEST = 2048, WIDEST = 1920, TALLEST = 1080, BAR = 16 };

// Slices of rows x columns elements, `across` beside each other; large ones by every step-th
// element.
typedef struct layout {
  int64_t rows, columns, slices, across, down;
  int64_t step, side;  // elements a cell, pixels a cell
  int64_t cell_rows, cell_columns;
} layout_t;

static int64_t at_least(int64_t x, int64_t min) { return x < min ? min : x; }

static layout_t lay_out(const assay_numeric_t* a) {
  layout_t l = {.columns = a->rank ? a->dims[a->rank - 1] : 1,
                .rows = a->rank > 1 ? a->dims[a->rank - 2] : 1};
  const int64_t longest = l.rows > l.columns ? l.rows : l.columns;
  l.step = 1 + (longest - 1) / LONGEST;
  l.cell_rows = 1 + (l.rows - 1) / l.step;
  l.cell_columns = 1 + (l.columns - 1) / l.step;
  l.side = at_least(256 / (1 + (longest - 1) / l.step), 1);
  if (l.side > 32) l.side = 32;
  l.slices = a->n / (l.rows * l.columns);
  l.across = at_least(WIDEST / (l.cell_columns * l.side + GAP), 1);
  if (l.across > l.slices) l.across = l.slices;
  l.down = 1 + (l.slices - 1) / l.across;
  const int64_t max = at_least(4 * TALLEST / (l.cell_rows * l.side + GAP), 1);
  if (l.down > max) l.down = max;
  return l;
}

// The largest of a cell's elements, so that a single outlier is seen. NaN wins.
static double cell_value(const assay_numeric_t* a, const layout_t* l, int64_t slice, int64_t row,
                         int64_t column) {
  double max = 0;
  for (int64_t r = row * l->step; r < l->rows && r < (row + 1) * l->step; r++)
    for (int64_t c = column * l->step; c < l->columns && c < (column + 1) * l->step; c++) {
      const double x = assay_numeric_at(a, (slice * l->rows + r) * l->columns + c);
      if (isnan(x)) return x;
      if (x > max) max = x;
    }
  return max;
}

static void draw_slice(canvas_t* c, const assay_numeric_t* a, const layout_t* l, const scale_t* s,
                       int64_t slice) {
  static const uint8_t unfinite[CHANNELS] = {0, 200, 0};
  const int64_t x0 = slice % l->across * (l->cell_columns * l->side + GAP);
  const int64_t y0 = slice / l->across * (l->cell_rows * l->side + GAP);
  for (int64_t row = 0; row < l->cell_rows; row++) {
    for (int64_t column = 0; column < l->cell_columns; column++) {
      const double x = cell_value(a, l, slice, row, column);
      uint8_t rgb[CHANNELS];
      colour_of(share_of(s, x), rgb);
      fill(c, x0 + column * l->side, y0 + row * l->side, l->side, l->side,
           isfinite(x) ? rgb : unfinite);
    }
  }
}

static void draw_bar(canvas_t* c) {
  for (int64_t y = 0; y < c->height; y++) {
    uint8_t rgb[CHANNELS];
    colour_of(c->height > 1 ? 1 - (double)y / (double)(c->height - 1) : 1, rgb);
    fill(c, c->width - BAR, y, BAR, 1, rgb);
  }
}

assay_status_t assay_draw_heatmap(const assay_compare_job_t* j, const assay_numeric_t* difference,
                                  const char* what, const char* folder, int depth) {
  const bool relative = strcmp(what, "Relative") == 0;
  if (!difference->n) return NULL;
  const scale_t s = scale_of(difference, relative, false);
  const layout_t l = lay_out(difference);
  canvas_t c = {0};
  assay_str_t line = {0};
  ASSAY_TRY(new_canvas(l.across * (l.cell_columns * l.side + GAP) + BAR,
                       l.down * (l.cell_rows * l.side + GAP) - GAP, &c));
  for (int64_t i = 0; i < l.slices && i < l.across * l.down; i++)
    draw_slice(&c, difference, &l, &s, i);
  draw_bar(&c);
  assay_str_printf(&line, "Saving '%s Error | %s' heatmap (dark: %.3g, bright: %.3g%s%s) to", what,
                   j->name, s.low, s.high, relative ? ", by powers of ten" : "",
                   l.slices > l.across * l.down ? ", the first slices" : "");
  assay_status_t st = assay_str_status(&line);
  if (st)
    assay_free(c.rgb);
  else
    st = save(j, &c, folder, relative ? "relative_error" : "absolute_error", line.text, depth);
  assay_str_deinit(&line);
  return st;
}

// ---- error against magnitude --------------------------------------------------------------------

enum { PLOT_WIDTH = 960, PLOT_HEIGHT = 480, MARGIN = 20, DOT = 3 };

// Lines at the powers of ten of both axes.
static void draw_grid(canvas_t* c, int64_t top, const scale_t* x, const scale_t* y) {
  static const uint8_t gray[CHANNELS] = {215, 215, 215}, black[CHANNELS] = {0, 0, 0};
  const int64_t w = PLOT_WIDTH - 2 * MARGIN, h = PLOT_HEIGHT - 2 * MARGIN;
  for (double p = x->any ? ceil(assay_log10(x->low)) : 1; x->any && p <= assay_log10(x->high); p++)
    fill(c, MARGIN + (int64_t)(share_of(x, assay_pow(10, p)) * (double)w), top + MARGIN, 1, h,
         gray);
  for (double p = y->any ? ceil(assay_log10(y->low)) : 1; y->any && p <= assay_log10(y->high); p++)
    fill(c, MARGIN, top + MARGIN + h - (int64_t)(share_of(y, assay_pow(10, p)) * (double)h), w, 1,
         gray);
  fill(c, MARGIN, top + MARGIN, 1, h, black);
  fill(c, MARGIN, top + MARGIN + h, w, 1, black);
}

// *x, *y: what the axes show.
static void draw_dots(canvas_t* c, int64_t top, const assay_numeric_t* magnitude,
                      const assay_numeric_t* error, scale_t* x, scale_t* y) {
  static const uint8_t blue[CHANNELS] = {31, 119, 180};
  const double w = PLOT_WIDTH - 2 * MARGIN, h = PLOT_HEIGHT - 2 * MARGIN;
  *x = scale_of(magnitude, true, true);
  *y = scale_of(error, true, false);
  draw_grid(c, top, x, y);
  for (int64_t i = 0; i < error->n; i++) {
    const double m = fabs(assay_numeric_at(magnitude, i)), e = assay_numeric_at(error, i);
    if (!isfinite(m) || !isfinite(e)) continue;
    fill(c, MARGIN + (int64_t)(share_of(x, m) * w) - DOT / 2,
         top + MARGIN + (int64_t)((1 - share_of(y, e)) * h) - DOT / 2, DOT, DOT, blue);
  }
}

assay_status_t assay_draw_errors(const assay_compare_job_t* j, const assay_numeric_t* absolute,
                                 const assay_numeric_t* relative, const char* folder, int depth) {
  canvas_t c = {0};
  scale_t x, above, below;
  char line[512];
  ASSAY_TRY(new_canvas(PLOT_WIDTH, 2 * PLOT_HEIGHT, &c));
  draw_dots(&c, 0, &j->b, absolute, &x, &above);
  draw_dots(&c, PLOT_HEIGHT, &j->b, relative, &x, &below);
  snprintf(
      line, sizeof line,
      "Saving error metrics plot (against magnitude, %.3g to %.3g: absolute error above, %.3g to "
      "%.3g; relative below, %.3g to %.3g; lines at powers of ten) to",
      x.low, x.high, above.low, above.high, below.low, below.high);
  return save(j, &c, folder, "error_metrics", line, depth);
}
