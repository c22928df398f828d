"""Operations that were measured alone, and what goes beyond the paper: sessions, and transfers past its rates."""

import marks
import nts_unloaded as unloaded
import published
import sample
from check import Chapter, Column, Rule, Sheet
from printed import ns, octets, percent, plain, us

# Of each operation: its word in records, how tables call it, and the values of what holds of theirs.
_CKE, _SKE, _SNTS = (ns(published.TABLE_2[measure]) for measure in ("d_CKE", "d_SKE", "d_SNTS"))
# What reading the file took of d_SNTS in theirs, by inference: what d_SNTS is more than it was in runs without that.
FILE_READ = ns(published.unloaded("d_SNTS")
               - published.unloaded("d_SKE") * published.EARLIER_SNTS_US / published.EARLIER_SKE_US)
OPERATIONS = (
    ("handshake-server", "TLS handshake, server's half", []),
    ("handshake-client", "TLS handshake, client's half", [_CKE]),
    ("handshake", "TLS handshake, both", [_CKE]),
    ("seal-cookie", "seal a cookie", [_SNTS]),
    ("seal-eight-cookies", "seal eight cookies", [_SKE]),
    ("open-cookie", "open a cookie", [_SNTS]),
    ("open-cookie-in-group", "open a cookie, in a group", []),
    ("verify-siv-cmac", "verify a request, AEAD 15", [_SNTS]),
    ("verify-siv-cmac-in-group", "verify a request, AEAD 15, in a group", []),
    ("sign-siv-cmac", "sign a response, AEAD 15", [_SNTS]),
    ("sign-siv-cmac-in-group", "sign a response, AEAD 15, in a group", []),
    ("verify-gcm-siv", "verify a request, AEAD 30", []),
    ("verify-gcm-siv-in-group", "verify a request, AEAD 30, in a group", []),
    ("sign-gcm-siv", "sign a response, AEAD 30", []),
    ("sign-gcm-siv-in-group", "sign a response, AEAD 30, in a group", []),
    ("read-file", "read a small file", [FILE_READ, _SNTS]),
    ("memcached-get", "a get from memcached", []),
)
COOKIES = {"fresh": "fresh cookies", "one": "one cookie"}
TRANSFERS = (1, 3, 8, 30, 300)
WORKERS = {"rates-1-worker": "one worker", "rates-2-workers": "two workers"}
LIMITS = {"nothing": "nothing", "server": "the server", "generator": "the generator", "path": "the path",
          "unknown": "unknown"}
# The end of the axes of Figures 9, 11 and 12, and how many transfers were asked for at most.
AXIS_END_RPS = (published.AUX_COUNT * published.AUX_RPS + published.MEASURED_RPS_MAX) * published.TRANSFERS
ASKED_RPS_MAX = (published.AUX_COUNT * published.AUX_RPS * published.AUX_TRANSFERS
                 + published.MEASURED_RPS_MAX * published.TRANSFERS)
# Of more transfers than this share a rate is more than the server carries.
LOST_SHARE_MAX = 0.01


