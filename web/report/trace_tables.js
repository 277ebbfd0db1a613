// Of a trace: the tables of `fullbore explain --section`, and the roofline as a picture.
"use strict";

const kScaled = { flops: "FLOP", "flops/s": "FLOP/s" };

function scaled(value, unit) {
  const prefixes = ["", "k", "M", "G", "T", "P", "E"];
  let prefix = 0;
  while (Math.abs(value) >= 999.5 && prefix + 1 < prefixes.length) {
    value /= 1000;
    ++prefix;
  }
  return `${Number(value.toPrecision(3))} ${prefixes[prefix]}${unit}`;
}

function cellText(value, unit) {
  if (value === null) return "-";
  if (typeof value === "string") return value;
  if (kScaled[unit]) return scaled(value, kScaled[unit]);
  return unit === "" ? String(value) : amount(value, unit);
}

// The unit is in the cell: "sum_ns" is headed "sum".
function headingOf(column) {
  return column.name.replace(/_(ns|ratio|bytes)$/, "").replaceAll("_", " ");
}

// What is unknown comes last where the greatest come first.
function sortedBy(value, isText) {
  if (value === null) return isText ? "" : -Infinity;
  return isText ? String(value) : value;
}

function columnOf(column, index, rows) {
  const isText = rows.some((row) => typeof row[index] === "string");
  return {
    label: headingOf(column),
    class: isText ? "code" : "number",
    least: isText || column.name === "rank",
    key: (row) => sortedBy(row[index], isText),
    cell: (row) => {
      const text = cellText(row[index], column.unit);
      return isText
        ? el("div", { class: "wrap", title: text }, text.length > 90 ? text.slice(0, 90) + "…" : text)
        : text;
    },
  };
}

function sectionTable(table) {
  const severalRanks = new Set(table.rows.map((row) => row[0])).size > 1;
  const columns = table.columns
    .map((column, index) => columnOf(column, index, table.rows))
    .filter((column, index) => index > 0 || severalRanks);
  const rest = table.all - table.rows.length;
  const command = `fullbore explain --section ${table.name} --csv ${table.name}.csv`;
  return [
    el("p", { class: "method" }, table.summary),
    table.rows.length ? sortableTable(columns, table.rows, (row) => row.join(" ")) : "",
    rest > 0 ? el("p", { class: "method" }, `${count(rest)} more rows: `, el("code", {}, command), " writes all.") : "",
    table.notes.map((note) => el("p", { class: "method" }, note)),
  ];
}

function traceTablesSection() {
  const tables = data.tables || [];
  if (!tables.length) return null;
  const box = el("div");
  const show = (index) => box.replaceChildren(...sectionTable(tables[index]).flat().filter(Boolean));
  show(0);
  const left = data.ranks_left_out;
  return el(
    "section",
    { id: "tables" },
    el("h2", {}, "Tables", el("small", {}, "as explain --section prints them")),
    el(
      "div",
      { class: "tools still" },
      chooser(
        "Table",
        tables.map((table, index) => [index, table.name]),
        show,
      ),
    ),
    box,
    left ? el("p", { class: "method" }, `${count(left)} more ranks are left out here.`) : "",
  );
}

// ---- roofline ------------------------------------------------------------------------------------------------

const kRoof = { width: 900, height: 360, left: 76, right: 16, top: 18, bottom: 44 };

// Operators whose work and bytes are known: intensity in FLOP a byte, what was reached, and their time.
function rooflinePoints() {
  const table = (data.tables || []).find((each) => each.name === "roofline-operators");
  if (!table) return [];
  const at = Object.fromEntries(table.columns.map((column, index) => [column.name, index]));
  return table.rows
    .filter((row) => row[at.flops_each] > 0 && row[at.bytes_each] > 0 && row[at.flops_per_s] > 0)
    .map((row) => ({
      name: `${row[at.name]} ${row[at.shape]}`,
      x: row[at.flops_each] / row[at.bytes_each],
      y: row[at.flops_per_s],
      ns: row[at.device_ns],
      bound: row[at.bound],
    }));
}

function decades(values) {
  return [Math.floor(Math.log10(Math.min(...values))), Math.ceil(Math.log10(Math.max(...values)) + 1e-9)];
}

