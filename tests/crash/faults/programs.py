"""All programs that meet faults, by name."""

from tests.crash.faults import ledgers, projections, runs
from tests.crash.faults.standing import Program

PROGRAMS: dict[str, Program] = {
    program.name: program for program in (*ledgers.PROGRAMS, *projections.PROGRAMS, *runs.PROGRAMS)
}
