/* Regression of known quantities on latent states: ordinary least squares (dv_regress, dvbf_regress), the map
 * from z to known states (dvbf_state_map), and a small network for what z holds nonlinearly
 * (dv_network_regress), whose R^2 is of rows that it has not seen. */
#include "base/error.h"
#include "base/memory.h"
#include "evaluate/evaluate.h"
#include "infer/estimate.h"
#include "math/algebra.h"
#include "math/portable.h"
#include "math/random.h"
#include "model/model.h"

#include <dvbf/core.h>

#include <math.h>
#include <string.h>

static double fitted(const float *x, size_t k, const double *beta) {
  double sum = beta[k];
  for (size_t j = 0; j < k; j++) sum += beta[j] * (double)x[j];
  return sum;
}

dvbf_status dv_regress(const float *x, size_t n, size_t k, const float *y, size_t stride, double *r2,
                       double *log_likelihood, double *coefficients, dvbf_error *error) {
  size_t columns = k + 1;
  if (n < columns + 1)
    return dv_fail(error, DVBF_FORMAT, "%zu frames are too few to regress on %zu latent dimensions", n, k);
  double *a = dv_calloc(n, columns * sizeof *a), *b = dv_calloc(n, sizeof *b);
  double *scratch = dv_calloc(columns, (3 * columns + 2) * sizeof *scratch), mean = 0, rss = 0, tss = 0;
  dvbf_status status = a && b && scratch ? DVBF_OK : dv_fail_memory(error, "regressing");
  for (size_t i = 0; i < n && !status; i++) {
    for (size_t j = 0; j < k; j++) a[i * columns + j] = (double)x[i * k + j];
    a[i * columns + k] = 1;
    b[i] = (double)y[i * stride];
    mean += b[i] / (double)n;
  }
  /* Latent dimensions that were never used make the columns dependent. */
  if (!status) dv_least_squares(a, b, n, (int)columns, 1e-10, scratch);
  for (size_t i = 0; i < n && !status; i++) {
    double yi = (double)y[i * stride], e = yi - fitted(x + i * k, k, b);
    rss += e * e;
    tss += (yi - mean) * (yi - mean);
  }
  if (!status) {
    for (size_t j = 0; coefficients && j < columns; j++) coefficients[j] = b[j];
    *r2 = tss > 0 ? 1 - rss / tss : 0;
    *log_likelihood =
        -0.5 * (double)n * (dv_log(2 * 3.14159265358979323846 * fmax(rss, 1e-300) / (double)n) + 1);
  }
  DV_FREE(a, b, scratch);
  return status;
}

dvbf_status dvbf_regress(dvbf_regression *out, const float *z, size_t points, size_t n_z, const float *y,
                         size_t stride, dvbf_error *error) {
  return dv_regress(z, points, n_z, y, stride, &out->r2, &out->log_likelihood, NULL, error);
}

/* ---- State map ---- */

/* Fills z [points][n_z] and y [points][n_s] with all steps that have a belief and a known state; returns
 * their number. */
static size_t gather(float *z, float *y, const dvbf_estimates *e, const dvbf_sequences *s) {
  size_t points = 0, n_z = e->n_z, n_s = s->n_s;
  for (size_t i = 0; i < e->count; i++) {
    size_t begin = dvbf_estimates_begin(e, i), steps = e->length ? e->length[i] : e->steps;
    const float *state = s->state + (dvbf_sequence_start(s, i) + begin) * n_s;
    for (size_t t = 0; t < steps; t++, state += n_s) {
      bool known = true;
      for (size_t k = 0; k < n_s; k++) known &= isfinite(state[k]) != 0;
      if (!known) continue;
      memcpy(z + points * n_z, e->z_mean + (i * e->steps + t) * n_z, n_z * sizeof *z);
      memcpy(y + points++ * n_s, state, n_s * sizeof *y);
    }
  }
  return points;
}

