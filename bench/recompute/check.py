"""Holds the numbers of a report against what is recomputed, and accounts for each of them.

A study's module says for each section which tables it has, with the values of every cell, and which numbers its
sentences have: a `Rule` is a part of a sentence with "#" for each number. A number that no rule covers and no table has
is a failure, unless it is a name (AEAD 15, Figure 7) or stands in words of the folder that the report quotes.
"""

import re

from printed import NUMBER, normalised, plain, tokens

# Numbers that are no results: what things are called, and what a heading says a column is.
NAMES = [
    r"AEAD (?:15|30)(?:, but 15 and 17)?",
    r"TLS 1\.3",
    # The paper's figures and equations, and one of its references.
    r"Figures? (?:[1-9]|1[0-2])\b(?:(?:, (?:[1-9]|1[0-2]))* (?:and|to) (?:[1-9]|1[0-2]))*(?!\d)",
    r"[Ee]quation \([1-6]\)",
    r"reference \[9\]",
    r"RFC 8915, section 4",
    # When a paper appeared, and which part of it a study repeats.
    r"\(USENIX Security 2016\), section 4\.2",
    r"results that section 4\.2 tells of Table 1",
    r"Table 1's rates and latencies are of an Intel Core",
    # What is drawn as so many percent, and the level of intervals.
    r"fastest (?:25|50|75|95) %",
    r"95 % of (?:medians|means)",
    r"intervals? (?:of|in which medians of resamples lie with) 95 %",
    r"medians of resamples lie with 95 %",
]
_NAMES = re.compile("|".join(f"(?:{name})" for name in NAMES))


class Rule:
    """A part of a sentence, with "#" for each number, and the values that belong there.

    A value may be several, which all have to round to what is printed. `when`: words that the place must have for the
    rule to be about it.
    """

    def __init__(self, part, *values, when=""):
        part = normalised(part)
        if part.count("#") != len(values):
            raise ValueError(f"{part!r} has other numbers than {values}")
        self.part, self.values, self.when = part, values, normalised(when)
        words = [re.escape(words) for words in part.split("#")]
        self.pattern = re.compile(f"(?<![\\w.])({NUMBER})".join(words) if part.startswith("#") else
                                  f"({NUMBER})".join(words))

    def expected(self, text):
        """By place in the text, what is expected there."""
        if self.when not in text:
            return
        for match in self.pattern.finditer(text):
            for index, value in enumerate(self.values):
                yield match.start(index + 1), value


class Column:
    """A column of a table: its heading, and for each row a list of the values that the cell prints, in order.

    In place of values a cell may have sentences: pairs of words with "#" for each number, and values, of which it has
    to be one.

    `medium`: "both", "page" or "text". `words`: for each row, what the cell has to say.
    """

    def __init__(self, heading, cells, medium="both", words=None):
        self.heading, self.cells, self.medium = normalised(heading), cells, medium
        self.words = [normalised(word or "") for word in words or [""] * len(cells)]


class Sheet:
    """What a table should hold."""

    def __init__(self, name, columns, medium="both"):
        self.name, self.columns, self.medium = normalised(name), columns, medium

    def rows(self):
        return len(self.columns[0].cells)

    def shown(self, medium):
        """The columns that a medium has; "both": all."""
        if medium == "both":
            return self.columns
        return [column for column in self.columns if column.medium in ("both", medium)]


class Chapter:
    """What a section should hold: tables, rules for its sentences, and rules for pictures' titles by a function of the
    text. `drawn`: what its pictures draw, all of them together: rows of words and numbers, None where there is none."""

    def __init__(self, tables=(), rules=(), titles=None, drawn=()):
        self.tables = {table.name: table for table in tables}
        self.rules, self.titles, self.drawn = list(rules), titles, list(drawn)


class Finding:
    """A number or a table that is not as it should be."""

    def __init__(self, where, line, said):
        self.where, self.line, self.said = where, line, said

    def __str__(self):
        return f"{self.where}:{self.line}: {self.said}"


