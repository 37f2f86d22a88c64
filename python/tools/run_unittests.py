"""Run the tests of a folder and report the counts as JSON on a descriptor.

    python run_unittests.py FOLDER [--summary-fd N]

The counts don't travel with the tests' own output, which may hold anything.
"""

import argparse
import json
import os
import sys
import unittest


class CountingResult(unittest.TextTestResult):
    """Counts successes, which the base class does not."""

    passed = 0

    def addSuccess(self, test: unittest.TestCase) -> None:
        """Count one test that ran to its end, subtests included."""
        super().addSuccess(test)
        self.passed += 1


def counts_of(result: CountingResult) -> dict[str, int]:
    """The three numbers of the summary. A failing subtest counts by itself."""
    return {
        "passed": result.passed + len(result.expectedFailures),
        "failed": len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses),
        "skipped": len(result.skipped),
    }


def main() -> int:
    """Discover, run, report; 1 if anything failed or nothing ran."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("--summary-fd", type=int)
    options = parser.parse_args()
    # From the folder above, or a folder of tests would hide the package of the same name that it tests.
    top = os.path.dirname(os.path.abspath(options.folder))
    tests = unittest.TestLoader().discover(options.folder, top_level_dir=top)
    # The stubs give the runner and its result different stream types.
    runner = unittest.TextTestRunner(resultclass=CountingResult, verbosity=2)  # type: ignore[arg-type]
    result = runner.run(tests)
    assert isinstance(result, CountingResult)
    counts = counts_of(result)
    if options.summary_fd is not None:
        os.write(options.summary_fd, json.dumps(counts).encode())
    return 0 if counts["passed"] > 0 and counts["failed"] == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
