"""What became of the paper's Table II and Figures 4, 5 and 7 to 12: the verdicts, by the rules of the documentation."""

import nts_unloaded as unloaded
import published
import sample
import tally
from nts_ladder import CURVES, beside_theirs, climbs
from printed import ns, percent, plain
from tally import COULD_NOT, DIFFERS, REPRODUCED, Entry

# Measures from the shortest, at the client and at the server.
ORDERS = (("d_CNTS", "d_CKE"), ("d_SNTP", "d_SKE", "d_SNTS"))
PERCENTILES = (5, 25, 50, 75, 95)
# From this many times the median without load on a time is affected.
AFFECTED = 2.0


def entries(study):
    found = unloaded.cells(study)
    record = found.get(unloaded.main(found))
    ladders = climbs(study)
    without = lambda: tally.missing(study, lambda task: task == "unloaded" or task.startswith("unloaded-"))
    made = [Entry("Table II", *(_table_2(record) if record else without()))]
    for number, order in zip((4, 5), ORDERS):
        made.append(Entry(f"Figure {number}", *(_distributions(record, order) if record else without())))
    climb = beside_theirs(ladders)
    under = lambda: tally.missing(
        study, lambda task: task == "scale-quota" or task.startswith("ladder-quota-"))
    for figure in range(7, 13):
        judged = under() if climb is None or not climb.counted() else (
            _knee(climb) if figure == 7 else _failures(climb) if figure == 8 else
            _affected(climb, next(curve for curve in CURVES if curve[0] == figure)))
        claim = [plain(published.CAPACITY_RPS)] if figure == 7 else []
        made.append(Entry(f"Figure {figure}", *judged, claim=claim))
    return made


def _table_2(record):
    verdict, said, values = REPRODUCED, [], []
    for order in ORDERS:
        rows = [unloaded.values(record, measure, "program") for measure in order]
        if not all(rows):
            return COULD_NOT, "The record has no value of one of", []
        medians = list(map(sample.median, rows))
        ends = list(map(sample.median_interval, rows))
        for low, high in zip(ends, ends[1:]):
            if high[1] < low[0]:
                verdict = DIFFERS
            elif high[0] <= low[1] and verdict == REPRODUCED:
                verdict = COULD_NOT
        said.append(", ".join(f"{measure} #" for measure in order))
        values += map(ns, medians)
    end = {REPRODUCED: "", DIFFERS: "; theirs read a file for each request in d_SNTS, ours reads none",
           COULD_NOT: "; intervals overlap, which carries no order"}[verdict]
    return verdict, f"Medians of ours: {'; '.join(said)}{end}.", values


def _distributions(record, order):
    rows = {measure: unloaded.values(record, measure, "program") for measure in order}
    at = lambda measure, percentile: sample.nearest_rank(rows[measure], percentile)
    if not all(rows.values()):
        return COULD_NOT, "The record has no value of one of", []
    for low, high in zip(order, order[1:]):
        for percentile in PERCENTILES:
            first, second = at(low, percentile), at(high, percentile)
            if first >= second:
                # The percentile is a word.
                return DIFFERS, f"At the {percentile}th percentile {low} of ours is #, and {high} is #.", [
                    ns(first), ns(second)]
    ends = ", ".join(f"{measure} from # to #" for measure in order)
    values = [ns(at(measure, percentile)) for measure in order for percentile in (5, 95)]
    return REPRODUCED, f"From the 5th to the 95th percentile ours are: {ends}.", values


def _knee(climb):
    theirs = "theirs above # and at # at most"
    bounds = [plain(published.CAPACITY_RPS), plain(published.KNEE)]
    bend = climb.bend()
    if bend is None:
        return COULD_NOT, "No step without load counts, so that nobody knows where ours bends.", []
    load = bend[1].load
    if bend[0] == "nowhere":
        if load < published.KNEE:
            return COULD_NOT, "The highest step that counts is #, below their knee.", [plain(load)]
        return DIFFERS, f"Ours does not bend up to # a second; {theirs}.", [plain(load), *bounds]
    _, step, _, _, before = bend
    limit = step.is_at_limit()
    if limit is None:
        return COULD_NOT, "Ours bends at #; whether the server was at its limit is not known.", [plain(load)]
    if not limit:
        return COULD_NOT, "Ours bends at #, where the server was not at its limit.", [plain(load)]
    if before is None:
        return COULD_NOT, "Ours bends at # or below: no lower step counts.", [plain(load)]
    overlaps = before < published.KNEE and load > published.CAPACITY_RPS
    return (REPRODUCED if overlaps else DIFFERS), f"Ours bends above # and at # at most, {theirs}.", [
        plain(before), plain(load), *bounds]


def _failures(climb):
    counted = climb.counted()
    last = counted[-1]
    theirs, begin = "theirs begin at #", plain(published.FIRST_FAILURE_RPS)
    share = lambda step: [percent(step.failed_share()), plain(step.load)]
    if last.load < published.FIRST_FAILURE_RPS:
        return COULD_NOT, f"The highest step that counts is #; {theirs}.", [plain(last.load), begin]
    if last.failed_share() == 0:
        return DIFFERS, f"None of ours fails at #; {theirs}.", [plain(last.load), begin]
    bend = climb.bend()
    if bend is None or bend[0] != "at":
        return COULD_NOT, "Ours fail, # at #, and where the knee is is not known.", share(last)
    knee = bend[1].load
    early = next((step for step in counted if step.load < knee and step.failed_share() > 0), None)
    if early:
        return DIFFERS, f"Ours fail below the knee at # already: # at #; {theirs}.", [plain(knee), *share(early), begin]
    return REPRODUCED, f"None of ours fails below the knee at #, and # at #; {theirs}.", [
        plain(knee), *share(last), begin]


def _affected(climb, curve):
    _, measure, name, *_ = curve
    reference, ends = climb.reference(name), climb.ends(name)
    if not reference:
        return COULD_NOT, "No step without load counts that has a value.", []
    if ends is None:
        return COULD_NOT, f"No step of ours that counts has a value of {measure}.", []
    if not any(step.load > published.CAPACITY_RPS and step.times(name) for step in climb.counted()):
        return COULD_NOT, "No step past # counts that has a value.", [plain(published.CAPACITY_RPS)]
    low, high = (end / reference for end in ends)
    verdict = REPRODUCED if high <= AFFECTED else DIFFERS
    is_of_file = (verdict, measure) == (DIFFERS, "d_SNTS")
    file = " Theirs is mostly a file that it read for each request." if is_of_file else ""
    of = f"Medians of {measure} of ours are "
    # Two that look alike are one.
    one = (f"{of}# times the # without load.{file}", [(plain(low), plain(high)), ns(reference)])
    return verdict, f"{of}# to # times the # without load.{file}", [plain(low), plain(high), ns(reference)], one
