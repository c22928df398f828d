"""What the report says of ladders: sentences, tables and pictures' titles, for the paper's Figures 7 to 12."""

import math

import marks
import published
from check import Chapter, Column, Rule, Sheet
from nts_ladder import CLASSES, CURVES, beside_theirs, climbs
from printed import ns, percent, plain, seconds, tokens

PAPER_S = Rule("the paper says about #, and by its data the knee is at #", plain(published.CAPACITY_RPS),
               plain(published.KNEE))


def about(climb):
    """What a ladder was climbed with."""
    steps, void = len(climb.steps), len(climb.steps) - len(climb.counted())
    climbed, values = f"# step{'' if steps == 1 else 's'}", [plain(steps)]
    if void:
        climbed, values = f"{climbed}, # of which the generator spoiled", values + [plain(void)]
    scale = climb.scale
    if not scale:
        return [Rule(f"{climb.title}: {climbed}", *values)]
    whole, most = scale["whole_core_rps"], "more than the generator can offer"
    generator = plain(scale["generator_rps"])
    served = []
    if whole is not None:
        most, served = "# key exchanges a second", [plain(whole)]
    end = f"the generator can offer #. {climbed}"
    if scale["quota_share"] is None:
        return [Rule(f"{climb.title}: the server serves {most}; {end}", *served, generator, *values)]
    share, capacity = percent(scale["quota_share"]), scale["capacity_rps"]
    return [Rule(
        f"{climb.title}: the server has # of a core, and serves # key exchanges a second with that; these are # on the "
        f"axis, so that all rates are the paper's times #. With a whole core it serves {most}; {end}",
        share, plain(capacity), plain(published.CAPACITY_RPS), plain(capacity / published.CAPACITY_RPS), *served,
        generator, *values)]


def knee_rules(climb):
    """Where a ladder bends, and how that compares."""
    bend, unloaded = climb.bend(), climb.reference("d_cke")
    rules = [PAPER_S]
    if bend is None:
        return rules
    if bend[0] == "nowhere":
        return rules + [Rule(f"{climb.begin}, ours does not bend up to # key exchanges a second", plain(bend[1].load))]
    _, step, later, exceeding, before = bend
    times, load = step.times("d_cke"), plain(step.load)
    at = f"{climb.begin}, ours bends at # key exchanges a second, where "
    if times:
        rules.append(Rule(at + "the median of d_CKE is #, and # without load", load, ns(times.p50), ns(unloaded)))
    else:
        rules.append(Rule(at + "nobody was answered", load))
    if later:
        rules.append(Rule("Of # later step", plain(later), when=climb.begin + ","))
        rules.append(Rule(", # exceed twice the unloaded median", plain(exceeding), when=climb.begin + ","))
    if not climb.is_to_scale:
        whole = climb.scale and climb.scale["whole_core_rps"]
        if whole:
            rules.append(Rule("That is # times what it serves, #.", plain(step.load / whole), plain(whole),
                              when=climb.begin + ","))
    elif before is not None:
        low, high = before / published.KNEE, step.load / published.KNEE
        rules += [
            Rule("The step before, #, is normal: ours bends above # and at # at most", plain(before), plain(before),
                 load),
            Rule("The step before, #, is normal: ours bends at # to # times the load of theirs", plain(before),
                 plain(low), plain(high)),
            Rule("The step before, #, is normal: ours bends at # times the load of theirs", plain(before),
                 (plain(low), plain(high))),
        ]
    return rules


def short(found):
    """Where ours bends, in one sentence."""
    rules = [PAPER_S]
    for climb in found[:1]:
        bend = climb.bend()
        if bend:
            words = "bends at" if bend[0] == "at" else "does not bend up to"
            rules.append(Rule(f"Key exchange {words} # a second here ({climb.name})", plain(bend[1].load)))
    return rules


def _times(words, count):
    """"never", "once" or "# times", and its values."""
    return (f"{words}never", []) if count == 0 else (f"{words}once", []) if count == 1 else (
        f"{words}# times", [plain(count)])


