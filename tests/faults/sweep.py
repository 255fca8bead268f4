#!/usr/bin/env python3
"""Lets every system call and every allocation of every command fail in turn, and looks at what is left.

usage: sweep.py DVBF SUPERVISE MEMORY [--most N] [--first N] [--sample N] [--depth N] [--classes A,B] [--jobs N]
       [--judge-foreign] [CASE...]

After each fault the command must have ended by itself, have said one sentence if its result is not there, and
have left every file as it was, as it should become, or as a model that can be read. Done once more, without a
fault, it must come to the bytes of a run without faults. The class own is memory of the command itself, libc what the C
library allocates for it, foreign what other libraries do. What these make of it is told and not judged, as long as they return;
an end by a signal is a failure unless it came inside one of FOREIGN. The class space is a disk that is full after n bytes; it
is tried only where it is named."""
import argparse
import concurrent.futures
import os
import random
import shutil
import struct
import sys
import threading

import runs

CLASSES = "open read write sync rename remove truncate mkdir list lock close map thread child print".split()
CALLERS = ["own", "libc", "foreign"]
# Libraries that are known to end the process where they get no memory.
FOREIGN = ("libhdf5", "libcairo", "libfontconfig", "libfreetype", "libpixman", "libopenblas", "liblapack", "libblas", "libmpi",
           "libopen-pal", "libopen-rte", "libpmix")
HEAD = struct.Struct("<4Q64s")  # counts, how often one was refused, where a signal came


