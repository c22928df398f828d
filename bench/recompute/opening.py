"""What a report says of the study itself: the machine, what is missing and why, what others took."""

from check import Chapter, Rule
from printed import octets, percent, plain

# How an outcome is told of several tasks.
WORDS = {
    "invalid": "measured, and not counted",
    "infeasible": "not measured",
    "stopped": "stopped",
    "cut": "left out for want of time",
}
# More names than these are counted.
NAMES_MAX = 6


def machine(study):
    """Processors and memory; names, versions and the time of the start are quoted."""
    cores = study.machine["cpu_count"]
    rules = [Rule(f", # processor{'' if cores == 1 else 's'}, ", plain(cores))]
    memory = study.machine.get("memory_octets")
    if memory is not None:
        rules.append(Rule("# of memory, ", octets(memory)))
    return rules


def _kind(why):
    return "".join(character for character in why if not (character.isdigit() or character in ".,"))


def gaps(study):
    """Tasks that brought nothing that counts, by outcome and reason."""
    groups, untried, total = {}, 0, len(study.tasks)
    for task in study.tasks:
        end = task.get("end")
        if end is None:
            untried += 1
        elif end.get("why"):
            groups.setdefault((end["outcome"], _kind(end["why"])), []).append(task["id"])
    of = f"# of # task{'' if total == 1 else 's'}"
    rules = []
    for (outcome, _), ids in groups.items():
        begin = f"{of} {'is' if len(ids) == 1 else 'are'} {WORDS[outcome]}: "
        # Names tell reasons apart; numbers in them are part of them.
        names, rest = ids[:NAMES_MAX], len(ids) - NAMES_MAX
        counts = [plain(len(ids)), plain(total)]
        if rest > 0:
            rules.append(Rule(f"{begin}{', '.join(names)} and # more", *counts, plain(rest)))
        else:
            listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
            rules.append(Rule(f"{begin}{listed}", *counts))
    if untried:
        rules.append(Rule(f"{of} {'is' if untried == 1 else 'are'} not measured yet", plain(untried), plain(total)))
    return rules


def stolen(study):
    """The share of the machine's processor time that others had, if the report says so."""
    ends = [end for task in study.tasks if (end := task.get("end")) and end.get("steal_seconds") is not None]
    whole = sum(end["seconds"] for end in ends) * study.machine.get("online_cpu_count", study.machine["cpu_count"])
    if not whole:
        return []
    share = sum(end["steal_seconds"] for end in ends) / whole
    return [Rule("did not have # of its processor time", percent(share))]


def rules(study):
    return machine(study) + gaps(study) + stolen(study)


def records(study):
    """The section that links to the files of the folder: the plan and each record, whose names are quoted."""
    count = 1 + len(study.records)
    return Chapter(rules=[Rule(f"# file{'' if count == 1 else 's'} beside this page", plain(count))])
