"""A study's folder: its plan, the records that it names, and its reports."""

import hashlib
import json
import os
import time

PLAN = "study.json"
PAGE = "report.html"
TEXT = "report.txt"
MARKDOWN = "report.md"
FORMAT = "authentick-study/2"
# Studies whose numbers are recomputed, and all, in the order of a report on several.
PAPERS = ("nts", "field")
ALL = ("mac", "threshold", "nts", "field", "antp")


class Unusable(Exception):
    """Why a folder cannot be checked, in a sentence with its remedy."""


def _read(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        raise Unusable(f"{path}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{path}: {error}") from None


def _json(path, text):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Unusable(f"{path}: it is no JSON, or cut off: {error}") from None
    if not isinstance(value, dict):
        raise Unusable(f"{path}: it is no record")
    return value


def below(place):
    """The names of the studies in the folder of several, in the order of their reports; none in that of one."""
    if not os.path.isdir(place):
        raise Unusable(f"{place}: it is no folder; name the one that `authentick study run --out` made")
    if os.path.exists(os.path.join(place, PLAN)):
        return []
    found = [name for name in ALL if os.path.exists(os.path.join(place, name, PLAN))]
    if not found:
        raise Unusable(f"{place}: there is no {PLAN} in it; name the one that `authentick study run --out` made")
    return found


def report(place, name):
    """A report of a folder."""
    path = os.path.join(place, name)
    if not os.path.exists(path):
        raise Unusable(f"{path}: there is no report; `authentick study render {place}` writes it")
    return _read(path)


class Study:
    """A plan, and its records by task in the order of the plan. `papers`: of which it may be."""

    def __init__(self, place, papers=PAPERS):
        self.place = place
        path = os.path.join(place, PLAN)
        self.plan = _json(path, _read(path))
        if self.plan.get("format") != FORMAT:
            raise Unusable(f"{path}: its format is {self.plan.get('format')!r}, and this reads {FORMAT!r}")
        self.paper = self.plan.get("paper")
        if self.paper not in papers:
            raise Unusable(f"{path}: it is a study of {self.paper!r}; recomputed are {' and '.join(PAPERS)}")
        self.tasks = self.plan["tasks"]
        self.settings = self.plan["settings"]
        # Some studies find out nothing on the way.
        self.found = self.plan["found"] or {}
        self.machine = self.plan["machine"]
        self.records = {}
        for task in self.tasks:
            digest = (task.get("end") or {}).get("sha256")
            if digest is not None and self.paper in PAPERS:
                self.records[task["id"]] = self._record(task, digest)

    def _record(self, task, digest):
        path = os.path.join(self.place, task["file"])
        text = _read(path)
        record = _json(path, text)
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise Unusable(f"{path}: it is not what was measured: its SHA-256 is another than in {PLAN}")
        return record

    def outcome(self, task):
        return (task.get("end") or {}).get("outcome")

    def words(self):
        """What the report quotes from the folder as it is: names, versions, reasons. Numbers in them are the folder's
        own."""
        plan, machine = self.plan, self.machine
        began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(plan["started_unix_s"]))
        words = [plan["version"], plan["commit"], plan["command"], machine["cpu"], machine["kernel"], began]
        words += [remark for remark in self.found.get("remarks", []) if isinstance(remark, str)]
        words += list(self.found.get("titles", {}).values())
        words += [task["id"] for task in self.tasks]
        words += [why for task in self.tasks if (why := (task.get("end") or {}).get("why"))]
        # Where servers are that somebody else runs.
        for given in self.settings.get("given", []):
            host = f"[{given['host']}]" if ":" in given["host"] else given["host"]
            words += [f"{host}:{given['port']}", f"keys at port {given['ke_port']}"]
        # Why a step or a trial does not count.
        for record in self.records.values():
            rows = [record] + [row for value in record.values() if isinstance(value, list) for row in value]
            words += [row["why_invalid"] for row in rows if isinstance(row, dict) and row.get("why_invalid")]
            words += list(record.get("titles", {}).values())
            words += [version] if (version := record.get("memcached")) else []
        words += [why.rstrip(".") for why in words]
        return words
