#!/usr/bin/env python3
"""Reads every file of the zoo with `dvbf info`: check.py COMMAND FOLDER [--no-matio].

A file is read right, or refused with a sentence that leads to success in one more step; that step is tried."""
import json
import os
import subprocess
import sys

# file: arguments, what is read. x and u: names of the columns; n: sequences; steps: all of them;
# time: the sample time; range: of a column; missing: share of it; note: part of a remark; unit: of a column.
READ = {
    "plain.csv": dict(x=["y1", "y2"], u=["u"], n=1, steps=240),
    "no_names.csv --inputs 1 --outputs 2,3": dict(n=1, steps=240, columns=(2, 1)),
    "valve.csv --inputs valve": dict(x=["level", "temp"], u=["valve"], n=1),
    "valve.csv --inputs none": dict(x=["valve", "level", "temp"], u=[], asks=False),
    "action.csv": dict(x=["level", "temp"], u=["action_0"], n=1, note="inputs recognised by name: action_0 (--inputs"),
    "episodes.csv": dict(x=["level", "temp"], u=["action"], n=6, steps=240, note="column episode identifies sequences",
                         part=("step", "not used: it counts rows")),
    "run.csv": dict(x=["run", "level"], u=["u"], n=1),
    "traj_id.csv": dict(x=["level"], u=["u"], n=4, time=0.05),
    "restart.csv": dict(x=["level"], u=["u"], n=3, time=0.1),
    "german.csv": dict(x=["Füllstand", "Ventil"], u=["u"], time=0.1, note="dots group digits",
                       range=("Füllstand", 1200, 1420), unit=("Füllstand", "mm"), part=("Zeit [s]", "time")),
    "bom.csv": dict(x=["y"], u=["u"]),
    "unicode.txt": dict(x=["y"], u=["u"], steps=240),
    "thousands.csv": dict(x=["y"], u=["u"], range=("y", 1200, 3300)),
    "units_row.csv --inputs Valve": dict(x=["Level"], u=["Valve"], time=0.5, unit=("Level", "mm")),
    "labview.csv": dict(x=["Level"], u=["input"], time=0.5, steps=240, unit=("Level", "mm")),
    "savetxt.txt": dict(x=["y"], u=["u"], time=0.01, steps=240),
    "dates.csv": dict(x=["level"], u=["u"], time=1, dates=True, unit=("level", "mm")),
    "date_and_time.csv": dict(x=["level"], u=["u"], time=1, dates=True, steps=240,
                              part=("Time", "time of day")),
    "epoch_ms.csv": dict(x=["y"], u=["u"], time=0.25, dates=True),
    "gaps.csv": dict(x=["y"], u=["u"], time=0.02, steps=240, missing=("y", 10 / 240),
                     note="some rows are missing: rows are put on a grid of 0.02 s"),
    "irregular.csv": dict(x=["y"], u=["u"], note="the times of the rows are irregular: rows are put on a grid of"),
    "irregular.csv --sample-time 0.1": dict(x=["y"], u=["u"], time=0.1, note="sample-time is given"),
    "irregular.csv --time-column none": dict(x=["y"], u=["u"], time=None, steps=240),
    "rates.csv": dict(x=["fast", "slow"], u=["u"], time=0.1, missing=("slow", 0.8)),
    "empty_cells.csv --missing nan": dict(x=["y1", "y2"], u=["u"], missing=("y2", 0.05)),
    "na.csv --missing nan": dict(x=["y"], missing=("y", 0.1)),
    "mark.csv": dict(x=["y"], note="y is -999 at 12 steps, far from all other values; if that marks missing "
                                   "values, give --missing -999"),
    "mark.csv --missing -999": dict(x=["y"], missing=("y", 0.05)),
    "quotes.csv --outputs 2": dict(x=['level "raw", mm'], u=["u"]),
    "error.csv": dict(x=["temp"], u=["u"], note="column level is not used, as 1 of its first rows hold text"),
    "list.npz": dict(columns=(2, 0), n=5, steps=250, note="arr_0, arr_1, ... are treated as sequences"),
    "two.npz --outputs arr_0 --inputs arr_1": dict(columns=(2, 1), n=1),
    "fs.npz": dict(columns=(2, 1), time=0.02, part=("fs", "sample time, []")),
    "switches.npy": dict(columns=(5, 0), n=12, range=("x0", 0, 1), binary=True),
    "counts.npy": dict(columns=(5, 0), n=12, range=("x0", 0, 30)),
    "pictures.npy": dict(columns=(16, 0), image=[4, 4], range=("x0", 0, 1)),
    "transposed.npy --transpose on": dict(columns=(2, 0), n=1, steps=240),
    "v6.mat": dict(columns=(2, 1), n=1, steps=240, time=0.2),
    "v7.mat": dict(columns=(2, 1), n=1, steps=240, time=0.2),
    "v73.mat": dict(columns=(3, 1), n=1, steps=240, time=0.1),
    "d4rl.hdf5": dict(columns=(3, 1), n=4, steps=240, part=("timeouts", "ends of sequences, [240]"),
                      note="4 sequences, whose ends are given by arrays in the file"),
    "minari.hdf5": dict(columns=(3, 1), n=6),
    "robomimic.hdf5": dict(columns=(5, 1), n=12, x=["joint0", "joint1", "pose0", "pose1", "pose2"]),
    "dates_us.csv": dict(x=["y"], u=["u"], time=None, note="column date holds no times in a known format, for example "),
    "back.csv --time-column none": dict(x=["y"], u=["u"], steps=90),
}

