/* The figures of a chapter: drawn into files, some of them embedded in the page. */
#include "report/chapter.h"
#include "report/page.h"

#include <stdio.h>
#include <sys/stat.h>

static const char *const names[] = {"errors", "strips",        "signals", "latent",
                                    "ball",   "latent-narrow", "curves",  "ball-narrow"};

void dv_chapter_figure_path(dv_path out, const dv_chapter *c, const char *name, const char *extension) {
  char file[256];
  snprintf(file, sizeof file, "%.100s%s%s%s", c->key ? c->key : "", c->key ? "-" : "", name, extension);
  dv_join(out, c->figures, file);
}

dvbf_status dv_chapter_refuse(const dv_chapter *c, bool force, dvbf_error *error) {
  dv_path path;
  dvbf_status status = DVBF_OK;
  for (size_t i = 0; !status && i < sizeof names / sizeof *names; i++) {
    dv_chapter_figure_path(path, c, names[i], ".png");
    status = dv_refuse_existing(path, force, error);
    dv_chapter_figure_path(path, c, names[i], ".svg");
    if (!status) status = dv_refuse_existing(path, force, error);
  }
  return status;
}

/* Thousands of points make an SVG larger than this; then the PNG is embedded. */
enum { LARGE = 400000 };

static long long size_of(const char *path) {
  struct stat info;
  return stat(path, &info) ? 0 : (long long)info.st_size;
}

/* The SVG of a figure, or its PNG where that is smaller; false without such a figure. */
static bool choose(dv_path out, const dv_chapter *c, const char *name) {
  dv_chapter_figure_path(out, c, name, ".svg");
  if (size_of(out) > LARGE) dv_chapter_figure_path(out, c, name, ".png");
  return size_of(out) > 0;
}

dvbf_status dv_chapter_embed(dvbf_page *page, const dv_chapter *c, const char *name, dvbf_status drawn,
                             bool narrow, const char *caption, const char *alternative, dvbf_error *error) {
  dv_path path, other;
  char narrow_name[64];
  if (drawn) return dv_chapter_drawn(page, c, name, drawn, error);
  choose(path, c, name);
  snprintf(narrow_name, sizeof narrow_name, "%.50s-narrow", name);
  narrow = narrow && choose(other, c, narrow_name);
  return dv_page_picture(page, path, narrow ? other : NULL, caption, alternative, error);
}

dvbf_status dv_chapter_drawn(dvbf_page *page, const dv_chapter *c, const char *name, dvbf_status drawn,
                             dvbf_error *error) {
  char text[600];
  if (!drawn || drawn == DVBF_IO || drawn == DVBF_MEMORY) return drawn;
  snprintf(text, sizeof text, "No figure \"%s\": %s", name, error->message);
  return dv_chapter_left_out(page, c, text, error);
}