class Alone:
    """Operations alone."""

    def __init__(self, study):
        count = {task["id"] for task in study.tasks if study.outcome(task) == "measured"}
        self.records = [study.records[task] for task in ("operations", "operations-memcached")
                        if task in count and task in study.records]
        self.of = {times["operation"]: (record, times) for record in self.records for times in record["operations"]}

    def median(self, name):
        return ns(self.of[name][1]["p50_ns"])

    def rules(self, found, main):
        """What its sentences say, here and in the rows of statements."""
        rules = []
        program = []
        if main:
            program = [sample.median(unloaded.values(found[main], measure, "program"))
                       for measure in ("d_SNTS", "d_SKE")]
        known = len(program) == 2 and all(program)
        if "read-file" in self.of:
            record, times = self.of["read-file"]
            read = times["p50_ns"]
            rules += [Rule("closing a file of # octets takes # alone", plain(record["size"] or 0), ns(read)),
                      Rule("closing a file takes # alone", ns(read)),
                      Rule("of theirs the file is about #, by inference",
                           percent(FILE_READ.number / published.TABLE_2["d_SNTS"]))]
            if known:
                snts, ske = program
                rules.append(Rule(
                    "d_SNTS as their program took it is #, # times d_SKE,", ns(snts), plain(snts / ske)))
                rules.append(Rule(
                    "With such a read for each request it would be #, # times d_SKE, and # of it the read",
                    ns(snts + read), plain((snts + read) / ske), percent(read / (snts + read))))
            if main:
                sntp, snts = (sample.median(unloaded.values(found[main], measure, "program"))
                              for measure in ("d_SNTP", "d_SNTS"))
                if None not in (sntp, snts):
                    rules.append(Rule(
                        "d_SNTP has #, and d_SNTS with a fresh cookie #; a file read for each request would add #,",
                        ns(sntp), ns(snts), ns(read)))
        if "memcached-get" in self.of:
            record, times = self.of["memcached-get"]
            get = times["p50_ns"]
            rules += [Rule("document of keys (# octets) from memcached takes # over", plain(record["size"] or 0),
                           ns(get)),
                      Rule("document of keys from memcached takes # over", ns(get))]
            if known:
                rules.append(Rule("one for each request d_SNTS would be # times as long", plain(1 + get / program[0])))
        told = (("handshake", "a TLS handshake"), ("handshake-server", "the server's half of it"),
                ("seal-eight-cookies", "sealing eight cookies"), ("open-cookie", "opening one"),
                ("verify-siv-cmac", "verifying a request"), ("sign-siv-cmac", "signing a response"))
        rules += [Rule(f"{words} #", self.median(name), when="alone, by medians, ") for name, words in told
                  if name in self.of]
        for record in self.records:
            rules.append(Rule("a group is of # requests", plain(record["group"])))
            rules.append(Rule("The clock shows # of an empty block", ns(record["clock_ns"])))
        return rules

    def table(self):
        rows = [(words, self.of[name][1], theirs) for name, words, theirs in OPERATIONS if name in self.of]
        column = lambda heading, cell, medium="both": Column(heading, [cell(times) for _, times, _ in rows], medium)

        def interval(times):
            found = sample.bootstrap(times["rounds_ns"])
            return [ns(end) for end in found[1]] if found and found[1] else []

        return Sheet("Operations alone", [
            Column("operation", [[] for _ in rows], words=[words for words, _, _ in rows]),
            column("median", lambda times: [ns(times["p50_ns"])]),
            column("95 % of medians", interval),
            column("mean", lambda times: [ns(times["mean_ns"])]),
            column("5th - 95th percentile", lambda times: [ns(times["p5_ns"]), ns(times["p95_ns"])], "page"),
            column("blocks", lambda times: [plain(times["count"])], "page"),
            column("in a block", lambda times: [plain(times["block"])], "page"),
            Column("theirs", [theirs for _, _, theirs in rows]),
        ])

    def chapter(self, found, main):
        # Octets of what is verified and signed, by what requests and responses have: no results.
        notes = [Rule("A request is verified over # octets (AEAD 30: #), a response signed over # with", plain(184),
                      plain(152), plain(84))]
        return Chapter([self.table()], self.rules(found, main) + notes)


