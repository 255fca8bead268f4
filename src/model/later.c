/* What recognition may know of the frames after the next (recognition = smoothing): a network that reads them
 * backwards,
 *
 *   b_t = f(x_t W + u_{t-1} U + b_{t+1} R + c)      from b_{K+1} = 0 behind the last frame that may be seen
 *
 * and q(w_t | z_t, x_{t+1}, .., x_K, u) sees b_{t+2}. A filter knows none of these frames, and has 0 in its
 * place. So that this is a q of its own and not a guess, training leaves b out for a share of the sequences
 * (look-ahead-dropout). */
#include "model/picture.h"
#include "op/op.h"

dvbf_value dv_record_later(dvbf_program *p, const dvbf_model *m) {
  dvbf_graph *g = p->graph;
  int steps = p->steps - 1, frames = (p->observe < p->steps ? p->observe : p->steps) - 1;
  dvbf_value out = dvbf_slab(g, steps, (int)m->settings->hidden);
  if (frames < 1) {
    dvbf_zero(g, out);
    return out;
  }
  dv_birnn net = dv_birnn_on(p, m, "recognition", frames + 1, false);
  net.x = dvbf_steps(net.x, 1, frames);
  net.mask = dvbf_steps(net.mask, 1, frames);
  net.u = m->n_u ? dvbf_steps(p->u, 0, frames) : DVBF_NONE;
  net.fast_dropout = false; /* that is the initial network's */
  /* b of the frame next to the first is there only so that two frames, too, have all parameters. */
  dvbf_value b = dv_record_backward(g, &net);
  dv_record_row_dropout(g, dvbf_steps(out, 0, frames), dvbf_steps(b, 1, frames), DVBF_LOOK_AHEAD_DROPOUT);
  if (frames < steps) dvbf_zero(g, dvbf_steps(out, frames, steps - frames));
  return out;
}
