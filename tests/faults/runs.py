"""Commands on tiny data, run in folders of their own, and what a folder holds afterwards."""
import hashlib
import math
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile

DVBF = SUPERVISE = MEMORY = ""  # set by begin
HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 300  # of a command that takes a second where nothing else runs
# The loader looks for libraries in the working directory where LD_LIBRARY_PATH has an empty part.
PLAIN = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}

SMALL = "--hidden 4 --latent 2 --batch-size 4 --window 8 --validate-every 2 --threads 1 --quiet --no-verdict".split()
LEARN = ["--updates", "6", "--gain-updates", "0", "--checkpoint-every", "0", *SMALL]
TRAIN = ["train", "data.csv", "--search", "off", *LEARN]
SEARCH = ["train", "data.csv", "--search", "on", "--candidates", "2", "--members", "2", *LEARN]
GOAL = "--goal 0.2 --goal-space x --low -1 --high 1 --plan 3 --random-plans 2 --iterations 1".split()
CONTROL = ["control", "run", "--follow", *GOAL]
LEARN_CONTROL = ("learn-control pendulum -o new --train 4 --valid 2 --test 2 --steps 6 --size 4 --horizon 8 --episodes 1 "
                 "--plan 3 --random-plans 2 --iterations 1 --search off --updates 2 --gain-updates 0 --hidden 4 --latent 2 "
                 "--batch-size 4 --starts 1 --threads 1 --quiet").split()


# For Open MPI in a container, as in tests/cli/ranks.sh.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_orte_execute_quiet": "1",
       "OMPI_MCA_hwloc_base_binding_policy": "none", "HWLOC_HIDE_ERRORS": "2", "DVBF_PATIENCE": "10"}


class Case:
    """A command, how to do it again after a failure, and the files that it writes."""

    def __init__(self, name, arguments, again=None, prepare=None, run=None, slow=False, given=None, rank=None):
        self.name, self.arguments, self.prepare, self.run = name, arguments, prepare, run
        self.rank = rank  # of two that mpirun starts, this one has the faults
        self.given = given  # the file that is standard input
        self.slow = slow  # tried only where it is named
        self.again = again or [*arguments, "--force"]


def half(folder):
    """A run that was killed in its middle."""
    supervised(folder, [*TRAIN, "-o", "new"], ["--kill", "40"])


def whole(folder):
    plain(folder, [*TRAIN, "-o", "new"])


def controlled(folder):
    """A model that can control."""
    plain(folder, [*TRAIN, "-o", "run", "--force", "--feedthrough", "off"])


