"""What stands first in a report on several studies: what authentication costs, what became of the papers' tables and
figures, and how far each study has come.

Verdicts on the papers of studies that are not recomputed here have to be those of their own part of the page, and to be
counted rightly; their reasons are not computed again, which the program says.
"""

import field
import nts_verdicts
import opening
import pages
import tally
from check import Chapter, Checker, Column, Rule, Sheet
from printed import plain

# What is counted of the paper that is recomputed.
WHAT = "tables and figures with measurements"


class Verdicts:
    """The verdicts of a study, by name: `words` of each, and the tables that have them here. `is_recomputed`: they
    follow from the records."""

    def __init__(self, name, words, sheet, is_recomputed):
        self.name, self.words, self.sheet, self.is_recomputed = name, words, sheet, is_recomputed


def verdicts(studies, parts):
    """Those of each study that has any. `parts`: of the page, by study, and what stands first as ""."""
    names = {table.name.partition(":")[0]: table.name
             for section in pages.page(parts[""]) if section.heading == tally.HEADING for table in section.tables}
    found = []
    for name, study in studies.items():
        title = names.get(name, f"{name}: verdicts")
        if study.paper == "nts":
            entries = nts_verdicts.entries(study)
            found.append(Verdicts(name, [entry.verdict for entry in entries], tally.sheet(entries, title), True))
        elif study.paper != "field":
            found.append(_as_in_its_part(name, title, parts.get(name, ""), study))
    return found


def _as_in_its_part(name, title, part, study):
    checker = Checker("", "page", {}, study.words(), "")
    rows = [row for section in pages.page(part) if section.heading == tally.HEADING
            for table in section.tables if not table.is_csv for row in table.rows]
    text = lambda row, index: row[index][1] if index < len(row) else ""
    values = lambda index: [[token.value() for token in checker.results(text(row, index))] for row in rows]
    words = lambda index: [text(row, index) for row in rows]
    sheet = Sheet(title, [
        Column("Of the paper", values(0), words=words(0)),
        Column("Here", values(1), words=words(1)),
        Column("Why", values(2), words=words(2)),
        Column("Reproduced means", values(3), "page", words=words(3)),
    ])
    return Verdicts(name, words(1), sheet, False)


def chapters(studies, found):
    """The sections by their headings. `studies`: by name, in the order of the report; `found`: their verdicts."""
    rules = opening.machine(min(studies.values(), key=lambda study: study.plan["started_unix_s"]))
    told, drawn = field.front(studies["field"]) if "field" in studies else ([], [])
    rules += told
    gaps = [rule for study in studies.values() for rule in opening.gaps(study)]
    first = Chapter(rules=rules, drawn=drawn)
    if found:
        words = [word for verdicts in found for word in verdicts.words]
        counted, values = tally.counted(words)
        papers = f"# paper{'' if len(found) == 1 else 's'}"
        rules.append(Rule(f"Of # tables, figures and results of {papers}, {counted}", plain(len(words)),
                          plain(len(found)), *values))
        first = Chapter([_by_paper(found)], rules, drawn=drawn)
    made = {"": first, "What was measured": Chapter([_stands(studies)]), "What was not": Chapter(rules=gaps)}
    if found:
        made[tally.HEADING] = Chapter([verdicts.sheet for verdicts in found])
    return made


def _by_paper(found):
    counts = [tally.counts(verdicts.words) for verdicts in found]
    column = lambda heading, index: Column(heading, [[plain(row[index])] for row in counts])
    return Sheet("Tables and figures of the papers", [
        Column("Study", [[] for _ in found], words=[verdicts.name for verdicts in found]),
        Column("Counted", [[] for _ in found], words=[WHAT if one.is_recomputed else "" for one in found]),
        Column("All", [[plain(len(verdicts.words))] for verdicts in found]),
        *[column(word.capitalize(), index) for index, word in enumerate(tally.VERDICTS)],
    ])


def _stands(studies):
    def column(heading, *outcomes):
        count = lambda study: sum(study.outcome(task) in outcomes for task in study.tasks)
        return Column(heading, [[plain(count(study))] for study in studies.values()])

    return Sheet("What was measured, by study", [
        Column("Study", [[] for _ in studies], words=list(studies)),
        Column("Of", [[] for _ in studies]),
        Column("Tasks", [[plain(len(study.tasks))] for study in studies.values()]),
        column("Measured", "measured"),
        column("Measured, and not counted", "invalid"),
        column("Could not be", "infeasible"),
        column("Left out, or not yet", None, "cut", "stopped"),
    ])
