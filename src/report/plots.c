/* Contents of plots: curves, scatter plots coloured by a value, principal axes of points, latent samples with
 * their true values (dv_points_sample), regressions of true values on z (dv_reading_make), and views of a
 * latent space on planes of such regressions (dv_view_make). */
#include "report/plots.h"

#include "base/error.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "math/algebra.h"
#include "report/drawing.h"
#include "report/figure.h"
#include "report/signals.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void begin(cairo_t *cr, const dv_axes *axes, dv_stroke stroke) {
  cairo_save(cr);
  cairo_rectangle(cr, axes->x, axes->y, axes->width, axes->height);
  cairo_clip(cr);
  cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(cr, stroke.dash > 0 ? CAIRO_LINE_CAP_BUTT : CAIRO_LINE_CAP_ROUND);
  dv_stroke_set(cr, stroke);
}

static void end(cairo_t *cr) {
  cairo_stroke(cr);
  cairo_restore(cr);
}

void dv_curve_draw(cairo_t *cr, const dv_axes *axes, const double *at, const double *values, size_t count,
                   dv_stroke stroke) {
  begin(cr, axes, stroke);
  bool drawing = false;
  for (size_t i = 0; i < count; i++) {
    double x, y;
    bool shown = dv_axes_place(axes, at ? at[i] : (double)i + 1, values[i], &x, &y);
    if (shown && !drawing) {
      cairo_move_to(cr, x, y);
      cairo_line_to(cr, x, y); /* a value between two gaps is a dot */
    } else if (shown) {
      cairo_line_to(cr, x, y);
    }
    drawing = shown;
  }
  end(cr);
}

void dv_curve_mark(cairo_t *cr, const dv_axes *axes, double value, bool level, dv_stroke stroke) {
  double place = dv_scale_place(level ? &axes->up : &axes->across, value);
  if (!(place >= 0 && place <= 1)) return;
  begin(cr, axes, stroke);
  cairo_move_to(cr, level ? axes->x : axes->x + axes->width * place,
                level ? axes->y + axes->height * (1 - place) : axes->y);
  cairo_rel_line_to(cr, level ? axes->width : 0, level ? 0 : axes->height);
  end(cr);
}

/* ---- Scatter plots ---- */

/* More points would only cover each other and cost time and space. */
enum { MOST_POINTS = 12000, MOST_POINTS_SVG = 2000 };

/* Colours are rounded to this many levels, which cannot be seen, because dots of one colour share one path.
 */
enum { LEVELS = 64, MISSING_LEVEL = LEVELS };

dv_hue dv_hue_values(const float *values, size_t count, const char *label) {
  dv_hue hue = {.map = dv_colour_sequential, .scale = dv_scale_empty(false), .label = label};
  for (size_t i = 0; i < count; i++) dv_scale_include(&hue.scale, values[i]);
  dv_scale_finish(&hue.scale, 0);
  return hue;
}

dv_hue dv_hue_angle(const char *label) {
  return (dv_hue){
      .map = dv_colour_cyclic, .scale = {.low = -M_PI, .high = M_PI}, .angle = true, .label = label};
}

static int level_of(const dv_hue *hue, const float *values, size_t i) {
  if (!values) return 0;
  double t = dv_scale_place(&hue->scale, values[i]);
  if (!isfinite(t)) return MISSING_LEVEL;
  if (hue->angle) t -= floor(t); /* once around: the ends are one colour */
  return (int)fmin(fmax(t * LEVELS, 0), LEVELS - 1);
}

static dv_colour level_colour(const dv_hue *hue, int level) {
  if (level == MISSING_LEVEL) return dv_colour_missing;
  if (!hue->map) return dv_colour_lines[0];
  return hue->map((level + 0.5) / LEVELS);
}