def queue(climb):
    """Whether the accept queue overflowed, and how often SYNs were sent again."""
    known = [step for step in climb.counted()
             if step.record["accept_overflows"] is not None and step.record["syn_repeats"] is not None]
    # Linux sends a SYN again after 1 s, and waits twice as long each time.
    instants = [plain(2**number - 1) for number in (1, 2)] + [seconds(7)]
    rules = [Rule("Their tail past the knee stands at #, # and #", *instants)]
    if not known:
        return rules
    last, full = known[-1], [step for step in known if step.record["accept_overflows"] > 0]
    repeated, values = _times("clients sent SYNs again ", last.record["syn_repeats"])
    if full:
        did, counts = _times("it did ", last.record["accept_overflows"])
        rules.append(Rule(
            f"overflowed from # key exchanges a second on ({climb.name}), in # of # "
            f"step{'' if len(known) == 1 else 's'}; at # {did}, and {repeated}",
            plain(full[0].load), plain(len(full)), plain(len(known)), plain(last.load), *counts, *values))
    else:
        rules.append(Rule(f"overflowed in no step ({climb.name}), and at # {repeated}", plain(last.load), *values))
    return rules


def _between(words, low, high, after):
    """Two values as "# to #", or one where they look alike."""
    return [Rule(f"{words}# to #{after}", low, high), Rule(f"{words}#{after}", (low, high))]


def curve_rules(found, curve):
    """The finding of Figure 7, or of one of 9 to 12."""
    _, measure, name, _, unit, _, drawn = curve
    rules = [PAPER_S]
    if not found:
        return rules
    climb = found[0]
    if measure == "d_CKE":
        return rules + knee_rules(climb)
    halves = [row[drawn.format("fastest50")] * unit for row in published.STEPS]
    after = ", and # without load, a median"
    low, high = ns(min(halves)), ns(max(halves))
    table = ns(published.TABLE_2[measure])
    rules += [Rule(f"theirs, as means of the fastest half, are # to #{after}", low, high, table),
              Rule(f"theirs, as means of the fastest half, are #{after}", (low, high), table)]
    ends, reference = climb.ends(name), climb.reference(name)
    if ends:
        over = f" over all steps that count ({climb.name})"
        begin = f"Medians of {measure} of ours are "
        rules += _between(begin, ns(ends[0]), ns(ends[1]), over)
        if reference:
            low, high = (plain(end / reference) for end in ends)
            rules += _between(f"({climb.name}), ", low, high, " times the ")
            rules.append(Rule("times the # without load", ns(reference)))
    return rules


def failure_rules(found):
    """The finding of Figure 8."""
    rules = [PAPER_S, Rule("theirs begin at #, where the paper says #", plain(published.FIRST_FAILURE_RPS),
                           plain(published.FIRST_ERRORS_RPS))]
    climb = found[0] if found else None
    counted = climb.counted() if climb else []
    if not counted:
        return rules
    last, first = counted[-1], next((step for step in counted if step.failed_share() > 0), None)
    if first:
        rules.append(Rule(f"Failures of ours begin at # key exchanges a second ({climb.name})", plain(first.load)))
    else:
        rules.append(Rule(f"No key exchange of ours fails up to # a second ({climb.name})", plain(last.load)))
    share = percent(last.failed_share())
    theirs = published.step(round(last.load))
    if theirs and climb.is_to_scale:
        failed = published.failed(theirs)
        rules.append(Rule(
            "at # a second # of ours fail, and of theirs #, which the paper draws as #, over successes",
            plain(last.load), share, percent(failed / published.requests(theirs)),
            percent(failed / theirs["answered"])))
    rules.append(Rule("at # a second # of ours fail.", plain(last.load), share))
    return rules


def tails(climb):
    """The largest 95th percentile of d_CKE below the knee."""
    bend, unloaded = climb.bend(), climb.reference("d_cke")
    if bend is None or unloaded is None:
        return []
    end = bend[1].load if bend[0] == "at" else math.inf
    below = [(times.p95, -step.load, step.load) for step in climb.counted()
             if step.load < end and (times := step.times("d_cke"))]
    if not below:
        return []
    most, _, load = max(below)
    return [Rule(
        f"below the knee the largest 95th percentile of d_CKE of ours is #, at # a second ({climb.name}); the median "
        "without load is #.", ns(most), plain(load), ns(unloaded))]