class Reference:
    """A case without faults: the state before and after, what it prints, and how many calls it makes."""

    def __init__(self, case, top, depth=1 << 30):
        self.case, self.base = case, os.path.join(top, case.name)
        runs.copy(os.path.join(top, "base"), self.base)
        if case.prepare:
            case.prepare(self.base)
        self.before = runs.state(self.base)
        first, second = self.base + "-1", self.base + "-2"
        runs.copy(self.base, first)
        outcome = runs.supervised(first, case.arguments, [], given=case.given, rank=case.rank)
        self.calls = outcome.told
        counts = self.base + ".counts"
        runs.copy(self.base, second)
        environment = {"LD_PRELOAD": runs.MEMORY, "FAULT_COUNTS": counts, "FAULT_DEPTH": depth}
        again = runs.supervised(second, case.arguments, [], environment, case.given, case.rank)
        if not outcome.done or outcome.status != again.status:
            raise SystemExit(f"{case.name}: without faults: status {outcome.status}, {again.status}: {outcome.stderr}")
        self.after, self.stdout, self.status = runs.state(first), outcome.stdout, outcome.status
        self.stdout_differs = runs.normal("", outcome.stdout) != runs.normal("", again.stdout)
        if self.after != runs.state(second):
            differ = [n for n in self.after if self.after[n] != runs.state(second).get(n)]
            raise SystemExit(f"{case.name}: two runs without faults differ in {differ}")
        self.read_counts(counts)
        shutil.rmtree(first)
        shutil.rmtree(second)

    def read_counts(self, path):
        with open(path, "rb") as file:
            content = file.read()
        counts = HEAD.unpack_from(content)
        self.allocations = dict(zip(CALLERS, counts))
        stacks = struct.unpack_from(f"<{min(counts[0], 65536)}Q", content, HEAD.size)
        first, last = {}, {}
        for i, stack in enumerate(stacks):
            first.setdefault(stack, i + 1)
            last[stack] = i + 1
        self.stacks = sorted(set(first.values()) | set(last.values()))  # the others of a loop fail alike
        os.unlink(path)

    def faults(self, classes, most):
        """Pairs of (class, n, goes on)."""
        for name in classes:
            if name in CALLERS:
                numbers = self.stacks if name == "own" else list(range(1, self.allocations[name] + 1))
                bound = most if name == "own" else min(most, 60)
            else:
                numbers, bound = list(range(1, self.calls.get(name, 0) + 1)), most
            if len(numbers) > bound:
                numbers = sorted({numbers[i * (len(numbers) - 1) // max(bound - 1, 1)] for i in range(bound)})
            for n in numbers:
                yield name, n, name == "space"
                if name in ("write", "own", "open", "map"):
                    yield name, n, True


def check_sentence(outcome, rank):
    lines = [line for line in outcome.stderr.split("\n") if line.strip()]
    ours = [line for line in lines if line.startswith("dvbf: ")]
    if rank is not None:  # the other rank may have missed this one, and MPI has its own words
        return None if len(ours) in (1, 2) or "An error occurred in MPI_Init" in outcome.stderr else f"says {lines!r}"
    if len(ours) != 1 or lines[-1] != ours[0] or len(lines) > 1:
        return f"says {lines!r}"
    return None


def check_files(reference, folder, kind):
    """Old, new, or a file of a run in progress that can be read."""
    case, now = reference.case, runs.state(folder)
    for name in reference.before:
        if name not in now and not (case.run and name.startswith(case.run + "/")):
            return f"{name} is gone"
    for name, content in now.items():
        if content in (reference.before.get(name), reference.after.get(name)):
            continue
        if runs.is_temporary(name):
            if kind in ("remove", "close"):
                continue
            return f"{name} is left"
        if case.run and name == case.run + "/model.safetensors" and not runs.plain(folder, ["info", name]).done:
            return f"{name} cannot be read"
        if not case.run and case.name != "reproduce":
            return f"{name} is neither old nor new"
    return None


def check(reference, folder, outcome, kind):
    """What is wrong after a fault, or None."""
    case = reference.case
    if outcome.status == "timeout":
        return "hangs"
    if isinstance(outcome.status, int) and outcome.status < 0:
        return f"ended by signal {-outcome.status}"
    if outcome.done:
        if outcome.status != reference.status:
            return f"exit status {outcome.status} instead of {reference.status}"
        if runs.state(folder) != reference.after and not leftovers_only(reference, folder, kind):
            differ = {n for n in set(reference.after) | set(runs.state(folder))
                      if reference.after.get(n) != runs.state(folder).get(n)}
            return f"exit status {outcome.status}, but {sorted(differ)} differ"
        if not reference.stdout_differs and runs.normal("", outcome.stdout) != runs.normal("", reference.stdout):
            return "exit status 0, but it prints something else"
        return None
    if outcome.status != 1:
        return f"exit status {outcome.status}: {outcome.stderr!r}"
    trouble = check_sentence(outcome, case.rank) or check_files(reference, folder, kind)
    if trouble:
        return trouble
    again = runs.plain(folder, case.again, case.given)
    if again.status != reference.status:
        return f"done again: exit status {again.status}: {again.stderr!r} (after {outcome.stderr!r})"
    now = {n: c for n, c in runs.state(folder).items() if not (runs.is_temporary(n) and kind in ("remove", "close"))}
    if now != reference.after:
        differ = {n for n in set(reference.after) | set(now) if reference.after.get(n) != now.get(n)}
        return f"done again: {sorted(differ)} differ (after {outcome.stderr!r})"
    return None


def leftovers_only(reference, folder, kind):
    """A file that could not be removed may stay."""
    now = {n: c for n, c in runs.state(folder).items() if not runs.is_temporary(n)}
    return kind in ("remove", "close") and now == reference.after


def attempt(reference, top, fault, judge_foreign=False):
    name, n, goes_on = fault
    folder = os.path.join(top, f"t{threading.get_ident()}")
    runs.copy(reference.base, folder)
    where = ""
    if name in CALLERS:
        counts = folder + ".counts"
        outcome = runs.supervised(folder, reference.case.arguments, [],
                                  {"LD_PRELOAD": runs.MEMORY, "FAULT_COUNTS": counts,
                                   "FAULT_MEMORY": f"{name} {n}" + (" on" if goes_on else "")},
                                  reference.case.given, reference.case.rank)
        with open(counts, "rb") as file:
            *_, struck, where = HEAD.unpack(file.read(HEAD.size))
            where = where.rstrip(b"\0").decode(errors="replace")
        os.unlink(counts)
    else:
        how = ["--space", str(n - 1)] if name == "space" else ["--fail", name, str(n)] + ["--on"] * goes_on
        outcome = runs.supervised(folder, reference.case.arguments, how, given=reference.case.given,
                                  rank=reference.case.rank)
        struck = outcome.told.get("struck", 1)
    trouble = check(reference, folder, outcome, name)
    shutil.rmtree(folder, ignore_errors=True)
    ended = isinstance(outcome.status, int) and outcome.status < 0
    judged = not where.startswith(FOREIGN) if ended else name != "foreign" or judge_foreign
    return fault, struck, trouble and trouble + (f" in {where}" if ended and where else ""), judged


def sweep(case, top, options, pool):
    reference = Reference(case, top, options.depth)
    faults = [f for f in reference.faults(options.classes, options.most) if f[1] <= options.first]
    if len(faults) > options.sample:
        faults = random.Random(1).sample(faults, options.sample)
    counts, troubles, foreign = {}, [], 0
    for (name, n, goes_on), struck, trouble, judged in pool.map(
            lambda fault: attempt(reference, top, fault, options.judge_foreign), faults):
        if struck:
            counts[name] = counts.get(name, 0) + 1
        if trouble and not judged:
            foreign += 1
        if trouble:
            troubles.append(f"{case.name}: {name} {n}{' and on' if goes_on else ''}: {trouble}")
    total = sum(counts.values())
    detail = ", ".join(f"{name} {count}" for name, count in counts.items())
    print(f"{case.name}: {total} faults ({detail}), {len(troubles) - foreign} troubles"
          + (f", {foreign} inside other libraries" if foreign else ""), flush=True)
    for trouble in troubles:
        print("  " + trouble, flush=True)
    shutil.rmtree(reference.base, ignore_errors=True)
    return total, len(troubles) - foreign


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "dvbf", "supervise", "memory":
        parser.add_argument(name)
    parser.add_argument("--most", type=int, default=1 << 30, help="faults of each class")
    parser.add_argument("--first", type=int, default=1 << 30, help="only the first so many calls of each class")
    parser.add_argument("--sample", type=int, default=1 << 30, help="faults of each command, at random")
    parser.add_argument("--depth", type=int, default=1 << 30,
                        help="allocations whose so many innermost calls are the same fail alike")
    parser.add_argument("--classes", type=lambda text: text.split(","), default=CLASSES + CALLERS)
    parser.add_argument("--judge-foreign", action="store_true", help="what is made of other libraries' lack of memory, too")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("cases", nargs="*")
    options = parser.parse_intermixed_args()
    runs.begin(options.dvbf, options.supervise, options.memory)
    top = runs.scratch()
    try:
        runs.make_base(os.path.join(top, "base"))
        total = troubles = 0
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for case in runs.cases():
                if case.name in options.cases or not (options.cases or case.slow):
                    faults, found = sweep(case, top, options, pool)
                    total, troubles = total + faults, troubles + found
        print(f"{total} faults, {troubles} troubles")
    finally:
        shutil.rmtree(top, ignore_errors=True)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
