"""What stands first in a report on several studies: what authentication costs, and how far each study has come."""

import field
import opening
from check import Chapter, Column, Sheet
from printed import plain


def chapters(studies):
    """The sections by their headings. `studies`: by name, in the order of the report."""
    rules = opening.machine(next(iter(studies.values())))
    if "field" in studies:
        rules += field.front(studies["field"])
    gaps = [rule for study in studies.values() for rule in opening.gaps(study)]
    return {
        "": Chapter(rules=rules),
        "What was measured": Chapter([_stands(studies)]),
        "What was not": Chapter(rules=gaps),
    }


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