# file: parts of the sentence that says what to do.
REFUSED = {
    "valve.csv": ["some columns look like inputs, as they drive the others and are not driven by them", "--inputs valve", "--inputs none"],
    "units_row.csv": ["--inputs Valve"],
    "empty_cells.csv": ["--missing nan"],
    "na.csv": ["--missing nan"],
    "error.csv --outputs level": ["line 19, column level: \"err\" is not a number"],
    "two.npz": ["--outputs", "arr_0 [240, 2], arr_1 [240, 1]"],
    "transposed.npy": ["[2, 240], which means 2 steps of 240 columns; --transpose on", "--transpose off"],
    "objects.npz": ["holds objects"],
    "pandas.h5": ["pandas.read_hdf(FILE).to_csv("],
    "lerobot.parquet": ["Parquet", "pandas.read_parquet(FILE).to_csv("],
    "frame.feather": ["Feather", "pandas.read_feather(FILE).to_csv("],
    "old.xls": ["Excel", "save it as CSV"],
    "book.xlsx": ["Excel", "pandas.read_excel(FILE).to_csv("],
    "batch.pt": ["PyTorch", "torch.load(FILE)"],
    "data.csv.gz": ["gunzip FILE"],
    "data.pkl": ["pickle.load("],
    "table.sqlite": ["sqlite3 -header -csv FILE"],
    "rig.tdms": ["nptdms.TdmsFile(FILE)"],
    "drive.bag": ["rostopic echo -b FILE -p"],
    "clip.mp4": ["numpy.savez("],
    "back.csv": ["line 52, column time: the time goes back; sort the rows", "--sequence-column", "--time-column none"],
}

failures = []


def expect(what, found, wanted, name):
    if found != wanted:
        failures.append(f"{name}: {what} is {found!r}, not {wanted!r}")


def near(found, wanted):
    return found is not None and abs(found - wanted) <= 1e-6 + 1e-6 * abs(wanted)


def run(command, arguments):
    done = subprocess.run([command] + arguments, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def columns_of(train):
    return {c["name"]: c for array in ("x", "u") for c in train["arrays"].get(array, {}).get("columns", [])}


def check(command, name, wanted):
    status, out, err = run(command, ["info", "--json", "--split-by", "none"] + name.split())
    if status:
        failures.append(f"{name}: {err.strip()}")
        return
    all_of = json.loads(out)
    train = all_of["splits"]["train"]
    columns = columns_of(train)
    names = {array: [c["name"] for c in train["arrays"].get(array, {}).get("columns", [])] for array in ("x", "u")}
    for array in ("x", "u"):
        if array in wanted:
            expect(array, names[array], wanted[array], name)
    if "columns" in wanted:
        expect("columns", (len(names["x"]), len(names["u"])), wanted["columns"], name)
    if "n" in wanted:
        expect("sequences", train["sequences"], wanted["n"], name)
    if "steps" in wanted:
        expect("steps", train["steps"]["all"], wanted["steps"], name)
    if "time" in wanted:
        time = all_of["sample_time"]
        if time != wanted["time"] and not (wanted["time"] and near(time, wanted["time"])):
            failures.append(f"{name}: sample time is {time}")
    if "dates" in wanted:
        expect("dates", all_of["dates"], wanted["dates"], name)
    if "image" in wanted:
        expect("image", all_of["image"], wanted["image"], name)
    if "binary" in wanted:
        expect("binary", train["arrays"]["x"]["binary"], wanted["binary"], name)
    if "unit" in wanted:
        expect("unit", columns[wanted["unit"][0]]["unit"], wanted["unit"][1], name)
    if "part" in wanted:
        expect("part", all_of["parts"].get(wanted["part"][0]), wanted["part"][1], name)
    if "missing" in wanted and not near(columns[wanted["missing"][0]]["missing"], wanted["missing"][1]):
        failures.append(f"{name}: missing {columns[wanted['missing'][0]]['missing']}")
    if "range" in wanted:
        column, low, high = wanted["range"]
        if not low <= columns[column]["least"] <= columns[column]["most"] <= high:
            failures.append(f"{name}: {columns[column]}")
    if "note" in wanted and not any(wanted["note"] in remark for remark in all_of["remarks"]):
        failures.append(f"{name}: no remark {wanted['note']!r} in {all_of['remarks']}")
    if wanted.get("asks") is False and any("look" in r and "like inputs" in r for r in all_of["remarks"]):
        failures.append(f"{name}: asks for inputs though none were said to be there")


def check_refused(command, name, parts):
    status, _, err = run(command, ["train", "-o", "never", "--updates", "1"] + name.split())
    if not status:
        failures.append(f"{name}: was read")
    for part in parts:
        if part not in err:
            failures.append(f"{name}: {part!r} is not in {err.strip()!r}")
    if os.path.exists("never"):
        failures.append(f"{name}: made a run folder")


if __name__ == "__main__":
    program = os.path.abspath(sys.argv[1])
    os.chdir(sys.argv[2])
    without_matio = "--no-matio" in sys.argv
    if without_matio:
        for mat in ("v6.mat", "v7.mat"):
            del READ[mat]
            REFUSED[mat] = ["save('new.mat', 'x', 'u', '-v7.3')", "libmatio-dev"]
    for file, what in READ.items():
        check(program, file, what)
    for file, what in REFUSED.items():
        check_refused(program, file, what)
    used = {key.split()[0] for key in list(READ) + list(REFUSED)}
    forgotten = [file for file in os.listdir(".") if file not in used]
    if forgotten:
        failures.append(f"files that nobody reads: {forgotten}")
    print("\n".join(failures) or f"{len(used)} files: each is read right, or refused with the remedy")
    sys.exit(bool(failures))
