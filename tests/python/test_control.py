"""The controller."""

from __future__ import annotations

import dvbf
import numpy as np
import pytest


def test_it_holds_a_system_at_a_goal(data, model):
    x, _ = data
    c = model.controller(np.zeros(2), low=-1, high=1, plan=10)
    assert c.goal.shape == (1, 3)
    control = c.step(x[0, 0])
    assert not control.ready and "frames" in control.reason and np.isnan(control.cost)
    for t in range(1, 20):
        control = c.step(x[0, t] if t % 7 else None)
    assert control.ready and control.reason is None and control.belief.ready
    assert control.plan_u.shape == (10, 1) and control.plan_z.shape == (11, 3)
    assert (abs(control.plan_u) <= 1).all()
    np.testing.assert_array_equal(control.u, control.plan_u[0])
    np.testing.assert_array_equal(control.belief.mean, control.plan_z[0])
    c.reset()
    again = [c.step(each) for each in x[0, :20]][-1]
    c.reset()
    np.testing.assert_array_equal([c.step(each) for each in x[0, :20]][-1].plan_u, again.plan_u)


def test_goals(data, model):
    x, _ = data
    c = model.controller(x[0, :2], low=-1, high=1, goal_space="x", weights=[1, 0])
    assert c.goal.shape == (2, 3)
    with pytest.raises(dvbf.ArgumentError, match="goals"):
        c.aim(x[0, 0])
    one = model.controller(goal_z=np.zeros(3), low=-1, high=1)
    np.testing.assert_array_equal(one.goal, np.zeros((1, 3)))
    by_state = model.controller(state=(np.zeros(3), np.eye(3, 4)), low=[-1], high=[1])
    np.testing.assert_allclose(by_state.goal, np.zeros((1, 3)), atol=1e-6)
    one.aim(goal_z=np.ones(3))
    np.testing.assert_array_equal(one.goal, np.ones((1, 3)))


def test_refusals(model):
    with pytest.raises(ValueError, match="shape"):
        model.controller(np.zeros(3), low=-1, high=1)
    with pytest.raises(dvbf.ArgumentError, match="swap or correct"):
        model.controller(np.zeros(2), low=1, high=-1)
    with pytest.raises(dvbf.ArgumentError, match="the goal is empty|goals"):
        model.controller(low=-1, high=1)
    with pytest.raises(ValueError, match="the same number of each kind"):
        model.controller(np.zeros(2), goal_z=np.zeros(6), low=-1, high=1)
    with pytest.raises(ValueError, match="regression"):
        model.controller(state=(np.zeros(2), np.zeros((2, 3))), low=-1, high=1)
    c = model.controller(np.zeros(2), low=-1, high=1)
    with pytest.raises(ValueError, match="shape"):
        c.step(np.zeros(3))
