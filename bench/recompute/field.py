"""What the report on the field study should hold, section by section.

A new section is an entry of the dictionary that `chapters` makes: its tables, and rules for its sentences.
"""

import marks
import opening
import sample
from check import Chapter, Column, Rule, Sheet
from printed import bare, octets, percent, plain, seconds, us

SERVERS = {"authentick": "authentick", "chrony": "chrony", "ntpd-rs": "ntpd-rs", "facebook-time": "facebook/time"}
SCHEMES = {
    "plain": "plain NTP", "md5": "MD5 digest", "sha1": "SHA-1 digest", "sha256": "SHA-256 digest",
    "sha384": "SHA-384 digest", "sha512": "SHA-512 digest", "hmac-md5": "HMAC-MD5", "hmac-sha224": "HMAC-SHA-224",
    "cmac128": "AES-128-CMAC", "cmac256": "AES-256-CMAC", "gmac128": "AES-128-GMAC", "gmac-siv128": "GMAC-SIV",
    "poly1305": "Poly1305", "antp": "ANTP", "antp-separate-tag": "ANTP, separate tag", "nts15": "NTS, AEAD 15",
    "nts30": "NTS, AEAD 30",
}
# Those that the first sentences are about.
TOLD = ("cmac128", "antp", "nts15", "nts30")
LEVELS = {"half": 0.5, "most": 0.9}
# More than this share of requests without an answer is told.
LOSS_TOLD = 0.001
# What kept trials from more, in the order of sentences.
LIMITS = {"server": "the server", "generator": "the generator", "path": "the path", "nothing": "nothing",
          "unknown": "server or path"}
UNKNOWN = "unknown"


class Trials:
    """All trials of a study."""

    def __init__(self, study):
        records = study.records.values()
        self.settings = study.settings
        self.titles = dict(study.found.get("titles", {}))
        for record in records:
            self.titles.update(record["titles"])
        self.closed, self.exchanges, self.latencies = (
            [trial for record in records for trial in record[name]] for name in ("trials", "exchanges", "latencies"))
        every = [trial["server"] for trial in self.closed + self.exchanges + self.latencies]
        self.given = self.settings.get("given", [])
        # Those that are known come first, in the order of tables; those of others follow in that of the command.
        self.all_servers = list(dict.fromkeys([*SERVERS, *(given["name"] for given in self.given), *every]))

    def name(self, server):
        return SERVERS.get(server, server)

    def title(self, server):
        return self.titles.get(server, self.name(server))

    def of(self, server, scheme):
        return [trial for trial in self.closed if (trial["server"], trial["scheme"]) == (server, scheme)]

    def cells(self):
        return [(server, scheme) for server in self.all_servers for scheme in SCHEMES if self.of(server, scheme)]

    def servers(self):
        here = {trial["server"] for trial in self.closed + self.exchanges}
        return [server for server in self.all_servers if server in here]

    def exchanges_of(self, server):
        return [trial for trial in self.exchanges if trial["server"] == server]

    def at(self, server, scheme, level):
        return [trial for trial in self.latencies
                if (trial["server"], trial["scheme"], trial["level"]) == (server, scheme, level)]

    def levels(self):
        return [(server, scheme, level) for server, scheme in self.cells() for level in LEVELS
                if self.at(server, scheme, level)]

    def ratios(self, server, scheme, figure):
        """Ratios to the plain trial of the same server and round: those of trials that count, and the others."""
        counted, void = [], []
        for trial in self.of(server, scheme):
            beside = next((one for one in self.of(server, "plain") if one["round"] == trial["round"]), None)
            over, under = figure(trial), beside and figure(beside)
            if over is None or not under:
                continue
            counts = trial["why_invalid"] is None and beside["why_invalid"] is None
            (counted if counts else void).append(over / under)
        return counted, void

    def is_by_answers(self, server, scheme):
        """Whether nobody knows processor time of any trial, or of plain ones: then shares are of answers a second."""
        return all(trial["cpu_us"] is None for trial in self.of(server, scheme) + self.of(server, "plain"))

    def shares(self, server, scheme):
        by_answers = self.is_by_answers(server, scheme)
        return self.ratios(server, scheme, (lambda trial: trial["answered_rps"]) if by_answers else core_rps)

    def answer_by_request(self, server, scheme):
        """Octets of the largest answer by those of the largest request; None if either is unknown."""
        largest = lambda key: max((trial[key] for trial in self.of(server, scheme)), default=0)
        request, answer = largest("request_size"), largest("response_size")
        return answer / request if request and answer else None

    def amplification(self, server):
        """The most of that under any scheme."""
        found = (self.answer_by_request(server, scheme) for scheme in SCHEMES)
        return max((ratio for ratio in found if ratio is not None), default=None)


