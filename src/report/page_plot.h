/* Diagrams of a page, drawn by its script to fit the window: panels, of which the reader may choose. */
#ifndef DV_PAGE_PLOT_H
#define DV_PAGE_PLOT_H

#include "report/page.h"

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
  const double *y;    /* [count], a gap where it is not finite */
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
  bool zero;               /* y begins at 0 where no value is below */
  bool robust;             /* a few values far from the others are cut off */
  bool seconds;            /* x is time in seconds */
  size_t n_series, n_marks;
  const dv_series *series;
  const dv_plot_mark *marks;
} dv_panel;

/* A diagram that is being added. A failure is kept until the end, where it removes all of it. */
typedef struct dv_plot {
  dvbf_page *page;
  dv_page_mark mark;
  size_t views, panels;
} dv_plot;

/* `about` tells what it shows to who cannot see it. The reader chooses a view, where there are several, by a
 * list called `chooser`. `stacked` panels stay above each other on wide windows too. */
dv_plot dv_plot_begin(dvbf_page *page, const char *about, const char *chooser, bool stacked);
/* Begins a view; `text` stands below it, NULL: nothing. */
void dv_plot_view(dv_plot *plot, const char *name, const char *text);
void dv_plot_panel(dv_plot *plot, const dv_panel *panel);
dvbf_status dv_plot_end(dv_plot *plot, const char *caption, dvbf_error *error);

#endif
