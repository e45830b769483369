"""Functions over lists."""

# Comparisons are written out: a call of max() has nothing in it to break.
# ruff: noqa: PERF401, PLR1730


def longest_rise(numbers: list[int]) -> int:
    """Give the length of the longest run in which each number is greater than the one before.

    >>> longest_rise([1, 2, 2, 3, 4])
    3
    >>> longest_rise([5, 4, 3])
    1
    >>> longest_rise([])
    0
    """
    best = 0
    length = 0
    for index in range(len(numbers)):
        if index > 0 and numbers[index] > numbers[index - 1]:
            length += 1
        else:
            length = 1
        if length > best:
            best = length
    return best


def rotate_left(items: list[int], steps: int) -> list[int]:
    """Move the first `steps` items to the end; a negative number moves the other way.

    >>> rotate_left([1, 2, 3, 4], 1)
    [2, 3, 4, 1]
    >>> rotate_left([1, 2, 3], 5)
    [3, 1, 2]
    >>> rotate_left([], 2)
    []
    """
    if len(items) == 0:
        return []
    steps = steps % len(items)
    rotated = []
    for index in range(len(items)):
        rotated.append(items[(index + steps) % len(items)])
    return rotated


def merge_sorted(left: list[int], right: list[int]) -> list[int]:
    """Merge two ascending lists into one.

    >>> merge_sorted([1, 4], [2, 3, 5])
    [1, 2, 3, 4, 5]
    >>> merge_sorted([], [7])
    [7]
    >>> merge_sorted([2, 2], [2])
    [2, 2, 2]
    """
    merged = []
    i = 0
    j = 0
    while i < len(left) or j < len(right):
        if j >= len(right) or (i < len(left) and left[i] <= right[j]):
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged


def chunks(items: list[int], size: int) -> list[list[int]]:
    """Cut a list into pieces of `size` items; the last may be shorter.

    >>> chunks([1, 2, 3, 4, 5], 2)
    [[1, 2], [3, 4], [5]]
    >>> chunks([1, 2], 5)
    [[1, 2]]
    >>> chunks([1, 2], 0)
    []
    """
    pieces: list[list[int]] = []
    if size <= 0:
        return pieces
    start = 0
    while start < len(items):
        pieces.append(items[start : start + size])
        start += size
    return pieces


def find_sorted(items: list[int], wanted: int) -> int:
    """Give the position of `wanted` in an ascending list without repeats, or -1.

    >>> find_sorted([1, 3, 5, 7], 5)
    2
    >>> find_sorted([1, 3, 5, 7], 4)
    -1
    >>> find_sorted([9], 9)
    0
    """
    low = 0
    high = len(items) - 1
    while low <= high:
        middle = (low + high) // 2
        if items[middle] == wanted:
            return middle
        if items[middle] < wanted:
            low = middle + 1
        else:
            high = middle - 1
    return -1


def second_largest(numbers: list[int]) -> int | None:
    """Give the second largest of the different numbers, or None.

    >>> second_largest([3, 1, 2])
    2
    >>> second_largest([4, 4])
    >>> second_largest([1, 5, 5])
    1
    """
    first: int | None = None
    second: int | None = None
    for number in numbers:
        if first is None or number > first:
            second = first
            first = number
        elif number != first and (second is None or number > second):
            second = number
    return second


def running_maximum(numbers: list[int], window: int) -> list[int]:
    """Give for each place the greatest of the last `window` numbers up to it.

    >>> running_maximum([3, 1, 2, 5], 2)
    [3, 3, 2, 5]
    >>> running_maximum([4, 2, 1], 3)
    [4, 4, 4]
    >>> running_maximum([], 1)
    []
    """
    result = []
    for end in range(len(numbers)):
        start = end - window + 1
        if start < 0:
            start = 0
        best = numbers[end]
        for index in range(start, end):
            if numbers[index] > best:
                best = numbers[index]
        result.append(best)
    return result


def best_sum(numbers: list[int]) -> int:
    """Give the greatest sum of neighbouring numbers; 0 when no sum is positive.

    >>> best_sum([-2, 3, -1, 4, -5])
    6
    >>> best_sum([-1, -2])
    0
    >>> best_sum([5])
    5
    """
    best = 0
    current = 0
    for number in numbers:
        current = current + number
        if current < 0:
            current = 0
        if current > best:
            best = current
    return best


def squeeze(items: list[int], limit: int) -> list[int]:
    """Keep at most `limit` of equal neighbours.

    >>> squeeze([1, 1, 1, 2, 2], 2)
    [1, 1, 2, 2]
    >>> squeeze([1, 1, 2, 1], 1)
    [1, 2, 1]
    >>> squeeze([], 3)
    []
    """
    kept = []
    repeats = 0
    for index in range(len(items)):
        if index > 0 and items[index] == items[index - 1]:
            repeats += 1
        else:
            repeats = 1
        if repeats <= limit:
            kept.append(items[index])
    return kept


def insertion_point(items: list[int], value: int) -> int:
    """Give the first position in an ascending list whose item is not less than `value`.

    >>> insertion_point([1, 3, 5], 3)
    1
    >>> insertion_point([1, 3, 5], 6)
    3
    >>> insertion_point([2, 2, 2], 2)
    0
    """
    low = 0
    high = len(items)
    while low < high:
        middle = low + (high - low) // 2
        if items[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


def pairs_with_sum(numbers: list[int], total: int) -> int:
    """Count the pairs of places whose numbers add up to `total`.

    >>> pairs_with_sum([1, 2, 3, 4], 5)
    2
    >>> pairs_with_sum([2, 2, 2], 4)
    3
    >>> pairs_with_sum([1], 2)
    0
    """
    count = 0
    for i in range(len(numbers)):
        for j in range(i + 1, len(numbers)):
            if numbers[i] + numbers[j] == total:
                count += 1
    return count


def peaks(numbers: list[int]) -> list[int]:
    """Give the positions whose number is greater than each neighbour it has.

    >>> peaks([1, 3, 2, 4])
    [1, 3]
    >>> peaks([5, 5])
    []
    >>> peaks([7])
    [0]
    """
    found = []
    last = len(numbers) - 1
    for index in range(len(numbers)):
        above_left = index == 0 or numbers[index] > numbers[index - 1]
        above_right = index == last or numbers[index] > numbers[index + 1]
        if above_left and above_right:
            found.append(index)
    return found
