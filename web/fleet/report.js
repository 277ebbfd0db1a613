// The page of a report on many runs, and the letter to one person: where the hours went, and which edits save them.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const isLetter = data.for !== "";
const partOf = (ns) => (data.given_ns > 0 ? ns / data.given_ns : 0);
const sumOf = (kind) => data.parts.reduce((sum, part) => sum + (part.kind === kind ? part.device_ns : 0), 0);
const money = (amount) => `${amount.toLocaleString("en-US", { maximumFractionDigits: 0 })} ${data.currency}`.trim();
const editName = (fix) => fix.change || fix.finding;

// ---- the top ---------------------------------------------------------------------------------------------------

function brings(fixes) {
  return fixes.reduce((sum, fix) => sum + fix.saves_ns.expected, 0);
}

function letterTitle() {
  const { length } = data.fixes;
  if (!data.runs) return `No runs of ${data.for}`;
  if (!length) return `Hello ${data.for}, your runs leave nothing to recommend`;
  const edits = length === 1 ? "one edit" : length === 2 ? "two edits" : "three edits";
  const saved = hours(brings(data.fixes));
  return `Hello ${data.for}, ${edits} would bring back about ${saved} of your ${hoursOf(data.given_ns)}`;
}

function reportTitle() {
  const who = many(data.users.length, "user");
  if (!data.runs) return "No runs";
  const wasted = sumOf("waste");
  const waited = `${hours(wasted)} of them (${percent(partOf(wasted))})`;
  return `${many(data.runs, "run")} of ${who} had ${hoursOf(data.given_ns)}, and waited in ${waited}`;
}

function underTitle() {
  if (!data.runs) return "";
  if (isLetter && data.fixes.length)
    return "Each is a small change to a script of yours; the gain is predicted from the recording of your own run.";
  if (isLetter) return "";
  const first = data.fixes.slice(0, 5);
  if (!first.length) return "";
  const which = first.length === 1 ? "The edit below" : `The first ${first.length} edits below`;
  return `${which} would bring back about ${hoursOf(brings(first))}.`;
}

function verdict() {
  return el(
    "section",
    { class: isLetter || !data.runs ? "card verdict" : "card verdict warning" },
    el("h1", {}, isLetter ? letterTitle() : reportTitle()),
    underTitle() ? el("p", {}, underTitle()) : "",
  );
}

function costLabel() {
  const without = data.unpriced.map((device) => device || "unknown devices").join(", ");
  return without ? `Cost, without ${without}` : "Cost";
}

function figures() {
  if (!data.runs) return "";
  return el(
    "section",
    { class: "card figures" },
    figure("From", day(data.begin_unix_ns)),
    figure("To", day(data.end_unix_ns)),
    figure("Runs", count(data.runs)),
    isLetter ? "" : figure("Users", count(data.users.length)),
    figure("Device hours", hours(data.given_ns)),
    "cost" in data ? figure(costLabel(), money(data.cost)) : "",
    figure("Work", percent(partOf(sumOf("work")))),
    figure("Wasted, waiting", percent(partOf(sumOf("waste")))),
  );
}

// ---- where the hours went --------------------------------------------------------------------------------------

function row(says, ns, color, kind) {
  return el(
    "li",
    {},
    el(
      "span",
      { class: `fall ${kind}` },
      el("span", { class: "says" }, says),
      el("span", { class: "hours" }, hours(ns)),
      el("span", { class: "share" }, percent(partOf(ns))),
      track(0, partOf(ns), color),
    ),
  );
}

function wentTo() {
  if (!data.parts.length) return "";
  const kinds = [...new Set(data.parts.map((part) => part.kind))];
  const rows = kinds.flatMap((kind) => {
    const parts = data.parts.filter((part) => part.kind === kind);
    const causes = parts.filter((part) => part.cause);
    return [
      row(parts[0].says, sumOf(kind), colorOf(kind), kind),
      ...causes.map((part) => row(part.cause, part.device_ns, colorOf(kind), "cause")),
    ];
  });
  return el(
    "section",
    { id: "parts" },
    el("h2", {}, isLetter ? "Where your hours went" : "Where they went", el("small", {}, "device hours")),
    el("ul", { class: "card falls" }, rows),
  );
}

// ---- edits -----------------------------------------------------------------------------------------------------

function usersOf({ users }) {
  const named = users.slice(0, 3).map((user) => user || "unknown");
  const more = users.length - named.length;
  return named.join(", ") + (more > 0 ? ` and ${count(more)} more` : "");
}

