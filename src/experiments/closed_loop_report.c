/* Report of closed loops (dv_loop_show): images of true states and of a model's beliefs as strip and video,
 * an HTML page, and control.json. */
#include "experiments/closed_loop.h"

#include "base/error.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "control/model_derivatives.h"
#include "report/drawing.h"
#include "report/json.h"

#include <math.h>
#include <string.h>

enum { MOST_SHOWN = 10, PICTURES = 3, MOST_FRAMES = 120 }; /* closed loops of the page; frames of the video */

typedef struct pictures {
  size_t count;         /* closed loops */
  float *belief, *plan; /* [count][steps][n_x] */
} pictures;

/* ---- Images ---- */

static dvbf_status new_looks(dv_emission_jacobian **out, void **memory, const dvbf_model *m,
                             dvbf_error *error) {
  dv_workspace room = {0};
  dvbf_status status = dv_emission_jacobian_lay_out(out, &room, m, error);
  if (status) return status;
  *memory = dv_calloc_aligned(room.used, 1);
  if (!*memory) return dv_fail_memory(error, "drawing closed loops");
  room = (dv_workspace){.at = *memory};
  return dv_emission_jacobian_lay_out(out, &room, m, error);
}

/* x [n_x] of z [n_z], in units of the data. */
static void draw_state(dv_emission_jacobian *looks, const dvbf_model *m, const float *z, float *x,
                       double *scratch) {
  double *state = scratch, *mean = scratch + m->n_z;
  bool known = false; /* before the first belief z is 0, and the image black */
  for (int i = 0; i < m->n_z; i++) state[i] = (double)z[i], known = known || state[i] != 0;
  if (!known) return;
  dv_emission_jacobian_at(looks, state, mean);
  for (int i = 0; i < m->n_x; i++) {
    double value = mean[i] / (double)m->x.scale[i] + (double)m->x.shift[i];
    x[i] = isfinite(value) ? (float)fmax(0, fmin(1, value)) : 0;
  }
}

static dvbf_status draw_beliefs(const pictures *p, const dv_loop_shown *s, dvbf_error *error) {
  const dv_episodes *e = s->episodes;
  dv_emission_jacobian *looks = NULL;
  void *memory = NULL;
  double *scratch = dv_calloc(e->n_z + e->n_x, sizeof *scratch);
  dvbf_status status = scratch ? DVBF_OK : dv_fail_memory(error, "drawing closed loops");
  if (!status) status = new_looks(&looks, &memory, s->model, error);
  for (size_t i = 0; i < p->count * e->steps && !status; i++) {
    draw_state(looks, s->model, e->z + i * e->n_z, p->belief + i * e->n_x, scratch);
    draw_state(looks, s->model, e->ahead + i * e->n_z, p->plan + i * e->n_x, scratch);
  }
  DV_FREE(scratch, memory);
  return status;
}

static dvbf_status draw_pictures(pictures *out, const dv_loop_shown *s, dvbf_error *error) {
  const dv_episodes *e = s->episodes;
  size_t count = e->count < MOST_SHOWN ? e->count : MOST_SHOWN, all = count * e->steps;
  *out = (pictures){.count = count,
                    .belief = dv_calloc(all, e->n_x * sizeof(float)),
                    .plan = dv_calloc(all, e->n_x * sizeof(float))};
  if (!out->belief || !out->plan) return dv_fail_memory(error, "drawing closed loops");
  if (s->model) return draw_beliefs(out, s, error);
  for (size_t i = 0; i < all; i++) {
    dv_true_state_draw(s->truth, e->z + i * e->n_z, out->belief + i * e->n_x);
    dv_true_state_draw(s->truth, e->ahead + i * e->n_z, out->plan + i * e->n_x);
  }
  return DVBF_OK;
}

static dvbf_status write_strip(const dv_loop_shown *s, const pictures *p, dvbf_error *error) {
  const dv_episodes *e = s->episodes;
  size_t size = (size_t)s->system->data.size;
  dv_path path;
  dvbf_strip_row rows[PICTURES] = {
      {"camera", e->x, 0}, {"belief", p->belief, 0}, {"end of the plan", p->plan, 0}};
  dvbf_figure_strips figure = {.title = "A closed loop",
                               .frames = e->steps,
                               .height = size,
                               .width = size,
                               .rows = PICTURES,
                               .row = rows,
                               .channels = (size_t)s->system->data.channels};
  dv_join(path, s->asked->folder, "control");
  return dvbf_draw_strips(&figure, path, error);
}

static dvbf_status write_video(const dv_loop_shown *s, const pictures *p, dvbf_error *error) {
  const dv_episodes *e = s->episodes;
  dv_path path;
  const float *rows[PICTURES] = {e->x, p->belief, p->plan};
  dv_video video = {.frames = e->steps < MOST_FRAMES ? e->steps : MOST_FRAMES,
                    .size = (size_t)s->system->data.size,
                    .channels = (size_t)s->system->data.channels,
                    .columns = PICTURES,
                    .images = rows,
                    .seconds = s->system->dt};
  dv_join(path, s->asked->folder, "control.apng");
  return dv_apng_write(path, &video, error);
}

/* ---- Page ---- */

