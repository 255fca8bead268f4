/* Convolutions around the networks of a model (network = conv): an image encoder on the way in, and
 * transposed convolutions as the last layers of the emission (dv_image_encoder_of, dv_record_picture). All
 * else of a model is unchanged, so every density works; models that read their own frames back have none. */

/*   encoder    s_t = convolutions of x_t, each of which halves the image and doubles its channels
 *   emission   image of the smallest size = f(h W + b), from the hidden units; then transposed convolutions,
 *              the last of which has a bias for each pixel, at first that of the mean image
 *
 * Recognition and the initial network see s_t in place of x_t. */
#include "model/networks.h"

#include "model/program.h"

#include <math.h>
#include <stdio.h>

enum { SIZE = 4, STRIDE = 2, PADDING = 1, SMALLEST_SIDE = 8, MOST_STAGES = 8, CHANNEL_GROWTH = 4 };

/* The images from the largest to the smallest one, number `count`. */
typedef struct stages {
  dvbf_image image[MOST_STAGES + 1];
  int count;
} stages;

bool dv_convolves(const dvbf_model *m) {
  return m->settings->network == DV_NETWORK_CONV;
}

/* Checks the settings of the image. */
static bool image_fits(dvbf_graph *g, const dvbf_model *m) {
  int64_t height = m->settings->image_height, width = m->settings->image_width;
  if (height < SMALLEST_SIDE || width < SMALLEST_SIDE || m->n_x % (height * width)) {
    dvbf_refuse(g,
                "network = conv needs images of at least %d x %d pixels, but x has %d columns and "
                "image-height x image-width = %d x %d; network = dense takes any x",
                SMALLEST_SIDE, SMALLEST_SIDE, m->n_x, (int)height, (int)width);
    return false;
  }
  return true;
}

static stages stages_of(const dvbf_model *m) {
  const dv_train_settings *s = m->settings;
  int height = (int)s->image_height, width = (int)s->image_width, channels = (int)s->channels;
  stages all = {.image = {{height, width, m->n_x / (height * width)}}};
  while (all.count < MOST_STAGES) {
    dvbf_image now = all.image[all.count];
    if (now.height < SMALLEST_SIDE || now.width < SMALLEST_SIDE) break;
    all.image[++all.count] = dvbf_convolved(now, SIZE, STRIDE, PADDING, channels);
    if (channels < CHANNEL_GROWTH * (int)s->channels) channels *= 2;
  }
  return all;
}

static int pixels_of(dvbf_image i) {
  return i.height * i.width * i.channels;
}

/* Convolution between image i and the next smaller one. `scale` is that of a weight whose result sums one
 * number. */
static dvbf_convolution make_convolution(dvbf_graph *g, const stages *all, int i, const char *network,
                                         bool transposed, double scale, int biases, const double *bias) {
  dvbf_image large = all->image[i], small = all->image[i + 1];
  char name[64];
  int patch = SIZE * SIZE * large.channels;
  double sums = transposed ? (double)small.channels * SIZE * SIZE / (STRIDE * STRIDE) : patch;
  dvbf_convolution c = {.large = large,
                        .channels = small.channels,
                        .size = SIZE,
                        .stride = STRIDE,
                        .padding = PADDING,
                        .transposed = transposed};
  snprintf(name, sizeof name, "%s.convolution-%d", network, i + 1);
  c.w = dvbf_parameter(g, name, patch, small.channels, (dvbf_first){.scale = scale / sqrt(sums)});
  snprintf(name, sizeof name, "%s.bias-%d", network, i + 1);
  c.bias = dvbf_parameter(g, name, 1, biases, (dvbf_first){.values = bias});
  return c;
}

static dvbf_value record_sight(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  if (!image_fits(g, m)) return p->x;
  stages all = stages_of(m);
  dvbf_value now = p->x;
  for (int i = 0; i < all.count; i++) {
    dvbf_image to = all.image[i + 1];
    double scale = i ? sqrt(2) : sqrt(2 * m->n_x / m->x_spread);
    dvbf_convolution c = make_convolution(g, &all, i, "sight", false, scale, to.channels, NULL);
    c.activation = dv_hidden_activation(m->settings);
    c.x = now;
    c.out = now = (p->one_x ? dvbf_slab_shared : dvbf_slab)(g, p->x.steps, pixels_of(to));
    dvbf_convolve(g, &c);
  }
  return now;
}

dv_image_encoder dv_image_encoder_of(dvbf_program *p, const dvbf_model *m, int first, int steps) {
  if (!dv_convolves(m)) return (dv_image_encoder){"x", dvbf_steps(p->x, first, steps), m->x_spread};
  if (p->sight.buffer < 0) p->sight = record_sight(p, m);
  return (dv_image_encoder){"sight", dvbf_steps(p->sight, first, steps), p->sight.cols};
}

static void recognise_block(dvbf_program *p, const dvbf_model *m, dvbf_value head, int first, bool path) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  dvbf_value none = DVBF_NONE;
  dv_image_encoder sight = dv_image_encoder_of(p, m, first, head.steps);
  dv_stack hidden = dv_hidden(g, s, "recognition", head.steps, (dvbf_first){0},
                              (dv_dense_in[4]){{sight.name, sight.value, 1 / sqrt(sight.spread), false},
                                               {"mask", dvbf_steps(dv_mask_input(p, m), first, head.steps),
                                                DV_SCALE_RECOGNITION, false}});
  dv_stack_add(&hidden,
               dv_dense(g, "recognition.output", head, DVBF_LINEAR, (dvbf_first){0},
                        (dv_dense_in[4]){{"x", path ? dv_linear_path(m, sight.value) : none, 0, false},
                                         {"h", dv_stack_top(&hidden), 1 / sqrt((double)s->hidden), false}}));
  dv_stack_whole(g, &hidden);
}

void dv_recognise_frames(dvbf_program *p, const dvbf_model *m, dvbf_value head, int first, bool path) {
  dv_image_encoder_of(p, m, first, head.steps); /* blocks share the convolutional features of x */
  for (dv_step_blocks b = dv_blocks_of(p->graph, m, head.steps); dv_next_block(p->graph, &b);)
    recognise_block(p, m, dvbf_steps(head, b.first, b.steps), first + b.first, path);
}

void dv_record_picture(dvbf_program *p, const dvbf_model *m, dvbf_value hidden, dvbf_activation activation) {
  dvbf_graph *g = p->graph;
  const dv_train_settings *s = m->settings;
  if (!image_fits(g, m)) return;
  if (s->linear_paths || (s->feedthrough && m->n_u))
    dvbf_refuse(
        g, "network = conv has no linear paths and no feedthrough; set linear-paths and feedthrough off, or "
           "network = dense");
  stages all = stages_of(m);
  dvbf_value now = dvbf_slab(g, p->steps, pixels_of(all.image[all.count]));
  dvbf_layer first = dv_dense(g, "emission.picture", now, dv_hidden_activation(s), (dvbf_first){0},
                              (dv_dense_in[4]){{"h", hidden, sqrt(2 / (double)s->hidden), false}});
  dvbf_layer_whole(g, &first);
  for (int i = all.count - 1; i >= 0; i--) {
    dvbf_convolution c = make_convolution(g, &all, i, "emission", true, i ? sqrt(2) : DV_SCALE_PICTURE,
                                          i ? all.image[i].channels : m->n_x, i ? NULL : m->first_output);
    c.activation = i ? dv_hidden_activation(s) : activation;
    c.x = now;
    c.out = now = i ? dvbf_slab(g, p->steps, pixels_of(all.image[i])) : p->output;
    dvbf_convolve(g, &c);
  }
}