function edit(fix) {
  const others = isLetter ? "" : ` of ${usersOf(fix)}`;
  const { low, expected, high } = fix.saves_ns;
  return el(
    "li",
    { class: "card edit" },
    el(
      "div",
      {},
      el("code", { class: fix.change ? "change" : "change words" }, editName(fix)),
      el("p", {}, fix.title),
      el(
        "p",
        { class: "soft" },
        `${isLetter ? "In " : ""}${many(fix.runs, "run")}${others}; for instance `,
        el("code", {}, fix.run),
      ),
    ),
    el(
      "div",
      { class: "brings" },
      el("div", { class: "label" }, "Brings back"),
      el(
        "div",
        { class: "gain" },
        `${hours(expected)} h`,
        el(
          "small",
          {},
          `${hours(low)} to ${hours(high)}${"saves_cost" in fix ? `, worth ${money(fix.saves_cost)}` : ""}`,
        ),
      ),
    ),
  );
}

function edits() {
  if (!data.fixes.length) return "";
  return el(
    "section",
    { id: "edits" },
    el(
      "h2",
      {},
      isLetter ? "What to change first" : "What brings most back",
      el("small", {}, "of each run only its first edit counts"),
    ),
    el("ul", { class: "edits" }, data.fixes.slice(0, 10).map(edit)),
  );
}

// ---- what was asked for, and what changed ------------------------------------------------------------------------

function asked() {
  if (!data.asked.length) return "";
  const says = (each) => `${many(each.jobs, "job")}${isLetter ? "" : ` of ${usersOf(each)}`}`;
  const columns = [
    { label: "what", class: "run", least: true, cell: (each) => each.what },
    { label: "given", class: "number", cell: (each) => each.given_says },
    { label: "used", class: "number", cell: (each) => each.used_says },
    { label: "by", class: "run", cell: says },
  ];
  return el(
    "section",
    { id: "asked" },
    el("h2", {}, "Asked for and hardly used", el("small", {}, "each job on average")),
    sortableTable(columns, data.asked, (each) => each.what),
  );
}

function trends() {
  const { before } = data;
  if (!before) return "";
  const most = (trend) =>
    isLetter ? "" : `${trend.group}: ${hours(trend.group_now_ns)}, was ${hours(trend.group_before_ns)}`;
  const columns = [
    { label: "wasted by", class: "run", least: true, cell: (trend) => trend.cause },
    { label: "before", class: "number", cell: (trend) => hours(trend.before_ns) },
    { label: "now", class: "number", cell: (trend) => hours(trend.now_ns) },
    ...(isLetter ? [] : [{ label: `most by ${data.by}`, class: "run", cell: most }]),
  ];
  const whole = `${hoursOf(before.given_ns)} of ${many(before.runs, "run")}, ${hours(before.waste_ns)} wasted`;
  return el(
    "section",
    { id: "trends" },
    el("h2", {}, "Since the time before", el("small", {}, whole)),
    before.trends.length ? sortableTable(columns, before.trends, (trend) => trend.cause) : "",
  );
}

// ---- groups ----------------------------------------------------------------------------------------------------

function groups() {
  if (isLetter || !data.groups.length) return "";
  const part = (group, ns) => (group.given_ns > 0 ? ns / group.given_ns : 0);
  const number = (label, key, cell) => ({ label, class: "number", key, cell });
  const columns = [
    { label: data.by, class: "run", least: true, key: (group) => group.name, cell: (group) => group.name },
    number(
      "device hours",
      (group) => group.given_ns,
      (group) => hours(group.given_ns),
    ),
    number(
      "runs",
      (group) => group.runs,
      (group) => count(group.runs),
    ),
    number(
      "wasted",
      (group) => part(group, group.waste_ns),
      (group) => percent(part(group, group.waste_ns)),
    ),
    number(
      "not judged",
      (group) => part(group, group.not_judged_ns),
      (group) => percent(part(group, group.not_judged_ns)),
    ),
  ];
  return el(
    "section",
    { id: "groups" },
    el("h2", {}, `By ${data.by}`),
    sortableTable(columns, data.groups, (group) => group.name),
  );
}

function footer() {
  const closing = isLetter
    ? "This letter is about your runs alone. Your own report on one of them: "
    : "Wasted is the time in which a device waited for something that a finding names. One run's own report: ";
  return el("footer", {}, "Written by fullbore fleet report. ", closing, el("code", {}, "fullbore explain RUN"), ".");
}

startTheme(() => {});
document
  .getElementById("page")
  .replaceChildren(
    ...[
      topLine("fullbore fleet report", isLetter ? `for ${data.for}` : ""),
      verdict(),
      figures(),
      ...(isLetter ? [edits(), wentTo()] : [wentTo(), edits()]),
      asked(),
      trends(),
      groups(),
      footer(),
    ].filter(Boolean),
  );
