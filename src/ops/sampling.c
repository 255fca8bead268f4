/* Random ops: normal and uniform numbers, filter dropout and row dropout (dvbf_noise, dvbf_filter_use), and
 * samples with their KL: innovations w, universal parameters v, and states z with a learned prior. Every
 * number is keyed by seed, stream, step and row, so results do not depend on threads. */
#include "math/portable.h"
#include "math/random.h"
#include "ops/emit.h"
#include "ops/ops.h"

#include <math.h>
#include <string.h>

/* ---- Noise and dropout ---- */

enum { NORMAL_BLOCKS = 256 }; /* Philox blocks turned into normals at once */

typedef struct noise_data {
  uint32_t number;              /* of this stream of noise in the program */
  int step;                     /* of the stream, of the first step of the value */
  bool shared;                  /* by all sequences */
  int dropout, run, zero, wait; /* scalars */
} noise_data;

/* A block of random bits is keyed by the number of the stream in 8 bits and the step in 24. */
enum { MOST_NUMBERS = 1 << 8, STREAM_STEPS = 1 << 24 };

static noise_data new_noise(dvbf_graph *g, dvbf_value out, bool shared) {
  noise_data data = {.number = (uint32_t)g->noise_numbers++, .step = g->noise_step, .shared = shared};
  if (data.number >= MOST_NUMBERS || out.steps > STREAM_STEPS - data.step)
    dvbf_refuse(g, "a program has at most %d streams of noise of %d steps; stream %u has %d", MOST_NUMBERS,
                STREAM_STEPS, data.number, out.steps);
  return data;
}

/* Block `index` of step t of a value. */
static dv_random_words block_at(const dvbf_run *run, const noise_data *d, int t, int row, uint32_t index) {
  const dv_conditions *s = run->conditions;
  uint32_t sequence = d->shared ? UINT32_MAX : run->sequence[row];
  return dv_random_block(s->seed, s->stream | index << 8, sequence, d->number << 24 | (uint32_t)(d->step + t),
                         s->update);
}

/* Rows in chunks that fit the stack: first bits, then all normals of the chunk in one sweep. */
static void noise_forward(const dvbf_op *op, dvbf_run *run) {
  const noise_data *d = op->data;
  dvbf_value v = op->out[0];
  dvbf_real *out = dv_at(run, v), normal[4 * NORMAL_BLOCKS];
  uint32_t words[4 * NORMAL_BLOCKS];
  if (run->conditions->noise_free) {
    memset(out, 0, dv_rows(v) * (size_t)v.cols * sizeof *out);
    return;
  }
  int blocks = (v.cols + 3) / 4, rows = v.steps * v.rows, row = 0, block = 0;
  while (row < rows) {
    int first_row = row, first_block = block, n = 0;
    for (; n < NORMAL_BLOCKS && row < rows; n++) {
      dv_random_words bits = block_at(run, d, row / v.rows, row % v.rows, (uint32_t)block);
      memcpy(words + 4 * n, bits.word, sizeof bits.word);
      if (++block == blocks) block = 0, row++;
    }
    run->k->normals(normal, words, 4 * (size_t)n);
    for (int i = 0, r = first_row, b = first_block; i < n; i++) {
      int left = v.cols - 4 * b;
      memcpy(out + (size_t)r * v.cols + 4 * b, normal + 4 * i, (size_t)(left < 4 ? left : 4) * sizeof *out);
      if (++b == blocks) b = 0, r++;
    }
  }
}

static void noise_emit(const dvbf_op *op, dvbf_code *code) {
  const noise_data *d = op->data;
  dvbf_code_noise(code, op->out[0], (int)d->number, d->shared);
}

static const dvbf_op_class noise_class = {"noise", noise_forward, NULL, noise_emit};

void dvbf_noise(dvbf_graph *g, dvbf_value out, bool shared) {
  noise_data data = new_noise(g, out, shared);
  dvbf_record(g, &noise_class, 0, NULL, 1, &out, &data, sizeof data);
}

