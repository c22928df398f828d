"""Recomputes every number that a report on the studies of NTS and of the field prints, from the records.

    python3 bench/recompute DIR..

Each DIR is the folder of one study (`authentick study run nts|field --out DIR`) with the reports that `study render`
writes into it. Nothing of authentick is used: medians, intervals, ratios, knees and counts are computed here, as the
documentation defines them. Every number of report.html and report.txt has to agree with one of these to the last digit
that is printed, or to be a name or a quotation of the folder; what is neither is named.

For each section a line says how many numbers agree, or what does not, with file, line and both values. Exit code: 0 if
all agree, 1 if one does not, 2 if a folder cannot be checked.
"""

import argparse
import sys

# Nothing is left in the checkout.
sys.dont_write_bytecode = True

import field
import folder
import nts
import pages
import published
from check import Checker

CHAPTERS = {"nts": nts.chapters, "field": field.chapters}


def check(place):
    """Checks the reports of a folder and says what was found; how many findings there are."""
    study = folder.Study(place)
    try:
        chapters = CHAPTERS[study.paper](study)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        why = f"a record lacks a field, or has another form than this reads: {error!r}"
        raise folder.Unusable(f"{place}: {why}") from error
    source = f"bench/recompute/{study.paper}.py"
    pages_, text = study.report(folder.PAGE), study.report(folder.TEXT)
    sections = pages.page(pages_)
    # The text has the tables of the page but those for the page alone; where they end the records tell.
    tables = {
        (heading, table.name): ([column.heading for column in table.shown("text")], table.rows())
        for heading, chapter in chapters.items() for table in chapter.tables.values() if table.medium != "page"
    }
    findings = total = 0
    for name, medium, shown in (
        (folder.PAGE, "page", sections), (folder.TEXT, "text", pages.text(text, tables))):
        checker = Checker(name, medium, chapters, study.words(), source)
        for section in shown:
            before = len(checker.findings)
            agreed, named = checker.section(section)
            total += agreed
            wrong = checker.findings[before:]
            if not (agreed or named or wrong):
                continue
            heading = section.heading or "(first)"
            verdict = f"{agreed} numbers, {'all' if not wrong else 'others do not'} agree"
            beside = f"; {named} are names, quotations or axes" if named else ""
            print(f"{name}: {heading}: {verdict}{beside}")
            for finding in wrong:
                print(f"  {finding}")
        findings += len(checker.findings)
    for problem in published.problems():
        print(f"  published data: {problem}")
        findings += 1
    print(f"{place}: {study.paper}: {total} numbers agree, {findings} problem{'' if findings == 1 else 's'}")
    return findings


def main():
    about, _, rest = __doc__.partition("\n")
    parser = argparse.ArgumentParser(prog="recompute", description=about, epilog=rest,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="DIR", nargs="+", help="the folder of a study of nts or of the field")
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
