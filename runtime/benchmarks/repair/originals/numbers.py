"""Functions over whole numbers."""

# Comparisons are written out: a call of max() has nothing in it to break.
# ruff: noqa: PLR1730, SIM108


def common_divisor(a: int, b: int) -> int:
    """Give the greatest common divisor, never negative.

    >>> common_divisor(12, 18)
    6
    >>> common_divisor(0, 5)
    5
    >>> common_divisor(7, 3)
    1
    """
    if a < 0:
        a = -a
    if b < 0:
        b = -b
    while b != 0:
        rest = a % b
        a = b
        b = rest
    return a


def is_prime(number: int) -> bool:
    """Tell whether a number is prime.

    >>> is_prime(7)
    True
    >>> is_prime(9)
    False
    >>> is_prime(1)
    False
    """
    if number < 2:
        return False
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 1
    return True


def digital_root(number: int) -> int:
    """Add up the decimal digits again and again until one digit is left.

    >>> digital_root(38)
    2
    >>> digital_root(0)
    0
    >>> digital_root(999)
    9
    """
    while number >= 10:
        total = 0
        while number > 0:
            total += number % 10
            number = number // 10
        number = total
    return number


def collatz_steps(number: int) -> int:
    """Count the steps from `number` to 1: halve when even, else three times plus one.

    >>> collatz_steps(6)
    8
    >>> collatz_steps(1)
    0
    >>> collatz_steps(4)
    2
    """
    if number < 1:
        return -1
    steps = 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number + 1
        steps += 1
    return steps


def fibonacci(index: int) -> int:
    """Give the Fibonacci number with that index: 0, 1, 1, 2, 3, ...; also for negative indexes.

    >>> fibonacci(7)
    13
    >>> fibonacci(0)
    0
    >>> fibonacci(-4)
    -3
    """
    size = index if index >= 0 else -index
    before = 0
    current = 1
    for _ in range(size):
        following = before + current
        before = current
        current = following
    if index < 0 and size % 2 == 0:
        return -before
    return before


def to_base(number: int, base: int) -> str:
    """Write a number with the digits 0-9 and a-f in a base from 2 to 16.

    >>> to_base(10, 2)
    '1010'
    >>> to_base(255, 16)
    'ff'
    >>> to_base(-5, 3)
    '-12'
    """
    if base < 2 or base > 16:
        raise ValueError("base")
    if number == 0:
        return "0"
    rest = number if number > 0 else -number
    digits = ""
    while rest > 0:
        digits = "0123456789abcdef"[rest % base] + digits
        rest = rest // base
    return digits if number > 0 else "-" + digits


def prime_factors(number: int) -> list[int]:
    """Give the prime factors in ascending order, repeated as often as they divide.

    >>> prime_factors(12)
    [2, 2, 3]
    >>> prime_factors(13)
    [13]
    >>> prime_factors(1)
    []
    """
    factors = []
    divisor = 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            factors.append(divisor)
            number = number // divisor
        else:
            divisor += 1
    if number > 1:
        factors.append(number)
    return factors


def whole_root(number: int) -> int:
    """Give the greatest whole number whose square is not above `number`.

    >>> whole_root(10)
    3
    >>> whole_root(16)
    4
    >>> whole_root(0)
    0
    """
    if number < 0:
        raise ValueError("negative")
    low = 0
    high = number + 1
    while high - low > 1:
        middle = (low + high) // 2
        if middle * middle <= number:
            low = middle
        else:
            high = middle
    return low


def turn(heading: int, angle: int) -> int:
    """Turn a heading by an angle in degrees; give it above -180, up to and with 180.

    >>> turn(90, 45)
    135
    >>> turn(170, 20)
    -170
    >>> turn(0, 180)
    180
    """
    result = (heading + angle) % 360
    if result > 180:
        result = result - 360
    return result


def kind_of_number(number: int) -> str:
    """Compare a number with the sum of its smaller divisors: deficient, perfect or abundant.

    >>> kind_of_number(6)
    'perfect'
    >>> kind_of_number(12)
    'abundant'
    >>> kind_of_number(8)
    'deficient'
    """
    total = 0
    for divisor in range(1, number // 2 + 1):
        if number % divisor == 0:
            total += divisor
    if total == number and number > 0:
        return "perfect"
    return "abundant" if total > number else "deficient"


def choose(n: int, k: int) -> int:
    """Count the ways to take k things out of n.

    >>> choose(5, 2)
    10
    >>> choose(4, 0)
    1
    >>> choose(3, 5)
    0
    """
    if k < 0 or k > n:
        return 0
    if k > n - k:
        k = n - k
    ways = 1
    for step in range(k):
        ways = ways * (n - step) // (step + 1)
    return ways


def round_to(number: int, unit: int) -> int:
    """Round to the nearest multiple of `unit`, halves to the even multiple.

    >>> round_to(14, 10)
    10
    >>> round_to(15, 10)
    20
    >>> round_to(25, 10)
    20
    """
    multiple = number // unit
    rest = number % unit
    if rest * 2 > unit or (rest * 2 == unit and multiple % 2 == 1):
        multiple += 1
    return multiple * unit