/* Dropped steps come in runs: a chain that stays dropped with probability `stay` and whose share of dropped
 * steps is `dropout` at every step. */
static void use_forward(const dvbf_op *op, dvbf_run *run) {
  const noise_data *d = op->data;
  dvbf_value v = op->out[0];
  dvbf_real *use = dv_at(run, v), *mask = dv_at(run, op->in[0]);
  double dropout = run->scalars[d->dropout], stay = fmax(dropout, 1 - 1 / run->scalars[d->run]);
  double begin = dropout < 1 ? dropout * (1 - stay) / (1 - dropout) : 1;
  int wait = (int)run->scalars[d->wait];
  dvbf_real taken = run->scalars[d->zero] > 0 ? -1 : 0;
  for (int r = 0; r < v.rows; r++) {
    bool dropped = false;
    for (int t = 0; t < v.steps; t++) {
      int i = t * v.rows + r;
      double threshold = !t ? dropout : dropped ? stay : begin;
      dropped = dropout > 0 && dv_uniform_of(block_at(run, d, t, r, 0).word[0]) < threshold;
      use[i] = !(mask[i] > 0) || d->step + t < wait ? 0 : dropped ? taken : 1;
    }
  }
}

/* A trained model drops no frame. */
static void use_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0],
          dvbf_code_choose(code, dv_read(code, op->in[0]), dv_number(code, 1), dv_number(code, 0)));
}

static const dvbf_op_class use_class = {"filter-use", use_forward, NULL, use_emit};

void dvbf_filter_use(dvbf_graph *g, dvbf_value use, dvbf_value mask) {
  noise_data data = new_noise(g, use, false);
  data.dropout = dvbf_scalar(g, DVBF_FILTER_DROPOUT, 0);
  data.run = dvbf_scalar(g, DVBF_FILTER_DROPOUT_RUN, 1);
  data.wait = dvbf_scalar(g, DVBF_FILTER_WAIT, 0);
  data.zero = dvbf_scalar(g, DVBF_FILTER_DROPOUT_ZERO, 0);
  dvbf_record(g, &use_class, 1, &mask, 1, &use, &data, sizeof data);
}

/* ---- A row left out: out = k x, d x += k d out, k = 0 or 1 for all steps of a row ---- */

static bool is_left_out(const dvbf_run *run, const noise_data *d, int row) {
  double dropout = run->scalars[d->dropout];
  return dropout > 0 && dv_uniform_of(block_at(run, d, 0, row, 0).word[0]) < dropout;
}

static void row_dropout_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value v = op->out[0];
  size_t n = (size_t)v.cols;
  const dvbf_real *x = dv_at(run, op->in[0]);
  dvbf_real *out = dv_at(run, v);
  for (int r = 0; r < v.rows; r++) {
    bool left_out = is_left_out(run, op->data, r);
    for (int t = 0; t < v.steps; t++) {
      size_t at = ((size_t)t * (size_t)v.rows + (size_t)r) * n;
      if (left_out)
        memset(out + at, 0, n * sizeof *out);
      else
        memcpy(out + at, x + at, n * sizeof *out);
    }
  }
}

static void row_dropout_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value v = op->out[0];
  size_t n = (size_t)v.cols;
  const dvbf_real *d = dvbf_gradient_at(run, v);
  dvbf_real *d_x = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < v.rows; r++) {
    if (is_left_out(run, op->data, r)) continue;
    for (int t = 0; t < v.steps; t++) {
      size_t at = ((size_t)t * (size_t)v.rows + (size_t)r) * n;
      for (size_t i = at; i < at + n; i++) d_x[i] += d[i];
    }
  }
}

static void row_dropout_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0], dv_read(code, op->in[0]));
}

