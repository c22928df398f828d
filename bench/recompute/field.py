"""What the report on the field study should hold, section by section.

A new section is an entry of the dictionary that `chapters` makes: its tables, and rules for its sentences.
"""

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
        # Those that are known come first, in the order of tables.
        self.all_servers = list(dict.fromkeys([*SERVERS, *every]))

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

    def shares(self, server, scheme):
        return self.ratios(server, scheme, core_rps)


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
        "": Chapter(rules=_findings(trials)),
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
    """What stands first in a report on several studies."""
    return _findings(Trials(study))


def _findings(trials):
    rules = []
    for server in trials.servers():
        parts, values = [], []
        for scheme in TOLD:
            found = sample.bootstrap(trials.shares(server, scheme)[0])
            if found:
                parts.append(f"{_words(found)} under {SCHEMES[scheme]}")
                values += _whole(found, percent)
        rate = estimate(trials.of(server, "plain"), core_rps)
        if parts and rate:
            listed = f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]
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
    return rules + _picture(trials)


def _picture(trials):
    """What the marks of the picture say."""
    rules = []
    for server in trials.all_servers:
        for scheme in SCHEMES:
            shares, void = trials.shares(server, scheme)
            found, rounds = sample.bootstrap(shares), len(shares) + len(void)
            if scheme != "plain" and found:
                rules.append(Rule(
                    f"{trials.name(server)} under {SCHEMES[scheme]}: {_words(found)} of the plain rate, in # round",
                    *_whole(found, percent), plain(rounds)))
    return rules


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


def _costs(trials):
    rows = trials.cells()
    column = lambda heading, cell: Column(heading, [cell(*row) for row in rows])
    named = lambda heading, name: Column(heading, [[] for _ in rows], words=[name(*row) for row in rows])
    median = lambda figure, of: lambda *row: _median(trials.of(*row), figure, of)
    by_server = lambda trial: trial["answered_rps"] if trial["limited_by"] == "server" else None

    def rate_share(server, scheme):
        return _whole(sample.bootstrap(trials.ratios(server, scheme, by_server)[0]), percent)

    of_plain = lambda *row: _whole(sample.bootstrap(trials.shares(*row)[0]), percent)
    of_a_core = lambda *row: _whole(estimate(trials.of(*row), core_rps), plain)
    return Sheet("What authentication costs", [
        named("Server", lambda server, _: trials.name(server)),
        named("Scheme", lambda _, scheme: SCHEMES[scheme]),
        column("Of the plain rate", of_plain),
        column("Answers for a second of processor time", of_a_core),
        column("Processor time of an answer", median(lambda trial: trial["cpu_us"], us)),
        column("Octets of a request", lambda *row: [plain(max(trial["request_size"] for trial in trials.of(*row)))]),
        column("Memory", median(lambda trial: trial["memory_octets"], octets)),
        column("Answered/s", median(lambda trial: trial["answered_rps"], plain)),
        column("Of its processor", median(lambda trial: trial["server_share"], percent)),
        column("Of plain answered/s", rate_share),
        column("Trials that count", lambda *row: _count(trials.of(*row))),
        column("What must be known of it", lambda *row: _remark(trials.of(*row))),
    ])


def _exchanges(trials):
    rows = [server for server in trials.all_servers if trials.exchanges_of(server)]
    column = lambda heading, cell: Column(heading, [cell(server) for server in rows])
    named = lambda heading, name: Column(heading, [[] for _ in rows], words=[name(server) for server in rows])
    median = lambda figure, of: lambda server: _median(trials.exchanges_of(server), figure, of)
    cost = lambda trial: trial["cpu_us"]
    return Sheet("What a key exchange costs", [
        named("Server", trials.name),
        named("For", lambda server: SCHEMES[trials.exchanges_of(server)[0]["scheme"]]),
        column("Processor time of an exchange", lambda server: _whole(estimate(trials.exchanges_of(server), cost), us)),
        column("Times ours", lambda server: _whole(sample.bootstrap(_times_ours(trials, server)), plain)),
        column("Exchanges/s", median(lambda trial: trial["answered_rps"], plain)),
        column("Of its processor", median(lambda trial: trial["server_share"], percent)),
        column("Memory", median(lambda trial: trial["memory_octets"], octets)),
        column("Trials that count", lambda server: _count(trials.exchanges_of(server))),
        column("What must be known of it", lambda server: _remark(trials.exchanges_of(server))),
    ])


def _latencies(trials):
    rows = trials.levels()
    column = lambda heading, cell: Column(heading, [cell(*row) for row in rows])
    named = lambda heading, name: Column(heading, [[] for _ in rows], words=[name(*row) for row in rows])
    median = lambda figure, of: lambda *row: _median(trials.at(*row), figure, of)
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
        column("Of its processor", median(lambda trial: trial["server_share"], percent)),
        column("Trials that count", lambda *row: _count(trials.at(*row))),
        # Reasons are quoted from the records.
        column("What must be known of it", lambda *_: []),
    ])


def _method(study, trials):
    settings, ok = study.settings, counted(trials.closed)
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
