/* Building HTML pages inside the library: text and tables, diagrams drawn by the page's script, and
 * signals. */
#pragma once

#include "report/markup.h"
#include "report/signals.h"

#include <dvbf/report.h>

struct dvbf_page {
  char *title;
  dv_markup body, contents; /* contents: the list of chapters */
  size_t chapters;
};

/* The end of the page before something is added. */
typedef struct dv_page_mark {
  size_t body, contents, chapters;
} dv_page_mark;

dv_page_mark dv_page_begin(const dvbf_page *page);
/* Completes what was added since `mark`, or removes it if `status` is a failure or memory was short. */
dvbf_status dv_page_end(dvbf_page *page, dv_page_mark mark, dvbf_status status, dvbf_error *error);

/* The same as dvbf_page_picture, with another picture for narrow windows; NULL: none. */
dvbf_status dv_page_picture(dvbf_page *page, const char *path, const char *narrow, const char *caption,
                            const char *alternative, dvbf_error *error);

/* A paragraph of a class of page.css. */
dvbf_status dv_page_paragraph(dvbf_page *page, const char *class, const char *text, dvbf_error *error);
/* Additions between the two are folded away under `summary`. */
dvbf_status dv_page_fold(dvbf_page *page, const char *summary, dvbf_error *error);
dvbf_status dv_page_unfold(dvbf_page *page, dvbf_error *error);

/* A table of empty cells. Clear it also after a failure. */
dvbf_status dv_table_init(dvbf_table *table, const char *caption, size_t rows, size_t columns,
                          dvbf_error *error);
void dv_table_clear(dvbf_table *table);
/* A table with a row of headings, which end with NULL, and empty `rows`. Without memory it has no cells, and
 * the functions below leave it alone. */
dvbf_table dv_table_of(const char *caption, size_t rows, const char *const *headings);
/* Adds it to a page, which is what fails without memory, and clears it. */
dvbf_status dv_table_end(dvbf_page *page, dvbf_table *table, dvbf_error *error);
/* Writes a cell, of at most 39 bytes. */
void dv_table_put(dvbf_table *table, size_t row, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Writes a number; NaN is a dash, and what is infinite has "diverged". */
void dv_table_number(dvbf_table *table, size_t row, size_t column, const char *format, double value);

/* The scripts and the style of src/report as C arrays, which the build makes. */
extern const unsigned char dv_page_js[], dv_page_plot_js[], dv_page_signals_js[], dv_page_space_js[],
    dv_page_video_js[], dv_page_css[];
extern const size_t dv_page_js_size, dv_page_plot_js_size, dv_page_signals_js_size, dv_page_space_js_size,
    dv_page_video_js_size, dv_page_css_size;

/* ---- Diagrams ---- */

/* Colours of series and marks: black or white, then colours that can be told apart. */
enum {
  DV_PLOT_MEASURED,
  DV_PLOT_LEARNED,
  DV_PLOT_LINEAR,
  DV_PLOT_LAST,
  DV_PLOT_MEAN,
  DV_PLOT_BOUNDARY,
  DV_PLOT_KEPT
};

typedef enum dv_series_kind {
  DV_SERIES_LINE,
  DV_SERIES_DASHED,
  DV_SERIES_BARS,
  DV_SERIES_STEMS
} dv_series_kind;

typedef struct dv_series {
  const char *name; /* in the legend, the same in all panels; NULL: none */
  dv_series_kind kind;
  int colour;
  size_t count;
  const double *y;    /* [count], a gap if it is not finite */
  const double *x;    /* [count], NULL: first, first + step, ... */
  double first, step; /* a step of 0 counts as 1 */
} dv_series;

/* A line across a panel. */
typedef struct dv_plot_mark {
  const char *name; /* in the legend */
  double at;
  bool level; /* a value of y, not of x */
  int colour;
} dv_plot_mark;

typedef struct dv_panel {
  const char *up, *across; /* what is shown, with its unit */
  bool logarithmic;        /* y */
  bool zero;               /* y begins at 0 if no value is below */
  bool robust;             /* a few values far from the others are cut off */
  bool seconds;            /* x is time in seconds */
  size_t n_series, n_marks;
  const dv_series *series;
  const dv_plot_mark *marks;
} dv_panel;

/* A diagram that is being added. A failure is kept until the end and then removes all of it. */
typedef struct dv_plot {
  dvbf_page *page;
  dv_page_mark mark;
  size_t views, panels;
} dv_plot;

/* `about` describes it for screen readers. With several views the reader chooses one from a list called
 * `chooser`. `stacked` panels stay above each other on wide windows too. */
dv_plot dv_plot_begin(dvbf_page *page, const char *about, const char *chooser, bool stacked);
/* Begins a view; `text` stands below it, NULL: nothing. */
void dv_plot_view(dv_plot *plot, const char *name, const char *text);
void dv_plot_panel(dv_plot *plot, const dv_panel *panel);
dvbf_status dv_plot_end(dv_plot *plot, const char *caption, dvbf_error *error);

/* ---- Signals ---- */

/* `data` has names, units and times. */
dvbf_status dv_page_signals(dvbf_page *page, const dv_signals *signals, const dvbf_data *data,
                            const char *caption, dvbf_error *error);
