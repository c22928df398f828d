"""Figures of samples, as docs/field.md and docs/papers/nts_scalability.md define them."""

import math
from fractions import Fraction


def nearest_rank(values, percentile):
    """The smallest value that at least so many percent of the values do not exceed; None of none."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = math.ceil(Fraction(str(percentile)) * len(ordered) / 100)
    return ordered[max(rank, 1) - 1]


def median(values):
    return nearest_rank(values, 50)


def mean(values):
    values = list(values)
    return math.fsum(values) / len(values) if values else None


def median_interval(values):
    """The 95 % interval of a median by the normal approximation of the binomial: two of the values."""
    ordered = sorted(values)
    count = len(ordered)
    reach = 1.96 * math.sqrt(count) / 2.0
    low = max(math.floor(count / 2.0 - reach), 0)
    high = min(math.ceil(count / 2.0 + reach), count - 1)
    return ordered[low], ordered[high]


def mean_interval(values):
    """The 95 % interval of a mean, 1.96 standard errors to each side but not below zero; None of a single value."""
    values = list(values)
    if len(values) < 2:
        return None
    centre = mean(values)
    deviation = math.sqrt(math.fsum((value - centre) ** 2 for value in values) / (len(values) - 1))
    reach = 1.96 * deviation / math.sqrt(len(values))
    return max(centre - reach, 0.0), centre + reach


def bootstrap(values):
    """The median by nearest rank, and the interval that has the medians of 95 % of all resamples; None of none.

    Every resample is counted, so nothing is drawn at random. The median of a resample is at most the k-th of n values
    in order if at least half of its n draws, rounded up, are among the first k: an exact sum of integers over n^n. The
    interval goes from the first value at which that reaches 2.5 % to the first at which it reaches 97.5 %; it is None
    of a single value.
    """
    ordered = sorted(values)
    count = len(ordered)
    if not ordered:
        return None
    needed = (count + 1) // 2

    def share(first):
        ways = sum(
            math.comb(count, hits) * first**hits * (count - first) ** (count - hits)
            for hits in range(needed, count + 1)
        )
        return Fraction(ways, count**count)

    def reaching(least):
        return next(ordered[first - 1] for first in range(1, count + 1) if share(first) >= least)

    interval = None
    if count > 1:
        interval = reaching(Fraction(25, 1000)), reaching(Fraction(975, 1000))
    return ordered[needed - 1], interval


def knee(unloaded, steps, later_share=Fraction(9, 10)):
    """The first of (load, median) whose median exceeds twice the unloaded one, as do at least nine tenths of the later
    ones: its load, how many are later, and how many of these exceed it; None if there is none."""
    ordered = sorted(steps)
    exceeds = [value > 2.0 * unloaded for _, value in ordered]
    for index, (load, _) in enumerate(ordered):
        later = exceeds[index + 1 :]
        if exceeds[index] and Fraction(sum(later)) >= later_share * len(later):
            return load, len(later), sum(later)
    return None


def histogram_rank(pairs, percentile):
    """The percentile of (value, count) pairs by nearest rank."""
    total = sum(count for _, count in pairs)
    rank = max(math.ceil(Fraction(str(percentile)) * total / 100), 1)
    seen = 0
    for value, count in sorted(pairs):
        seen += count
        if seen >= rank:
            return value
    return None


def histogram_median_interval(pairs):
    """The 95 % interval of the median of (value, count) pairs by the normal approximation of the binomial, its ends by
    nearest rank; None of a single value."""
    total = sum(count for _, count in pairs)
    reach = 1.96 / (2.0 * math.sqrt(total))
    ends = [min(max(0.5 + side * reach, 0.0), 1.0) for side in (-1, 1)]

    def at(share):
        rank, seen = max(math.ceil(share * total), 1), 0
        for value, count in sorted(pairs):
            seen += count
            if seen >= rank:
                return value
        return max(pairs)[0]

    return tuple(map(at, ends)) if total > 1 else None


def histogram_fastest(pairs, percentile):
    """The mean of the values up to that percentile's rank."""
    total = sum(count for _, count in pairs)
    rank = max(math.ceil(Fraction(str(percentile)) * total / 100), 1)
    left, parts = rank, []
    for value, count in sorted(pairs):
        taken = min(count, left)
        parts.append(value * taken)
        left -= taken
    return sum(parts) / rank
