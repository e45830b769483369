"""Functions that read small languages."""

# Comparisons are written out: a call of max() has nothing in it to break.
# ruff: noqa: FURB136, PERF402


def parse_settings(text: str) -> dict[str, str]:
    """Read `name=value` parts between semicolons; parts without a name or a sign are skipped.

    >>> parse_settings('a=1;b=2')
    {'a': '1', 'b': '2'}
    >>> parse_settings('x;=3; c = d ')
    {'c': 'd'}
    >>> parse_settings('')
    {}
    """
    settings = {}
    for part in text.split(";"):
        at = part.find("=")
        if at < 0:
            continue
        name = part[:at].strip()
        if name != "":
            settings[name] = part[at + 1 :].strip()
    return settings


def parse_roman(text: str) -> int:
    """Read a Roman number.

    >>> parse_roman('XIV')
    14
    >>> parse_roman('MMXXIII')
    2023
    >>> parse_roman('VI')
    6
    """
    values = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
    total = 0
    for index in range(len(text)):
        value = values[text[index]]
        if index + 1 < len(text) and value < values[text[index + 1]]:
            total -= value
        else:
            total += value
    return total


def parse_duration(text: str) -> int:
    """Read a duration such as `1h30m` in seconds; -1 when it cannot be read.

    >>> parse_duration('1h30m')
    5400
    >>> parse_duration('45s')
    45
    >>> parse_duration('12')
    -1
    """
    units = {"h": 3600, "m": 60, "s": 1}
    total = 0
    number = ""
    for char in text:
        if char.isdigit():
            number += char
        elif char in units and number != "":
            total += int(number) * units[char]
            number = ""
        else:
            return -1
    if number != "" or text == "":
        return -1
    return total


def split_quoted(line: str) -> list[str]:
    """Split a line at commas outside double quotes; the quotes are dropped.

    >>> split_quoted('a,"b,c",d')
    ['a', 'b,c', 'd']
    >>> split_quoted('x,')
    ['x', '']
    >>> split_quoted('')
    ['']
    """
    fields = []
    field = ""
    quoted = False
    for char in line:
        if char == '"':
            quoted = not quoted
        elif char == "," and not quoted:
            fields.append(field)
            field = ""
        else:
            field += char
    fields.append(field)
    return fields


def compare_versions(left: str, right: str) -> int:
    """Compare dotted version numbers: -1, 0 or 1; missing parts count as 0.

    >>> compare_versions('1.10', '1.9')
    1
    >>> compare_versions('2.0', '2')
    0
    >>> compare_versions('1.2', '1.2.1')
    -1
    """
    a = [int(part) for part in left.split(".")]
    b = [int(part) for part in right.split(".")]
    longer = len(a) if len(a) > len(b) else len(b)
    for index in range(longer):
        x = a[index] if index < len(a) else 0
        y = b[index] if index < len(b) else 0
        if x != y:
            return 1 if x > y else -1
    return 0


def parse_ranges(text: str) -> list[int]:
    """Read page numbers such as `1-3,5`; a range that runs backwards is empty.

    >>> parse_ranges('1-3,5')
    [1, 2, 3, 5]
    >>> parse_ranges('7')
    [7]
    >>> parse_ranges('4-4,9-8')
    [4]
    """
    pages = []
    for part in text.split(","):
        dash = part.find("-")
        if dash == -1:
            pages.append(int(part))
        else:
            first = int(part[:dash])
            last = int(part[dash + 1 :])
            for page in range(first, last + 1):
                pages.append(page)
    return pages


def evaluate_postfix(text: str) -> int:
    """Compute whole-number arithmetic in postfix notation.

    >>> evaluate_postfix('3 4 + 2 *')
    14
    >>> evaluate_postfix('10 3 -')
    7
    >>> evaluate_postfix('8')
    8
    """
    stack: list[int] = []
    for word in text.split():
        if word in ("+", "-", "*") and len(stack) >= 2:
            right = stack.pop()
            left = stack.pop()
            if word == "+":
                stack.append(left + right)
            elif word == "-":
                stack.append(left - right)
            else:
                stack.append(left * right)
        else:
            stack.append(int(word))
    if len(stack) != 1:
        raise ValueError("operands")
    return stack[0]


def parse_integer(text: str) -> int | None:
    """Read a whole number with an optional sign and single underscores between digits, or None.

    >>> parse_integer('-1_000')
    -1000
    >>> parse_integer('4__2')
    >>> parse_integer('+7')
    7
    """
    start = 1 if text[:1] in ("-", "+") else 0
    if start < len(text) and text[0] == "_":
        return None
    value = 0
    last = "_"
    for char in text[start:]:
        if char == "_" and last != "_":
            last = char
        elif "0" <= char <= "9":
            value = value * 10 + ord(char) - 48
            last = char
        else:
            return None
    if last == "_":
        return None
    return -value if text[0] == "-" else value


def expand_runs(text: str) -> str:
    """Write out counted characters; a character without a number stands once.

    >>> expand_runs('3ab2c')
    'aaabcc'
    >>> expand_runs('10x')
    'xxxxxxxxxx'
    >>> expand_runs('0ab')
    'b'
    """
    result = ""
    count = 0
    counted = False
    for char in text:
        if "0" <= char <= "9":
            count = count * 10 + int(char)
            counted = True
        else:
            result += char * (count if counted else 1)
            count = 0
            counted = False
    return result


def parse_size(text: str) -> int:
    """Read a size in bytes with an optional unit: k, M, G for powers of 1000, Ki, Mi, Gi of 1024.

    >>> parse_size('10k')
    10000
    >>> parse_size('2Mi')
    2097152
    >>> parse_size('512')
    512
    """
    base = 1000
    if text.endswith("i"):
        base = 1024
        text = text[:-1]
    power = 0
    if text[-1:] in ("k", "K"):
        power = 1
    elif text[-1:] == "M":
        power = 2
    elif text[-1:] == "G":
        power = 3
    if power > 0:
        text = text[:-1]
    elif base != 1000:
        raise ValueError("unit")
    size = int(text)
    for _ in range(power):
        size = size * base
    return size


def parse_colour(text: str) -> tuple[int, int, int] | None:
    """Read a colour such as `#ff8000` or `#f80`, or None.

    >>> parse_colour('#ff8000')
    (255, 128, 0)
    >>> parse_colour('#f80')
    (255, 136, 0)
    >>> parse_colour('ff8000')
    """
    if text[:1] != "#" or (len(text) != 4 and len(text) != 7):
        return None
    numbers = []
    for char in text[1:].lower():
        at = "0123456789abcdef".find(char)
        if at < 0:
            return None
        numbers.append(at)
    if len(numbers) == 3:
        return (numbers[0] * 17, numbers[1] * 17, numbers[2] * 17)
    return (
        numbers[0] * 16 + numbers[1],
        numbers[2] * 16 + numbers[3],
        numbers[4] * 16 + numbers[5],
    )


def tokens(text: str) -> list[str]:
    """Cut an expression into names, numbers and single signs; spaces only separate.

    >>> tokens('x1 + 42*(y)')
    ['x1', '+', '42', '*', '(', 'y', ')']
    >>> tokens('a b')
    ['a', 'b']
    >>> tokens('7up')
    ['7', 'up']
    """
    found = []
    index = 0
    while index < len(text):
        end = index + 1
        if text[index].isdigit():
            while end < len(text) and text[end].isdigit():
                end += 1
        elif text[index].isalpha():
            while end < len(text) and text[end].isalnum():
                end += 1
        if text[index] != " ":
            found.append(text[index:end])
        index = end
    return found