class Beyond:
    """Sessions, and transfers alone."""

    def __init__(self, study):
        count = {task["id"] for task in study.tasks if study.outcome(task) == "measured"}
        self.sessions = {task: record for task, record in study.records.items() if task in count and (
            task.startswith(("sessions-", "transfers-alone-")) or task == "exchanges-alone")}
        # Rates that the generator spoiled are shown, too.
        self.rates = [(name, study.records[task]) for task, name in WORKERS.items() if task in study.records]

    def cost(self, task):
        """Processor time of the server for a session, or for an exchange or a transfer alone, in ns."""
        record = self.sessions.get(task)
        if record is None or record["server_cpu_seconds"] is None:
            return None
        of = record["transfers" if task.startswith("transfers-") else "exchanges"]["answered"]
        return record["server_cpu_seconds"] * 1e9 / of if of and record["server_cpu_seconds"] > 0 else None

    def predicted(self, count, cookies):
        exchange, transfer = self.cost("exchanges-alone"), self.cost(f"transfers-alone-{cookies}")
        return None if None in (exchange, transfer) else exchange + count * transfer

    def share(self, count, cookies):
        """The key exchange's share of what it and the transfers cost alone."""
        predicted = self.predicted(count, cookies)
        return self.cost("exchanges-alone") / predicted if predicted else None

    def costs(self, cookies):
        """(transfers, cost of a session) of what was measured."""
        return [(count, cost) for count in TRANSFERS
                if (cost := self.cost(f"sessions-{count}-{cookies}")) is not None]

    def is_there(self):
        return any(self.cost(task) is not None for task in self.sessions) or bool(self.rates)

    def rules(self):
        """What its sentences say, here and in the rows of statements."""
        rules = []
        cookies = next((cookies for cookies in COOKIES if self.costs(cookies)), None)
        if cookies:
            costs = self.costs(cookies)
            (first, low), (last, high) = costs[0], costs[-1]
            rules.append(Rule("A transfer costs the server # of processor time with # for each key exchange",
                              ns(low / first), plain(first)))
            rules.append(Rule("the exchange included, and # with #: # times less", ns(high / last), plain(last),
                              plain(low / first / (high / last))))
            shares = [(count, share) for count, _ in costs
                      if (count == 3 or count == last) and (share := self.share(count, cookies)) is not None]
            if shares:
                words = " and ".join("# with #" for _ in shares)
                rules.append(Rule(f"By what both cost alone the exchange is {words} of that",
                                  *[value for count, share in shares for value in (percent(share), plain(count))]))
        ratios = [cost / predicted for cookies in COOKIES for count, cost in self.costs(cookies)
                  if (predicted := self.predicted(count, cookies))]
        exchange = self.cost("exchanges-alone")
        transfer = next((cost for cookies in COOKIES if (cost := self.cost(f"transfers-alone-{cookies}"))), None)
        if ratios and exchange and transfer:
            rules.append(Rule("Alone, an exchange costs # and a transfer #, so that one exchange is worth # transfers; "
                              "sessions cost # to # times what these predict", ns(exchange), ns(transfer),
                              plain(exchange / transfer), plain(min(ratios)), plain(max(ratios))))
        fresh, one = dict(self.costs("fresh")), dict(self.costs("one"))
        both = [count for count in TRANSFERS if count in fresh and count in one]
        if both:
            most = both[-1]
            rules.append(Rule("With # transfers for each exchange, a session with fresh cookies costs the server # "
                              "times what one", plain(most), plain(fresh[most] / one[most])))
        for name, record in self.rates:
            rules += _of_rates(name, record)
        return rules

    def chapter(self):
        tables = [table for table in (self._sessions(), self._rates()) if table]
        return Chapter(tables, self.rules(), self._titles, self._drawn())

    def _drawn(self):
        """What the pictures of sessions and of rates draw."""
        rows = []
        for cookies, words in COOKIES.items():
            for count, cost in self.costs(cookies):
                rows.append(marks.line_row(words, count, cost / count))
                if predicted := self.predicted(count, cookies):
                    rows.append(marks.line_row(f"{words}, predicted", count, predicted / count))
        for name, record in self.rates:
            for step in record["steps"]:
                counts = step["why_invalid"] is None
                for figure, key in (("median", "p50_ns"), ("95th percentile", "p95_ns")):
                    if step[key] is not None:
                        rows.append(marks.line_row(f"{name}, {figure}", step["offered_rps"], step[key], None, counts))
        return rows

    def _sessions(self):
        tasks = ["exchanges-alone"] + [f"transfers-alone-{cookies}" for cookies in COOKIES]
        tasks += [f"sessions-{count}-{cookies}" for count in TRANSFERS for cookies in COOKIES]
        rows = [(task, cost) for task in tasks if (cost := self.cost(task)) is not None]
        if not rows:
            return None

        def parts(task):
            word, _, cookies = task.partition("-")
            count, _, cookies = cookies.partition("-")
            return (int(count), cookies) if word == "sessions" else None

        def name(task):
            if task == "exchanges-alone":
                return "key exchanges alone"
            if parts(task) is None:
                return f"transfers alone, {COOKIES[task.rsplit('-', 1)[1]]}"
            count, cookies = parts(task)
            return f" transfer{'' if count == 1 else 's'} per exchange, {COOKIES[cookies]}"

        def of_core(task, cost, which):
            if parts(task):
                return [plain((parts(task)[0] if which == "transfers" else 1) * 1e9 / cost)]
            return [plain(1e9 / cost)] if task.startswith(which) else []

        def of_session(value):
            return lambda task, cost: [found] if parts(task) and (found := value(cost, *parts(task))) else []

        column = lambda heading, cell, medium="both": Column(heading, [cell(*row) for row in rows], medium)
        predicted = lambda _, count, cookies: (whole := self.predicted(count, cookies)) and ns(whole / count)
        share = lambda _, count, cookies: (whole := self.share(count, cookies)) and percent(whole)

        def within(task, _):
            record = self.sessions[task]
            return [plain(record["answered_within"] / max(record["seconds"], 1e-9))]

        def busy(task, _):
            share = self.sessions[task]["generator_busy_share"]
            return [] if share is None else [percent(share)]

        return Sheet("Exchanges and transfers", [
            Column("pattern", [[plain(parts(task)[0])] if parts(task) else [] for task, _ in rows],
                   words=[name(task) for task, _ in rows]),
            column("exchanges /s of a core", lambda task, cost: of_core(task, cost, "exchanges")),
            column("transfers /s of a core", lambda task, cost: of_core(task, cost, "transfers")),
            column("server per session", lambda _, cost: [ns(cost)]),
            column("per transfer", of_session(lambda cost, count, _: ns(cost / count))),
            column("predicted", of_session(predicted)),
            column("exchange", of_session(share)),
            column("answered /s", within, "page"),
            column("generator busy", busy, "page"),
        ])

    def _rates(self):
        rows = [(name, step) for name, record in self.rates for step in record["steps"]]
        if not rows:
            return None
        column = lambda heading, cell, medium="both": Column(heading, [cell(step) for _, step in rows], medium)
        time = lambda key, of: lambda step: [] if step[key] is None else [of(step[key])]
        named = lambda heading, words, medium="both": Column(heading, [[] for _ in rows], medium, words)
        return Sheet("NTS alone", [
            named("server", [name for name, _ in rows]),
            column("offered /s", lambda step: [plain(step["offered_rps"])]),
            column("answered /s", lambda step: [plain(step["transfers"]["answered"] / max(step["seconds"], 1e-9))]),
            column("not in time", lambda step: [percent(_lost(step))]),
            column("median", time("p50_ns", ns)),
            column("95th percentile", time("p95_ns", ns)),
            column("server per transfer", time("server_us", us), "page"),
            named("limited by", [LIMITS[step["limited_by"]] for _, step in rows]),
            named("counts", ["no" if step["why_invalid"] else "yes" for _, step in rows], "text"),
            named("does not count", [step["why_invalid"] for _, step in rows], "page"),
        ])

    def _titles(self, text):
        """Rules for what a mark, or a place between marks, says; a picture's own words are its sentences."""
        rules = list(self.rules())
        for count in TRANSFERS:
            costs = [(cookies, cost) for cookies in COOKIES for other, cost in self.costs(cookies) if other == count]
            if costs:
                words = "; ".join(f"{COOKIES[cookies]} #" for cookies, _ in costs)
                rules.append(Rule(f"# transfers: {words}", plain(count), *[ns(cost / count) for _, cost in costs]))
        for cookies, words in COOKIES.items():
            for count, cost in self.costs(cookies):
                rules += marks.point(text, f"{words}: ", count, [ns(cost / count)])
                if predicted := self.predicted(count, cookies):
                    rules += marks.point(text, f"{words}, predicted: ", count, [ns(predicted / count)])
        for name, record in self.rates:
            for step in record["steps"]:
                offered = step["offered_rps"]
                if step["p50_ns"] is None:
                    rules += marks.at_first(text, f"{name}, ", offered, " a second: no answer", [])
                    continue
                p50, p95 = ns(step["p50_ns"]), ns(step["p95_ns"])
                rules += marks.point(text, f"{name}, median: ", offered, [p50])
                rules += marks.point(text, f"{name}, 95th percentile: ", offered, [p95])
                rules += marks.at_first(
                    text, f"{name}, ", offered, " a second: median #, 95th percentile #", [p50, p95])
        return rules


