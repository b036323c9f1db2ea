#!/usr/bin/env python3
"""Tests of the gate's rules, on counts that are made up."""

import unittest

import gate


def counts(classes, functions):
    return {"plan, 46 buffers": {"classes": classes, "functions": functions}}


def grown(small, middle, large):
    """Counts of all stages for 8, 46 and 100 buffers."""
    return {f"{stage}, {size} buffers": {"classes": value, "functions": value}
            for stage in ("declare", "plan", "arena", "reports")
            for size, value in ((8, small), (46, middle), (100, large))}


class Gate(unittest.TestCase):
    def test_three_percent_more_is_allowed(self):
        _, failures, hints = gate.compare(counts(1000, 200), counts(1030, 206))
        self.assertEqual((failures, hints), ([], []))

    def test_more_than_that_fails_for_classes_and_for_functions(self):
        _, failures, hints = gate.compare(counts(1000, 200), counts(1031, 207))
        self.assertEqual(failures, [
            "stage 'plan, 46 buffers': 1031 classes are instantiated, 1000 in the baseline, +3.1%; at most +3% is allowed",
            "stage 'plan, 46 buffers': 207 functions are instantiated, 200 in the baseline, +3.5%; at most +3% is allowed",
        ])
        self.assertEqual(hints, [])

    def test_fewer_is_a_hint(self):
        _, failures, hints = gate.compare(counts(1000, 200), counts(970, 193))
        self.assertEqual(failures, [])
        self.assertEqual(hints, ["stage 'plan, 46 buffers': 193 functions are instantiated, 200 in the baseline, -3.5%"])

    def test_a_stage_without_a_baseline_fails(self):
        _, failures, _ = gate.compare({}, counts(1, 1))
        self.assertEqual(failures, ["stage 'plan, 46 buffers' is in the counts only"])
        _, failures, _ = gate.compare(counts(1, 1), {})
        self.assertEqual(failures, ["stage 'plan, 46 buffers' is in the baseline only"])

    def test_growth(self):
        # From 8 to 46 buffers 10 a buffer, then 11: 380 and 594.
        self.assertEqual(gate.nonlinear(grown(1000, 1380, 1974)), [])
        self.assertEqual(len(gate.nonlinear(grown(1000, 1380, 1975))), 8)
        self.assertEqual(gate.nonlinear(grown(1000, 1000, 1000)), [])
        self.assertEqual(len(gate.nonlinear(grown(1000, 1000, 1001))), 8)

    def test_the_stages_are_those_of_the_benchmark(self):
        self.assertEqual(set(grown(0, 0, 0)) | {"stowage.hpp", "forward arena"}, set(gate.cases()))


if __name__ == "__main__":
    unittest.main()
