"""Results as small records of arrays, for N sequences, S samples, T steps, Q quantiles; x has frames as in the data:
[..., columns] or [..., height, width]."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Origin:
    """Origin of estimates in a data file."""

    sequence: npt.NDArray[np.int64]  #: [N] number of each sequence in its file, from 0
    step: npt.NDArray[np.int64]  #: [N] step of that sequence at entry 0
    name: list[str]  #: [N] of the sequences; "" if unnamed
    split: str  #: "train", "valid", "test" or "all"
    time: Doubles | None  #: [N, T] seconds; since 1970-01-01 if `dates`
    sample_time: float | None  #: seconds from step to step
    dates: bool  #: the file has dates
    x_true: Floats | None  #: [N, T, ...] x of the file, NaN if unknown; None: larger than memory
    x_names: list[str] | None
    u_names: list[str] | None
    x_units: list[str] | None
    u_units: list[str] | None


@dataclass(frozen=True)
class Estimates:
    """Estimates of states and observations by `filter`, `smooth`, `predict` and `sample`. For a committee, x is pooled over
    its members and z is from the best one."""

    z_mean: Floats  #: [N, T, latent]
    z_std: Floats  #: [N, T, latent]
    x: Floats  #: [N, T, ...] mean
    x_std: Floats  #: [N, T, ...]
    z: Floats  #: [N, S, T, latent] samples
    x_quantiles: Floats | None  #: [Q, N, T, ...]
    quantiles: Doubles | None  #: [Q]
    x_samples: Floats | None  #: [N, S, T, ...]
    u: Floats | None  #: [N, T, controls] the controls that acted
    length: npt.NDArray[np.uint32]  #: [N] steps of each sequence
    first: int  #: step of the sequences at entry 0
    origin: Origin | None = None  #: for data from a file


@dataclass(frozen=True)
class Belief:
    """Belief of an online filter after a step."""

    ready: bool  #: False until the model has seen its first frames; until then the rest is 0
    mean: Floats  #: [latent]
    std: Floats  #: [latent]
    z: Floats  #: [S, latent] samples


@dataclass(frozen=True)
class Control:
    """Result of a step of a controller."""

    u: Floats  #: [controls] to apply until the next step
    ready: bool  #: False: there is no plan, and u is the safe control
    reason: str | None  #: why there is no plan
    cost: float  #: of the plan; NaN without one
    iterations: int  #: that improved the plan
    plan_u: Floats  #: [T, controls], of which u is the first
    plan_z: Floats  #: [T + 1, latent] expected states
    belief: Belief


@dataclass(frozen=True)
class Forecast:
    """Forecast of the next T steps by an online filter."""

    x: Floats  #: [T, ...] mean
    x_std: Floats  #: [T, ...]
    x_quantiles: Floats  #: [Q, T, ...]
    quantiles: Doubles  #: [Q]
    z_mean: Floats  #: [T, latent]
    z_std: Floats  #: [T, latent]


@dataclass(frozen=True)
class Exported:
    """Result of `export`. Sizes are for .c; values that do not apply to the kind of file are 0."""

    prefix: str  #: of the symbols
    constant_bytes: int  #: weights and scaling
    state_bytes: int  #: the struct of the filter
    stack_bytes: int  #: intermediate results
    multiplications: float  #: of one step, without forecast and samples
    vectors: int  #: steps of the test
    tolerance: float  #: of the test, relative to 1 + |value|
    rmse: float  #: one-step error in standard deviations of the columns; NaN if not measured
    rmse_rounded: float  #: the same with rounded weights
    sample_time: float  #: of an FMU, in seconds
    binary: bool  #: the FMU contains a binary for this machine, not only sources


@dataclass(frozen=True)
class Linearisation:
    """A model without noise and its derivatives at a point: f(z + dz, u + du) = next + A dz + B du, and
    h(z + dz, u + du) = x + H dz + D du. Unpacks to A, B, H."""

    A: Floats  #: [latent, latent]
    B: Floats  #: [latent, controls]
    H: Floats  #: [columns, latent]
    D: Floats  #: [columns, controls]; 0 without feedthrough
    next: Floats  #: [latent]
    x: Floats  #: [columns]

    def __iter__(self) -> Iterator[Floats]:
        return iter((self.A, self.B, self.H))


@dataclass(frozen=True)
class Score:
    """Error of one way to predict."""

    rmse: float  #: over the columns that vary, each in units of its standard deviation in training
    fit: float  #: in %: 100 (1 - rmse / rmse of the mean)
    rmse_by_column: Doubles  #: [columns] in units of the column
    fit_by_column: Doubles  #: [columns]; NaN for a column that does not vary


@dataclass(frozen=True)
class Rolling:
    """Predictions from many origins, all scored on the same values; None for a way that cannot predict."""

    origins: int
    steps: int
    mean: Score | None
    last: Score | None
    linear: Score | None
    learned: Score | None
    coverage_50: float  #: fraction of x inside the central 50 % of the predictions; NaN if unknown
    coverage_90: float


@dataclass(frozen=True)
class Verdict:
    """A model compared with three baselines: the mean, the last value and the best linear model."""

    useful: bool  #: False: no better than the mean
    sentence: str
    split: str  #: of the data used
    one_step: Rolling
    free_run: Rolling
    columns: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Regression:
    """Ordinary least squares of one column of the true state on the latent state."""

    r2: float
    log_likelihood: float


@dataclass(frozen=True)
class Evaluation:
    """Bounds on the likelihood in nats per frame, and squared errors of predictions by horizon."""

    elbo: float
    elbo_std: float
    reconstruction: float
    kl_w: float
    kl_v: float
    importance_bound: float  #: NaN without `particles`
    particle_bound: float
    observed: int  #: steps observed before the prediction
    mse: Doubles  #: [horizon] of sampled predictions
    mse_mean_path: Doubles  #: [horizon] of predictions without noise
    mse_repeat: Doubles  #: [horizon] of persistence (the last frame repeated)
    mse_mean: Doubles  #: [horizon] of the mean of the training data
    origins: np.ndarray  #: [horizon] number of predictions
    pixel_variance: float
    regressions: dict[str, Regression]  #: by column of the state
    verdict: Verdict | None
    mse_linear: Doubles | None = None  #: [horizon] of the best linear model, where training found one


@dataclass(frozen=True)
class Choice:
    """A setting chosen from the data, with the reason; if `value` equals `was`, `why` is a recommendation only."""

    name: str
    value: str
    was: str
    why: str


@dataclass(frozen=True)
class Progress:
    """Progress of training. Unknown numbers are NaN."""

    update: int
    updates: int
    start: int
    starts: int
    seconds: float
    seconds_left: float
    bound: float  #: nats per frame, of the last minibatches
    validated: bool  #: the next two are new
    valid_bound: float
    valid_prediction: float  #: prediction error over the variance of x
    event: str | None  #: a sentence about a restart, a recovery, a candidate of a search


@dataclass(frozen=True)
class Capabilities:
    """Version of the library, and what this machine supports."""

    version: str
    instructions: str  #: "base", "v3" or "v4" of x86-64
    tiles: bool  #: bfloat16 products on tile units (AMX) work
    cores: int


def record_of(cls: type[Any], source: Any, **others: Any) -> Any:
    """A record from the fields of a C struct."""
    names = [name for name in cls.__dataclass_fields__ if name not in others]
    return cls(**{name: getattr(source, name) for name in names}, **others)
