"""The C API as ctypes, written by scripts/api from the headers in include/dvbf: do not edit.

Numbers behind pointers are plain addresses, and so are objects whose content is the library's own.
"""

from __future__ import annotations

from ctypes import (
    CDLL,
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_size_t,
    c_uint,
    c_uint32,
    c_uint64,
    c_void_p,
)
from typing import Any

DVBF_VERSION = "0.1.0"


class dvbf_capabilities(Structure):
    version: Any
    instructions: Any
    tiles: bool
    cores: int
    _fields_ = [
        ("version", c_char_p),
        ("instructions", c_char_p),
        ("tiles", c_bool),
        ("cores", c_uint),
    ]

DVBF_OK = 0
DVBF_ARGUMENT = 1
DVBF_FORMAT = 2
DVBF_IO = 3
DVBF_MEMORY = 4
DVBF_NUMERIC = 5
DVBF_STOPPED = 6


class dvbf_error(Structure):
    status: int
    message: Any
    _fields_ = [
        ("status", c_int),
        ("message", c_char * 512),
    ]


class dvbf_setting_info(Structure):
    name: Any
    group: Any
    kind: Any
    range: Any
    initial: Any
    help: Any
    users: Any
    common: bool
    recipe: bool
    _fields_ = [
        ("name", c_char_p),
        ("group", c_char_p),
        ("kind", c_char_p),
        ("range", c_char_p),
        ("initial", c_char_p),
        ("help", c_char_p),
        ("users", c_char_p),
        ("common", c_bool),
        ("recipe", c_bool),
    ]


class dvbf_origin(Structure):
    sequence: int
    step: int
    time: float
    name: Any
    _fields_ = [
        ("sequence", c_uint64),
        ("step", c_uint64),
        ("time", c_double),
        ("name", c_char * 32),
    ]


class dvbf_sequences(Structure):
    count: int
    steps: int
    n_x: int
    n_u: int
    n_s: int
    x: Any
    u: Any
    state: Any
    start: Any
    length: Any
    gaps: bool
    source: Any
    origin: Any
    facts: Any
    borrowed: int
    _fields_ = [
        ("count", c_size_t),
        ("steps", c_size_t),
        ("n_x", c_size_t),
        ("n_u", c_size_t),
        ("n_s", c_size_t),
        ("x", c_void_p),
        ("u", c_void_p),
        ("state", c_void_p),
        ("start", c_void_p),
        ("length", c_void_p),
        ("gaps", c_bool),
        ("source", c_void_p),
        ("origin", POINTER(dvbf_origin)),
        ("facts", c_void_p),
        ("borrowed", c_uint),
    ]

DVBF_BORROWED_X = 1
DVBF_BORROWED_U = 2
DVBF_BORROWED_STATE = 4


class dvbf_use(Structure):
    name: Any
    role: Any
    _fields_ = [
        ("name", c_char * 64),
        ("role", c_char * 128),
    ]


class dvbf_data(Structure):
    train: Any
    valid: Any
    test: Any
    image_height: int
    image_width: int
    image_channels: int
    state_names: Any
    x_names: Any
    u_names: Any
    x_units: Any
    u_units: Any
    sample_time: float
    dates: bool
    notes: Any
    n_notes: int
    uses: Any
    n_uses: int
    question: Any
    _fields_ = [
        ("train", dvbf_sequences),
        ("valid", dvbf_sequences),
        ("test", dvbf_sequences),
        ("image_height", c_size_t),
        ("image_width", c_size_t),
        ("image_channels", c_size_t),
        ("state_names", POINTER(c_char * 32)),
        ("x_names", POINTER(c_char * 32)),
        ("u_names", POINTER(c_char * 32)),
        ("x_units", POINTER(c_char * 16)),
        ("u_units", POINTER(c_char * 16)),
        ("sample_time", c_double),
        ("dates", c_bool),
        ("notes", POINTER(c_char * 256)),
        ("n_notes", c_size_t),
        ("uses", POINTER(dvbf_use)),
        ("n_uses", c_size_t),
        ("question", c_char * 256),
    ]


class dvbf_column(Structure):
    seen: int
    low: float
    high: float
    mean: float
    deviation: float
    _fields_ = [
        ("seen", c_uint64),
        ("low", c_double),
        ("high", c_double),
        ("mean", c_double),
        ("deviation", c_double),
    ]


class dvbf_columns(Structure):
    width: int
    all: Any
    column: Any
    whole: bool
    binary: bool
    _fields_ = [
        ("width", c_size_t),
        ("all", dvbf_column),
        ("column", POINTER(dvbf_column)),
        ("whole", c_bool),
        ("binary", c_bool),
    ]


