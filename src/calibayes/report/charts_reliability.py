"""The reliability diagram of the page: in each bin of confidence, how often the classifier is right."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element

from calibayes.report.charts import Scale, add, as_text, canvas, mark
from calibayes.report.page_numbers import count, percent, points

__all__ = ["bin_lines", "highest_share", "reliability_chart"]

_WIDTH, _HEIGHT = 330, 408
_X = Scale(0, 1, 46, 318)
_Y = Scale(0, 1, 284, 12)
_STRIP_TOP, _STRIP_BOTTOM = 302, 362


def reliability_chart(model: dict[str, Any], key: str, *, top_share: float, level: float) -> str:
    """The diagram of one model as SVG.

    A bar is the accuracy of the answers in its bin; the grey whiskers, where all bars together would end by chance if the
    confidence were right. The gap to the mean confidence is coloured where the bar ends beyond its whisker and the test of
    calibration rejects. Empty bins stay empty. The strip below shows the share of the answers in each bin.

    Args:
        model: one of the study's models.
        key: its letter.
        top_share: the share at the top of the strip, the same for all models so that strips can be compared.
        level: of the band.
    """
    filled = [entry for entry in model["reliability"] if entry["confidence"] is not None]
    title = f"Reliability diagram of model {key}, {model['name']}"
    description = (
        f"{len(filled)} of {len(model['reliability'])} bins of confidence have answers in them. "
        "The arrow keys go from bar to bar; the table below the chart has the same numbers."
    )
    root = canvas(_WIDTH, _HEIGHT, f"reliability-{key}", title, description, class_="chart reliability", role="group")
    _axes(root, top_share)
    strip = Scale(0, top_share or 1, _STRIP_BOTTOM, _STRIP_TOP)
    for place, entry in enumerate(filled):
        group = mark(root, bin_lines(entry, level), first=place == 0)
        _bar(group, entry, strip)
    add(root, "path", d=f"M{_X(0)} {_Y(0)}H{_X(1)}M{_X(0)} {_STRIP_BOTTOM}H{_X(1)}", class_="axis")
    add(root, "path", d=f"M{_X(0)} {_Y(0)}L{_X(1)} {_Y(1)}", class_="diagonal")
    return as_text(root)


def bin_lines(entry: dict[str, Any], level: float) -> list[str]:
    """Return the lines of a bar's tooltip.

    Examples:
        >>> entry = {"left": 0.8, "right": 0.9, "count": 40, "share": 0.4}
        >>> entry |= {"confidence": 0.86, "accuracy": 0.7, "band": [0.7, 0.95]}
        >>> [line.replace("\u00a0", " ") for line in bin_lines(entry, 0.95)]  # doctest: +NORMALIZE_WHITESPACE
        ['Confidence 80.0 to 90.0 %', '40 answers, 40.0 % of all', 'mean confidence 86.0 %', 'right 70.0 %',
         'gap +16.0 points, overconfident', 'by chance 70.0 to 95.0 % (95 %, all bars together)']
    """
    gap = entry["confidence"] - entry["accuracy"]
    reading = ", overconfident" if gap > 0 else ", underconfident" if gap < 0 else ""
    lines = [
        f"Confidence {100 * entry['left']:.1f} to {percent(entry['right'])}",
        f"{count(entry['count'])} {'answer' if entry['count'] == 1 else 'answers'}, {percent(entry['share'])} of all",
        f"mean confidence {percent(entry['confidence'])}",
        f"right {percent(entry['accuracy'])}",
        f"gap {points(gap)} points{reading}",
    ]
    if entry["band"] is not None:
        low, high = entry["band"]
        lines.append(f"by chance {100 * low:.1f} to {percent(high)} ({100 * level:g}\u00a0%, all bars together)")
    return lines


def highest_share(models: list[dict[str, Any]]) -> float:
    """The largest share of any bin of any model."""
    return max((float(entry["share"]) for model in models for entry in model["reliability"]), default=1.0)


def _bar(group: Element, entry: dict[str, Any], strip: Scale) -> None:
    left, right = _X(entry["left"]), _X(entry["right"])
    width = right - left
    confidence, accuracy = entry["confidence"], entry["accuracy"]
    add(group, "rect", x=left, y=_Y(1), width=width, height=_STRIP_BOTTOM - _Y(1), class_="hit")
    add(group, "rect", x=left, y=_Y(accuracy), width=width, height=_Y(0) - _Y(accuracy), class_="bar")
    band = entry["band"]
    if confidence != accuracy:
        low, high = sorted((confidence, accuracy))
        kind = "over" if confidence > accuracy else "under"
        chance = "" if entry["beyond_chance"] else " chance"
        add(group, "rect", x=left, y=_Y(high), width=width, height=_Y(low) - _Y(high), class_=f"gap {kind}{chance}")
    add(group, "path", d=f"M{left:.2f} {_Y(accuracy):.2f}h{width:.2f}", class_="level")
    if band is not None:
        low, high = band
        middle, cap = (left + right) / 2, width / 5
        add(group, "rect", x=middle - 0.7, y=_Y(high), width=1.4, height=_Y(low) - _Y(high), class_="band")
        caps = "".join(f"M{middle - cap:.2f} {_Y(end):.2f}h{2 * cap:.2f}" for end in (high, low))
        add(group, "path", d=caps, class_="band-edge")
    top = strip(entry["share"])
    # A bin with one answer among thousands still shows that it is not empty.
    add(group, "rect", x=left, y=min(top, _STRIP_BOTTOM - 1), width=width, height=max(_STRIP_BOTTOM - top, 1), class_="share")


def _axes(root: Element, top_share: float) -> None:
    axes = add(root, "g", aria_hidden="true")
    for tenths in range(0, 11, 2):
        value = tenths / 10
        add(axes, "path", d=f"M{_X(0)} {_Y(value):.2f}H{_X(1)}", class_="grid")
        add(axes, "text", f"{10 * tenths}", x=_X(0) - 6, y=_Y(value) + 4, text_anchor="end", class_="tick")
        add(axes, "text", f"{10 * tenths}", x=_X(value), y=_STRIP_BOTTOM + 16, text_anchor="middle", class_="tick")
    add(axes, "text", "confidence %", x=(_X(0) + _X(1)) / 2, y=_STRIP_BOTTOM + 36, text_anchor="middle", class_="label")
    middle = (_Y(0) + _Y(1)) / 2
    add(axes, "text", "right %", x=12, y=middle, text_anchor="middle", class_="label", transform=f"rotate(-90 12 {middle})")
    add(axes, "text", percent(top_share, 0), x=_X(0) - 6, y=_STRIP_TOP + 8, text_anchor="end", class_="tick")
    add(axes, "text", "share", x=_X(0) - 6, y=_STRIP_BOTTOM - 2, text_anchor="end", class_="tick")
