"""What the report on the study of NTS should hold, section by section.

A new section is an entry of the dictionary that `chapters` makes: its tables, and rules for its sentences.
"""

import marks
import nts_ladder
import nts_operations
import nts_statements
import nts_under_load
import nts_unloaded as unloaded
import nts_verdicts
import opening
import published
import sample
import tally
from check import Chapter, Column, Rule, Sheet
from printed import ns, percent, plain, seconds, us


def chapters(study):
    """The sections by their headings."""
    found = unloaded.cells(study)
    main = unloaded.main(found)
    record = found.get(main)
    derived = unloaded.Derived(record) if record else None
    derived = derived if derived and derived.is_known else None
    climbs = nts_ladder.climbs(study)
    short = nts_under_load.short(climbs)
    alone, beyond = nts_operations.Alone(study), nts_operations.Beyond(study)
    verdicts = nts_verdicts.entries(study)
    first = _opening(study, found) + [tally.sentence(verdicts, "tables and figures with measurements")]
    made = {
        "": Chapter(rules=first),
        tally.HEADING: Chapter([tally.sheet(verdicts)]),
        "What follows": Chapter(rules=_findings(derived) + short),
    }
    if record:
        made["Table II: without load"] = Chapter([_table_2(record), _readings(record)],
                                                 _of_cell(main, record) + _marks(record), drawn=_dots(record))
        for number, name, theirs in ((4, "client", published.FIGURE_4), (5, "server", published.FIGURE_5)):
            made[f"Figure {number}: at the {name}"] = Chapter(
                [_ends(f"Figure {number}, {name}", record, theirs)], _described(record, theirs),
                drawn=_distributions(record, theirs))
        if derived:
            made["Equation (6), and a plain transfer beside it"] = Chapter([_equation_6(derived)])
        made["Paths and key stores"] = Chapter([_cells(found)])
    if alone.records:
        made["Operations alone"] = alone.chapter(found, main)
    made.update(nts_under_load.chapters(study))
    if beyond.is_there():
        made["Beyond the paper"] = beyond.chapter()
    made["What the paper says, and what its data say"] = Chapter(
        rules=nts_statements.rules(study, found, main, derived, climbs) + alone.rules(found, main) + beyond.rules())
    return made


def _opening(study, found):
    settings = study.settings
    rounds = settings["warm_ups"]
    rules = [Rule(f"in rotating order; # round{'' if rounds == 1 else 's'}", plain(rounds))]
    short = ": # rounds, {}, instead of #, one a second"
    values = [plain(settings["study_rounds"]), plain(published.ROUNDS)]
    if settings["study_interval_seconds"] == 0:
        rules.append(Rule(short.format("as fast as they end"), *values))
    else:
        rules.append(Rule(short.format("each #"), values[0], seconds(settings["study_interval_seconds"]), values[1]))
    failed = sum(record["failed"] for record in found.values())
    rules.append(Rule(f"# exchange{'' if failed == 1 else 's'} of ours brought no good answer", plain(failed)))
    return rules + opening.rules(study)


def _findings(derived):
    if not derived:
        return []
    return [
        Rule("An authenticated transfer takes # longer than a plain one", percent(derived.increase)),
        Rule("The paper has #; its data say #, over a plain transfer that nobody measured",
             percent(published.TRANSFER_INCREASE), percent(published.increase(published.D_CNTP, published.CNTS))),
        Rule("With a key exchange of its own it takes # longer, where the paper has # and its data #",
             percent(derived.with_exchange), percent(published.EXCHANGE_INCREASE),
             percent(published.INCREASE_AUTHENTICATED)),
        Rule("The server works # times as long on a request with NTS as on a plain one; theirs, # times",
             plain(derived.server_factor),
             plain((published.TABLE_2["d_SNTP"] + published.TABLE_2["d_SNTS"]) / published.TABLE_2["d_SNTP"])),
        Rule("Three round trips are # of d_CKE over this path", percent(derived.network_share)),
    ]