dvbf_status dvbf_state_map(float *map, double *r2, const dvbf_model *m, const dvbf_sequences *s,
                           dvbf_error *error) {
  dvbf_estimates *e = NULL;
  size_t n_z = (size_t)m->n_z, n_s = s->n_s;
  if (!n_s || !s->state)
    return dv_fail(error, DVBF_ARGUMENT, "these data contain no known states to regress on z");
  const dv_estimate_request ask = {.kind = DV_FILTER, .samples = 100, .seed = 1};
  dvbf_status status = dv_estimate(&e, m, s, &ask, error);
  if (status) return status;
  float *z = dv_calloc(e->count * e->steps + 1, n_z * sizeof *z);
  float *y = dv_calloc(e->count * e->steps + 1, n_s * sizeof *y);
  double *row = dv_calloc(n_z + 1, sizeof *row), likelihood, one;
  if (!z || !y || !row) status = dv_fail_memory(error, "regressing the state");
  size_t points = status ? 0 : gather(z, y, e, s);
  for (size_t k = 0; k < n_s && !status; k++) {
    status = dv_regress(z, points, n_z, y + k, n_s, r2 ? r2 + k : &one, &likelihood, row, error);
    for (size_t i = 0; i <= n_z && !status; i++) map[k * (n_z + 1) + i] = (float)row[i];
  }
  dvbf_estimates_free(e);
  DV_FREE(z, y, row);
  return status;
}

/* ---- Regression by a network ---- */

enum { UNITS = 32, BATCH = 50, UPDATES = 3000 };

/* y = h V + x D + b, h = tanh(x W + c), on standardised x and y. The weights are one vector: W and c [k +
 * 1][UNITS], then V, D and b [UNITS + k + 1][m]. */
typedef struct network {
  size_t k, m, size;
  double *values, *gradient, *first, *second; /* [size] */
  double *x, *h, *y, *back;                   /* of one row: [k], [UNITS], [m], [UNITS] */
  double *mean, *scale;                       /* [k + m] of x and y in the first half */
  double *memory;
} network;

static double *output_weights(double *of, const network *net) {
  return of + (net->k + 1) * UNITS;
}

static dvbf_status init_network(network *net, size_t k, size_t m, dvbf_error *error) {
  *net = (network){.k = k, .m = m, .size = (k + 1) * UNITS + (UNITS + k + 1) * m};
  net->memory = dv_calloc(4 * net->size + 3 * (k + m) + 2 * UNITS, sizeof *net->memory);
  if (!net->memory) return dv_fail_memory(error, "a regression by a network");
  net->values = net->memory;
  net->gradient = net->values + net->size;
  net->first = net->gradient + net->size;
  net->second = net->first + net->size;
  net->x = net->second + net->size;
  net->h = net->x + k;
  net->y = net->h + UNITS;
  net->back = net->y + m;
  net->mean = net->back + UNITS;
  net->scale = net->mean + k + m;
  dv_random random = dv_random_at(1, DV_STREAM_SIMULATION, 77, 0);
  for (size_t i = 0; i < k * UNITS; i++) net->values[i] = dv_random_normal(&random) / sqrt((double)k);
  return DVBF_OK;
}

/* Mean and inverse deviation of each column; a constant column has scale 0. */
static void standardise(double *mean, double *scale, const float *from, size_t n, size_t columns) {
  for (size_t j = 0; j < columns; j++) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += (double)from[i * columns + j];
    mean[j] = sum / (double)n;
    for (size_t i = 0; i < n; i++) {
      double apart = (double)from[i * columns + j] - mean[j];
      squares += apart * apart;
    }
    scale[j] = squares > 1e-12 * (double)n ? 1 / sqrt(squares / (double)n) : 0;
  }
}

/* net->y from a row of x. */
static void predict(network *net, const float *x) {
  const double *w = net->values, *v = output_weights(net->values, net);
  size_t k = net->k, m = net->m;
  for (size_t j = 0; j < k; j++) net->x[j] = ((double)x[j] - net->mean[j]) * net->scale[j];
  memcpy(net->h, w + k * UNITS, UNITS * sizeof *net->h);
  for (size_t j = 0; j < k; j++)
    for (size_t i = 0; i < UNITS; i++) net->h[i] += net->x[j] * w[j * UNITS + i];
  for (size_t i = 0; i < UNITS; i++) net->h[i] = dv_tanh(net->h[i]);
  memcpy(net->y, v + (UNITS + k) * m, m * sizeof *net->y);
  for (size_t i = 0; i < UNITS + k; i++)
    for (size_t o = 0; o < m; o++) net->y[o] += (i < UNITS ? net->h[i] : net->x[i - UNITS]) * v[i * m + o];
}

