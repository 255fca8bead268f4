#!/usr/bin/env python3
"""Compares plans of iLQR with those of ipopt, by CasADi: the same cost to a share of 1e-6, and nothing better nearby.

    build/tests/plans | tests/peers/venv/bin/python tests/peers/plans.py

Linear problems have one solution. A swing-up has many, so ipopt begins with the plan of iLQR, and must not find a better one.
"""
import json
import sys

import casadi as ca
import numpy as np


def linear(p):
    a, b, q, r = (np.array(p[k]).reshape(n, -1) for k, n in (("a", 4), ("b", 4), ("q", 4), ("r", 2)))
    def move(z, u): return ca.DM(a) @ z + ca.DM(b) @ u
    def cost(z, u): return 0.5 * ca.bilin(ca.DM(q), z, z) + 0.5 * ca.bilin(ca.DM(r), u, u)
    def end(z): return 5 * ca.bilin(ca.DM(q), z, z)
    return 4, 2, move, cost, end


def swing(_):
    def move(z, u):
        speed = z[1] + 0.1 * (9.81 * ca.sin(z[0]) - 0.5 * z[1] + u)
        return ca.vertcat(z[0] + 0.1 * speed, speed)
    def far(z): return 1 - ca.cos(z[0]) + 0.05 * z[1] ** 2
    return 2, 1, move, lambda z, u: far(z) + 0.005 * u ** 2, lambda z: 20 * far(z)


def solve(p):
    n, m, move, cost, end = {"linear": linear, "swing": swing}[p["kind"]](p)
    steps = len(p["u"]) // m
    u = ca.MX.sym("u", m, steps)
    z, total = ca.DM(p["first"]), 0
    for t in range(steps):
        total += cost(z, u[:, t])
        z = move(z, u[:, t])
    total += end(z)
    v = ca.vec(u)
    options = {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-11,
               "ipopt.bound_relax_factor": 0, "ipopt.max_iter": 2000, "ipopt.mu_init": 1e-9}
    solver = ca.nlpsol("solver", "ipopt", {"x": v, "f": total}, options)
    value = float(ca.Function("cost", [v], [total])(p["u"]))
    found = solver(x0=p["u" if p["kind"] == "swing" else "begin"], lbx=-p["limit"], ubx=p["limit"])
    return value, float(found["f"])


worst, count = {}, 0
for line in sys.stdin:
    p = json.loads(line)
    value, best = solve(p)
    name = p["kind"] + (" without limits" if p["limit"] > 1e5 else " within limits")
    apart = max(abs(value - p["cost"]), abs(p["cost"] - best)) / abs(best)
    worst[name] = max(worst.get(name, 0), apart)
    count += 1
for name, apart in worst.items():
    print(f"{name}: {apart:.1e}")
sys.exit(0 if count >= 20 and max(worst.values()) < 1e-6 else 1)