def _of_cell(task, record):
    rules = [
        Rule("a round trip of #", unloaded.round_trip(task)),
        Rule("clock costs #, which is taken off", ns(record["clock_ns"])),
    ]
    relayed = record["relayed"]
    if relayed:
        rules.append(Rule(
            "A relay holds packets for # in each direction; an echo takes # there and back, and packets leave # late",
            us(relayed["delay_us"]), us(relayed["echo_us"]), us(relayed["late_mean_us"])))
    return rules


def _or_none(value, of=ns):
    return [] if value is None else [of(value)]


def _names(heading, names):
    """A column of names alone."""
    return Column(heading, [[] for _ in names], words=names)


def _median(record, measure, reading):
    return _or_none(sample.median(unloaded.values(record, measure, reading)))


def _table_2(record):
    measures = list(published.TABLE_2)
    cells = lambda cell: [cell(measure) for measure in measures]
    return Sheet("Table II, theirs and ours, medians", [
        _names("measure", measures),
        Column("printed", cells(lambda measure: [ns(published.TABLE_2[measure])])),
        Column("their mean", cells(lambda measure: [ns(published.MEANS[measure])])),
        Column("ours, by the equations", cells(lambda measure: _median(record, measure, "equations"))),
        Column("ours, as their program did", cells(lambda measure: _median(record, measure, "program"))),
    ])


def _marks(record):
    """What the picture of Table II and its marks say."""
    rules = [Rule(f"{measure}, theirs, as printed: #", ns(value)) for measure, value in published.TABLE_2.items()]
    for name, reading in {"by the equations": "equations", "as their program did": "program"}.items():
        for measure in published.TABLE_2:
            if values := unloaded.values(record, measure, reading):
                ends = sample.median_interval(values)
                rules.append(Rule(f"{measure}, ours, {name}: # (# to #)", *map(ns, (sample.median(values), *ends))))
    return rules


def _dots(record):
    """What the picture of Table II draws."""
    none = marks.whole(0)
    rows = [[measure, "theirs, as printed", marks.whole(value), None, None, none, none]
            for measure, value in published.TABLE_2.items()]
    for name, reading in {"by the equations": "equations", "as their program did": "program"}.items():
        for measure in published.TABLE_2:
            if values := unloaded.values(record, measure, reading):
                figures = [sample.median(values), *sample.median_interval(values)]
                rows.append([measure, f"ours, {name}", *map(marks.whole, figures), none, none])
    return rows


def _distributions(record, theirs):
    """What Figure 4 or 5 draws: theirs, and ours in both readings, but for d_SNTP, which has one."""
    series = []
    for measure in theirs:
        readings = ["program"] if measure == "d_SNTP" else ["program", "equations"]
        series.append([published.unloaded(measure, at) for at in range(101)])
        series += [unloaded.values(record, measure, reading) for reading in readings]
    return marks.curve_rows([values for values in series if values], sample.nearest_rank)


def _readings(record):
    rows = [(measure, reading) for measure in unloaded.MEASURES for reading in unloaded.READINGS
            if (measure, reading) != ("d_SNTP", "program")]
    values = [unloaded.values(record, *row) for row in rows]
    both = lambda interval: [ns(end) for end in interval] if interval else []
    return Sheet("Table II, ours in both readings", [
        _names("measure", [measure for measure, _ in rows]),
        _names("by", [reading for _, reading in rows]),
        Column("median", [_or_none(sample.median(row)) for row in values]),
        Column("95 % of medians", [both(sample.median_interval(row) if row else None) for row in values]),
        # A single value has no mean with an interval.
        Column("mean", [_or_none(sample.mean(row) if len(row) > 1 else None) for row in values]),
        Column("95 % of means", [both(sample.mean_interval(row)) for row in values]),
        Column("values", [[plain(len(row))] for row in values]),
    ])


