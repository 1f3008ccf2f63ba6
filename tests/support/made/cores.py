"""Templates and bodies of the engine, written shortly."""

from __future__ import annotations

from cyclescope.simulate.engine import Body, Engine, Layout, Steady, Template, Work


def work(*ports, cycles=1.0, after=(), feeds=1, **more):
    return Work(sum(1 << p for p in ports), cycles, feeds, after, **more)


def independent(*ports, cycles=1.0, slots=1.0, **more):
    """Operations on ports, nothing read or written."""
    return Template(slots, (), (), tuple(work(*p, cycles=cycles, feeds=0) for p in ports), **more)


def unary(latency, *ports, **more):
    """One source, one target, one operation."""
    return Template(1.0, (0.0,), ((latency,),), (work(*ports, after=(0.0,)),), **more)


def producer(latency, *ports, **more):
    """No source, one target."""
    return Template(1.0, (latency,), (), (work(*ports),) if ports else (), **more)


def loop(engine: Engine, *instructions, accesses=()) -> Body:
    """A body of (template, locations...); equal templates are added once."""
    numbers: dict[Template, int] = {}
    words: list[int] = []
    for template, *locations in instructions:
        if template not in numbers:
            numbers[template] = engine.add(template)
        words += [numbers[template], *locations]
    return Body(words, accesses)


def steady(layout: Layout, *instructions, accesses=(), exact=True) -> Steady:
    engine = Engine(layout)
    found = engine.run(loop(engine, *instructions, accesses=accesses))
    assert found.exact == exact
    return found


def cycles(layout: Layout, *instructions, accesses=()) -> float:
    """Cycles per iteration in an exact steady state."""
    return steady(layout, *instructions, accesses=accesses).cycles
