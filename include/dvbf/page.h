/* dvbf/page: a report as one HTML file that opens in any browser and asks the network for nothing.
 *
 *   dvbf_page *page = NULL;
 *   int failed = dvbf_page_new(&page, "Pendulum", &error) ||
 *                dvbf_page_heading(page, 1, "Results", &error) ||
 *                dvbf_page_text(page, "Trained for nine seconds.", &error) ||
 *                dvbf_page_picture(page, "errors.svg", "Error by horizon", "A rising line", &error) ||
 *                dvbf_page_write(page, "report.html", &error);
 *   dvbf_page_free(page);
 *
 * Everything is copied into the page when it is added and appears in that order. Text is UTF-8 and is shown
 * as it is: it may hold < and &. A call that fails adds nothing. */
#ifndef DVBF_PAGE_H
#define DVBF_PAGE_H

#include <dvbf/dvbf.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dvbf_page dvbf_page;

DVBF_API dvbf_status dvbf_page_new(dvbf_page **out, const char *title, dvbf_error *error);
DVBF_API void dvbf_page_free(dvbf_page *page);

/* Level 1 begins a chapter, which the list of contents names; 2 and 3 are within it. */
DVBF_API dvbf_status dvbf_page_heading(dvbf_page *page, unsigned level, const char *text, dvbf_error *error);
/* Paragraphs, parted by empty lines. */
DVBF_API dvbf_status dvbf_page_text(dvbf_page *page, const char *text, dvbf_error *error);
/* A remark that is set apart: what was left out and why. */
DVBF_API dvbf_status dvbf_page_note(dvbf_page *page, const char *text, dvbf_error *error);

/* ---- Tables ---- */

typedef struct dvbf_table {
  const char *caption; /* NULL: none */
  size_t rows, columns;
  const char *const *cells; /* [rows][columns]; row 0 and column 0 are headings; NULL: an empty cell */
  const char *emphasis;     /* rows whose first cell begins so are set apart, as in "paper"; NULL: none */
} dvbf_table;

DVBF_API dvbf_status dvbf_page_table(dvbf_page *page, const dvbf_table *table, dvbf_error *error);

/* All values of a run with what they mean, folded away; those that are not the default stand out. */
DVBF_API dvbf_status dvbf_page_settings(dvbf_page *page, const char *caption, const dvbf_settings *settings,
                                        dvbf_error *error);

/* ---- Pictures ---- */

/* Embeds a file whose name ends in .svg or .png. `alternative` tells what it shows to who cannot see it. */
DVBF_API dvbf_status dvbf_page_picture(dvbf_page *page, const char *path, const char *caption,
                                       const char *alternative, dvbf_error *error);

/* ---- A latent space to turn by hand ---- */

enum { DVBF_SPACE_POINTS = 4000 }; /* of more points an even choice is shown, and the caption says so */

/* What the points can be coloured by. */
typedef struct dvbf_space_column {
  const char *name;
  const float *values; /* the value of point i is values[i * stride]; grey where it is not finite */
  size_t stride;       /* 0 counts as 1 */
  bool cyclic;         /* an angle in radians: the colours close at 2 pi */
  const char *group;   /* heading in lists, as "inputs"; NULL: "ground truth" */
} dvbf_space_column;

/* The reader chooses the colours, and three axes out of the latent dimensions, the principal axes, the
 * columns and, for the first eight that are not cyclic, their regressions on z. */
typedef struct dvbf_space {
  const char *caption;
  size_t points, n_z;
  const float *z; /* [points][n_z]; points that are not finite are left out */
  size_t columns;
  const dvbf_space_column *column; /* [columns] */
} dvbf_space;

DVBF_API dvbf_status dvbf_page_space(dvbf_page *page, const dvbf_space *space, dvbf_error *error);

/* ---- A video of image sequences ---- */

typedef struct dvbf_film_row {
  const char *label;   /* "ground truth", "reconstruction", "prediction" */
  const float *images; /* [sequences][frames][height][width][channels], finite */
  size_t observed;     /* frames that this row has seen, which are marked; 0: no mark */
} dvbf_film_row;

/* Rows of images that play side by side, a sequence at a time. Pixels are kept with 8 bits. */
typedef struct dvbf_film {
  const char *caption;
  size_t sequences, frames, height, width;
  size_t rows;
  const dvbf_film_row *row; /* [rows] */
  const uint32_t *length;   /* [sequences] frames of each; NULL: all are `frames` long */
  size_t training_steps;    /* marks the length of the training sequences; 0: no mark */
  float black, white;       /* values so shown; where both are 0, the extremes of row 0 */
  const char *const *names; /* [sequences] in the list; NULL: 1, 2, ... */
  size_t channels;          /* 3: colour; 0 or 1: grey */
} dvbf_film;

DVBF_API dvbf_status dvbf_page_film(dvbf_page *page, const dvbf_film *film, dvbf_error *error);

/* ---- The file ---- */

/* Writes it atomically: a file of that name is replaced only by a complete one. */
DVBF_API dvbf_status dvbf_page_write(const dvbf_page *page, const char *path, dvbf_error *error);

#ifdef __cplusplus
}
#endif
#endif
