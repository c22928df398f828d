"""Numbers as a report prints them, and whether one stands for a value.

A printed number agrees with a value if the value rounds to it: if they differ by at most half a unit of the last digit
that is printed. Times are first rounded to whole nanoseconds, and means under load before that to tenths of one, so
that half and a twentieth of a nanosecond are allowed beside that.
"""

import re
from dataclasses import dataclass, replace

TIME_SLACK_NS = 0.55

# Nanoseconds, and octets, of each unit.
UNITS = {
    "ns": ("time", 1.0),
    "us": ("time", 1e3),
    "ms": ("time", 1e6),
    "s": ("time", 1e9),
    "%": ("percent", 1.0),
    "kiB": ("octets", 1024.0),
    "MiB": ("octets", 1024.0**2),
    "GiB": ("octets", 1024.0**3),
}

# A number, perhaps with a sign, and the unit after it. Digits that belong to a word (AES-128, p95, 95th) are none.
NUMBER = r"(?:[+<-]|\+-)?\d[\d,]*(?:\.\d+)?(?: (?:ns|us|ms|s|%|kiB|MiB|GiB)(?![\w/]))?"
_NUMBER = re.compile(r"(?<![\w.])(?<!\w-)(" + NUMBER + r")(?!\w|-[A-Za-z]|\.\d)")
_PARTS = re.compile(r"^([+<-]*)([\d,]*\d)(\.\d+)?,*(?: (\S+))?$")
# Versions, such as 0.1.0: the folder has to have them as they are.
_VERSION = re.compile(r"(?<![\w.])\d+(?:\.\d+){2,}(?:[\w-]|\.(?=\w))*")


@dataclass(frozen=True)
class Value:
    """What should be printed: a number, and what it is of: "", "time" (in ns), "percent", "octets".

    `bare`: its unit stands beside another number, as in "62 % (61 to 63)". `exact`: it is a name, and has no digits
    beyond those that are printed.
    """

    number: float
    dimension: str = ""
    bare: bool = False
    exact: bool = False

    def shown(self):
        """It for a message, with more digits than a report has."""
        if self.dimension == "time":
            return f"{self.number:,.1f} ns"
        unit = {"percent": " %", "octets": " octets"}.get(self.dimension, "")
        return f"{self.number:,.6g}{unit}"


def plain(number):
    return Value(float(number))


def ns(number):
    return Value(float(number), "time")


def us(number):
    return Value(float(number) * 1e3, "time")


def seconds(number):
    return Value(float(number) * 1e9, "time")


def percent(ratio):
    """A ratio that is printed in percent."""
    return Value(float(ratio) * 100.0, "percent")


def octets(number):
    return Value(float(number), "octets")


def bare(value):
    return replace(value, bare=True)


def exact(value):
    return replace(value, exact=True)


@dataclass(frozen=True)
class Token:
    """A number in a text, from `start` to `end`, or a version, which stands for no value."""

    text: str
    start: int
    end: int
    is_version: bool = False

    def _parts(self):
        sign, whole, fraction, unit = _PARTS.match(self.text).groups()
        number = float(whole.replace(",", "") + (fraction or ""))
        half = 0.5 * 10.0 ** -(len(fraction) - 1 if fraction else 0)
        return sign, number, half, unit

    def value(self):
        """What it stands for, for another place that has to say the same."""
        sign, number, _, unit = self._parts()
        dimension, factor = UNITS[unit] if unit else ("", 1.0)
        if "<" in sign:
            return Value(number * factor / 4.0, dimension)
        return Value(-number * factor if "-" in sign else number * factor, dimension)

    def agrees(self, value):
        """Whether `value`, or each of several, rounds to it."""
        if isinstance(value, (tuple, list)):
            return all(self.agrees(one) for one in value)
        if self.is_version:
            return False
        sign, number, half, unit = self._parts()
        if value.exact:
            half = 0.0
        dimension, factor = UNITS[unit] if unit else ("", 1.0)
        if not unit and value.bare:
            # Only percent stands without its sign; times and sizes keep their units.
            dimension = value.dimension
        if dimension != value.dimension:
            return False
        if "<" in sign:
            # "<0.01": above zero, and it would be rounded to zero.
            return 0.0 < value.number < number * factor / 2.0 + 1e-12
        if "-" in sign:
            number = -number
        slack = TIME_SLACK_NS if dimension == "time" and not value.exact else 0.0
        return abs(number * factor - value.number) <= half * factor * (1.0 + 1e-9) + slack + 1e-9 * abs(value.number)


def normalised(text):
    """A text with plain blanks, signs and units, as both reports have it then."""
    for from_, to in (("\u00a0", " "), ("\u2212", "-"), ("\u00b5", "u"), ("\u2019", "'"), ("\u00b1", "+-")):
        text = text.replace(from_, to)
    return re.sub(r"\s+", " ", text).strip()


def tokens(text):
    """The numbers and versions of a text, but those that are parts of words."""
    found = [Token(match.group(), *match.span(), True) for match in _VERSION.finditer(text)]
    versions = [(token.start, token.end) for token in found]
    for match in _NUMBER.finditer(text):
        start, end = match.span(1)
        if any(start < stop and end > first for first, stop in versions):
            continue
        # A comma after a number ends a clause.
        number, _, unit = match.group(1).partition(" ")
        if number.endswith(","):
            number, unit = number.rstrip(","), ""
        whole = f"{number} {unit}" if unit else number
        found.append(Token(whole, start, start + len(whole)))
    return sorted(found, key=lambda token: token.start)
