"""Recomputes every number that a report on the studies of NTS and of the field prints, from the records.

    python3 bench/recompute DIR..

Each DIR is the folder of one study (`authentick study run nts|field --out DIR`), or of several (`study run all`: the
parts on NTS and on the field, and what stands first), with the reports that `study render` writes into it. Nothing of
authentick is used: medians, intervals, ratios, knees and counts are computed here, as the documentation defines them.
Every number of report.html, report.md and report.txt has to agree with one of these to the last digit that is printed,
or to be a name or a quotation of the folder; what is neither is named.

For each section a line says how many numbers agree, or what does not, with file, line and both values. Exit code: 0 if
all agree, 1 if one does not, 2 if a folder cannot be checked.
"""

import argparse
import os
import sys

# Nothing is left in the checkout.
sys.dont_write_bytecode = True

import field
import folder
import front
import nts
import opening
import pages
import published
from check import Checker

HERE = "bench/recompute"
# What stands before several studies.
FRONT = "front"
CHAPTERS = {"nts": nts.chapters, "field": field.chapters}


def read(place, study):
    """The chapters of a study's report."""
    try:
        return {**CHAPTERS[study.paper](study), "Records": opening.records(study)}
    except (KeyError, IndexError, TypeError, ValueError) as error:
        why = f"a record lacks a field, or has another form than this reads: {error!r}"
        raise folder.Unusable(f"{place}: {why}") from error


def compare(chapters, words, source, reports, part=""):
    """Checks reports against chapters and says what was found: how many numbers agree, how many problems there are.
    `reports`: page, Markdown and text; `part`: which of several studies they are on."""
    # The text has the tables of the page but those for the page alone; where they end the records tell.
    tables = {
        (heading, table.name): ([column.heading for column in table.shown("text")], table.rows())
        for heading, chapter in chapters.items() for table in chapter.tables.values() if table.medium != "page"
    }
    page, markdown, text = reports
    total = problems = 0
    for name, medium, sections in (
            (folder.PAGE, "page", pages.page(page)),
            (folder.MARKDOWN, "page", pages.markdown(markdown, 3 if part and part != FRONT else 2)),
            (folder.TEXT, "text", pages.text(text, tables))):
        checker = Checker(name, medium, chapters, words, source)
        here = {section.heading for section in sections}
        for heading, chapter in chapters.items():
            if heading not in here and any(table.medium in ("both", medium) for table in chapter.tables.values()):
                checker.fail(1, f"there is no section \"{heading}\"")
                print(f"  {checker.findings[-1]}")
        for section in sections:
            before = len(checker.findings)
            agreed, named = checker.section(section)
            total += agreed
            wrong = checker.findings[before:]
            if not (agreed or named or wrong):
                continue
            heading = ", ".join(word for word in (part, section.heading or "first") if word)
            verdict = f"{agreed} numbers, {'all' if not wrong else 'others do not'} agree"
            beside = f"; {named} are names, quotations or axes" if named else ""
            print(f"{name}: {heading}: {verdict}{beside}")
            for finding in wrong:
                print(f"  {finding}")
        problems += len(checker.findings)
    return total, problems


def check(place):
    """Checks the reports of a folder, of one study or of several; how many problems there are."""
    names = folder.below(place)
    reports = lambda: [folder.report(place, name) for name in (folder.PAGE, folder.MARKDOWN, folder.TEXT)]
    if not names:
        study = folder.Study(place)
        counts = [compare(read(place, study), study.words(), f"{HERE}/{study.paper}.py", reports())]
    else:
        studies = {name: folder.Study(os.path.join(place, name), folder.ALL) for name in names}
        counts = several(place, studies, reports())
    total, problems = (sum(column) for column in zip(*counts))
    for problem in published.problems():
        print(f"  published data: {problem}")
        problems += 1
    print(f"{place}: {total} numbers agree, {problems} problem{'' if problems == 1 else 's'}")
    return problems


def several(place, studies, reports):
    """Checks the reports on several studies: what stands first, and the parts on those that are recomputed."""
    page, markdown, text = reports
    parts = (pages.parts_of_page(page), pages.parts_of_markdown(markdown, pages.titles_of_parts(page)),
             pages.parts_of_text(text, list(studies)))
    words = [word for study in studies.values() for word in study.words()]
    verdicts = front.verdicts(studies, parts[0])
    of = lambda name: [part[name] for part in parts]
    counts = [compare(front.chapters(studies, verdicts), words, f"{HERE}/front.py", of(""), FRONT)]
    if others := [found.name for found in verdicts if not found.is_recomputed]:
        print(f"verdicts of {', '.join(others)}: they are not recomputed, but compared with their part of the page")
    for name in folder.PAPERS:
        if name in studies:
            chapters = read(studies[name].place, studies[name])
            if any(name not in part for part in parts):
                raise folder.Unusable(f"{place}: its reports lack {name}; `authentick study render` writes them")
            counts.append(compare(chapters, studies[name].words(), f"{HERE}/{name}.py", of(name), name))
    return counts


def main():
    about, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(prog="recompute", description=about, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    what = "the folder of a study of nts or of the field, or of several studies"
    parser.add_argument("folders", metavar="DIR", nargs="+", help=what)
    arguments = parser.parse_args()
    code = 0
    for place in arguments.folders:
        try:
            code = max(code, 1 if check(place) else 0)
        except folder.Unusable as error:
            print(f"recompute: {error}", file=sys.stderr)
            code = 2
    return code


if __name__ == "__main__":
    sys.exit(main())
