/* What a search has tried, as a table of a chapter. */
#include "base/file.h"
#include "report/chapter.h"
#include "report/page.h"
#include "search/candidates.h"

#include <math.h>

static void put_number(dvbf_table *t, size_t row, size_t column, double value) {
  if (isfinite(value))
    dv_table_put(t, row, column, "%.3f", value);
  else
    dv_table_put(t, row, column, "–");
}

static void put_row(dvbf_table *t, size_t row, const dv_candidate *c) {
  dv_table_put(t, row, 0, "%s%s", c->name, c->final ? ", all data" : "");
  dv_table_put(t, row, 1, "%s", c->changes);
  dv_table_put(t, row, 2, "%llu", (unsigned long long)c->updates);
  put_number(t, row, 3, c->score.free_run);
  put_number(t, row, 4, c->score.one_step);
  if (c->rank) dv_table_put(t, row, 5, "%d", c->rank);
}

dvbf_status dv_chapter_search(dvbf_page *page, const dv_chapter *c, dvbf_error *error) {
  static const char *const headings[] = {"candidate", "settings", "updates",
                                         "free run",  "one step", "member"};
  enum { MOST = 100, COLUMNS = sizeof headings / sizeof *headings };
  dv_path path;
  dv_candidates all = {0};
  if (!c->run) return DVBF_OK;
  dv_join(path, c->run, DVBF_RUN_SEARCH);
  if (!dv_exists(path)) return DVBF_OK;
  dvbf_status status = dv_candidates_read(&all, path, error);
  if (status) {
    dv_candidates_free(&all);
    return dv_chapter_left_out(page, c, error ? error->message : "The search cannot be read.", error);
  }
  size_t rows = all.count < MOST ? all.count : MOST;
  dvbf_table t;
  status = dvbf_page_heading(page, 2, "Search", error);
  t = (dvbf_table){0};
  if (!status)
    status = dv_table_init(
        &t, "What the search has tried: errors over the whole recording, over those of the linear model",
        rows + 1, COLUMNS, error);
  for (size_t k = 0; !status && k < COLUMNS; k++) dv_table_put(&t, 0, k, "%s", headings[k]);
  for (size_t i = 0; !status && i < rows; i++) put_row(&t, i + 1, &all.list[i]);
  if (!status) status = dvbf_page_table(page, &t, error);
  dv_table_clear(&t);
  dv_candidates_free(&all);
  return status;
}