function rooflineAxes(points, limits) {
  const knee = limits ? [limits.flops_per_s / limits.bytes_per_s] : [];
  const [x0, x1] = decades([...points.map((point) => point.x), ...knee]);
  const [y0, y1] = decades([...points.map((point) => point.y), ...(limits ? [limits.flops_per_s] : [])]);
  const across = kRoof.width - kRoof.left - kRoof.right,
    up = kRoof.height - kRoof.top - kRoof.bottom;
  return {
    x: (value) => kRoof.left + ((Math.log10(value) - x0) / Math.max(1, x1 - x0)) * across,
    y: (value) => kRoof.height - kRoof.bottom - ((Math.log10(value) - y0) / Math.max(1, y1 - y0)) * up,
    xs: [...Array(x1 - x0 + 1)].map((_, i) => 10 ** (x0 + i)),
    ys: [...Array(y1 - y0 + 1)].map((_, i) => 10 ** (y0 + i)),
  };
}

function rooflineGrid(axes) {
  const low = kRoof.height - kRoof.bottom,
    far = kRoof.width - kRoof.right;
  return [
    ...axes.xs.flatMap((value) => [
      svg("line", { class: "grid", x1: axes.x(value), x2: axes.x(value), y1: kRoof.top, y2: low }),
      svg("text", { x: axes.x(value), y: low + 16, "text-anchor": "middle" }, String(Number(value.toPrecision(1)))),
    ]),
    ...axes.ys.flatMap((value) => [
      svg("line", { class: "grid", x1: kRoof.left, x2: far, y1: axes.y(value), y2: axes.y(value) }),
      svg("text", { x: kRoof.left - 8, y: axes.y(value) + 4, "text-anchor": "end" }, scaled(value, "FLOP/s")),
    ]),
    svg("text", { x: far, y: kRoof.height - 6, "text-anchor": "end" }, "FLOP for each byte of memory traffic"),
  ];
}

function roof(axes, limits) {
  if (!limits) return [];
  const first = axes.xs[0],
    last = axes.xs[axes.xs.length - 1];
  const lowest = axes.ys[0] / limits.bytes_per_s; // where the slope leaves the picture
  const begin = Math.max(first, lowest),
    knee = Math.min(last, limits.flops_per_s / limits.bytes_per_s);
  const reach = (x) => Math.min(limits.flops_per_s, x * limits.bytes_per_s);
  const corner = (x) => `${axes.x(x)},${axes.y(reach(x))}`;
  return [svg("polyline", { class: "roof", points: [begin, knee, last].map(corner).join(" ") })];
}

function rooflineSection() {
  const points = rooflinePoints();
  if (!points.length) return null;
  const limits = data.roof && data.roof.flops_per_s > 0 && data.roof.bytes_per_s > 0 ? data.roof : null;
  const axes = rooflineAxes(points, limits);
  const most = Math.max(...points.map((point) => point.ns));
  const dots = points.map((point) => {
    const color = point.bound === "memory" ? "var(--share-copy_exposed, var(--s2))" : "var(--share-compute)";
    const radius = 4 + 12 * Math.sqrt(point.ns / most);
    const intensity = `${Number(point.x.toPrecision(3))} FLOP/B`;
    const says = `${point.name}: ${scaled(point.y, "FLOP/s")} at ${intensity}, ${duration(point.ns)}`;
    const dot = svg("circle", { class: "dot", cx: axes.x(point.x), cy: axes.y(point.y), r: radius, fill: color });
    dot.append(svg("title", {}, says));
    return dot;
  });
  const label = `Roofline of ${points.length} operators; their figures are in the table roofline-operators below`;
  const picture = svg(
    "svg",
    { viewBox: `0 0 ${kRoof.width} ${kRoof.height}`, role: "img", "aria-label": label },
    ...rooflineGrid(axes),
    ...roof(axes, limits),
    ...dots,
  );
  const says = limits
    ? `the line is what ${limits.device} can do in 16 bits`
    : "the device is not known: what it can do is not drawn";
  return el(
    "section",
    { id: "roofline" },
    el("h2", {}, "Roofline", el("small", {}, `an operator is a dot, the larger the longer it took; ${says}`)),
    el("div", { class: "card scroll roofline", tabindex: 0, role: "group", "aria-label": "Roofline" }, picture),
  );
}