static const dvbf_op_class row_dropout_class = {"row-dropout", row_dropout_forward, row_dropout_backward,
                                                row_dropout_emit};

void dv_record_row_dropout(dvbf_graph *g, dvbf_value out, dvbf_value x, const char *scalar) {
  noise_data data = new_noise(g, out, false);
  data.dropout = dvbf_scalar(g, scalar, 0);
  if (x.steps != out.steps || x.rows != out.rows || x.cols != out.cols)
    dvbf_refuse(g, "%d steps of %d do not fit %d of %d", x.steps, x.cols, out.steps, out.cols);
  dvbf_record(g, &row_dropout_class, 1, &x, 1, &out, &data, sizeof data);
}

/* ---- out = numbers in (0, 1); 1/2 in a run without noise ---- */

static void uniform_forward(const dvbf_op *op, dvbf_run *run) {
  const noise_data *d = op->data;
  dvbf_value v = op->out[0];
  dvbf_real *out = dv_at(run, v);
  for (int i = 0; i < v.steps * v.rows; i++)
    out[i] = run->conditions->noise_free
                 ? (dvbf_real)0.5
                 : (dvbf_real)dv_uniform_of(block_at(run, d, i / v.rows, i % v.rows, 0).word[0]);
}

static const dvbf_op_class uniform_class = {"uniform", uniform_forward, NULL, NULL};

void dv_record_uniform(dvbf_graph *g, dvbf_value out) {
  noise_data data = new_noise(g, out, false);
  dvbf_record(g, &uniform_class, 0, NULL, 1, &out, &data, sizeof data);
}

/* ---- Innovations w ----
 *
 * Annealed with inverse temperature c, training minimises E_q[ln q(w) - c ln p(w)], whose derivatives are c
 * mu and c sigma^2 - 1 (by ln sigma); c = 1 gives those of the KL. The reported kl is never annealed. */

typedef struct drawn_data {
  double low, high; /* of ln sigma */
  int temperature;  /* scalar */
  int seen;         /* KL of a state: steps that q has heads for */
} drawn_data;

/* in: head, noise, use; out: w, kl. */
typedef struct innovation_row {
  const dvbf_real *mu, *raw, *eps;
  bool use, zero;
} innovation_row;

/* Row r, counted over the op's steps. */
static innovation_row innovation_row_at(const dvbf_run *run, const dvbf_op *op, int r) {
  int n = op->out[0].cols;
  const dvbf_real *head = dv_at(run, op->in[0]), *use = dv_at(run, op->in[2]);
  const dvbf_real *mu = head ? head + (size_t)r * 2 * n : NULL;
  return (innovation_row){mu, head ? mu + n : NULL, dv_at(run, op->in[1]) + (size_t)r * n,
                          head && (!use || use[r] > 0), use && use[r] < 0};
}

static void innovation_forward(const dvbf_op *op, dvbf_run *run) {
  const drawn_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  dvbf_real *w = dv_at(run, op->out[0]), *kl = dv_at(run, op->out[1]);
  for (int r = 0; r < rows; r++, w += n) {
    innovation_row row = innovation_row_at(run, op, r);
    kl[r] = 0;
    if (row.zero) memset(w, 0, (size_t)n * sizeof *w);
    if (!row.use && !row.zero) memcpy(w, row.eps, (size_t)n * sizeof *w);
    if (!row.use) continue;
    for (int k = 0; k < n; k++) {
      dvbf_real ls = dv_clamp(row.raw[k], d->low, d->high), sigma = (dvbf_real)dv_exp(ls);
      w[k] = row.mu[k] + sigma * row.eps[k];
      kl[r] += (dvbf_real)0.5 * (row.mu[k] * row.mu[k] + sigma * sigma - 1) - ls;
    }
  }
}

