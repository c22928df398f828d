"""What marks of pictures say that are pointed at: rules by the place of a mark."""

import re

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
