#!/usr/bin/env python3
"""Counts the tests of a JUnit file that CTest wrote: prints "PASSED FAILED SKIPPED", and on standard error a line for
each test that was skipped. A test that CTest could not start has failed; CTest's own file calls it skipped."""

import re
import sys
import xml.etree.ElementTree


def main(path):
    passed = failed = skipped = 0
    for test in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        status = test.get("status")
        reason = test.find("skipped")
        output = test.findtext("system-out") or ""
        if status == "run":
            passed += 1
        elif status == "disabled" or (reason is not None and "SKIP_" in reason.get("message", "")):
            skipped += 1
            said = re.search(r"SKIPPED: .*", output)
            print(f"{test.get('name')}: {said[0] if said else 'SKIPPED'}", file=sys.stderr)
        else:
            failed += 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main(sys.argv[1])