/* Adds the gradient of half the squared error of the row that was predicted last. */
static void backpropagate(network *net, const float *y) {
  const double *v = output_weights(net->values, net);
  double *dw = net->gradient, *dv = output_weights(net->gradient, net);
  size_t k = net->k, m = net->m;
  for (size_t o = 0; o < m; o++) net->y[o] -= ((double)y[o] - net->mean[k + o]) * net->scale[k + o];
  for (size_t i = 0; i < UNITS; i++) {
    net->back[i] = 0;
    for (size_t o = 0; o < m; o++) net->back[i] += v[i * m + o] * net->y[o];
    net->back[i] *= 1 - net->h[i] * net->h[i];
  }
  for (size_t i = 0; i <= UNITS + k; i++) {
    double in = i < UNITS ? net->h[i] : i < UNITS + k ? net->x[i - UNITS] : 1;
    for (size_t o = 0; o < m; o++) dv[i * m + o] += in * net->y[o];
  }
  for (size_t j = 0; j <= k; j++)
    for (size_t i = 0; i < UNITS; i++) dw[j * UNITS + i] += (j < k ? net->x[j] : 1) * net->back[i];
}

/* A step of Adam, and all gradients 0. */
static void step(network *net, double rate, size_t number) {
  double first = 1 - dv_pow(0.9, (double)number), second = 1 - dv_pow(0.999, (double)number);
  for (size_t i = 0; i < net->size; i++) {
    double g = net->gradient[i] / BATCH;
    net->first[i] += 0.1 * (g - net->first[i]);
    net->second[i] += 0.001 * (g * g - net->second[i]);
    net->values[i] -= rate * net->first[i] / first / (sqrt(net->second[i] / second) + 1e-8);
    net->gradient[i] = 0;
  }
}

/* Rows are taken in strides, so that a batch holds no neighbours in time; the rate falls to 0. */
static void train(network *net, const float *x, const float *y, size_t n) {
  size_t batches = n / BATCH;
  for (size_t u = 0; u < UPDATES; u++) {
    for (size_t b = 0; b < BATCH; b++) {
      size_t row = b * batches + u % batches;
      predict(net, x + row * net->k);
      backpropagate(net, y + row * net->m);
    }
    step(net, 0.005 * (1 - (double)u / UPDATES), u + 1);
  }
}

static void judge(double *r2, network *net, const float *x, const float *y, size_t n) {
  for (size_t o = 0; o < net->m; o++) {
    double mean = 0, total = 0, rest = 0, scale = net->scale[net->k + o];
    for (size_t i = 0; i < n; i++) mean += (double)y[i * net->m + o] / (double)n;
    for (size_t i = 0; i < n; i++) {
      double apart = (double)y[i * net->m + o] - mean;
      predict(net, x + i * net->k);
      double error = (double)y[i * net->m + o] - net->mean[net->k + o] - (scale > 0 ? net->y[o] / scale : 0);
      total += apart * apart;
      rest += error * error;
    }
    r2[o] = total > 0 ? 1 - rest / total : (double)NAN;
  }
}

dvbf_status dv_network_regress(double *r2, const float *x, size_t n, size_t k, const float *y, size_t m,
                               dvbf_error *error) {
  network net;
  size_t half = n / 2;
  if (half < 2 * BATCH)
    return dv_fail(error, DVBF_FORMAT,
                   "%zu frames are too few for a regression by a network: at least %d are needed", n,
                   4 * BATCH);
  dvbf_status status = init_network(&net, k, m, error);
  if (status) return status;
  standardise(net.mean, net.scale, x, half, k);
  standardise(net.mean + k, net.scale + k, y, half, m);
  train(&net, x, y, half);
  judge(r2, &net, x + half * k, y + half * m, n - half);
  dv_free(net.memory);
  return DVBF_OK;
}