static size_t common_divisor(size_t a, size_t b) {
  while (b) {
    size_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* Steps of about `count` times the golden section visit every point once. In this order no sequence covers
 * another, and any number of first points is a uniform subset. */
static size_t golden_step(size_t count) {
  size_t step = (size_t)((double)count * 0.6180339887);
  if (step < 1) return 1;
  while (common_divisor(step, count) != 1) step++;
  return step;
}

/* A line of length 0 with round ends is a dot and needs far fewer bytes of SVG than an arc. Rounding to
 * quarters of a unit saves more. */
static void add_dot(cairo_t *cr, const dv_axes *axes, double across, double up) {
  double x, y;
  if (!dv_axes_place(axes, across, up, &x, &y)) return;
  if (x < axes->x || x > axes->x + axes->width || y < axes->y || y > axes->y + axes->height) return;
  x = round(4 * x) / 4;
  y = round(4 * y) / 4;
  cairo_move_to(cr, x, y);
  cairo_line_to(cr, x, y);
}

void dv_scatter_draw(cairo_t *cr, const dv_axes *axes, const double *across, const double *up,
                     const float *values, size_t count, const dv_hue *hue) {
  enum { LAYERS = 6 }; /* colours are drawn in turn, but no colour over all others */
  bool vector = cairo_surface_get_type(cairo_get_target(cr)) == CAIRO_SURFACE_TYPE_SVG;
  size_t most = vector ? MOST_POINTS_SVG : MOST_POINTS;
  size_t shown = count < most ? count : most, step = golden_step(count), first = 0;
  /* Dots cover a fixed share of the box until they become too small or too large to see well. */
  double area = 0.35 * axes->width * axes->height / ((double)shown + 1);
  double radius = fmin(fmax(sqrt(area / M_PI), 1.1), 3.2);
  cairo_save(cr);
  cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
  cairo_set_line_width(cr, 2 * radius);
  for (size_t layer = 0; layer < LAYERS; layer++) {
    size_t begin = layer * shown / LAYERS, end = (layer + 1) * shown / LAYERS, i = first;
    for (int level = 0; level <= MISSING_LEVEL; level++) {
      i = first;
      for (size_t k = begin; k < end; k++, i = (i + step) % count)
        if (level_of(hue, values, i) == level) add_dot(cr, axes, across[i], up[i]);
      dv_colour colour = level_colour(hue, level);
      cairo_set_source_rgba(cr, colour.red, colour.green, colour.blue, 0.85);
      if (cairo_has_current_point(cr)) cairo_stroke(cr);
    }
    first = i;
  }
  cairo_restore(cr);
}

/* From low to high upwards, or to the right when lying. */
static void draw_ramp(cairo_t *cr, double x, double y, double width, double height, const dv_hue *hue,
                      bool lying) {
  enum { BANDS = 64 };
  cairo_pattern_t *ramp = lying ? cairo_pattern_create_linear(x, 0, x + width, 0)
                                : cairo_pattern_create_linear(0, y + height, 0, y);
  for (int i = 0; i <= BANDS; i++) {
    double t = (double)i / BANDS;
    dv_colour c = hue->map(t);
    cairo_pattern_add_color_stop_rgb(ramp, t, c.red, c.green, c.blue);
  }
  cairo_set_source(cr, ramp);
  cairo_rectangle(cr, x, y, width, height);
  cairo_fill_preserve(cr);
  cairo_pattern_destroy(ramp);
  dv_colour_set(cr, dv_colour_ink);
  cairo_set_line_width(cr, 1);
  cairo_stroke(cr);
}

void dv_scatter_draw_bar(cairo_t *cr, const dv_axes *axes, const dv_hue *hue) {
  const double width = 16, x = axes->x + axes->width + 14;
  draw_ramp(cr, x, axes->y, width, axes->height, hue, false);
  dv_ticks ticks = hue->angle ? dv_scale_ticks_angle() : dv_scale_ticks(&hue->scale, 5);
  for (size_t i = 0; i < ticks.count; i++) {
    double y = axes->y + axes->height * (1 - dv_scale_place(&hue->scale, ticks.at[i].value));
    cairo_move_to(cr, x + width, y);
    cairo_rel_line_to(cr, 5, 0);
    dv_colour_set(cr, dv_colour_ink);
    cairo_stroke(cr);
    dv_text(cr, x + width + 9, y, (dv_text_style){.size = DV_TEXT_TICK, .longest = 38}, ticks.at[i].label);
  }
  dv_text_style style = {.size = DV_TEXT_LABEL, .across = 0.5, .upwards = true, .longest = axes->height};
  if (hue->label) dv_text(cr, x + width + 62, axes->y + axes->height / 2, style, hue->label);
}

void dv_scatter_draw_lying_bar(cairo_t *cr, double x, double y, double length, const dv_hue *hue) {
  const double thick = 12;
  draw_ramp(cr, x, y, length, thick, hue, true);
  dv_ticks ticks = hue->angle ? dv_scale_ticks_angle() : dv_axes_ticks(cr, &hue->scale, length, 6);
  for (size_t i = 0; i < ticks.count; i++) {
    double at = x + length * dv_scale_place(&hue->scale, ticks.at[i].value);
    cairo_move_to(cr, at, y + thick);
    cairo_rel_line_to(cr, 0, 5);
    dv_colour_set(cr, dv_colour_ink);
    cairo_stroke(cr);
    dv_text(cr, at, y + thick + 14, (dv_text_style){.size = DV_TEXT_TICK, .across = 0.5}, ticks.at[i].label);
  }
  dv_text_style style = {.size = DV_TEXT_LABEL, .across = 0.5, .longest = 1.2 * length};
  if (hue->label) dv_text(cr, x + length / 2, y + thick + 36, style, hue->label);
}

/* ---- Principal axes ---- */

static bool finite_row(const float *row, size_t n) {
  for (size_t j = 0; j < n; j++)
    if (!isfinite(row[j])) return false;
  return true;
}

/* Mean [n] and covariance [n][n] of the finite points; zeros when there are none. */
static void moments(const float *z, size_t points, size_t n, double *mean, double *covariance) {
  size_t count = 0;
  for (size_t i = 0; i < points; i++) {
    if (!finite_row(z + i * n, n)) continue;
    count++;
    for (size_t j = 0; j < n; j++) mean[j] += z[i * n + j];
  }
  if (!count) return;
  for (size_t j = 0; j < n; j++) mean[j] /= (double)count;
  for (size_t i = 0; i < points; i++) {
    const float *row = z + i * n;
    if (!finite_row(row, n)) continue;
    for (size_t j = 0; j < n; j++)
      for (size_t k = 0; k < n; k++)
        covariance[j * n + k] += (row[j] - mean[j]) * (row[k] - mean[k]) / (double)count;
  }
}

/* An eigenvector's sign is arbitrary: its largest entry is made positive, so that figures can be repeated. */
static double sign_of(const double *vector, size_t n) {
  double largest = 0;
  for (size_t j = 0; j < n; j++)
    if (fabs(vector[j]) > fabs(largest)) largest = vector[j];
  return largest < 0 ? -1 : 1;
}

/* Coordinates along a vector [n]. */
static void project(double *out, const float *z, size_t points, size_t n, const double *mean,
                    const double *vector) {
  double sign = sign_of(vector, n);
  for (size_t i = 0; i < points; i++) {
    double sum = 0;
    for (size_t j = 0; j < n; j++) sum += (z[i * n + j] - mean[j]) * vector[j];
    out[i] = isfinite(sum) ? sign * sum : NAN;
  }
}

static void rotate(dv_cloud *out, const float *z, size_t n, double *mean, double *matrix, double *vectors) {
  double total = 0, variance;
  moments(z, out->points, n, mean, matrix);
  dv_diagonalise(matrix, vectors, (int)n);
  for (size_t j = 0; j < n; j++) total += matrix[j * n + j];
  for (size_t k = 0; k < out->axes; k++) {
    size_t axis = (size_t)dv_take_largest(matrix, (int)n, &variance);
    project(out->at[k], z, out->points, n, mean, vectors + axis * n);
    out->share[k] = total > 0 ? fmax(variance, 0) / total : 0;
  }
}

dvbf_status dv_cloud_make(dv_cloud *out, const float *z, size_t points, size_t n, dvbf_error *error) {
  *out = (dv_cloud){.points = points, .axes = n < 3 ? n : 3};
  bool short_of_memory = false;
  for (size_t k = 0; k < out->axes; k++) {
    out->at[k] = dv_calloc(points, sizeof *out->at[k]);
    short_of_memory |= !out->at[k];
  }
  size_t square;
  double *work = dv_multiply(n, 2 * n + 1, &square) ? dv_calloc(square, sizeof *work) : NULL;
  dvbf_status status = DVBF_OK;
  if (short_of_memory || !work)
    status = dv_fail_memory(error, "projecting the latent space");
  else if (n > 2)
    rotate(out, z, n, work, work + n, work + n + n * n);
  else
    for (size_t i = 0; i < points * n; i++) out->at[i % n][i / n] = isfinite(z[i]) ? z[i] : NAN;
  dv_free(work);
  return status;
}

void dv_cloud_clear(dv_cloud *cloud) {
  for (size_t k = 0; k < DV_CLOUD_AXES; k++) dv_free(cloud->at[k]);
  memset(cloud, 0, sizeof *cloud);
}

/* ---- Latent samples ---- */

void dv_points_free(dv_points *p) {
  DV_FREE(p->columns, p->values, p->z);
  *p = (dv_points){0};
}

const dv_column *dv_points_column(const dv_points *p, const char *prefix) {
  for (size_t i = 0; i < p->n_truth; i++)
    if (!strncmp(p->columns[i].name, prefix, strlen(prefix))) return &p->columns[i];
  return NULL;
}

const dv_column *dv_points_named(const dv_points *p, const char *name) {
  for (size_t i = 0; i < p->n_truth; i++)
    if (!strcmp(p->columns[i].name, name)) return &p->columns[i];
  return NULL;
}

static dv_column *add_column(dv_points *p, const char *group, const char *name) {
  dv_column *column = &p->columns[p->n_columns++];
  column->group = group;
  snprintf(column->name, sizeof column->name, "%.60s", name);
  return column;
}

/* A state "sin..." with a state "cos..." of the same ending is an angle. */
static void add_angles(dv_points *p, const dvbf_data *data, size_t n_s) {
  char name[40];
  for (size_t i = 0; i < n_s; i++)
    for (size_t j = 0; j < n_s; j++) {
      const char *sine = data->state_names[i], *cosine = data->state_names[j];
      if (strncmp(sine, "sin", 3) != 0 || strncmp(cosine, "cos", 3) != 0 || strcmp(sine + 3, cosine + 3) != 0)
        continue;
      snprintf(name, sizeof name, "angle%s", sine + 3);
      dv_column *column = add_column(p, "ground truth", name);
      column->kind = DV_OF_ANGLE, column->at = i, column->cosine = j;
      column->cyclic = true;
    }
}

enum { MOST_SIGNAL_VALUES = 1 << 24 }; /* of signals */

static void list_columns(dv_points *p, const dvbf_data *data, const dvbf_sequences *s) {
  char label[64];
  size_t counts[] = {[DV_OF_STATE] = s->n_s,
                     [DV_OF_X] = s->n_x < DV_SIGNAL_COLUMNS ? s->n_x : DV_SIGNAL_COLUMNS,
                     [DV_OF_U] = s->n_u < DV_SIGNAL_INPUTS ? s->n_u : DV_SIGNAL_INPUTS,
                     [DV_OF_STEP] = 1};
  static const char *const groups[] = {"", "ground truth", "signals", "inputs", "time"};
  if (data->image_height || counts[DV_OF_X] > MOST_SIGNAL_VALUES / (p->count + 1)) counts[DV_OF_X] = 0;
  add_angles(p, data, s->n_s);
  for (int kind = DV_OF_STATE; kind <= DV_OF_STEP; kind++)
    for (size_t k = 0; k < counts[kind]; k++) {
      const char *name = kind == DV_OF_STATE ? data->state_names[k] : data->image_height ? "frame" : "step";
      if (kind == DV_OF_X || kind == DV_OF_U) dv_signal_label(label, data, kind == DV_OF_U, k), name = label;
      dv_column *column = add_column(p, groups[kind], name);
      column->kind = kind, column->at = k;
      column->cyclic = kind == DV_OF_STATE && !strncmp(name, "angle", 5);
      if (kind == DV_OF_STATE) p->n_truth = p->n_columns;
    }
}

/* At step t of sequence i, whose x is `x`. */
static float value_of(const dv_column *c, const dvbf_sequences *s, const float *x, size_t i, size_t t) {
  size_t row = dvbf_sequence_start(s, i) + t;
  switch (c->kind) {
  case DV_OF_ANGLE: return atan2f(s->state[row * s->n_s + c->at], s->state[row * s->n_s + c->cosine]);
  case DV_OF_STATE: return s->state[row * s->n_s + c->at];
  case DV_OF_X: return x[t * s->n_x + c->at];
  case DV_OF_U: return s->u[row * s->n_u + c->at];
  case DV_OF_STEP: break;
  }
  return (float)t + 1;
}

static dvbf_status gather_points(dv_points *p, const dvbf_data *data, const dvbf_sequences *s,
                                 const dv_paths *paths, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  size_t n = 0, width = p->n_z = paths->n_z;
  for (size_t i = 0; i < s->count; i++) p->count += dvbf_sequence_length(s, i);
  p->columns =
      dv_calloc(s->n_s * s->n_s + s->n_s + DV_SIGNAL_COLUMNS + DV_SIGNAL_INPUTS + 1, sizeof *p->columns);
  if (p->columns) list_columns(p, data, s);
  p->z = dv_calloc(p->count, width * sizeof *p->z);
  p->values = dv_calloc(p->count, p->n_columns * sizeof *p->values);
  if (!p->columns || !p->z || !p->values)
    return dv_fail(error, DVBF_MEMORY, "out of memory for %zu latent samples", p->count);
  bool signals = false;
  for (size_t k = 0; k < p->n_columns; k++) {
    p->columns[k].values = p->values + k * p->count;
    signals |= p->columns[k].kind == DV_OF_X;
  }
  for (size_t i = 0; i < s->count && !status; i++) {
    size_t length = dvbf_sequence_length(s, i);
    dvbf_sequences one = {0};
    if (signals) status = dvbf_sequences_copy(&one, s, i, 1, error); /* x may have to be read from its file */
    memcpy(p->z + n * width, paths->z + i * s->steps * width, length * width * sizeof *p->z);
    for (size_t t = 0; t < length && !status; t++, n++)
      for (size_t k = 0; k < p->n_columns; k++)
        p->columns[k].values[n] = value_of(&p->columns[k], s, one.x, i, t);
    dvbf_sequences_free(&one);
  }
  return status;
}

dvbf_status dv_points_sample(dv_points *out, const dvbf_model *model, const dvbf_data *data,
                             const dvbf_sequences *sequences, const dv_path_options *options,
                             dvbf_error *error) {
  dv_paths *paths = NULL;
  *out = (dv_points){0};
  dvbf_status status = dv_paths_of(&paths, model, sequences, options, error);
  if (!status) status = gather_points(out, data, sequences, paths, error);
  dv_paths_free(paths);
  return status;
}

/* ---- Views ---- */

/* out[i] = axis . z[i] for z [points][n]. */
static void project_on(double *out, const double *axis, const float *z, size_t points, size_t n) {
  for (size_t i = 0; i < points; i++) {
    out[i] = 0;
    for (size_t j = 0; j < n; j++) out[i] += axis[j] * z[i * n + j];
  }
}

static void label(char *out, size_t size, const dv_reading *r, const char *coordinate) {
  snprintf(out, size, "%s%s", r->fitted ? "z along " : coordinate, r->fitted ? r->name : "");
}

static void against_truth(dv_view *out, const float *z, const dv_reading *up) {
  for (size_t i = 0; i < out->points; i++) {
    out->across[i] = z[i];
    out->up[i] = up->truth ? up->truth[i] : (double)i + 1;
  }
  snprintf(out->across_label, sizeof out->across_label, "z");
  snprintf(out->up_label, sizeof out->up_label, "%s", up->truth ? up->name : "sample");
}

dvbf_status dv_view_make(dv_view *out, const float *z, size_t points, size_t n_z, const dv_reading *across,
                         const dv_reading *up, dvbf_error *error) {
  *out = (dv_view){
      .points = points, .across = dv_calloc(points, sizeof(double)), .up = dv_calloc(points, sizeof(double))};
  double *axes = dv_calloc(n_z, 2 * sizeof *axes);
  dvbf_status status = DVBF_OK;
  if (!out->across || !out->up || !axes) {
    status = dv_fail_memory(error, "projecting latent samples");
  } else if (n_z == 1) {
    against_truth(out, z, up);
  } else {
    dv_view_plane(axes, n_z, up, across);
    project_on(out->up, axes, z, points, n_z);
    project_on(out->across, axes + n_z, z, points, n_z);
    label(out->across_label, sizeof out->across_label, across, up->fitted ? "z, orthogonal" : "z₂");
    label(out->up_label, sizeof out->up_label, up, "z₁");
  }
  dv_free(axes);
  return status;
}

void dv_view_clear(dv_view *view) {
  DV_FREE(view->across, view->up);
  memset(view, 0, sizeof *view);
}

void dv_view_draw(cairo_t *cr, const dv_view *view, double x, double y, double width, double height) {
  dv_axes axes = {.x = x,
                  .y = y,
                  .width = width,
                  .height = height,
                  .across = dv_figure_scale(view->across, view->points),
                  .up = dv_figure_scale(view->up, view->points),
                  .across_label = view->across_label,
                  .up_label = view->up_label,
                  .up_room = DV_VIEW_LEFT - 12,
                  .ticks = (size_t)fmax(3, fmin(width, height) / 36)};
  dv_axes_draw_back(cr, &axes);
  dv_scatter_draw(cr, &axes, view->across, view->up, view->values, view->points, &view->hue);
  dv_axes_draw_frame(cr, &axes);
}

/* ---- Regressions ---- */

dvbf_status dv_reading_make(dv_reading *out, const char *name, const float *z, size_t points, size_t n_z,
                            const float *truth, size_t stride, dvbf_error *error) {
  double log_likelihood;
  *out = (dv_reading){.name = name,
                      .direction = dv_calloc(n_z + 1, sizeof(double)),
                      .truth = dv_calloc(points, sizeof(double)),
                      .predicted = dv_calloc(points, sizeof(double))};
  if (!out->direction || !out->truth || !out->predicted)
    return dv_fail_memory(error, "reading latent samples");
  for (size_t i = 0; i < points; i++) out->truth[i] = truth[i * stride];
  if (points < n_z + 2) return DVBF_OK;
  dvbf_status status =
      dv_regress(z, points, n_z, truth, stride, &out->r2, &log_likelihood, out->direction, error);
  if (status) return status;
  out->fitted = true;
  project_on(out->predicted, out->direction, z, points, n_z);
  for (size_t i = 0; i < points; i++) out->predicted[i] += out->direction[n_z];
  return DVBF_OK;
}

void dv_readings_clear(dv_reading *readings, size_t count) {
  for (size_t k = 0; k < count; k++) DV_FREE(readings[k].direction, readings[k].truth, readings[k].predicted);
}

dvbf_status dv_pendulum_read(dv_reading out[DV_READINGS], const float *z, size_t points, size_t n_z,
                             const float *angle, const float *velocity, dvbf_error *error) {
  static const char *const names[] = {"sin φ", "cos φ"};
  float *circle = dv_calloc(points, 2 * sizeof *circle);
  dvbf_status status = circle ? DVBF_OK : dv_fail_memory(error, "reading latent samples");
  memset(out, 0, DV_READINGS * sizeof *out);
  for (size_t i = 0; !status && angle && i < points; i++)
    circle[2 * i] = sinf(angle[i]), circle[2 * i + 1] = cosf(angle[i]);
  for (size_t k = DV_SINE; k <= DV_COSINE && angle && !status; k++)
    status = dv_reading_make(&out[k], names[k], z, points, n_z, circle + k, 2, error);
  if (!status && velocity)
    status = dv_reading_make(&out[DV_VELOCITY], "velocity", z, points, n_z, velocity, 1, error);
  dv_free(circle);
  return status;
}

/* ---- Planes of two regressions ---- */

/* Makes `axis` a unit vector that is orthogonal to `other` (may be NULL); false if it is almost parallel. */
static bool normalise(double *axis, const double *other, size_t n) {
  double length = sqrt(dv_dot(axis, axis, n));
  if (!isfinite(length) || length < 1e-150) return false;
  for (size_t j = 0; j < n; j++) axis[j] /= length;
  if (!other) return true;
  double share = dv_dot(axis, other, n);
  for (size_t j = 0; j < n; j++) axis[j] -= share * other[j];
  length = sqrt(dv_dot(axis, axis, n));
  if (length < 1e-3) return false;
  for (size_t j = 0; j < n; j++) axis[j] /= length;
  return true;
}

/* The coordinate axis with the smallest component along `other`. */
static void take_coordinate(double *axis, const double *other, size_t n) {
  size_t least = 0;
  for (size_t j = 1; other && j < n; j++)
    if (fabs(other[j]) < fabs(other[least])) least = j;
  for (size_t j = 0; j < n; j++) axis[j] = j == least;
  normalise(axis, other, n);
}

static void take(double *axis, const dv_reading *reading, const double *other, size_t n) {
  if (reading->direction) memcpy(axis, reading->direction, n * sizeof *axis);
  if (!reading->direction || !normalise(axis, other, n)) take_coordinate(axis, other, n);
}

void dv_view_plane(double *axes, size_t n, const dv_reading *first, const dv_reading *second) {
  take(axes, first, NULL, n);
  take(axes + n, second, axes, n);
}