def core_rps(trial):
    """Answers for a second of the server's processor time."""
    return None if trial["cpu_us"] is None else 1e6 / trial["cpu_us"]


def counted(trials):
    return [trial for trial in trials if trial["why_invalid"] is None]


def estimate(trials, figure):
    """The median of a figure over trials that count, with its interval; None of none."""
    return sample.bootstrap(value for trial in counted(trials) if (value := figure(trial)) is not None)


def _median(trials, figure, of):
    found = estimate(trials, figure)
    return [of(found[0])] if found else []


def _whole(found, of):
    """The values of "62 % (61 to 63)"."""
    if not found:
        return []
    middle, interval = found
    return [of(middle)] + [bare(of(end)) for end in interval or ()]


def _words(found):
    """How many numbers `_whole` has, as a part of a rule."""
    return "# (# to #)" if found[1] else "#"


def chapters(study):
    """The sections by their headings."""
    trials = Trials(study)
    made = {
        "": Chapter(rules=_findings(trials), drawn=_drawn(trials)),
        "Each scheme at each server": Chapter([_costs(trials)]),
        "How it was measured": Chapter(rules=_method(study, trials)),
        # Names of schemes alone.
        "What servers do not have": Chapter(),
    }
    if trials.exchanges:
        made["Key exchanges"] = Chapter([_exchanges(trials)])
    if trials.levels():
        made["Latency and error"] = Chapter([_latencies(trials)])
    return made


def front(study):
    """What stands first in a report on several studies: rules, and what the picture draws."""
    trials = Trials(study)
    return _findings(trials), _drawn(trials)


def _findings(trials):
    rules = []
    for server in trials.servers():
        parts, values = [], []
        for scheme in TOLD:
            found = sample.bootstrap(trials.shares(server, scheme)[0])
            if found:
                parts.append(f"{_words(found)} under {SCHEMES[scheme]}")
                values += _whole(found, percent)
        listed = _listed(parts)
        if trials.is_by_answers(server, "plain"):
            rate = estimate(trials.of(server, "plain"), lambda trial: trial["answered_rps"])
            if parts and rate:
                rules.append(Rule(f"{trials.title(server)} keeps {listed} of the # plain requests that it answered in "
                                  "a second", *values, plain(rate[0])))
            continue
        rate = estimate(trials.of(server, "plain"), core_rps)
        if parts and rate:
            rules.append(Rule(f"{trials.title(server)} keeps {listed} of its plain rate, which is # for a second",
                              *values, plain(rate[0])))
    rates = [(server, found[0]) for server in trials.servers()
             if (found := estimate(trials.of(server, "nts15"), core_rps))]
    if rates and rates[0][0] == "authentick":
        ours = rates[0][1]
        rules.append(Rule("a second of processor time is worth # answers to authentick", plain(ours)))
        rules += [Rule(f"{trials.title(server)} # (# to one)", plain(rate), plain(ours / rate))
                  for server, rate in rates[1:]]
    for server in trials.servers():
        found = estimate(trials.exchanges_of(server), lambda trial: trial["cpu_us"])
        times = sample.bootstrap(_times_ours(trials, server))
        if found and server == "authentick":
            rules.append(Rule("A key exchange costs authentick # of processor time", us(found[0])))
        elif found and times:
            rules.append(Rule(f"{trials.title(server)} # (# times)", us(found[0]), plain(times[0])))
    return rules + _amplification(trials) + _picture(trials)


def _listed(parts):
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)


def _amplification(trials):
    """How long answers are beside requests."""
    ours = trials.amplification("authentick")
    if ours is None:
        return []
    begin = "under every scheme its largest answer has" if ours <= 1 else "under one scheme the largest has"
    rules = [Rule(f"{begin} # times the octets of the largest request", plain(ours))]
    others = [(server, found) for server in trials.servers()
              if server != "authentick" and (found := trials.amplification(server)) is not None]
    if others:
        listed = ", ".join(f"{trials.title(server)} #" for server, _ in others)
        rules.append(Rule(f"; the most of others: {listed}.", *[plain(found) for _, found in others]))
    return rules


def _picture(trials):
    """What the marks of the picture say."""
    rules = []
    for server in trials.all_servers:
        for scheme in SCHEMES:
            shares, void = trials.shares(server, scheme)
            found, rounds = sample.bootstrap(shares), len(shares) + len(void)
            if scheme != "plain" and found:
                by = " by answers" if trials.is_by_answers(server, scheme) else ""
                rules.append(Rule(
                    f"{trials.name(server)} under {SCHEMES[scheme]}: {_words(found)} of the plain rate{by}, in # round",
                    *_whole(found, percent), plain(rounds)))
    return rules


