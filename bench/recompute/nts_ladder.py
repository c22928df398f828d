"""Ladders of loads as the records have them: steps, their times and failures by class, and where a ladder bends."""

import math

import published
import sample

# Of each ladder: its word in names of tasks, its name, how a sentence on its knee begins, and its keys' place.
LADDERS = (
    ("quota", "to scale", "To scale", "keys in memcached"),
    ("core-memcached", "a whole core", "On a whole core", "keys in memcached"),
    ("core-file", "a whole core, keys in a file", "On a whole core with the keys in a file", "keys in a file"),
)
CLASSES = ("connection timed out", "resource temporarily unavailable", "otherwise failed", "not sent by the generator")
# Causes that are the generator's.
NOT_SENT = {"fell-behind", "no-cookie", "local-buffer", "local-port", "local-memory", "local"}
# Figure, measure, the time of ours beside theirs, ours by the equations, their unit in ns, raw percentiles of theirs.
CURVES = (
    (7, "d_CKE", "d_cke", None, 1e6, ("d_cke_p50_ms", "d_cke_p95_ms"), "fig7_{}_ms"),
    (9, "d_CNTS", "d_cnts", None, 1e6, None, "fig9_{}_ms"),
    (10, "d_SKE", "d_ske_of_program", "d_ske", 1e3, ("d_ske_p50_us", "d_ske_p95_us"), "fig10_{}_us"),
    (11, "d_SNTP", "d_sntp", None, 1e3, None, "fig11_{}_us"),
    (12, "d_SNTS", "d_snts_of_program", "d_snts", 1e3, None, "fig12_{}_us"),
)


class Times:
    """A time of a step, computed from its histogram; the figures beside it have to be those."""

    def __init__(self, stored):
        pairs = stored["histogram_ns"]
        self.p50, self.p95 = (sample.histogram_rank(pairs, percentile) for percentile in (50, 95))
        self.interval = sample.histogram_median_interval(pairs)
        self.fastest_50, self.fastest_95 = (sample.histogram_fastest(pairs, percentile) for percentile in (50, 95))


_TIMES = {}


def times_of(record, name):
    """A time of a step by its name in the record, computed once; None if it has no value."""
    key = (record["task"], name)
    if key not in _TIMES:
        stored = record["times"].get(name)
        _TIMES[key] = Times(stored) if stored else None
    return _TIMES[key]


class Step:
    """A step of a ladder with a load."""

    def __init__(self, record, load):
        self.record, self.load = record, load
        self.counts = record["why_invalid"] is None
        self.exchanges = record["exchanges"]

    def times(self, name):
        return times_of(self.record, name)

    def failures(self):
        """How many of the measured client's exchanges failed, by class."""
        counts = dict.fromkeys(CLASSES, 0)
        for cause, count in self.exchanges["causes"].items():
            name = "not sent by the generator" if cause in NOT_SENT else "otherwise failed"
            if cause == "connection-timed-out":
                name = "connection timed out"
            elif cause == "resource-temporarily-unavailable":
                name = "resource temporarily unavailable"
            counts[name] += count
        return counts

    def shares(self):
        due = self.exchanges["scheduled"]
        return {name: count / due if due else 0.0 for name, count in self.failures().items()}

    def failed_share(self):
        """Of all that were due, without those that the generator did not send."""
        return sum(share for name, share in self.shares().items() if name != "not sent by the generator")

    def offered(self):
        return self.record["measured_rps"] + self.record["background_rps"]

    def answered(self):
        """What was offered, by the share of what was due that ended well."""
        parts = [self.exchanges] + ([self.record["background"]] if self.record["background"] else [])
        due, answered = (sum(part[name] for part in parts) for name in ("scheduled", "answered"))
        return self.offered() * answered / max(due, 1)

    def is_at_limit(self):
        """Whether the server used all that it may: held up by its quota, or its busiest thread used four fifths."""
        record = self.record
        held, used = record["throttled_share"], record["server_share"]
        if held is None and used is None:
            return None
        may = record["quota_share"] if record["quota_share"] is not None else 1.0
        return (held is not None and held >= 0.05) or (used is not None and used >= 0.8 * may)


class Climb:
    """A ladder as far as it was climbed."""

    def __init__(self, study, word, name, begin, keys):
        self.word, self.name, self.begin, self.keys = word, name, begin, keys
        self.title = name[:1].upper() + name[1:]
        outcomes = {task["id"]: study.outcome(task) for task in study.tasks}
        self.scale = study.records.get(f"scale-{word}") if outcomes.get(f"scale-{word}") == "measured" else None
        self.unloaded, self.steps = None, []
        start = f"ladder-{word}-"
        for task, record in study.records.items():
            if not task.startswith(start):
                continue
            if task == start + "unloaded":
                self.unloaded = record if record["why_invalid"] is None else None
            elif task[len(start) :].isdigit() and record["load_rps"] is not None:
                self.steps.append(Step(record, record["load_rps"]))
        self.steps.sort(key=lambda step: step.load)

    is_to_scale = property(lambda self: self.word == "quota")

    def counted(self):
        return [step for step in self.steps if step.counts]

    def reference(self, name):
        """The median of a time without load, in ns."""
        times = times_of(self.unloaded, name) if self.unloaded else None
        return times.p50 if times else None

    def factor(self):
        """Key exchanges a second here for each of the paper's axis."""
        if self.is_to_scale:
            if self.scale:
                return self.scale["capacity_rps"] / published.CAPACITY_RPS
            return self.steps[0].record["factor"] if self.steps else 1.0
        served = self.scale and self.scale["whole_core_rps"]
        return served / published.CAPACITY_RPS if served is not None else 1.0

    def scaled(self):
        """Itself on the paper's axis; None if nobody knows what the server serves."""
        if not self.scale or self.scale["whole_core_rps"] is None or self.factor() <= 0:
            return None
        other = object.__new__(Climb)
        other.__dict__.update(self.__dict__)
        other.steps = [Step(step.record, step.load / self.factor()) for step in self.steps]
        return other

    def bend(self):
        """("at", step, later, exceeding, before), ("nowhere", last), or None where nobody knows."""
        counted, unloaded = self.counted(), self.reference("d_cke")
        if not counted or unloaded is None:
            return None

        def median(step):
            times = step.times("d_cke")
            if times:
                return times.p50
            return math.inf if step.exchanges["scheduled"] > 0 else math.nan

        found = sample.knee(unloaded, [(round(step.load), median(step)) for step in counted])
        if found is None:
            return ("nowhere", counted[-1])
        load, later, exceeding = found
        step = next(step for step in counted if round(step.load) == load)
        below = [other.load for other in counted if other.load < step.load]
        return ("at", step, later, exceeding, below[-1] if below else None)

    def ends(self, name):
        """The smallest and the largest median of steps that count; None of none."""
        medians = [times.p50 for step in self.counted() if (times := step.times(name))]
        return (min(medians), max(medians)) if medians else None


def climbs(study):
    """Ladders of which there is a step with a load."""
    all_ = [Climb(study, *ladder) for ladder in LADDERS]
    return [climb for climb in all_ if climb.steps]


def beside_theirs(found):
    """What stands in one frame with theirs: the ladder to scale, or one on a whole core on the paper's axis."""
    if found and found[0].is_to_scale:
        return found[0]
    return next((scaled for climb in found if (scaled := climb.scaled())), None)
