// Charts of what was measured at single values: points with their intervals, on an axis of anything but time. The arrow
// keys and the mouse go from point to point.
"use strict";

const kLineColors = ["var(--s1)", "var(--s2)", "var(--s3)", "var(--s4)", "var(--s5)", "var(--s6)"];
const kRadius = 4.5;

// Told apart without their colours, too. Around 0, of size 1.
const kShapes = [
  "circle",
  "M-1,-1H1V1H-1Z",
  "M0,-1.3L1.2,.9H-1.2Z",
  "M0,-1.4L1.4,0L0,1.4L-1.4,0Z",
  "M0,1.3L1.2,-.9H-1.2Z",
  "M-.4,-1.3H.4V-.4H1.3V.4H.4V1.3H-.4V.4H-1.3V-.4H-.4Z",
];
const kCross = "M-1,-1L1,1M-1,1L1,-1";

// From where to where an axis goes, in round steps: from 0, with some room above.
function rangeOf(values) {
  const most = 1.07 * Math.max(...values, 0),
    step = niceAbove(most / 5);
  return { from: 0, to: Math.max(step, Math.ceil(most / step) * step), step };
}

// The same, but from near the least value where all are far from 0. Narrow enough, labels would not differ.
function nearRangeOf(values) {
  const least = Math.min(...values),
    most = Math.max(...values);
  if (least < 0.5 * most || most - least < 0.1 * most) return rangeOf(values);
  const step = niceAbove((most - least) / 5);
  return { from: Math.floor(least / step - 0.2) * step, to: Math.ceil(most / step + 0.2) * step, step };
}

function multiples({ from, to, step }) {
  const values = [];
  for (let n = Math.round(from / step); n * step <= to + step / 100; ++n) values.push(n * step);
  return values;
}

// `ticks`: [place, label], from `from` to `to` in places.
class PointAxis extends TimeAxis {
  constructor(from, to, ticks) {
    super(to);
    this.view = [from, to];
    this.all = ticks;
  }
  ticks(most) {
    const every = Math.ceil(this.all.length / most);
    return { ticks: this.all.filter((_, i) => i % every === 0).map(([place]) => place), step: every };
  }
  label(place) {
    return this.all.find(([each]) => each === place)[1];
  }
}

// Values from 0 or so, in round steps.
function linearAxis(range, unit) {
  return new PointAxis(
    range.from,
    range.to,
    multiples(range).map((value) => [value, tick(value, unit)]),
  );
}

// Each measured value; `doubling`: as far from its half as from its double.
function valueAxis(values, doubling) {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const place = doubling ? Math.log2 : (value) => value;
  const first = place(sorted[0]),
    last = place(sorted.at(-1)),
    room = Math.max(0.05 * (last - first), doubling ? 0.1 : 0.2);
  const axis = new PointAxis(
    first - room,
    last + room,
    sorted.map((value) => [place(value), count(value)]),
  );
  return { axis, place };
}

// spec: as of a Panel, without times: lines: [{label, color, shape, join: "line", "steps" or none, parts: [[{x, y, low,
// high, hollow, mark, says}]]}]; a part is joined on its own, and a point without a y stands on the axis. `range`: of
// the values; marks.mean, diagonal: true.
class PointPanel extends Panel {
  constructor(axis, spec) {
    super(axis, { height: 280, ...spec });
    this.node.classList.add("points");
    this.now = null;
  }

  caption() {
    const caption = super.caption();
    this.under = el("output", { class: "under" });
    caption.append(this.under);
    return caption;
  }

  scale() {
    return this.spec.range.to;
  }
  y(value) {
    const { from, to } = this.spec.range;
    return kTop + (1 - (value - from) / (to - from)) * (this.height - kTop - kBottom);
  }
  points() {
    const points = this.spec.lines.filter((line) => this.isOn(line)).flatMap((line) => line.parts.flat());
    return points.sort((a, b) => a.x - b.x || (a.y ?? 0) - (b.y ?? 0));
  }
  place(point) {
    return [this.x(point.x), point.y === undefined ? this.height - kBottom - 2 * kRadius : this.y(point.y)];
  }

  labels() {
    return multiples(this.spec.range).flatMap((value, i) => [
      svg("line", {
        class: i ? "grid" : "axis",
        x1: kLeft,
        x2: this.width - kRight,
        y1: this.y(value),
        y2: this.y(value),
      }),
      svg("text", { x: kLeft - 8, y: this.y(value) + 4, "text-anchor": "end" }, tick(value, this.spec.unit)),
    ]);
  }