class dvbf_sequences_info(Structure):
    frames: int
    shortest: int
    longest: int
    median: float
    x: Any
    u: Any
    state: Any
    _fields_ = [
        ("frames", c_uint64),
        ("shortest", c_size_t),
        ("longest", c_size_t),
        ("median", c_double),
        ("x", dvbf_columns),
        ("u", dvbf_columns),
        ("state", dvbf_columns),
    ]

dvbf_message_fn = CFUNCTYPE(None, c_char_p, c_void_p)


class dvbf_model_info(Structure):
    n_x: int
    n_u: int
    n_z: int
    n_w: int
    parameters: int
    updates: int
    seed: int
    seconds: float
    members: int
    frames: int
    feedthrough: bool
    x_shift: Any
    x_scale: Any
    u_shift: Any
    u_scale: Any
    _fields_ = [
        ("n_x", c_size_t),
        ("n_u", c_size_t),
        ("n_z", c_size_t),
        ("n_w", c_size_t),
        ("parameters", c_size_t),
        ("updates", c_uint64),
        ("seed", c_uint64),
        ("seconds", c_double),
        ("members", c_size_t),
        ("frames", c_size_t),
        ("feedthrough", c_bool),
        ("x_shift", c_void_p),
        ("x_scale", c_void_p),
        ("u_shift", c_void_p),
        ("u_scale", c_void_p),
    ]


class dvbf_parameter_info(Structure):
    name: Any
    rows: int
    columns: int
    trained: bool
    _fields_ = [
        ("name", c_char_p),
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("trained", c_bool),
    ]


class dvbf_estimates(Structure):
    count: int
    samples: int
    steps: int
    n_z: int
    n_x: int
    n_u: int
    n_quantiles: int
    first: int
    begin: Any
    length: Any
    z: Any
    z_mean: Any
    z_std: Any
    x: Any
    x_std: Any
    x_quantiles: Any
    x_samples: Any
    u: Any
    quantiles: Any
    _fields_ = [
        ("count", c_size_t),
        ("samples", c_size_t),
        ("steps", c_size_t),
        ("n_z", c_size_t),
        ("n_x", c_size_t),
        ("n_u", c_size_t),
        ("n_quantiles", c_size_t),
        ("first", c_size_t),
        ("begin", c_void_p),
        ("length", c_void_p),
        ("z", c_void_p),
        ("z_mean", c_void_p),
        ("z_std", c_void_p),
        ("x", c_void_p),
        ("x_std", c_void_p),
        ("x_quantiles", c_void_p),
        ("x_samples", c_void_p),
        ("u", c_void_p),
        ("quantiles", c_void_p),
    ]

dvbf_fraction_fn = CFUNCTYPE(None, c_double, c_void_p)


class dvbf_jacobians(Structure):
    n_z: int
    n_u: int
    n_x: int
    next: Any
    a: Any
    b: Any
    x: Any
    h: Any
    d: Any
    _fields_ = [
        ("n_z", c_size_t),
        ("n_u", c_size_t),
        ("n_x", c_size_t),
        ("next", c_void_p),
        ("a", c_void_p),
        ("b", c_void_p),
        ("x", c_void_p),
        ("h", c_void_p),
        ("d", c_void_p),
    ]


class dvbf_belief(Structure):
    ready: bool
    samples: int
    n_z: int
    mean: Any
    deviation: Any
    z: Any
    _fields_ = [
        ("ready", c_bool),
        ("samples", c_size_t),
        ("n_z", c_size_t),
        ("mean", c_void_p),
        ("deviation", c_void_p),
        ("z", c_void_p),
    ]


class dvbf_forecast_request(Structure):
    steps: int
    u: Any
    n_quantiles: int
    quantiles: Any
    noise_free: bool
    x: Any
    x_std: Any
    x_quantiles: Any
    z_mean: Any
    z_std: Any
    _fields_ = [
        ("steps", c_size_t),
        ("u", c_void_p),
        ("n_quantiles", c_size_t),
        ("quantiles", c_void_p),
        ("noise_free", c_bool),
        ("x", c_void_p),
        ("x_std", c_void_p),
        ("x_quantiles", c_void_p),
        ("z_mean", c_void_p),
        ("z_std", c_void_p),
    ]


class dvbf_goal(Structure):
    count: int
    x: Any
    z: Any
    n_s: int
    state: Any
    map: Any
    weights: Any
    _fields_ = [
        ("count", c_size_t),
        ("x", c_void_p),
        ("z", c_void_p),
        ("n_s", c_size_t),
        ("state", c_void_p),
        ("map", c_void_p),
        ("weights", c_void_p),
    ]


class dvbf_control(Structure):
    ready: bool
    reason: Any
    n_u: int
    n_z: int
    steps: int
    u: Any
    plan_u: Any
    plan_z: Any
    cost: float
    iterations: int
    belief: Any
    _fields_ = [
        ("ready", c_bool),
        ("reason", c_char_p),
        ("n_u", c_size_t),
        ("n_z", c_size_t),
        ("steps", c_size_t),
        ("u", c_void_p),
        ("plan_u", c_void_p),
        ("plan_z", c_void_p),
        ("cost", c_double),
        ("iterations", c_int),
        ("belief", dvbf_belief),
    ]

