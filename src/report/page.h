/* Inside the page builder. */
#ifndef DV_PAGE_H
#define DV_PAGE_H

#include "report/markup.h"

#include <dvbf/page.h>

struct dvbf_page {
  char *title;
  dv_markup body, contents; /* contents: the list of chapters */
  size_t chapters;
};

/* Where the page ended before something is added. */
typedef struct dv_page_mark {
  size_t body, contents, chapters;
} dv_page_mark;

dv_page_mark dv_page_begin(const dvbf_page *page);
/* Ends what was added since `mark`, or takes it away again when `status` or memory failed. */
dvbf_status dv_page_end(dvbf_page *page, dv_page_mark mark, dvbf_status status, dvbf_error *error);

/* src/report/page.js and page.css, made into C when the library is built. */
extern const unsigned char dv_page_js[], dv_page_css[];
extern const size_t dv_page_js_size, dv_page_css_size;

#endif
