#!/usr/bin/env python3
"""Kills training, searches and reports at random moments and goes on: the bytes are those of a run left in peace.

usage: kills.py DVBF SUPERVISE MEMORY [--kills N] [--seed N] [--jobs N] [CASE...]

A run is killed before a call that changes a file, chosen at random, goes on and is killed again, until it comes
to its end."""
import argparse
import concurrent.futures
import os
import random
import shutil
import sys
import threading

import runs
from sweep import Reference

CASES = ["train", "train-threads", "search", "report"]


def attempt(reference, top, seed):
    """One run with some kills; how many there were and what is wrong."""
    chance, kills, case = random.Random(seed), 0, reference.case
    folder = os.path.join(top, f"t{threading.get_ident()}")
    runs.copy(reference.base, folder)
    arguments = case.arguments
    for _ in range(chance.choice([1, 2, 3, 5, 8])):
        outcome = runs.supervised(folder, arguments, ["--kill", str(chance.randint(1, reference.calls["changes"]))])
        if outcome.status != -9:
            if outcome.status != reference.status:
                return kills, f"exit status {outcome.status}: {outcome.stderr!r}"
            break
        kills += 1
        arguments = case.again
    outcome = runs.plain(folder, case.again)
    if outcome.status != reference.status:
        return kills, f"exit status {outcome.status}: {outcome.stderr!r}"
    # A temporary file that another command than training left is nobody's to remove.
    now = {n: c for n, c in runs.state(folder).items() if case.run or not runs.is_temporary(n)}
    differ = sorted(n for n in {*now, *reference.after} if now.get(n) != reference.after.get(n))
    shutil.rmtree(folder, ignore_errors=True)
    return kills, f"{differ} differ" if differ else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in "dvbf", "supervise", "memory":
        parser.add_argument(name)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("cases", nargs="*")
    options = parser.parse_intermixed_args()
    runs.begin(options.dvbf, options.supervise, options.memory)
    top, troubles, total, names = runs.scratch(), 0, 0, options.cases or CASES
    try:
        runs.make_base(os.path.join(top, "base"))
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for case in runs.cases():
                if case.name not in names:
                    continue
                reference, kills, tries, seed = Reference(case, top), 0, 0, options.seed * 1000000
                while kills * len(names) < options.kills:
                    batch = range(seed, seed + 2 * options.jobs)
                    seed += len(batch)
                    for number, (count, trouble) in zip(batch, pool.map(lambda s: attempt(reference, top, s), batch)):
                        kills, tries = kills + count, tries + 1
                        if trouble:
                            troubles += 1
                            print(f"  {case.name}: seed {number}: {trouble}", flush=True)
                total += kills
                print(f"{case.name}: {kills} kills in {tries} runs, {troubles} troubles so far", flush=True)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"{total} kills, {troubles} troubles")
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
