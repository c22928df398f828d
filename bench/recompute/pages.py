"""A report as the places in it that may hold numbers: the page, the Markdown and the text."""

import csv
import html
import re
import urllib.parse
from dataclasses import dataclass, field
from html.parser import HTMLParser

from printed import normalised


@dataclass
class Place:
    """A text of a report. `kind`: "sentence", "term", "caption", "label", "title", "heading", "summary" or
    "axis"."""

    line: int
    kind: str
    text: str


@dataclass
class Table:
    """A table: names of columns, in the text as one piece, and rows of (line, text)."""

    line: int
    name: str
    head: str = ""
    columns: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    # What it is folded behind: (line, text), if it is.
    summary: tuple = None
    # Whether it is what a link beside the table gives, with the columns of page and text.
    is_csv: bool = False


@dataclass
class Section:
    """What stands below a heading; the first has none."""

    heading: str
    line: int
    places: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    # What links beside pictures give: (line, rows), the first of which has headings.
    drawn: list = field(default_factory=list)


class _Page(HTMLParser):
    """Reads a page. Style and pictures' geometry hold no results; what a picture says of itself does."""

    SILENT = {"style", "meta"}
    CSV = "data:text/csv;charset=utf-8,"
    CLOSING = {"p", "li", "dt", "dd", "figcaption", "title", "text", "h1", "h2", "h3", "th", "td", "summary"}

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.sections = [Section("", 1)]
        self.open = []
        self.begun = None
        self.words = ""
        self.term = ""
        self.silent = 0
        self.depth = 0

    def _in(self, tag):
        return tag in self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "svg":
            self.depth += 1
            if attrs.get("role") == "img":
                self._add("label", normalised(attrs.get("aria-label", "")), self.getpos()[0])
        if tag in self.SILENT:
            self.silent += tag == "style"
        if tag == "table":
            places = self.sections[-1].places
            folded = len(places) > 1 and places[-1].kind == "summary" and places[-2].kind == "name"
            summary = (places[-1].line, places.pop().text) if folded else None
            if not places and not self.sections[-1].tables and len(self.sections) > 1:
                # A table below no heading has one of its own, which begins no section.
                name = self.sections.pop().heading
            else:
                name = places.pop().text if self._named() else ""
            self.sections[-1].tables.append(Table(self.getpos()[0], name, summary=summary))
        if tag == "a" and attrs.get("href", "").startswith(self.CSV):
            self._link(attrs["href"][len(self.CSV) :])
        if tag == "tr" and self._in("tbody"):
            self.sections[-1].tables[-1].rows.append([])
        if tag not in ("meta", "br", "path", "rect", "line", "circle"):
            self.open.append(tag)
        if tag in self.CLOSING:
            self.begun, self.words = self.getpos()[0], ""

    def _link(self, data):
        """A link to what a table has, or to what a picture draws."""
        line, section = self.getpos()[0], self.sections[-1]
        rows = [[normalised(cell) for cell in row] for row in csv.reader(urllib.parse.unquote(data).splitlines())]
        if "What is drawn" in self.words:
            section.drawn.append((line, rows))
        else:
            cells = [[(line, cell) for cell in row] for row in rows[1:]]
            section.tables.append(Table(line, section.tables[-1].name, columns=rows[0], rows=cells, is_csv=True))

    def _named(self):
        places = self.sections[-1].places
        return bool(places) and places[-1].kind == "name"

    def handle_data(self, data):
        if self.silent:
            return
        if data.strip() and not self.CLOSING.intersection(self.open):
            # Words of no element that is known stand for themselves.
            self._add("sentence", normalised(data), self.getpos()[0])
        self.words += data

    def handle_endtag(self, tag):
        if tag == "style":
            self.silent -= 1
        if tag == "svg":
            self.depth -= 1
        if tag in self.open:
            while self.open.pop() != tag:
                pass
        if tag not in self.CLOSING:
            return
        text, line = normalised(self.words), self.begun
        self.words = ""
        section = self.sections[-1]
        if tag == "h2":
            self.sections.append(Section(text, line))
        elif tag == "h3":
            section.places.append(Place(line, "name", text))
        elif tag in ("th", "td"):
            table = section.tables[-1]
            row = table.columns if self._in("thead") else table.rows[-1]
            row.append((line, text))
        elif tag == "dt":
            self.term = text
        elif tag == "dd":
            self._add("term", f"{self.term}: {text}", line)
        elif tag == "text":
            self._add("axis", text, line)
        elif tag == "title":
            self._add("title" if self.depth else "heading", text, line)
        elif tag in ("figcaption", "summary"):
            self._add("caption" if tag == "figcaption" else tag, text, line)
        elif tag == "li":
            self._add("axis" if self._in("figure") else "sentence", text, line)
        else:
            self._add("heading" if tag == "h1" else "sentence", text, line)

    def _add(self, kind, text, line):
        self.sections[-1].places.append(Place(line, kind, text))


def page(text):
    """The sections of a page."""
    reader = _Page()
    reader.feed(text)
    reader.close()
    for section in reader.sections:
        for table in section.tables:
            if not table.is_csv:
                table.columns = [name for _, name in table.columns]
    return reader.sections