DVBF_FLOAT32 = 0
DVBF_FLOAT64 = 1
DVBF_UINT32 = 2
DVBF_INT64 = 3
DVBF_UINT8 = 4
DVBF_TEXT = 5

DVBF_MAX_RANK = 8


class dvbf_array(Structure):
    name: Any
    type: int
    rank: int
    dims: Any
    values: Any
    _fields_ = [
        ("name", c_char_p),
        ("type", c_int),
        ("rank", c_int),
        ("dims", c_size_t * 8),
        ("values", c_void_p),
    ]

DVBF_FORMATS = 128


class dvbf_system_info(Structure):
    name: Any
    settings: Any
    has_goal: bool
    _fields_ = [
        ("name", c_char_p),
        ("settings", c_char_p),
        ("has_goal", c_bool),
    ]


class dvbf_progress(Structure):
    update: int
    updates: int
    start: int
    starts: int
    begun: int
    seconds: float
    seconds_left: float
    bound: float
    validated: bool
    valid_bound: float
    valid_reconstruction: float
    valid_kl_w: float
    valid_kl_v: float
    valid_prediction: float
    learning_rate: float
    temperature: float
    sigma_floor: float
    phase: int
    valid_one_step: float
    event: Any
    _fields_ = [
        ("update", c_uint64),
        ("updates", c_uint64),
        ("start", c_uint),
        ("starts", c_uint),
        ("begun", c_uint),
        ("seconds", c_double),
        ("seconds_left", c_double),
        ("bound", c_double),
        ("validated", c_bool),
        ("valid_bound", c_double),
        ("valid_reconstruction", c_double),
        ("valid_kl_w", c_double),
        ("valid_kl_v", c_double),
        ("valid_prediction", c_double),
        ("learning_rate", c_double),
        ("temperature", c_double),
        ("sigma_floor", c_double),
        ("phase", c_uint),
        ("valid_one_step", c_double),
        ("event", c_char_p),
    ]

dvbf_choice_fn = CFUNCTYPE(None, c_char_p, c_char_p, c_char_p, c_char_p, c_void_p)

dvbf_progress_fn = CFUNCTYPE(c_bool, POINTER(dvbf_progress), c_void_p)

DVBF_RUN_SETTINGS = "settings.txt"

DVBF_RUN_METRICS = "metrics.csv"

DVBF_RUN_MODEL = "model.safetensors"

DVBF_RUN_CHECKPOINT = "checkpoint.safetensors"

DVBF_RUN_SEARCH = "search.csv"


class dvbf_train_options(Structure):
    progress: Any
    user_data: Any
    folder: Any
    resume: bool
    force: bool
    _fields_ = [
        ("progress", dvbf_progress_fn),
        ("user_data", c_void_p),
        ("folder", c_char_p),
        ("resume", c_bool),
        ("force", c_bool),
    ]

DVBF_BY_MEAN = 0
DVBF_BY_LAST = 1
DVBF_BY_LINEAR = 2
DVBF_BY_LEARNED = 3
DVBF_WAYS = 4


class dvbf_score(Structure):
    rmse: float
    fit: float
    rmse_by_column: Any
    fit_by_column: Any
    _fields_ = [
        ("rmse", c_double),
        ("fit", c_double),
        ("rmse_by_column", c_void_p),
        ("fit_by_column", c_void_p),
    ]


class dvbf_rolling(Structure):
    origins: int
    steps: int
    score: Any
    coverage_50: float
    coverage_90: float
    n_ranks: int
    ranks: Any
    _fields_ = [
        ("origins", c_size_t),
        ("steps", c_size_t),
        ("score", dvbf_score * 4),
        ("coverage_50", c_double),
        ("coverage_90", c_double),
        ("n_ranks", c_size_t),
        ("ranks", c_void_p),
    ]

DVBF_LAGS = 20
DVBF_BINS = 32


class dvbf_whiteness(Structure):
    band: float
    outside: float
    autocorrelation: Any
    p: Any
    histogram: Any
    _fields_ = [
        ("band", c_double),
        ("outside", c_double),
        ("autocorrelation", POINTER(c_double * 20)),
        ("p", c_void_p),
        ("histogram", POINTER(c_double * 32)),
    ]


class dvbf_discrete_likelihood(Structure):
    mean: float
    last: float
    learned: float
    frames: int
    _fields_ = [
        ("mean", c_double),
        ("last", c_double),
        ("learned", c_double),
        ("frames", c_size_t),
    ]


