// Device hours, and the colours of what they went into: what the pages of many runs share.
"use strict";

const kHourNs = 3.6e12;

function hours(ns) {
  const value = ns / kHourNs;
  const digits = value < 1 ? 3 : value < 100 ? 1 : 0;
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

const hoursOf = (ns) => `${hours(ns)} device ${hours(ns) === "1.0" ? "hour" : "hours"}`;

const many = (value, what) => `${count(value)} ${what}${value === 1 ? "" : "s"}`;

// Times are those of the machines' clocks, in UTC as everywhere.
function moment(unixNs, withSeconds) {
  const text = new Date(unixNs / 1e6).toISOString();
  return text.slice(0, withSeconds ? 19 : 16).replace("T", " ");
}
const day = (unixNs) => moment(unixNs).slice(0, 10);

const kColors = {
  work: "var(--good)",
  padding: "var(--s4)",
  recomputation: "var(--s4)",
  "slow kernels": "var(--s4)",
  waste: "var(--s2)",
  checkpoint: "var(--s5)",
  validation: "var(--s5)",
  lost: "var(--bad)",
  start: "var(--s1)",
  compile: "var(--s1)",
  "warm-up": "var(--s1)",
};
const colorOf = (kind) => kColors[kind] || "var(--faint)";

// A part of a whole, drawn from one place of it to another; what it says stands beside it.
function track(from, to, color) {
  const part = (value) => `${100 * Math.min(1, Math.max(0, value))}%`;
  return el(
    "span",
    { class: "track", "aria-hidden": "true" },
    el("i", { style: { left: part(from), width: part(to - from), background: color } }),
  );
}

function figure(label, value) {
  return el("div", {}, el("div", { class: "label" }, label), el("div", { class: "value" }, value));
}

function notesCard(notes) {
  if (!notes.length) return "";
  return el(
    "section",
    { id: "notes" },
    el("h2", {}, "Also worth knowing"),
    el(
      "div",
      { class: "card" },
      el(
        "ul",
        { class: "notes" },
        notes.map((note) => el("li", {}, note)),
      ),
    ),
  );
}

function topLine(command, about) {
  return el(
    "div",
    { class: "top" },
    el("span", { class: "name" }, command),
    el("span", { class: "run" }, about),
    themeButton(),
  );
}
