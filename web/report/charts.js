// Panels on one time axis: they share the view (zoom), the cursor and the highlighted band. Times are milliseconds
// since the start of the stage.
"use strict";

class TimeAxis {
  constructor(end, least = end / 2000) {
    this.end = end;
    this.least = least; // to which one can zoom in
    this.view = [0, end];
    this.cursor = null;
    this.band = null;
    this.panels = [];
    this.off = new Set(); // "panel: label" of the rows that the reader has switched off
    this.onChange = () => {};
  }
  zoom(begin, end) {
    begin = Math.max(0, begin);
    end = Math.min(this.end, end);
    if (end - begin < this.least) return;
    this.view = [begin, end];
    this.draw();
  }
  // A part of the view, around the cursor or the middle; a factor above 1 shows more.
  zoomBy(factor) {
    const [begin, end] = this.view;
    const at = this.cursor ?? (begin + end) / 2;
    this.zoom(at - (at - begin) * factor, at + (end - at) * factor);
  }
  reset() {
    this.zoom(0, this.end);
  }
  ticks(most) {
    return timeTicks(...this.view, most);
  }
  label(at, step) {
    return clock(at, step, this.end);
  } // precise enough for moments `step` apart
  draw() {
    for (const panel of this.panels) panel.draw();
    this.onChange();
  }
  point(ms) {
    this.cursor = ms;
    for (const panel of this.panels) panel.drawCursor();
    this.onChange();
  }
  highlight(band, keys) {
    this.band = band;
    for (const panel of this.panels) panel.highlight(keys);
  }
}

const kLeft = 58,
  kRight = 6,
  kTop = 8,
  kBottom = 20;