class dvbf_verdict(Structure):
    split: Any
    n_x: int
    names: Any
    one_step: Any
    free_run: Any
    whiteness: Any
    nats: Any
    useful: bool
    sentence: Any
    _fields_ = [
        ("split", c_char * 16),
        ("n_x", c_size_t),
        ("names", POINTER(c_char * 32)),
        ("one_step", dvbf_rolling),
        ("free_run", dvbf_rolling),
        ("whiteness", dvbf_whiteness),
        ("nats", dvbf_discrete_likelihood),
        ("useful", c_bool),
        ("sentence", c_char * 512),
    ]


class dvbf_member_stability(Structure):
    systems: int
    measure: Any
    length: float
    draws: int
    drawn: float
    contracts: bool
    bounded: bool
    n_z: int
    reach: Any
    sentence: Any
    _fields_ = [
        ("systems", c_size_t),
        ("measure", c_char_p),
        ("length", c_double),
        ("draws", c_size_t),
        ("drawn", c_double),
        ("contracts", c_bool),
        ("bounded", c_bool),
        ("n_z", c_size_t),
        ("reach", c_void_p),
        ("sentence", c_char * 400),
    ]


class dvbf_stability(Structure):
    contracts: bool
    bounded: bool
    length: float
    n_members: int
    members: Any
    sentence: Any
    _fields_ = [
        ("contracts", c_bool),
        ("bounded", c_bool),
        ("length", c_double),
        ("n_members", c_size_t),
        ("members", POINTER(dvbf_member_stability)),
        ("sentence", c_char * 512),
    ]


class dvbf_regression(Structure):
    name: Any
    r2: float
    log_likelihood: float
    _fields_ = [
        ("name", c_char * 32),
        ("r2", c_double),
        ("log_likelihood", c_double),
    ]


class dvbf_evaluation(Structure):
    n_regressions: int
    regressions: Any
    elbo: float
    reconstruction: float
    kl_w: float
    kl_v: float
    elbo_deviation: float
    particles: int
    importance_bound: float
    particle_bound: float
    observed: int
    horizon: int
    columns: int
    origins: Any
    mse: Any
    mse_mean_path: Any
    mse_repeat: Any
    mse_mean: Any
    mse_linear: Any
    pixel_variance: float
    stability: Any
    verdict: Any
    distance: Any
    distance_repeat: Any
    steps_near: float
    _fields_ = [
        ("n_regressions", c_size_t),
        ("regressions", POINTER(dvbf_regression)),
        ("elbo", c_double),
        ("reconstruction", c_double),
        ("kl_w", c_double),
        ("kl_v", c_double),
        ("elbo_deviation", c_double),
        ("particles", c_size_t),
        ("importance_bound", c_double),
        ("particle_bound", c_double),
        ("observed", c_size_t),
        ("horizon", c_size_t),
        ("columns", c_size_t),
        ("origins", c_void_p),
        ("mse", c_void_p),
        ("mse_mean_path", c_void_p),
        ("mse_repeat", c_void_p),
        ("mse_mean", c_void_p),
        ("mse_linear", c_void_p),
        ("pixel_variance", c_double),
        ("stability", POINTER(dvbf_stability)),
        ("verdict", POINTER(dvbf_verdict)),
        ("distance", c_void_p),
        ("distance_repeat", c_void_p),
        ("steps_near", c_double),
    ]


class dvbf_latent_model(Structure):
    title: Any
    points: int
    n_z: int
    z: Any
    angle: Any
    velocity: Any
    _fields_ = [
        ("title", c_char_p),
        ("points", c_size_t),
        ("n_z", c_size_t),
        ("z", c_void_p),
        ("angle", c_void_p),
        ("velocity", c_void_p),
    ]


class dvbf_figure_latent(Structure):
    title: Any
    models: int
    model: Any
    narrow: bool
    _fields_ = [
        ("title", c_char_p),
        ("models", c_size_t),
        ("model", dvbf_latent_model * 2),
        ("narrow", c_bool),
    ]


class dvbf_walk(Structure):
    name: Any
    steps: int
    z: Any
    _fields_ = [
        ("name", c_char_p),
        ("steps", c_size_t),
        ("z", c_void_p),
    ]


class dvbf_figure_walks(Structure):
    title: Any
    n_z: int
    walks: int
    walk: Any
    attractor: Any
    points: int
    z: Any
    angle: Any
    velocity: Any
    _fields_ = [
        ("title", c_char_p),
        ("n_z", c_size_t),
        ("walks", c_size_t),
        ("walk", dvbf_walk * 3),
        ("attractor", c_void_p),
        ("points", c_size_t),
        ("z", c_void_p),
        ("angle", c_void_p),
        ("velocity", c_void_p),
    ]


class dvbf_strip_row(Structure):
    label: Any
    images: Any
    observed: int
    _fields_ = [
        ("label", c_char_p),
        ("images", c_void_p),
        ("observed", c_size_t),
    ]


