"""Verdicts, evaluations and results of exports, from structs of the library."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _api
from ._arrays import view
from ._results import Evaluation, Exported, Regression, Rolling, Score, Verdict


def _score(s: Any, n_x: int) -> Score | None:
    if not np.isfinite(s.rmse):
        return None
    columns = view(s.rmse_by_column, (n_x,), np.float64), view(s.fit_by_column, (n_x,), np.float64)
    return Score(s.rmse, s.fit, *columns)


def _rolling(r: Any, n_x: int) -> Rolling:
    ways = (_api.DVBF_BY_MEAN, _api.DVBF_BY_LAST, _api.DVBF_BY_LINEAR, _api.DVBF_BY_LEARNED)
    scores = [_score(r.score[way], n_x) for way in ways]
    mean, last, linear, learned = scores
    return Rolling(r.origins, r.steps, mean, last, linear, learned, r.coverage_50, r.coverage_90)


def verdict_of(v: _api.dvbf_verdict) -> Verdict:
    return Verdict(
        useful=v.useful,
        sentence=v.sentence.decode(),
        split=v.split.decode(),
        one_step=_rolling(v.one_step, v.n_x),
        free_run=_rolling(v.free_run, v.n_x),
        columns=[v.names[i].value.decode() for i in range(v.n_x)],
    )


def evaluation_of(e: _api.dvbf_evaluation) -> Evaluation:
    regressions = [e.regressions[i] for i in range(e.n_regressions)]
    names = ("mse", "mse_mean_path", "mse_repeat", "mse_mean") + (("mse_linear",) if e.mse_linear else ())
    curves = {name: view(getattr(e, name), (e.horizon,), np.float64) for name in names}
    return Evaluation(
        elbo=e.elbo,
        elbo_std=e.elbo_deviation,
        reconstruction=e.reconstruction,
        kl_w=e.kl_w,
        kl_v=e.kl_v,
        importance_bound=e.importance_bound,
        particle_bound=e.particle_bound,
        observed=e.observed,
        origins=view(e.origins, (e.horizon,), np.uintp),
        pixel_variance=e.pixel_variance,
        regressions={r.name.decode(): Regression(r.r2, r.log_likelihood) for r in regressions},
        verdict=verdict_of(e.verdict.contents) if e.verdict else None,
        **curves,
    )


def exported_of(e: _api.dvbf_export_result) -> Exported:
    return Exported(
        prefix=e.prefix.decode(),
        constant_bytes=e.constant_bytes,
        state_bytes=e.state_bytes,
        stack_bytes=e.stack_bytes,
        multiplications=e.multiplications,
        vectors=e.vectors,
        tolerance=e.tolerance,
        rmse=e.rmse,
        rmse_rounded=e.rmse_rounded,
        sample_time=e.sample_time,
        binary=e.binary,
    )
