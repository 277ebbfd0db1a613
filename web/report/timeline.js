// One step, piece by piece: where the device's time went, and what each stream and thread did meanwhile. Whatever
// explains an idle device has the colour of the idle time: a wait for the loader, a synchronisation, launches.
"use strict";

const kLabel = 15,
  kRow = 11,
  kBar = 22; // pixels: the name of a track, a row of it, a bar of shares

// track: {label, t, d, share, and for streams and threads name, row, counts}; times in ns.
class StepPanel extends Panel {
  // spec: {id, title, looks: by index of a share, tracks, names}
  constructor(axis, spec) {
    let y = kTop;
    for (const track of spec.tracks) {
      track.begins = rowBegins(track);
      track.top = y + kLabel;
      track.rowHeight = track.row ? kRow : kBar;
      y = track.top + track.begins.length * track.rowHeight + 5;
    }
    super(axis, { ...spec, height: y + kBottom });
  }

  rows() {
    return [];
  }

  caption() {
    const shown = new Set(this.spec.tracks.flatMap((track) => track.share));
    const keys = this.spec.looks.flatMap((look, i) =>
      shown.has(i)
        ? el(
            "span",
            { class: "key block", title: look.meaning },
            el("i", { style: { background: `var(--share-${look.name})` } }),
            look.label,
          )
        : [],
    );
    this.under = el("output", { class: "under" });
    return el("figcaption", {}, el("b", {}, this.spec.title), keys, this.under);
  }

  labels() {
    return this.spec.tracks.flatMap((track) => [
      svg("text", { class: "track", x: kLeft, y: track.top - 4 }, track.label),
      svg("line", {
        class: "grid",
        x1: kLeft,
        x2: this.width - kRight,
        y1: track.top + track.begins.length * track.rowHeight,
        y2: track.top + track.begins.length * track.rowHeight,
      }),
    ]);
  }

  // One path for each track and colour: thousands of pieces cost no more than a few nodes.
  fill(plot) {
    const [begin, end] = this.axis.view;
    for (const track of this.spec.tracks) {
      const paths = new Map();
      track.begins.forEach((first, row) => {
        const y = track.top + row * track.rowHeight,
          height = track.rowHeight - (track.row ? 2 : 0);
        const last = row + 1 < track.begins.length ? track.begins[row + 1] : track.t.length;
        const drawn = new Map(); // colour -> the pixel up to which it is drawn in this row
        for (let i = first; i < last; ++i) {
          const from = track.t[i] / 1e6,
            to = from + track.d[i] / 1e6;
          if (to < begin || from > end) continue;
          const share = track.share[i],
            x = Math.max(this.x(from), kLeft);
          let width = this.x(to) - x,
            gap = 0;
          if (track.row) {
            // a bar of shares is drawn exactly: its colours mix where they are narrower than a pixel
            width = Math.max(width, 0.4);
            if (x + width < (drawn.get(share) || 0) + 0.4) continue; // what lies within a pixel is drawn once
            drawn.set(share, x + width);
            if (width > 3) gap = 0.6; // neighbours can be told apart where there is room
          }
          paths.set(
            share,
            (paths.get(share) || "") +
              `M${x.toFixed(3)},${y}h${(width - gap).toFixed(3)}v${height}h-${(width - gap).toFixed(3)}z`,
          );
        }
      });
      for (const [share, path] of paths) {
        const color = share < 0 ? "var(--faint)" : `var(--share-${this.spec.looks[share].name})`;
        plot.append(svg("path", { d: path, fill: color, class: "piece" }));
      }
    }
  }

  listen() {
    super.listen();
    this.svg.addEventListener("pointermove", (event) => {
      const area = this.svg.getBoundingClientRect();
      this.pointed = this.textAt(event.clientX - area.left, event.clientY - area.top);
      this.under.textContent = this.pointed;
    });
    this.svg.addEventListener("pointerleave", () => {
      this.under.textContent = "";
    });
  }

