"""One client without load: the measures, by the equations and as the study's program took them.

Rows of records are in ns. Key exchange: look-up, set-up, connect, handshake, request, half-close at the client;
handshake from accept, choice, export, cookies, response at the server. Transfer: look-up, socket, build, wait, check at
the client; parse, admit, open, verify, fresh cookie, build, seal at the server.
"""

import published
import sample
from printed import exact, ns

MEASURES = ("d_CKE", "d_CNTP", "d_CNTS", "d_SKE", "d_SNTP", "d_SNTS")
READINGS = ("equations", "program")
# Round trips of paths by their words in names of tasks, in ns.
WAYS = {"0": 0.0, "120us": 0.12e6, "70ms": 70e6}


def _snts(server, reading):
    opened, verified, fresh, sealed = server[2], server[3], server[4], server[6]
    return opened + verified + sealed + (fresh if reading == "program" else 0)


def values(record, measure, reading):
    """All values of a measure in a record, in ns."""
    program = reading == "program"
    exchanges, transfers, plain = record["exchanges"], record["transfers"], record["plain"]
    served = [(client, server) for client, server in transfers if server is not None]
    if measure == "d_CKE":
        # From before the connection to cookies parsed; the program's has all stages.
        return [sum(client) if program else sum(client[2:5]) for client, _ in exchanges]
    if measure == "d_CNTS":
        return [sum(client) if program else sum(client[2:]) for client, _ in transfers]
    if measure == "d_CNTP":
        if program:
            # Equation (6), of each transfer.
            return [max(sum(client) - _snts(server, "program"), 0) for client, server in served]
        return [sum(client[2:]) for client, _ in plain]
    if measure == "d_SKE":
        # From accept to sealed cookies; the program's from the parsed request to the response.
        return [sum(server[1:]) if program else sum(server[:4]) for _, server in exchanges if server is not None]
    if measure == "d_SNTP":
        return [server[0] + server[5] for _, server in served]
    return [_snts(server, reading) for _, server in served]


def cells(study):
    """Records that count, by task, in the order of the plan."""
    measured = {task["id"] for task in study.tasks if study.outcome(task) == "measured"}
    names = ["unloaded"] + [f"unloaded-{store}-{way}" for way in WAYS for store in ("memcached", "file")]
    return {name: study.records[name] for name in names if name in measured and name in study.records}


def round_trip(task):
    """That of a cell's path, which is a name."""
    return exact(ns(WAYS["120us" if task == "unloaded" else task.rsplit("-", 1)[1]]))


def main(found):
    """The cell that stands beside what was published: the paper's, or what comes closest; None of none."""
    order = ["unloaded"] + [f"unloaded-{store}-{way}" for way in ("120us", "0", "70ms")
                            for store in ("memcached", "file")]
    return next((name for name in order if name in found), None)


class Derived:
    """Medians of a cell, in ns, and what follows from them as the paper reasons."""

    def __init__(self, record):
        median = lambda measure, reading: sample.median(values(record, measure, reading))
        self.exchange = median("d_CKE", "equations")
        self.plain = median("d_CNTP", "equations")
        self.authenticated = median("d_CNTS", "equations")
        self.equation_6 = median("d_CNTP", "program")
        self.sntp = median("d_SNTP", "program")
        self.snts = median("d_SNTS", "program")
        self.authenticated_of_program = median("d_CNTS", "program")
        self.look_up = sample.median([client[0] for client, _ in record["transfers"]])
        relayed = record["relayed"]
        self.round_trip = relayed["echo_us"] * 1e3 if relayed else 0.0
        self.is_known = None not in vars(self).values() and self.plain > 0 and self.exchange > 0 and self.sntp > 0

    increase = property(lambda self: published.increase(self.plain, self.authenticated))
    difference = property(lambda self: published.difference(self.plain, self.authenticated))
    with_exchange = property(lambda self: published.increase(self.plain, self.exchange + self.authenticated))
    with_exchange_difference = property(lambda self: published.difference(self.plain, self.exchange + self.plain))
    one_in_three = property(lambda self: published.increase(self.plain, self.exchange / 3.0 + self.authenticated))
    network_share = property(lambda self: published.ROUND_TRIPS * self.round_trip / self.exchange)
    server_factor = property(lambda self: (self.sntp + self.snts) / self.sntp)