class dvbf_figure_strips(Structure):
    title: Any
    frames: int
    height: int
    width: int
    rows: int
    row: Any
    training_steps: int
    channels: int
    _fields_ = [
        ("title", c_char_p),
        ("frames", c_size_t),
        ("height", c_size_t),
        ("width", c_size_t),
        ("rows", c_size_t),
        ("row", POINTER(dvbf_strip_row)),
        ("training_steps", c_size_t),
        ("channels", c_size_t),
    ]


class dvbf_figure_ball(Structure):
    title: Any
    points: int
    n_z: int
    z: Any
    position: Any
    velocity: Any
    box_low: float
    box_high: float
    cells: int
    narrow: bool
    _fields_ = [
        ("title", c_char_p),
        ("points", c_size_t),
        ("n_z", c_size_t),
        ("z", c_void_p),
        ("position", c_void_p),
        ("velocity", c_void_p),
        ("box_low", c_double),
        ("box_high", c_double),
        ("cells", c_size_t),
        ("narrow", c_bool),
    ]


class dvbf_learning_run(Structure):
    name: Any
    count: int
    update: Any
    train_bound: Any
    valid_bound: Any
    prediction: Any
    kl: Any
    _fields_ = [
        ("name", c_char_p),
        ("count", c_size_t),
        ("update", c_void_p),
        ("train_bound", c_void_p),
        ("valid_bound", c_void_p),
        ("prediction", c_void_p),
        ("kl", c_void_p),
    ]


class dvbf_figure_curves(Structure):
    title: Any
    runs: int
    run: Any
    kept: float
    signals: bool
    _fields_ = [
        ("title", c_char_p),
        ("runs", c_size_t),
        ("run", POINTER(dvbf_learning_run)),
        ("kept", c_double),
        ("signals", c_bool),
    ]


class dvbf_figure_signals(Structure):
    title: Any
    steps: int
    columns: int
    truth: Any
    prediction: Any
    names: Any
    observed: int
    low: Any
    high: Any
    units: Any
    start: float
    sample_time: float
    _fields_ = [
        ("title", c_char_p),
        ("steps", c_size_t),
        ("columns", c_size_t),
        ("truth", c_void_p),
        ("prediction", c_void_p),
        ("names", POINTER(c_char * 32)),
        ("observed", c_size_t),
        ("low", c_void_p),
        ("high", c_void_p),
        ("units", POINTER(c_char * 16)),
        ("start", c_double),
        ("sample_time", c_double),
    ]


class dvbf_error_curve(Structure):
    name: Any
    horizon: int
    mse: Any
    mse_mean_path: Any
    _fields_ = [
        ("name", c_char_p),
        ("horizon", c_size_t),
        ("mse", c_void_p),
        ("mse_mean_path", c_void_p),
    ]


class dvbf_figure_errors(Structure):
    title: Any
    models: int
    model: Any
    repeat_horizon: int
    repeat: Any
    observed: int
    training_steps: int
    signals: bool
    _fields_ = [
        ("title", c_char_p),
        ("models", c_size_t),
        ("model", POINTER(dvbf_error_curve)),
        ("repeat_horizon", c_size_t),
        ("repeat", c_void_p),
        ("observed", c_size_t),
        ("training_steps", c_size_t),
        ("signals", c_bool),
    ]


class dvbf_table(Structure):
    caption: Any
    rows: int
    columns: int
    cells: Any
    emphasis: Any
    _fields_ = [
        ("caption", c_char_p),
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("cells", c_void_p),
        ("emphasis", c_char_p),
    ]

DVBF_SPACE_POINTS = 4000


class dvbf_space_column(Structure):
    name: Any
    values: Any
    stride: int
    cyclic: bool
    group: Any
    _fields_ = [
        ("name", c_char_p),
        ("values", c_void_p),
        ("stride", c_size_t),
        ("cyclic", c_bool),
        ("group", c_char_p),
    ]


class dvbf_space(Structure):
    caption: Any
    points: int
    n_z: int
    z: Any
    columns: int
    column: Any
    _fields_ = [
        ("caption", c_char_p),
        ("points", c_size_t),
        ("n_z", c_size_t),
        ("z", c_void_p),
        ("columns", c_size_t),
        ("column", POINTER(dvbf_space_column)),
    ]


class dvbf_film_row(Structure):
    label: Any
    images: Any
    observed: int
    _fields_ = [
        ("label", c_char_p),
        ("images", c_void_p),
        ("observed", c_size_t),
    ]


