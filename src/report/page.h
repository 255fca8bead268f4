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

/* A table of empty cells. Clear it also after a failure. */
dvbf_status dv_table_init(dvbf_table *table, const char *caption, size_t rows, size_t columns,
                          dvbf_error *error);
void dv_table_clear(dvbf_table *table);
/* Writes a cell, of at most 39 bytes. */
void dv_table_put(dvbf_table *table, size_t row, size_t column, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* src/report/page.js and page.css as C arrays, which the build makes. */
extern const unsigned char dv_page_js[], dv_page_css[];
extern const size_t dv_page_js_size, dv_page_css_size;

#endif
