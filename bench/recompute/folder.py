"""A study's folder: its plan, the records that it names, and its reports."""

import hashlib
import json
import os
import time

PLAN = "study.json"
PAGE = "report.html"
TEXT = "report.txt"
FORMAT = "authentick-study/2"
PAPERS = ("nts", "field")


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


class Study:
    """A plan, and its records by task in the order of the plan."""

    def __init__(self, place):
        self.place = place
        if not os.path.isdir(place):
            raise Unusable(f"{place}: it is no folder; name the one that `authentick study run --out` made")
        path = os.path.join(place, PLAN)
        if not os.path.exists(path):
            below = sorted(name for name in os.listdir(place) if os.path.exists(os.path.join(place, name, PLAN)))
            hint = "name the one that `authentick study run --out` made"
            if below:
                hint = f"there are studies below it, each to be checked alone: {', '.join(below)}"
            raise Unusable(f"{place}: there is no {PLAN} in it; {hint}")
        self.plan = _json(path, _read(path))
        if self.plan.get("format") != FORMAT:
            raise Unusable(f"{path}: its format is {self.plan.get('format')!r}, and this reads {FORMAT!r}")
        self.paper = self.plan.get("paper")
        if self.paper not in PAPERS:
            raise Unusable(f"{path}: it is a study of {self.paper!r}; recomputed are {' and '.join(PAPERS)}")
        self.tasks = self.plan["tasks"]
        self.settings = self.plan["settings"]
        self.found = self.plan["found"]
        self.machine = self.plan["machine"]
        self.records = {}
        for task in self.tasks:
            digest = (task.get("end") or {}).get("sha256")
            if digest is not None:
                self.records[task["id"]] = self._record(task, digest)

    def _record(self, task, digest):
        path = os.path.join(self.place, task["file"])
        text = _read(path)
        record = _json(path, text)
        if hashlib.sha256(text.encode()).hexdigest() != digest:
            raise Unusable(f"{path}: it is not what was measured: its SHA-256 is another than in {PLAN}")
        return record

    def report(self, name):
        """A report of the folder."""
        path = os.path.join(self.place, name)
        if not os.path.exists(path):
            raise Unusable(f"{path}: there is no report; `authentick study render {self.place}` writes it")
        return _read(path)

    def outcome(self, task):
        return (task.get("end") or {}).get("outcome")

    def words(self):
        """What the report quotes from the folder as it is: names, versions, reasons. Numbers in them are the folder's
        own."""
        plan, machine = self.plan, self.machine
        began = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(plan["started_unix_s"]))
        words = [plan["version"], plan["commit"], plan["command"], machine["cpu"], machine["kernel"], began]
        words += self.found.get("remarks", [])
        words += list(self.found.get("titles", {}).values())
        words += [task["id"] for task in self.tasks]
        words += [why for task in self.tasks if (why := (task.get("end") or {}).get("why"))]
        # Why a step or a trial does not count.
        for record in self.records.values():
            rows = [record] + [row for value in record.values() if isinstance(value, list) for row in value]
            words += [row["why_invalid"] for row in rows if isinstance(row, dict) and row.get("why_invalid")]
            if isinstance(record.get("memcached"), str):
                words.append(record["memcached"])
            words += list(record.get("titles", {}).values())
        words += [why.rstrip(".") for why in words]
        return words
