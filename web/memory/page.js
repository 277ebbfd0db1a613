// The page of a memory snapshot: memory over time, what stood when it was fullest, and what other settings would take.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const panels = [];

function topLine() {
  return el(
    "div",
    { class: "top" },
    el("span", { class: "name" }, "fullbore explain"),
    el("span", { class: "run" }, data.file),
    themeButton(),
  );
}

function verdict(device) {
  const [first, ...others] = device.says;
  return el(
    "section",
    { class: device.refused.length ? "card verdict critical" : "card verdict none" },
    el("h1", {}, data.devices.length > 1 ? `Device ${device.device}: ${first}` : first),
    others.map((sentence) => el("p", {}, sentence)),
    device.limits.map((limit) => el("p", { class: "soft" }, limit)),
  );
}

function curve(device) {
  if (device.curve.length < 2) return "";
  const begin = device.curve[0][0];
  // What is held stays until the next moment: each line is a stair.
  const moments = device.curve.flatMap((moment, i) =>
    i > 0 ? [[moment[0], ...device.curve[i - 1].slice(1)], moment] : [moment],
  );
  const t = moments.map(([us]) => (us - begin) / 1000);
  const axis = new TimeAxis(t.at(-1));
  const line = (label, meaning, color, at) => ({
    label,
    meaning,
    color,
    key: label,
    t,
    v: moments.map((moment) => moment[at]),
    unbroken: true,
  });
  const panel = new Panel(axis, {
    id: `memory-${device.device}`,
    title: "Memory",
    unit: "bytes",
    height: 220,
    lines: [
      line("reserved", "what the allocator has of the driver", "var(--s2)", 2),
      line("in use", "in blocks of the program", "var(--s1)", 1),
    ],
  });
  panels.push(panel);
  return el("section", {}, el("h2", {}, "Over time"), el("div", { class: "card panels" }, panel.node));
}

function lines(device) {
  const { peak } = device;
  const share = (line) => line.bytes / Math.max(peak.reserved, peak.allocated, 1);
  const number = (label, key, cell) => ({ label, class: "number", key, cell });
  const columns = [
    number(
      "memory",
      (line) => line.bytes,
      (line) => bytes(line.bytes),
    ),
    number("of reserved", share, (line) => percent(share(line))),
    number(
      "blocks",
      (line) => line.blocks,
      (line) => count(line.blocks),
    ),
    {
      label: "asked for by",
      class: "place",
      key: (line) => line.place,
      cell: (line) => line.place || "no line of Python, as in a backward pass",
    },
  ];
  return el(
    "section",
    {},
    el("h2", {}, `In use when it was fullest: ${bytes(peak.allocated)}`),
    el(
      "div",
      { class: "card" },
      sortableTable(columns, peak.lines, (line) => line.place),
    ),
  );
}

function whatIf(device) {
  if (!device.what_if.length) return "";
  const rows = device.what_if.map((each) => el("li", {}, el("code", {}, each.change), ": ", each.says));
  return el("section", {}, el("h2", {}, "What if"), el("div", { class: "card" }, el("ul", { class: "notes" }, rows)));
}

function draw() {
  for (const panel of panels) panel.draw();
}

startTheme(draw);
document
  .getElementById("page")
  .replaceChildren(
    ...[
      topLine(),
      ...data.devices.flatMap((device) => [verdict(device), curve(device), lines(device), whatIf(device)]),
      el("footer", {}, "Written by fullbore explain. Other settings were replayed with the recorded requests."),
    ].filter(Boolean),
  );
draw();
addEventListener("resize", draw);