def cases():
    quick = ["--quiet", "--samples", "2"]
    out = [
        Case("simulate", ["simulate", "pendulum", "-o", "new.h5", "--train", "2", "--valid", "1", "--test", "1",
                          "--steps", "4", "--size", "4", "--quiet"]),
        Case("train", [*TRAIN, "-o", "new"], [*TRAIN, "-o", "new", "--resume"], run="new"),
        Case("train-threads", [*TRAIN, "-o", "new", "--threads", "2"],
             [*TRAIN, "-o", "new", "--resume", "--threads", "2"], run="new"),
        Case("resume", [*TRAIN, "-o", "new", "--resume"], [*TRAIN, "-o", "new", "--resume"], half, "new"),
        Case("extend", [*TRAIN, "-o", "new", "--resume", "--updates", "10"],
             [*TRAIN, "-o", "new", "--resume", "--updates", "10"], whole, "new"),
        Case("replace", [*TRAIN, "-o", "new", "--force"], [*TRAIN, "-o", "new", "--force"], whole, "new"),
        Case("search", [*SEARCH, "-o", "new"], [*SEARCH, "-o", "new", "--resume"], run="new"),
        Case("linear", ["train", "data.csv", "--model", "linear", "--latent", "1", "--quiet", "-o", "new"],
             ["train", "data.csv", "--model", "linear", "--latent", "1", "--quiet", "-o", "new", "--resume"], run="new"),
        Case("evaluate", ["evaluate", "run", "data.csv", "--json", *quick], ["evaluate", "run", "data.csv", "--json", *quick]),
        Case("evaluate-h5", ["evaluate", "run-h5", "data.h5", "--json", *quick],
             ["evaluate", "run-h5", "data.h5", "--json", *quick]),
        Case("info-data", ["info", "data.npz"], ["info", "data.npz"]),
        Case("info-h5", ["info", "data.h5"], ["info", "data.h5"]),
        Case("info-run", ["info", "run", "--json"], ["info", "run", "--json"]),
    ]
    for ending in "csv", "npz", "h5", "mat":
        out.append(Case("filter-" + ending, ["filter", "run", "data.csv", "-o", "new." + ending, *quick]))
    out += [
        Case("smooth", ["smooth", "run", "data.csv", "-o", "new.csv", *quick]),
        Case("predict", ["predict", "run", "data.csv", "-o", "new.npz", *quick]),
        Case("sample", ["sample", "run", "-o", "new.csv", "--count", "2", "--steps", "4", "--quiet"]),
        Case("control", CONTROL, CONTROL, controlled, given="lines.csv"),
        Case("learn-control", LEARN_CONTROL, run="new"),
        Case("ranks-first", [*TRAIN, "-o", "new"], [*TRAIN, "-o", "new", "--resume"], run="new", slow=True, rank=0),
        Case("ranks-second", [*TRAIN, "-o", "new"], [*TRAIN, "-o", "new", "--resume"], run="new", slow=True, rank=1),
        Case("report", ["report", "run", "data.csv", "-o", "new.html", *quick]),
        Case("reproduce", ["reproduce", "pendulum", "-o", "new", "--updates", "2", "--hidden", "4", "--quiet", "--threads", "1",
                           "--batch-size", "20", "--validate-every", "1"], slow=True),
    ]
    for ending in "c", "fmu", "py", "onnx":
        out.append(Case("export-" + ending, ["export", "run", "-o", "new." + ending, "--quiet"]))
    out.append(Case("export-controller", ["export", "run", "-o", "new.c", "--quiet", *GOAL], prepare=controlled))
    return out


def begin(dvbf, supervise, memory):
    global DVBF, SUPERVISE, MEMORY
    DVBF, SUPERVISE, MEMORY = (os.path.abspath(path) for path in (dvbf, supervise, memory))