  fill(plot) {
    this.drawMarks(plot);
    const [from, to] = this.axis.view;
    if (this.spec.diagonal)
      plot.append(svg("line", { class: "mean", x1: this.x(from), y1: this.y(from), x2: this.x(to), y2: this.y(to) }));
    const shown = this.spec.lines.filter((line) => this.isOn(line)); // the first one above all others
    for (const line of shown) for (const part of line.parts) this.joinPoints(plot, line, part);
    for (const line of shown.reverse()) for (const point of line.parts.flat()) this.drawPoint(plot, line, point);
    this.ring = svg("circle", { class: "ring", r: 2.2 * kRadius, cx: -99, cy: -99 });
    plot.append(this.ring);
  }

  joinPoints(plot, line, part) {
    if (!line.join) return;
    const path = part.map((point, i) => {
      const x = this.x(point.x).toFixed(1),
        y = this.y(point.y).toFixed(1);
      return i === 0 ? `M${x},${y}` : line.join === "steps" ? `H${x}V${y}` : `L${x},${y}`;
    });
    plot.append(svg("path", { class: "line", d: path.join(""), stroke: line.color }));
  }

  drawPoint(plot, line, point) {
    const [x, y] = this.place(point),
      look = { class: point.hollow ? "point hollow" : "point", stroke: line.color, fill: line.color };
    if (point.high > point.low) {
      const low = this.y(point.low),
        high = this.y(point.high);
      plot.append(
        svg("path", {
          class: "interval",
          stroke: line.color,
          d: `M${x - 4},${high}h8M${x - 4},${low}h8M${x},${high}V${low}`,
        }),
      );
    }
    const shape = line.shape === "cross" ? kCross : kShapes[line.shape || 0];
    plot.append(
      shape === "circle"
        ? svg("circle", { ...look, cx: x, cy: y, r: kRadius })
        : svg("path", {
            ...look,
            d: shape,
            transform: `translate(${x},${y}) scale(${kRadius})`,
            "vector-effect": "non-scaling-stroke",
          }),
    );
    if (point.mark) this.drawLabel(plot, point, x, y);
  }

  // What is recommended has its label above it, what was there before below, so that they never cover each other.
  drawLabel(plot, point, x, y) {
    const half = 3.6 * point.mark.length,
      below = point.below || y < kTop + 20;
    const middle = Math.min(Math.max(x, kLeft + half), this.width - kRight - half);
    plot.append(
      svg("text", { class: "mark", x: middle, y: below ? y + 19 : y - 11, "text-anchor": "middle" }, point.mark),
    );
  }

  drawCursor() {
    const points = this.points(),
      point = this.now === null ? null : points[this.now];
    this.under.textContent = point ? point.says : "";
    if (this.ring) {
      const [x, y] = point ? this.place(point) : [-99, -99];
      this.ring.setAttribute("cx", x);
      this.ring.setAttribute("cy", y);
    }
    this.svg.setAttribute("aria-valuemin", points.length ? 1 : 0);
    this.svg.setAttribute("aria-valuemax", points.length);
    this.svg.setAttribute("aria-valuenow", point ? this.now + 1 : points.length ? 1 : 0);
    this.svg.setAttribute(
      "aria-valuetext",
      point ? point.says : `${count(points.length)} points; the arrow keys go from one to the next`,
    );
  }

  pointAt(index) {
    this.now = index;
    this.drawCursor();
  }

  listen() {
    this.svg.addEventListener("pointermove", (event) => {
      const area = this.svg.getBoundingClientRect();
      const far = this.points()
        .map((point) => this.place(point))
        .map(([x, y]) => Math.hypot(x - event.clientX + area.left, y - event.clientY + area.top));
      this.pointAt(far.length ? far.indexOf(Math.min(...far)) : null);
    });
    this.svg.addEventListener("pointerleave", () => this.pointAt(null));
    this.svg.addEventListener("blur", () => this.pointAt(null));
    this.svg.addEventListener("keydown", (event) => {
      const last = this.points().length - 1,
        now = this.now ?? -1;
      const to = { ArrowRight: now + 1, ArrowUp: now + 1, ArrowLeft: now - 1, ArrowDown: now - 1, Home: 0, End: last }[
        event.key
      ];
      if (to !== undefined && last >= 0) this.pointAt(Math.min(Math.max(to, 0), last));
      else if (event.key === "Escape") this.pointAt(null);
      else return;
      event.preventDefault();
    });
  }
}
