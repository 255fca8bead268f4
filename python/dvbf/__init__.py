"""Deep Variational Bayes Filters: learn a latent state-space model from sequences, then filter, smooth and predict.

m = dvbf.fit(x, u)                      # x [N, T, columns], u [N, T, controls]
m.predict(x, u_longer, steps=40)        # forecast: mean and quantiles
f = m.online(); f.step(x_t, u_t)        # in real time
"""

from . import _api
from ._control import Controller
from ._errors import (
    ArgumentError,
    DivergedError,
    DvbfError,
    FileError,
    FormatError,
    InterruptedTraining,
    OutOfMemoryError,
)
from ._estimator import Dvbf
from ._fit import fit, simulate
from ._library import lib as _lib
from ._model import Model, Parameters, load
from ._online import Online
from ._results import (
    Belief,
    Capabilities,
    Choice,
    Control,
    Estimates,
    Evaluation,
    Exported,
    Forecast,
    Linearisation,
    Origin,
    Progress,
    Regression,
    Rolling,
    Score,
    Verdict,
)
from ._settings import Setting, presets
from ._settings import table as settings

__version__: str = _api.DVBF_VERSION


def capabilities() -> Capabilities:
    """Version of the library, and what this machine supports."""
    found = _lib.dvbf_get_capabilities()
    return Capabilities(found.version.decode(), found.instructions.decode(), found.tiles, found.cores)


# Former names, removed in the next release.
Abilities = Capabilities
describe = capabilities

__all__ = [
    "ArgumentError",
    "Belief",
    "Capabilities",
    "Choice",
    "Control",
    "Controller",
    "DivergedError",
    "Dvbf",
    "DvbfError",
    "Estimates",
    "Evaluation",
    "Exported",
    "FileError",
    "Forecast",
    "FormatError",
    "InterruptedTraining",
    "Linearisation",
    "Model",
    "Online",
    "Origin",
    "OutOfMemoryError",
    "Parameters",
    "Progress",
    "Regression",
    "Rolling",
    "Score",
    "Setting",
    "Verdict",
    "__version__",
    "capabilities",
    "fit",
    "load",
    "presets",
    "settings",
    "simulate",
]
