"""Functions over text."""

# Comparisons are written out: a call of max() has nothing in it to break.
# ruff: noqa: FURB136, PLR1730


def count_runs(text: str) -> int:
    """Count the maximal runs of equal characters.

    >>> count_runs('aabccc')
    3
    >>> count_runs('')
    0
    >>> count_runs('zz')
    1
    """
    runs = 0
    for index in range(len(text)):
        if index == 0 or text[index] != text[index - 1]:
            runs += 1
    return runs


def is_palindrome(text: str) -> bool:
    """Tell whether the letters and digits read the same both ways, whatever their case.

    >>> is_palindrome('Never odd or even')
    True
    >>> is_palindrome('ab')
    False
    >>> is_palindrome('Abcda')
    False
    """
    left = 0
    right = len(text) - 1
    while left < right:
        if not text[left].isalnum():
            left += 1
        elif not text[right].isalnum():
            right -= 1
        elif text[left].lower() != text[right].lower():
            return False
        else:
            left += 1
            right -= 1
    return True


def caesar_shift(text: str, shift: int) -> str:
    """Move each ASCII letter `shift` places along the alphabet, around its end; keep the rest.

    >>> caesar_shift('abc xyz', 3)
    'def abc'
    >>> caesar_shift('Zebra!', 1)
    'Afcsb!'
    >>> caesar_shift('Same', 0)
    'Same'
    """
    moved = []
    for char in text:
        if "a" <= char <= "z":
            moved.append(chr((ord(char) - 97 + shift) % 26 + 97))
        elif "A" <= char <= "Z":
            moved.append(chr((ord(char) - 65 + shift) % 26 + 65))
        else:
            moved.append(char)
    return "".join(moved)


def compress_runs(text: str) -> str:
    """Write each run of a character as the character and its length; leave the 1 out.

    >>> compress_runs('aaab')
    'a3b'
    >>> compress_runs('xyz')
    'xyz'
    >>> compress_runs('')
    ''
    """
    parts = []
    start = 0
    while start < len(text):
        end = start + 1
        while end < len(text) and text[end] == text[start]:
            end += 1
        length = end - start
        parts.append(text[start] + (str(length) if length > 1 else ""))
        start = end
    return "".join(parts)


def longest_word(text: str) -> str:
    """Give the longest word between spaces; of equally long ones the first.

    >>> longest_word('a quick fox')
    'quick'
    >>> longest_word('one two')
    'one'
    >>> longest_word('')
    ''
    """
    best_start = 0
    best_length = 0
    start = 0
    for index in range(len(text) + 1):
        if index == len(text) or text[index] == " ":
            if index - start > best_length:
                best_start = start
                best_length = index - start
            start = index + 1
    return text[best_start : best_start + best_length]


def initials(name: str, limit: int) -> str:
    """Give the initials of at most `limit` words, upper case, each with a full stop.

    >>> initials('ada king lovelace', 3)
    'A.K.L.'
    >>> initials('grace hopper', 1)
    'G.'
    >>> initials('', 2)
    ''
    """
    found = ""
    count = 0
    for index, char in enumerate(name):
        begins_word = char != " " and (index == 0 or name[index - 1] == " ")
        if begins_word and count < limit:
            found += char.upper() + "."
            count += 1
    return found


def common_prefix(words: list[str]) -> str:
    """Give the longest text that every word begins with.

    >>> common_prefix(['flower', 'flow', 'flight'])
    'fl'
    >>> common_prefix(['dog', 'cat'])
    ''
    >>> common_prefix(['same', 'same'])
    'same'
    """
    if not words:
        return ""
    size = 0
    while True:
        for word in words:
            if size >= len(word) or word[size] != words[0][size]:
                return words[0][:size]
        size += 1


def mask_middle(text: str, keep: int) -> str:
    """Replace all but the first and last `keep` characters by stars; a short text wholly.

    >>> mask_middle('abcdefg', 2)
    'ab***fg'
    >>> mask_middle('abcd', 2)
    '****'
    >>> mask_middle('abcde', 1)
    'a***e'
    """
    hidden = len(text) - 2 * keep
    if hidden <= 0 or keep < 1:
        return "*" * len(text)
    return text[:keep] + "*" * hidden + text[len(text) - keep :]


def wrap_words(text: str, width: int) -> list[str]:
    """Break text into lines of at most `width` characters at spaces; longer words stand alone.

    >>> wrap_words('the quick brown fox', 9)
    ['the quick', 'brown fox']
    >>> wrap_words('a bb ccc', 4)
    ['a bb', 'ccc']
    >>> wrap_words('', 5)
    []
    """
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) <= width:
            line = line + " " + word
        else:
            if line:
                lines.append(line)
            line = word
    if line:
        lines.append(line)
    return lines


def balanced_depth(text: str) -> int:
    """Give the deepest nesting of round brackets, or -1 when they do not match.

    >>> balanced_depth('(a(b)c)')
    2
    >>> balanced_depth('())(')
    -1
    >>> balanced_depth('none')
    0
    """
    depth = 0
    deepest = 0
    for char in text:
        if char == "(":
            depth += 1
            if depth > deepest:
                deepest = depth
        elif char == ")":
            depth -= 1
            if depth < 0:
                return -1
    if depth != 0:
        return -1
    return deepest


def differing_places(left: str, right: str) -> int:
    """Count the places where two texts differ; places that only one has count as differing.

    >>> differing_places('karolin', 'kathrin')
    3
    >>> differing_places('abc', 'abcde')
    2
    >>> differing_places('', '')
    0
    """
    shorter = len(left) if len(left) < len(right) else len(right)
    count = len(left) + len(right) - 2 * shorter
    for index in range(shorter):
        if left[index] != right[index]:
            count += 1
    return count


def capitalise_every(text: str, step: int) -> str:
    """Upper-case each `step`-th letter, counting letters only.

    >>> capitalise_every('abcdef', 2)
    'aBcDeF'
    >>> capitalise_every('ab-cd', 3)
    'ab-Cd'
    >>> capitalise_every('abc', 0)
    'abc'
    """
    if step < 1:
        return text
    result = ""
    letters = 0
    for char in text:
        if char.isalpha():
            letters += 1
            if letters % step == 0:
                result += char.upper()
                continue
        result += char
    return result