def _steps(climb):
    """Every step of a ladder."""
    of = lambda value: [] if value is None else [plain(value)]
    d_cke = [step.times("d_cke") for step in climb.steps]
    columns = [
        Column("L", [[plain(step.load)] for step in climb.steps]),
        Column("offered /s", [[plain(step.offered())] for step in climb.steps], "page"),
        Column("answered /s", [[plain(step.answered())] for step in climb.steps]),
        Column("failed", [[plain(sum(step.exchanges["causes"].values()))] for step in climb.steps], "text"),
    ]
    columns += [Column(name, [[plain(step.failures()[name])] for step in climb.steps], "page") for name in CLASSES]
    return Sheet(f"Steps, {climb.name}", columns + [
        Column("d_CKE p50", [[ns(times.p50)] if times else [] for times in d_cke]),
        Column("d_CKE p95", [[ns(times.p95)] if times else [] for times in d_cke]),
        Column("Listen-Overflows", [of(step.record["accept_overflows"]) for step in climb.steps]),
        Column("SYNs again", [of(step.record["syn_repeats"]) for step in climb.steps]),
        Column("server's busiest thread", [
            [] if step.record["server_share"] is None else [percent(step.record["server_share"])]
            for step in climb.steps], "page"),
        Column("does not count", [[] for _ in climb.steps], words=[step.record["why_invalid"] for step in climb.steps]),
    ])


def _theirs(step):
    return published.step(round(step.load))


def _beside(climb, curve):
    """A time of each step of ours, beside theirs."""
    figure, measure, name, equations, unit, raw, drawn = curve
    column = lambda heading, cell: Column(heading, [cell(step) for step in climb.steps])
    of_theirs = lambda key: lambda step: [ns(_theirs(step)[key] * unit)] if _theirs(step) else []
    ours = lambda figure, name=name: lambda step: (
        [ns(getattr(times, figure))] if (times := step.times(name)) else [])
    columns = [column("L", lambda step: [plain(step.load)])]
    if raw:
        columns += [column("theirs p50", of_theirs(raw[0])), column("theirs p95", of_theirs(raw[1]))]
    columns += [
        column("printed, fastest 50 %", of_theirs(drawn.format("fastest50"))),
        column("printed, fastest 95 %", of_theirs(drawn.format("fastest95"))),
        column("ours p50", ours("p50")),
        column("ours p95", ours("p95")),
        column("ours, fastest 50 %", ours("fastest_50")),
        column("ours, fastest 95 %", ours("fastest_95")),
    ]
    if equations:
        columns.append(column("ours p50, by the equations", ours("p50", equations)))
    return Sheet(f"Figure {figure}, {measure}", columns, "page")


def _failures(climb):
    """What failed in each step of ours, beside theirs."""
    column = lambda heading, cell: Column(heading, [cell(step) for step in climb.steps])
    of = lambda key: lambda step: (
        [percent(_theirs(step)[key] / published.requests(_theirs(step)))] if _theirs(step) else [])
    columns = [
        column("L", lambda step: [plain(step.load)]),
        column("theirs, connection timed out", of("timed_out")),
        column("theirs, resource temporarily unavailable", of("os_error_11")),
        column("theirs, as drawn", lambda step: (
            [percent(published.failed(_theirs(step)) / _theirs(step)["answered"])] if _theirs(step) else [])),
        column("ours, all classes", lambda step: [percent(step.failed_share())]),
    ]
    columns += [column(f"ours, {name}", lambda step, name=name: [percent(step.shares()[name])]) for name in CLASSES]
    return Sheet("Figure 8, shares of key exchanges", columns, "page")


def _titled(pieces):
    """Rules for a picture's titles, which begin with their load. `pieces`: (load, words with "#", values)."""

    def rules(text):
        numbers = tokens(text)
        if not numbers or numbers[0].start or not text[numbers[0].end :].startswith(" a second: "):
            return []
        here = [piece for piece in pieces if numbers[0].agrees(plain(piece[0]))]
        loads = [Rule("# a second: ", plain(load)) for load, _, _ in here]
        return loads + [Rule(words, *values) for _, words, values in here]

    return rules