def _lost(step):
    transfers = step["transfers"]
    return sum(transfers["causes"].values()) / max(transfers["scheduled"], 1)


def _of_rates(name, record):
    """How far the rates of a server went."""
    counted = [step for step in record["steps"] if step["why_invalid"] is None]
    begin = name.capitalize() + (" (the generator shares a processor with it)" if record["shares_processor"] else "")
    if not counted:
        return [Rule(f"{begin}: no rate of transfers alone counts, as the generator kept none of them. A closed loop "
                     "of them brought # a second", plain(record["closed_rps"]))]
    carried = []
    for step in counted:
        if _lost(step) > LOST_SHARE_MAX:
            break
        carried.append(step)
    if not carried:
        return [Rule(f"{begin}: of # transfers a second, the least that counts, # have no answer in time",
                     plain(counted[0]["offered_rps"]), percent(_lost(counted[0])))]
    best, last = carried[-1], counted[-1]
    times = "" if best["p50_ns"] is None else ", with a median of # and a 95th percentile of #"
    values = [] if best["p50_ns"] is None else [ns(best["p50_ns"]), ns(best["p95_ns"])]
    words = (f"{begin}: NTS alone is carried up to # transfers a second{times}, # times the end of the paper's axis, "
             "of which at most # were asked for.")
    values = [plain(best["offered_rps"]), *values, plain(best["offered_rps"] / AXIS_END_RPS), plain(ASKED_RPS_MAX)]
    if last["offered_rps"] > best["offered_rps"]:
        words += f" At # # have no answer in time, limited by {LIMITS[last['limited_by']]}."
        values += [plain(last["offered_rps"]), percent(_lost(last))]
    elif record["steps"][-1]["why_invalid"] is not None:
        words += " # are more than the generator can offer here."
        values.append(plain(record["steps"][-1]["offered_rps"]))
    else:
        words += " No higher rate was offered."
    return [Rule(words, *values)]