class dvbf_film(Structure):
    caption: Any
    sequences: int
    frames: int
    height: int
    width: int
    rows: int
    row: Any
    length: Any
    training_steps: int
    black: float
    white: float
    names: Any
    channels: int
    _fields_ = [
        ("caption", c_char_p),
        ("sequences", c_size_t),
        ("frames", c_size_t),
        ("height", c_size_t),
        ("width", c_size_t),
        ("rows", c_size_t),
        ("row", POINTER(dvbf_film_row)),
        ("length", c_void_p),
        ("training_steps", c_size_t),
        ("black", c_float),
        ("white", c_float),
        ("names", c_void_p),
        ("channels", c_size_t),
    ]

dvbf_note_fn = CFUNCTYPE(None, c_char_p, c_char_p, c_void_p)


class dvbf_report_options(Structure):
    title: Any
    name: Any
    run: Any
    force: bool
    note: Any
    user_data: Any
    _fields_ = [
        ("title", c_char_p),
        ("name", c_char_p),
        ("run", c_char_p),
        ("force", c_bool),
        ("note", dvbf_note_fn),
        ("user_data", c_void_p),
    ]


class dvbf_metrics(Structure):
    n_runs: int
    runs: Any
    _fields_ = [
        ("n_runs", c_size_t),
        ("runs", POINTER(dvbf_learning_run)),
    ]

DVBF_SIMULATING = 0
DVBF_TRAINING = 1
DVBF_TRAINED = 2
DVBF_EVALUATING = 3
DVBF_DRAWING = 4


class dvbf_stage(Structure):
    kind: int
    system: Any
    seed: int
    model: Any
    folder: Any
    _fields_ = [
        ("kind", c_int),
        ("system", c_char_p),
        ("seed", c_uint64),
        ("model", c_char_p),
        ("folder", c_char_p),
    ]

dvbf_stage_fn = CFUNCTYPE(c_bool, POINTER(dvbf_stage), c_void_p)


class dvbf_reproduce_options(Structure):
    preset: Any
    settings: Any
    seeds: int
    force: bool
    progress: Any
    stage: Any
    note: Any
    user_data: Any
    models: Any
    _fields_ = [
        ("preset", c_char_p),
        ("settings", c_void_p),
        ("seeds", c_size_t),
        ("force", c_bool),
        ("progress", dvbf_progress_fn),
        ("stage", dvbf_stage_fn),
        ("note", dvbf_note_fn),
        ("user_data", c_void_p),
        ("models", c_char_p),
    ]


class dvbf_experiment_results(Structure):
    system: Any
    title: Any
    remark: Any
    n_tables: int
    tables: Any
    _fields_ = [
        ("system", c_char_p),
        ("title", c_char_p),
        ("remark", c_char_p),
        ("n_tables", c_size_t),
        ("tables", POINTER(dvbf_table)),
    ]


class dvbf_reproduction(Structure):
    stopped: bool
    n_experiments: int
    experiments: Any
    json: Any
    _fields_ = [
        ("stopped", c_bool),
        ("n_experiments", c_size_t),
        ("experiments", POINTER(dvbf_experiment_results)),
        ("json", c_char_p),
    ]


class dvbf_loop(Structure):
    system: Any
    train: Any
    control: Any
    loop: Any
    model: Any
    folder: Any
    force: bool
    progress: Any
    tell: Any
    user_data: Any
    _fields_ = [
        ("system", c_void_p),
        ("train", c_void_p),
        ("control", c_void_p),
        ("loop", c_void_p),
        ("model", c_void_p),
        ("folder", c_char_p),
        ("force", c_bool),
        ("progress", dvbf_progress_fn),
        ("tell", dvbf_message_fn),
        ("user_data", c_void_p),
    ]


class dvbf_loop_result(Structure):
    episodes: int
    steps: int
    sequences: int
    frames: int
    seconds: float
    share: float
    reached: int
    held: int
    recovered: int
    value: float
    median: float
    late: float
    share_of: Any
    value_of: Any
    _fields_ = [
        ("episodes", c_size_t),
        ("steps", c_size_t),
        ("sequences", c_size_t),
        ("frames", c_size_t),
        ("seconds", c_double),
        ("share", c_double),
        ("reached", c_size_t),
        ("held", c_size_t),
        ("recovered", c_size_t),
        ("value", c_double),
        ("median", c_double),
        ("late", c_double),
        ("share_of", c_void_p),
        ("value_of", c_void_p),
    ]


class dvbf_export_options(Structure):
    run: Any
    data: Any
    sequences: Any
    data_path: Any
    goal: Any
    control: Any
    force: bool
    _fields_ = [
        ("run", c_char_p),
        ("data", POINTER(dvbf_data)),
        ("sequences", POINTER(dvbf_sequences)),
        ("data_path", c_char_p),
        ("goal", POINTER(dvbf_goal)),
        ("control", c_void_p),
        ("force", c_bool),
    ]