def _ends(name, record, theirs):
    def ours(measure, reading):
        values = unloaded.values(record, measure, reading)
        return [ns(min(values)), ns(max(values))] if values else []

    return Sheet(name, [
        _names("measure", list(theirs)),
        Column("theirs, smallest - largest", [[ns(low), ns(high)] for low, high in theirs.values()]),
        Column("ours, by the equations", [ours(measure, "equations") for measure in theirs]),
        Column("ours, as their program did", [ours(measure, "program") for measure in theirs]),
    ])


def _described(record, theirs):
    """What a picture and the marks of its ends say."""
    rules = []
    for measure, (low, high) in theirs.items():
        said, ends = [], []
        readings = {"ours": "program"} if measure == "d_SNTP" else {
            "ours, as their program did": "program", "ours, by the equations": "equations"}
        for name, reading in readings.items():
            values = unloaded.values(record, measure, reading)
            rules += _curve(measure, name, values)
            begin = name + ("," if "," in name else "")
            said.append(f"{begin} from # to #" if values else f"{begin} without a value")
            if values:
                ends += [ns(min(values)), ns(max(values))]
                rules += [Rule(f"{measure}, {name}: the smallest, #", ends[-2]),
                          Rule(f"{measure}, {name}: the largest, #", ends[-1])]
        rules.append(Rule(f"{measure}: {', '.join(said)}, theirs from # to #", *ends, ns(low), ns(high)))
        rules += _curve(measure, "theirs", [published.unloaded(measure, at) for at in range(101)])
        for name, at in (("smallest", 0), ("largest", 100)):
            rules.append(Rule(f"{measure}, theirs: the {name}, #", ns(published.unloaded(measure, at))))
    return rules


def _curve(measure, name, values):
    """What a curve says that is pointed at."""
    figures = [sample.nearest_rank(values, percentile) for percentile in (50, 95, 0, 100)] if values else []
    return [Rule(f"{measure}, {name}: median #, 95th percentile #, from # to #, # value", *map(ns, figures),
                 plain(len(values)))] if values else []


def _equation_6(derived):
    rows = [
        # Printed, their data, ours.
        ([], [], ns(derived.plain)),
        ([ns(published.D_CNTP_NS)], [ns(published.D_CNTP)], ns(derived.equation_6)),
        ([], [percent(published.increase(published.D_CNTP, published.CNTS))], percent(derived.increase)),
        ([percent(published.TRANSFER_INCREASE)], [percent(published.difference(published.D_CNTP, published.CNTS))],
         percent(derived.difference)),
        ([], [percent(published.INCREASE_AUTHENTICATED)], percent(derived.with_exchange)),
        ([percent(published.EXCHANGE_INCREASE)], [percent(published.DIFFERENCE_PLAIN)],
         percent(derived.with_exchange_difference)),
        ([], [percent(published.INCREASE_ONE_IN_THREE)], percent(derived.one_in_three)),
    ]
    return Sheet("Equation (6) and a plain transfer", [
        _names("of medians", [
            "a plain transfer, measured", "d_CNTP by equation (6)", "NTS: increase", "NTS: symmetric difference",
            "with the exchange: increase", "with the exchange: difference", "one exchange for three: increase"]),
        Column("printed", [printed for printed, _, _ in rows]),
        Column("their data", [data for _, data, _ in rows]),
        Column("ours", [[ours] for _, _, ours in rows]),
    ])


def _cells(found):
    rows = list(found.items())
    column = lambda heading, cell: Column(heading, [cell(task, record) for task, record in rows])
    of = lambda measure: lambda _, record: _median(record, measure, "equations")
    return Sheet("What the path makes of it", [
        column("keys in, round trip", lambda task, _: [unloaded.round_trip(task)]),
        column("echo", lambda _, record: [us(record["relayed"]["echo_us"])] if record["relayed"] else []),
        column("d_CKE", of("d_CKE")),
        column("d_CNTS", of("d_CNTS")),
        column("plain", of("d_CNTP")),
        column("d_SKE", of("d_SKE")),
        column("d_SNTS", of("d_SNTS")),
        column("values", lambda _, record: [plain(len(record["exchanges"]))]),
    ])
