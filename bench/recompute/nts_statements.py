"""What the paper says, what its data say, and ours.

Numbers of the paper's own words are transcribed from it; those of its data are computed; what its authors' source and
capture show and no kept data yield (deadlines, sizes, hardware) is listed as such.
"""

import nts_under_load
import nts_unloaded as unloaded
import published as p
import sample
from check import Rule
from nts_ladder import CURVES
from printed import ns, percent, plain, seconds, us


def ms(number):
    return ns(number * 1e6)


def rules(study, found, main, derived, climbs):
    return _paper() + _source() + _data() + _curves() + _ours(found, main, derived) + _under_load(climbs)


def _paper():
    """What was printed."""
    table, four, five = p.TABLE_2, p.FIGURE_4, p.FIGURE_5
    kilo = lambda value: value / 1e3
    return [
        Rule("authenticated transfer takes about # longer than a plain one", percent(1.16)),
        Rule("keeps up to about # a second", plain(p.CAPACITY_RPS)),
        Rule("Keys of # octets in memcached", plain(16)),
        Rule("i5-2500K, four cores at # GHz, # GB. Measured client: virtual machine, eight cores, # GB. # auxiliary "
             "clients: four cores and # GB each", plain(3.3), plain(24), plain(16), plain(p.AUX_COUNT), plain(8)),
        Rule("One client can send about # requests a second. The measured one asks for # to # by #, # each, and # "
             "auxiliary ones for # each, up to #.", plain(1_500), plain(100), plain(p.MEASURED_RPS_MAX), plain(100),
             seconds(p.STEP_SECONDS), plain(p.AUX_COUNT), plain(p.AUX_RPS),
             plain(p.AUX_COUNT * p.AUX_RPS + p.MEASURED_RPS_MAX)),
        Rule("are three times the load, up to # requests a second",
             plain((p.AUX_COUNT * p.AUX_RPS + p.MEASURED_RPS_MAX) * p.TRANSFERS)),
        Rule("makes one key exchange and one transfer a second, # of each", plain(p.ROUNDS)),
        Rule("d_CNTP, has # to #; d_CKE has # to #", plain(four["d_CNTS"][0] / 1e6), ns(four["d_CNTS"][1]),
             plain(four["d_CKE"][0] / 1e6), ns(four["d_CKE"][1])),
        Rule("d_SNTP has # to #, d_SKE # to #, d_SNTS # to #.", plain(kilo(five["d_SNTP"][0])), ns(five["d_SNTP"][1]),
             plain(kilo(five["d_SKE"][0])), ns(five["d_SKE"][1]), plain(kilo(five["d_SNTS"][0])),
             ns(five["d_SNTS"][1])),
        Rule("d_CKE is # on average", ns(table["d_CKE"])),
        Rule("d_CNTP is # on average", ns(table["d_CNTS"])),
        Rule("d_SNTP is # on average", ns(table["d_SNTP"])),
        Rule("d_SKE is # on average", ns(table["d_SKE"])),
        Rule("d_SNTS is # on average", ns(table["d_SNTS"])),
        Rule("d_CNTP, a plain transfer, takes # on average", ns(p.D_CNTP_NS)),
        Rule("authenticated transfer alone takes # longer than a plain one", percent(p.TRANSFER_INCREASE)),
        Rule("With the key exchange, it takes # longer than a plain transfer", percent(p.EXCHANGE_INCREASE)),
        Rule("d_CKE takes about # times as long as d_CNTP", plain(3)),
        Rule("a cookie costs # in the exchange, and a request goes from # to #.", ns(table["d_SKE"]),
             ns(table["d_SNTP"]), ns(table["d_SNTS"])),
        Rule("From # a second on, the median of d_CKE grows by # and the 95th percentile by #", plain(p.CAPACITY_RPS),
             ms(50.09), ms(744.64)),
        Rule("d_CKE is said to grow from # a second on", plain(p.CAPACITY_RPS)),
        Rule("Errors begin at # a second", plain(p.FIRST_ERRORS_RPS)),
        Rule("it stays near #, as the performance study had it", ms(0.7)),
    ]


def _source():
    """What their source and capture show, and no kept data yield."""
    return [
        Rule("of an hour each, # old and # future ones are kept", plain(24), plain(2)),
        Rule("The client waits # to connect, and # for each read and write", seconds(p.THEIR_DEADLINE_SECONDS),
             seconds(p.THEIR_DEADLINE_SECONDS)),
        # The operating system's number of an error.
        Rule("Error # is what a read reports", plain(11)),
        Rule("settings of this commit ask for # transfers for each cookie", plain(30)),
        Rule("the medians were # of d_SNTS and # of d_SKE", us(p.EARLIER_SNTS_US), us(p.EARLIER_SKE_US)),
    ]