def parts_of_page(text):
    """A page on several studies as pages on each, by name, and what stands before them as "". Lines keep their numbers.
    """
    front, *rest = re.split(r"(?=<section id=\")", text)
    blank = lambda contents: "\n" * contents.group().count("\n")
    found, line = {"": re.sub(r"<nav.*?</nav>", blank, front, flags=re.DOTALL)}, front.count("\n")
    for part in rest:
        # Headings are a level lower there, below the title of the study.
        body = re.sub(r"<h2>.*?</h2>", "", part, count=1)
        body = re.sub(r"(</?h)([34])>", lambda tag: f"{tag.group(1)}{int(tag.group(2)) - 1}>", body)
        found[re.match(r"<section id=\"([\w-]+)\"", part).group(1)] = "\n" * line + body
        line += part.count("\n")
    return found


def parts_of_text(text, names):
    """The same of the text. `names`: of the studies, in their order."""
    lines = text.split("\n")
    titles = [index - 1 for index, line in enumerate(lines) if line and set(line) == {"#"}] + [len(lines)]
    found = {}
    for name, start, end in zip(["", *names], titles, titles[1:]):
        found[name] = "\n" * (start + 2) + "\n".join(lines[start + 2 : end])
    return found


_HEADING = re.compile(r"(#+) (.*)")


def _plain(text):
    """Markdown without its marks."""
    text = re.sub(r"(?<!\\)(?:\*\*|`)", "", text)
    return normalised(re.sub(r"\\(.)", r"\1", text))


def _cells(line):
    """The cells of a table's row."""
    return [_plain(cell) for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def markdown(text, level=2):
    """The sections of the Markdown, whose headings have so many signs; what is lower is a name, of a table or not."""
    sections = [Section("", 1)]
    table = None
    for number, line in enumerate(text.split("\n"), 1):
        section, heading = sections[-1], _HEADING.match(line)
        if line.startswith("|"):
            if table is None:
                if not section.places and not section.tables and len(sections) > 1:
                    name = sections.pop().heading
                    section = sections[-1]
                else:
                    name = section.places.pop().text if section.places and section.places[-1].kind == "name" else ""
                table = Table(number, name, columns=_cells(line))
                section.tables.append(table)
            elif number > table.line + 1:
                # The line below the headings has the sides of columns.
                table.rows.append([(number, cell) for cell in _cells(line)])
            continue
        table = None
        if heading and len(heading.group(1)) == level:
            sections.append(Section(_plain(heading.group(2)), number))
        elif heading:
            section.places.append(Place(number, "name", _plain(heading.group(2))))
        elif line.startswith("- **"):
            # A term ends where its mark does.
            term, _, meaning = line[len("- **") :].partition("** ")
            section.places.append(Place(number, "term", f"{_plain(term)}: {_plain(meaning)}"))
        elif line.strip():
            section.places.append(Place(number, "sentence", _plain(line.removeprefix("- "))))
    return sections


def parts_of_markdown(text, titles):
    """Markdown on several studies by study, and what stands before them as "". `titles`: of the studies by name, in
    their order. Headings of parts are a level lower."""
    lines = text.split("\n")
    found, name, start = {}, "", 0
    expected = list(titles.items())
    for index, line in enumerate([*lines, None]):
        heading = line and _HEADING.match(line)
        is_next = heading and expected and len(heading.group(1)) == 2 and _plain(heading.group(2)) == expected[0][1]
        if line is None or is_next:
            found[name] = "\n" * start + "\n".join(lines[start:index])
            if is_next:
                (name, _), start = expected.pop(0), index + 1
    return found


def titles_of_parts(text):
    """What the studies of a page are called, by name."""
    parts = re.split(r"(?=<section id=\")", text)[1:]
    unmarked = lambda markup: normalised(html.unescape(re.sub(r"<[^>]*>", "", markup)))
    name, title = re.compile(r"<section id=\"([\w-]+)\""), re.compile(r"<h2[^>]*>(.*?)</h2>")
    return {name.match(part).group(1): unmarked(title.search(part).group(1)) for part in parts}


HEADING_WIDTH = 14


def _folded(text):
    """How many lines a heading takes in the text."""
    lines, column = 0, None
    for word in text.split(" "):
        if column is None or column + 1 + len(word) > HEADING_WIDTH:
            lines, column = lines + 1, len(word)
        else:
            column += 1 + len(word)
    return lines


def text(text, tables):
    """The sections of the text. `tables`: by section and name, the headings of its columns and how many rows it has.
    A label of the same name has an empty line after it.

    A row of a table in the text is one piece: its cells are told apart by those who know what it should hold.
    """
    lines = text.split("\n")
    sections = [Section("", 1)]
    index = 0
    while index < len(lines):
        line = lines[index]
        section = sections[-1]
        following = lines[index + 1] if index + 1 < len(lines) else ""
        known = tables.get((section.heading, normalised(line[:-1]))) if line.endswith(":") and following else None
        if following and set(following) == {"="} and len(following) == len(line):
            sections.append(Section(normalised(line), index + 1))
            index += 2
        elif known is not None:
            headings, count = known
            first, index = index + 1, index + 1 + max(map(_folded, headings))
            table = Table(first, normalised(line[:-1]), " ".join(lines[first:index]), list(headings))
            for _ in range(count):
                if index >= len(lines):
                    break
                table.rows.append([(index + 1, normalised(re.sub(r"\s{2,}", " ", lines[index])))])
                index += 1
            section.tables.append(table)
        else:
            sentence, first = line, index + 1
            index += 1
            while index < len(lines) and lines[index].startswith("  ") and lines[index].strip():
                sentence += " " + lines[index].strip()
                index += 1
            if sentence.strip():
                section.places.append(Place(first, "sentence", normalised(sentence)))
    return sections
