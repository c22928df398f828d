"""What became of a paper's tables and figures: verdicts, their counts, and the tables that have them."""

from check import Column, Rule, Sheet
from printed import plain

REPRODUCED, DIFFERS, COULD_NOT = "reproduced", "differs", "could not be"
VERDICTS = (REPRODUCED, DIFFERS, COULD_NOT)
HEADING = "Table by table, figure by figure"


class Entry:
    """A verdict: on what, which, and why: words with "#" for each number, or `other` in their place. `claim`: numbers
    of the rule beside it."""

    def __init__(self, place, verdict, why, values, other=None, claim=()):
        self.place, self.verdict, self.claim = place, verdict, list(claim)
        self.said = [(why, values)] + ([other] if other else [])


def missing(study, is_for_it):
    """Nothing is there: why, by its tasks. Reasons are quoted."""
    ends = [task.get("end") for task in study.tasks if is_for_it(task["id"])]
    why = next((end["why"] for end in ends if end and end.get("why")), None)
    if why:
        return COULD_NOT, "No record of it counts: ", []
    count = ends.count(None)
    if count:
        return COULD_NOT, "It is not measured yet: # task", [plain(count)]
    return COULD_NOT, "No record of it is there, or none has what is compared.", []


def counts(verdicts):
    """How many are reproduced, differ and could not be, of the words for them."""
    verdicts = list(verdicts)
    return [verdicts.count(word) for word in VERDICTS]


def counted(verdicts):
    """The half sentence that counts them, and its numbers."""
    found = counts(verdicts)
    is_, differ = "is" if found[0] == 1 else "are", "differs" if found[1] == 1 else "differ"
    words = f"# {is_} reproduced here, # {differ}, and # could not be measured or told"
    return words, [plain(count) for count in found]


def sentence(entries, what):
    words, values = counted(entry.verdict for entry in entries)
    return Rule(f"Of the # {what} of the paper, {words}", plain(len(entries)), *values)


def sheet(entries, name="Verdicts"):
    return Sheet(name, [
        Column("Of the paper", [[] for _ in entries], words=[entry.place for entry in entries]),
        Column("Here", [[] for _ in entries], words=[entry.verdict for entry in entries]),
        Column("Why", [entry.said for entry in entries]),
        Column("Reproduced means", [entry.claim for entry in entries], "page"),
    ])
