"""What the NTS study printed, and what its authors' data say, computed from the data that the repository keeps.

Data: curves.csv and unloaded.csv beside crates/report/src/published/nts, and the capture's times and the means of raw
results in capture.rs and unloaded.rs there. What the paper prints is transcribed here from the paper.
"""

import csv
import math
import os
import re

import sample

DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../crates/report/src/published/nts")

# Table II of the paper, in ns; it calls the second d_CNTP. Figures 4 and 5: the ends of distributions, in ns.
TABLE_2 = {"d_CKE": 2.26e6, "d_CNTS": 0.87e6, "d_SNTP": 2.03e3, "d_SKE": 18.13e3, "d_SNTS": 80.80e3}
FIGURE_4 = {"d_CNTS": (0.74e6, 2.44e6), "d_CKE": (2.02e6, 5.49e6)}
FIGURE_5 = {"d_SNTP": (0.75e3, 31.54e3), "d_SKE": (12.30e3, 31.35e3), "d_SNTS": (62.53e3, 115.93e3)}
CAPACITY_RPS, FIRST_ERRORS_RPS = 2_000, 2_300
D_CNTP_NS, TRANSFER_INCREASE, EXCHANGE_INCREASE = 0.79e6, 0.0973, 1.17
AUX_COUNT, AUX_RPS, MEASURED_RPS_MAX, STEP_SECONDS = 15, 500, 500, 20
TRANSFERS, AUX_TRANSFERS, ROUNDS, WARM_UPS = 3, 1, 1_000, 10
# Round trips of a key exchange: TCP, TLS, request and response.
ROUND_TRIPS = 3
# Of earlier runs of the authors, whose raw results are not kept here: the mean of d_CKE, in ms, and the medians of
# d_SNTS and d_SKE, in us.
EARLIER_CKE_MS, EARLIER_SNTS_US, EARLIER_SKE_US = 3.3905, 20.13, 24.85
# By the source of their program: how long its client waits for each of several steps.
THEIR_DEADLINE_SECONDS = 15


def _rows(name):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        lines = (line for line in file if not line.startswith("#"))
        return [{key: float(value) for key, value in row.items()} for row in csv.DictReader(lines)]


def _constants(name, pattern):
    with open(os.path.join(DATA, name), encoding="utf-8") as file:
        return re.findall(pattern, file.read(), re.DOTALL)


def _number(text):
    return float(text.replace("_", ""))


STEPS = _rows("curves.csv")
UNLOADED = _rows("unloaded.csv")
COLUMN = {"d_CKE": "d_cke_ns", "d_CNTS": "d_cnts_ns", "d_SNTP": "d_sntp_ns", "d_SKE": "d_ske_ns", "d_SNTS": "d_snts_ns"}
# Means and counts of raw results.
MEANS, COUNTS = {}, {}
for _measure, _count, _mean in _constants("unloaded.rs", r"\(Measure::(\w+), ([\d_]+), ([\d_.]+)\)"):
    MEANS["d_" + _measure.upper()] = _number(_mean)
    COUNTS["d_" + _measure.upper()] = _number(_count)
CAPTURE = {
    name: [_number(value) for value in re.findall(r"[\d_.]+", values)]
    for name, values in _constants("capture.rs", r"pub const (\w+_NS): \[f64; \d+\] =\s*\[(.*?)\];")
}


def unloaded(measure, percent=50):
    """A percentile of their raw results without load, in ns."""
    return UNLOADED[percent][COLUMN[measure]]


def middle(values):
    """The median as the authors take it: the mean of the two in the middle, if there are two."""
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2.0


def increase(without, with_):
    return (with_ - without) / without


def difference(one, other):
    """The symmetric difference: over the mean of both."""
    return abs(other - one) / ((one + other) / 2.0)


D_CNTP = TABLE_2["d_CNTS"] - TABLE_2["d_SNTS"]
CKE, CNTS = TABLE_2["d_CKE"], TABLE_2["d_CNTS"]
INCREASE_AUTHENTICATED = increase(D_CNTP, CKE + CNTS)
INCREASE_PLAIN = increase(D_CNTP, CKE + D_CNTP)
DIFFERENCE_PLAIN = difference(D_CNTP, CKE + D_CNTP)
DIFFERENCE_AUTHENTICATED = difference(D_CNTP, CKE + CNTS)
INCREASE_ONE_IN_THREE = increase(D_CNTP, CKE / 3.0 + CNTS)


def step(load):
    """Their step at this load; None if there is none."""
    return next((row for row in STEPS if row["offered_rps"] == load), None)


def requests(row):
    return row["answered"] + row["timed_out"] + row["os_error_11"]


def failed(row):
    return row["timed_out"] + row["os_error_11"]


def asked(row):
    """What the measured client was to make: 100 to 500 a second in turn, for 20 s."""
    return ((row["offered_rps"] - 100) % MEASURED_RPS_MAX + 100) * STEP_SECONDS


def past_capacity():
    return [row for row in STEPS if row["offered_rps"] > CAPACITY_RPS]


def knee(later_share=sample.Fraction(9, 10)):
    steps = [(row["offered_rps"], row["d_cke_p50_ms"] * 1e6) for row in STEPS]
    return sample.knee(unloaded("d_CKE"), steps, later_share)


KNEE = knee()[0]
FIRST_FAILURE_RPS = next(row["offered_rps"] for row in STEPS if failed(row) > 0)


def told_rate(rps):
    """What a client of theirs asks for if it is told so many a second: its pauses are whole milliseconds."""
    return 1e3 / math.floor(1e3 / rps + 0.5)


def problems():
    """Where the kept data contradict each other or the paper's printed numbers, in sentences."""
    wrong = []
    for measure, printed in TABLE_2.items():
        unit = 1e6 if measure in ("d_CKE", "d_CNTS") else 1e3
        if abs(unloaded(measure) - printed) > 0.005 * unit + 1e-6:
            wrong.append(f"the median of {measure} in unloaded.csv is not Table II's")
        low = sum(row[COLUMN[measure]] for row in UNLOADED[:-1]) / 100
        high = sum(row[COLUMN[measure]] for row in UNLOADED[1:]) / 100
        if not low <= MEANS[measure] <= high:
            wrong.append(f"the mean of {measure} is not between what its percentiles allow")
    for measure, ends in {**FIGURE_4, **FIGURE_5}.items():
        unit = 1e6 if measure in ("d_CKE", "d_CNTS") else 1e3
        if any(abs(unloaded(measure, 100 * at) - end) > 0.005 * unit + 1e-6 for at, end in enumerate(ends)):
            wrong.append(f"the ends of {measure} in unloaded.csv are not those of Figures 4 and 5")
    for row in STEPS:
        for name, count in (("timed_out", row["timed_out"]), ("os_error_11", row["os_error_11"])):
            share = count / row["answered"] * 100
            if abs(share - row[f"fig8_{name}_percent"]) > share * 1e-3:
                wrong.append(f"Figure 8 at {row['offered_rps']:.0f}: the percentage of {name} is not that of its count")
    return wrong
