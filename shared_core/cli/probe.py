"""``posrag probe``: measure a model's position sensitivity."""

from __future__ import annotations

import argparse
from typing import Literal

from shared_core.attention import attention_profile
from shared_core.checking import check_choice
from shared_core.cli import models, options, questions
from shared_core.cli import probe_report as report
from shared_core.cli.console import Console
from shared_core.cli.files import KEPT, ProbeFiles, keeping, kept_answers
from shared_core.cli.options import path
from shared_core.evaluation import GRADERS
from shared_core.generation import Generator, HuggingFaceModel
from shared_core.probe import Probe, ProbePlan
from shared_core.sensitivity import PositionProfile, draw_profile
from shared_core.sensitivity.figure import DEPTHS
from shared_core.sensitivity.measures import MeasureName
from shared_core.sensitivity.position_sensitivity import check_slots, spread_slots
from shared_core.sensitivity.questions import check_context

DESCRIPTION = (
    "Move the passage that holds the answer through the slots of the context, ask the model each "
    "time, and save its position profile: psi= then takes the model's name. An interrupted probe "
    f"continues where it stopped: answers are kept in {KEPT}."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the model, what is asked and measured, and how."""
    group = parser.add_argument_group
    parser.add_argument("model", metavar="MODEL", help=models.HELP)
    questions.add_questions(group("what is asked"), lengths=True)
    add = group("what is measured").add_argument
    add("--slots", type=_slots, help="slots to measure, counted from 1, such as 1,5,10; the first, "
        "the middle and the last must be among them (default: all)")  # fmt: skip
    add("--measure", help="accuracy; logprob (the probability of the answer) or attention (the "
        "passage's share of it), both for local models; or distraction, which moves each "
        "question's hard_distractor instead (default: logprob of a local model, else "
        "accuracy)")  # fmt: skip
    add("--grader", help=f"measure accuracy by one of: {', '.join(GRADERS)}; see below "
        "(default: em)")  # fmt: skip
    add("--looks", type=int, default=5, help="how many times to check whether the answers "
        "so far suffice; 1 asks every question (default: 5)")  # fmt: skip
    files = group("files")
    options.add(files, "name")
    add = files.add_argument
    add("--output", type=path, help="file of the profile (default: named after the model, in "
        "$POSRAG_PROFILES or ~/.posrag/profiles)")  # fmt: skip
    add("--figure", type=path, help="file of the plotted curve (default: next to the profile)")
    options.add(group("cost and resuming").add_mutually_exclusive_group(), *options.COST)
    options.add(group("how the model is asked"), *options.ASKING)
    parser.epilog = options.GRADERS_HELP


def run(arguments: argparse.Namespace) -> int:
    """Do the job; return 0."""
    console = Console()
    _check(arguments)
    source = questions.open_questions(arguments)
    if arguments.slots is not None:
        check_context(source.k)
        if len(source.ks) > 1:
            raise ValueError("--slots are those of one -k: leave them out, or give one number")
        check_slots(arguments.slots, source.k, first=1)
    probes = _probes(arguments, source)
    model = models.open_named(arguments)
    if arguments.plan:
        for probe in probes:
            plan = probe.plan(model, source.questions, journal=kept_answers(model.name))
            console.show(*report.cost_lines(model, plan))
        return 0
    files = ProbeFiles.of(
        model.name, output=arguments.output, figure=arguments.figure, fresh=arguments.fresh
    )
    attention = arguments.measure == "attention"
    # All before the first is asked, as one that cannot be asked fails here.
    plans = [probe.plan(model, source.questions, journal=files.journal) for probe in probes]
    measured = [
        _attention(console, probe, model, source)
        if attention
        else _measure(console, probe, plan, model, source, files)
        for probe, plan in zip(probes, plans, strict=True)
    ]
    with keeping(files.journal):
        _save_and_show(console, PositionProfile.of_lengths(measured), files)
    return 0


def _check(arguments: argparse.Namespace) -> None:
    """Raise ValueError for bad options, as far as they show before anything is opened."""
    if arguments.measure is not None:
        check_choice(arguments.measure, "--measure", Literal[MeasureName, "attention"])
    if arguments.measure in ("logprob", "attention") and models.is_endpoint(arguments.model):
        raise ValueError(
            f"--measure {arguments.measure} needs a local model, and {arguments.model} is an "
            "endpoint; use --measure accuracy"
        )
    if arguments.measure == "attention" and (arguments.slots is not None or arguments.plan):
        raise ValueError(
            "--measure attention reads every slot of every question of a local model: leave "
            "--slots and --plan out"
        )


def _probes(arguments: argparse.Namespace, source: questions.ProbeData) -> list[Probe]:
    """Return what measures each length; of several, five depths, and all ask as many questions."""
    measure = arguments.measure
    if measure == "attention" or (measure is None and arguments.grader is not None):
        measure = "accuracy"
    given = options.fields_of(Probe, arguments)
    given |= {"measure": measure, "template": source.template, "task": source.task}
    if len(source.ks) == 1:
        return [Probe(**given | {"k": source.k})]
    return [Probe(**given | {"k": k, "slots": spread_slots(k, DEPTHS)}) for k in source.ks]


def _measure(
    console: Console,
    probe: Probe,
    plan: ProbePlan,
    model: Generator,
    source: questions.ProbeData,
    files: ProbeFiles,
) -> PositionProfile:
    for line in report.cost_lines(model, plan):
        console.say(line)
    counting = console.counting("asking", plan.kept + plan.calls)
    with counting as advance, keeping(files.journal):
        return probe.run(
            model,
            source.questions,
            journal=files.journal,
            on_answer=advance,
            on_wait=console.say,
        )


def _attention(
    console: Console, probe: Probe, model: Generator, source: questions.ProbeData
) -> PositionProfile:
    if not isinstance(model, HuggingFaceModel):
        raise ValueError(f"--measure attention needs a local model, and {model.name} is not one")
    with console.counting("reading", probe.k * len(source.questions)) as advance:
        return attention_profile(
            model,
            source.questions,
            k=probe.k,
            template=probe.template,
            seed=probe.seed,
            task=source.task,
            on_answer=advance,
        )


def _save_and_show(console: Console, profile: PositionProfile, files: ProbeFiles) -> None:
    saved = files.save(profile)
    try:  # drawn first, since whoever reads the lines may stop before the last
        draw_profile(saved, files.figure, report.gains(saved))
    finally:
        console.show(*report.parts(saved), *report.missing_lines(profile))
    console.show(*report.file_lines(saved, files), whole=True)


def _slots(text: str) -> tuple[int, ...]:
    slots = options.numbers(text)
    if min(slots) < 1:
        raise argparse.ArgumentTypeError(f"numbers from 1, as in 1,5,10, got {text!r}")
    return tuple(slot - 1 for slot in slots)