  // "aten::linear, 12 µs", or nothing where nothing ran.
  textAt(x, y) {
    const track = this.spec.tracks.find((each) => y >= each.top && y < each.top + each.begins.length * each.rowHeight);
    if (!track) return "";
    const row = Math.floor((y - track.top) / track.rowHeight);
    const last = row + 1 < track.begins.length ? track.begins[row + 1] : track.t.length;
    const ns = this.ms(x) * 1e6,
      slack = (this.ms(x + 2) - this.ms(x)) * 1e6;
    const at = indexAt(track.t.slice(track.begins[row], last), ns + slack) + track.begins[row];
    if (at < track.begins[row] || ns - slack > track.t[at] + track.d[at]) return "";
    const share = track.share[at],
      look = share < 0 ? "" : this.spec.looks[share].label;
    const times = (track.counts || {})[at];
    const name = track.name ? this.spec.names[track.name[at]] || "several" : look;
    return `${times ? times + " × " : ""}${name}, ${duration(track.d[at])}` + (track.name && look ? ` (${look})` : "");
  }

  drawCursor() {
    const { cursor, view } = this.axis;
    const x = cursor !== null && cursor >= view[0] && cursor <= view[1] ? this.x(cursor) : -9;
    if (!this.cursor) return;
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    sayCursor(this, x >= 0, this.pointed ? [this.pointed] : []);
  }

  highlight() {} // evidence is shown in the charts over time
}

// Where each row of a track begins in its columns, which are sorted by row.
function rowBegins(track) {
  if (!track.row) return [0];
  const begins = [];
  track.row.forEach((row, i) => {
    while (begins.length <= row) begins.push(i);
  });
  return begins.length ? begins : [0];
}

function timelineSection(data) {
  const timeline = data.timeline;
  if (!timeline) return null;
  const byName = new Map(data.palette.map((look) => [look.name, look]));
  const looks = timeline.shares.map((name) => byName.get(name) || byName.get("host_other"));
  const steps = new TimeAxis(timeline.end_ns / 1e6, 1e-3);
  const several = timeline.ranks.length > 1;
  const all = el("button", { type: "button", hidden: "", onclick: () => steps.reset() }, "Show all");
  const now = el("span", { class: "clock" });
  const box = el("div", { class: "card panels" });
  let rank = timeline.ranks.find((each) => each.tracks);

  const shares = timeline.ranks
    .filter((each) => each.shares.t.length)
    .map((each) => ({ label: several ? `rank ${each.rank}` : "the device", ...each.shares }));
  const rebuild = () => {
    steps.panels = [];
    const specs = [];
    if (shares.length) specs.push({ id: "step-shares", title: "Where the time goes", tracks: shares });
    if (rank && rank.tracks.length)
      specs.push({
        id: "step-tracks",
        title: several ? `Streams and threads of rank ${rank.rank}` : "Streams and threads",
        tracks: rank.tracks,
        names: rank.names,
      });
    box.replaceChildren(...specs.map((spec) => new StepPanel(steps, { ...spec, looks }).node));
    if (box.isConnected) steps.draw();
  };
  steps.onChange = () => {
    const [begin, end] = steps.view;
    all.hidden = begin === 0 && end === steps.end;
    now.textContent = steps.cursor === null ? "" : clock(steps.cursor, (end - begin) / 600, steps.end);
  };
  rebuild();
  if (!steps.panels.length) return null;
  const detailed = timeline.ranks.filter((each) => each.tracks);
  const tools = el(
    "div",
    { class: "tools" },
    detailed.length > 1
      ? chooser(
          "Rank",
          detailed.map((each, i) => [i, each.rank]),
          (i) => {
            rank = detailed[i];
            rebuild();
          },
        )
      : "",
    el("span", { class: "hint" }, "Point to read, drag to zoom, double-click to see all. Grey: ordinary operators."),
    all,
    now,
  );
  const node = el(
    "section",
    { id: "timeline" },
    el(
      "h2",
      {},
      "One step, piece by piece",
      data.report.window.steps > 1 ? el("small", {}, `step ${timeline.ranks[0].step}, of the median time`) : "",
    ),
    tools,
    box,
  );
  return { node, axis: steps };
}
