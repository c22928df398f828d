"""What pictures draw: rules for what a mark says that is pointed at, by its place, and rows of what a link beside a
picture gives."""

import re
from dataclasses import dataclass

from check import Rule
from printed import NUMBER, plain, tokens

_AT = re.compile(r" at (" + NUMBER + r")(?:, [^\d]*)?$")


def _is(text, number):
    """Whether a text is this number alone."""
    found = tokens(text)
    return len(found) == 1 and found[0].agrees(plain(number))


def point(text, begin, at, values):
    """The mark of a point, as "ours, median: 2.10 ms (2.05 ms to 2.20 ms) at 500": a value, perhaps with its interval.
    No rule for another mark."""
    found = _AT.search(text)
    if not text.startswith(begin) or not found or not _is(found.group(1), at):
        return []
    words = "# (# to #)" if len(values) == 3 else "#"
    return [Rule(f"{begin}{words} at #", *values, plain(at))]


def at_first(text, begin, at, after, values):
    """What stands at a rate, as "one worker, 24,000 a second: median .., 95th percentile ..". `after`: the words after
    the rate, with "#" for each value."""
    if not text.startswith(begin):
        return []
    found = re.match(NUMBER, text[len(begin):])
    if not found or not _is(found.group().rstrip(","), at):
        return []
    return [Rule(f"{begin}#{after}", plain(at), *values)]


@dataclass(frozen=True)
class Drawn:
    """A number that is drawn, and how far from it the one that is given may be."""

    number: float
    slack: float


def rate(number):
    return Drawn(float(number), 0.51e-4)


def share(number):
    return Drawn(float(number), 0.51e-6)


def whole(number):
    """One that is given without decimals; means under load are stored with one before that."""
    return Drawn(float(number), 0.56)


def exactly(number):
    """One that is given as it is stored: means under load to tenths of a nanosecond."""
    return Drawn(float(number), 0.051)


def line_row(line, at, value, ends=None, counts=True):
    """A row of a picture of lines."""
    low, high = map(exactly, ends) if ends else (None, None)
    return [line, rate(at), exactly(value), low, high, "yes" if counts else "no"]


def curve_rows(series, nearest_rank):
    """Rows of a picture of distributions, by percentile. `series`: the values of each, none of them empty."""
    return [[whole(percentile), *[whole(nearest_rank(values, percentile)) for values in series]]
            for percentile in range(101)]