def _curve_titles(found, beside, curve):
    _, _, name, _, unit, raw, drawn = curve
    pieces = []
    for row in published.STEPS:
        words, values = "theirs printed # and #", []
        if raw:
            words = "theirs median #, 95th percentile #, printed # and #"
            values = [ns(row[key] * unit) for key in raw]
        values += [ns(row[drawn.format(key)] * unit) for key in ("fastest50", "fastest95")]
        pieces.append((row["offered_rps"], words, values))
    frames = [("ours ", beside)] if beside else []
    frames += [(f"{climb.keys}: ours ", climb) for climb in found if not climb.is_to_scale]
    for begin, climb in frames:
        for step in climb.steps:
            times = step.times(name)
            words, values = f"{begin}no value", []
            if times:
                words, values = f"{begin}median #, 95th percentile #", [ns(times.p50), ns(times.p95)]
            pieces.append((step.load, words, values))
    return _with_marks(_titled(pieces), _points(found, beside, curve))


def _with_marks(titles, rules_of):
    """Rules for what stands behind marks, and for marks: `rules_of` a text."""
    return lambda text: titles(text) or rules_of(text)


def _frames(found, beside, to_scale):
    """What ours is called in a picture, and its ladder."""
    frames = [(to_scale, beside)] if beside else []
    return frames + [(climb.keys, climb) for climb in found if not climb.is_to_scale]


def _points(found, beside, curve):
    """Rules for marks of points."""
    _, _, name, _, unit, raw, drawn = curve
    theirs = {"theirs, mean of the fastest half (printed as the median)": drawn.format("fastest50"),
              "theirs, mean of the fastest 95 % (printed as the 95th percentile)": drawn.format("fastest95")}
    if raw:
        theirs.update({"theirs, median": raw[0], "theirs, 95th percentile": raw[1]})

    def rules(text):
        found_here = []
        for line, key in theirs.items():
            if text.startswith(f"{line}: "):
                for row in published.STEPS:
                    found_here += marks.point(text, f"{line}: ", row["offered_rps"], [ns(row[key] * unit)])
        for who, climb in _frames(found, beside, "ours"):
            for step in climb.steps:
                if times := step.times(name):
                    ends = map(ns, times.interval or ())
                    found_here += marks.point(text, f"{who}, median: ", step.load, [ns(times.p50), *ends])
                    found_here += marks.point(text, f"{who}, 95th percentile: ", step.load, [ns(times.p95)])
        return found_here

    return rules


def _lines(found, beside, curve):
    """What the pictures of a figure draw."""
    _, _, name, _, unit, raw, drawn = curve
    keys = {"theirs, median": raw[0], "theirs, 95th percentile": raw[1]} if raw else {}
    keys["theirs, mean of the fastest half (printed as the median)"] = drawn.format("fastest50")
    keys["theirs, mean of the fastest 95 % (printed as the 95th percentile)"] = drawn.format("fastest95")
    rows = []
    if beside:
        rows = [marks.line_row(line, row["offered_rps"], row[key] * unit)
                for line, key in keys.items() for row in published.STEPS]
    for who, climb in _frames(found, beside, "ours"):
        for step in climb.steps:
            if times := step.times(name):
                rows.append(marks.line_row(f"{who}, median", step.load, times.p50, times.interval, step.counts))
                rows.append(marks.line_row(f"{who}, 95th percentile", step.load, times.p95, None, step.counts))
    return rows


def _shares(found, beside):
    """What the pictures of failures draw."""
    rows = []
    if beside:
        for row in published.STEPS:
            due = published.requests(row)
            shares = [row["timed_out"] / due, row["os_error_11"] / due, 0.0, 0.0]
            rows.append(["theirs", marks.rate(row["offered_rps"]), *map(marks.share, shares), "yes"])
    for who, climb in _frames(found, beside, "ours, to scale"):
        for step in climb.steps:
            shares = [marks.share(step.shares()[name]) for name in CLASSES]
            rows.append([who, marks.rate(step.load), *shares, "yes" if step.counts else "no"])
    return rows


