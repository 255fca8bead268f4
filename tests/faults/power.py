#!/usr/bin/env python3
"""Cuts the power at every moment of short runs, and goes on.

usage: power.py DVBF SUPERVISE MEMORY [--most N] [--random N] [--jobs N] [CASE...]

The calls that change files are recorded. After each of them the disk may hold less than the command saw: data that
were not synced may be lost, cut off or zero, and names that were made, moved or removed since the folder's last sync may
be as before. Each such state that differs from the others is made as a folder. There the run must go on to the
bytes of a run left in peace; before its first checkpoint is safe it may instead say in one sentence why it cannot.
A model that can be loaded is one that was once whole."""
import argparse
import concurrent.futures
import hashlib
import os
import random
import shutil
import sys
import threading

import runs
from sweep import Reference, check_sentence

CASES = ["train", "extend", "replace", "search", "filter-csv"]


class File:
    def __init__(self, data=b""):
        self.data, self.safe = bytearray(data), bytes(data)  # what the command sees; what is on the disk


class Disk:
    """Files and the changes of names that are not on the disk yet, each by its folder."""

    def __init__(self, folder):
        self.names, self.waiting, self.models = {}, [], set()
        for path, _, names in os.walk(folder):
            for name in names:
                whole = os.path.join(path, name)
                with open(whole, "rb") as file:
                    self.names[os.path.relpath(whole, folder)] = File(file.read())
        self.safe = dict(self.names)
        self.folders = {os.path.relpath(path, folder) for path, _, _ in os.walk(folder)}
        self.safe_folders = set(self.folders)

    def change(self, name, file):
        """The name now means this file; None: no file."""
        self.waiting.append((name, file))
        if file is None:
            self.names.pop(name, None)
        else:
            self.names[name] = file

    def step(self, words):
        kind, name = words[0], words[1]
        if kind == "mkdir":
            self.folders.add(name)
        elif kind == "open":
            if "create" in words and name not in self.names:
                self.change(name, File())
            if "truncate" in words and name in self.names:
                self.names[name].data = bytearray()
        elif kind == "write" and name in self.names:
            data, content = self.names[name].data, bytes.fromhex(words[3]) if len(words) > 3 else b""
            at = len(data) if int(words[2]) < 0 else int(words[2])
            data.extend(bytes(max(0, at - len(data))))
            data[at:at + len(content)] = content
        elif kind == "truncate" and name in self.names:
            data, size = self.names[name].data, int(words[2])
            del data[size:]
            data.extend(bytes(size - len(data)))
        elif kind == "rename" and name in self.names:
            file = self.names[name]
            self.change(words[2], file)
            self.change(name, None)
            self.models.add(hashlib.sha256(file.data).hexdigest())
        elif kind == "remove" and name in self.names:
            self.change(name, None)
        elif kind == "sync":
            self.sync(name)

    def sync(self, name):
        if name in self.names:
            self.names[name].safe = bytes(self.names[name].data)
            return
        for path, file in self.waiting:
            if os.path.dirname(path) == ("" if name == "." else name):
                self.apply(self.safe, path, file)
        self.waiting = [w for w in self.waiting if os.path.dirname(w[0]) != ("" if name == "." else name)]
        self.safe_folders |= {f for f in self.folders if os.path.dirname(f) == ("" if name == "." else name)}
        self.safe_folders.add(name)

    @staticmethod
    def apply(names, path, file):
        if file is None:
            names.pop(path, None)
        else:
            names[path] = file

    @staticmethod
    def survived(file, how):
        """What is left of a file's data."""
        now, safe = bytes(file.data), file.safe
        if how == "safe" or now == safe:
            return safe
        if how == "cut":  # half of what is new
            return now[:(len(os.path.commonprefix([now, safe])) + len(now)) // 2]
        if how == "zero":
            same = len(os.path.commonprefix([now, safe]))
            return now[:same] + bytes(len(now) - same)
        return now

    def after_cut(self, happened, how):
        """Names and contents when the changes of `happened` (indices of those waiting) reached the disk."""
        names = dict(self.safe)
        for i in happened:
            self.apply(names, *self.waiting[i])
        return {name: self.survived(file, how(name)) for name, file in names.items()
                if os.path.dirname(name) in self.folders or os.path.dirname(name) == ""}

    def states(self, chance, count):
        """All that the disk may hold now, as far as it is tried."""
        everything = range(len(self.waiting))
        for how in "safe", "cut", "zero", "now":
            yield self.after_cut([], lambda name, how=how: how)
            yield self.after_cut(everything, lambda name, how=how: how)
        for i in everything:  # one change is missing, or nothing that followed it happened
            yield self.after_cut([k for k in everything if k != i], lambda name: "now")
            yield self.after_cut(range(i), lambda name: "safe")
        for _ in range(count):
            choice = {name: chance.choice(["safe", "cut", "zero", "now"]) for name in {*self.names, *self.safe}}
            yield self.after_cut([i for i in everything if chance.random() < 0.5], lambda name: choice.get(name, "now"))


def write_state(folder, state):
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name, content in state.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)


