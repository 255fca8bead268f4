/* Internals of the page builder. */
#ifndef DV_PAGE_H
#define DV_PAGE_H

#include "report/markup.h"

#include <dvbf/page.h>

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

/* A paragraph that stands out in the colour of its kind: "good", "fair" or "bad". */
dvbf_status dv_page_verdict(dvbf_page *page, const char *kind, const char *text, dvbf_error *error);
/* What is added between the two is folded away under `summary`. */
dvbf_status dv_page_fold(dvbf_page *page, const char *summary, dvbf_error *error);
dvbf_status dv_page_unfold(dvbf_page *page, dvbf_error *error);

/* A table of empty cells. Clear it also after a failure. */
dvbf_status dv_table_init(dvbf_table *table, const char *caption, size_t rows, size_t columns,
                          dvbf_error *error);
void dv_table_clear(dvbf_table *table);
/* Writes a cell, of at most 39 bytes. */
void dv_table_put(dvbf_table *table, size_t row, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The scripts and the style of src/report as C arrays, which the build makes. */
extern const unsigned char dv_page_js[], dv_page_plot_js[], dv_page_signals_js[], dv_page_space_js[],
    dv_page_video_js[], dv_page_css[];
extern const size_t dv_page_js_size, dv_page_plot_js_size, dv_page_signals_js_size, dv_page_space_js_size,
    dv_page_video_js_size, dv_page_css_size;

#endif