def _data():
    """What the data without load, the capture and arithmetic say."""
    table, look_ups = p.TABLE_2, ns(p.middle(p.CAPTURE["LOOK_UPS_NS"]))
    trip = p.middle(p.CAPTURE["ROUND_TRIPS_NS"])
    trips = ns(p.ROUND_TRIPS * trip)
    # Octets of a response: next protocol and AEAD, eight cookies of 100, a port, the end.
    response = 2 * (4 + 2) + 8 * (4 + 100) + (4 + 2) + 4
    without_file = p.unloaded("d_SKE") * p.EARLIER_SNTS_US / p.EARLIER_SKE_US
    plain_rate = p.AUX_COUNT * p.AUX_RPS * p.AUX_TRANSFERS + p.MEASURED_RPS_MAX * p.TRANSFERS
    return [
        # 116 and 117 are what was printed; no formula yields the first.
        Rule("No formula yields #. Sections IV and VI print #, which one does; the increase is #.", plain(116),
             plain(int(p.DIFFERENCE_PLAIN * 100)), percent(p.INCREASE_AUTHENTICATED)),
        Rule("its response has # octets", plain(response)),
        Rule("# values are three times #.", plain(p.COUNTS["d_SKE"]), plain(p.ROUNDS + p.WARM_UPS)),
        Rule("have # values of each. The server's have # of d_SKE and # of d_SNTP and d_SNTS",
             (plain(p.COUNTS["d_CKE"]), plain(p.COUNTS["d_CNTS"])), plain(p.COUNTS["d_SKE"]),
             (plain(p.COUNTS["d_SNTP"]), plain(p.COUNTS["d_SNTS"]))),
        Rule("What is left, # by Table II", ns(p.D_CNTP)),
        Rule("a round trip of the path took #", ns(trip)),
        Rule("told # and one told # both ask for # a second", plain(300), plain(400),
             (plain(p.told_rate(300)), plain(p.told_rate(400)))),
        Rule("the ratio to d_CNTS is #.", plain(p.CKE / p.CNTS)),
        Rule("at most # were asked for", plain(plain_rate)),
        Rule("three, of # each, so # of d_CKE's #.", ns(trip), plain(trips.number / 1e6), ns(p.unloaded("d_CKE"))),
        Rule("whose mean is #.", ns(p.MEANS["d_CNTS"])),
        # Means of Table II's other measures: all that stand there.
        *[Rule("That is the median; the mean is #.", ns(p.MEANS[measure]), when=f"{words} on average")
          for measure, words in (("d_CKE", "d_CKE is 2.26 ms"), ("d_SNTP", "d_SNTP is 2.03 us"),
                                 ("d_SKE", "d_SKE is 18.13 us"), ("d_SNTS", "d_SNTS is 80.80 us"))],
        Rule("from Table II: # less #.", ns(table["d_CNTS"]), ns(table["d_SNTS"])),
        Rule("The increase is #. # is the symmetric difference, over the mean of both: #, cut off",
             percent(p.increase(p.D_CNTP, p.CNTS)), _cut(p.difference(p.D_CNTP, p.CNTS) * 100, 2),
             plain(p.difference(p.D_CNTP, p.CNTS) * 100)),
        Rule("#, cut off, is the symmetric difference of d_CNTP, and d_CKE and d_CNTP",
             plain(p.DIFFERENCE_PLAIN * 100)),
        Rule("With d_CNTS in its place it is #. The increase is # with a plain and # with an authenticated transfer, "
             "and # where three transfers share", plain(p.DIFFERENCE_AUTHENTICATED * 100), percent(p.INCREASE_PLAIN),
             percent(p.INCREASE_AUTHENTICATED), percent(p.INCREASE_ONE_IN_THREE)),
        Rule("The ratio is #. By the capture, round trips are # of d_CKE's #, or #.", plain(p.CKE / p.D_CNTP), trips,
             plain(p.unloaded("d_CKE") / 1e6), percent(trips.number / p.CKE)),
        Rule("looks the server's name up, in # of the # of d_CNTS. On the wire a transfer takes #", look_ups,
             plain(p.unloaded("d_CNTS") / 1e6), ns(p.middle(p.CAPTURE["TRANSFERS_NS"]))),
        Rule("By that ratio about # of the # are the file", plain((p.unloaded("d_SNTS") - without_file) / 1e3),
             ns(p.unloaded("d_SNTS"))),
        Rule("That is a factor of #. As d_SNTS begins where d_SNTP ends, a request with NTS takes both: # times as "
             "long as a plain one. # is for eight cookies", plain(table["d_SNTS"] / table["d_SNTP"]),
             plain((table["d_SNTP"] + table["d_SNTS"]) / table["d_SNTP"]), ns(p.unloaded("d_SKE"))),
    ]