static void innovation_backward(const dvbf_op *op, dvbf_run *run) {
  const drawn_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  dvbf_real c = (dvbf_real)run->scalars[d->temperature];
  const dvbf_real *dw = dvbf_gradient_at(run, op->out[0]), *dkl = dvbf_gradient_at(run, op->out[1]);
  dvbf_real *d_head = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < rows; r++, dw += n, d_head += 2 * n) {
    innovation_row row = innovation_row_at(run, op, r);
    if (!row.use) continue;
    for (int k = 0; k < n; k++) {
      d_head[k] += dw[k] + dkl[r] * c * row.mu[k];
      if (row.raw[k] < d->low || row.raw[k] > d->high) continue;
      dvbf_real sigma = (dvbf_real)dv_exp(row.raw[k]);
      d_head[n + k] += dw[k] * sigma * row.eps[k] + dkl[r] * (c * sigma * sigma - 1);
    }
  }
}

/* mu + sigma eps of a head */
static dvbf_expr emit_drawn(const dvbf_op *op, dvbf_code *code, dvbf_value head, dvbf_expr eps) {
  const drawn_data *d = op->data;
  dvbf_value raw = head;
  raw.offset += (size_t)op->out[0].cols;
  dvbf_expr sigma = dvbf_code_unary(code, DVBF_EXP_OF, dv_within(code, dv_read(code, raw), d->low, d->high));
  return dv_plus(code, dv_read(code, head), dv_times(code, sigma, eps));
}

/* w alone: the kl is of the bound, which no exported program has. */
static void innovation_emit(const dvbf_op *op, dvbf_code *code) {
  dvbf_expr eps = dv_read(code, op->in[1]), w = eps;
  if (op->in[0].buffer >= 0) w = emit_drawn(op, code, op->in[0], eps);
  if (op->in[0].buffer >= 0 && op->in[2].buffer >= 0)
    w = dvbf_code_choose(code, dv_read_column(code, op->in[2]), w, eps);
  dv_emit(code, op->out[0], w);
}

static const dvbf_op_class innovation_class = {"innovation", innovation_forward, innovation_backward,
                                               innovation_emit};

void dvbf_innovation_step(dvbf_graph *g, const dvbf_innovation *i, int t) {
  drawn_data data = {i->low, i->high, dvbf_scalar(g, DVBF_TEMPERATURE, 1), 0};
  int first = t < 0 ? 0 : t, count = t < 0 ? i->w.steps : 1;
  dvbf_value in[] = {dvbf_steps(i->head, first, count), dvbf_steps(i->noise, first, count),
                     dvbf_steps(i->use, first, count)};
  dvbf_value out[] = {dvbf_steps(i->w, first, count), dvbf_steps(i->kl, first, count)};
  if ((i->head.buffer >= 0 && i->head.cols != 2 * i->w.cols) || i->noise.cols != i->w.cols)
    dvbf_refuse(g, "a head of %d outputs cannot give %d innovations", i->head.cols, i->w.cols);
  dvbf_record(g, &innovation_class, 3, in, 2, out, &data, sizeof data);
}

/* ---- Universal parameters v ----
 *
 *   KL = sum_n ln s - ln sigma + (sigma^2 + (mu - m)^2) / (2 s^2) - 1/2
 *
 * It belongs to the data set, so each of N sequences carries a share of 1 / N; it is not annealed. */

typedef struct universal_data {
  int term, sequences; /* KL(q(v) || p(v)) / N, and the scalar N */
} universal_data;

static double shard_weight(const dvbf_run *run, dvbf_value weight) {
  const dvbf_real *w = dv_at(run, weight);
  double sum = 0;
  for (int r = 0; r < weight.rows; r++) sum += (double)w[r];
  return sum;
}

