/* The target .c: a model or committee as one C file and its header (dv_c_write, dv_c_plant_write): functions
 * from the parts of the model, constants, and templates for what a filter does around them. Members of a
 * committee are models with prefixes PREFIX_1, PREFIX_2, ... */
#include "export/c_file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/test_vectors.h"
#include "math/kalman.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The functions of a model. Names that begin with "sampled" are of the filter with samples. */
typedef struct function {
  const char *name;
  dv_part_name of;
  bool sampled, planning, slopes; /* whom it is for; whether it has derivatives */
  dv_derivation how;
} function;

#define BY_NOISE .quiet = true, .by = {[DV_SLOT_NOISE] = true}
#define BY_Z_NOISE .quiet = true, .by = {[DV_SLOT_Z] = true, [DV_SLOT_NOISE] = true}
#define BY_Z_U .quiet = true, .by = {[DV_SLOT_Z] = true, [DV_SLOT_U] = true}
#define BY_Z_NOW .mean_only = true, .by = {[DV_SLOT_Z] = true, [DV_SLOT_NOW] = true}
static const function functions[] = {
    {"first", DV_FIRST, false, false, false, {BY_NOISE}},
    {"advance", DV_ADVANCE, false, false, false, {BY_Z_NOISE}},
    {"move", DV_MOVE, false, false, false, {BY_Z_NOISE}},
    {"emission", DV_EMISSION, false, false, false, {.by = {[DV_SLOT_Z] = true}}},
    {"sampled_first", DV_FIRST, true, false, false, {0}},
    {"sampled_advance", DV_ADVANCE, true, false, false, {0}},
    {"sampled_move", DV_MOVE, true, false, false, {0}},
    {"sampled_emission", DV_EMISSION, true, false, false, {0}},
    {"planned", DV_MOVE, false, true, false, {.quiet = true}},
    {"planned_slopes", DV_MOVE, false, true, true, {BY_Z_U}},
    {"expected", DV_EMISSION, false, true, false, {.mean_only = true}},
    {"expected_slopes", DV_EMISSION, false, true, true, {BY_Z_NOW}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct model_writer {
  const dvbf_model *model;
  const dv_export_settings *settings;
  dv_parts parts;
  dv_c_file file;
  dv_words words;
  dv_text body;
  dv_state_space system;
  dv_c_source *out;
  double *start; /* [n_z] first state of a plant, which simulates and does not filter; else NULL */
} model_writer;

static bool exact(const model_writer *w) {
  return w->model->type->exact_system;
}

/* States of an exact filter keep to a range if nothing was observed. */
static bool limits(const model_writer *w) {
  return exact(w) && dv_model_range(w->model);
}

static bool deviates(const model_writer *w) {
  return w->settings->deviation || exact(w);
}

static bool samples(const model_writer *w) {
  return w->settings->samples > 0 && !exact(w);
}

static bool moves(const model_writer *w) {
  return w->parts.move.code;
}

/* x depends on the control of its own step. */
static bool direct(const model_writer *w) {
  return w->model->n_u && dv_code_part_reads(&w->parts.emission, DV_SLOT_NOW);
}

static bool reads_seen(const model_writer *w) {
  return dv_code_part_reads(&w->parts.first, DV_SLOT_SEEN) ||
         dv_code_part_reads(&w->parts.advance, DV_SLOT_SEEN);
}

/* ---- Functions ---- */

static bool is_wanted(const model_writer *w, const function *f) {
  if (f->of == DV_MOVE && !moves(w)) return false;
  if (f->of == DV_EMISSION && !moves(w) && !f->planning) return false;
  if (f->planning || w->start) return f->planning;
  return f->sampled ? samples(w) : !exact(w);
}

static dvbf_status write_function(model_writer *w, const function *f, dvbf_error *error) {
  dv_derivation how = f->how;
  if (!f->planning && !f->sampled && !deviates(w)) {
    memset(how.by, 0, sizeof how.by);
    how.mean_only = true;
  }
  if (!direct(w)) how.by[DV_SLOT_NOW] = false;
  how.rows = w->file.constants.format == DV_WEIGHTS_FLOAT;
  dv_code_part part = {0};
  dvbf_status status = dv_code_part_derive(&part, &w->parts.all[f->of], &how, error);
  if (!status) {
    dv_c_part_write(&w->body, &w->file, &part, f->name);
    dv_c_part_call(dv_words_text(&w->words, f->name), &w->file, &part, f->name);
    if (f->of == DV_ADVANCE && !f->sampled) w->out->multiplications += dv_code_part_multiplications(&part);
  }
  dv_code_part_clear(&part);
  return status;
}

/* ---- Template words ---- */

static void set_whole(model_writer *w, const char *name, size_t number) {
  dv_words_set(&w->words, name, "%zu", number);
}

static size_t at_least_1(size_t n) {
  return n ? n : 1;
}

static void set_sizes(model_writer *w) {
  const dvbf_model *m = w->model;
  const dv_parts *p = &w->parts;
  size_t n_z = (size_t)m->n_z, noise = p->advance.slot[DV_SLOT_NOISE].size,
         start = p->first.slot[DV_SLOT_NOISE].size, move = p->move.slot[DV_SLOT_NOISE].size;
  set_whole(w, "n_x", (size_t)m->n_x);
  set_whole(w, "n_u", (size_t)m->n_u);
  set_whole(w, "n_u_room", at_least_1((size_t)m->n_u));
  set_whole(w, "n_z", n_z);
  set_whole(w, "n_w", noise);
  if (samples(w)) set_whole(w, "samples", (size_t)w->settings->samples);
  set_whole(w, "frames", exact(w) ? 1 : (size_t)p->frames);
  set_whole(w, "advance_directions", n_z + noise);
  set_whole(w, "move_directions", n_z + move);
  set_whole(w, "first_directions", at_least_1(start));
  set_whole(w, "advance_noise", at_least_1(noise));
  set_whole(w, "move_noise", at_least_1(move));
  set_whole(w, "first_noise", at_least_1(start));
  set_whole(w, "advance_stream", (size_t)p->advance.noise_number);
  set_whole(w, "first_stream", (size_t)p->first.noise_number);
}

static void set_deviation(dv_words *words, bool on) {
  dv_words_turn(words, "deviation", on);
  dv_words_set(words, "x_std_argument", "%s", on ? ", @_real *x_std" : "");
}

static void set_kind(dv_words *words, bool sampled) {
  dv_words_turn(words, "sampled", sampled);
  dv_words_set(words, "kind", "%s", sampled ? "sampled_" : "");
  dv_words_set(words, "struct", sampled ? "sampled" : "state");
}

static void set_conditions(model_writer *w) {
  bool controls = w->model->n_u, through = dv_model_feeds_through(w->model);
  dv_words *words = &w->words;
  const char *scaled = controls ? "scaled" : "0";
  dv_words_turn(words, "controls", controls);
  dv_words_turn(words, "feedthrough", through);
  dv_words_turn(words, "direct", direct(w));
  dv_words_turn(words, "seen", reads_seen(w));
  set_deviation(words, deviates(w));
  dv_words_turn(words, "moves", moves(w));
  dv_words_turn(words, "waits", dv_model_recognises_from(w->model) > 1);
  dv_words_turn(words, "limits", limits(w));
  dv_words_turn(words, "exact", exact(w));
  dv_words_turn(words, "plant", w->start);
  dv_words_turn(words, "wide", w->file.wide);
  dv_words_turn(words, "plain", w->file.plain);
  dv_words_set(words, "step_u", "%s", through ? "s->u + (@_FRAMES - 1) * @_N_U" : scaled);
  dv_words_set(words, "predict_u", "%s", through ? "before" : scaled);
  dv_words_set(words, "u_at", controls ? "s->u + t * @_N_U" : "0");
  dv_words_set(words, "u_before", controls ? "s->u + (t - 1) * @_N_U" : "0");
  dv_words_set(words, "real", "%s", w->file.wide ? "double" : "float");
  dv_words_set(words, "double_sqrt", w->file.plain ? "@_double_sqrt" : "sqrt");
  dv_words_set(words, "double_fabs", w->file.plain ? "@_double_fabs" : "fabs");
  static const char *const names[] = {"exp", "log", "sqrt", "tanh", "sin", "cos"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    dv_words_set(words, names[i], "%s%s%s", w->file.plain ? "@_" : "", names[i],
                 w->file.plain || w->file.wide ? "" : "f");
}

static void set_uses(model_writer *w) {
  static const char *const words[DVBF_SIZE_OF + 1] = {
      [DVBF_LARGER] = "use_larger",      [DVBF_SMALLER] = "use_smaller", [DVBF_EXP_OF] = "use_exp",
      [DVBF_LOG_OF] = "use_log",         [DVBF_SQRT_OF] = "use_sqrt",    [DVBF_TANH_OF] = "use_tanh",
      [DVBF_SIGMOID_OF] = "use_sigmoid", [DVBF_SIN_OF] = "use_sin",      [DVBF_SIZE_OF] = "use_fabs"};
  bool *uses = w->file.functions, *rounded = w->file.products[DV_WEIGHTS_BFLOAT16];
  if (samples(w)) uses[DVBF_LOG_OF] = uses[DVBF_SQRT_OF] = uses[DVBF_SIN_OF] = true;
  if (deviates(w) && !exact(w)) uses[DVBF_SQRT_OF] = true;
  if (limits(w)) uses[DVBF_TANH_OF] = true;
  uses[DVBF_SIN_OF] |= uses[DVBF_COS_OF];
  uses[DVBF_EXP_OF] |= uses[DVBF_SIGMOID_OF] || uses[DVBF_TANH_OF];
  for (int i = 0; i <= DVBF_SIZE_OF; i++)
    if (words[i]) dv_words_turn(&w->words, words[i], uses[i]);
  dv_words_turn(&w->words, "use_double_sqrt", exact(w) && w->file.plain);
  dv_words_turn(&w->words, "use_bfloat16", rounded[0] || rounded[1]);
}

/* ---- Constants ---- */

/* Scaling comes first, so that the emission finds it by its name. */
static void take_scaling(model_writer *w) {
  const dvbf_model *m = w->model;
  struct {
    const char *name;
    const float *values;
    int n;
  } all[] = {{"x_shift", m->x.shift, m->n_x},
             {"x_scale", m->x.scale, m->n_x},
             {"u_shift", m->u.shift, m->n_u},
             {"u_scale", m->u.scale, m->n_u}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (all[i].n)
      dv_constants_add(&w->file.constants, all[i].values, 1, (size_t)all[i].n, false, all[i].name);
}

/* A matrix of the system, in double: they are not rounded to float once more. */
static void put_doubles(dv_text *t, const model_writer *w, const char *name, const double *values, int n) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s_system_%s", w->file.prefix, name);
  if (n) dv_text_put(t, "\n");
  if (n) dv_text_array(t, "double", whole, (dv_array){.reals = values}, (size_t)n, 17);
}

static void put_system(dv_text *t, const model_writer *w) {
  const dv_state_space *s = &w->system;
  int n_z = s->n_z, n_u = s->n_u, n_x = s->n_x;
  put_doubles(t, w, "a", s->a, n_z * n_z);
  put_doubles(t, w, "b", s->b, n_z * n_u);
  put_doubles(t, w, "h", s->h, n_x * n_z);
  put_doubles(t, w, "d", s->d, dv_model_feeds_through(w->model) ? n_x * n_u : 0);
  put_doubles(t, w, "shift_z", s->shift_z, n_z);
  put_doubles(t, w, "shift_x", s->shift_x, n_x);
  put_doubles(t, w, "q", s->q, n_z * n_z);
  put_doubles(t, w, "r", s->r, n_x * n_x);
  put_doubles(t, w, "s", s->s, n_z * n_x);
  put_doubles(t, w, "mean", s->mean, n_z);
  put_doubles(t, w, "cov", s->cov, n_z * n_z);
  if (!limits(w)) return;
  double range[2 * DV_MOST_LATENT];
  for (int i = 0; i < 2 * n_z; i++) range[i] = (double)dv_model_range(w->model)[i];
  put_doubles(t, w, "range", range, 2 * n_z);
}

/* ---- Products ---- */

static void put_products(dv_text *t, model_writer *w) {
  static const struct {
    const char *suffix, *type;
  } formats[] = {{"", "float"}, {"_bfloat16", "uint16_t"}, {"_int8", "int8_t"}};
  dv_put(t, vectors_c_in, &w->words);
  for (int f = 0; f < 3; f++) {
    dv_words_set(&w->words, "suffix", "%s", formats[f].suffix);
    dv_words_set(&w->words, "type", "%s", formats[f].type);
    dv_words_turn(&w->words, "bfloat16", f == DV_WEIGHTS_BFLOAT16);
    dv_words_turn(&w->words, "int8", f == DV_WEIGHTS_INT8);
    dv_words_set(&w->words, "factor_argument", "%s", f == DV_WEIGHTS_INT8 ? ", const float *factor" : "");
    if (w->file.products[f][0]) dv_put(t, product_c_in, &w->words);
    if (w->file.products[f][1]) dv_put(t, narrow_c_in, &w->words);
  }
}

/* ---- File ---- */

/* Those that the functions take for constants, and those of a linear system. */
static dvbf_status check_finite(const model_writer *w, dvbf_error *error) {
  const dvbf_model *m = w->model;
  dvbf_status status = dv_check_finite(&m->log_sigma_floor, 1, error);
  if (!status) status = dv_constants_check(&w->file.constants, error);
  if (!status && exact(w))
    status = dv_check_finite(w->system.a, dv_system_size(m->n_z, m->n_u, m->n_x), error);
  return status;
}

/* Bytes of the struct, but for padding. */
static size_t state_size(const model_writer *w) {
  size_t n_z = (size_t)w->model->n_z, n_x = (size_t)w->model->n_x, n_u = (size_t)w->model->n_u;
  size_t frames = (size_t)w->parts.frames, real = w->file.wide ? sizeof(double) : sizeof(float);
  if (exact(w))
    return sizeof(double) * (2 * n_z + 2 * n_z * n_z + 2 * n_x + n_x * n_x + 2 * n_z * n_x) +
           sizeof(int) * (3 + n_x);
  size_t x = frames * (n_x * (reads_seen(w) ? 2 : 1) + 1 + n_u);
  return sizeof(int) + real * (n_z + (deviates(w) ? n_z * n_z : 0) + x);
}

static dvbf_status prepare(model_writer *w, dvbf_error *error) {
  dvbf_status status = dv_parts_init(&w->parts, w->model, w->start, error);
  if (!status && exact(w)) status = dv_exact_system_new(&w->system, w->model, error);
  if (status) return status;
  w->file.constants.format = (int)w->settings->weights;
  w->file.wide = w->settings->real == DV_REAL_DOUBLE;
  w->file.plain = !w->settings->libm;
  take_scaling(w);
  set_sizes(w);
  set_conditions(w);
  for (int i = 0; i < FUNCTIONS && !status; i++)
    if (is_wanted(w, &functions[i])) status = write_function(w, &functions[i], error);
  set_uses(w);
  if (!status) status = check_finite(w, error);
  return status || !w->start ? status : dv_parts_start(&w->parts, w->start, error);
}

static void put_first_z(dv_text *t, const model_writer *w) {
  dv_text_put(t, "\nstatic const double %s_first_z[%d] = {", w->file.prefix, w->model->n_z);
  for (int i = 0; i < w->model->n_z; i++) dv_text_put(t, "%s%.17g", i ? ", " : "", w->start[i]);
  dv_text_put(t, "};\n");
}

static void put_filter(dv_text *t, model_writer *w, bool sampled) {
  set_kind(&w->words, sampled);
  dv_words_set(&w->words, "all_z", sampled ? "@_SAMPLES * @_N_Z" : "@_N_Z");
  dv_put(t, filter_c_in, &w->words);
}

static void write_code(model_writer *w) {
  dv_text *t = &w->out->code;
  dv_constants_write(t, &w->file.constants, w->file.prefix);
  if (w->start)
    put_first_z(t, w);
  else if (exact(w))
    put_system(t, w);
  dv_text_put(t, "\n");
  dv_put(t, functions_c_in, &w->words);
  put_products(t, w);
  if (!w->start) dv_text_put(t, "/* ---- The model ---- */\n\n");
  dv_text_join(t, &w->body);
  if (w->start)
    dv_put(t, plant_c_in, &w->words);
  else if (exact(w))
    dv_put(t, kalman_c_in, &w->words);
  else
    put_filter(t, w, false);
  dv_text_put(t, "\n");
  dv_put(t, derivatives_c_in, &w->words);
  if (!samples(w)) return;
  dv_text_put(t, "\n");
  dv_put(t, samples_c_in, &w->words);
  put_filter(t, w, true);
}

static void add_facts(model_writer *w) {
  dv_c_source *f = w->out;
  int frames = exact(w) ? 1 : w->parts.frames;
  f->constants += dv_constants_bytes(&w->file.constants);
  if (exact(w)) f->constants += sizeof(double) * dv_system_size(w->model->n_z, w->model->n_u, w->model->n_x);
  f->state += state_size(w);
  if (w->file.most_room > f->stack) f->stack = w->file.most_room;
  if (frames > f->frames) f->frames = frames;
  f->direct |= direct(w);
}

/* Adds one model to the code, without the beginning of the file, and to the facts; its header goes to
 * `header`. */
static dvbf_status write_model(dv_c_source *out, dv_text *header, const dvbf_model *m, const char *prefix,
                               const dv_export_settings *s, double *start, dvbf_error *error) {
  model_writer w = {
      .model = m, .settings = s, .file.prefix = prefix, .words.prefix = prefix, .out = out, .start = start};
  dvbf_status status = prepare(&w, error);
  if (!status) {
    write_code(&w);
    dv_put(header, header_h_in, &w.words);
    dv_put(header, header_end_h_in, &w.words);
    add_facts(&w);
  }
  dv_parts_clear(&w.parts);
  dv_constants_clear(&w.file.constants);
  dv_words_clear(&w.words);
  dv_text_free(&w.body);
  dv_system_clear(&w.system);
  return status;
}

/* ---- Committee ---- */

typedef struct committee_writer {
  const dvbf_model *model;
  const char *prefix;
  const dv_export_settings *settings;
  bool moves, samples;
} committee_writer;

static committee_writer committee_of(const dvbf_model *model, const char *prefix,
                                     const dv_export_settings *s) {
  committee_writer c = {model, prefix, s, .moves = true};
  for (int k = 0; k < dv_model_members(model); k++) {
    const dvbf_model *m = dv_model_member(model, k);
    c.moves &= m->type->move != NULL;
    c.samples |= s->samples && !m->type->exact_system;
  }
  return c;
}

static void put_states(dv_text *t, const committee_writer *c, bool sampled) {
  for (int k = 0; k < dv_model_members(c->model); k++)
    dv_text_put(t, "  @_%d_%s member_%d;\n", k + 1,
                sampled && !dv_model_member(c->model, k)->type->exact_system ? "sampled" : "state", k + 1);
}

/* How member k is reset, and its step. If another has feedthrough and it has not, it takes u of the frame
 * before. It may take part in forecasts or predictions alone. */
static void put_member(dv_words *words, dv_text *resets, dv_text *steps, const committee_writer *c, int k,
                       bool sampled) {
  const dvbf_model *m = dv_model_member(c->model, k);
  bool own = sampled && !m->type->exact_system, forecasts = dv_model_takes_part(m, true),
       predictions = dv_model_takes_part(m, false);
  dv_text_put(resets, "  @_%d_%sreset(&s->member_%d", k + 1, own ? "sampled_" : "", k + 1);
  if (own) dv_text_put(resets, k ? ", seed + %du" : ", seed", k);
  dv_text_put(resets, ");\n");
  dv_words_set(words, "member", "%d", k + 1);
  dv_words_turn(words, "own", own);
  dv_words_turn(words, "late", dv_model_same_row(c->model) && !dv_model_feeds_through(m));
  dv_words_turn(words, "pools", c->moves && (forecasts || predictions));
  dv_words_set(words, "when", "%s", !predictions ? " && !ahead" : !forecasts ? " && ahead" : "");
  dv_words_turn(words, "best", !k);
  dv_put(steps, member_c_in, words);
}

/* The root is that of a member, if possible one with a root of the right type. */
static void set_root(dv_words *words, const committee_writer *c) {
  int learned = 0;
  while (learned < c->model->n_others && dv_model_member(c->model, learned)->type->exact_system) learned++;
  if (c->settings->libm)
    dv_words_set(words, "sqrt", "%s", c->settings->real == DV_REAL_DOUBLE ? "sqrt" : "sqrtf");
  else
    dv_words_set(words, "sqrt",
                 dv_model_member(c->model, learned)->type->exact_system ? "(@_real)@_%d_double_sqrt"
                                                                        : "@_%d_sqrt",
                 learned + 1);
}

static void put_committee(dv_c_source *out, const committee_writer *c, dv_words *words) {
  const dvbf_model *m = c->model;
  set_root(words, c);
  dv_words_set(words, "n_x", "%d", m->n_x);
  dv_words_set(words, "n_u", "%d", m->n_u);
  dv_words_set(words, "n_z", "%d", m->n_z);
  dv_words_set(words, "members", "%d", dv_model_members(m));
  dv_words_set(words, "frames", "%d", out->frames);
  if (c->samples) dv_words_set(words, "samples", "%" PRId64, c->settings->samples);
  dv_words_turn(words, "controls", m->n_u);
  dv_words_turn(words, "moves", c->moves);
  set_deviation(words, c->settings->deviation);
  dv_words_turn(words, "same_row", dv_model_same_row(c->model));
  dv_words_set(words, "real", "%s", c->settings->real == DV_REAL_DOUBLE ? "double" : "float");
  put_states(dv_words_text(words, "states"), c, false);
  put_states(dv_words_text(words, "sampled_states"), c, true);
  dv_put(&out->header, committee_h_in, words);
  dv_put(&out->header, header_end_h_in, words);
  for (int sampled = 0; sampled < (c->samples ? 2 : 1); sampled++) {
    dv_text *resets = dv_words_text(words, "resets"), *steps = dv_words_text(words, "steps");
    set_kind(words, sampled);
    set_deviation(words, sampled || c->settings->deviation);
    for (int k = 0; k < dv_model_members(m); k++) put_member(words, resets, steps, c, k, sampled);
    dv_put(&out->code, committee_c_in, words);
  }
}

static dvbf_status write_committee(dv_c_source *out, const committee_writer *c, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  dv_words words = {.prefix = c->prefix};
  dv_text *members = dv_words_text(&words, "members_headers");
  for (int k = 0; k < dv_model_members(c->model) && !status; k++) {
    char name[96];
    snprintf(name, sizeof name, "%s_%d", c->prefix, k + 1);
    dv_text_put(&out->code, "\n/* ==== Member %d ==== */\n", k + 1);
    status = write_model(out, members, dv_model_member(c->model, k), name, c->settings, NULL, error);
  }
  if (!status) put_committee(out, c, &words);
  dv_words_clear(&words);
  return status;
}

dvbf_status dv_c_write(dv_c_source *out, const dvbf_model *m, const char *prefix, const char *name,
                       const dv_export_settings *s, double *start, dvbf_error *error) {
  const committee_writer c = committee_of(m, prefix, s);
  dv_text_put(&out->code, "#include \"%s.h\"\n%s%s", name, s->libm ? "\n#include <math.h>\n" : "",
              start ? "#include <stdint.h>\n" : "");
  dvbf_status status = dv_model_members(m) > 1 && !start
                           ? write_committee(out, &c, error)
                           : write_model(out, &out->header, m, prefix, s, start, error);
  if (!status && (out->code.failed || out->header.failed))
    status = dv_fail_memory(error, "exporting a model");
  return status;
}

/* ---- Target ---- */

static void put_facts(dv_text *t, const dv_c_source *f, const dv_export_settings *s) {
  static const char *const weights[] = {"float", "bfloat16", "int8"};
  dv_text_put(
      t, " * Constants %zu bytes (weights in %s), state %zu bytes, intermediate results at most %zu bytes",
      f->constants, weights[s->weights], f->state, f->stack);
  if (f->multiplications > 0) dv_text_put(t, ",\n * %.0f multiplications for a step", f->multiplications);
  dv_text_put(t, ". C99, %s, no allocation, no global state. */\n",
              s->libm ? "<stdint.h> and <math.h>" : "<stdint.h> alone");
}

static dvbf_status measure(const dv_export *e, dvbf_error *error) {
  const dvbf_sequences *sequences = e->rounded ? e->options->sequences : NULL;
  if (!sequences) return DVBF_OK;
  dvbf_status status = dv_rounding_error(&e->result->rmse, e->given, sequences, error);
  if (!status) status = dv_rounding_error(&e->result->rmse_rounded, e->model, sequences, error);
  return status;
}

static void summarise(dvbf_export_result *r) {
  size_t size = sizeof r->summary;
  dv_print(r->summary, size, "%zu bytes of constants, %zu of state, %zu of intermediate results",
           r->constant_bytes, r->state_bytes, r->stack_bytes);
  if (r->multiplications > 0)
    dv_append(r->summary, size, ", %.0f multiplications for a step", r->multiplications);
  if (isfinite(r->rmse_rounded) && r->rmse > 0)
    dv_append(r->summary, size,
              "\nRounded weights: one-step error %.4g standard deviations, unrounded %.4g (%+.2f %%)",
              r->rmse_rounded, r->rmse, 100 * (r->rmse_rounded / r->rmse - 1));
}

dvbf_status dv_c_files_write(const dv_export *e, dvbf_error *error) {
  dvbf_export_result *r = e->result;
  dv_text code = {0}, test = {0};
  dv_c_source f = {0};
  dv_vectors vectors = {0};
  dv_path header_path, test_path;
  dvbf_status status = dv_refuse_existing(e->path, e->options->force, error);
  if (!status) status = dv_export_path(header_path, e, ".h", error);
  if (!status) status = dv_export_path(test_path, e, "_test.c", error);
  if (!status) status = measure(e, error);
  if (!status) status = dv_c_write(&f, e->model, r->prefix, e->name, e->settings, NULL, error);
  if (!status) status = dv_vectors_init(&vectors, e->model, e->settings, e->options->sequences, error);
  dv_text_put(&code, "/* %s: a learned filter.\n *\n", r->prefix);
  if (!status) status = dv_file_header(&code, e, " *", error);
  if (!status) {
    put_facts(&code, &f, e->settings);
    dv_text_join(&code, &f.code);
    dv_vectors_write(&test, &vectors, r->prefix, e->name, f.direct, dv_model_members(e->model) == 1);
    status = dv_text_write(&code, e->path, error);
  }
  if (!status) status = dv_text_write(&f.header, header_path, error);
  if (!status) status = dv_text_write(&test, test_path, error);
  r->constant_bytes = f.constants, r->state_bytes = f.state, r->stack_bytes = f.stack;
  r->multiplications = f.multiplications;
  r->vectors = (size_t)vectors.steps, r->tolerance = vectors.tolerance;
  summarise(r);
  dv_vectors_clear(&vectors);
  DV_TEXT_FREE(&code, &test, &f.code, &f.header);
  return status;
}

DV_TARGET(c) {
  return e->options->goal ? dv_controller_files_write(e, error) : dv_c_files_write(e, error);
}