def _cut(number, decimals):
    """A number that was cut off after so many decimals instead of rounded."""
    return plain(int(number * 10**decimals) / 10**decimals)


def _curves():
    """What the data under load say."""
    at = lambda load, key: p.step(load)[key]
    over = lambda rows, key: sample.mean(row[key] for row in rows)
    knee, later, exceeding = p.knee()
    strict = p.knee(sample.Fraction(1))[0]
    past = p.past_capacity()
    failed = lambda load: percent(p.failed(p.step(load)) / p.requests(p.step(load)))
    over_answered = percent(p.failed(p.step(8_000)) / at(8_000, "answered"))
    p95 = lambda load: seconds(at(load, "d_cke_p95_ms") / 1e3)
    hidden = sorted(at(load, "fig7_fastest95_ms") / 1e3 for load in (500, 800, 900, 1_200))
    ske = [row["fig10_fastest50_us"] for row in p.STEPS]
    first = p.step(p.FIRST_FAILURE_RPS)
    missing = [row for row in p.STEPS if p.asked(row) != p.requests(row)]
    # The increases that were printed: over an earlier run's mean.
    for printed, key in ((50.09, "fig7_fastest50_ms"), (744.64, "fig7_fastest95_ms")):
        if abs(over(past, key) - p.EARLIER_CKE_MS - printed) > 0.05:
            raise AssertionError(f"{key} does not yield what Figure 7's text prints")
    return [
        Rule("The last normal step is #. At # the median is #, five times the unloaded one, and of the # later steps # "
             "exceed", plain(knee - 100), plain(knee), ns(at(knee, "d_cke_p50_ms") * 1e6), plain(later),
             plain(exceeding)),
        Rule("would say #, as # falls back to #.", plain(strict), plain(2_300), ns(at(2_300, "d_cke_p50_ms") * 1e6)),
        Rule("averages over # to #, less #, the mean of an earlier unloaded run", plain(past[0]["offered_rps"]),
             plain(past[-1]["offered_rps"]), ms(p.EARLIER_CKE_MS)),
        Rule("percentiles of those steps are # and # on average. At # the median is #.",
             ms(over(past, "d_cke_p50_ms")), ms(over(past, "d_cke_p95_ms")), plain(p.CAPACITY_RPS),
             ms(at(p.CAPACITY_RPS, "d_cke_p50_ms"))),
        Rule("The 95th percentile is # at #, # at #, # at # and # at # already",
             *[value for load in (500, 800, 900, 1_200) for value in (p95(load), plain(load))]),
        Rule("the slowest twentieth, and show it as # to #.", plain(hidden[0]), seconds(hidden[-1])),
        Rule("The first # are timeouts at #. At # # of the requests fail", plain(first["timed_out"]),
             plain(p.FIRST_FAILURE_RPS), plain(2_300), failed(2_300)),
        Rule("are of the successes: at # #, where # of the requests failed", plain(8_000), over_answered,
             failed(8_000)),
        Rule("Answered exchanges last up to #.", seconds(max(row["d_cke_max_ms"] for row in p.STEPS) / 1e3)),
        Rule("but at #: there # of # are in no class", plain(missing[0]["offered_rps"]),
             plain(p.asked(missing[0]) - p.requests(missing[0])), plain(p.asked(missing[0]))),
        Rule("the mean of the fastest half, is # on average; the performance study had #.",
             ms(over(p.STEPS, "fig9_fastest50_ms")), ns(p.unloaded("d_CNTS"))),
        Rule("95th percentile reaches # at # and # at #.", ms(at(4_400, "fig9_fastest95_ms")), plain(4_400),
             ms(at(5_300, "fig9_fastest95_ms")), plain(5_300)),
        Rule("median is # on average, which is below the # without load, and stays within # and #.", us(sum(ske) / 80),
             ns(p.unloaded("d_SKE")), plain(min(ske)), us(max(ske))),
        Rule("median is # on average, a third of the # without load", us(over(p.STEPS, "fig11_fastest50_us")),
             ns(p.unloaded("d_SNTP"))),
        Rule("median is # on average, below the # without load", us(over(p.STEPS, "fig12_fastest50_us")),
             ns(p.unloaded("d_SNTS"))),
    ]