/* in: mean, log_sigma, prior, noise, weight; out: v. */
static void universal_forward(const dvbf_op *op, dvbf_run *run) {
  const universal_data *d = op->data;
  int n = op->in[0].cols, steps = op->out[0].steps;
  const dvbf_real *mean = dv_at(run, op->in[0]), *ls = dv_at(run, op->in[1]), *prior = dv_at(run, op->in[2]);
  const dvbf_real *eps = dv_at(run, op->in[3]);
  dvbf_real *v = dv_at(run, op->out[0]);
  double kl = 0, m = (double)prior[0], log_s = (double)prior[1], precision = dv_exp(-2 * log_s);
  for (int k = 0; k < n; k++) {
    double sigma = dv_exp((double)ls[k]), apart = (double)mean[k] - m;
    for (int t = 0; t < steps; t++)
      v[(size_t)t * n + k] = mean[k] + (dvbf_real)sigma * eps[(size_t)t * n + k];
    kl += log_s - (double)ls[k] + 0.5 * precision * (sigma * sigma + apart * apart) - 0.5;
  }
  dvbf_term_add(run, d->term, kl / run->scalars[d->sequences] * shard_weight(run, op->in[4]));
}

static void universal_backward(const dvbf_op *op, dvbf_run *run) {
  const universal_data *d = op->data;
  int n = op->in[0].cols, steps = op->out[0].steps;
  const dvbf_real *mean = dv_at(run, op->in[0]), *ls = dv_at(run, op->in[1]), *prior = dv_at(run, op->in[2]);
  const dvbf_real *eps = dv_at(run, op->in[3]), *dv = dvbf_gradient_at(run, op->out[0]);
  dvbf_real *d_mean = dvbf_gradient_at(run, op->in[0]), *d_ls = dvbf_gradient_at(run, op->in[1]);
  dvbf_real *d_prior = dvbf_gradient_at(run, op->in[2]);
  double g = dvbf_term_factor(run, d->term) * shard_weight(run, op->in[4]) / run->scalars[d->sequences];
  double m = (double)prior[0], precision = dv_exp(-2 * (double)prior[1]);
  for (int k = 0; k < n; k++) {
    double sigma = dv_exp((double)ls[k]), apart = (double)mean[k] - m, by_mean = g * precision * apart;
    double by_ls = g * (precision * sigma * sigma - 1), to_mean = by_mean;
    for (int t = 0; t < steps; t++) {
      double dvk = (double)dv[(size_t)t * n + k];
      to_mean += dvk;
      by_ls += dvk * sigma * (double)eps[(size_t)t * n + k];
    }
    d_mean[k] += (dvbf_real)to_mean;
    d_ls[k] += (dvbf_real)by_ls;
    d_prior[0] -= (dvbf_real)by_mean;
    d_prior[1] += (dvbf_real)(g * (1 - precision * (sigma * sigma + apart * apart)));
  }
}

static const dvbf_op_class universal_class = {"universal", universal_forward, universal_backward, NULL};

void dvbf_universal_sample(dvbf_graph *g, const dvbf_universal *u) {
  universal_data data = {dvbf_term(g, DVBF_KL_V, 1), dvbf_scalar(g, DVBF_SEQUENCES, 1)};
  dvbf_value in[] = {u->mean, u->log_sigma, u->prior, u->noise, u->weight};
  dvbf_record(g, &universal_class, 5, in, 1, &u->v, &data, sizeof data);
}

/* ---- States z ---- */

/* With a learned prior
 *
 *   kl = sum_n ln sigma_p - ln sigma_q + (sigma_q^2 + d^2) / (2 sigma_p^2) - 1/2,   d = mu_q - mu_p
 *
 * Training minimises E_q[ln q(z) - c ln p(z)] with inverse temperature c; the reported kl is not annealed.
 * Derivatives:
 *
 *   mu_q         c d / sigma_p^2
 *   ln sigma_q   c sigma_q^2 / sigma_p^2 - 1
 *   mu_p        -c d / sigma_p^2
 *   ln sigma_p   c (1 - (sigma_q^2 + d^2) / sigma_p^2) */