def _drawn(trials):
    """What the picture draws: medians, and each trial."""
    rows = []
    for scheme, words in SCHEMES.items():
        for server in trials.all_servers if scheme != "plain" else ():
            counted_, void = trials.shares(server, scheme)
            begin = [words, trials.name(server)]
            row = lambda what, value, ends=(None, None), begin=begin: [
                *begin, what, marks.share(value), *[None if end is None else marks.share(end) for end in ends]]
            if found := sample.bootstrap(counted_):
                rows.append(row("median", found[0], found[1] or (None, None)))
            rows += [row("trial", value) for value in counted_]
            rows += [row("trial that does not count", value) for value in void]
    return rows


def _times_ours(trials, server):
    """Processor time of an exchange as multiples of ours in the same round."""
    ours = {trial["round"]: trial["cpu_us"] for trial in counted(trials.exchanges_of("authentick"))}
    return [trial["cpu_us"] / ours[trial["round"]] for trial in counted(trials.exchanges_of(server))
            if trial["cpu_us"] is not None and ours.get(trial["round"]) is not None]


def _remark(trials):
    """The share that is told of lost requests; reasons are quoted from the records."""
    lost = max((trial["loss_ratio"] for trial in counted(trials)), default=0.0)
    return [percent(lost)] if lost > LOSS_TOLD else []


def _count(trials):
    return [plain(len(counted(trials))), plain(len(trials))]


def _bounds(trials, server, scheme):
    """What is said of what kept the trials of a cell that count from more, and its numbers."""
    if not trials.is_by_answers(server, scheme):
        return "", []
    limits = [trial["limited_by"] for trial in counted(trials.of(server, scheme))]
    told = [(words, limits.count(limit)) for limit, words in LIMITS.items() if limit in limits]
    if not told:
        return "", []
    listed = _listed([f"{words} in # trial{'' if count == 1 else 's'}" for words, count in told])
    return f"answered/s was bounded by {listed}", [plain(count) for _, count in told]


def _or_none(value):
    return [] if value is None else [plain(value)]


def _or_unknown(rows, cells, trials_of):
    """What cells have to say in which there is no number: unknown, where there is a trial that counts."""
    return [UNKNOWN if not cell and counted(trials_of(*row)) else "" for row, cell in zip(rows, cells)]


def _known(heading, rows, cell, trials_of):
    """A column of figures that nobody tells of a server that somebody else runs."""
    cells = [cell(*row) for row in rows]
    return Column(heading, cells, words=_or_unknown(rows, cells, trials_of))


def _costs(trials):
    rows = trials.cells()
    column = lambda heading, cell: Column(heading, [cell(*row) for row in rows])
    known = lambda heading, cell: _known(heading, rows, cell, trials.of)

    def must_be_known(server, scheme):
        """Reasons, which are quoted from the records, may stand between."""
        words, values = _bounds(trials, server, scheme)
        lost = _remark(trials.of(server, scheme))
        told = [part for part in ("up to # had no good answer" if lost else "", words) if part]
        return [("#".join(told), lost + values)] if told else []

    named = lambda heading, name: Column(heading, [[] for _ in rows], words=[name(*row) for row in rows])
    median = lambda figure, of: lambda *row: _median(trials.of(*row), figure, of)
    by_server = lambda trial: trial["answered_rps"] if trial["limited_by"] == "server" else None

    def rate_share(server, scheme):
        return _whole(sample.bootstrap(trials.ratios(server, scheme, by_server)[0]), percent)

    def largest_answer(server, scheme):
        most = max(trial["response_size"] for trial in trials.of(server, scheme))
        return [plain(most)] if most else []

    of_plain = lambda *row: _whole(sample.bootstrap(trials.shares(*row)[0]), percent)
    of_a_core = lambda *row: _whole(estimate(trials.of(*row), core_rps), plain)
    return Sheet("What authentication costs", [
        named("Server", lambda server, _: trials.name(server)),
        named("Scheme", lambda _, scheme: SCHEMES[scheme]),
        Column("Of the plain rate", [of_plain(*row) for row in rows], words=[
            ", by answers" if trials.is_by_answers(*row) and of_plain(*row) else "" for row in rows]),
        known("Answers for a second of processor time", of_a_core),
        known("Processor time of an answer", median(lambda trial: trial["cpu_us"], us)),
        column("Octets of a request", lambda *row: [plain(max(trial["request_size"] for trial in trials.of(*row)))]),
        known("Memory", median(lambda trial: trial["memory_octets"], octets)),
        column("Answered/s", median(lambda trial: trial["answered_rps"], plain)),
        known("Of its processor", median(lambda trial: trial["server_share"], percent)),
        column("Of plain answered/s", rate_share),
        column("Trials that count", lambda *row: _count(trials.of(*row))),
        column("What must be known of it", must_be_known),
        column("Octets of an answer", largest_answer),
        column("Answer by request", lambda *row: _or_none(trials.answer_by_request(*row))),
    ])