class dvbf_export_result(Structure):
    prefix: Any
    constant_bytes: int
    state_bytes: int
    stack_bytes: int
    multiplications: float
    vectors: int
    tolerance: float
    rmse: float
    rmse_rounded: float
    sample_time: float
    binary: bool
    summary: Any
    _fields_ = [
        ("prefix", c_char * 64),
        ("constant_bytes", c_size_t),
        ("state_bytes", c_size_t),
        ("stack_bytes", c_size_t),
        ("multiplications", c_double),
        ("vectors", c_size_t),
        ("tolerance", c_double),
        ("rmse", c_double),
        ("rmse_rounded", c_double),
        ("sample_time", c_double),
        ("binary", c_bool),
        ("summary", c_char * 512),
    ]


#: Result and arguments of every function.
FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "dvbf_version": (c_char_p, ()),
    "dvbf_get_capabilities": (dvbf_capabilities, ()),
    "dvbf_settings_new": (c_int, (POINTER(c_void_p), c_char_p, c_void_p)),
    "dvbf_settings_copy": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_settings_free": (None, (c_void_p,)),
    "dvbf_settings_set": (c_int, (c_void_p, c_char_p, c_char_p, c_void_p)),
    "dvbf_settings_get": (c_int, (c_void_p, c_char_p, c_char_p, c_size_t, c_void_p)),
    "dvbf_settings_inherit": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dvbf_settings_threads": (c_uint, (c_void_p,)),
    "dvbf_settings_interrupt": (None, (c_void_p, c_void_p)),
    "dvbf_settings_preset": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_settings_read": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_settings_check": (c_int, (c_void_p, c_void_p)),
    "dvbf_settings_write": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_settings_table": (c_bool, (c_char_p, c_size_t, c_void_p)),
    "dvbf_preset_name": (c_char_p, (c_size_t, POINTER(c_char_p))),
    "dvbf_preset_system": (c_char_p, (c_char_p,)),
    "dvbf_name_distance": (c_size_t, (c_char_p, c_char_p)),
    "dvbf_folder_make": (c_int, (c_char_p, c_void_p)),
    "dvbf_ranks_from_launcher": (None, (c_void_p, c_void_p)),
    "dvbf_ranks_join": (c_int, (POINTER(c_void_p), c_void_p)),
    "dvbf_ranks_number": (c_uint, (c_void_p,)),
    "dvbf_ranks_count": (c_uint, (c_void_p,)),
    "dvbf_ranks_largest": (c_int, (c_void_p, c_int)),
    "dvbf_settings_ranks": (None, (c_void_p, c_void_p)),
    "dvbf_ranks_set_interrupt": (None, (c_void_p, c_void_p)),
    "dvbf_ranks_finish": (c_bool, (c_void_p, c_int)),
    "dvbf_ranks_free": (None, (c_void_p, c_int)),
    "dvbf_sequences_copy": (c_int, (c_void_p, c_void_p, c_size_t, c_size_t, c_void_p)),
    "dvbf_sequences_free": (None, (c_void_p,)),
    "dvbf_data_free": (None, (c_void_p,)),
    "dvbf_data_name": (c_int, (c_void_p, c_char_p, c_size_t, c_char_p, c_void_p)),
    "dvbf_data_split": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p)),
    "dvbf_sequences_describe": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_sequences_info_free": (None, (c_void_p,)),
    "dvbf_data_warnings": (c_int, (c_void_p, dvbf_message_fn, c_void_p, c_void_p)),
    "dvbf_model_load": (c_int, (POINTER(c_void_p), c_char_p, c_void_p)),
    "dvbf_model_save": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_model_free": (None, (c_void_p,)),
    "dvbf_model_from_bytes": (c_int, (POINTER(c_void_p), c_void_p, c_size_t, c_void_p)),
    "dvbf_model_to_bytes": (c_int, (POINTER(c_void_p), POINTER(c_size_t), c_void_p, c_void_p)),
    "dvbf_bytes_free": (None, (c_void_p,)),
    "dvbf_model_describe": (dvbf_model_info, (c_void_p,)),
    "dvbf_model_parameter": (c_bool, (c_void_p, c_size_t, c_void_p)),
    "dvbf_model_weights": (c_int, (c_void_p, c_char_p, c_void_p, c_size_t, c_void_p)),
    "dvbf_model_member": (c_void_p, (c_void_p, c_size_t)),
    "dvbf_model_linear": (c_void_p, (c_void_p,)),
    "dvbf_model_settings": (c_void_p, (c_void_p,)),
    "dvbf_estimate": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_estimate_with": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, dvbf_fraction_fn, c_void_p, c_void_p)),
    "dvbf_estimates_free": (None, (c_void_p,)),
    "dvbf_estimates_sizes": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_estimate_into": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_estimates_rmse": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_jacobian_new": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_jacobian_free": (None, (c_void_p,)),
    "dvbf_jacobian_at": (None, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_filter_memsize": (c_int, (POINTER(c_size_t), c_void_p, c_size_t, c_void_p)),
    "dvbf_filter_init": (c_int, (POINTER(c_void_p), c_void_p, c_size_t, c_void_p, c_size_t, c_uint64, c_void_p)),
    "dvbf_filter_step": (None, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_filter_reset": (None, (c_void_p,)),
    "dvbf_filter_quiet": (None, (c_void_p, c_bool)),
    "dvbf_filter_predict": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dvbf_controller_memsize": (c_int, (POINTER(c_size_t), c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_controller_init": (c_int, (POINTER(c_void_p), c_void_p, c_size_t, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_controller_step": (None, (c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_controller_reset": (None, (c_void_p,)),
    "dvbf_controller_aim": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dvbf_controller_goal": (c_void_p, (c_void_p,)),
    "dvbf_formats": (c_char_p, (c_bool, c_char_p)),
    "dvbf_arrays_write": (c_int, (c_char_p, c_void_p, c_size_t, c_void_p)),
    "dvbf_arrays_check_path": (c_int, (c_char_p, c_void_p)),
    "dvbf_numbers_read": (c_int, (POINTER(c_void_p), POINTER(c_size_t), c_char_p, c_char_p, c_void_p)),
    "dvbf_data_read": (c_int, (POINTER(c_void_p), c_char_p, c_void_p, c_void_p)),
    "dvbf_data_read_files": (c_int, (POINTER(c_void_p), POINTER(c_char_p), c_size_t, c_void_p, c_void_p)),
    "dvbf_data_from": (c_int, (POINTER(c_void_p), c_void_p, c_size_t, c_void_p, c_void_p)),
    "dvbf_data_write": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_estimates_write": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p, c_char_p, c_void_p)),
    "dvbf_estimates_check_path": (c_int, (c_char_p, c_void_p)),
    "dvbf_system": (c_bool, (c_size_t, c_void_p)),
    "dvbf_simulate": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_settings_choose": (c_int, (c_void_p, c_void_p, dvbf_choice_fn, c_void_p, c_void_p)),
    "dvbf_train": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_run_data": (c_int, (POINTER(c_void_p), c_char_p, c_void_p)),
    "dvbf_train_with": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_train_own": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_model_add_linear": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_verdict_new": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_verdict_free": (None, (c_void_p,)),
    "dvbf_stability_of": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_stability_free": (None, (c_void_p,)),
    "dvbf_regress": (c_int, (c_void_p, c_void_p, c_size_t, c_size_t, c_void_p, c_size_t, c_void_p)),
    "dvbf_state_map": (c_int, (c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_evaluate": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_evaluation_free": (None, (c_void_p,)),
    "dvbf_draw_latent": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_draw_walks": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_draw_strips": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_draw_ball": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_draw_curves": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_draw_signals": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_draw_errors": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_page_new": (c_int, (POINTER(c_void_p), c_char_p, c_void_p)),
    "dvbf_page_free": (None, (c_void_p,)),
    "dvbf_page_heading": (c_int, (c_void_p, c_uint, c_char_p, c_void_p)),
    "dvbf_page_text": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_page_note": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_page_table": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dvbf_page_settings": (c_int, (c_void_p, c_char_p, c_void_p, c_void_p)),
    "dvbf_page_picture": (c_int, (c_void_p, c_char_p, c_char_p, c_char_p, c_void_p)),
    "dvbf_page_space": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dvbf_page_film": (c_int, (c_void_p, c_void_p, c_void_p)),
    "dvbf_page_write": (c_int, (c_void_p, c_char_p, c_void_p)),
    "dvbf_report_write": (c_int, (c_char_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_evaluation_json": (c_int, (POINTER(c_void_p), c_void_p, c_void_p, c_void_p, c_double, c_void_p)),
    "dvbf_verdict_json": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_text_free": (None, (c_char_p,)),
    "dvbf_metrics_read": (c_int, (POINTER(c_void_p), c_char_p, c_void_p)),
    "dvbf_metrics_free": (None, (c_void_p,)),
    "dvbf_reproduce": (c_int, (POINTER(c_void_p), c_char_p, c_char_p, c_void_p, c_void_p)),
    "dvbf_reproduction_free": (None, (c_void_p,)),
    "dvbf_learn_control": (c_int, (POINTER(c_void_p), c_void_p, c_void_p)),
    "dvbf_loop_result_free": (None, (c_void_p,)),
    "dvbf_export_target": (c_char_p, (c_size_t, POINTER(c_char_p))),
    "dvbf_export": (c_int, (c_char_p, c_void_p, c_void_p, c_void_p, c_void_p, c_void_p)),
    "dvbf_export_check": (c_int, (c_char_p, c_void_p)),
}


def declare(library: CDLL) -> None:
    """Tells ctypes what the functions take and give."""
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments
