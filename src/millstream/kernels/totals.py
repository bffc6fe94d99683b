"""Accumulators as rows of words: each kernel folds a batch, or other accumulators, into the rows of its groups.

Integers are exact: a total is a number of 192 bits (three words, two's complement), so that 2^64 values of 128 bits
fit. Floating-point totals are compensated (Neumaier), variances are Welford's, merged as Chan et al. do.
"""

from __future__ import annotations

import numpy as np

from millstream.kernels.compiled import Float64s, Int64s, compiled

_ZERO = np.uint64(0)
_ONE = np.uint64(1)


@compiled
def add_ones(words: Int64s, groups: Int64s) -> None:
    for i in range(len(groups)):
        words[groups[i], 0] += 1


@compiled
def add_counts(words: Int64s, groups: Int64s, others: Int64s) -> None:
    for i in range(len(groups)):
        words[groups[i], 0] += others[i, 0]


@compiled
def _carry(total: np.int64, added: np.int64) -> np.int64:
    """1 when adding the two as unsigned words has wrapped round to `total`."""
    return np.int64(1) if np.uint64(total) < np.uint64(added) else np.int64(0)


@compiled
def _add_wide(words: Int64s, group: int, low: np.int64, middle: np.int64, high: np.int64) -> None:
    total = words[group, 1] + low
    carry = _carry(total, low)
    words[group, 1] = total
    total = words[group, 2] + middle
    next_carry = _carry(total, middle)
    total += carry
    next_carry += _carry(total, carry)
    words[group, 2] = total
    words[group, 3] += high + next_carry


@compiled
def add_integers(words: Int64s, groups: Int64s, values: Int64s) -> None:
    """Words: count, and the total from its lowest word up."""
    for i in range(len(groups)):
        value = values[i]
        sign = value >> 63
        words[groups[i], 0] += 1
        _add_wide(words, groups[i], value, sign, sign)


@compiled
def add_decimals(words: Int64s, groups: Int64s, values: Int64s) -> None:
    for i in range(len(groups)):
        words[groups[i], 0] += 1
        _add_wide(words, groups[i], values[i, 0], values[i, 1], values[i, 1] >> 63)


@compiled
def add_totals(words: Int64s, groups: Int64s, others: Int64s) -> None:
    for i in range(len(groups)):
        words[groups[i], 0] += others[i, 0]
        _add_wide(words, groups[i], others[i, 1], others[i, 2], others[i, 3])


@compiled
def _add_float(reals: Float64s, group: int, value: float) -> None:
    total = reals[group, 1]
    after = total + value
    if abs(total) >= abs(value):
        reals[group, 2] += (total - after) + value
    else:
        reals[group, 2] += (value - after) + total
    reals[group, 1] = after


@compiled
def add_floats(reals: Float64s, groups: Int64s, values: Float64s) -> None:
    """Words: count, total, compensation. Where the total is not finite the compensation means nothing."""
    for i in range(len(groups)):
        reals[groups[i], 0] += 1.0
        _add_float(reals, groups[i], values[i])


@compiled
def add_float_totals(reals: Float64s, groups: Int64s, others: Float64s) -> None:
    for i in range(len(groups)):
        reals[groups[i], 0] += others[i, 0]
        _add_float(reals, groups[i], others[i, 1])
        reals[groups[i], 2] += others[i, 2]


@compiled
def best_integers(words: Int64s, groups: Int64s, values: Int64s, greatest: bool) -> None:
    """Words: whether there is a value, the value."""
    for i in range(len(groups)):
        group, value = groups[i], values[i]
        if words[group, 0] == 0:
            words[group, 0] = 1
            words[group, 1] = value
        elif (value > words[group, 1]) if greatest else (value < words[group, 1]):
            words[group, 1] = value


@compiled
def best_decimals(words: Int64s, groups: Int64s, values: Int64s, greatest: bool) -> None:
    """Words: whether there is a value, its lower and its upper word."""
    for i in range(len(groups)):
        group, low, high = groups[i], values[i, 0], values[i, 1]
        less = high < words[group, 2] or (high == words[group, 2] and np.uint64(low) < np.uint64(words[group, 1]))
        same = high == words[group, 2] and low == words[group, 1]
        if words[group, 0] == 0 or (not less and not same if greatest else less):
            words[group, 0] = 1
            words[group, 1] = low
            words[group, 2] = high


@compiled
def best_floats(reals: Float64s, groups: Int64s, values: Float64s, greatest: bool) -> None:
    """Words: whether there is a value, the value. NaN is greater than every number."""
    for i in range(len(groups)):
        group, value = groups[i], values[i]
        current = reals[group, 1]
        if reals[group, 0] == 0.0:
            better = True
        elif greatest:
            better = value > current or value != value
        else:
            better = value < current or current != current
        if better:
            reals[group, 0] = 1.0
            reals[group, 1] = value


@compiled
def add_moments(reals: Float64s, groups: Int64s, values: Float64s) -> None:
    """Words: count, mean, sum of squared distances from the mean."""
    for i in range(len(groups)):
        group, value = groups[i], values[i]
        count = reals[group, 0] + 1.0
        distance = value - reals[group, 1]
        mean = reals[group, 1] + distance / count
        reals[group, 0] = count
        reals[group, 1] = mean
        reals[group, 2] += distance * (value - mean)


@compiled
def merge_moments(reals: Float64s, groups: Int64s, others: Float64s) -> None:
    for i in range(len(groups)):
        group, more = groups[i], others[i, 0]
        if more > 0.0:
            count = reals[group, 0] + more
            distance = others[i, 1] - reals[group, 1]
            reals[group, 2] += others[i, 2] + distance * distance * (reals[group, 0] * more / count)
            reals[group, 1] += distance * (more / count)
            reals[group, 0] = count


@compiled
def floats_of(words: Int64s) -> Float64s:
    """Totals of 192 bits as the nearest floats, give or take a rounding."""
    out = np.empty(len(words), dtype=np.float64)
    for i in range(len(words)):
        low, middle, high = words[i, 1], words[i, 2], words[i, 3]
        if high == middle and middle == low >> 63:
            out[i] = np.float64(low)
            continue
        negative = high < 0
        a, b, c = np.uint64(low), np.uint64(middle), np.uint64(high)
        if negative:
            a, b, c = ~a + _ONE, ~b, ~c
            if a == _ZERO:
                b += _ONE
                if b == _ZERO:
                    c += _ONE
        size = (np.float64(c) * 18446744073709551616.0 + np.float64(b)) * 18446744073709551616.0 + np.float64(a)
        out[i] = -size if negative else size
    return out


@compiled
def fit(words: Int64s, low: np.uint64, high: np.uint64) -> bool:
    """Whether all totals are smaller in size than the bound of 128 bits with these words."""
    for i in range(len(words)):
        if words[i, 3] != words[i, 2] >> 63:
            return False
        a, b = np.uint64(words[i, 1]), np.uint64(words[i, 2])
        if words[i, 2] < 0:
            a, b = ~a + _ONE, ~b
            if a == _ZERO:
                b += _ONE
        if b > high or (b == high and a >= low):
            return False
    return True


@compiled
def halves_up(words: Int64s, factor: int, limit: int, out: Int64s) -> int:
    """`total * factor / count`, half away from zero, where |total| <= limit; returns the rows that do not fit as a count.

    Rows that do not fit get a zero count in `out` column 2; others get the two words of the quotient.
    """
    misfits = 0
    for i in range(len(words)):
        low, count = words[i, 1], words[i, 0]
        fits = words[i, 3] == words[i, 2] and words[i, 2] == low >> 63 and -limit <= low and low <= limit and count <= limit
        out[i, 2] = 1 if fits else 0
        if not fits:
            misfits += 1
        elif count > 0:
            size = abs(low) * factor
            quotient = size // count
            rest = size - quotient * count
            if rest >= count - rest:
                quotient += 1
            out[i, 0] = -quotient if low < 0 else quotient
            out[i, 1] = out[i, 0] >> 63
        else:
            out[i, 0] = 0
            out[i, 1] = 0
    return misfits
