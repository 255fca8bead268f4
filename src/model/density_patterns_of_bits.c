/* The density patterns: binary values that are not independent given z. x is one of some patterns shared by
 * all frames, or a frame of its own as in the density bernoulli, with probabilities that follow from z. So
 * between two chords x is one or the other, and not a mixture of their notes. Patterns start from the most
 * frequent frames. */
#include "model/density.h"

#include "base/error.h"
#include "base/memory.h"
#include "data/checks.h"
#include "math/portable.h"
#include "math/random.h"
#include "ops/ops.h"

#include <math.h>
#include <stdio.h>

/* ---- First values ---- */

enum { MOST_PATTERNS = 256 }; /* patterns that are chosen */

/* Logits of frequent frames, or noise around the mean frame: equal patterns would stay equal. */
static dvbf_value record_patterns(dvbf_program *p, const dvbf_model *m) {
  size_t count = (size_t)m->settings->patterns, n = (size_t)m->n_x;
  double *first = m->first_patterns ? NULL : dv_calloc(n * count, sizeof *first);
  if (!m->first_patterns && !first) {
    dv_graph_refuse_memory(p->graph);
    return DVBF_NONE;
  }
  for (size_t k = 0; first && k < n * count; k++) first[k] = m->first_output[k / count] / DV_PATTERN_GAIN;
  dvbf_value v = dvbf_parameter(
      p->graph, "emission.patterns", (int)n, (int)count,
      (dvbf_first){.values = first ? first : m->first_patterns, .scale = first ? 1.0 / DV_PATTERN_GAIN : 0});
  dv_free(first);
  return v;
}

/* The most frequent frames; further patterns begin at the mean frame, with noise. */
static dvbf_status look(dvbf_model *m, const dvbf_sequences *train, dvbf_error *error) {
  const double sure = 6.0 / DV_PATTERN_GAIN;
  size_t count = (size_t)m->settings->patterns, n = (size_t)m->n_x;
  dv_recurring often;
  dvbf_status status = dv_recurring_of(&often, train, error);
  m->first_patterns = status ? NULL : dv_calloc(n * count, sizeof *m->first_patterns);
  if (!status && !m->first_patterns) status = dv_fail_memory(error, "looking for patterns");
  for (size_t i = 0; i < n && !status; i++)
    for (size_t k = 0; k < count; k++) {
      dv_random r = dv_random_at((uint64_t)m->settings->seed, DV_STREAM_INITIALISE, UINT32_MAX - 1,
                                 (uint32_t)(i * count + k));
      double apart = m->first_output[i] + dv_random_normal(&r);
      m->first_patterns[i * count + k] = k >= often.count     ? apart / DV_PATTERN_GAIN
                                         : often.x[k * n + i] ? sure
                                                              : -sure;
    }
  dv_recurring_free(&often);
  return status;
}

/* ---- Recording ---- */

/* shape[0] is (own frame, scores), shape[1] the patterns. */
static void record_bits(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_value mask) {
  dvbf_graph *g = p->graph;
  int count = (int)m->settings->patterns;
  dv_record_output(p, m, hidden);
  dv_patterns all = {.own = p->output, .scores = dvbf_slab(g, p->steps, 1 + count)};
  all.patterns = record_patterns(p, m);
  dvbf_layer scores =
      dv_dense(g, "emission.scores", all.scores, DVBF_LINEAR, (dvbf_first){0},
               (dv_dense_in[4]){{"h", hidden, 0.1 / sqrt((double)m->settings->hidden), false}});
  dvbf_layer_whole(g, &scores);
  dv_record_patterns(g, p->ln_p, &all, p->x, mask);
  p->output = dvbf_slab(g, p->steps, m->n_x);
  dv_record_patterns_mean(g, p->output, &all);
  p->shape[0] = dvbf_slab(g, p->steps, m->n_x + 1 + count);
  p->shape[1] = all.patterns;
  dv_record_join(g, p->shape[0], 2, (dvbf_value[]){all.own, all.scores});
}

/* The component that a number in (0, 1) chooses: 0 is the own frame. */
static size_t chosen(const dvbf_real *scores, size_t count, double u) {
  double most = -INFINITY, sum = 0;
  size_t at = 0;
  for (size_t m = 0; m <= count; m++) most = fmax(most, (double)scores[m]);
  for (size_t m = 0; m <= count; m++) sum += dv_exp((double)scores[m] - most);
  while (at < count && (u -= dv_exp((double)scores[at] - most) / sum) > 0) at++;
  return at;
}

static void draw_bits(const dv_density_frame *f, float *x) {
  size_t n = (size_t)f->model->n_x, count = (size_t)f->model->settings->patterns;
  dvbf_value shape = f->program->shape[0];
  const dvbf_real *own = dvbf_at(f->run, dvbf_steps(shape, f->step, 1)) + (size_t)f->row * (size_t)shape.cols;
  const dvbf_real *v = dvbf_at(f->run, f->program->shape[1]);
  uint32_t words[DV_DENSITY_CHUNK];
  dv_density_words(f, (n / DV_DENSITY_CHUNK + 1) * DV_DENSITY_CHUNK, words); /* behind those of the columns */
  size_t from = chosen(own + n, count, dv_uniform_of(words[0]));
  for (size_t i = 0; i < n; i++) {
    if (i % DV_DENSITY_CHUNK == 0) dv_density_words(f, i, words);
    double logit = from ? DV_PATTERN_GAIN * (double)v[i * count + from - 1] : (double)own[i];
    x[i] = dv_uniform_of(words[i % DV_DENSITY_CHUNK]) < dv_sigmoid(logit);
  }
}

/* A mean may be rounded to 0 or 1. */
static double ln_value(double x, double mean) {
  double p = fmin(fmax(mean, 1e-7), 1 - 1e-7);
  return x * dv_log(p) + (1 - x) * dv_log1p(-p);
}

/* Few binary columns have few different frames in any case. */
static bool recur(const dvbf_sequences *train, const dv_statistics *x, size_t *count) {
  enum { ENOUGH_COLUMNS = 16 };
  dv_recurring often;
  double share = 0;
  *count = 0;
  if (!x->binary || train->n_x < ENOUGH_COLUMNS) return false;
  if (!dv_recurring_of(&often, train, NULL)) *count = dv_recurring_often(&often, &share);
  dv_recurring_free(&often);
  return *count > 1 && *count <= MOST_PATTERNS && share >= 0.5;
}

static const char *suits(const dvbf_sequences *train, const dv_statistics *x) {
  size_t count;
  return recur(train, x, &count) ? "a few frames of 0 and 1 recur" : NULL;
}

static void choose(const dvbf_sequences *train, const dv_statistics *x, char *value, size_t size) {
  size_t count;
  snprintf(value, size, "%zu", recur(train, x, &count) ? count : 64);
}

static int refuses(const dvbf_model *m, const float *x) {
  for (int i = 0; i < m->n_x; i++)
    if (x[i] != 0 && x[i] != 1 && !isnan(x[i])) return i;
  return -1;
}

const dv_density dv_patterns_of_bits = {.record = record_bits,
                                        .joint = true,
                                        .first_output = dv_logit,
                                        .emit_variance = dv_density_emit_bits,
                                        .add_variance = dv_density_bits_variance,
                                        .draw = draw_bits,
                                        .scales = dv_density_unscaled,
                                        .suits = suits,
                                        .notes = true,
                                        .look = look,
                                        .setting = "patterns",
                                        .choose = choose,
                                        .refuses = refuses,
                                        .ln_value = ln_value,
                                        .needs = "values of 0 and 1"};