/* The head that z of row r comes from; its gradient with `back`. in: q, p, noise, use; out: z. A step past
 * those that q has seen has no q; a sample that takes all steps from q has no `use`. */
static dvbf_real *head_of(const dvbf_run *run, const dvbf_op *op, int r, bool back) {
  const dvbf_real *use = dv_at(run, op->in[3]);
  bool q = op->in[0].buffer >= 0 && (!use || use[r] > 0);
  return (back ? dv_row_gradient : dv_row)(run, op->in[q ? 0 : 1], r);
}

/* 0 if filter dropout asks for the mean of the prior, else 1. */
static dvbf_real noise_factor(const dvbf_run *run, const dvbf_op *op, int r) {
  const dvbf_real *use = dv_at(run, op->in[3]);
  return use && use[r] < 0 ? 0 : 1;
}

static void sample_forward(const dvbf_op *op, dvbf_run *run) {
  const drawn_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  dvbf_real *z = dv_at(run, op->out[0]);
  const dvbf_real *eps = dv_at(run, op->in[2]);
  for (int r = 0; r < rows; r++, z += n, eps += n) {
    const dvbf_real *head = head_of(run, op, r, false), factor = noise_factor(run, op, r);
    for (int k = 0; k < n; k++)
      z[k] = head[k] + (dvbf_real)dv_exp(dv_clamp(head[n + k], d->low, d->high)) * factor * eps[k];
  }
}

static void sample_backward(const dvbf_op *op, dvbf_run *run) {
  const drawn_data *d = op->data;
  int n = op->out[0].cols, rows = op->out[0].steps * op->out[0].rows;
  const dvbf_real *dz = dvbf_gradient_at(run, op->out[0]), *eps = dv_at(run, op->in[2]);
  for (int r = 0; r < rows; r++, dz += n, eps += n) {
    const dvbf_real *head = head_of(run, op, r, false);
    dvbf_real *back = head_of(run, op, r, true), factor = noise_factor(run, op, r);
    for (int k = 0; k < n; k++) {
      back[k] += dz[k];
      if (head[n + k] < d->low || head[n + k] > d->high) continue;
      back[n + k] += dz[k] * (dvbf_real)dv_exp(head[n + k]) * factor * eps[k];
    }
  }
}

static void sample_emit(const dvbf_op *op, dvbf_code *code) {
  bool q = op->in[0].buffer >= 0, p = op->in[1].buffer >= 0, use = op->in[3].buffer >= 0;
  dvbf_expr eps = dv_read(code, op->in[2]);
  if (q && p && use)
    dv_emit(code, op->out[0],
            dvbf_code_choose(code, dv_read_column(code, op->in[3]), emit_drawn(op, code, op->in[0], eps),
                             emit_drawn(op, code, op->in[1], eps)));
  else
    dv_emit(code, op->out[0], emit_drawn(op, code, op->in[q ? 0 : 1], eps));
}

static const dvbf_op_class sample_class = {"state-sample", sample_forward, sample_backward, sample_emit};

static bool state_fits(dvbf_graph *g, const dvbf_state *s) {
  int n = s->z.cols;
  bool fits = s->p.cols == 2 * n && s->noise.cols == n && (!s->seen || s->q.cols == 2 * n) &&
              s->seen <= s->z.steps && (!s->seen || s->q.steps >= s->seen);
  if (!fits)
    dvbf_refuse(g, "heads [%d][%d] and [%d][%d] cannot give %d steps of %d states", s->q.steps, s->q.cols,
                s->p.steps, s->p.cols, s->z.steps, n);
  return fits;
}