def _ours(found, main, derived):
    """Ours without load."""
    if not derived:
        return []
    record = found[main]
    median = lambda measure, reading: ns(sample.median(unloaded.values(record, measure, reading)))
    of_table = lambda word, measure: Rule(
        "the median is # by the equations, # as their program did.", median(measure, "equations"),
        median(measure, "program"), when=f"{word} is ")
    # Table II calls d_CNTS d_CNTP.
    made = [of_table(word, measure) for word, measure in (("d_CKE", "d_CKE"), ("d_CNTP", "d_CNTS"), ("d_SKE", "d_SKE"),
                                                          ("d_SNTS", "d_SNTS"))]
    made.append(Rule("Ours: the median is #.", ns(derived.sntp), when="d_SNTP is "))
    for measure in ("d_CKE", "d_CNTS", "d_SNTP", "d_SKE", "d_SNTS"):
        values = unloaded.values(record, measure, "program")
        if values:
            made.append(Rule(f"{measure} has # to #", ns(min(values)), ns(max(values)), when="as their program did"))
    made += [
        Rule("# key exchanges, # transfers with NTS and # without", plain(len(record["exchanges"])),
             plain(len(record["transfers"])), plain(len(record["plain"]))),
        Rule("a plain transfer takes #, measured; equation (6) has #.", ns(derived.plain), ns(derived.equation_6)),
        Rule("the increase is #, the symmetric difference #.", percent(derived.increase), percent(derived.difference)),
        Rule("the increase is #, the paper's symmetric difference #, and the increase with three transfers for an "
             "exchange, computed, #.", percent(derived.with_exchange), percent(derived.with_exchange_difference),
             percent(derived.one_in_three)),
        Rule("a request with NTS takes the server # times as long as a plain one.", plain(derived.server_factor)),
        Rule("# of # are the look-up", ns(derived.look_up), ns(derived.authenticated_of_program)),
    ]
    return made + _paths(found)


def _paths(found):
    """How d_CKE divides into path and rest, and how many round trips the relay counted."""
    made = []
    for way in unloaded.WAYS:
        task = next((task for task in (f"unloaded-memcached-{way}", f"unloaded-file-{way}") if task in found), None)
        derived = unloaded.Derived(found[task]) if task else None
        if not derived or not derived.is_known:
            continue
        ratio, trip = plain(derived.exchange / derived.plain), unloaded.round_trip(task)
        if way == "0":
            made.append(Rule("over # d_CKE is # times a plain transfer", trip, ratio))
        else:
            made.append(Rule("over # it is # times a plain transfer, and # of it are round trips", trip, ratio,
                             percent(derived.network_share)))
    counted = [record["relayed"] for record in found.values() if record["relayed"]]
    counted = [(one["exchange_round_trips"], one["transfer_round_trips"]) for one in counted
               if one["exchange_round_trips"] and one["transfer_round_trips"]]
    if counted:
        parts, values = [], []
        for ranges in zip(*counted):
            ends = min(least for least, _ in ranges), max(most for _, most in ranges)
            parts.append("#" if ends[0] == ends[1] else "# to #")
            values += map(plain, ends[:1] if ends[0] == ends[1] else ends)
        made.append(Rule(f"the relay counted {parts[0]} and {parts[1]} round trips", *values))
    return made


def _under_load(climbs):
    """Ours under load."""
    made = nts_under_load.failure_rules(climbs)
    for curve in CURVES:
        made += nts_under_load.curve_rules(climbs, curve)
    for climb in climbs:
        counted = climb.counted()
        if not counted:
            continue
        total = lambda value: sum(value(step.record) for step in counted)
        name, last = climb.name, counted[-1]
        transfers = total(lambda record: record["transfers"]["scheduled"])
        answered = total(lambda record: record["exchanges"]["answered"])
        due = total(lambda record: record["exchanges"]["scheduled"])
        of = lambda cause: total(lambda record: record["exchanges"]["causes"].get(cause, 0))
        failed = total(lambda record: sum(record["exchanges"]["causes"].values()))
        timed_out, unavailable = of("connection-timed-out"), of("resource-temporarily-unavailable")
        made += nts_under_load.knee_rules(climb) + nts_under_load.about(climb) + nts_under_load.tails(climb)
        made += [
            Rule(f"{name}: requests of the measured client are told by the source of each; of # of its exchanges and "
                 "transfers both ends are known, and of # the server has no record",
                 plain(total(lambda record: record["joined"])), plain(total(lambda record: record["unmatched"]))),
            Rule(f"{name}: # transfers followed # key exchanges of the measured client", plain(transfers),
                 plain(answered)),
            Rule(f"{name}: # transfers for each key exchange of the measured client",
                 plain(transfers / max(answered, 1))),
            Rule(f"{name}: # of # key exchanges had no connection within the deadline, # a connection and no cookies, "
                 "and # failed otherwise", plain(timed_out), plain(due), plain(unavailable),
                 plain(failed - timed_out - unavailable)),
        ]
        if last.record["seconds"] > 0:
            made.append(Rule(
                f"{name}: in the highest step that counts, # key exchanges a second, the measured client alone asked "
                "for # transfers a second here", plain(last.load),
                plain(last.record["transfers"]["scheduled"] / last.record["seconds"])))
    return made