// The index of the last element of sorted `times` that is at or before t; -1 if there is none.
function indexAt(times, t) {
  let low = 0,
    high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// A round number at or above the value: 1, 2, 2.5 or 5 times a power of ten (of 1000 for bytes it is the same).
function niceAbove(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  for (const factor of [1, 2, 2.5, 5]) if (value <= factor * power * 1.0001) return factor * power;
  return 10 * power;
}

// Milliseconds: 1, 2 and 5 times powers of ten up to seconds, then fractions of a minute, an hour and a day, then days.
// Each is at most 2.5 times the previous one, so that a range with room for five ticks has at least two.
const kTimeSteps = [
  ...[1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1e3].flatMap((power) => [power, 2 * power, 5 * power]),
  1e4,
  15e3,
  3e4,
  6e4,
  12e4,
  3e5,
  6e5,
  9e5,
  18e5,
  36e5,
  72e5,
  144e5,
  216e5,
  432e5,
  ...[1, 10, 100, 1000].flatMap((days) => [864e5 * days, 1728e5 * days, 432e6 * days]),
];

function timeTicks(begin, end, most) {
  const step = kTimeSteps.find((each) => (end - begin) / each <= most) || kTimeSteps.at(-1);
  const ticks = [];
  for (let n = Math.ceil(begin / step - 1e-9); n * step <= end * (1 + 1e-9); ++n) ticks.push(n * step);
  return { ticks, step };
}

// spec: {id, title, unit, height, lines: [{label, color, t, v, lo, hi, key, unbroken}]} or, for a stack of ratios over
// windows, {stack: {t, width, layers: [{label, color, v, key}]}}; marks: {warmEnd, mean, low, high}; max: the top of
// the scale; fits: the scale begins at the lowest value rather than at 0; text: how values are written, if not by
// their unit.
class Panel {
  constructor(axis, spec) {
    this.axis = axis;
    this.spec = spec;
    this.height = spec.height || 112;
    this.lit = null;
    this.outputs = [];
    // To a screen reader, a slider along the time: its value text has all values at the cursor.
    this.svg = svg("svg", { role: "slider", tabindex: 0, "aria-label": spec.title, height: this.height });
    this.node = el("figure", { class: "panel", id: "panel-" + spec.id }, this.caption(), this.svg);
    this.listen();
    axis.panels.push(this);
  }

  rows() {
    return this.spec.stack ? this.spec.stack.layers : this.spec.lines;
  }
  isOn(row) {
    return !this.axis.off.has(this.nameOf(row));
  }
  nameOf(row) {
    return this.spec.id + ": " + row.label;
  }

  // A click on a key switches its row off and on.
  caption() {
    const keys = this.rows().map((row) => {
      const output = el("output");
      this.outputs.push(output);
      const key = el(
        "button",
        {
          type: "button",
          class: this.spec.stack ? "key block" : "key",
          title: row.meaning,
          "aria-pressed": String(this.isOn(row)),
          onclick: () => {
            if (!this.axis.off.delete(this.nameOf(row))) this.axis.off.add(this.nameOf(row));
            key.setAttribute("aria-pressed", String(this.isOn(row)));
            this.draw();
          },
        },
        el("i", { style: { background: row.color } }),
        row.label,
        output,
      );
      return key;
    });
    return el("figcaption", {}, el("b", {}, this.spec.title), keys);
  }

  x(ms) {
    const [begin, end] = this.axis.view;
    return kLeft + ((ms - begin) / (end - begin)) * (this.width - kLeft - kRight);
  }
  ms(x) {
    const [begin, end] = this.axis.view;
    return begin + ((x - kLeft) / (this.width - kLeft - kRight)) * (end - begin);
  }
  y(value) {
    return kTop + (1 - (value - this.low) / (this.top - this.low)) * (this.height - kTop - kBottom);
  }

  // The scale fits what is in view, so that zooming in also magnifies vertically. The warm-up counts only where nothing
  // else is in view: a first step that takes a hundred times as long would flatten all others.
  scale() {
    if (this.spec.max) return this.spec.max;
    const values = this.inView();
    return niceAbove(Math.max(0, ...values) * 1.05);
  }

  // From the lowest to the highest value in view, with a little room; from 0 where that is not far.
  range() {
    if (!this.spec.fits) return [0, this.scale()];
    const values = this.inView();
    if (!values.length) return [0, 1];
    const low = Math.min(...values),
      high = Math.max(...values);
    if (low >= 0 && low <= high / 2) return [0, this.scale()];
    const room = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    return [low - room, high + room];
  }

  inView() {
    const [from, end] = this.axis.view,
      warmEnd = (this.spec.marks || {}).warmEnd || 0;
    const steady = from < warmEnd && warmEnd < end,
      begin = steady ? warmEnd : from;
    const values = [];
    for (const line of this.spec.lines.filter((each) => this.isOn(each))) {
      const highs = line.hi || line.v;
      for (let i = Math.max(0, indexAt(line.t, begin) + (steady ? 1 : 0)); i < line.t.length && line.t[i] <= end; ++i)
        values.push(highs[i]);
    }
    return values;
  }

  draw() {
    this.width = Math.max(200, this.node.clientWidth);
    const clip = "clip-" + this.spec.id;
    const bottom = this.height - kBottom;
    const plot = svg("g", { "clip-path": `url(#${clip})` });
    const window = svg(
      "clipPath",
      { id: clip },
      svg("rect", { x: kLeft, y: 0, width: this.width - kLeft - kRight, height: bottom + 1 }),
    );
    const labels = this.labels();
    this.fill(plot);
    this.cursor = svg("line", { class: "cursor", y1: kTop, y2: bottom, x1: -9, x2: -9 });
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.replaceChildren(window, ...labels, ...this.times(), plot, this.cursor);
    this.drawCursor();
  }

  // The scale at the left.
  labels() {
    [this.low, this.top] = this.range();
    return [this.low, (this.low + this.top) / 2, this.top].flatMap((value) => [
      svg("line", {
        class: value === this.low ? "axis" : "grid",
        x1: kLeft,
        x2: this.width - kRight,
        y1: this.y(value),
        y2: this.y(value),
      }),
      svg("text", { x: kLeft - 8, y: this.y(value) + 4, "text-anchor": "end" }, tick(value, this.spec.unit)),
    ]);
  }

  times() {
    const { ticks, step } = this.axis.ticks(Math.max(5, this.width / 110));
    return ticks.map((t) => {
      const label = this.axis.label(t, step);
      const half = label.length * 3.5; // about half its width: the last label must not leave the picture
      return svg(
        "text",
        { class: "time", x: Math.min(this.x(t), this.width - half), y: this.height - 4, "text-anchor": "middle" },
        label,
      );
    });
  }

  fill(plot) {
    if (this.spec.stack) this.drawStack(plot);
    else this.drawLines(plot);
    this.drawMarks(plot);
  }

  drawMarks(plot) {
    const area = (name, from, to) => {
      const x = this.x(from);
      plot.append(
        svg("rect", {
          class: name,
          x,
          y: kTop,
          width: Math.max(1, this.x(to) - x),
          height: this.height - kTop - kBottom,
        }),
      );
    };
    const marks = this.spec.marks || {};
    if (marks.warmEnd > 0) {
      area("warm", 0, marks.warmEnd);
      if (marks.warmLabel && this.x(marks.warmEnd) - Math.max(kLeft, this.x(0)) > 60) {
        plot.append(svg("text", { x: Math.max(kLeft, this.x(0)) + 6, y: kTop + 12 }, marks.warmLabel));
      }
    }
    if (marks.mean !== undefined) {
      plot.append(
        svg("line", {
          class: "mean",
          x1: this.x(marks.meanFrom),
          x2: this.x(this.axis.end),
          y1: this.y(marks.mean),
          y2: this.y(marks.mean),
        }),
      );
    }
    if (this.axis.band) area("band", ...this.axis.band);
  }

  drawStack(plot) {
    const { t, width, layers } = this.spec.stack;
    const base = new Array(t.length).fill(0);
    for (const layer of layers.filter((each) => this.isOn(each))) {
      let path = "",
        back = "";
      for (let i = 0; i < t.length; ++i) {
        const x1 = this.x(t[i]).toFixed(1),
          x2 = this.x(t[i] + width[i]).toFixed(1);
        const low = this.y(base[i]).toFixed(1),
          high = this.y((base[i] += layer.v[i])).toFixed(1);
        const joined = i > 0 && t[i] - (t[i - 1] + width[i - 1]) < width[i];
        if (!joined && i > 0) {
          path += back + "Z";
          back = "";
        }
        path += (joined ? "L" : "M") + `${x1},${high}L${x2},${high}`;
        back = `L${x2},${low}L${x1},${low}` + back;
      }
      plot.append(svg("path", { d: path + back + "Z", fill: layer.color, class: "layer" + this.state(layer) }));
    }
  }

  drawLines(plot) {
    for (const line of this.spec.lines.filter((each) => this.isOn(each))) {
      const gap = line.unbroken ? Infinity : usualGap(line.t) * 5;
      let path = "";
      for (let i = 0; i < line.t.length; ++i) {
        const pen = i === 0 || line.t[i] - line.t[i - 1] > gap ? "M" : "L";
        path += pen + this.x(line.t[i]).toFixed(1) + "," + this.y(line.v[i]).toFixed(1);
      }
      if (line.hi) {
        const upper = line.t.map((t, i) => this.x(t).toFixed(1) + "," + this.y(line.hi[i]).toFixed(1));
        const lower = line.t.map((t, i) => this.x(t).toFixed(1) + "," + this.y(line.lo[i]).toFixed(1)).reverse();
        plot.append(svg("polygon", { class: "range", points: upper.concat(lower).join(" "), fill: line.color }));
      }
      plot.append(svg("path", { class: "line" + this.state(line), d: path, stroke: line.color }));
    }
  }

  state(row) {
    return !this.lit ? "" : this.lit.has(row.key) ? " lit" : " dim";
  }

  drawCursor() {
    const { cursor, view } = this.axis;
    const shown = cursor !== null && cursor >= view[0] && cursor <= view[1];
    if (this.cursor) {
      const x = shown ? this.x(cursor) : -9;
      this.cursor.setAttribute("x1", x);
      this.cursor.setAttribute("x2", x);
    }
    this.rows().forEach((row, index) => {
      const times = this.spec.stack ? this.spec.stack.t : row.t;
      const at = shown && this.isOn(row) ? indexAt(times, cursor) : -1;
      this.outputs[index].textContent = at >= 0 ? (this.spec.text || amount)(row.v[at], this.spec.unit) : "";
    });
    this.sayValues(shown);
  }

  sayValues(shown) {
    const said = this.rows().flatMap((row, index) =>
      this.outputs[index].textContent ? `${row.label} ${this.outputs[index].textContent}` : [],
    );
    sayCursor(this, shown, said);
  }

  highlight(keys) {
    const mine = keys
      ? this.rows()
          .map((row) => row.key)
          .filter((key) => keys.has(key))
      : [];
    this.lit = mine.length ? new Set(mine) : null;
    this.node.classList.toggle("lit", mine.length > 0);
    this.draw();
  }

  // Moving points, dragging zooms, a double click shows all.
  listen() {
    let from = null,
      box = null;
    const position = (event) => {
      const area = this.svg.getBoundingClientRect();
      return Math.min(Math.max(event.clientX - area.left, kLeft), this.width - kRight);
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = position(event);
      if (event.pointerType === "mouse") this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      const x = position(event);
      this.axis.point(this.ms(x));
      if (from === null || Math.abs(x - from) < 5) return;
      if (!box) {
        box = svg("rect", { class: "drag", y: kTop, height: this.height - kTop - kBottom });
        this.svg.append(box);
      }
      box.setAttribute("x", Math.min(x, from));
      box.setAttribute("width", Math.abs(x - from));
    });
    const stop = () => {
      from = null;
      if (box) box.remove();
      box = null;
    };
    this.svg.addEventListener("pointerup", (event) => {
      const x = position(event),
        start = from;
      stop();
      if (start !== null && Math.abs(x - start) >= 5)
        this.axis.zoom(this.ms(Math.min(x, start)), this.ms(Math.max(x, start)));
    });
    this.svg.addEventListener("pointercancel", stop);
    this.svg.addEventListener("pointerleave", () => {
      if (from === null) this.axis.point(null);
    });
    this.svg.addEventListener("dblclick", () => this.axis.reset());
    this.svg.addEventListener("keydown", (event) => onChartKey(this.axis, event));
  }
}