void dvbf_state_sample(dvbf_graph *g, const dvbf_state *s, int t) {
  drawn_data data = {.low = s->low, .high = s->high};
  int first = t < 0 ? 0 : t, count = t < 0 ? s->z.steps : 1;
  dvbf_value none = DVBF_NONE, z = dvbf_steps(s->z, first, count);
  dvbf_value in[] = {first + count <= s->seen ? dvbf_steps(s->q, first, count) : none,
                     dvbf_steps(s->p, first, count), dvbf_steps(s->noise, first, count),
                     dvbf_steps(s->use, first, count)};
  if (t < 0 && s->seen < s->z.steps) dvbf_refuse(g, "q has seen %d of %d steps", s->seen, s->z.steps);
  if (t < 0) in[1] = in[3] = none; /* p is written later */
  if (state_fits(g, s)) dvbf_record(g, &sample_class, 4, in, 1, &z, &data, sizeof data);
}

/* in: q, p, use; out: kl. Row r is counted over all steps. */
static bool uses_q(const dvbf_run *run, const dvbf_op *op, int r) {
  const drawn_data *d = op->data;
  return r < d->seen * op->out[0].rows && dv_at(run, op->in[2])[r] > 0;
}

static void state_kl_forward(const dvbf_op *op, dvbf_run *run) {
  const drawn_data *s = op->data;
  int n = op->in[1].cols / 2;
  dvbf_real *kl = dv_at(run, op->out[0]);
  for (int r = 0; r < dv_rows(op->out[0]); r++, kl++) {
    *kl = 0;
    if (!uses_q(run, op, r)) continue;
    const dvbf_real *q = dv_row(run, op->in[0], r), *p = dv_row(run, op->in[1], r);
    for (int k = 0; k < n; k++) {
      dvbf_real lq = dv_clamp(q[n + k], s->low, s->high), lp = dv_clamp(p[n + k], s->low, s->high);
      dvbf_real d = (q[k] - p[k]) * (dvbf_real)dv_exp(-lp), ratio = (dvbf_real)dv_exp(2 * (lq - lp));
      *kl += lp - lq + (dvbf_real)0.5 * (ratio + d * d - 1);
    }
  }
}

static void state_kl_backward(const dvbf_op *op, dvbf_run *run) {
  const drawn_data *s = op->data;
  int n = op->in[1].cols / 2;
  dvbf_real c = (dvbf_real)run->scalars[s->temperature];
  const dvbf_real *dkl = dvbf_gradient_at(run, op->out[0]);
  for (int r = 0; r < dv_rows(op->out[0]); r++, dkl++) {
    if (!uses_q(run, op, r)) continue;
    const dvbf_real *q = dv_row(run, op->in[0], r), *p = dv_row(run, op->in[1], r);
    dvbf_real *dq = dv_row_gradient(run, op->in[0], r), *dp = dv_row_gradient(run, op->in[1], r);
    for (int k = 0; k < n; k++) {
      dvbf_real lq = dv_clamp(q[n + k], s->low, s->high), lp = dv_clamp(p[n + k], s->low, s->high);
      dvbf_real d = q[k] - p[k], precision = (dvbf_real)dv_exp(-2 * lp);
      dvbf_real ratio = (dvbf_real)dv_exp(2 * (lq - lp)), by_mean = *dkl * c * d * precision;
      dq[k] += by_mean;
      dp[k] -= by_mean;
      if (q[n + k] >= s->low && q[n + k] <= s->high) dq[n + k] += *dkl * (c * ratio - 1);
      if (p[n + k] >= s->low && p[n + k] <= s->high) dp[n + k] += *dkl * c * (1 - ratio - d * d * precision);
    }
  }
}

static const dvbf_op_class state_kl_class = {"state-kl", state_kl_forward, state_kl_backward, NULL};

void dvbf_state_kl(dvbf_graph *g, const dvbf_state *s) {
  drawn_data data = {s->low, s->high, dvbf_scalar(g, DVBF_TEMPERATURE, 1), s->seen};
  dvbf_value in[] = {s->q, s->p, s->use};
  if (state_fits(g, s)) dvbf_record(g, &state_kl_class, 3, in, 1, &s->kl, &data, sizeof data);
}
