"""What the library finds, as small records of arrays. N sequences, S samples, T steps, Q quantiles; x has the shape
of the data behind the steps: [..., columns] or [..., height, width]."""

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
    """What estimates of a file are of."""

    sequence: npt.NDArray[np.int64]  #: [N] number of each sequence in its file, from 0
    step: npt.NDArray[np.int64]  #: [N] step of that sequence that entry 0 belongs to
    name: list[str]  #: [N] of the sequences, "" where they have none
    split: str  #: "train", "valid", "test" or "all"
    time: Doubles | None  #: [N, T] seconds; since 1970-01-01 where `dates`
    sample_time: float | None  #: seconds from step to step
    dates: bool  #: the file has dates
    x_true: Floats | None  #: [N, T, ...] x of the file, NaN where there is none; None: it is larger than memory
    x_names: list[str] | None
    u_names: list[str] | None
    x_units: list[str] | None
    u_units: list[str] | None


@dataclass(frozen=True)
class Estimates:
    """States and observations: of `filter`, `smooth`, `predict` and `sample`. Of a committee, x is pooled over its
    members and z is that of the best."""

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
    first: int  #: step of the sequences that entry 0 belongs to
    origin: Origin | None = None  #: of data that come from a file


@dataclass(frozen=True)
class Belief:
    """What an online filter knows after a step."""

    ready: bool  #: False until the model has seen its first frames; the rest is zeros until then
    mean: Floats  #: [latent]
    std: Floats  #: [latent]
    z: Floats  #: [S, latent] samples


@dataclass(frozen=True)
class Control:
    """What a controller gives in a step."""

    u: Floats  #: [controls] to apply until the next step
    ready: bool  #: False where u is the safe control, because there is no plan
    reason: str | None  #: why it is
    cost: float  #: of the plan; NaN where there is none
    iterations: int  #: that improved it
    plan_u: Floats  #: [T, controls], of which u is the first
    plan_z: Floats  #: [T + 1, latent] where it is expected to lead
    belief: Belief


@dataclass(frozen=True)
class Forecast:
    """What an online filter expects of the next T steps."""

    x: Floats  #: [T, ...] mean
    x_std: Floats  #: [T, ...]
    x_quantiles: Floats  #: [Q, T, ...]
    quantiles: Doubles  #: [Q]
    z_mean: Floats  #: [T, latent]
    z_std: Floats  #: [T, latent]


@dataclass(frozen=True)
class Exported:
    """What `export` has written. Sizes are of .c; what belongs to another kind of file is 0."""

    prefix: str  #: of the symbols
    constant_bytes: int  #: weights and scaling
    state_bytes: int  #: the struct of the filter
    stack_bytes: int  #: intermediate results
    multiplications: float  #: of one step, without forecast and samples
    vectors: int  #: steps of the test
    tolerance: float  #: of the test, as a share of 1 + size
    rmse: float  #: error one step ahead in deviations of the columns; NaN where it was not measured
    rmse_rounded: float  #: the same with rounded weights
    sample_time: float  #: of an FMU, in seconds
    binary: bool  #: an FMU has a binary for this machine, not only its sources


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
    """How far off one way to predict is."""

    rmse: float  #: over the columns that vary, each in units of its standard deviation in training
    fit: float  #: in %: 100 (1 - rmse / rmse of the mean)
    rmse_by_column: Doubles  #: [columns] in units of the column
    fit_by_column: Doubles  #: [columns]; NaN for a column that does not vary


@dataclass(frozen=True)
class Rolling:
    """Predictions from many origins, all scored on the same values. A way that cannot predict is None."""

    origins: int
    steps: int
    mean: Score | None
    last: Score | None
    linear: Score | None
    learned: Score | None
    coverage_50: float  #: share of x inside the central half of what the model expects
    coverage_90: float


@dataclass(frozen=True)
class Verdict:
    """A model beside what one would do otherwise: the mean, the last value, the best linear model."""

    useful: bool  #: False: no better than the mean
    sentence: str
    split: str  #: of the data that judged
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
    observed: int  #: steps seen before prediction starts
    mse: Doubles  #: [horizon] of sampled predictions
    mse_mean_path: Doubles  #: [horizon] of predictions without noise
    mse_repeat: Doubles  #: [horizon] of repeating the last frame
    mse_mean: Doubles  #: [horizon] of the mean of the training data
    origins: np.ndarray  #: [horizon] predictions that these are of
    pixel_variance: float
    regressions: dict[str, Regression]  #: by column of the state
    verdict: Verdict | None
    mse_linear: Doubles | None = None  #: [horizon] of the best linear model, where training found one


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen to suit the data, and why; where it stays as it was, `why` is advice."""

    name: str
    value: str
    was: str
    why: str


@dataclass(frozen=True)
class Progress:
    """How training goes. What is not known yet is NaN."""

    update: int
    updates: int
    start: int
    starts: int
    seconds: float
    seconds_left: float
    bound: float  #: nats per frame, of the last minibatches
    validated: bool  #: the next are new
    valid_bound: float
    valid_prediction: float  #: prediction error over the variance of x
    event: str | None  #: a sentence about a restart, a recovery, a candidate of a search


@dataclass(frozen=True)
class Abilities:
    """What the library can do here."""

    version: str
    instructions: str  #: "base", "v3" or "v4" of x86-64
    tiles: bool  #: products in bfloat16 on tile units work
    cores: int


def record_of(cls: type[Any], source: Any, **others: Any) -> Any:
    """A record from the fields of the same name of a C struct."""
    names = [name for name in cls.__dataclass_fields__ if name not in others]
    return cls(**{name: getattr(source, name) for name in names}, **others)
