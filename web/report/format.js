// Numbers for human readers, and DOM nodes. All recorded texts become text nodes: none is ever parsed as markup.
"use strict";

function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") Object.assign(node.style, value);
    else node.setAttribute(name, value);
  }
  for (const child of children.flat()) if (child !== null && child !== undefined && child !== "") node.append(child);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function count(value) {
  const size = Math.abs(value);
  const digits = Number.isInteger(value) || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function percent(ratio) {
  const value = ratio * 100;
  const digits = value !== 0 && Math.abs(value) < 0.95 ? 1 : 0;
  return value.toFixed(digits) + " %";
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 999.5 && unit + 1 < units.length) {
    value /= 1000;
    ++unit;
  }
  return value.toFixed(unit > 0 && Math.abs(value) < 9.95 && value !== 0 ? 1 : 0) + " " + units[unit];
}

function duration(ns) {
  const s = ns / 1e9,
    size = Math.abs(s);
  if (size === 0) return "0 s";
  if (size < 1e-6) return Math.round(ns) + " ns";
  if (size < 1e-3) return (s * 1e6).toFixed(size < 1e-5 ? 1 : 0) + " µs";
  if (size < 1) return (s * 1e3).toFixed(size < 1e-2 ? 1 : 0) + " ms";
  if (size < 60) return s.toFixed(size < 10 ? 1 : 0) + " s";
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

// A moment on a time axis that is `end` ms long, counted from its start, precise enough for moments `step` ms apart:
// "12.5 µs", "340 ms", "7.5 s", "4:12", "1:04:12", "3 d 6:00:00".
function clock(ms, step, end) {
  const digits = (of) => Math.min(6, Math.max(0, -Math.floor(Math.log10(step / of) + 1e-9)));
  if (end < 1) return (ms * 1000).toFixed(digits(1e-3)) + " µs";
  if (end < 1e3) return ms.toFixed(digits(1)) + " ms";
  if (end < 6e4) return (ms / 1e3).toFixed(digits(1e3)) + " s";
  const places = digits(1000),
    unit = 10 ** places;
  const units = Math.round((Math.abs(ms) / 1000) * unit); // rounded first: 59.97 s is 1:00, not 0:60
  const whole = Math.floor(units / unit),
    days = Math.floor(whole / 86400);
  const h = Math.floor((whole % 86400) / 3600),
    m = Math.floor((whole % 3600) / 60),
    s = whole % 60;
  const two = (value) => String(value).padStart(2, "0");
  const fraction = places ? "." + String(units % unit).padStart(places, "0") : "";
  return (
    (ms < 0 ? "-" : "") + (days ? days + " d " : "") + (h || days ? h + ":" + two(m) : m) + ":" + two(s) + fraction
  );
}

function amount(value, unit) {
  switch (unit) {
    case "ratio":
      return percent(value);
    case "bytes":
      return bytes(value);
    case "bytes/s":
      return bytes(value) + "/s";
    case "Hz":
      return value >= 1e9 ? (value / 1e9).toFixed(2) + " GHz" : (value / 1e6).toFixed(0) + " MHz";
    case "ns":
      return duration(value);
    case "s":
      return duration(value * 1e9);
    case "celsius":
      return count(value) + " °C";
    case "count":
    case "":
    case undefined:
      return count(value);
    default:
      return count(value) + " " + unit;
  }
}

// On the axis, where space is scarce: without units that the title already gives.
function tick(value, unit) {
  return ["ratio", "bytes", "bytes/s", "Hz", "ns"].includes(unit)
    ? amount(value, unit)
    : String(Number(value.toPrecision(3)));
}

function gainText(speedup) {
  const low = speedup.low.toFixed(2),
    high = speedup.high.toFixed(2);
  return low === high ? low + "×" : low + "× to " + high + "×";
}

function placeText(place) {
  const cell = /^<(cell \d+)>$/.exec(place.file); // of a notebook
  if (cell) return cell[1] + ", line " + place.line;
  const name = place.file.slice(place.file.lastIndexOf("/") + 1);
  return place.line ? name + ":" + place.line : name;
}

// What charts show, as rows for a spreadsheet.
function csvOf(panels) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const rows = panels.flatMap((panel) =>
    panel.rows().flatMap((row) => {
      const times = panel.spec.stack ? panel.spec.stack.t : row.t;
      return times.map((t, i) =>
        [t / 1000, quoted(panel.spec.title), quoted(row.label), panel.spec.unit || "", row.v[i]].join(","),
      );
    }),
  );
  return ["time_s,quantity,series,unit,value", ...rows].join("\n") + "\n";
}

// Offers a text as a file to save.
function saveAs(name, text) {
  const link = el("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "text/csv" })) });
  link.click();
  URL.revokeObjectURL(link.href);
}