static dvbf_status add_table(dvbf_page *page, const dv_loop_shown *s, dvbf_error *error) {
  const dvbf_loop_result *o = s->outcome;
  enum { LINES = 9, TABLE_COLUMNS = 2 };
  char text[LINES][64];
  const char *names[LINES] = {"",
                              "steps in the goal region",
                              "closed loops that reached it",
                              "in it throughout the second half",
                              "in it throughout the last quarter",
                              "mean return",
                              "microseconds of a step: median",
                              "99 % are below",
                              "training sequences"};
  const char *cells[LINES * TABLE_COLUMNS];
  dv_print(text[0], sizeof text[0], "%zu closed loops of %zu steps", o->episodes, o->steps);
  dv_result_text(text[1], "%.1f %%", 100 * o->share);
  dv_print(text[2], sizeof text[2], "%zu", o->reached);
  dv_print(text[3], sizeof text[3], "%zu", o->held);
  dv_print(text[4], sizeof text[4], "%zu", o->recovered);
  dv_result_text(text[5], "%.1f", o->value);
  dv_result_text(text[6], "%.0f", o->median);
  dv_result_text(text[7], "%.0f", o->late);
  dv_print(text[8], sizeof text[8], "%zu of %zu frames", o->sequences, o->frames);
  for (size_t i = 0; i < LINES; i++) cells[2 * i] = names[i], cells[2 * i + 1] = text[i];
  return dvbf_page_table(page, &(dvbf_table){.rows = LINES, .columns = TABLE_COLUMNS, .cells = cells}, error);
}

static dvbf_status add_film(dvbf_page *page, const dv_loop_shown *s, const pictures *p, dvbf_error *error) {
  size_t size = (size_t)s->system->data.size;
  dvbf_film_row rows[PICTURES] = {
      {"camera", s->episodes->x, 0}, {"belief", p->belief, 0}, {"end of the plan", p->plan, 0}};
  dvbf_film film = {.caption = "Closed loops: what the camera shows, what the controller believes it sees, "
                               "and where its current plan ends.",
                    .sequences = p->count,
                    .frames = s->episodes->steps,
                    .height = size,
                    .width = size,
                    .rows = PICTURES,
                    .row = rows,
                    .black = 0,
                    .white = 1,
                    .channels = (size_t)s->system->data.channels};
  return dvbf_page_film(page, &film, error);
}

static dvbf_status add_space(dvbf_page *page, const dv_loop_shown *s, const pictures *p, dvbf_error *error) {
  const dv_episodes *e = s->episodes;
  const dvbf_space_column columns[] = {
      {.name = s->system->goal.measure, .values = e->distance, .cyclic = s->system->goal.angle >= 0},
      {.name = "velocity", .values = e->speed},
      {.name = "control", .values = e->u, .stride = e->n_u, .group = "inputs"},
      {.name = "cost of the plan", .values = e->cost, .group = "plan"}};
  dvbf_space space = {.caption = "Beliefs of these closed loops in the latent space.",
                      .points = p->count * e->steps,
                      .n_z = e->n_z,
                      .z = e->z,
                      .columns = sizeof columns / sizeof *columns,
                      .column = columns};
  return dvbf_page_space(page, &space, error);
}

static dvbf_status write_loop_page(const dv_loop_shown *s, const pictures *p, dvbf_error *error) {
  dvbf_page *page = NULL;
  dv_path path;
  dvbf_status status = dvbf_page_new(&page, "Control from pictures", error);
  if (!status) status = dvbf_page_heading(page, 1, "Closed loops", error);
  if (!status) status = add_table(page, s, error);
  if (!status) status = add_film(page, s, p, error);
  if (!status) status = dvbf_page_heading(page, 1, "Latent space", error);
  if (!status) status = add_space(page, s, p, error);
  if (!status) status = dvbf_page_heading(page, 1, "Settings", error);
  if (!status) status = dvbf_page_settings(page, "System", s->asked->system, error);
  if (!status) status = dvbf_page_settings(page, "Controller", s->control, error);
  if (!status) status = dvbf_page_settings(page, "Closed loops", s->asked->loop, error);
  dv_join(path, s->asked->folder, "control.html");
  if (!status) status = dvbf_page_write(page, path, error);
  dvbf_page_free(page);
  return status;
}

/* ---- Numbers ---- */

static dvbf_status write_json(const dv_loop_shown *s, dvbf_error *error) {
  const dvbf_loop_result *o = s->outcome;
  dv_path path;
  char *text = NULL;
  json_t *json = json_pack(
      "{s:I, s:I, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "episodes",
      (json_int_t)o->episodes, "steps", (json_int_t)o->steps, "sequences", (json_int_t)o->sequences, "frames",
      (json_int_t)o->frames, "training_seconds", dv_json_number(o->seconds), "share",
      dv_json_number(o->share), "reached", (json_int_t)o->reached, "held", (json_int_t)o->held, "recovered",
      (json_int_t)o->recovered, "return", dv_json_number(o->value), "median_us", dv_json_number(o->median),
      "p99_us", dv_json_number(o->late), "share_of", dv_json_numbers(o->share_of, o->episodes), "return_of",
      dv_json_numbers(o->value_of, o->episodes));
  dvbf_status status = dv_json_text(&text, json, error);
  dv_join(path, s->asked->folder, "control.json");
  if (!status) status = dv_json_write(path, text, error);
  dvbf_text_free(text);
  return status;
}

dvbf_status dv_loop_show(const dv_loop_shown *s, dvbf_error *error) {
  pictures p = {0};
  dvbf_status status = draw_pictures(&p, s, error);
  if (!status) status = write_json(s, error);
  if (!status) status = write_strip(s, &p, error);
  if (!status) status = write_video(s, &p, error);
  if (!status) status = write_loop_page(s, &p, error);
  DV_FREE(p.belief, p.plan);
  return status;
}
