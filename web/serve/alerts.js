// Rules, what fires now, and what has.
"use strict";

const when = (ns) => (ns === undefined ? "" : new Date(ns / 1e6).toLocaleString());
const loss = (lost) =>
  !lost ? "" : lost.money === undefined ? `${Math.round(lost.seconds)} s` : `${lost.money.toFixed(2)} ${lost.currency}`;
const runOf = (each) => runLink(each.run);

const RULE = [
  ["Alert", (each) => each.alert],
  ["For", (each) => each.for],
  ["Tells", (each) => each.notify.join(", ")],
];
const FIRING = [
  ["Alert", (each) => each.alert],
  ["Run", runOf],
  ["Since", (each) => when(each.since_unix_ns)],
  ["What", (each) => each.what],
  ["Fix", (each) => each.fix[0] || ""],
  ["Lost", (each) => loss(each.lost)],
];
const PAST = [
  ["Alert", (each) => each.alert],
  ["Run", runOf],
  ["Fired", (each) => when(each.fired_unix_ns)],
  ["Over", (each) => when(each.resolved_unix_ns)],
  ["What", (each) => each.what],
  ["Lost", (each) => loss(each.lost)],
];

function listOf(title, columns, items, none) {
  const head = el(
    "tr",
    {},
    columns.map(([name]) => el("th", { scope: "col" }, name)),
  );
  const rows = items.map((each) =>
    el(
      "tr",
      {},
      columns.map(([, cell]) => el("td", {}, cell(each))),
    ),
  );
  return el(
    "section",
    {},
    el("h2", {}, title),
    el(
      "div",
      { class: "card scroll runs" },
      rows.length ? el("table", {}, [head, ...rows]) : el("p", { class: "about soft" }, none),
    ),
  );
}

async function show() {
  const { rules, firing, history } = await ask("/api/v1/alerts");
  document
    .getElementById("page")
    .replaceChildren(
      el("h1", { class: "hidden" }, "Alerts"),
      listOf("Firing now", FIRING, firing, "Nothing fires."),
      listOf("Rules", RULE, rules, "This server has no rules: fullbore serve --rules FILE."),
      listOf("History", PAST, history, "Nothing has fired."),
    );
}

startTheme(() => {});
navigate("/alerts");
show().catch(complain);
setInterval(() => {
  if (!document.hidden) show().catch(complain);
}, 10_000);