class Checker:
    """Compares one report with chapters. `words`: what it quotes from the folder."""

    def __init__(self, where, medium, chapters, words, source):
        self.where, self.medium, self.chapters, self.source = where, medium, chapters, source
        quoted = sorted({normalised(word) for word in words if re.search(r"\d", word)}, key=len, reverse=True)
        self.quoted = re.compile("|".join(f"(?<!\\w){re.escape(word)}(?!\\w)" for word in quoted if word) or "(?!)")
        self.findings = []

    def fail(self, line, said):
        self.findings.append(Finding(self.where, line, said))

    def section(self, section):
        """Checks a section; how many numbers agree, and how many are names or quoted."""
        chapter = self.chapters.get(section.heading)
        agreed = named = 0
        if chapter is None:
            chapter = Chapter()
            numbers = sum(len(tokens(place.text)) for place in section.places if place.kind != "axis")
            if numbers or section.tables:
                self.fail(section.line, f"section \"{section.heading}\" is unknown: none of its numbers is "
                                        f"recomputed; add it to {self.source}")
                return 0, 0
        for place in section.places:
            if place.kind == "axis":
                named += len(tokens(place.text))
                continue
            rules = chapter.rules
            if place.kind == "title" and chapter.titles is not None:
                rules = chapter.titles(place.text)
            if place.kind == "summary":
                # Statements are folded behind their number.
                rules = rules + [Rule("# statement", plain(sum(other.kind == "term" for other in section.places)))]
            counts = self.text(place.line, place.text, rules)
            agreed, named = agreed + counts[0], named + counts[1]
        for table in section.tables:
            counts = self.table(table, chapter)
            agreed, named = agreed + counts[0], named + counts[1]
        agreed += self.drawn(section, chapter.drawn)
        here = {table.name for table in section.tables}
        for name, sheet in chapter.tables.items():
            if sheet.medium in ("both", self.medium) and name not in here:
                self.fail(section.line, f"section \"{section.heading}\": there is no table \"{name}\"")
        return agreed, named

    def results(self, text):
        """The numbers of a text that are neither names nor quoted."""
        spans = self._named(text)
        return [token for token in tokens(text)
                if not any(start <= token.start and token.end <= end for start, end in spans)]

    def _named(self, text):
        """Where names and quoted words are."""
        return [match.span() for pattern in (_NAMES, self.quoted) for match in pattern.finditer(text)]

    def text(self, line, text, rules):
        """Checks a sentence."""
        found = tokens(text)
        if not found:
            return 0, 0
        expected = {}
        for rule in rules:
            for start, value in rule.expected(text):
                expected.setdefault(start, []).append(value)
        spans = self._named(text)
        agreed = named = 0
        for token in found:
            candidates = expected.get(token.start, [])
            if any(token.agrees(value) for value in candidates):
                agreed += 1
            elif candidates:
                self.fail(line, f"{token.text} is printed, and the records have {_shown(candidates)}: "
                                f"{_around(text, token)}")
            elif any(start <= token.start and token.end <= end for start, end in spans):
                named += 1
            else:
                self.fail(line, f"{token.text} is accounted for by nothing: {_around(text, token)}")
        return agreed, named

    def drawn(self, section, rows):
        """Checks what links beside pictures give: each row has to be one of these, and each of these there once."""
        agreed, left = 0, {}
        for row in rows:
            left.setdefault(_words_of(row), []).append(row)
        for line, found in section.drawn:
            for cells in found[1:]:
                numbers = [cell if _is_number(cell) else None for cell in cells]
                words = tuple(cell for cell, number in zip(cells, numbers) if number is None and cell)
                known = left.get(words, [])
                match = next((row for row in known if _is_row(row, cells)), None)
                if match is None:
                    self.fail(line, f"what is drawn has {', '.join(cells)}, which the records have not")
                    continue
                known.remove(match)
                agreed += sum(number is not None for number in numbers)
        missing = [row for known in left.values() for row in known]
        if missing and section.drawn:
            self.fail(section.line, f"section \"{section.heading}\": what is drawn lacks {len(missing)} rows, such as "
                                    f"{missing[0]}")
        return agreed

    def table(self, table, chapter):
        """Checks a table of the page cell by cell, and one of the text row by row."""
        sheet = chapter.tables.get(table.name)
        if sheet is None:
            self.fail(table.line, f"table \"{table.name}\" is unknown: none of its numbers is recomputed; add it to "
                                  f"{self.source}")
            return 0, 0
        agreed, named = self.text(table.line, table.name, [])
        if table.summary:
            agreed += self.text(*table.summary, [Rule("# row", plain(sheet.rows()))])[0]
        columns = sheet.shown("both" if table.is_csv else self.medium)
        if len(table.rows) != sheet.rows():
            self.fail(table.line, f"table \"{table.name}\" has {len(table.rows)} rows, and the records have "
                                  f"{sheet.rows()}")
        if self.medium == "page":
            known = {column.heading: column for column in columns}
            for heading in table.columns:
                if heading not in known:
                    self.fail(table.line, f"table \"{table.name}\": column \"{heading}\" is unknown; add it to "
                                          f"{self.source}")
            for heading in known.keys() - set(table.columns):
                self.fail(table.line, f"table \"{table.name}\": there is no column \"{heading}\"")
            for number, row in enumerate(table.rows[: sheet.rows()]):
                for heading, (line, text) in zip(table.columns, row):
                    if heading in known:
                        where = f"table \"{table.name}\", \"{heading}\" of \"{row[0][1]}\""
                        column = known[heading]
                        values, words = _said(column.cells[number], text)
                        counts = self.cells(line, where, text, values, [column.words[number], *words])
                        agreed, named = agreed + counts[0], named + counts[1]
            return agreed, named
        headings = [word for column in columns for word in column.heading.split()]
        if sorted(table.head.split()) != sorted(headings):
            self.fail(table.line, f"table \"{table.name}\" has other headings than {', '.join(headings)}")
        for number, row in enumerate(table.rows[: sheet.rows()]):
            line, text = row[0]
            cells = [_said(column.cells[number], text) for column in columns]
            values = [value for found, _ in cells for value in found]
            words = [column.words[number] for column in columns] + [word for _, words in cells for word in words]
            counts = self.cells(line, f"table \"{table.name}\", row {number + 1}", text, values, words)
            agreed, named = agreed + counts[0], named + counts[1]
        return agreed, named

    def cells(self, line, where, text, values, words):
        """Checks a text that should print these values in this order, among names and quoted words."""
        for word in words:
            if word not in text:
                self.fail(line, f"{where}: the records have \"{word}\", which is not printed")
        found = self.results(text)
        named = len(tokens(text)) - len(found)
        if len(found) != len(values):
            shown = ", ".join(token.text for token in found) or "no number"
            self.fail(line, f"{where}: printed is {shown}, and the records have {_listed(values)}")
            return 0, named
        agreed = 0
        for token, value in zip(found, values):
            if token.agrees(value):
                agreed += 1
            else:
                self.fail(line, f"{where}: {token.text} is printed, and the records have {_shown([value])}")
        return agreed, named