def _exchanges(trials):
    rows = [server for server in trials.all_servers if trials.exchanges_of(server)]
    column = lambda heading, cell: Column(heading, [cell(server) for server in rows])
    named = lambda heading, name: Column(heading, [[] for _ in rows], words=[name(server) for server in rows])
    known = lambda heading, cell: _known(heading, [(server,) for server in rows], cell, trials.exchanges_of)
    median = lambda figure, of: lambda server: _median(trials.exchanges_of(server), figure, of)
    cost = lambda trial: trial["cpu_us"]
    return Sheet("What a key exchange costs", [
        named("Server", trials.name),
        named("For", lambda server: SCHEMES[trials.exchanges_of(server)[0]["scheme"]]),
        known("Processor time of an exchange", lambda server: _whole(estimate(trials.exchanges_of(server), cost), us)),
        column("Times ours", lambda server: _whole(sample.bootstrap(_times_ours(trials, server)), plain)),
        column("Exchanges/s", median(lambda trial: trial["answered_rps"], plain)),
        known("Of its processor", median(lambda trial: trial["server_share"], percent)),
        known("Memory", median(lambda trial: trial["memory_octets"], octets)),
        column("Trials that count", lambda server: _count(trials.exchanges_of(server))),
        column("What must be known of it", lambda server: _remark(trials.exchanges_of(server))),
    ])


def _latencies(trials):
    rows = trials.levels()
    column = lambda heading, cell: Column(heading, [cell(*row) for row in rows])
    named = lambda heading, name: Column(heading, [[] for _ in rows], words=[name(*row) for row in rows])
    median = lambda figure, of: lambda *row: _median(trials.at(*row), figure, of)
    known = lambda heading, cell: _known(heading, rows, cell, trials.at)
    point = lambda name, which: lambda trial: trial[name] and trial[name][which]

    def over_plain(server, scheme, level):
        """What an answer takes longer than a plain one at the same level and in the same round."""
        beside = {trial["round"]: trial["latency_us"]["p50"] for trial in counted(trials.at(server, "plain", level))
                  if trial["latency_us"]}
        added = [trial["latency_us"]["p50"] - beside[trial["round"]]
                 for trial in counted(trials.at(server, scheme, level))
                 if trial["latency_us"] and trial["round"] in beside]
        return [us(sample.bootstrap(added)[0])] if added and scheme != "plain" else []

    return Sheet("How long answers take, and how far off they are", [
        named("Server", lambda server, *_: trials.name(server)),
        named("Scheme", lambda _, scheme, __: SCHEMES[scheme]),
        column("Load", lambda _server, _scheme, level: [percent(LEVELS[level])]),
        column("Asked/s", median(lambda trial: trial["offered_rps"], plain)),
        column("p50", median(point("latency_us", "p50"), us)),
        column("Over plain", over_plain),
        column("p99", median(point("latency_us", "p99"), us)),
        column("Error p50", median(point("offset_error_us", "p50"), us)),
        column("Error p99", median(point("offset_error_us", "p99"), us)),
        column("Lost", median(lambda trial: trial["loss_ratio"], percent)),
        known("Of its processor", median(lambda trial: trial["server_share"], percent)),
        column("Trials that count", lambda *row: _count(trials.at(*row))),
        # Reasons are quoted from the records.
        column("What must be known of it", lambda *_: []),
    ])


def _method(study, trials):
    settings = study.settings
    ok = [trial for trial in counted(trials.closed) if trial["cpu_us"] is not None]
    by_server = sum(trial["limited_by"] == "server" for trial in ok)
    return opening.rules(study) + [
        Rule("In each of # round", plain(settings["rounds"])),
        Rule("one after the other, for #, with # requests in flight", seconds(settings["trial_seconds"]),
             plain(settings["window"])),
        Rule("in the same way, with # on their way", plain(settings["exchange_window"])),
        Rule("Latency is taken in # round", plain(settings["latency_rounds"])),
        Rule(", for #, at # and # of what the same server had answered", seconds(settings["latency_seconds"]),
             bare(percent(LEVELS["half"])), percent(LEVELS["most"])),
        Rule("busy all the time in # of # trials that count", plain(by_server), plain(len(ok))),
    ]