def scratch():
    """Memory, where there is a file system in it: syncs cost nothing there."""
    return tempfile.mkdtemp(prefix="dvbf-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class Outcome:
    def __init__(self, status, stdout, stderr, told):
        self.status, self.stdout, self.stderr, self.told = status, stdout, stderr, told

    @property
    def done(self):
        return self.status in (0, 3)


def execute(folder, words, given=None, more=None):
    with open(os.path.join(folder, given) if given else os.devnull, "rb") as file:
        process = subprocess.Popen(words, cwd=folder, env={**PLAIN, **(more or {})}, stdin=file,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        stdout, stderr = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.kill()
        process.communicate()
        return Outcome("timeout", b"", b"", {})
    return Outcome(process.returncode, stdout, stderr.decode(errors="replace"), {})


def plain(folder, arguments, given=None):
    return execute(folder, [DVBF, *arguments], given)


def among_ranks(words, rank, folder, given):
    """Words for this rank of two, of which the other is not watched; the status is that of mpirun."""
    choose = 'if [ "$OMPI_COMM_WORLD_RANK" = "$0" ]; then exec "$@"; fi; while [ "$1" != "$DVBF" ]; do shift; done; exec "$@"'
    plugin = os.path.join(os.path.dirname(DVBF), "libdvbf-mpi.so")
    return execute(folder, ["mpirun", "-n", "2", "sh", "-c", choose, str(rank), *words], given,
                   {**MPI, "DVBF": DVBF, "DVBF_MPI": plugin})


def supervised(folder, arguments, how, environment=None, given=None, rank=None):
    """With a fault; negative status: the signal that ended it."""
    tell = folder + ".tell"
    for name, value in (environment or {}).items():
        how = [*how, "--environment", f"{name}={value}"]
    words = [SUPERVISE, "--tell", tell, *how, DVBF, *arguments]
    outcome = execute(folder, words, given) if rank is None else among_ranks(words, rank, folder, given)
    if outcome.status == 77:
        print("skipped: the kernel lets no process answer the calls of another (seccomp)")
        raise SystemExit(77)
    if outcome.status == "timeout":
        return outcome
    if rank is not None and not os.path.exists(tell):  # mpirun was faster to end all; its status counts
        return outcome
    with open(tell) as file:
        outcome.told = {line.split()[0]: int(line.split()[1]) for line in file}
    os.unlink(tell)
    outcome.status = -outcome.told["signal"] if "signal" in outcome.told else outcome.told["exit"]
    return outcome


def make_base(folder):
    """Data and models that the commands need."""
    os.makedirs(folder)
    random.seed(1)
    x = 0.0
    with open(os.path.join(folder, "data.csv"), "w") as file:
        file.write("t,u,x\n")
        for t in range(90):
            u = math.sin(t * t * 0.7)
            x = 0.8 * x + 0.3 * u + random.gauss(0, 0.02)
            file.write(f"{t * 0.1:.1f},{u:.3f},{x:.3f}\n")
    with open(os.path.join(folder, "lines.csv"), "w") as file:
        file.write("0.1\n0.2\n\n0.15\n")
    for arguments in (["simulate", "pendulum", "-o", "data.h5", "--train", "4", "--valid", "2", "--test", "2", "--steps", "6",
                       "--size", "4", "--quiet"],
                      [*TRAIN, "-o", "run"],
                      ["train", "data.h5", "--search", "off", *LEARN, "-o", "run-h5"],
                      ["sample", "run", "-o", "data.npz", "--count", "3", "--steps", "8", "--quiet"]):
        outcome = plain(folder, arguments)
        if not outcome.done:
            raise SystemExit(f"{arguments}: {outcome.status} {outcome.stderr}")


def normal(name, content):
    """What must be the same: all but the times that training took."""
    base = os.path.basename(name)
    if base == "metrics.csv":
        return b"\n".join(b",".join(f for i, f in enumerate(line.split(b",")) if i != 2) for line in content.split(b"\n"))
    if base in ("control.json", "control.html"):  # how long the steps of the controller took
        return re.sub(rb'"[a-z0-9_]*(seconds|us)": [0-9.e+-]+|(median|are below)</th><td>[0-9]+', b"time", content)
    if base == "report.html":  # how long the trainings of `reproduce` took
        content = re.sub(rb'<th scope="col">seconds</th>.*?</table>', lambda m: re.sub(rb"<td>[0-9.]+</td><td>", b"<td>", m[0]),
                         content, flags=re.DOTALL)
    if base == "checkpoint.safetensors":
        return b""
    content = re.sub(rb"(\n  [A-Z][-A-Za-z]+ seed [0-9]+ +)[0-9.]+( +[0-9]+)(?=\n)", rb"\1\2", content)  # of `reproduce`
    content = re.sub(rb"\n  a step of the controller .*", b"", re.sub(rb", in [0-9.]+ s\n", b"\n", content))
    return re.sub(rb'"?\bseconds"?[:,=] ?[0-9.e+-]+', b"seconds", content)


def state(folder):
    """Every file of the folder, as a hash of what must be the same in it."""
    out = {}
    for path, _, names in os.walk(folder):
        for name in names:
            whole_name = os.path.join(path, name)
            if name == ".lock" or not os.path.isfile(whole_name):
                continue
            with open(whole_name, "rb") as file:
                out[os.path.relpath(whole_name, folder)] = hashlib.sha256(normal(name, file.read())).hexdigest()
    return out


def is_temporary(name):
    return ".tmp-" in name or ".dvbf-probe" in name or os.path.basename(name).startswith(".tmp")


def copy(base, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(base, folder)