def is_saved(reference, disk):
    """Whether a checkpoint of this run, or the result of the command, is on the disk for sure."""
    run = reference.case.run
    return bool(run) and run + "/checkpoint.safetensors" in disk.safe and not any(
        w[0] == run + "/checkpoint.safetensors" for w in disk.waiting)


def check(reference, folder, state, saved, models):
    case = reference.case
    model = f"{case.run}/model.safetensors"
    if case.run and model in state and runs.plain(folder, ["info", model]).done and \
            hashlib.sha256(state[model]).hexdigest() not in models:
        return "a model that was never whole can be loaded"
    if not case.run:
        for name, content in runs.state(folder).items():
            if not runs.is_temporary(name) and content not in (reference.before.get(name), reference.after.get(name)):
                return f"{name} is neither old nor new"
        return None
    again = [word for word in case.again if word != "--force"]
    outcome = runs.plain(folder, again if "--resume" in again else [*again, "--resume"])
    if outcome.status == 1 and not saved:
        return check_sentence(outcome) or "refused"
    if outcome.status != reference.status:
        return f"exit status {outcome.status}: {outcome.stderr!r}"
    now = {n: c for n, c in runs.state(folder).items() if not runs.is_temporary(n)}
    if now != reference.after:
        return f"{sorted(n for n in {*now, *reference.after} if now.get(n) != reference.after.get(n))} differ"
    return None


def attempt(reference, top, job):
    step, state, saved, models = job
    folder = os.path.join(top, f"t{threading.get_ident()}")
    write_state(folder, state)
    trouble = check(reference, folder, state, saved, models)
    shutil.rmtree(folder, ignore_errors=True)
    return step, state, trouble


def collect(reference, log, options):
    """One job for each different state."""
    disk, chance, known, jobs = Disk(reference.base), random.Random(1), set(), []
    with open(log) as file:
        steps = [line.rstrip("\n").split(" ") for line in file]
    for name in disk.names:
        disk.models.add(hashlib.sha256(disk.names[name].data).hexdigest())
    for i, words in enumerate(steps):
        disk.step(words)
        if words[0] == "open" and len(words) == 2:
            continue
        for state in disk.states(chance, options.random):
            saved = is_saved(reference, disk)
            key = hashlib.sha256(repr((sorted(state.items()), saved)).encode()).digest()
            if key not in known:
                known.add(key)
                jobs.append((f"{i + 1} {' '.join(words[:2])}", state, saved, frozenset(disk.models)))
    return steps, jobs


def cut(case, top, options, pool):
    reference = Reference(case, top)
    folder, log = os.path.join(top, "logged"), os.path.join(top, "log")
    runs.copy(reference.base, folder)
    runs.supervised(folder, case.arguments, ["--log", log])
    steps, jobs = collect(reference, log, options)
    count = len(jobs)
    if len(jobs) > options.most:
        jobs = [jobs[i * (len(jobs) - 1) // (options.most - 1)] for i in range(options.most)]
    troubles = refused = 0
    for step, state, trouble in pool.map(lambda job: attempt(reference, top, job), jobs):
        refused += trouble == "refused"
        if trouble and trouble != "refused":
            troubles += 1
            sizes = {name: len(content) for name, content in state.items() if name.startswith(case.run or "new")}
            print(f"  {case.name}: cut after {step}: {trouble}; there were {sizes}", flush=True)
    print(f"{case.name}: {len(steps)} calls, {count} states of the disk, {len(jobs)} tried, {refused} refused in a sentence "
          f"before anything was saved, {troubles} troubles", flush=True)
    return troubles


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "dvbf", "supervise", "memory":
        parser.add_argument(name)
    parser.add_argument("--most", type=int, default=1 << 30, help="states of each command")
    parser.add_argument("--random", type=int, default=3, help="random states after each call")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("cases", nargs="*")
    options = parser.parse_intermixed_args()
    runs.begin(options.dvbf, options.supervise, options.memory)
    top, troubles = runs.scratch(), 0
    try:
        runs.make_base(os.path.join(top, "base"))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for case in runs.cases():
                if case.name in (options.cases or CASES):
                    troubles += cut(case, top, options, pool)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
