"""Functions over dates and times of day, with the Gregorian rules written out."""

# Comparisons are written out: a call of max() has nothing in it to break.
# ruff: noqa: FURB136


def is_leap_year(year: int) -> bool:
    """Tell whether a year has a 29 February.

    >>> is_leap_year(2024)
    True
    >>> is_leap_year(1900)
    False
    >>> is_leap_year(2023)
    False
    """
    if year % 400 == 0:
        return True
    return year % 4 == 0 and year % 100 != 0


def days_in_month(year: int, month: int) -> int:
    """Give the number of days of a month, 0 when there is no such month.

    >>> days_in_month(2024, 2)
    29
    >>> days_in_month(2023, 4)
    30
    >>> days_in_month(2023, 13)
    0
    """
    if month < 1 or month > 12:
        return 0
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        return 29 if leap else 28
    if month in (4, 6, 9, 11):
        return 30
    return 31


def day_of_year(year: int, month: int, day: int) -> int:
    """Give the number of a day within its year, from 1.

    >>> day_of_year(2023, 1, 1)
    1
    >>> day_of_year(2024, 3, 1)
    61
    >>> day_of_year(2023, 12, 31)
    365
    """
    lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    total = day
    for index in range(month - 1):
        total += lengths[index]
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if leap and month > 2:
        total += 1
    return total


def weekday(year: int, month: int, day: int) -> int:
    """Give the day of the week, 0 for Monday to 6 for Sunday.

    >>> weekday(2024, 1, 1)
    0
    >>> weekday(2000, 2, 29)
    1
    >>> weekday(1999, 12, 31)
    4
    """
    if month < 3:
        month += 12
        year -= 1
    century = year // 100
    rest = year % 100
    shifted = day + 13 * (month + 1) // 5 + rest + rest // 4 + century // 4 + 5 * century
    return (shifted + 5) % 7


def add_months(year: int, month: int, count: int) -> tuple[int, int]:
    """Move a month by `count` months forward, or back when it is negative.

    >>> add_months(2023, 11, 3)
    (2024, 2)
    >>> add_months(2023, 1, -1)
    (2022, 12)
    >>> add_months(2023, 12, 0)
    (2023, 12)
    """
    months = year * 12 + (month - 1) + count
    return (months // 12, months % 12 + 1)


def minutes_between(start: str, end: str) -> int:
    """Give the minutes from one time of day `HH:MM` to the next one, past midnight if need be.

    >>> minutes_between('09:30', '10:15')
    45
    >>> minutes_between('23:50', '00:10')
    20
    >>> minutes_between('08:00', '08:00')
    0
    """
    first = int(start[:2]) * 60 + int(start[3:])
    last = int(end[:2]) * 60 + int(end[3:])
    if last < first:
        last += 24 * 60
    return last - first


def duration_text(seconds: int) -> str:
    """Write a duration in hours, minutes and seconds, without leading parts that are zero.

    >>> duration_text(3725)
    '1h 02m 05s'
    >>> duration_text(65)
    '1m 05s'
    >>> duration_text(9)
    '9s'
    """
    hours = seconds // 3600
    minutes = seconds % 3600 // 60
    rest = seconds % 60
    if hours > 0:
        return f"{hours}h {minutes:02d}m {rest:02d}s"
    if minutes > 0:
        return f"{minutes}m {rest:02d}s"
    return f"{rest}s"


def age_on(born: tuple[int, int, int], today: tuple[int, int, int]) -> int:
    """Give the age in full years on a day; dates are (year, month, day), -1 before birth.

    >>> age_on((2000, 5, 10), (2020, 5, 10))
    20
    >>> age_on((2000, 5, 10), (2020, 5, 9))
    19
    >>> age_on((2000, 5, 10), (1999, 1, 1))
    -1
    """
    if today < born:
        return -1
    years = today[0] - born[0]
    if today[1] < born[1] or (today[1] == born[1] and today[2] < born[2]):
        years -= 1
    return years


def is_valid_date(year: int, month: int, day: int) -> bool:
    """Tell whether a date exists; years begin with 1.

    >>> is_valid_date(2023, 2, 29)
    False
    >>> is_valid_date(2024, 2, 29)
    True
    >>> is_valid_date(2023, 4, 31)
    False
    """
    if year < 1 or month < 1 or month > 12 or day < 1:
        return False
    last = 31
    if month in (4, 6, 9, 11):
        last = 30
    if month == 2:
        last = 28
        if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
            last += 1
    return day <= last


def twelve_hour_clock(hour: int, minute: int) -> str:
    """Write a time of day with am and pm.

    >>> twelve_hour_clock(0, 5)
    '12:05 am'
    >>> twelve_hour_clock(13, 30)
    '1:30 pm'
    >>> twelve_hour_clock(9, 0)
    '9:00 am'
    """
    half = "am" if hour < 12 else "pm"
    shown = hour % 12
    if shown == 0:
        shown = 12
    return f"{shown}:{minute:02d} {half}"


def working_days(start: int, count: int) -> int:
    """Count the working days among `count` days in a row; weekday 0 is Monday, 5 and 6 are free.

    >>> working_days(0, 7)
    5
    >>> working_days(4, 3)
    1
    >>> working_days(2, 0)
    0
    """
    total = count // 7 * 5
    for offset in range(count % 7):
        if (start + offset) % 7 < 5:
            total += 1
    return total


def overlap_days(first: tuple[int, int], second: tuple[int, int]) -> int:
    """Count the days that two spans share; a span is (first day, last day), both included.

    >>> overlap_days((1, 10), (5, 12))
    6
    >>> overlap_days((1, 3), (4, 6))
    0
    >>> overlap_days((2, 8), (3, 3))
    1
    """
    begin = first[0] if first[0] > second[0] else second[0]
    end = first[1] if first[1] < second[1] else second[1]
    if end < begin:
        return 0
    return end - begin + 1
