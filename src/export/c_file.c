/* The target .c: a model or committee as one C file and its header (dv_c_write, dv_c_plant_write): functions
 * from the parts of the model, constants, and templates for what a filter does around them. Members of a
 * committee are models with prefixes PREFIX_1, PREFIX_2, ... */
#include "export/c_file.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "export/test_vectors.h"
#include "math/kalman.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The functions of a model. Names that begin with "sampled" are of the filter with samples. */
typedef struct function {
  const char *name;
  enum { FIRST, ADVANCE, MOVE, EMISSION } of;
  bool sampled, planning, slopes; /* whom it is for; whether it has derivatives */
  dv_derivation how;
} function;

#define BY_NOISE .quiet = true, .by = {[DV_SLOT_NOISE] = true}
#define BY_Z_NOISE .quiet = true, .by = {[DV_SLOT_Z] = true, [DV_SLOT_NOISE] = true}
#define BY_Z_U .quiet = true, .by = {[DV_SLOT_Z] = true, [DV_SLOT_U] = true}
#define BY_Z_NOW .mean_only = true, .by = {[DV_SLOT_Z] = true, [DV_SLOT_NOW] = true}
static const function functions[] = {
    {"first", FIRST, false, false, false, {BY_NOISE}},
    {"advance", ADVANCE, false, false, false, {BY_Z_NOISE}},
    {"move", MOVE, false, false, false, {BY_Z_NOISE}},
    {"emission", EMISSION, false, false, false, {.by = {[DV_SLOT_Z] = true}}},
    {"sampled_first", FIRST, true, false, false, {0}},
    {"sampled_advance", ADVANCE, true, false, false, {0}},
    {"sampled_move", MOVE, true, false, false, {0}},
    {"sampled_emission", EMISSION, true, false, false, {0}},
    {"planned", MOVE, false, true, false, {.quiet = true}},
    {"planned_slopes", MOVE, false, true, true, {BY_Z_U}},
    {"expected", EMISSION, false, true, false, {.mean_only = true}},
    {"expected_slopes", EMISSION, false, true, true, {BY_Z_NOW}},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct writer {
  const dvbf_model *model;
  const dv_export_settings *settings;
  dv_parts parts;
  dv_c_file file;
  dv_words words;
  dv_text body, calls[FUNCTIONS], derivatives, state;
  dv_system system;
  dv_c_facts *facts;
  bool plant; /* it simulates, and does not filter */
} writer;

static bool exact(const writer *w) {
  return w->model->type->exact_system;
}

/* States of an exact filter keep to a range if nothing was observed. */
static bool limits(const writer *w) {
  return exact(w) && dv_model_range(w->model);
}

static bool deviates(const writer *w) {
  return w->settings->deviation || exact(w);
}

static bool samples(const writer *w) {
  return w->settings->samples > 0 && !exact(w);
}

static bool moves(const writer *w) {
  return w->parts.move.code;
}

/* x depends on the control of its own step. */
static bool direct(const writer *w) {
  return w->model->n_u && dv_code_part_reads(&w->parts.emission, DV_SLOT_NOW);
}

/* ---- Functions ---- */

static bool is_wanted(const writer *w, const function *f) {
  if (f->of == MOVE && !moves(w)) return false;
  if (f->of == EMISSION && !moves(w) && !f->planning) return false;
  if (f->planning || w->plant) return f->planning;
  return f->sampled ? samples(w) : !exact(w);
}

static dvbf_status write_function(writer *w, int number, dvbf_error *error) {
  const function *f = &functions[number];
  const dv_code_part *from[] = {&w->parts.first, &w->parts.advance, &w->parts.move, &w->parts.emission};
  dv_derivation how = f->how;
  if (!f->planning && !f->sampled && !deviates(w)) {
    memset(how.by, 0, sizeof how.by);
    how.mean_only = true;
  }
  if (!direct(w)) how.by[DV_SLOT_NOW] = false;
  how.rows = w->file.constants.format == DV_WEIGHTS_FLOAT;
  dv_code_part part = {0};
  dvbf_status status = dv_code_part_derive(&part, from[f->of], &how, error);
  if (!status) {
    dv_c_part_write(&w->body, &w->file, &part, f->name);
    dv_c_part_call(&w->calls[number], &w->file, &part, f->name);
    dv_words_set(&w->words, f->name, w->calls[number].at);
    if (f->of == ADVANCE && !f->sampled) w->facts->multiplications += dv_code_part_multiplications(&part);
  }
  dv_code_part_clear(&part);
  return status;
}

/* ---- Template words ---- */

static void set_number(writer *w, const char *name, size_t number) {
  dv_words_print(&w->words, name, "%zu", number);
}

static void set_if(writer *w, const char *name, bool on, const char *yes, const char *no) {
  const char *text = on ? yes : no;
  if (text) dv_words_set(&w->words, name, text);
}

static size_t at_least_1(size_t n) {
  return n ? n : 1;
}

static void set_sizes(writer *w) {
  const dvbf_model *m = w->model;
  const dv_parts *p = &w->parts;
  size_t n_z = (size_t)m->n_z, noise = p->advance.slot[DV_SLOT_NOISE].size,
         start = p->first.slot[DV_SLOT_NOISE].size, move = p->move.slot[DV_SLOT_NOISE].size;
  set_number(w, "n_x", (size_t)m->n_x);
  set_number(w, "n_u", (size_t)m->n_u);
  set_number(w, "n_u_room", at_least_1((size_t)m->n_u));
  set_number(w, "n_z", n_z);
  set_number(w, "n_w", noise);
  if (samples(w)) set_number(w, "samples", (size_t)w->settings->samples);
  set_number(w, "frames", exact(w) ? 1 : (size_t)p->frames);
  set_number(w, "advance_directions", n_z + noise);
  set_number(w, "move_directions", n_z + move);
  set_number(w, "first_directions", at_least_1(start));
  set_number(w, "advance_noise", at_least_1(noise));
  set_number(w, "move_noise", at_least_1(move));
  set_number(w, "first_noise", at_least_1(start));
  set_number(w, "advance_stream", (size_t)p->advance.noise_number);
  set_number(w, "first_stream", (size_t)p->first.noise_number);
}

static void set_conditions(writer *w) {
  bool controls = w->model->n_u, through = dv_model_feeds_through(w->model);
  bool seen = dv_code_part_reads(&w->parts.first, DV_SLOT_SEEN) ||
              (w->parts.advance.code && dv_code_part_reads(&w->parts.advance, DV_SLOT_SEEN));
  bool std = deviates(w), waits = dv_model_recognises_from(w->model) > 1;
  set_if(w, "controls", controls, "", NULL);
  set_if(w, "feedthrough", through, "", NULL);
  set_if(w, "direct", direct(w), "", NULL);
  set_if(w, "seen", seen, "", NULL);
  set_if(w, "deviation", std, "", NULL);
  set_if(w, "moves", moves(w), "", NULL);
  set_if(w, "waits", waits, "", NULL);
  set_if(w, "mask_at", waits, "&none", "s->mask + t");
  set_if(w, "limits", limits(w), "", NULL);
  set_if(w, "wide", w->file.wide, "", NULL);
  set_if(w, "plain", w->file.plain, "", NULL);
  set_if(w, "cov_argument", std, ", @_real *cov", "");
  set_if(w, "const_cov_argument", std, ", const @_real *cov", "");
  set_if(w, "x_std_argument", std, ", @_real *x_std", "");
  set_if(w, "x_std_of", std, ", and their standard deviations,", "");
  set_if(w, "cov", std, ", cov", "");
  set_if(w, "out_x_std", std, ", out->x_std", "");
  set_if(w, "predict_x_std", std, ", x_std ? x_std + t * @_N_X : 0", "");
  set_if(w, "seen_at", seen, "s->seen + t * @_N_X", "0");
  set_if(w, "s_seen", seen, "s->seen", "0");
  set_if(w, "s_u", controls, "s->u", "0");
  set_if(w, "u_before", controls, "s->u + (t - 1) * @_N_U", "0");
  set_if(w, "u_at", controls, "s->u + t * @_N_U", "0");
  set_if(w, "scaled", controls, "scaled", "0");
  set_if(w, "step_u", through, "s->u + (@_FRAMES - 1) * @_N_U", controls ? "scaled" : "0");
  set_if(w, "step_now", through, "scaled", "0");
  set_if(w, "predict_u", through, "before", controls ? "scaled" : "0");
  set_if(w, "kalman_predict_u", controls, "u ? u + t * @_N_U : 0", "u");
  set_if(w, "both", moves(w), "2", "1");
  set_if(w, "and_no_d", direct(w), " && !D", "");
}

static void set_functions(writer *w) {
  bool wide = w->file.wide, plain = w->file.plain;
  dv_words *s = &w->words;
  dv_words_set(s, "real", wide ? "double" : "float");
  static const char *const names[] = {"exp", "log", "sqrt", "tanh", "sin", "cos"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    dv_words_print(s, names[i], "%s%s%s", plain ? "@_" : "", names[i], plain || wide ? "" : "f");
  dv_words_set(s, "double_sqrt", plain ? "@_double_sqrt" : "sqrt");
  dv_words_set(s, "double_fabs", plain ? "@_double_fabs" : "fabs");
  dv_words_set(s, "half", wide ? "0.5" : "0.5f");
  dv_words_set(s, "newton", wide ? "5" : "4");
  dv_words_set(s, "tanh_small", wide ? "0.1" : "0.3f");
  dv_words_set(s, "two_pi", wide ? "6.283185307179586" : "6.2831853f");
  dv_words_set(s, "two_over_pi", wide ? "0.6366197723675814" : "0.636619772f");
  dv_words_set(s, "exp_note",
               wide ? " * exp(709) nor below exp(-708). */" : " * exp(88) nor below exp(-87). */");
}

static void set_uses(writer *w) {
  bool *uses = w->file.functions, kalman = exact(w) && w->file.plain;
  if (samples(w)) uses[DVBF_LOG_OF] = uses[DVBF_SQRT_OF] = uses[DVBF_SIN_OF] = true;
  if (deviates(w) && !exact(w)) uses[DVBF_SQRT_OF] = true;
  if (limits(w)) uses[DVBF_TANH_OF] = true;
  bool waves = uses[DVBF_SIN_OF] || uses[DVBF_COS_OF];
  bool power = uses[DVBF_EXP_OF] || uses[DVBF_SIGMOID_OF] || uses[DVBF_TANH_OF];
  set_if(w, "use_larger", uses[DVBF_LARGER], "", NULL);
  set_if(w, "use_smaller", uses[DVBF_SMALLER], "", NULL);
  set_if(w, "use_sigmoid", uses[DVBF_SIGMOID_OF], "", NULL);
  set_if(w, "use_exp", power, "", NULL);
  set_if(w, "use_log", uses[DVBF_LOG_OF], "", NULL);
  set_if(w, "use_sqrt", uses[DVBF_SQRT_OF], "", NULL);
  set_if(w, "use_tanh", uses[DVBF_TANH_OF], "", NULL);
  set_if(w, "use_sin", waves, "", NULL);
  set_if(w, "use_fabs", uses[DVBF_SIZE_OF], "", NULL);
  set_if(w, "use_double_sqrt", kalman, "", NULL);
  bool bfloat16 = w->file.products[DV_WEIGHTS_BFLOAT16][0] || w->file.products[DV_WEIGHTS_BFLOAT16][1];
  set_if(w, "use_bfloat16", bfloat16, "", NULL);
}

/* ---- Constants ---- */

/* Scaling comes first, so that the emission finds it by its name. */
static void take_scaling(writer *w) {
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
static void put_doubles(dv_text *t, const writer *w, const char *name, const double *values, int n) {
  char whole[128];
  snprintf(whole, sizeof whole, "%s_system_%s", w->file.prefix, name);
  if (n) dv_text_put(t, "\n");
  if (n) dv_text_array(t, "double", whole, (dv_array){.reals = values}, (size_t)n, 17);
}

static void put_system(dv_text *t, const writer *w) {
  const dv_system *s = &w->system;
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

static void put_products(dv_text *t, writer *w) {
  static const struct {
    const char *suffix, *type, *load;
  } formats[] = {{"", "float", "(@_real)"},
                 {"_bfloat16", "uint16_t", "(@_real)@_bfloat16"},
                 {"_int8", "int8_t", "(@_real)"}};
  static const char *const names[] = {"times_factor_1", "times_factor_2", "times_factor_3"};
  dv_put(t, vectors_c_in, &w->words);
  for (int f = 0; f < 3; f++) {
    bool factor = f == DV_WEIGHTS_INT8;
    dv_words_set(&w->words, "suffix", formats[f].suffix);
    dv_words_set(&w->words, "type", formats[f].type);
    dv_words_set(&w->words, "load", formats[f].load);
    dv_words_set(&w->words, "factor_argument", factor ? ", const float *factor" : "");
    dv_words_set(&w->words, "times_factor_wide", factor ? "(@_real)factor[j + i] * " : "");
    dv_words_set(&w->words, "times_factor", factor ? "(@_real)factor[j] * " : "");
    for (int k = 1; k < 4; k++)
      dv_words_print(&w->words, names[k - 1], factor ? "(@_real)factor[j + %d] * " : "", k);
    if (w->file.products[f][0]) dv_put(t, product_c_in, &w->words);
    if (w->file.products[f][1]) dv_put(t, narrow_c_in, &w->words);
  }
}

/* ---- File ---- */

/* Those that the functions take for constants, and those of a linear system. */
static dvbf_status check_finite(const writer *w, dvbf_error *error) {
  const dvbf_model *m = w->model;
  dvbf_status status = dv_check_finite(&m->log_sigma_floor, 1, error);
  if (!status) status = dv_constants_check(&w->file.constants, error);
  if (!status && exact(w))
    status = dv_check_finite(w->system.a, dv_system_size(m->n_z, m->n_u, m->n_x), error);
  return status;
}

/* Bytes of the struct, but for padding. */
static size_t state_size(const writer *w) {
  size_t n_z = (size_t)w->model->n_z, n_x = (size_t)w->model->n_x, n_u = (size_t)w->model->n_u;
  size_t frames = (size_t)w->parts.frames, real = w->file.wide ? sizeof(double) : sizeof(float);
  if (exact(w))
    return sizeof(double) * (2 * n_z + 2 * n_z * n_z + 2 * n_x + n_x * n_x + 2 * n_z * n_x) +
           sizeof(int) * (3 + n_x);
  size_t x = frames * (n_x * (dv_words_get(&w->words, "seen") ? 2 : 1) + 1 + n_u);
  return sizeof(int) + real * (n_z + (deviates(w) ? n_z * n_z : 0) + x);
}

static dvbf_status prepare(writer *w, dvbf_error *error) {
  const dvbf_model *m = w->model;
  dvbf_status status = dv_parts_init(&w->parts, m, w->plant, error);
  if (!status && exact(w)) status = dv_system_new(&w->system, m->n_z, m->n_u, m->n_x, error);
  if (status) return status;
  if (exact(w)) m->type->exact_system(m, &w->system);
  w->file.constants.format = (int)w->settings->weights;
  w->file.wide = w->settings->real == DV_REAL_DOUBLE;
  w->file.plain = !w->settings->libm;
  take_scaling(w);
  set_sizes(w);
  set_conditions(w);
  set_functions(w);
  for (int i = 0; i < FUNCTIONS && !status; i++)
    if (is_wanted(w, &functions[i])) status = write_function(w, i, error);
  set_uses(w);
  return status ? status : check_finite(w, error);
}

/* The filter without samples, or with. */
static void put_filter(dv_text *t, writer *w, bool sampled) {
  dv_words_set(&w->words, "kind", sampled ? "sampled_" : "");
  dv_words_set(&w->words, "struct", sampled ? "sampled" : "state");
  dv_words_set(&w->words, "seed_argument", sampled ? ", uint64_t seed" : "");
  dv_words_set(&w->words, "all_z", sampled ? "@_SAMPLES * @_N_Z" : "@_N_Z");
  if (sampled) dv_words_set(&w->words, "sampled", "");
  dv_put(t, filter_c_in, &w->words);
}

static void write_code(dv_text *t, writer *w) {
  dv_constants_write(t, &w->file.constants, w->file.prefix);
  if (exact(w)) put_system(t, w);
  dv_text_put(t, "\n");
  dv_put(t, functions_c_in, &w->words);
  put_products(t, w);
  dv_text_put(t, "/* ---- The model ---- */\n\n");
  if (w->body.at) dv_text_append(t, w->body.at, w->body.used);
  if (exact(w))
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

static void write_header(dv_text *t, writer *w) {
  if (exact(w))
    dv_put(&w->state, kalman_h_in, &w->words);
  else
    dv_put(&w->state, state_h_in, &w->words);
  dv_put(&w->derivatives, derivatives_h_in, &w->words);
  dv_words_set(&w->words, "state", w->state.at);
  dv_words_set(&w->words, "derivatives", w->derivatives.at);
  dv_put(t, header_h_in, &w->words);
}

static void add_facts(writer *w) {
  dv_c_facts *f = w->facts;
  int frames = exact(w) ? 1 : w->parts.frames;
  f->constants += dv_constants_bytes(&w->file.constants);
  if (exact(w)) f->constants += sizeof(double) * dv_system_size(w->model->n_z, w->model->n_u, w->model->n_x);
  f->state += state_size(w);
  if (w->file.most_room > f->stack) f->stack = w->file.most_room;
  if (frames > f->frames) f->frames = frames;
  f->direct |= direct(w);
}

static void clear(writer *w) {
  dv_parts_clear(&w->parts);
  dv_constants_clear(&w->file.constants);
  for (int i = 0; i < FUNCTIONS; i++) dv_text_free(&w->calls[i]);
  dv_text_free(&w->body);
  dv_text_free(&w->derivatives);
  dv_text_free(&w->state);
  dv_system_clear(&w->system);
}

static bool is_short(const writer *w) {
  bool any = w->body.failed || w->file.constants.failed || w->derivatives.failed || w->state.failed;
  for (int i = 0; i < FUNCTIONS; i++) any |= w->calls[i].failed;
  return any;
}

/* Writes one model, without the beginning of the file; adds to the facts. */
static dvbf_status write_model(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *m,
                               const char *prefix, const dv_export_settings *s, dvbf_error *error) {
  writer *w = dv_calloc(1, sizeof *w);
  if (!w) return dv_fail_memory(error, "exporting a model");
  w->model = m;
  w->settings = s;
  w->facts = facts;
  w->file.prefix = w->words.prefix = prefix;
  dvbf_status status = prepare(w, error);
  if (!status) {
    write_code(code, w);
    write_header(header, w);
    add_facts(w);
    if (is_short(w)) status = dv_fail_memory(error, "exporting a model");
  }
  clear(w);
  dv_free(w);
  return status;
}

/* ---- Plant ---- */

/* z_1 with its noise at 0. */
static dvbf_status find_start(const writer *w, double *start, dvbf_error *error) {
  const double *const nothing[DV_INPUTS] = {0};
  if (exact(w)) {
    memcpy(start, w->system.mean, (size_t)w->model->n_z * sizeof *start);
    return DVBF_OK;
  }
  return dv_code_part_run(&w->parts.first, nothing, start, NULL, NULL, error);
}

static void write_plant(dv_text *code, dv_text *header, writer *w, const double *start) {
  dv_text_put(code, "#include \"%s.h\"\n\n#include <math.h>\n#include <stdint.h>\n", w->file.prefix);
  dv_constants_write(code, &w->file.constants, w->file.prefix);
  dv_text_put(code, "\nstatic const double %s_first_z[%d] = {", w->file.prefix, w->model->n_z);
  for (int i = 0; i < w->model->n_z; i++) dv_text_put(code, "%s%.17g", i ? ", " : "", start[i]);
  dv_text_put(code, "};\n\n");
  dv_put(code, functions_c_in, &w->words);
  put_products(code, w);
  dv_text_append(code, w->body.at, w->body.used);
  dv_put(code, plant_c_in, &w->words);
  dv_put(code, derivatives_c_in, &w->words);
  dv_put(&w->derivatives, derivatives_h_in, &w->words);
  dv_words_set(&w->words, "derivatives", w->derivatives.at);
  dv_put(header, plant_h_in, &w->words);
}

dvbf_status dv_c_plant_write(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *m,
                             const char *prefix, const dv_export_settings *s, double *start,
                             dvbf_error *error) {
  writer *w = dv_calloc(1, sizeof *w);
  if (!w) return dv_fail_memory(error, "exporting a model");
  *w = (writer){.model = m, .settings = s, .facts = facts, .plant = true};
  w->file.prefix = w->words.prefix = prefix;
  dvbf_status status = prepare(w, error);
  if (!status) status = find_start(w, start, error);
  if (!status) status = dv_check_finite(start, (size_t)m->n_z, error);
  if (!status) {
    write_plant(code, header, w, start);
    add_facts(w);
    if (is_short(w)) status = dv_fail_memory(error, "exporting a model");
  }
  clear(w);
  dv_free(w);
  return status;
}

/* ---- Committee ---- */

typedef struct committee_writer {
  const dvbf_model *model;
  const char *prefix;
  const dv_export_settings *settings;
  dv_text bodies, headers, states[2], resets[2], steps[2]; /* without samples, and with */
  bool moves, samples, deviation;
  bool same_row; /* a member has feedthrough */
} committee_writer;

static bool is_exact(const dvbf_model *m) {
  return m->type->exact_system;
}

static void find_abilities(committee_writer *w) {
  w->moves = true;
  w->deviation = w->settings->deviation;
  w->same_row = dv_model_same_row(w->model);
  for (int k = 0; k < dv_model_members(w->model); k++) {
    const dvbf_model *m = dv_model_member(w->model, k);
    w->moves &= m->type->move != NULL;
    w->samples |= w->settings->samples && !is_exact(m);
  }
}

/* The call of a step of member k. A member with feedthrough takes u with its frame, others that of the frame
 * before. */
static void put_call(dv_text *t, const committee_writer *w, int k, const char *name, bool own) {
  const dvbf_model *m = dv_model_member(w->model, k);
  bool late = w->same_row && !dv_model_feeds_through(m);
  dv_text_put(t, "    ready = %s_%s(&s->member_%d, x, %s, missing, out ? &e : 0);\n", name,
              own ? "sampled_step" : "step", k + 1, late ? "before" : "u");
}

/* The statement that adds member k's expectation to the pool, if it takes part. */
static void put_pool(dv_text *t, const committee_writer *w, int k, bool std) {
  const dvbf_model *m = dv_model_member(w->model, k);
  bool forecasts = dv_model_takes_part(m, true), predictions = dv_model_takes_part(m, false);
  if (!w->moves || (!forecasts && !predictions)) return;
  dv_text_put(t, "    if (out && ready > 1%s) %s_pool(out->x, %s, e.x, %s, ++pooled);\n",
              forecasts && predictions ? ""
              : forecasts              ? " && !ahead"
                                       : " && ahead",
              w->prefix, std ? "out->x_std" : "0", std ? "e.x_std" : "0");
}

static void put_member(committee_writer *w, int k, bool sampled) {
  const dvbf_model *m = dv_model_member(w->model, k);
  bool own = sampled && !is_exact(m), std = sampled || w->deviation;
  const char *kind = own ? "sampled_" : "", *type = own ? "sampled" : "state";
  char name[96];
  dv_text *steps = &w->steps[sampled];
  snprintf(name, sizeof name, "%s_%d", w->prefix, k + 1);
  dv_text_put(&w->states[sampled], "  %s_%s member_%d;\n", name, type, k + 1);
  dv_text_put(&w->resets[sampled], "  %s_%sreset(&s->member_%d", name, kind, k + 1);
  if (own) dv_text_put(&w->resets[sampled], k ? ", seed + %du" : ", seed", k);
  dv_text_put(&w->resets[sampled], ");\n");
  dv_text_put(steps, "  {\n    %s_%sestimate e;\n", name, kind);
  put_call(steps, w, k, name, own);
  dv_text_put(steps, "    least = ready < least ? ready : least;\n");
  put_pool(steps, w, k, std);
  if (!k) {
    dv_text_put(steps, "    best = ready;\n    for (i = 0; out && ready && i < %s_N_Z; i++) {\n", w->prefix);
    dv_text_put(steps, "      out->z[i] = e.z[i];\n%s    }\n",
                std ? "      out->z_std[i] = e.z_std[i];\n" : "");
  }
  dv_text_put(steps, "  }\n");
}

static void put_committee(dv_text *code, dv_text *header, const committee_writer *w,
                          const dv_c_facts *facts) {
  const dvbf_model *m = w->model;
  bool wide = w->settings->real == DV_REAL_DOUBLE, std = w->deviation;
  dv_words words = {.prefix = w->prefix};
  int learned = 0; /* a member with a root of the right type */
  while (learned < m->n_others && is_exact(dv_model_member(m, learned))) learned++;
  dv_words_print(&words, "sqrt",
                 is_exact(dv_model_member(m, learned)) ? "(@_real)@_%d_double_sqrt" : "@_%d_sqrt",
                 learned + 1);
  if (w->settings->libm) dv_words_set(&words, "sqrt", wide ? "sqrt" : "sqrtf");
  dv_words_print(&words, "n_x", "%d", m->n_x);
  dv_words_print(&words, "n_u", "%d", m->n_u);
  dv_words_print(&words, "n_z", "%d", m->n_z);
  dv_words_print(&words, "members", "%d", dv_model_members(m));
  dv_words_print(&words, "frames", "%d", facts->frames);
  if (w->samples) dv_words_print(&words, "samples", "%d", (int)w->settings->samples);
  if (w->moves) dv_words_set(&words, "moves", "");
  if (std) dv_words_set(&words, "deviation", "");
  if (w->same_row) dv_words_set(&words, "same_row", "");
  dv_words_set(&words, "real", wide ? "double" : "float");
  dv_words_set(&words, "members_headers", w->headers.at);
  dv_words_set(&words, "states", w->states[0].at);
  dv_words_set(&words, "sampled_states", w->states[1].at);
  dv_words_set(&words, "both", w->moves ? "2" : "1");
  dv_words_set(&words, "u_at", m->n_u ? "u ? u + t * @_N_U : 0" : "u");
  dv_words_set(&words, "x_std_argument", std ? ", @_real *x_std" : "");
  dv_put(header, committee_h_in, &words);
  dv_text_join(code, &w->bodies);
  for (int sampled = 0; sampled < (w->samples ? 2 : 1); sampled++) {
    dv_words_set(&words, "kind", sampled ? "sampled_" : "");
    dv_words_set(&words, "type", sampled ? "sampled" : "state");
    dv_words_set(&words, "seed_argument", sampled ? ", uint64_t seed" : "");
    dv_words_set(&words, "resets", w->resets[sampled].at);
    dv_words_set(&words, "steps", w->steps[sampled].at);
    if (sampled) dv_words_set(&words, "sampled", "");
    if (sampled) dv_words_set(&words, "deviation", "");
    if (sampled) dv_words_set(&words, "x_std_argument", ", @_real *x_std");
    dv_put(code, committee_c_in, &words);
  }
}

static dvbf_status write_committee(dv_text *code, dv_text *header, dv_c_facts *facts, committee_writer *w,
                                   dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  find_abilities(w);
  for (int k = 0; k < dv_model_members(w->model) && !status; k++) {
    char name[96];
    snprintf(name, sizeof name, "%s_%d", w->prefix, k + 1);
    dv_text_put(&w->bodies, "\n/* ==== Member %d ==== */\n", k + 1);
    status =
        write_model(&w->bodies, &w->headers, facts, dv_model_member(w->model, k), name, w->settings, error);
    put_member(w, k, false);
    if (w->samples) put_member(w, k, true);
  }
  if (!status) put_committee(code, header, w, facts);
  return status;
}

static void clear_committee(committee_writer *w) {
  dv_text_free(&w->bodies);
  dv_text_free(&w->headers);
  for (int i = 0; i < 2; i++) {
    dv_text_free(&w->states[i]);
    dv_text_free(&w->resets[i]);
    dv_text_free(&w->steps[i]);
  }
}

dvbf_status dv_c_write(dv_text *code, dv_text *header, dv_c_facts *facts, const dvbf_model *m,
                       const char *prefix, const char *name, const dv_export_settings *s, dvbf_error *error) {
  committee_writer w = {.model = m, .prefix = prefix, .settings = s};
  *facts = (dv_c_facts){0};
  dv_text_put(code, "#include \"%s.h\"\n%s", name, s->libm ? "\n#include <math.h>\n" : "");
  dvbf_status status = dv_model_members(m) > 1 ? write_committee(code, header, facts, &w, error)
                                               : write_model(code, header, facts, m, prefix, s, error);
  bool any = code->failed || header->failed || w.bodies.failed || w.headers.failed;
  for (int i = 0; i < 2; i++) any |= w.states[i].failed || w.resets[i].failed || w.steps[i].failed;
  if (!status && any) status = dv_fail_memory(error, "exporting a model");
  clear_committee(&w);
  return status;
}

/* ---- Target ---- */

static void put_facts(dv_text *t, const dv_c_facts *f, const dv_export_settings *s) {
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
  size_t used = strlen(r->summary);
  if (r->multiplications > 0)
    dv_print(r->summary + used, size - used, ", %.0f multiplications for a step", r->multiplications);
  used = strlen(r->summary);
  if (isfinite(r->rmse_rounded) && r->rmse > 0)
    dv_print(r->summary + used, size - used,
             "\nRounded weights: one-step error %.4g standard deviations, unrounded %.4g (%+.2f %%)",
             r->rmse_rounded, r->rmse, 100 * (r->rmse_rounded / r->rmse - 1));
}

dvbf_status dv_c_files_write(const dv_export *e, dvbf_error *error) {
  dvbf_export_result *r = e->result;
  dv_text code = {0}, body = {0}, header = {0}, test = {0};
  dv_c_facts f = {0};
  dv_vectors vectors = {0};
  dv_path header_path, test_path;
  dvbf_status status = dv_refuse_existing(e->path, e->options->force, error);
  if (!status) status = dv_export_path(header_path, e, ".h", error);
  if (!status) status = dv_export_path(test_path, e, "_test.c", error);
  if (!status) status = measure(e, error);
  if (!status) status = dv_c_write(&body, &header, &f, e->model, r->prefix, e->name, e->settings, error);
  if (!status) status = dv_vectors_init(&vectors, e->model, e->settings, e->options->sequences, error);
  dv_text_put(&code, "/* %s: a learned filter.\n *\n", r->prefix);
  if (!status) status = dv_file_header(&code, e, " *", error);
  if (!status) {
    put_facts(&code, &f, e->settings);
    dv_text_join(&code, &body);
    dv_vectors_write(&test, &vectors, r->prefix, e->name, f.direct, dv_model_members(e->model) == 1);
    status = dv_text_write(&code, e->path, error);
  }
  if (!status) status = dv_text_write(&header, header_path, error);
  if (!status) status = dv_text_write(&test, test_path, error);
  r->constant_bytes = f.constants, r->state_bytes = f.state, r->stack_bytes = f.stack;
  r->multiplications = f.multiplications;
  r->vectors = (size_t)vectors.steps, r->tolerance = vectors.tolerance;
  summarise(r);
  dv_vectors_clear(&vectors);
  dv_text *all[] = {&code, &body, &header, &test};
  for (int i = 0; i < 4; i++) dv_text_free(all[i]);
  return status;
}

DV_TARGET(c) {
  return e->options->goal ? dv_controller_files_write(e, error) : dv_c_files_write(e, error);
}