def _bars(found, beside):
    """Rules for bars of failures, of which each class has one."""
    rows = []
    for row in published.STEPS:
        due = published.requests(row)
        shares = {CLASSES[0]: row["timed_out"] / due, CLASSES[1]: row["os_error_11"] / due}
        rows.append(("theirs", row["offered_rps"], shares))
    for who, climb in _frames(found, beside, "ours, to scale"):
        rows += [(who, step.load, step.shares()) for step in climb.steps]

    def rules(text):
        here = []
        for who, load, shares in rows:
            for name, share in shares.items():
                if text.endswith(name):
                    here += marks.at_first(text, f"{who}, ", load, f" a second: # {name}", [percent(share)])
            if not any(text.endswith(name) for name in CLASSES):
                here += marks.at_first(text, f"{who}, ", load, " a second: ", [])
        return here

    return rules


def _shared(begin, shares):
    """Shares by class, in half a sentence."""
    parts = [(name, share) for name, share in shares.items() if share > 0]
    words = ", ".join(f"# {name}" for name, _ in parts) or "none failed"
    return begin + words, [percent(share) for _, share in parts]


def _failure_titles(found, beside):
    pieces = []
    for row in published.STEPS:
        due = published.requests(row)
        shares = {CLASSES[0]: row["timed_out"] / due, CLASSES[1]: row["os_error_11"] / due}
        pieces.append((row["offered_rps"], *_shared("theirs ", shares)))
    frames = [("ours ", beside)] if beside else []
    frames += [(f"{climb.keys}: ", climb) for climb in found if not climb.is_to_scale]
    for begin, climb in frames:
        pieces += [(step.load, *_shared(begin, step.shares())) for step in climb.steps]
    return _with_marks(_titled(pieces), _bars(found, beside))


def _captions(found, beside):
    """What pictures say below themselves."""
    rules = []
    if beside:
        rules.append(Rule("Ours to scale: # on the axis are # key exchanges a second here", plain(1_000),
                          plain(beside.factor() * 1e3)))
        rules.append(Rule("so that # are what its server serves", plain(published.CAPACITY_RPS)))
    return rules


def _on_cores(found, name):
    rules = []
    for climb in found:
        if climb.is_to_scale:
            continue
        bend, ends = climb.bend(), climb.ends(name)
        knee, values = f"with {climb.keys} nobody knows where the knee is", []
        if bend:
            words = "the knee is at #" if bend[0] == "at" else "there is no knee up to #"
            knee, values = f"with {climb.keys} {words}", [plain(bend[1].load)]
        if ends:
            low, high = map(ns, ends)
            rules.append(Rule(f"{knee}, and medians of steps are # to #", *values, low, high))
            rules.append(Rule(f"{knee}, and medians of steps are #", *values, (low, high)))
        if values:
            rules.append(Rule(knee, *values))
    return rules


def chapters(study):
    """The sections under load."""
    found = climbs(study)
    if not found:
        return {"Figures 7 to 12: under load": Chapter(rules=[PAPER_S])}
    beside = beside_theirs(found)
    overview = [rule for climb in found for rule in about(climb) + knee_rules(climb) + queue(climb)]
    made = {"Ladders: what was offered, and what became of it": Chapter(map(_steps, found), overview)}
    for curve in CURVES:
        figure, measure, name = curve[:3]
        rules = curve_rules(found, curve) + _captions(found, beside) + _on_cores(found, name)
        tables = [_beside(beside, curve)] if beside else []
        made[f"Figure {figure}: {measure} under load"] = Chapter(
            tables, rules, _curve_titles(found, beside, curve), _lines(found, beside, curve))
    rules = failure_rules(found) + [
        Rule("theirs was # for each of several steps, and ours is # for all",
             seconds(published.THEIR_DEADLINE_SECONDS), seconds(study.settings["deadline_seconds"]))]
    for climb in found:
        if not climb.is_to_scale and climb.counted():
            last = climb.counted()[-1]
            share = percent(last.failed_share())
            rules.append(Rule(f"with {climb.keys} at # a second # fail", plain(last.load), share))
    made["Figure 8: key exchanges that failed"] = Chapter(
        [_failures(beside)] if beside else [], rules, _failure_titles(found, beside), _shares(found, beside))
    return made