def _said(cell, text):
    """A cell's values, and the words around them that it has to have."""
    if not cell or not isinstance(cell[0], tuple) or not isinstance(cell[0][0], str):
        return cell, []
    parts = lambda words: [part.strip() for part in normalised(words).split("#") if part.strip()]
    words, values = next((said for said in cell if all(part in text for part in parts(said[0]))), cell[0])
    return values, parts(words)


def _is_number(cell):
    return re.fullmatch(r"-?\d+(?:\.\d+)?", cell) is not None


def _words_of(row):
    return tuple(normalised(cell) for cell in row if isinstance(cell, str) and cell)


def _is_row(row, cells):
    """Whether a row of what links give is this one, to the last decimal."""
    if len(row) != len(cells):
        return False
    for value, cell in zip(row, cells):
        if value is None or isinstance(value, str):
            if normalised(value or "") != cell:
                return False
        elif not _is_number(cell) or abs(float(cell) - value.number) > value.slack + 1e-9 * abs(value.number):
            return False
    return True


def _shown(values):
    flat = [one for value in values for one in (value if isinstance(value, (tuple, list)) else [value])]
    return " or ".join(dict.fromkeys(value.shown() for value in flat))


def _listed(values):
    return ", ".join(_shown([value]) for value in values) or "none"


def _around(text, token):
    """The words around a number."""
    start, end = max(token.start - 40, 0), token.end + 40
    return f"\"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}\""