// A chart's state as a slider, for a screen reader.
function sayCursor(panel, shown, said) {
  const { view, cursor, end } = panel.axis;
  panel.svg.setAttribute("aria-valuemin", view[0]);
  panel.svg.setAttribute("aria-valuemax", view[1]);
  panel.svg.setAttribute("aria-valuenow", shown ? cursor : view[0]);
  const at = shown ? cursor : view[0];
  panel.svg.setAttribute(
    "aria-valuetext",
    panel.axis.label(at, (view[1] - view[0]) / 600) + (said.length ? ": " + said.join(", ") : ""),
  );
}

// Arrows move the cursor (ten times as far with Shift), + and - zoom around it, Home and End go to the ends, Escape
// shows all.
function onChartKey(axis, event) {
  const [begin, end] = axis.view;
  const step = ((end - begin) / 100) * (event.shiftKey ? 10 : 1),
    from = axis.cursor ?? (begin + end) / 2;
  const to = { ArrowLeft: from - step, ArrowRight: from + step, Home: begin, End: end }[event.key];
  if (to !== undefined) axis.point(Math.min(Math.max(to, begin), end));
  else if (event.key === "+" || event.key === "=") axis.zoomBy(0.5);
  else if (event.key === "-") axis.zoomBy(2);
  else if (event.key === "Escape" || event.key === "0") axis.reset();
  else return;
  event.preventDefault();
}

// The median interval between readings; during one several times as long, nothing was recorded.
function usualGap(times) {
  const gaps = [];
  for (let i = 1; i < times.length; ++i) gaps.push(times[i] - times[i - 1]);
  gaps.sort((a, b) => a - b);
  return gaps.length ? gaps[gaps.length >> 1] || gaps[gaps.length - 1] : Infinity;
}

// Several series of one quantity as one line: their mean, and the range they span, on a common grid.
function together(list, end) {
  const points = Math.min(300, Math.max(...list.map((series) => series.t.length)));
  const merged = { t: [], v: [], lo: [], hi: [] };
  for (let i = 0; i < points; ++i) {
    const t = ((i + 0.5) / points) * end;
    const values = list.map((series) => series.v[indexAt(series.t, t)]).filter((value) => value !== undefined);
    if (!values.length) continue;
    merged.t.push(t);
    merged.v.push(values.reduce((sum, value) => sum + value, 0) / values.length);
    merged.lo.push(Math.min(...values));
    merged.hi.push(Math.max(...values));
  }
  return merged;
}
